"""Part 6's questions: a fact, one prompt, and what is changed about it.

A model is asked everything in one prompt format, its own. Other wordings, contexts and years are
changes of the question's text there, so that two answers differ by the change alone. Frames fit any
question, since only some relations have paraphrases. Facts are `schemas.AskedFacts`; those that
held for a time are asked at a year of it, and keep start and end.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust import endings, schemas
from factrobust.context import facts as contexts
from factrobust.datasets import user_questions, world
from factrobust.datasets.facts import accepted_answers
from factrobust.decoding import metrics, probe
from factrobust.endings import count_covering
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
ANSWER = ["prompt", "text", "token_ids", "logprobs", "model", "right"]
Table = pd.DataFrame
Places = Sequence[tuple[int, int]]  # of an answer's tokens: the first, and the one behind the last


def dated_facts(n: int, seed: int) -> Table:
    """n embedded facts that held for a time, asked at the year in its middle."""
    table = facts.sample_facts(facts.load_temporal_facts(), n, seed)
    middle = table[["fact_id"]].assign(date=user_questions.middles(table))
    asked = timing.statements(table, middle)
    table = table.assign(
        domain="dated",
        answer_type="",
        question=asked["question"],
        prefix=asked["prefix"],
    )
    return table[[*schemas.AskedFacts.columns, "start", "end"]]


def is_world(table: Table) -> bool:
    """Whether all facts are of the invented world, which has wordings of its own."""
    return set(table["source"]) == {"data/world"}


# -- what is changed about a question ----------------------------------------------------------------


def in_other_words(asked: Table) -> Table:
    """Each fact in other wordings: the facts' columns with the changed question, and `form`, the
    number of the wording."""
    if is_world(asked):
        every = world.asked(every_wording=True)
        every = every[every["variant"].isin(WORLD_VARIANTS)]
        texts = every[["fact_id", "variant", *timing.WORDING]]
        texts = texts.rename(columns={"variant": "form"})
        return asked.drop(columns=[*timing.WORDING]).merge(texts, on="fact_id")
    parts = []
    for form, frame in enumerate(FRAMES, start=1):
        framed = []
        for question in asked["question"]:
            small = question.lower().rstrip("?")
            framed.append(frame.format(question=question, small=small))
        parts.append(asked.assign(question=framed, form=form))
    return pd.concat(parts, ignore_index=True)


def behind_sentences(asked: Table, pool: Table) -> Table:
    """Each fact behind sentences: the facts' columns with the sentence and the question, `sentence`,
    `stated` (the answer in it) and `form`.

    Forms are those of `context.facts.known_contexts`, which state answers of the `pool`'s facts of
    the relation; "nonsense", the true sentence about NONSENSE; and "yours", a `context` of one's
    own. Facts of a relation without another answer have only the last. Those of the invented world
    have none, since its models read contexts in part 4's prompt alone.
    """
    if is_world(asked):
        return asked.head(0).assign(
            sentence="",
            stated="",
            form="",
        )
    # 1. Sentences are beginnings of answers; a question without one is quoted.
    quoted = 'The answer to "' + pool["question"] + '" is'
    begins = pool["prefix"].mask(pool["prefix"] == "", quoted)
    every = contexts.facts_as_questions(pool.assign(prefix=begins))
    mine = every[every["question_id"].isin(asked["fact_id"])]
    # 2. The sentences of part 4, the nonsense twin and one's own.
    sentences = contexts.known_contexts(mine, every)
    has_rival = mine["question_id"].isin(sentences["question_id"])
    sentences = pd.concat([sentences, _about_nonsense(mine[has_rival])])
    sentences = sentences.rename(columns={"question_id": "fact_id", "context": "form"})
    rows = asked.merge(sentences, on="fact_id")
    if "context" in asked:
        yours = asked[asked["context"] != ""]
        yours = yours.assign(
            form="yours",
            sentence=yours["context"],
            stated="",
        )
        rows = pd.concat([rows, yours], ignore_index=True)
    # 3. The question behind each.
    before = rows["sentence"].str.rstrip(".") + ". "
    return rows.assign(question=before + rows["question"])


def _about_nonsense(questions: Table) -> Table:
    """The true sentence of each question about NONSENSE instead of its subject: as
    `known_contexts`."""
    rows = []
    for question in questions.to_dict("records"):
        subject = re.compile(re.escape(question["object"]), re.IGNORECASE)
        begins = subject.sub(NONSENSE, question["prefix"], count=1)
        truth = question["answers"][0]
        sentence = f"{begins} {truth}"
        rows.append((question["question_id"], "nonsense", sentence, truth))
    return pd.DataFrame(rows, columns=["question_id", "context", "sentence", "stated"])


def year_scores(model: Model, asked: Table) -> Table:
    """`temporal.probe.scored_statements` of facts that held for a time, under three years inside it
    and three on each side, in the model's own prompt format. `subject` of one's own questions is
    the question without a year."""
    embedded = facts.load_temporal_facts()
    embedded = embedded[embedded["fact_id"].isin(asked["fact_id"])]
    table = asked if embedded.empty else embedded  # whose question has no year in it
    if (table["source"] == user_questions.SOURCE).all():
        table = table.assign(question=table["subject"].map(user_questions.continued))
    sampled = dates.sample_dates(table)
    sampled = dates.thinned(sampled, n_correct=3, n_incorrect=3)
    sampled = sampled[sampled["precision"] == "year"]
    sampled = sampled[sampled["label"] != "transitional"]
    return timing.scored_statements(model, timing.statements(table, sampled))


# -- answers -----------------------------------------------------------------------------------------


def marked_answers(
    model: Model,
    asked: Table,
    temperatures: Sequence[float] = (),
    *,
    free: bool = False,
    go_on: bool = False,
) -> Table:
    """Greedy answers in the model's own prompt format, a row a fact in their order, from part 1's
    records where it asked the same.

    Adds to the facts' columns model, prompt, text, token_ids, logprobs (nats a token), logprob
    (their sum), entropy (their mean, 0 to 1), right, t_b and frs. text: what the answer says
    (`endings.answer_text`); to `go_on` a model is asked again where that has not begun
    (`endings.generate_answers`), and `refused` tells what an endpoint's filter let not through.
    right: one of the accepted answers in part 1's few tokens; or, if `free` or `in_sentences`, an
    answer of probe.LONG tokens that states one, since a change of the question makes models answer
    in sentences. entropy, t_b and frs are NaN without temperatures, or if the model cannot be
    tempered; t_b is HIGHEST where nothing breaks it, 0 where it is below one half from the start.
    """
    grid = () if "temper" in model.lacks else temperatures
    is_long = free or in_sentences(model, asked)
    generations, table = _answers(
        model,
        asked,
        grid,
        is_long=is_long,
        go_on=go_on,
    )
    places = [(0, len(generation.logprobs)) for generation in generations]
    curves = {row: found.curve for row, found in enumerate(generations) if found.curve}
    return _with_numbers(table, generations, places, grid, curves)


def in_sentences(model: Model, asked: Table) -> bool:
    """Whether a model may answer in sentences: in a chat, or where the facts have no beginnings of
    answers, as one's own questions."""
    form = FORMATS[model.prompt_format]
    is_bare_chat = form.chat and not form.prefix
    return is_bare_chat or bool((asked["prefix"] == "").any())


def marked_names(model: Model, asked: Table, temperatures: Sequence[float]) -> Table:
    """`marked_answers`, but where models may answer in sentences the numbers of a right answer are
    those of the name in it, after the words before it: "Nairobi" in "The capital of Kenya is
    Nairobi".

    Adds begin and end, the place of the name's tokens among the answer's. Where no place is found
    (token texts are not told), the numbers are NaN and begin is -1.
    """
    if not in_sentences(model, asked):
        table = marked_answers(model, asked, temperatures, go_on=True)
        return table.assign(begin=0, end=table["token_ids"].map(len))
    generations, table = _answers(
        model,
        asked,
        (),
        is_long=True,
        go_on=True,
    )
    # 1. The places of the names.
    places = []
    for found, names, right in zip(
        generations, accepted_answers(asked), table["right"], strict=True
    ):
        whole = 0, len(found.logprobs)
        places.append(name_tokens(found, names) if right else whole)
    table["begin"] = [begin for begin, _ in places]
    table["end"] = [end for _, end in places]
    # 2. Their numbers.
    grid = () if "temper" in model.lacks else temperatures
    placed = table[table["right"] & (table["begin"] >= 0)]
    curves = {}
    if len(grid) and len(placed):
        logs = tempered_names(model, placed, grid).tolist()
        curves = dict(zip(placed.index, logs, strict=True))
    return _with_numbers(table, generations, places, grid, curves)


def tempered_names(
    model: Model,
    answers: Table,
    temperatures: Sequence[float],
    top_p: float | None = None,
) -> NDArray[np.float64]:
    """log P_t of the name in each of the answers of `marked_names`, [row, temperature]: that of the
    answer up to the name's end minus that of the words before it (`Model.temper`)."""

    def upto(rows: Table, place: str) -> NDArray[np.float64]:
        ids = []
        for tokens, n in zip(rows["token_ids"], rows[place], strict=True):
            ids.append(tokens[:n])
        sent = rows["prompt"].tolist()
        return model.temper(sent, ids, temperatures, top_p=top_p).astype(float)

    logs = upto(answers, "end")
    later = answers["begin"].to_numpy() > 0
    if later.any():
        logs[later] -= upto(answers[later], "begin")
    return np.minimum(logs, 0)  # the two are rounded apart


def name_tokens(generation: Generation, names: Sequence[str]) -> tuple[int, int]:
    """The place of the tokens of the first accepted name in an answer, behind a thought or a label;
    (-1, -1) where none is found."""
    lead, rest = endings.split_lead(generation.text, generation.prompt)
    found = name_in(rest, names)
    if found is None or not generation.top_logprobs:
        return -1, -1
    first, last = (len(lead) + place for place in found)
    begin = count_covering(generation, generation.text[:first])
    with_first_letter = count_covering(generation, generation.text[: first + 1])
    if begin and begin == with_first_letter:
        begin -= 1  # a token holds the last sign before the name and its first letter
    end = count_covering(generation, generation.text[:last])
    return (begin, end) if begin < end else (-1, -1)


def name_in(text: str, names: Sequence[str]) -> tuple[int, int] | None:
    """Where the first accepted name stands in a text: the shortest stretch of words and signs that
    ends first and is one of the `names` after normalisation. None if there is none."""
    plurals = [f"{name}s" for name in names]
    wanted = {*map(normalise, [*names, *plurals])} - {""}
    pieces = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
    for last, (_, end) in enumerate(pieces):
        for begin, _ in reversed(pieces[: last + 1]):
            if normalise(text[begin:end]) in wanted:
                return begin, end
    return None


def _answers(
    model: Model,
    asked: Table,
    grid: Sequence[float],
    *,
    is_long: bool,
    go_on: bool,
) -> tuple[list[Generation], Table]:
    """Greedy answers of few tokens, or of probe.LONG; to `go_on` as `endings.generate_answers` gets
    them. And the facts with these answers, and whether they are right."""
    ask = partial(endings.generate_answers, model) if go_on else model.generate
    generations = ask(
        prompts(model, asked),
        max_new_tokens=probe.LONG if is_long else probe.MAX_NEW_TOKENS,
        stop=FORMATS[model.prompt_format].stop,
        temperatures=grid,
    )
    is_right = stated if is_long else exact_match
    rows = []
    for found, names in zip(generations, accepted_answers(asked), strict=True):
        text = endings.answer_text(found.text, found.prompt)
        row = {
            "prompt": found.prompt,
            "text": text,
            "token_ids": found.token_ids,
            "logprobs": found.logprobs,
            "model": model.name,
            "right": is_right(text, names),
        }
        if go_on:
            row["refused"] = found.filtered
        rows.append(row)
    columns = [*ANSWER, "refused"] if go_on else ANSWER
    table = pd.DataFrame(rows, columns=columns)
    return generations, pd.concat([asked.reset_index(drop=True), table], axis=1)


def _with_numbers(
    table: Table,
    generations: Sequence[Generation],
    places: Places,
    grid: Sequence[float],
    curves: Mapping[int, Sequence[float]],
) -> Table:
    """Answers with the logprob of their tokens at these `places`; and, where there are `curves`
    [row] over the `grid`, with the tokens' entropy, t_b and frs."""
    logprobs = []
    entropies = []
    for row, (found, (begin, end)) in enumerate(zip(generations, places, strict=True)):
        has_place = 0 <= begin < end
        logprobs.append(sum(found.logprobs[begin:end]) if has_place else np.nan)
        if row in curves:
            entropies.append(_mean_entropy(found.top_logprobs[begin:end]))
        else:
            entropies.append(np.nan)
    table = table.assign(
        logprob=logprobs,
        entropy=entropies,
        t_b=np.nan,
    )
    if curves:
        breaks = metrics.exact_break(grid, [*curves.values()])
        table.loc[[*curves], "t_b"] = np.nan_to_num(breaks, posinf=HIGHEST)
    table["frs"] = metrics.frs(table["entropy"], table["t_b"], unbroken=None)
    return table


def _mean_entropy(alternatives: Sequence[list[tuple[str, float]]]) -> float:
    """Of tokens with their ten likeliest alternatives; NaN of none."""
    entropies = []
    for each in alternatives:
        entropies.append(top_entropy([logprob for _, logprob in each]))
    return float(np.mean(entropies)) if entropies else np.nan
