"""A card of any model: what it knows, what makes it lose that, and what is usually done about it.

found = factrobust.card("gemma-3-270m")            # a name (`together.opened`)
found = factrobust.card("my-model", "mine.csv")    # questions of one's own
(`datasets.user_questions`) found.save("build/cards")                          # JSON, and from it a
page, a PNG, a model-index
"""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from factrobust import __version__, draws, intervals, tables
from factrobust.datasets import user_questions
from factrobust.datasets.facts import accepted_answers
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
    format_for_facts,
    in_format,
    open_model,
    rounded_model,
    short_name,
    stored_as,
)
from factrobust.wording.metrics import stated

KNOWN, CHUNK, ENOUGH = 60, 60, 5  # ENOUGH relations are drawn for intervals
EARLY = 0, 4, 24  # where the first chunks begin: one loads the model, the next gives the pace
FEW = 10  # facts, below which a measure of some of the known facts carries no claim
DECODER = {"temperature": 0.7, "top_p": 0.9}
SAMPLES = 5  # of a model that cannot be tempered
DIFFERENCE = 2**0.5 * (1 + 0.8416 / intervals.TWO_SIDED)  # of half an interval: see Measure
TYPOGRAPHY = 1 + spine.FRAMES.index("{small}")  # the form in which no word changes
CONTEXTS = ("irrelevant", "false", "true", "yours")  # of a known fact
# Of an unknown fact: behind a true sentence, and behind the same about a nonsense word.
READ = {"true": "reads", "nonsense": "copied"}
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
PLACEBOS = {
    "wordings": "typography",
    "false": "irrelevant",
    "bits4": "bits8",
    "reads": "copied",
}
UNKNOWN = {  # by what an unknown fact reads and copies
    (1.0, 0.0): "unknown, but reads it",
    (1.0, 1.0): "unknown, and copies it",
    (0.0, 0.0): "unknown, and does not read it",
    (0.0, 1.0): "unknown, and does not read it",
    (None, None): "unknown",
}
RECORDED = 0.01  # seconds; an answer that took less was not computed
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

    numbers, of a known fact: logprob (of the answer, nats), t_b (99 if nothing breaks it), frs;
    kept, the answer's probability under the decoder's settings; wordings, the share of other
    wordings whose answer holds the right one; typography, 1 if that in small letters and without a
    question mark does, else 0; true, irrelevant, false, yours: 1 if the answer behind that context
    holds it, else 0; overruled, 1 if the answer behind the false context is what that says; years,
    the share of pairs of a year inside its time and one outside that the first wins; bits4 and
    bits8, 1 if it is right with weights rounded to so many bits. Of an unknown fact: reads, 1 if
    the answer behind a sentence that states it is right; copied, 1 if it is so behind the same
    sentence about a nonsense word.
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
    """A number with its interval, n (facts), a baseline, and the smallest difference between two
    such numbers that such an n shows in four of five cases (at 5%, two-sided)."""

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
        """The facts' numbers [fact_id and relation], a column each; known is 1 or 0."""
        rows = []
        for fact in self.facts:
            about = fact.model_dump(include={"fact_id", "relation", "known"})
            rows.append(about | fact.numbers)
        return pd.DataFrame(rows).set_index(["fact_id", "relation"]).astype(float)

    def digested(self) -> str:
        about = self.model_dump(mode="json", exclude={"digest"})
        return hex_digest(json.dumps(about, sort_keys=True).encode())

    @property
    def stem(self) -> str:
        """What its files are called: a model of data/models.csv that was asked as usual by its name
        alone, any other by its name, its data, and eight digits that no card of another model,
        folder, prompt format or data has."""
        line = settings_of(self.model)
        asked = self.prompt_format, self.data
        if line and asked == (line.prompt_format, usual_data(self.model)):
            return tables.slug(self.model)
        place = Path(self.model).expanduser().resolve() if exists(self.model) else Path()
        about = [self.model, str(place), self.fingerprint, *asked, self.data_sha256]
        digits = hex_digest(json.dumps(about).encode())[:8]
        name = tables.slug(place.name or short_name(self.model).rpartition("/")[2])
        data = tables.slug(self.data.removesuffix(".csv"))
        return f"{name[:60] or 'model'}-{data[:30] or 'data'}-{digits}"

    def save(self, folder: str | Path = "build/cards", name: str = "") -> list[Path]:
        """Write NAME.json, and from it NAME.png, NAME.html and NAME.yaml (a `model-index` block).
        NAME is the card's `stem` unless one is given."""
        from factrobust.together import page

        name, folder = name or self.stem, Path(folder).expanduser()
        made = self._as_committed(DATA / "cards" / f"{name}.json")
        files = {
            "json": f"{made.model_dump_json(indent=1)}\n".encode(),
            "png": page.picture(made),
            "html": page.html(made).encode(),
            "yaml": page.model_index(made).encode(),
        }
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for end, content in files.items():
            path = folder / f"{name}.{end}"
            write_atomically(path, content)
            paths.append(path)
        return paths

    def _as_committed(self, file: Path) -> Self:
        """The committed card, if this one differs from it in nothing but the commit that made it: a
        run that makes the same card again changes no file."""
        if not file.is_file():
            return self
        before = type(self).model_validate_json(file.read_text("utf-8"))
        again = self.model_copy(update={"commit": before.commit})
        return before if again.digested() == before.digest else self

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The card of a JSON file; ModelError for another schema, or a text that was changed."""
        found = cls.model_validate(json.loads(noted(path).read_text("utf-8")))
        if found.digest != found.digested():
            raise ModelError(f"{path} does not match its digest; bring it back, or make it anew")
        return found


class QuestionSet(NamedTuple):
    """The facts that can be asked, in the order of asking; what their data are called, and the
    SHA-256 of these."""

    table: pd.DataFrame
    called: str
    digest: str


def question_set(data: str | Path | None, name: str, seed: int = 0) -> QuestionSet:
    """The facts of a CSV of one's own (`user_questions.read_questions`), or the embedded ones, or
    the invented world's for a model that grew there. They are in an order drawn by the seed and
    their names."""
    if data is not None:
        path = Path(data).expanduser()
        table = _in_order(user_questions.read_questions(path), seed)
        return QuestionSet(table, path.name, hex_digest(noted(path).read_bytes()))
    called = usual_data(name)
    table = load_named([called], limit=900, seed=seed).table
    if called == "embedded":
        table = pd.concat([table, spine.dated_facts(60, seed)])
    table = _in_order(table, seed)
    asked = table[["fact_id", "question", "object"]]
    return QuestionSet(table, called, hex_digest(asked.to_csv(index=False).encode()))


def _in_order(table: pd.DataFrame, seed: int) -> pd.DataFrame:
    """The rows in an order drawn by the seed and their names."""
    lots = [draws.hash48(seed, fact) for fact in table["fact_id"]]
    return table.iloc[np.argsort(lots)].reset_index(drop=True)


def hex_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def usual_data(name: str) -> str:
    """The data that a model is asked where none are given."""
    grown = name.startswith("world") and (GROWN / re.split("[#~]", name)[0]).is_dir()
    return "world" if grown else "embedded"


def card(
    model: Any,
    data: str | Path | None = None,
    *,
    known: int = KNOWN,
    all_facts: bool = False,
    dtype: str | None = None,
) -> Card:
    """Ask a model until `known` facts are right, and shake these.

    `model` is a name (`together.opened`), an endpoint's mapping, or a model, which keeps its prompt
    format. `data` is a CSV of one's own (`datasets.user_questions`). `all_facts` asks all of it.
    Raises ModelError or FactsError, one sentence; answers so far are in the records.
    """
    # 1. Who is asked what; a wrong name or file is told before anything is asked.
    asked = open_model(model, dtype)
    every = question_set(data, asked.name)
    chosen = format_for_facts(asked, every.table, chosen_format(model))
    tell_format(asked, chosen)
    asked = in_format(asked, chosen)
    at_bits = {bits: rounded_model(model, bits, chosen, dtype) for bits in BITS}
    frames = [] if spine.is_world(every.table) else list(spine.FRAMES)
    if frames:
        print("Known facts are asked again as:", *frames, sep="\n  ")
    # 2. What is known; what these facts lose; what could be read instead.
    most = len(every.table) if all_facts else known
    answers = _until(asked, every.table, most)
    right = answers[answers["right"]]
    wrong = answers[~answers["right"]].head(most)
    mine = every.table[every.table["fact_id"].isin(right["fact_id"])]
    unknown = every.table[every.table["fact_id"].isin(wrong["fact_id"])]
    changed = _changed(asked, mine, unknown, every.table)
    numbers = _numbers(asked, right, mine, changed)
    numbers, cannot = _with_bits(numbers, at_bits, mine)
    # 3. The card.
    made = Card(
        model=asked.name,
        commit=commit(),
        fingerprint=asked.fingerprint,
        prompt_format=chosen,
        prompt=prompts(asked, every.table.head(1))[0],
        frames=frames,
        decoder=DECODER,
        data=every.called,
        data_sha256=every.digest,
        notes=_notes(every, answers, changed, numbers, stored_as(model)),
        measures=[],
        facts=_facts(answers, changed, numbers),
        missing=_missing(asked, right) + cannot,
    )
    return _with_measures(made, len(right))


def tell_format(model: Model, chosen: str) -> None:
    """Print in which prompt format a model is asked."""
    other = "" if model.prompt_format == chosen else f", not {model.prompt_format}"
    print(f"{model.name} is asked in the prompt format {chosen}{other}")


# -- what is asked -----------------------------------------------------------------------------------


def _until(model: Model, table: pd.DataFrame, known: int) -> pd.DataFrame:
    """`spine.marked_names` of the table's first facts, until so many are right. When the model is
    loaded a forecast is printed."""
    parts: list[pd.DataFrame] = []
    done = right = 0
    for number, some in enumerate(chunks(table, CHUNK)):
        start = time.monotonic()
        answers = spine.marked_names(model, some, probe.GRID)
        seconds = (time.monotonic() - start) / len(some)
        parts.append(answers)
        right += int(answers["right"].sum())
        done += len(some)
        if number == 1:  # what follows costs a dozen questions a known fact
            rate = max(right, 1) / done
            left = max(min(len(table), known / rate) - done, 0)
            left += 12 * min(known, len(table) * rate)
            tell_forecast(model.name, left, seconds)
        if right >= known and done >= CHUNK:
            break
    return pd.concat(parts, ignore_index=True).astype({"right": bool})


def chunks(table: pd.DataFrame, size: int) -> Iterator[pd.DataFrame]:
    """The rows that are asked at a time: `size` of them, in smaller parts at the beginning."""
    n = len(table)
    starts = [start for start in EARLY if start < min(size, n)]
    starts += range(size, n, size)
    for start, end in pairwise([*starts, n]):
        yield table[start:end]


def tell_forecast(name: str, questions: float, seconds: float) -> None:
    """Print how long so many questions of these seconds each take; of recorded ones, that they take
    no time."""
    if seconds <= RECORDED:
        print(f"{name}: {questions:.0f} questions; so far all is recorded", flush=True)
        return
    minutes = questions * seconds / 60
    print(
        f"{name}: about {minutes:.1f} minutes for {questions:.0f} questions; what is recorded takes no "
        "time",
        flush=True,
    )


def named_or_stated(model: Model, some: pd.DataFrame, grid: Sequence[float] = ()) -> pd.DataFrame:
    """`spine.marked_names`, but right is also an answer that states a name among other words: a
    model that was tuned, or changed, to talk ("a Greek poet named Homer") has lost nothing by
    that."""
    answers = spine.marked_names(model, some, grid)
    states = [*map(stated, answers["text"], accepted_answers(answers))]
    is_right = answers["right"].astype(bool) | np.array(states, dtype=bool)
    return answers.assign(right=is_right)


def _changed(
    model: Model,
    mine: pd.DataFrame,
    unknown: pd.DataFrame,
    table: pd.DataFrame,
) -> pd.DataFrame:
    """The answers to known facts in other words and behind sentences, and to unknown ones behind
    those in READ; `name` is that of a number (see `Fact`). Sentences state answers of the whole
    `table`, whichever facts are asked."""
    worded = spine.in_other_words(mine).assign(sentence="", stated="")
    worded["name"] = np.where(worded["form"] == TYPOGRAPHY, "typography", "wordings")
    lost = spine.behind_sentences(mine, table)
    lost["name"] = lost["form"].where(lost["form"].isin(CONTEXTS))
    read = spine.behind_sentences(unknown, table)
    read["name"] = read["form"].map(READ)
    rows = pd.concat([worded, lost, read], ignore_index=True).dropna(subset="name")
    return spine.marked_answers(model, rows, free=True, go_on=True).astype({"right": bool})


def _numbers(
    model: Model,
    right: pd.DataFrame,
    mine: pd.DataFrame,
    changed: pd.DataFrame,
) -> pd.DataFrame:
    """The numbers of the facts [fact_id], a column each (see `Fact`): of answers that are `right`, to
    the facts `mine`, and of those to `changed` questions."""
    known = right.set_index("fact_id")[["logprob", "t_b", "frs"]]
    known = known.assign(kept=_kept(model, right), years=_years(model, mine))
    shares = changed.groupby(["fact_id", "name"])["right"].mean().unstack()
    false = changed[changed["name"] == "false"]
    says = [stated(text, [name]) for text, name in zip(false["text"], false["stated"], strict=True)]
    overruled = pd.Series(says, false["fact_id"], dtype=float, name="overruled")
    return known.join(shares, how="outer").join(overruled)


def _kept(model: Model, right: pd.DataFrame) -> pd.Series:
    """How likely known answers are under the DECODER's settings, [fact_id]: exactly, or else by
    SAMPLES."""
    temperature, top_p = DECODER["temperature"], DECODER["top_p"]
    if "temper" in model.lacks:
        drawn = probe.sampled_answers(
            model,
            right,
            temperatures=[temperature],
            top_p=top_p,
            n=SAMPLES,
            max_new_tokens=probe.LONG,
        )
        shares = decoding.sampled_accuracy(decoding.mark_samples(drawn))
        return shares.set_index("fact_id")["accuracy"]
    placed = right[right["begin"] >= 0]
    if placed.empty:
        return pd.Series(dtype=float)
    logprobs = spine.tempered_names(model, placed, [temperature], top_p=top_p)
    return pd.Series(np.exp(logprobs[:, 0]), placed["fact_id"])


def _years(model: Model, mine: pd.DataFrame) -> pd.Series:
    """The win rate of known facts that held for a time, which has ended, [fact_id]."""
    if "end" not in mine or "score" in model.lacks:
        return pd.Series(dtype=float)
    held = mine[mine["end"].fillna("") != ""]
    if held.empty:
        return pd.Series(dtype=float)
    matched = timed.matches(spine.year_scores(model, held))
    return matched[matched["precision"] == "year"].set_index("fact_id")["win_rate"]


def _with_bits(
    numbers: pd.DataFrame,
    at_bits: Mapping[int, Model | None],
    mine: pd.DataFrame,
) -> tuple[pd.DataFrame, list[str]]:
    """The numbers with bits4 and bits8, where there are known facts, and why one cannot be had."""
    cannot = []
    for bits, other in at_bits.items():
        if other is None or mine.empty:
            continue
        try:
            right = named_or_stated(other, mine).set_index("fact_id")["right"]
        except ModelError as error:  # weights that are on a disk, or are no plain numbers
            cannot.append(f"weights of {bits} bits: {error}")
        else:
            numbers = numbers.join(right.astype(float).rename(f"bits{bits}"))
    return numbers, cannot


# -- what is told ------------------------------------------------------------------------------------


def _notes(
    every: QuestionSet,
    answers: pd.DataFrame,
    changed: pd.DataFrame,
    numbers: pd.DataFrame,
    stored: str,
) -> list[str]:
    """What a reader must know of how a card was made."""
    right = answers[answers["right"]]
    known = len(right)
    n = len(every.table)
    of_all = "" if len(answers) == n else f" of {n:,}"
    notes = [f"{len(answers)}{of_all} facts were asked and {known} of them are known"]
    if known < KNOWN:
        notes.append(f"fewer than {KNOWN} known facts say little: ask easier or more questions")
    placed = right[right["begin"] >= 0]
    n_tokens = placed["token_ids"].map(len)
    if longer := int((placed["end"] - placed["begin"] < n_tokens).sum()):
        notes.append(
            f"{longer} known facts are answered in more words than the name: their probabilities are "
            "those of the name, after the words before it"
        )
    if stored:
        notes.append(f"the weights in the file are {stored}")
    counts = numbers.count()
    for name, how in ASKED.items():
        if left := known - int(counts.get(name, 0)):
            notes.append(f"{left} known facts were not asked {how}")
    if refused := int(answers["refused"].sum() + changed["refused"].sum()):
        notes.append(
            f"an endpoint's filter refused {refused} prompts, which count as wrong answers"
        )
    return notes


def _missing(model: Model, right: pd.DataFrame) -> list[str]:
    """What could not be asked of known facts, or told of their answers."""
    missing = [model.lacks[name] for name in ("temper", "score") if name in model.lacks]
    if lost := int((right["begin"] < 0).sum()):
        missing.append(
            f"logprob, kept, t_b and FRS of {lost} known facts: the answer is a sentence, and "
            "nothing tells which of its tokens are the name"
        )
    return missing


def _facts(
    answers: pd.DataFrame,
    changed: pd.DataFrame,
    numbers: pd.DataFrame,
) -> list[Fact]:
    """The facts of a card, of their answers and of numbers [fact_id]."""
    facts = {}
    for row in answers.to_dict("records"):
        name = row["fact_id"]
        found = numbers.loc[name].dropna().to_dict() if name in numbers.index else {}
        unknown = UNKNOWN[found.get("reads"), found.get("copied")]
        facts[name] = Fact(
            fact_id=name,
            relation=row["relation"],
            question=row["question"],
            accepted=[row["object"], *row["aliases"]],
            answer=row["text"].strip(),
            known=row["right"],
            verdicts=verdicts(found) if row["right"] else [unknown],
            numbers=found,
        )
    for row in changed.to_dict("records"):
        fact = facts[row["fact_id"]]
        answer = row["text"].strip()
        if row["sentence"]:
            fact.contexts[row["form"]] = row["sentence"], answer
        else:
            fact.wordings[row["question"]] = answer
    return [*facts.values()]


def verdicts(numbers: Mapping[str, float]) -> list[str]:
    """What is told of a known fact, by its numbers (see `Fact`), the worst first. It holds if it
    was right in every wording and behind every sentence that was asked, and more likely than not is
    kept by the decoder."""
    found = []
    forms = [numbers[name] for name in ("wordings", "typography") if name in numbers]
    if forms and max(forms) == 0:
        found.append("known in this wording only")
    elif forms and min(forms) < 1:
        found.append("lost in some wordings")
    wrong = {name for name in CONTEXTS if numbers.get(name, 1) == 0}
    if numbers.get("overruled", 0) == 1 and "irrelevant" not in wrong:
        found.append("overruled by a false context")
        wrong.discard("false")
    if wrong:
        found.append("lost behind a sentence")
    if numbers.get("kept", 1) < HALF:
        found.append("lost at these decoder settings")
    return found or ["holds"]


# -- what it is worth --------------------------------------------------------------------------------


def _with_measures(made: Card, known: int) -> Card:
    """The card with its measures and digest. A measure of fewer than FEW of more known facts is
    missing."""
    made.measures, few = [], min(FEW, known)
    for measure in measures_of(made):
        if measure.n >= few:
            made.measures.append(measure)
        else:
            made.missing.append(f"{measure.name}: too few facts, {measure.n}, for a number")
    made.digest = made.digested()
    return made


def measures_of(card: Card) -> list[Measure]:
    """The measures of a card's facts; those of which nothing was asked are left out."""
    numbers, found = card.numbers, []
    if "copied" in numbers:
        numbers["reading"] = numbers["reads"] - numbers["copied"]
    baselines = {"known": commonest(card.facts)}
    for number, placebo in PLACEBOS.items():
        if placebo in numbers:
            baselines[number] = numbers[placebo].mean()
    for row in MEASURES[MEASURES["number"].isin(numbers.columns)].to_dict("records"):
        number = row["number"]
        values = numbers[number].dropna()
        mean, low, high, _ = _estimate(values, difference=number == "reading")
        least = DIFFERENCE * (high - low) / 2
        measure = Measure(
            name=row["name"],
            value=mean,
            low=number_or_none(low),
            high=number_or_none(high),
            n=len(values),
            baseline=number_or_none(baselines.get(number, row["baseline"])),
            baseline_is=row["baseline_is"],
            smallest_difference=least if 0 < least < 1 else None,  # of shares: 1 at most
        )
        found.append(measure)
    return found


def number_or_none(value: float) -> float | None:
    """A number as JSON holds it: None for NaN."""
    return None if np.isnan(value) else float(value)


def _estimate(values: pd.Series, *, difference: bool) -> intervals.Interval:
    """The mean of facts' numbers [fact_id and relation], or of differences, with its interval. Whole
    relations are drawn where there are ENOUGH."""
    relations = values.index.get_level_values("relation")
    drawn = relations if relations.nunique() >= ENOUGH else None
    if difference:
        return intervals.paired_difference(values, 0 * values, drawn, n_boot=1000)
    return intervals.bootstrap_mean(values, drawn, n_boot=1000)


def commonest(facts: Sequence[Fact]) -> float:
    """The share right of a rule that always says the commonest answer to the relation's other
    facts."""
    relations = pd.Series([fact.relation for fact in facts])
    truths = pd.Series([normalise(fact.accepted[0]) for fact in facts])
    hits = 0
    for _, some in truths.groupby(relations):
        counts = Counter(some)
        for truth in some:
            rest = counts - Counter([truth])
            hits += rest[truth] == max(rest.values(), default=np.nan)
    return hits / len(facts)
