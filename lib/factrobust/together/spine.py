"""Part 6's questions: a fact, one prompt, and what is changed about it.

A model is asked everything in one prompt format, its own. Other wordings, contexts and years are
changes of the question's text there, so that two answers differ by the change alone. Frames fit any
question, since only some relations have paraphrases. Facts are `schemas.AskedFacts`; those that held
for a time are asked at a year of it, and keep start and end.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust import endings, schemas
from factrobust.context import facts as contexts
from factrobust.datasets import own, world
from factrobust.datasets.facts import answers
from factrobust.decoding import metrics, probe
from factrobust.endings import covering
from factrobust.intervals import top_entropy
from factrobust.models.interface import Generation, Model
from factrobust.models.prompts import FORMATS, prompts
from factrobust.temporal import dates, facts
from factrobust.temporal import probe as timing
from factrobust.text import exact_match, normalise
from factrobust.wording.metrics import stated

FRAMES = (  # other wordings of a question; {small} is it in small letters, without a question mark
    "I have a question for you. {question}",
    "Please tell me: {question}",
    "My friend wants to know this: {question}",
    "{small}",
    "{question} I need it for a quiz.",
)
WORLD_VARIANTS = (1, 2, 3, 8, 9)  # wordings of the invented world; nobody saw 8 and 9
NONSENSE = "Blorp"  # a subject of which nobody knows anything
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
    that form; way ("wording" or "context"), form (number of the wording; or of `context.facts.CONTEXTS`,
    or "nonsense", the true sentence about NONSENSE), sentence (the context) and stated (in it). Contexts state answers of the `pool`'s facts of the
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
    said = pd.concat([said, _about_nonsense(mine)])
    said = said.rename(columns={"question_id": "fact_id", "context": "form"})
    wordings = wordings.assign(way="wording", sentence="", stated="")
    return pd.concat([wordings, asked.merge(said).assign(way="context")], ignore_index=True)


def _about_nonsense(questions: Table) -> Table:
    """The true sentence of each question about NONSENSE instead of its subject, as `known_contexts`."""
    rows = []
    for question in questions.to_dict("records"):
        subject, truth = re.escape(question["object"]), question["answers"][0]
        begins = re.sub(subject, NONSENSE, question["prefix"], count=1, flags=re.IGNORECASE)
        rows.append((question["question_id"], "nonsense", f"{begins} {truth}", truth))
    return pd.DataFrame(rows, columns=["question_id", "context", "sentence", "stated"])


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
    an endpoint's filter let not through. right: one of the accepted answers in part 1's few tokens; or,
    if `free` or `in_sentences`, an answer of probe.LONG tokens that states one, since a change of the
    question makes models answer in sentences. entropy, t_b and frs are NaN without temperatures, or if
    the model cannot be tempered; t_b is HIGHEST where nothing breaks it, 0 where it is below one half
    from the start.
    """
    grid = () if "temper" in model.lacks else temperatures
    long = free or in_sentences(model, asked)
    said = _said(model, asked, grid, long, go_on)
    table = _answers(model, asked, said, long)
    if go_on:
        table["refused"] = [g.filtered for g in said]
    table["logprob"] = table["logprobs"].map(lambda logs: sum(logs) if logs else np.nan)
    tops = [g.top_logprobs if grid else [] for g in said]
    curves = {i: g.curve for i, g in enumerate(said) if g.curve}
    return _with_robustness(table, tops, grid, curves)


def in_sentences(model: Model, asked: Table) -> bool:
    """Whether a model may answer in sentences: in a chat, or where the facts have no beginnings of
    answers, as one's own questions."""
    form = FORMATS[model.prompt_format]
    return (form.chat and not form.prefix) or not (asked["prefix"] != "").all()


def named(model: Model, asked: Table, temperatures: Sequence[float]) -> Table:
    """`greedy`, but where models may answer in sentences the numbers of a right answer are those of the
    name in it, after the words before it: "Nairobi" in "The capital of Kenya is Nairobi".

    Adds begin and end, the place of the name's tokens among the answer's. Where no place is found
    (token texts are not told), the numbers are NaN and begin is -1.
    """
    if not in_sentences(model, asked):
        table = greedy(model, asked, temperatures, go_on=True)
        return table.assign(begin=0, end=table["token_ids"].map(len))
    said = _said(model, asked, (), long=True, go_on=True)
    table = _answers(model, asked, said, long=True)
    table["refused"] = [g.filtered for g in said]
    places = [
        name_tokens(g, names) if right else (0, len(g.logprobs))
        for g, names, right in zip(said, answers(asked), table["right"], strict=True)
    ]
    table["begin"] = [begin for begin, _ in places]
    table["end"] = [end for _, end in places]
    table["logprob"] = [
        sum(g.logprobs[begin:end]) if 0 <= begin < end else np.nan
        for g, (begin, end) in zip(said, places, strict=True)
    ]
    found = table["right"] & (table["begin"] >= 0)
    grid = () if "temper" in model.lacks or not found.any() else temperatures
    tops = [
        list(g.top_logprobs)[begin:end] if grid and use else []
        for g, (begin, end), use in zip(said, places, found, strict=True)
    ]
    curves = {}
    if grid:
        rows = np.flatnonzero(found)
        curves = dict(zip(rows, tempered(model, table[found], grid).tolist(), strict=True))
    return _with_robustness(table, tops, grid, curves)


def tempered(
    model: Model, said: Table, temperatures: Sequence[float], **cuts: Any
) -> NDArray[np.float64]:
    """log P_t of the name in each of the answers of `named`, [row, temperature]: that of the answer up
    to the name's end minus that of the words before it (`Model.temper`, with its `cuts`)."""
    prompts, ids = said["prompt"].tolist(), said["token_ids"].tolist()
    ends, begins = said["end"].tolist(), said["begin"].to_numpy()
    upto = [tokens[:end] for tokens, end in zip(ids, ends, strict=True)]
    logs = model.temper(prompts, upto, temperatures, **cuts).astype(float)
    if (rows := np.flatnonzero(begins > 0)).size:
        before = [ids[row][: begins[row]] for row in rows]
        sent = [prompts[row] for row in rows]
        logs[rows] -= model.temper(sent, before, temperatures, **cuts)
    return np.minimum(logs, 0)  # the two are rounded apart


def name_tokens(said: Generation, names: Sequence[str]) -> tuple[int, int]:
    """The place of the tokens of the first accepted name in an answer, behind a thought or a label;
    (-1, -1) where none is found."""
    lead, rest = endings.split(said.text, said.prompt)
    found = name_in(rest, names)
    if found is None or not said.top_logprobs:
        return -1, -1
    place = len(lead) + found[0], len(lead) + found[1]
    begin = covering(said, said.text[: place[0]])
    if begin and begin == covering(said, said.text[: place[0] + 1]):
        begin -= 1  # a token holds the last sign before the name and its first letter
    end = covering(said, said.text[: place[1]])
    return (begin, end) if begin < end else (-1, -1)


def name_in(text: str, names: Sequence[str]) -> tuple[int, int] | None:
    """Where the first accepted name stands in a text: the shortest stretch of words and signs that ends
    first and is one of the `names` after normalisation. None if there is none."""
    wanted = {normalise(name) for name in names} | {normalise(f"{name}s") for name in names}
    wanted.discard("")
    pieces = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    for last, (_, end) in enumerate(pieces):
        for begin, _ in reversed(pieces[: last + 1]):
            if normalise(text[begin:end]) in wanted:
                return begin, end
    return None


def _said(
    model: Model, asked: Table, grid: Sequence[float], long: bool, go_on: bool
) -> list[Generation]:
    """Greedy answers of few tokens, or of probe.LONG; to `go_on` as `endings.ask` gets them."""
    tokens, stop = probe.LONG if long else probe.MAX_NEW_TOKENS, FORMATS[model.prompt_format].stop
    sent = prompts(model, asked)
    if go_on:
        return endings.ask(model, sent, max_new_tokens=tokens, stop=stop, temperatures=grid)
    return model.generate(sent, max_new_tokens=tokens, stop=stop, temperatures=grid)


def _answers(model: Model, asked: Table, said: list[Generation], long: bool) -> Table:
    """The facts with their answers, and whether these are right."""
    columns = ["prompt", "text", "token_ids", "logprobs"]
    table = pd.DataFrame([*map(vars, said)], columns=columns).assign(model=model.name)
    table["text"] = [endings.said(g.text, g.prompt) for g in said]
    rule = stated if long else exact_match
    table["right"] = [rule(text, a) for text, a in zip(table["text"], answers(asked), strict=True)]
    return pd.concat([asked.reset_index(drop=True), table], axis=1)


def _with_robustness(
    table: Table, tops: list[Any], grid: Sequence[float], curves: Mapping[int, Sequence[float]]
) -> Table:
    """Answers with entropy (of the alternatives `tops` at each position), t_b (of the `curves` [row] over
    `grid`) and frs."""
    entropies = [[top_entropy([p for _, p in at]) for at in positions] for positions in tops]
    table["entropy"] = [np.mean(values or [np.nan]) for values in entropies]
    table["t_b"] = np.nan
    if curves:
        breaks = metrics.crossing(grid, [*curves.values()])
        table.loc[[*curves], "t_b"] = np.nan_to_num(breaks, posinf=HIGHEST)
    table["frs"] = metrics.frs(table["entropy"], table["t_b"], unbroken=None)
    return table


def years(model: Model, asked: Table, seed: int = 0) -> Table:
    """`temporal.probe.scored` of facts that held for a time, under three years inside it and three on each
    side, in the model's own prompt format. `subject` of one's own questions is the question without a
    year."""
    embedded = facts.load_temporal_facts()
    embedded = embedded[embedded["fact_id"].isin(asked["fact_id"])]
    table = asked if embedded.empty else embedded  # whose question has no year in it
    if (table["source"] == own.SOURCE).all():
        table = table.assign(question=table["subject"].map(own.continued))
    sampled = dates.thinned(dates.sample_dates(table, seed=seed), n_correct=3, n_incorrect=3)
    tested = (sampled["precision"] == "year") & (sampled["label"] != "transitional")
    return timing.scored(model, timing.statements(table, sampled[tested]))
