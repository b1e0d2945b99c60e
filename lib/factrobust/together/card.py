"""A card of any model: what it knows, what makes it lose that, and what is usually done about it.

found = factrobust.card("gemma-3-270m")            # a name (`together.opened`)
found = factrobust.card("my-model", "mine.csv")    # questions of one's own (`datasets.own`)
found.save("build/cards")                          # JSON, and from it a page, a PNG, a model-index
"""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from factrobust import __version__, draws, intervals, tables
from factrobust.datasets import own
from factrobust.datasets.facts import answers
from factrobust.datasets.named import load_named
from factrobust.decoding import metrics as decoding
from factrobust.decoding import probe
from factrobust.models.interface import Model, ModelError
from factrobust.models.load import GROWN, settings_of
from factrobust.models.prompts import prompts
from factrobust.paths import DATA, noted, write_atomically
from factrobust.provenance import commit
from factrobust.temporal import metrics as timed
from factrobust.text import normalise
from factrobust.together import spine
from factrobust.together.opened import (
    chosen_format,
    exists,
    format_for,
    in_format,
    is_address,
    opened,
    read_name,
    rounded,
    stored_as,
)
from factrobust.wording.metrics import stated

KNOWN, CHUNK, ENOUGH = 60, 60, 5  # ENOUGH relations are drawn for intervals
EARLY = 0, 4, 24  # where the first chunks begin: one loads the model, the next gives the pace
FEW = 10  # facts, below which a measure of some of the known facts carries no claim
DECODER = {"temperature": 0.7, "top_p": 0.9}
DIFFERENCE = 2**0.5 * (1 + 0.8416 / intervals.TWO_SIDED)  # of half an interval: see Measure
# Of an unknown fact: behind a true sentence, and behind the same about a nonsense word.
READ = {"true": "reads", "nonsense": "copied"}
CONTEXTS = ("irrelevant", "false", "true", "yours")
TYPOGRAPHY = 1 + spine.FRAMES.index("{small}")  # the form in which no word changes
ASKED = {  # of a known fact: a number that it has if so much was asked
    "wordings": "in other words",
    "irrelevant": "behind a sentence",
    "kept": "at the decoder's settings",
    "years": "under years of another time",
    "bits4": "with weights of 4 bits",
}
HALF = 0.5
BITS = 4, 8  # of weights that are rounded: the change, and its placebo
# Of a number: that which stands beside it, of the same facts.
PLACEBOS = {"wordings": "typography", "false": "irrelevant", "bits4": "bits8", "reads": "copied"}
# By whether an unknown fact is right behind a true sentence, and behind the same about a nonsense word.
UNKNOWN = {
    (1.0, 0.0): "unknown, but reads it",
    (1.0, 1.0): "unknown, and copies it",
    (0.0, 0.0): "unknown, and does not read it",
    (0.0, 1.0): "unknown, and does not read it",
    (None, None): "unknown",
}
RECORDED = 0.01  # seconds; an answer that took less was not computed
SAMPLED = (0.5, 1.0, 1.5, 2.0)  # for t_b by five samples, where nothing can be tempered
# The worst first, and what is usually done about it; `verdicts` says when each is given.
VERDICTS = tables.read_csv(DATA / "cards" / "verdicts.csv", index_col="verdict")
MEASURES = tables.read_csv(DATA / "cards" / "measures.csv")  # those of a model, and their baselines
CANNOT = [
    "how the model does on other questions, languages or longer answers than these",
    "which of two models is better: these are facts that this one was asked; flips pair them",
    "whether wordings or contexts of another kind would break what held here",
    "what survives another change of the weights: flips measure that",
]


class Fact(BaseModel):
    """What is told of one fact; what was not asked, or cannot be, is missing.

    numbers, of a known fact: logprob (of the answer, nats), t_b (99 if nothing breaks it), frs; kept, the
    answer's probability under the decoder's settings; wordings, the share of other wordings whose answer
    holds the right one; typography, 1 if that in small letters and without a question mark does, else 0; true,
    irrelevant, false, yours: 1 if the answer behind that context holds it, else 0; overruled, 1 if the answer
    behind the false context is what that says; years, the share of pairs of a year inside its time and one
    outside that the first wins; bits4 and bits8, 1 if it is right with weights rounded to so many bits.
    Of an unknown fact: reads, 1 if the answer behind a sentence that states it is right; copied, 1 if it is so
    behind the same sentence about a nonsense word; reading, the first minus the second.
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
    commit: str = ""  # of factrobust's code; "+" behind it where something was not committed
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

    @property
    def short_name(self) -> str:
        """The model's name without the folders above it, in letters for a file's name."""
        if is_address(self.model):
            return tables.slug(self.model.split()[1])
        try:
            text, change, prompt_format = read_name(self.model)
        except ModelError:  # of a model that was given as such, with a name of its own
            return tables.slug(self.model)
        last = Path(text).expanduser().resolve().name if exists(text) else text.rpartition("/")[2]
        return tables.slug(f"{last} {change.label if change else ''} {prompt_format}")

    @property
    def stem(self) -> str:
        """What its files are called: a model of data/models.csv that was asked as usual by its name alone,
        any other by its name, its data, and eight digits that no card of another model, folder, prompt
        format, decoder or data has."""
        line = settings_of(self.model)
        asked = self.prompt_format, self.data, self.decoder
        if line and asked == (line.prompt_format, usual_data(self.model), DECODER):
            return tables.slug(self.model)
        place = str(Path(self.model).expanduser().resolve()) if exists(self.model) else ""
        about = [
            self.model,
            place,
            self.fingerprint,
            self.prompt_format,
            self.data,
            self.data_sha256,
        ]
        digits = hashlib.sha256(json.dumps([*about, self.decoder]).encode()).hexdigest()[:8]
        data = tables.slug(self.data.removesuffix(".csv"))
        return f"{self.short_name[:60] or 'model'}-{data[:30] or 'data'}-{digits}"

    def save(self, folder: str | Path = "build/cards", name: str = "") -> list[Path]:
        """Write NAME.json, and from it NAME.png, NAME.html and NAME.yaml (a `model-index` block). NAME is
        the card's `stem` unless one is given."""
        from factrobust.together import page

        name, folder = name or self.stem, Path(folder).expanduser()
        made = self._as_committed(DATA / "cards" / f"{name}.json")
        written = (made.model_dump_json(indent=1) + "\n").encode()
        files = {"json": written, "png": page.picture(made)}
        files |= {"html": page.html(made).encode(), "yaml": page.model_index(made).encode()}
        folder.mkdir(parents=True, exist_ok=True)
        for end, content in files.items():
            write_atomically(folder / f"{name}.{end}", content)
        return [folder / f"{name}.{end}" for end in files]

    def _as_committed(self, file: Path) -> Self:
        """The committed card, if this one differs from it in nothing but the commit that made it: a run that
        makes the same card again changes no file."""
        if not file.is_file():
            return self
        before = type(self).model_validate_json(file.read_text("utf-8"))
        told = {"commit", "digest"}
        whole = before.digest == before.digested()
        same = whole and (before.model_dump(exclude=told) == self.model_dump(exclude=told))
        return before if same else self

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The card of a JSON file; ModelError for another schema, or a text that was changed."""
        found = cls.model_validate(json.loads(noted(path).read_text("utf-8")))
        if found.digest != found.digested():
            raise ModelError(f"{path} does not match its digest; bring it back, or make it anew")
        return found


class Questions(NamedTuple):
    """The facts that can be asked, in the order of asking; what their data are called, and the SHA-256
    of these."""

    table: pd.DataFrame
    called: str
    digest: str


def questions(data: str | Path | None, name: str, seed: int = 0) -> Questions:
    """The facts of a CSV of one's own (`own.read_questions`), or the embedded ones, or the invented
    world's for a model that grew there. They are in an order drawn by the seed and their names."""
    if data is not None:
        path = Path(data).expanduser()
        table = _shuffled(own.read_questions(path), seed)
        return Questions(table, path.name, hashlib.sha256(noted(path).read_bytes()).hexdigest())
    called = usual_data(name)
    every = load_named([called], limit=900, seed=seed).table
    if called == "embedded":
        every = pd.concat([every, spine.dated_facts(60, seed)])
    every = _shuffled(every, seed)
    text = every[["fact_id", "question", "object"]].to_csv(index=False)
    return Questions(every, called, hashlib.sha256(text.encode()).hexdigest())


def usual_data(name: str) -> str:
    """The data that a model is asked where none are given."""
    grown = name.startswith("world") and (GROWN / re.split("[#~]", name)[0]).is_dir()
    return "world" if grown else "embedded"


def _shuffled(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    lots = [draws.hash48(seed, name) for name in table["fact_id"]]
    return table.iloc[np.argsort(lots)].reset_index(drop=True)


def card(
    model: Any,
    data: str | Path | None = None,
    *,
    known: int = KNOWN,
    all_facts: bool = False,
    decoder: Mapping[str, float] = DECODER,
    seed: int = 0,
    facts: Sequence[str] | None = None,
    dtype: str | None = None,
) -> Card:
    """Ask a model until `known` facts are right, and shake these.

    `model` is a name (`together.opened`), an endpoint's mapping, or a model, which keeps its prompt
    format. `data` is a CSV of one's own (`datasets.own`). `all_facts` asks all of it. `decoder` are the
    settings that you use the model with (temperature, top_k, top_p, min_p). `facts` names those to ask
    instead. Raises ModelError or FactsError, one sentence; answers so far are in the records.
    """
    asked = opened(model, dtype)
    every = questions(data, asked.name, seed)
    chosen = format_for(asked, every.table, chosen_format(model))
    tell_format(asked, chosen)
    wanted = len(every.table) if all_facts or facts is not None else known
    at_bits = {bits: rounded(model, bits, chosen, dtype) for bits in BITS}
    return card_of(
        in_format(asked, chosen),
        every,
        facts=facts,
        known=wanted,
        decoder=decoder,
        seed=seed,
        at_bits={bits: other for bits, other in at_bits.items() if other is not None},
        stored=stored_as(model),
    )


def tell_format(model: Model, chosen: str, why: str = "") -> None:
    """Print in which prompt format a model is asked."""
    other = "" if model.prompt_format == chosen else f", not {model.prompt_format}"
    print(f"{model.name} is asked in the prompt format {chosen}{other}{why}")


def card_of(
    model: Model,
    every: Questions,
    *,
    facts: Sequence[str] | None,
    known: int,
    decoder: Mapping[str, float],
    seed: int,
    at_bits: Mapping[int, Model] = MappingProxyType({}),
    stored: str = "",
) -> Card:
    """The card of a model in its own prompt format: of the facts of that name, or of the first ones until
    `known` are right. What contexts state is drawn from `every` fact, whichever are asked. `at_bits` are
    the model with weights rounded to so many bits; `stored` is what its file holds."""
    table = every.table
    if facts is not None:
        table = table[table["fact_id"].isin(facts)].reset_index(drop=True)
    if table.empty:
        raise ModelError(f"{every.called} has none of the facts that {model.name} is to be asked")
    # 1. What is known.
    frames = [] if spine.is_world(table) else list(spine.FRAMES)
    if frames:
        print("Known facts are asked again as:", *frames, sep="\n  ")
    said = _until(model, table, known)
    right = said[said["right"]].set_index("fact_id")
    # 2. What these lose.
    mine = table[table["fact_id"].isin(right.index)]
    shaken = _shaken(model, mine, every.table, seed) if len(right) else said.head(0)
    numbers = _numbers(model, mine, right, shaken, decoder, seed)
    numbers, cannot = _with_bits(numbers, at_bits, mine)
    # 3. What could be read instead.
    unknown = table[table["fact_id"].isin(said.loc[~said["right"].astype(bool), "fact_id"])]
    read = _read(model, unknown.head(known), every.table, seed)
    # 4. The card.
    notes, missing = _told(model, every, said, mine, numbers, stored)
    if refused := sum(int(part["refused"].sum()) for part in (said, shaken, read)):
        notes.append(
            f"an endpoint's filter refused {refused} prompts, which count as wrong answers"
        )
    made = Card(
        model=model.name,
        commit=commit(),
        fingerprint=model.fingerprint,
        prompt_format=model.prompt_format,
        prompt=prompts(model, table.head(1))[0],
        frames=frames,
        decoder=dict(decoder),
        data=every.called,
        data_sha256=every.digest,
        notes=notes,
        measures=[],
        facts=_facts(said, shaken, numbers, read),
        missing=missing + cannot,
    )
    return _with_measures(made, len(right))


def _with_measures(made: Card, n_known: int) -> Card:
    """The card with its measures and digest. A measure of fewer than FEW of more known facts is missing."""
    few = min(FEW, n_known)
    counts = made.numbers["name"].value_counts()
    rare = [name for name in MEASURES["number"] if 0 < counts.get(name, 0) < few]
    why = [f"{name}: too few facts, {counts[name]}, for a number" for name in rare]
    kept = [measure for measure in measured(made) if measure.n >= few]
    made = made.model_copy(update={"measures": kept, "missing": made.missing + why})
    return made.model_copy(update={"digest": made.digested()})


def _told(
    model: Model,
    every: Questions,
    said: pd.DataFrame,
    mine: pd.DataFrame,
    numbers: pd.DataFrame,
    stored: str,
) -> tuple[list[str], list[str]]:
    """What a reader must know of how a card was made, and what is missing in it."""
    n_known, n_all = int(said["right"].sum()), len(every.table)
    of_all = "" if len(said) == n_all else f" of {n_all:,}"
    notes = [f"{len(said)}{of_all} facts were asked and {n_known} of them are known"]
    if n_known < KNOWN:
        notes.append(f"fewer than {KNOWN} known facts say little: ask easier or more questions")
    right = said[said["right"]]
    whole = (right["begin"] == 0) & (right["end"] == right["token_ids"].map(len))
    lost = int((right["begin"] < 0).sum())
    if longer := int((~whole).sum()) - lost:
        notes.append(
            f"{longer} known facts are answered in more words than the name: their probabilities are "
            "those of the name, after the words before it"
        )
    if stored:
        notes.append(f"the weights in the file are {stored}")
    counts = numbers.count()
    for name, how in ASKED.items():
        if left := n_known - int(counts.get(name, 0)):
            notes.append(f"{left} known facts were not asked {how}")
    missing = [why for name, why in model.lacks.items() if name in ("temper", "score")]
    if lost:
        missing.append(
            f"logprob, kept, t_b and FRS of {lost} known facts: the answer is a sentence, and nothing "
            "tells which of its tokens are the name"
        )
    if still := int(_held(mine, ended=False).sum()):
        missing.append(f"years: {still} known facts still hold, so that no year is after them")
    elif n_known and numbers["years"].isna().all():
        missing.append("years: no known fact that held for a time could be scored under years")
    return notes, missing


def answered(model: Model, some: pd.DataFrame, grid: Sequence[float] = ()) -> pd.DataFrame:
    """`spine.named`, but right is also an answer that states a name among other words: a model that
    was tuned, or changed, to talk ("a Greek poet named Homer") has lost nothing by that."""
    said = spine.named(model, some, grid)
    names = answers(said)
    states = [stated(text, accepted) for text, accepted in zip(said["text"], names, strict=True)]
    return said.assign(right=said["right"].astype(bool) | np.array(states, dtype=bool))


def _until(model: Model, table: pd.DataFrame, known: int) -> pd.DataFrame:
    """`spine.named` of the table's first facts, until so many are right. When the model is loaded a
    forecast is printed."""
    parts: list[pd.DataFrame] = []
    done = 0
    for number, some in enumerate(chunks(table, CHUNK)):
        begun = time.monotonic()
        parts.append(spine.named(model, some, probe.GRID))
        n = sum(part["right"].sum() for part in parts)
        done += len(some)
        if number == 1:  # what follows costs a dozen questions a known fact
            rate = max(n, 1) / done
            left = max(min(len(table), known / rate) - done, 0)
            left += 12 * min(known, len(table) * rate)
            tell_forecast(model.name, left, (time.monotonic() - begun) / len(some))
        if n >= known and done >= CHUNK:
            break
    return pd.concat(parts, ignore_index=True)


def chunks(table: pd.DataFrame, size: int) -> Iterator[pd.DataFrame]:
    """The rows that are asked at a time: `size` of them, in smaller parts at the beginning."""
    starts = [start for start in EARLY if start < min(size, len(table))]
    starts += range(size, len(table), size)
    for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
        yield table[start:end]


def tell_forecast(name: str, questions: float, seconds: float) -> None:
    """Print how long so many questions of these seconds each take."""
    pace = "what is recorded takes no time" if seconds > RECORDED else "so far all is recorded"
    minutes = questions * seconds / 60
    print(f"{name}: about {minutes:.1f} minutes for {questions:.0f} questions; {pace}", flush=True)


def _numbers(
    model: Model,
    mine: pd.DataFrame,
    right: pd.DataFrame,
    shaken: pd.DataFrame,
    decoder: Mapping[str, float],
    seed: int,
) -> pd.DataFrame:
    """The numbers of the known facts [fact_id], a column each (see `Fact`)."""
    numbers = right[["logprob", "t_b", "frs"]]
    if right.empty:
        return numbers
    numbers = numbers.assign(**_heated(model, right, decoder), years=_years(model, mine, seed))
    words = (shaken["form"] == TYPOGRAPHY).map({True: "typography", False: "wordings"})
    name = shaken["form"].where(shaken["way"] == "context", words).rename("name")
    shares = shaken.astype({"right": float}).pivot_table("right", "fact_id", name)
    return numbers.join(shares).join(_overruled(shaken))


def _with_bits(
    numbers: pd.DataFrame, at_bits: Mapping[int, Model], mine: pd.DataFrame
) -> tuple[pd.DataFrame, list[str]]:
    """The numbers with bits4 and bits8, where there are known facts, and why one cannot be had."""
    cannot = []
    for bits, other in at_bits.items() if len(mine) else ():
        try:
            right = answered(other, mine).set_index("fact_id")["right"]
        except ModelError as error:  # weights that are on a disk, or are no plain numbers
            cannot.append(f"weights of {bits} bits: {error}")
        else:
            numbers = numbers.assign(**{f"bits{bits}": right.astype(float)})
    return numbers, cannot


def _overruled(shaken: pd.DataFrame) -> pd.Series:
    """Whether the answer behind a false context says what that states, 1 or 0, [fact_id]."""
    false = shaken[(shaken["way"] == "context") & (shaken["form"] == "false")]
    says = [stated(text, [name]) for text, name in zip(false["text"], false["stated"], strict=True)]
    return pd.Series(says, false["fact_id"], dtype=float, name="overruled")


def _heated(
    model: Model, right: pd.DataFrame, decoder: Mapping[str, float]
) -> dict[str, pd.Series]:
    """How likely known answers [fact_id] are under the decoder's settings: exactly, or else by five
    samples, with a t_b by samples."""
    cuts: dict[str, Any] = {name: value for name, value in decoder.items() if name != "temperature"}
    t = float(decoder.get("temperature", 1))
    if "temper" not in model.lacks:
        placed = right[right["begin"] >= 0]
        if placed.empty:
            return {"kept": pd.Series(np.nan, right.index)}
        logprobs = spine.tempered(model, placed, [t], **cuts)[:, 0]
        return {"kept": pd.Series(np.exp(logprobs), placed.index)}
    facts = right.reset_index()[[*probe.ABOUT, "question", "prefix"]]
    how: dict[str, Any] = {"n": 5, "max_new_tokens": probe.LONG}
    ways: list[dict[str, Any]] = [{"temperatures": [t]} | cuts, {"temperatures": SAMPLED}]
    drawn = (decoding.mark_samples(probe.sampled(model, facts, **how, **way)) for way in ways)
    kept, heats = map(decoding.sampled_accuracy, drawn)
    t_b = decoding.sampled_breaking(heats).set_index("fact_id")["t_b"]
    return {"kept": kept.set_index("fact_id")["accuracy"], "t_b": t_b.clip(upper=spine.HIGHEST)}


def _shaken(model: Model, right: pd.DataFrame, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The answers to the known facts in other wordings and behind contexts, the user's own among them."""
    rows = spine.changed(right, table, seed)
    rows = rows[rows["form"] != "nonsense"]
    if "context" in right:
        own_contexts = right[right["context"] != ""]
        yours = own_contexts.assign(way="context", form="yours", sentence=own_contexts["context"])
        rows = pd.concat([rows, yours], ignore_index=True)
    asked = rows.assign(question=spine.behind(rows))
    return spine.greedy(model, asked, free=True, go_on=True)


def _read(model: Model, unknown: pd.DataFrame, table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The answers to unknown facts behind a sentence that states them, where part 6 has one."""
    if unknown.empty or spine.is_world(unknown):
        return pd.DataFrame(columns=["fact_id", "form", "sentence", "text", "right", "refused"])
    rows = spine.changed(unknown, table, seed)
    true = rows[(rows["way"] == "context") & rows["form"].isin(READ)]
    asked = true.assign(question=spine.behind(true))
    return spine.greedy(model, asked, free=True, go_on=True)


def _held(facts: pd.DataFrame, *, ended: bool) -> pd.Series:
    """Which facts held for a time that has ended, or still hold since a start [row]."""
    nothing = pd.Series("", facts.index)
    start, end = (facts.get(name, nothing).fillna("") for name in ("start", "end"))
    return (start != "") & ((end != "") == ended)


def _years(model: Model, right: pd.DataFrame, seed: int) -> pd.Series:
    """The win rate of known facts that held for a time, [fact_id]."""
    held = right[_held(right, ended=True)]
    if held.empty or "score" in model.lacks:
        return pd.Series(dtype=float)
    matched = timed.matches(spine.years(model, held, seed))
    return matched[matched["precision"] == "year"].set_index("fact_id")["win_rate"]


def _facts(
    said: pd.DataFrame, shaken: pd.DataFrame, numbers: pd.DataFrame, read: pd.DataFrame
) -> list[Fact]:
    """The facts of a card, of tables of their answers and of numbers [fact_id]."""
    facts = {}
    reads = read.assign(name=read["form"].map(READ), right=read["right"].astype(float))
    reads = reads.pivot(index="fact_id", columns="name", values="right")
    reads = reads.assign(reading=reads["reads"] - reads["copied"]) if len(reads) else reads
    for row in said.to_dict("records"):
        known, name = row["right"], row["fact_id"]
        found = numbers.loc[name].dropna().to_dict() if known else {}
        found |= reads.loc[name].to_dict() if name in reads.index else {}
        facts[row["fact_id"]] = Fact(
            fact_id=row["fact_id"],
            relation=row["relation"],
            question=row["question"],
            accepted=[row["object"], *row["aliases"]],
            answer=row["text"].strip(),
            known=known,
            verdicts=verdicts(found) if known else [UNKNOWN[found.get("reads"), found.get("copied")]],
            numbers=found,
        )
    every = [*shaken.to_dict("records"), *read.assign(way="context").to_dict("records")]
    for row in every:
        fact, answer = facts[row["fact_id"]], row["text"].strip()
        if row["way"] == "wording":
            fact.wordings[row["question"]] = answer
        else:
            fact.contexts[row["form"]] = (row["sentence"], answer)
    return [*facts.values()]


def verdicts(numbers: Mapping[str, float]) -> list[str]:
    """What is told of a known fact, by its numbers (see `Fact`), the worst first. It holds if it was right
    in every wording and behind every sentence that was asked, and more likely than not is kept by the decoder."""
    found = []
    forms = [numbers[name] for name in ("wordings", "typography") if name in numbers]
    if forms and max(forms) == 0:
        found.append("known in this wording only")
    elif forms and min(forms) < 1:
        found.append("lost in some wordings")
    overruled = numbers.get("overruled", 0) == 1 and numbers.get("irrelevant", 1) == 1
    if overruled:
        found.append("overruled by a false context")
    others = ("irrelevant", "true", "yours") if overruled else CONTEXTS
    if any(numbers.get(name, 1) == 0 for name in others):
        found.append("lost behind a sentence")
    if numbers.get("kept", 1) < HALF:
        found.append("lost at these decoder settings")
    return found or ["holds"]


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
    baselines = {"known": commonest(card.facts)}
    for number, placebo in PLACEBOS.items():
        if placebo in numbers:
            baselines[number] = numbers[placebo]["value"].mean()
    for row in MEASURES[MEASURES["number"].isin([*numbers])].to_dict("records"):
        number = row.pop("number")
        part = numbers[number]
        drawn = part["relation"] if part["relation"].nunique() >= ENOUGH else None
        mean, low, high, _ = intervals.bootstrap_mean(part["value"], drawn, n_boot=1000)
        row |= {"baseline": baselines.get(number, row["baseline"]), "low": low, "high": high}
        least = DIFFERENCE * (high - low) / 2  # no two shares differ by more than 1
        row |= {"value": mean, "smallest_difference": least if 0 < least < 1 else None}
        about: Any = {name: None if pd.isna(x) else x for name, x in row.items()}
        found.append(Measure(**about, n=len(part)))
    return found
