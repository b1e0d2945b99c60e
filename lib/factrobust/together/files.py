"""What a quantised file lost, beside the numbers that people choose such files by.

Forms of a model are changes of its weights (`models.damage`) as the files of llama.cpp's formats
hold them, adapters that were trained on it, and the model once more, asked in another batch and
order: what asking twice loses.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import cast

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from factrobust import draws, load_model, schemas
from factrobust.decoding import metrics, probe
from factrobust.intervals import Array, Interval, bootstrap_statistic, in_ranges
from factrobust.models import divergence, k_quants
from factrobust.models.damage import LLAMA_CPP, Damage, damaged
from factrobust.models.interface import Model, RecordedModel
from factrobust.models.records import Records
from factrobust.tables import TooFewError
from factrobust.together import spine
from factrobust.together.flips import Again
from factrobust.wording.prediction import compare_predictors

AGAIN = "asked again"
ADAPTER = "adapter"
FORMS = (
    Damage("round", 8),
    Damage("K", 6),
    Damage("K", 5),
    Damage("K", 4),
    Damage("round", 4),
    Damage("K", 3),
    Damage("K", 2),
    Damage("prune", 0.2),
)
NUMBERS = ("mean_kl", "tail_kl", "different_top", "perplexity")  # the higher, the further away
LIKELY = {"up to 37%": -1.0, "37 to 67%": -0.4, "67 to 90%": -0.1, "above 90%": 0.0}  # by log P
SIGNS = ("logprob", "t_b", "short")  # of a fact; the higher, the more robust


def file_label(form: Damage) -> str:
    """What people call a file of this form: "Q4_K", or "20% pruned"."""
    if form.way == "K":
        return k_quants.FORMATS[int(form.dose)]
    if form.way == "prune":
        return f"{form.dose:.0%} pruned"
    return LLAMA_CPP.get(form.dose, form.label)


def taken(known: pd.DataFrame, n: int) -> pd.DataFrame:
    """At most n known facts of each model, with SIGNS: those that most models know first, then by
    lot."""
    shared = known.groupby("fact_id")["model"].transform("size")
    lot = known["fact_id"].map(draws.hash48)
    order = known.assign(shared=-shared, lot=lot).sort_values(["shared", "lot"])
    few = order.groupby("model").head(n).drop(columns=["shared", "lot"])
    few["logprob"] = few["logprobs"].map(sum)
    few["short"] = -few["logprobs"].map(len)
    found = few.merge(metrics.exact_breaking(probe.answer_curves(few)), how="left")
    return found.assign(t_b=found["t_b"].clip(upper=spine.HIGHEST))


def lost_in_forms(
    models: Sequence[Model],
    known: pd.DataFrame,
    forms: Sequence[Damage],
    records: Records,
    adapters: Mapping[str, str] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Which of its known facts each form of a model lost: model, form, fact_id, relation, text, lost
    (1 or 0); and of each form but AGAIN model, form, NUMBERS and tokens (`divergence.summary`).

    `adapters` are the names of models that are the model named beside them with an adapter.
    """
    lost, numbers = [], []
    for model in models:
        facts = known.loc[known["model"] == model.name, [*schemas.AskedFacts.columns]]
        named = [name for name, base in (adapters or {}).items() if base == model.name]
        for form, other in _forms(model, forms, named, records):
            answers = spine.marked_answers(other, facts)
            is_lost = 1 - answers["right"].astype(int)
            part = answers[["fact_id", "relation", "text"]]
            lost.append(part.assign(model=model.name, form=form, lost=is_lost))
            if form != AGAIN:
                base = cast(RecordedModel, model)
                form_of_it = cast(RecordedModel, other)
                text = divergence.the_text()
                table = divergence.compared(form_of_it, base, text, records)
                about = {"model": model.name, "form": form}
                numbers.append(about | divergence.summary(table))
    return pd.concat(lost, ignore_index=True), pd.DataFrame(numbers)


def _forms(
    model: Model, forms: Sequence[Damage], adapters: Sequence[str], records: Records
) -> Iterator[tuple[str, Model]]:
    yield AGAIN, Again(model)
    for form in forms:
        yield file_label(form), damaged(model.name, form)
    for name in adapters:
        yield ADAPTER, load_model(name, records=records)


def how_many(lost: pd.DataFrame, numbers: pd.DataFrame, *, n_boot: int) -> pd.DataFrame:
    """Spearman's correlation, over a model's forms, of the share lost with each of the NUMBERS, a row
    a model and number. Intervals draw whole relations; the numbers stay as they are."""
    rows = []
    for model, part in numbers.groupby("model", sort=False):
        wide = lost[lost["model"] == model].pivot(
            index=["relation", "fact_id"],
            columns="form",
            values="lost",
        )
        columns = [wide[form].to_numpy(float) for form in part["form"]]
        relations = wide.index.get_level_values("relation").to_numpy()
        for number in NUMBERS:
            ranked = partial(_spearman, rankdata(part[number]))
            found = bootstrap_statistic(ranked, columns, relations, n_boot=n_boot)
            rows.append((model, number, *found[:3], len(part)))
    return pd.DataFrame(rows, columns=["model", "number", *Interval._fields])


def _spearman(ranks: Array, weights: Array, *columns: Array) -> Array:
    """The correlation of these ranks [form] with those of the weighted means of the columns, [draw];
    weights are [draw, row]."""
    shares = np.stack([weights @ column for column in columns], axis=-1)
    others = rankdata(shares, axis=-1)
    x, y = ranks - ranks.mean(), others - others.mean(axis=-1, keepdims=True)
    below = np.sqrt((x**2).sum() * (y**2).sum(axis=-1))
    return np.divide(
        (x * y).sum(axis=-1),
        below,
        out=np.zeros_like(below),
        where=below > 0,
    )


def at_divergence(
    lost: pd.DataFrame,
    numbers: pd.DataFrame,
    known: pd.DataFrame,
    low: float,
    high: float,
) -> pd.DataFrame:
    """The rows of `lost` of forms whose mean_kl (nats) lies between two bounds, with the name in LIKELY
    of the probability that the fact's answer had before, `likely before`. TooFewError for none."""
    near = numbers[numbers["mean_kl"].between(low, high)]
    if near.empty:
        raise TooFewError(
            f"No form of these models has a mean KL divergence of {low:g} to {high:g} nats: give "
            "other bounds, or more forms."
        )
    rows = lost.merge(near[["model", "form"]]).merge(known[["model", "fact_id", "logprob"]])
    highest = rows["logprob"].clip(upper=0)  # a sum of logs may be rounded above 0
    return rows.assign(**{"likely before": in_ranges(highest, LIKELY)})


def which(lost: pd.DataFrame, known: pd.DataFrame, *, n_boot: int) -> pd.DataFrame:
    """`wording.prediction.compare_predictors`: how well each of a fact's SIGNS tells facts that a
    form kept from those that it lost, pairs of one form, all forms of a model together."""
    rows = lost[lost["form"] != AGAIN].merge(known[["model", "fact_id", *SIGNS]])
    form = pd.factorize(rows["form"])[0]
    rows = rows.assign(
        group_id=rows["fact_id"],
        correct=1.0 - rows["lost"],
        repeat=form,
        fold=0,
    )
    keys = ["model", "group_id", "relation", "correct", "repeat", "fold"]
    long = rows.melt(keys, list(SIGNS), "predictor", value_name="score")
    return compare_predictors(long, ["model"], "score", reference="logprob", n_boot=n_boot)
