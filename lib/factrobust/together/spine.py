"""Part 6's questions: a fact, one prompt, and what is changed about it.

A model is asked everything in one prompt format, its own. Other wordings, contexts and years are
changes of the question's text there, so that two answers differ by the change alone. Frames fit any
question, since only some relations have paraphrases. Facts are `schemas.AskedFacts`; those that held
for a time are asked at a year of it, and keep start and end.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust import schemas
from factrobust.context import facts as contexts
from factrobust.context import probe as in_context
from factrobust.context import rules
from factrobust.datasets import named, world
from factrobust.decoding import metrics, probe
from factrobust.models.interface import Model
from factrobust.text import contains, exact_match
from factrobust.time import dates, facts
from factrobust.time import probe as timing
from factrobust.wording import metrics as worded
from factrobust.wording import probe as paraphrased

FRAMES = (  # of a question; {small} is it in small letters, without a question mark
    "{question}",
    "I have a question for you. {question}",
    "Please tell me: {question}",
    "My friend wants to know this: {question}",
    "{small}",
    "{question} I need it for a quiz.",
)
WORLD_VARIANTS = (1, 2, 3, 8, 9)  # wordings of the invented world; nobody saw 8 and 9
# For t_b in a second wording: fewer temperatures than part 1's, of which each costs.
COARSE = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.3, 1.7, 2.2, 3.0, 4.5, 7.0)
PROMPTS = ("this part's", "part 2's", "part 3's", "part 4's")
Table = pd.DataFrame


def static_facts(data: str, n: int, seed: int) -> Table:
    """n facts of a set, spread evenly, as part 1 asks them."""
    return named.load_named([data], limit=n, seed=seed).table


def dated_facts(n: int, seed: int) -> Table:
    """n embedded facts that held for a time, asked at the year in its middle."""
    table = facts.sample(facts.load_temporal_facts(), n, seed).reset_index(drop=True)
    ends = table["end"].where(table["end"] != "", "2020").str[:4].astype(int)
    middle = ((table["start"].str[:4].astype(int) + ends) // 2).astype(str)
    asked = timing.statements(table, table[["fact_id"]].assign(date=middle))
    wording = {name: asked[name].to_numpy() for name in timing.WORDING}
    table = table.assign(domain="dated", answer_type="", **wording)
    return table[[*schemas.AskedFacts.columns, "start", "end"]]


def changed(asked: Table, pool: Table, seed: int = 0) -> Table:
    """What is changed about each fact, a row a fact and change: the fact's columns with the question in
    that form; way ("wording" or "context"), form (number of the wording, or of `context.facts.CONTEXTS`),
    sentence (the context) and stated (in it). Contexts state answers of the `pool`'s facts of the
    relation; facts without another answer there have none."""
    parts = []
    if is_world(asked):
        every = world.asked(every_wording=True)
        every = every.loc[
            every["variant"].isin(WORLD_VARIANTS), ["fact_id", "variant", *timing.WORDING]
        ]
        rows = asked.drop(columns=[*timing.WORDING]).merge(every, on="fact_id")
        parts.append(rows.rename(columns={"variant": "form"}))
    else:
        for form, frame in enumerate(FRAMES[1:], 1):
            texts = [
                frame.format(question=q, small=q.lower().rstrip("?")) for q in asked["question"]
            ]
            parts.append(asked.assign(question=texts, form=form))
    parts = [part.assign(way="wording", sentence="", stated="") for part in parts]
    every = pool.assign(domain="", popularity=np.nan, answer_type="")
    quoted = 'The answer to "' + every["question"] + '" is'
    every["prefix"] = every["prefix"].where(every["prefix"] != "", quoted)
    for _, alike in contexts.facts_as_questions(every).groupby("base_id", sort=False):
        mine = alike[alike["question_id"].isin(asked["fact_id"])]
        try:
            said = contexts.known_contexts(mine, alike, seed=seed)
        except StopIteration:  # one of them has no other answer to state
            mine = mine[[bool(others) for others in contexts.rivals(mine, alike)]]
            said = contexts.known_contexts(mine, alike, seed=seed)
        said = said.rename(columns={"question_id": "fact_id", "context": "form"})
        parts.append(asked.merge(said, on="fact_id").assign(way="context"))
    return pd.concat(parts, ignore_index=True)


def is_world(table: Table) -> bool:
    """Whether all facts are of the invented world, which has wordings of its own."""
    return bool((table["source"] == "data/world").all())


def behind(table: Table) -> pd.Series:
    """The questions of `changed`, each behind its context."""
    ends = table["sentence"].str.rstrip(".").map(lambda text: f"{text}. " if text else "")
    return ends + table["question"]


def greedy(model: Model, asked: Table, temperatures: Sequence[float] = ()) -> Table:
    """Marked greedy answers in the model's own prompt format (`decoding.metrics.mark_greedy`), with
    right (exactly), logprob (nats, of the whole answer) and, if there are temperatures, t_b."""
    said = metrics.mark_greedy(probe.greedy(model, asked, temperatures=temperatures))
    said = said.assign(right=said["exact_match"], logprob=said["logprobs"].map(sum).astype(float))
    if not temperatures:
        return said
    # Part 1's tables of other forms have a column of this name, too.
    curves = probe.curves(said.drop(columns="form", errors="ignore"), temperatures)
    return said.merge(metrics.exact_breaking(curves), on=metrics.KEY, how="left")


def ask(model: Model, table: Table) -> Table:
    """`greedy` of facts `changed`. The first wording has a curve at COARSE temperatures. Models of the
    invented world know contexts in part 4's prompt alone, and are asked there."""
    first, inside = (table["way"] == "wording") & (table["form"] == 1), table["way"] == "context"
    parts = [greedy(model, table[first], COARSE)]
    if is_world(table) and inside.any():
        parts.append(greedy(model, table[~first & ~inside]))
        asked = contexts.facts_as_questions(table[inside])
        said = in_context.greedy(model, asked, table.loc[inside, "sentence"].tolist())
        marks = map(exact_match, said["text"], asked["answers"])
        rows = table[inside].reset_index(drop=True)
        parts.append(rows.assign(model=model.name, text=said["text"], right=[*marks]))
    else:
        rest = table[~first]
        parts.append(greedy(model, rest.assign(question=behind(rest))))
    return pd.concat(parts, ignore_index=True)


def samples(model: Model, asked: Table, seed: int = 0) -> Table:
    """Samples of each fact as part 3 draws them for Cert, in the model's own prompt format."""
    at: dict[str, Any] = {"temperatures": [paraphrased.TEMPERATURE], "n": paraphrased.SAMPLES}
    return probe.sampled(model, asked, seed=seed, **at)


def in_prompts(model: Model, asked: Table) -> Table:
    """The facts in the prompt of each part, marked as it does: model, fact_id, prompt_of, text, right."""
    questions = contexts.facts_as_questions(asked)
    rows = asked.assign(question_id=asked["fact_id"], group_id=asked["fact_id"], variant=0)
    paper = paraphrased.paper_format(model.prompt_format, model.chat)
    bare = probe.greedy(model, asked, temperatures=(), prompt_format="question")
    ways: list[tuple[Table, Callable[..., bool]]] = [
        (probe.greedy(model, asked), exact_match),
        (bare, contains),
        (paraphrased.greedy(model, rows, prompt_format=paper), worded.stated),
        (in_context.greedy(model, questions), rules.right),
    ]
    parts = []
    for name, (said, rule) in zip(PROMPTS, ways, strict=True):
        found = pd.DataFrame({"model": model.name, "fact_id": asked["fact_id"].to_numpy()})
        right = [*map(rule, said["text"], questions["answers"])]
        parts.append(found.assign(prompt_of=name, text=said["text"].to_numpy(), right=right))
    return pd.concat(parts, ignore_index=True)


def years(model: Model, asked: Table, seed: int = 0) -> Table:
    """`time.probe.scored` of facts that held for a time, under three years inside it and three on each
    side, in the model's own prompt format."""
    embedded = facts.load_temporal_facts()
    embedded = embedded[embedded["fact_id"].isin(asked["fact_id"])]
    table = asked if embedded.empty else embedded  # whose question has no year in it
    sampled = dates.thinned(dates.sample_dates(table, seed=seed), n_correct=3, n_incorrect=3)
    tested = (sampled["precision"] == "year") & (sampled["label"] != "transitional")
    return timing.scored(model, timing.statements(table, sampled[tested]))
