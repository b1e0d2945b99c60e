"""Part 6's questions: a fact, one prompt, and what is changed about it.

A model is asked everything in one prompt format, its own. Other wordings, contexts and years are
changes of the question's text there, so that two answers differ by the change alone. Frames fit any
question, since only some relations have paraphrases. Facts are `schemas.AskedFacts`; those that held
for a time are asked at a year of it, and keep start and end.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from factrobust import endings, schemas
from factrobust.context import facts as contexts
from factrobust.datasets import world
from factrobust.datasets.facts import answers
from factrobust.decoding import metrics, probe
from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS, prompts
from factrobust.statistics import top_entropy
from factrobust.text import exact_match
from factrobust.time import dates, facts
from factrobust.time import probe as timing
from factrobust.wording.metrics import stated

FRAMES = (  # other wordings of a question; {small} is it in small letters, without a question mark
    "I have a question for you. {question}",
    "Please tell me: {question}",
    "My friend wants to know this: {question}",
    "{small}",
    "{question} I need it for a quiz.",
)
WORLD_VARIANTS = (1, 2, 3, 8, 9)  # wordings of the invented world; nobody saw 8 and 9
HIGHEST = 99.0  # the t_b of what nothing breaks, where a number is needed
Table = pd.DataFrame


def dated_facts(n: int, seed: int) -> Table:
    """n embedded facts that held for a time, asked at the year in its middle."""
    table = facts.sample(facts.load_temporal_facts(), n, seed).reset_index(drop=True)
    ends = table["end"].where(table["end"] != "", "2020").str[:4].astype(int)
    middle = ((table["start"].str[:4].astype(int) + ends) // 2).astype(str)
    asked = timing.statements(table, table[["fact_id"]].assign(date=middle))
    wording = {name: asked[name].to_numpy() for name in timing.WORDING}
    table = table.assign(domain="dated", answer_type="", **wording)
    return table[[*schemas.AskedFacts.columns, "start", "end"]]


def is_world(table: Table) -> bool:
    """Whether all facts are of the invented world, which has wordings of its own."""
    return bool((table["source"] == "data/world").all())


def changed(asked: Table, pool: Table, seed: int = 0) -> Table:
    """What is changed about each fact, a row a fact and change: the fact's columns with the question in
    that form; way ("wording" or "context"), form (number of the wording, or of `context.facts.CONTEXTS`),
    sentence (the context) and stated (in it). Contexts state answers of the `pool`'s facts of the
    relation. Facts without another answer there have none, and neither have those of the invented
    world, whose models read contexts in part 4's prompt alone."""
    if is_world(asked):
        every = world.asked(every_wording=True)
        every = every.loc[
            every["variant"].isin(WORLD_VARIANTS), ["fact_id", "variant", *timing.WORDING]
        ]
        every = every.rename(columns={"variant": "form"})
        wordings = asked.drop(columns=[*timing.WORDING]).merge(every, on="fact_id")
        return wordings.assign(way="wording", sentence="", stated="")
    frames = pd.DataFrame({"frame": FRAMES, "form": range(1, len(FRAMES) + 1)})
    wordings = frames.merge(asked, how="cross")
    texts = zip(wordings.pop("frame"), wordings["question"], strict=True)
    wordings["question"] = [f.format(question=q, small=q.lower().rstrip("?")) for f, q in texts]
    quoted = 'The answer to "' + pool["question"] + '" is'
    pool = pool.assign(prefix=pool["prefix"].where(pool["prefix"] != "", quoted))
    every = contexts.facts_as_questions(pool)
    mine = every[every["question_id"].isin(asked["fact_id"])]
    mine = mine[[bool(others) for others in contexts.rivals(mine, every)]]
    said = contexts.known_contexts(mine, every, seed=seed)
    said = said.rename(columns={"question_id": "fact_id", "context": "form"})
    wordings = wordings.assign(way="wording", sentence="", stated="")
    return pd.concat([wordings, asked.merge(said).assign(way="context")], ignore_index=True)


def behind(table: Table) -> pd.Series:
    """The questions of `changed`, each behind its context."""
    ends = table["sentence"].str.rstrip(".").map(lambda text: f"{text}. " if text else "")
    return ends + table["question"]


def greedy(
    model: Model,
    asked: Table,
    temperatures: Sequence[float] = (),
    *,
    free: bool = False,
    go_on: bool = False,
) -> Table:
    """Greedy answers in the model's own prompt format, a row a fact in their order, from part 1's records
    where it asked the same.

    Adds to the facts' columns model, prompt, text, token_ids, logprobs (nats a token), logprob (their
    sum), entropy (their mean, 0 to 1), right, t_b and frs. text: what the answer says (`endings.said`);
    to `go_on` a model is asked again where that has not begun (`endings.ask`), and `refused` tells what
    an endpoint's filter let not through. right: one of the accepted answers in
    part 1's few tokens; or, if `free` or where the format asks for no short answer, an answer of
    probe.LONG tokens that states one, since a change of the question makes models answer in sentences. entropy, t_b and frs are NaN without temperatures, or
    if the model cannot be tempered; t_b is HIGHEST where nothing breaks it, 0 where it is below one half
    from the start.
    """
    form = FORMATS[model.prompt_format]
    free |= (form.chat and not form.prefix) or not (asked["prefix"] != "").all()
    tokens, rule = (probe.LONG, stated) if free else (probe.MAX_NEW_TOKENS, exact_match)
    how: dict[str, Any] = {"max_new_tokens": tokens, "stop": form.stop}
    grid = () if "temper" in model.lacks else temperatures
    generate = partial(endings.ask, model) if go_on else model.generate
    said = generate(prompts(model, asked), temperatures=grid, **how)
    columns = ["prompt", "text", "token_ids", "logprobs"]
    table = pd.DataFrame([*map(vars, said)], columns=columns).assign(model=model.name)
    table["text"] = [endings.said(g.text, g.prompt) for g in said]
    if go_on:
        table["refused"] = [g.filtered for g in said]
    table["logprob"] = table["logprobs"].map(lambda logs: sum(logs) if logs else np.nan)
    tops = [[[p for _, p in at] for at in g.top_logprobs] if grid else [] for g in said]
    table["entropy"] = [np.mean([*map(top_entropy, at)] or [np.nan]) for at in tops]
    table["right"] = [rule(text, a) for text, a in zip(table["text"], answers(asked), strict=True)]
    table["t_b"] = np.nan
    if curves := {i: g.curve for i, g in enumerate(said) if g.curve}:
        breaks = metrics.crossing(grid, [*curves.values()])
        table.loc[[*curves], "t_b"] = np.nan_to_num(breaks, posinf=HIGHEST)
    table["frs"] = metrics.frs(table["entropy"], table["t_b"], unbroken=None)
    return pd.concat([asked.reset_index(drop=True), table], axis=1)


def years(model: Model, asked: Table, seed: int = 0) -> Table:
    """`time.probe.scored` of facts that held for a time, under three years inside it and three on each
    side, in the model's own prompt format."""
    embedded = facts.load_temporal_facts()
    embedded = embedded[embedded["fact_id"].isin(asked["fact_id"])]
    table = asked if embedded.empty else embedded  # whose question has no year in it
    sampled = dates.thinned(dates.sample_dates(table, seed=seed), n_correct=3, n_incorrect=3)
    tested = (sampled["precision"] == "year") & (sampled["label"] != "transitional")
    return timing.scored(model, timing.statements(table, sampled[tested]))
