"""Part 2: how probable is a fact's object after a question with a date?

`statements` puts every date of `datasets.dates.sample_dates` before its fact's question, `scored`
asks a model for log P(object | dated question). Which dates win is decided later, by the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.datasets.dates import verbalise
from factrobust.datasets.temporal import load_temporal_relations
from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS
from factrobust.probes import lacking, prompts

KEPT = ["fact_id", "precision", "date", "year", "alpha", "years_off", "label"]
WORDING = ("question", "prefix")


def statements(
    facts: pd.DataFrame, dates: pd.DataFrame, relations: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Every date with what is asked about it: the columns of `dates`, question, prefix, object.

    `facts` has fact_id, subject, relation and object, and may have its own question and prefix (no
    subject to fill in; an empty prefix stays empty). Where it has none, `relations`, indexed by
    name, has the columns question and prefix with {subject} in them (default: the embedded ones).
    The date stands before both: "In December 2019, who was the head of state of Sri Lanka?"
    (paper 2, 3.1 and appendix E).

    Raises ValueError for a date of a fact that is not in `facts`, KeyError for a relation without
    a question.
    """
    columns = ["fact_id", "subject", "relation", "object"]
    columns += [*WORDING] if "question" in facts else []
    table = dates.merge(facts[columns], on="fact_id", how="left", validate="many_to_one")
    if (unknown := table["relation"].isna()).any():
        raise ValueError(
            f"{unknown.sum()} date(s) belong to no fact in the table, such as one of "
            f"{table.loc[unknown, 'fact_id'].iloc[0]}; pass the facts that the dates were made from"
        )
    if "question" not in facts:
        table = _worded(table, load_temporal_relations() if relations is None else relations)
    spoken = table["date"].map({date: verbalise(date) for date in table["date"].unique()})
    for column in WORDING:
        pairs = zip(spoken, table[column], strict=True)
        table[column] = [f"{when}, {text}" if text else "" for when, text in pairs]
    return table[[*dates, *WORDING, "object"]]


def _worded(table: pd.DataFrame, relations: pd.DataFrame) -> pd.DataFrame:
    """The rows with question and prefix of their relation, the subject filled in."""
    if missing := sorted(set(table["relation"]) - set(relations.index)):
        raise KeyError(f"no question for {', '.join(missing)}; pass relations that have one")
    for column in WORDING:
        pairs = zip(table["relation"].map(relations[column]), table["subject"], strict=True)
        filled = [template.replace("{subject}", subject) for template, subject in pairs]
        table = table.assign(**{column: filled})
    return table


def tuned(models: Sequence[Model]) -> list[Model]:
    """The models that have a chat template. Raises LacksError if none of them has."""
    found = [model for model in models if model.chat]
    if models and not found:
        raise lacking(models, "no chat template here to compare with; name a model that has one")
    return found


def scored(
    model: Model, statements: pd.DataFrame, *, prompt_format: str | None = None
) -> pd.DataFrame:
    """log P(object | dated question) of each statement, one row each, in their order.

    Columns: model, prompt_format, those of the date (`KEPT`), logprob (natural, summed over the
    object's tokens), n_tokens. The tokens are the smallest suffix of prompt + separator + object
    that covers separator and object (paper 2, appendix D): " Mahinda" is one token with its space,
    and where a tokenizer keeps spaces apart, the space counts as well, the same for every date.
    """
    name = prompt_format or model.prompt_format
    sent = prompts(model, statements, name)
    separator = FORMATS[name].separator
    values = model.score(sent, [separator + answer for answer in statements["object"]])
    table = statements[KEPT].reset_index(drop=True)
    table.insert(0, "model", model.name)
    table.insert(1, "prompt_format", name)
    return table.assign(
        logprob=np.array([np.sum(v, dtype=np.float64) for v in values], dtype=np.float64),
        n_tokens=np.array([len(v) for v in values], dtype=np.int64),
    )
