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

from factrobust import __version__, load_model, statistics, tables
from factrobust.decoding import metrics as decoding
from factrobust.decoding import probe
from factrobust.models.interface import Generation, Model, ModelError
from factrobust.models.load import GROWN
from factrobust.models.prompts import FORMATS, prompts
from factrobust.models.records import open_records
from factrobust.paths import DATA, noted, write_atomically
from factrobust.text import contains, exact_match, normalise
from factrobust.time import metrics as timed
from factrobust.together import spine
from factrobust.together.damage import Damage, damaged

KNOWN, CHUNK, ENOUGH = 60, 60, 5  # ENOUGH relations are drawn for intervals
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
VERDICTS = {  # the worst first, and what is usually done about it
    "unknown": "put the fact into the context, or teach it",
    "known in this wording only": "ask in several wordings and take the commonest answer",
    "overruled by a false context": "check what is retrieved; compare with the answer without it",
    "lost at these decoder settings": "decode greedily, or lower temperature and top-p for facts",
    "dated wrongly": "put the dates into the context; do not ask for a year",
    "likely lost when quantised or tuned": "run `make diff` before and after; keep more bits",
    "holds": "nothing",
}
CANNOT = [
    "how the model does on other questions, languages or longer answers than these",
    "which of two models is better: these are facts that this one was asked; diff pairs them",
    "whether wordings or contexts of another kind would break what held here",
]


class Fact(BaseModel):
    """What is told of one fact. None: it was not asked, or cannot be."""

    fact_id: str
    relation: str
    question: str
    accepted: list[str]
    answer: str
    known: bool
    verdicts: list[str] = []
    wordings: dict[str, str] = {}  # the question in other words, and the answer
    contexts: dict[str, tuple[str, str]] = {}  # kind: the context, and the answer behind it
    logprob: float | None = None  # of the answer, nats
    t_b: float | None = None  # breaking temperature; 99 if nothing breaks it
    frs: float | None = None
    kept: float | None = None  # probability of the answer under the decoder's settings
    win_rate: float | None = None  # of years inside its time over years outside
    survives: float | None = None  # predicted probability, rounding to 4 bits

    def worded(self) -> float:
        """The share of other wordings answered rightly; NaN if none was asked."""
        marks = [contains(text, self.accepted) for text in self.wordings.values()]
        return float(np.mean(marks)) if marks else np.nan

    def behind(self, kind: str) -> float:
        """1 if right behind such a context, else 0; NaN if it was not asked."""
        return (
            float(contains(self.contexts[kind][1], self.accepted))
            if kind in self.contexts
            else np.nan
        )

    def judged(self) -> list[str]:
        """The verdicts, keys of VERDICTS in their order."""
        faults = {
            "known in this wording only": self.worded() < 0.5,
            "overruled by a false context": self.behind("false") == 0,
            "lost at these decoder settings": or_nan(self.kept) < 0.5,
            "dated wrongly": or_nan(self.win_rate) < 1,
            "likely lost when quantised or tuned": or_nan(self.survives) < 0.5,
        }
        return [v for v in VERDICTS if faults.get(v)] or ["holds"] if self.known else ["unknown"]


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

    def digested(self) -> str:
        text = json.dumps(self.model_dump(mode="json", exclude={"digest"}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def table(self) -> pd.DataFrame:
        """The measures, a row each."""
        return pd.DataFrame([measure.model_dump() for measure in self.measures])

    def save(self, folder: str | Path = "build/cards", name: str = "") -> list[Path]:
        """Write NAME.json, and from it NAME.png, NAME.html and NAME.yaml (a `model-index` block)."""
        from factrobust.together import page

        stem = Path(folder) / (name or tables.slug(self.model.rstrip("/").rsplit("/", 1)[-1]))
        stem.parent.mkdir(parents=True, exist_ok=True)
        files = {
            "json": (self.model_dump_json(indent=1) + "\n").encode(),
            "png": page.picture(self),
        }
        files |= {"html": page.html(self).encode(), "yaml": page.model_index(self).encode()}
        paths = [stem.with_name(f"{stem.name}.{end}") for end in files]
        for path, content in zip(paths, files.values(), strict=True):
            write_atomically(path, content)
        return paths

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The card of a JSON file; ModelError for another schema, or a text that was changed."""
        found = cls.model_validate(json.loads(Path(path).read_text("utf-8")))
        if found.digest != found.digested():
            raise ModelError(f"{path} does not match its digest; bring it back, or make it anew")
        return found


def opened(name: Any) -> Model:
    """The model of a name as the module's head writes it, or of an endpoint's mapping; a model stays
    as it is. ModelError for what cannot be loaded."""
    if isinstance(name, Model):
        return name
    if isinstance(name, str) and name.startswith(("http://", "https://")):
        name = dict(zip(("url", "model"), [*name.split(maxsplit=1), "model"], strict=False))
    if isinstance(name, Mapping):
        return load_model(name, records=open_records())
    parts = re.fullmatch(r"([^#~]+)(?:~(\w+) (\d*\.?\d+))?(?:#([\w-]+))?", name)
    if not parts or (parts[4] or "prefix") not in FORMATS:
        known = f"NAME#FORMAT (of {', '.join(FORMATS)})"
        raise ModelError(f"{name!r} is no name of a model; write NAME, NAME~round 4 or {known}")
    text, way, dose, prompt_format = parts.groups()
    try:
        weights = Damage(way, float(dose)) if way else None
        model = damaged(text, weights) if weights else load_model(text, records=open_records())
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
        table = tables.complete_table(table, CSV, relation="own")
        about: dict[str, Any] = {
            "fact_id": table["question"].map(tables.slug),
            "subject": table["question"],
        }
        about |= {"object": table["answer"], "domain": "own", "popularity": np.nan, "prefix": ""}
        about |= dict.fromkeys(("answer_type", "popularity_source", "source"), "")
        table["aliases"] = tables.alias_lists(table["aliases"], table["answer"])
        digest = hashlib.sha256(noted(Path(data)).read_bytes()).hexdigest()
        return table.assign(**about).reset_index(drop=True), Path(data).name, digest
    grown = name.startswith("world") and (GROWN / re.split("[#~]", name)[0]).is_dir()
    called = "world" if grown else "embedded"
    facts = [spine.static_facts(called, 900, seed)]
    facts += [spine.dated_facts(60, seed)] if called == "embedded" else []
    every = pd.concat(facts, ignore_index=True)
    lots = [hashlib.sha256(f"{seed}/{name}".encode()).hexdigest() for name in every["fact_id"]]
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
    asked: list[Fact] = []
    answers: list[Generation] = []
    begun = time.monotonic()
    for start in range(0, len(table), CHUNK):
        rows = table[start : start + CHUNK]
        said = _answers(model, rows, () if "temper" in model.lacks else probe.GRID)
        asked += map(_fact, rows.to_dict("records"), said, [model] * len(rows))
        answers += said
        n = sum(fact.known for fact in asked)
        if start == 0:  # what follows costs a dozen questions a known fact
            left = min(len(table), known * len(rows) / max(n, 1)) + 12 * min(known, len(table))
            minutes = (time.monotonic() - begun) * left / len(rows) / 60
            print(f"{model.name}: at most {minutes:.1f} minutes for {left:.0f} questions")
        if n >= known:
            break
    places = [k for k, fact in enumerate(asked) if fact.known]
    taken, facts_known = table.loc[places], [asked[k] for k in places]
    missing = [why for name, why in model.lacks.items() if name in ("temper", "score")]
    if places:
        _heated(model, facts_known, [answers[k] for k in places], decoder)
        _shaken(model, taken, table, facts_known, seed)
        held = taken[taken.get("start", pd.Series("", taken.index)).fillna("") != ""]
        if len(held) and "score" not in model.lacks:
            matched = timed.matches(spine.years(model, held, seed)).dropna(subset="win_rate")
            rates = matched[matched["precision"] == "year"].set_index("fact_id")["win_rate"]
            for fact in facts_known:
                fact.win_rate = float(rates[fact.fact_id]) if fact.fact_id in rates else None
        else:
            missing.append("years: no known fact that held for a time could be scored under years")
    for fact in asked:
        fact.verdicts = fact.judged()
    notes = [f"{len(asked)} facts were asked and {len(places)} of them are known"]
    if len(places) < KNOWN:
        notes.append(f"fewer than {KNOWN} known facts say little: ask easier or more questions")
    made = Card(
        model=model.name, fingerprint=model.fingerprint, prompt_format=model.prompt_format,
        prompt=prompts(model, table.head(1))[0], decoder=dict(decoder), data=called,
        frames=[] if spine.is_world(table) else list(spine.FRAMES[1:]),
        data_sha256=digest, notes=notes, measures=measured(asked), facts=asked, missing=missing,
    )  # fmt: skip
    return made.model_copy(update={"digest": made.digested()})


def _answers(model: Model, rows: pd.DataFrame, grid: Sequence[float] = ()) -> list[Generation]:
    """Greedy answers; asked as part 1 asks where a prompt makes them short, so that its records serve."""
    how: dict[str, Any] = {"temperatures": grid, "stop": FORMATS[model.prompt_format].stop}
    how["max_new_tokens"] = probe.MAX_NEW_TOKENS if (rows["prefix"] != "").all() else 12
    return model.generate(prompts(model, rows), **how)


def _fact(row: Mapping[Any, Any], said: Generation, model: Model) -> Fact:
    accepted = [row["object"], *row["aliases"]]
    rule = contains if model.prompt_format == "instruction" else exact_match
    names = ("fact_id", "relation", "question")
    about = {name: row[name] for name in names} | {
        "accepted": accepted,
        "answer": said.text.strip(),
    }
    fact = Fact(**about, known=rule(said.text, accepted))
    if said.logprobs:
        fact.logprob = float(sum(said.logprobs))
        if SURVIVAL.exists():
            fit = json.loads(noted(SURVIVAL).read_text("utf-8"))
            odds = fit["intercept"] + fit["logprob"] * fact.logprob
            fact.survives = float(1 / (1 + np.exp(-odds)))
    if said.curve:
        fact.t_b = float(np.nan_to_num(decoding.crossing(probe.GRID, said.curve), posinf=99))
        tops = [[p for _, p in at] for at in said.top_logprobs]
        fact.frs = float(decoding.frs(decoding.answer_entropy(tops), fact.t_b, unbroken=None))
    return fact


def _heated(
    model: Model, known: Sequence[Fact], answers: Sequence[Generation], decoder: Mapping[str, float]
) -> None:
    """How likely known answers are under the decoder's settings: exactly, or else by five samples, with
    a t_b by samples."""
    cuts: dict[str, Any] = {name: value for name, value in decoder.items() if name != "temperature"}
    t, sent = float(decoder.get("temperature", 1)), [g.prompt for g in answers]
    if "temper" not in model.lacks:
        kept = np.exp(model.temper(sent, [g.token_ids for g in answers], [t], **cuts)[:, 0])
        for fact, value in zip(known, kept.tolist(), strict=True):
            fact.kept = value
        return
    how: dict[str, Any] = {"n": 5, "max_new_tokens": 12, "stop": FORMATS[model.prompt_format].stop}
    drawn = model.sample(sent, temperature=t, **how, **cuts)
    each = [prompt for prompt in sent for _ in SAMPLED]
    heats = model.sample(each, temperature=[*SAMPLED] * len(sent), **how)
    for k, fact in enumerate(known):
        groups = [drawn[k], *heats[k * len(SAMPLED) : (k + 1) * len(SAMPLED)]]
        shares = [np.mean([contains(g.text, fact.accepted) for g in group]) for group in groups]
        fact.kept = float(shares[0])
        fact.t_b = min(decoding.first_break(SAMPLED, shares[1:]), 99.0)


def _shaken(
    model: Model, taken: pd.DataFrame, table: pd.DataFrame, known: Sequence[Fact], seed: int
) -> None:
    """Ask the known facts in other wordings and behind contexts."""
    rows, facts = spine.changed(taken, table, seed), {fact.fact_id: fact for fact in known}
    if "context" in taken:
        own = taken[taken["context"] != ""]
        own = own.assign(way="context", form="yours", sentence=own["context"])
        rows = pd.concat([rows, own], ignore_index=True)
    if (taken["source"] == "data/world").all():  # it never read a context in this prompt
        rows = rows[rows["way"] == "wording"]
    asked = rows.assign(question=spine.behind(rows))
    for row, said in zip(asked.to_dict("records"), _answers(model, asked), strict=True):
        fact = facts[row["fact_id"]]
        if row["way"] == "wording":
            fact.wordings[row["question"]] = said.text.strip()
        else:
            fact.contexts[row["form"]] = (row["sentence"], said.text.strip())


# -- what it is worth --------------------------------------------------------------------------------


def or_nan(x: float | None) -> float:
    return np.nan if x is None else x


def commonest(facts: Sequence[Fact]) -> float:
    """The share right of a rule that always says the commonest answer to the relation's other facts."""
    rows = [(f.relation, normalise(f.accepted[0])) for f in facts]
    counts = Counter(rows)
    hits = 0
    for relation, answer in rows:
        rest = {a: n - (a == answer) for (r, a), n in counts.items() if r == relation}
        hits += rest[answer] > 0 and rest[answer] == max(rest.values())
    return hits / len(facts)


def measured(asked: Sequence[Fact]) -> list[Measure]:
    """The measures of a card's facts; those of which nothing was asked are left out."""
    known = [fact for fact in asked if fact.known]
    control = [b for f in known if not np.isnan(b := f.behind("irrelevant"))]
    rows: list[tuple[str, list[float], float | None, str]] = [
        ("known", [float(f.known) for f in asked], commonest(asked), "commonest answer of a relation"),
        ("right in other wordings", [f.worded() for f in known], 1, "the same words again"),
        ("kept by the decoder", [or_nan(f.kept) for f in known], 1, "greedy"),
        ("FRS", [or_nan(f.frs) for f in known], None, "none"),
        ("right behind an irrelevant context", [f.behind("irrelevant") for f in known], 1, "no context"),
        ("right behind a false context", [f.behind("false") for f in known],
         float(np.mean(control)) if control else None, "behind an irrelevant one"),
        ("years won", [or_nan(f.win_rate) for f in known], 0.5, "years at random"),
        ("predicted to survive 4 bits", [or_nan(f.survives) for f in known], None, "none: a forecast"),
    ]  # fmt: skip
    found = []
    for name, values, baseline, what in rows:
        x, has = np.array(values), ~np.isnan(values)
        if not has.any():
            continue
        of = np.array([f.relation for f in (asked if name == "known" else known)])[has]
        drawn = of if len({*of}) >= ENOUGH else None
        mean, low, high, _ = statistics.bootstrap_mean(x[has], drawn, n_boot=1000)
        shown = DIFFERENCE * (high - low) / 2 or np.nan
        bounds = [None if np.isnan(value) else value for value in (low, high, shown)]
        numbers = dict(zip(("low", "high", "smallest_difference"), bounds, strict=True))
        about: dict[str, Any] = {"name": name, "value": mean, "n": int(has.sum())} | numbers
        found.append(Measure(**about, baseline=baseline, baseline_is=what))
    return found
