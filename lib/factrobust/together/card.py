"""A card of any model: what it knows, what makes it lose that, and what is usually done about it.

    found = factrobust.card("gemma-3-270m")            # a name, folder, .gguf, hub id, "URL NAME"
    found = factrobust.card("my-model", "mine.csv")    # question,answer[,aliases,relation,start,end,context]
    found.save("build/cards")                          # JSON, and from it a page, a PNG, a model-index

"NAME#FORMAT" asks in another prompt format, "NAME~round 4" with other weights (`together.damage`).
"""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field
from scipy.special import expit

from factrobust import __version__, draws, load_model, statistics, tables
from factrobust.datasets.named import load_named
from factrobust.decoding import metrics as decoding
from factrobust.decoding import probe
from factrobust.models.endpoint import named_endpoint
from factrobust.models.interface import Model, ModelError
from factrobust.models.load import GROWN
from factrobust.models.prompts import FORMATS, prompts
from factrobust.models.records import open_records
from factrobust.paths import DATA, noted, write_atomically
from factrobust.text import normalise
from factrobust.time import metrics as timed
from factrobust.together import spine
from factrobust.together.damage import Damage, damaged

KNOWN, CHUNK, ENOUGH = 60, 60, 5  # ENOUGH relations are drawn for intervals
FEW = 10  # facts, below which a measure of some of the known facts carries no claim
DECODER = {"temperature": 0.7, "top_p": 0.9}
DIFFERENCE = 2**0.5 * (1 + 0.8416 / statistics.TWO_SIDED)  # of half an interval: see Measure
SURVIVAL = DATA / "cards" / "survival.json"  # what notebook 6.3 fits
SAMPLED = (0.5, 1.0, 1.5, 2.0)  # for t_b by five samples, where nothing can be tempered
CSV = tables.csv_schema(
    ("question", "answer"),
    question=tables.filled("write the question, or delete the line"),
    answer=tables.filled("write the right answer, or delete the line"),
    relation=tables.filled("name what kind of fact it is, or drop the column"),
    **dict.fromkeys(("aliases", "start", "end", "context")),
)
# The worst first: the number that tells (see `Fact`), below which value, and what is usually done about it.
VERDICTS = tables.read_csv(DATA / "cards" / "verdicts.csv", index_col="verdict")
MEASURES = tables.read_csv(DATA / "cards" / "measures.csv")  # those of a model, and their baselines
CANNOT = [
    "how the model does on other questions, languages or longer answers than these",
    "which of two models is better: these are facts that this one was asked; diff pairs them",
    "whether wordings or contexts of another kind would break what held here",
]


class Fact(BaseModel):
    """What is told of one fact; what was not asked, or cannot be, is missing.

    numbers, of a known fact: logprob (of the answer, nats), t_b (99 if nothing breaks it), frs; kept, the
    answer's probability under the decoder's settings; wordings, the share of other wordings whose answer
    holds the right one; true, irrelevant, false, yours: 1 if the answer behind that context holds it,
    else 0; years, the share of pairs of a year inside its time and one outside that the first wins;
    survives, the predicted probability to be right after rounding to 4 bits.
    """

    fact_id: str
    relation: str
    question: str
    accepted: list[str]
    answer: str
    known: bool
    verdicts: list[str]  # of data/cards/verdicts.csv
    wordings: dict[str, str] = {}  # the question in other words, and the answer
    contexts: dict[str, tuple[str, str]] = {}  # kind: the context, and the answer behind it
    numbers: dict[str, float] = {}


class Measure(BaseModel):
    """A number with its interval, n (facts), a baseline, and the smallest difference between two such
    numbers that such an n shows in four of five cases (at 5%, two-sided)."""

    name: str
    value: float
    low: float | None
    high: float | None
    n: int
    baseline: float | None
    baseline_is: str
    smallest_difference: float | None


class Card(BaseModel):
    """A model's card, as its JSON holds it; `digest` is the SHA-256 of all else."""

    schema_version: Literal[1] = 1
    made_by: str = f"factrobust {__version__}"
    model: str
    fingerprint: str
    prompt_format: str
    prompt: str  # the first, as it was sent
    frames: list[str]  # of other wordings; the invented world has its own
    decoder: dict[str, float]
    data: str
    data_sha256: str
    notes: list[str]
    measures: list[Measure]
    facts: list[Fact]
    missing: list[str]
    cannot_say: list[str] = CANNOT
    digest: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")

    @property
    def table(self) -> pd.DataFrame:
        """The measures, a row each."""
        return pd.DataFrame([measure.model_dump() for measure in self.measures])

    @property
    def numbers(self) -> pd.DataFrame:
        """A row a fact and number: fact_id, relation, name ("known", or as `Fact` says), value."""
        rows = [
            (fact.fact_id, fact.relation, name, float(value))
            for fact in self.facts
            for name, value in ({"known": fact.known} | fact.numbers).items()
        ]
        return pd.DataFrame(rows, columns=["fact_id", "relation", "name", "value"])

    def digested(self) -> str:
        text = json.dumps(self.model_dump(mode="json", exclude={"digest"}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self, folder: str | Path = "build/cards", name: str = "") -> list[Path]:
        """Write NAME.json, and from it NAME.png, NAME.html and NAME.yaml (a `model-index` block)."""
        from factrobust.together import page

        name = name or tables.slug(self.model.rstrip("/").rsplit("/", 1)[-1])
        json = (self.model_dump_json(indent=1) + "\n").encode()
        files = {"json": json, "png": page.picture(self)}
        files |= {"html": page.html(self).encode(), "yaml": page.model_index(self).encode()}
        Path(folder).mkdir(parents=True, exist_ok=True)
        for end, content in files.items():
            write_atomically(Path(folder, f"{name}.{end}"), content)
        return [Path(folder, f"{name}.{end}") for end in files]

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The card of a JSON file; ModelError for another schema, or a text that was changed."""
        found = cls.model_validate(json.loads(noted(path).read_text("utf-8")))
        if found.digest != found.digested():
            raise ModelError(f"{path} does not match its digest; bring it back, or make it anew")
        return found


def opened(name: Any) -> Model:
    """The model of a name as the module's head writes it, or of an endpoint's mapping; a model stays
    as it is. ModelError for what cannot be loaded."""
    if isinstance(name, Model):
        return name
    if isinstance(name, str) and name.startswith(("http://", "https://")):
        name = named_endpoint(name)
    if isinstance(name, Mapping):
        return load_model(name, records=open_records())
    parts = re.fullmatch(r"([^#~]+)(?:~(\w+) (\d*\.?\d+))?(?:#([\w-]+))?", name)
    if not parts or (parts[4] or "prefix") not in FORMATS:
        known = f"NAME#FORMAT (of {', '.join(FORMATS)})"
        raise ModelError(f"{name!r} is no name of a model; write NAME, NAME~round 4 or {known}")
    text, way, dose, prompt_format = parts.groups()
    try:
        change = Damage(way, float(dose)) if way else None
        model = damaged(text, change) if change else load_model(text, records=open_records())
    except (OSError, KeyError) as error:  # of transformers
        why = str(error).splitlines()[0][:120]
        raise ModelError(f"{text} holds no model ({why}); give another folder") from error
    model.prompt_format, model.name = prompt_format or model.prompt_format, name
    return model


def questions(data: str | Path | None, name: str, seed: int = 0) -> tuple[pd.DataFrame, str, str]:
    """The facts in the order of asking, what their data are called, and their SHA-256: of a CSV, or the
    embedded ones, or the invented world's for a model that grew there."""
    if data is not None:
        table = tables.read_checked(data, CSV)
        tables.check_unique(table, ["question"], data)
        table = tables.complete_table(table, CSV, relation="own").reset_index(drop=True)
        table["aliases"] = tables.alias_lists(table["aliases"], table["answer"])
        table = table.assign(subject=table["question"], object=table["answer"], domain="own")
        table = table.assign(fact_id=table["question"], prefix="", popularity=np.nan)
        table = table.assign(**dict.fromkeys(("answer_type", "popularity_source", "source"), ""))
        digest = hashlib.sha256(noted(data).read_bytes()).hexdigest()
        return table, Path(data).name, digest
    grown = name.startswith("world") and (GROWN / re.split("[#~]", name)[0]).is_dir()
    called = "world" if grown else "embedded"
    facts = [load_named([called], limit=900, seed=seed).table]
    every = pd.concat(facts if grown else [*facts, spine.dated_facts(60, seed)])
    lots = [draws.hash48(seed, name) for name in every["fact_id"]]
    every = every.iloc[np.argsort(lots)].reset_index(drop=True)
    text = every[["fact_id", "question", "object"]].to_csv(index=False)
    return every, called, hashlib.sha256(text.encode()).hexdigest()


def card(
    model: Any,
    data: str | Path | None = None,
    *,
    known: int = KNOWN,
    decoder: Mapping[str, float] = DECODER,
    seed: int = 0,
    facts: Sequence[str] | None = None,
) -> Card:
    """Ask a model until `known` facts are right, and shake these.

    `data` is a CSV (see the module's head), `decoder` the settings that you use the model with
    (temperature, top_k, top_p, min_p). `facts` names those to ask instead, so that two cards are of
    the same. Raises ModelError or FactsError, one sentence; answers so far are in the records.
    """
    model = opened(model)
    table, called, digest = questions(data, model.name, seed)
    if facts is not None:
        table = table[table["fact_id"].isin(facts)].reset_index(drop=True)
        known = len(table)
    if table.empty:
        raise ModelError(f"{called} has none of the facts that {model.name} is to be asked")
    begins, own = (table["prefix"] != "").all(), FORMATS[model.prompt_format]
    if (own.prefix and not begins) or model.prompt_format == "chat":
        model.prompt_format = "instruction" if model.chat else "two-shot"
    frames = [] if spine.is_world(table) else list(spine.FRAMES)
    if frames:
        print("Known facts are asked again as:", *frames, sep="\n  ")
    said = _until(model, table, known)
    names, right = said.loc[said["right"], "fact_id"], said[said["right"]].set_index("fact_id")
    numbers, shaken = right[["logprob", "t_b", "frs"]], said.head(0)
    missing = [why for name, why in model.lacks.items() if name in ("temper", "score")]
    if len(right):
        mine = table[table["fact_id"].isin(names)]
        numbers = numbers.assign(**_heated(model, right, decoder), years=_years(model, mine, seed))
        shaken = _shaken(model, mine, table, seed)
        name = shaken["form"].where(shaken["way"] == "context", "wordings").rename("name")
        numbers = numbers.join(
            shaken.astype({"right": float}).pivot_table("right", "fact_id", name)
        )
        if numbers["years"].isna().all():
            missing.append("years: no known fact that held for a time could be scored under years")
        if SURVIVAL.exists():
            fit = json.loads(noted(SURVIVAL).read_text("utf-8"))
            odds = fit["intercept"] + fit["logprob"] * numbers["logprob"]
            numbers["survives"] = expit(odds)
    notes = [f"{len(said)} facts were asked and {len(right)} of them are known"]
    if refused := int(said["refused"].sum() + shaken["refused"].sum()):
        notes.append(
            f"an endpoint's filter refused {refused} prompts, which count as wrong answers"
        )
    if len(right) < KNOWN:
        notes.append(f"fewer than {KNOWN} known facts say little: ask easier or more questions")
    made = Card(
        model=model.name, fingerprint=model.fingerprint, prompt_format=model.prompt_format,
        prompt=prompts(model, table.head(1))[0], decoder=dict(decoder), data=called, frames=frames,
        data_sha256=digest, notes=notes, measures=[], facts=_facts(said, shaken, numbers), missing=missing,
    )  # fmt: skip
    counts = made.numbers["name"].value_counts()
    rare = [name for name in MEASURES["number"] if 0 < counts.get(name, 0) < min(FEW, len(right))]
    missing += [f"{name}: too few known facts, {counts[name]}, for a number" for name in rare]
    kept = [m for m in measured(made) if m.n >= min(FEW, len(right))]
    made = made.model_copy(update={"measures": kept, "missing": missing})
    return made.model_copy(update={"digest": made.digested()})


def _until(model: Model, table: pd.DataFrame, known: int) -> pd.DataFrame:
    """`spine.greedy` of the table's first facts, until so many are right. After the first of them a
    forecast is printed."""
    parts: list[pd.DataFrame] = []
    begun = time.monotonic()
    for start in range(0, len(table), CHUNK):
        some = table[start : start + CHUNK]
        parts.append(spine.greedy(model, some, probe.GRID, go_on=True))
        n = sum(part["right"].sum() for part in parts)
        if start == 0:  # what follows costs a dozen questions a known fact
            done = len(parts[0])
            left = min(len(table), known * done / max(n, 1)) + 12 * min(known, len(table))
            minutes = (time.monotonic() - begun) * left / done / 60
            print(f"{model.name}: at most {minutes:.1f} minutes for {left:.0f} questions")
        if n >= known:
            break
    return pd.concat(parts, ignore_index=True)


def _heated(
    model: Model, right: pd.DataFrame, decoder: Mapping[str, float]
) -> dict[str, pd.Series]:
    """How likely known answers [fact_id] are under the decoder's settings: exactly, or else by five
    samples, with a t_b by samples."""
    cuts: dict[str, Any] = {name: value for name, value in decoder.items() if name != "temperature"}
    t = float(decoder.get("temperature", 1))
    if "temper" not in model.lacks:
        asked = right["prompt"].tolist(), right["token_ids"].tolist()
        return {"kept": pd.Series(np.exp(model.temper(*asked, [t], **cuts)[:, 0]), right.index)}
    facts = right.reset_index()[[*probe.ABOUT, "question", "prefix"]]
    how: dict[str, Any] = {"n": 5, "max_new_tokens": probe.LONG}
    ways: list[dict[str, Any]] = [{"temperatures": [t]} | cuts, {"temperatures": SAMPLED}]
    drawn = (decoding.mark_samples(probe.sampled(model, facts, **how, **way)) for way in ways)
    kept, heats = map(decoding.sampled_accuracy, drawn)
    t_b = decoding.sampled_breaking(heats).set_index("fact_id")["t_b"]
    return {"kept": kept.set_index("fact_id")["accuracy"], "t_b": t_b.clip(upper=spine.HIGHEST)}


def _shaken(model: Model, right: pd.DataFrame, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The answers to the known facts in other wordings and behind contexts, hers among them."""
    rows = spine.changed(right, table, seed)
    if "context" in right:
        hers = right[right["context"] != ""]
        hers = hers.assign(way="context", form="yours", sentence=hers["context"])
        rows = pd.concat([rows, hers], ignore_index=True)
    asked = rows.assign(question=spine.behind(rows))
    return spine.greedy(model, asked, free=True, go_on=True)


def _years(model: Model, right: pd.DataFrame, seed: int) -> pd.Series:
    """The win rate of known facts that held for a time, [fact_id]."""
    held = right[right.get("start", pd.Series("", right.index)).fillna("") != ""]
    if held.empty or "score" in model.lacks:
        return pd.Series(dtype=float)
    matched = timed.matches(spine.years(model, held, seed))
    return matched[matched["precision"] == "year"].set_index("fact_id")["win_rate"]


def _facts(said: pd.DataFrame, shaken: pd.DataFrame, numbers: pd.DataFrame) -> list[Fact]:
    """The facts of a card, of tables of their answers and of numbers [fact_id]."""
    facts = {}
    for row in said.to_dict("records"):
        known = row["right"]
        found = numbers.loc[row["fact_id"]].dropna().to_dict() if known else {}
        faults = VERDICTS.index[VERDICTS["below"] > VERDICTS["number"].map(found)]
        facts[row["fact_id"]] = Fact(
            **{name: row[name] for name in ("fact_id", "relation", "question")},
            accepted=[row["object"], *row["aliases"]], answer=row["text"].strip(), known=known,
            verdicts=[*faults] or ["holds" if known else "unknown"], numbers=found,
        )  # fmt: skip
    for row in shaken.to_dict("records"):
        fact, answer = facts[row["fact_id"]], row["text"].strip()
        if row["way"] == "wording":
            fact.wordings[row["question"]] = answer
        else:
            fact.contexts[row["form"]] = (row["sentence"], answer)
    return [*facts.values()]


# -- what it is worth --------------------------------------------------------------------------------


def commonest(facts: Sequence[Fact]) -> float:
    """The share right of a rule that always says the commonest answer to the relation's other facts."""
    every: dict[str, Counter[str]] = {}
    for fact in facts:
        every.setdefault(fact.relation, Counter())[normalise(fact.accepted[0])] += 1
    hits = 0
    for fact in facts:
        rest = every[fact.relation] - Counter([normalise(fact.accepted[0])])
        hits += rest[normalise(fact.accepted[0])] == max(rest.values(), default=np.nan)
    return hits / len(facts)


def measured(card: Card) -> list[Measure]:
    """The measures of a card's facts; those of which nothing was asked are left out."""
    numbers, found = dict(iter(card.numbers.groupby("name"))), []
    control = numbers["irrelevant"]["value"].mean() if "irrelevant" in numbers else None
    baselines = {"known": commonest(card.facts), "false": control}
    for row in MEASURES[MEASURES["number"].isin([*numbers])].to_dict("records"):
        number = row.pop("number")
        part = numbers[number]
        drawn = part["relation"] if part["relation"].nunique() >= ENOUGH else None
        mean, low, high, _ = statistics.bootstrap_mean(part["value"], drawn, n_boot=1000)
        row |= {"baseline": baselines.get(number, row["baseline"]), "low": low, "high": high}
        row |= {"value": mean, "smallest_difference": DIFFERENCE * (high - low) / 2 or None}
        about: Any = {name: None if pd.isna(x) else x for name, x in row.items()}
        found.append(Measure(**about, n=len(part)))
    return found
