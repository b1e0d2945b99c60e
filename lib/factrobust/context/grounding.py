"""Did an answer come from the context? A call for a question with what was retrieved for it.

    from factrobust import ground, load_model

    model = load_model("gemma-3-270m")
    ground(model, "What is the capital of Kenya?", ["The capital of Kenya is Lima."], swap=True)

The model is asked without the contexts (memory) and with them. `swap=True` exchanges the answer's
words in the contexts, twice, and asks again: an answer that follows came from them
(`rules.swap_source`). Without it words decide: whether the answer changed, and whether the contexts
hold it.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import pandas as pd

from factrobust.context.attribution import by_words
from factrobust.context.metrics import perplexity
from factrobust.context.probe import ABOUT, answer_questions
from factrobust.context.rules import MONTHS, named, swap_source
from factrobust.datasets.facts import accepted_answers as accepted
from factrobust.datasets.facts import load_facts
from factrobust.draws import hash48
from factrobust.models.interface import Model
from factrobust.text import answer_spans, contains, exact_match

AGREES = "memory says what the contexts say, so words cannot tell: ask with swap=True"
SILENT = "the answer says nothing"
NOT_STATED = "the contexts do not hold the answer's words, so there is nothing to exchange"
WORDS = {  # whether memory says otherwise, and the contexts hold the words
    (True, True): "context",
    (True, False): "moved",
    (False, True): "both",
    (False, False): "memory",
}
YEARS = range(1000, 2030)
PARTS = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b|\d+")  # of a date or number


class Grounded(NamedTuple):
    """What `ground` finds of an answer.

    source: with `swap` one of `rules.CAUSES`; without, by words alone, "context", "both", "memory",
    "moved" or "none". why: what keeps it from being told, or "". p4: its perplexity with the
    contexts, the lower the more it is expected there; NaN where a model gives none. swapped: the
    answers to the exchanged contexts.
    """

    memory: str
    answer: str
    source: str
    why: str
    p4: float
    swapped: tuple[str, ...]


def ground(
    model: Model,
    question: str,
    contexts: str | Sequence[str],
    answer: str | None = None,
    prompt: str | None = None,
    *,
    prefix: str = "",
    swap: bool = False,
) -> Grounded:
    """Tell whether a model's answer to a question came from a context, or a list of them.

    `answer` is one that you have (else the model's own, greedy); with `swap` the model's answers to
    the exchanged contexts are held against it. `prompt` is your own, with {question}, and with
    {contexts} in lines of their own, which memory is asked without; `prefix` begins the answer,
    which small models need.

    Raises ValueError, or TypeError for a model that is not loaded, in one sentence.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model is {model!r}; load it first: ground(load_model(...), ...)")
    context = _text(contexts)
    for name, given in (("question", question), ("contexts", context)):
        if not isinstance(given, str) or not given.strip():
            raise ValueError(f"{name} is empty or no text; give one question, and contexts for it")
    table = pd.DataFrame([dict.fromkeys(ABOUT, "") | {"question": question, "prefix": prefix}])
    can_score = not {"score", "token_ids"} & set(model.lacks)

    def answer_to(context: str | None) -> pd.Series:
        contexts = None if context is None else [context]
        prompts = None if prompt is None else [_filled(prompt, question, context)]
        answers = answer_questions(
            model,
            table,
            contexts,
            prompts=prompts,
            scored=can_score,
            go_on=True,
        )
        return answers.iloc[0]

    # 1. What the model says without the contexts, and with them.
    memory = answer_to(None)["text"]
    contextual = answer_to(context)
    logprobs = contextual["logprobs"]
    if answer is None:
        answer = contextual["text"]
    elif can_score and answer.strip():
        [scores] = model.score([contextual["prompt"]], [f" {answer}"])
        logprobs = scores.tolist()
    else:
        logprobs = []
    # 2. What it says to the exchanged contexts.
    swapped: tuple[str, ...] = ()
    slots: list[tuple[list[str], ...]] = []
    if swap:
        exchanged = exchange(context, answer)
        swapped = tuple(answer_to(text)["text"] for text in exchanged.texts)
        slots = [exchanged.names] if exchanged.names else []
    # 3. Where the answer came from.
    words = by_words([memory], [answer], [context]).iloc[0]
    if not words["says"]:
        source, why = "none", SILENT
    elif swap:
        source = swap_source(memory, answer, swapped, slots)
        why = "" if slots else NOT_STATED
    else:
        source = WORDS[words["changed"], words["stated"]]
        why = "" if words["defined"] else AGREES
    return Grounded(memory, answer, source, why, perplexity(logprobs), swapped)


class Exchanged(NamedTuple):
    """Contexts with an answer's words exchanged twice, and the three names; none if it is not
    there."""

    texts: tuple[str, str]
    names: tuple[list[str], ...]


def exchange(context: str, answer: str) -> Exchanged:
    """Exchange what a context holds of an answer (its text, or its first part): for answers of the
    same relation where it is an embedded fact's, for other dates, years or numbers of as many
    digits, or for names of the invented world. Where the answer begins with a capital, words that
    do not are left alone ("he may go")."""
    part = re.split(r",(?!\d)|[;:(\[]", answer)[0].strip()
    name = " ".join(named(answer).first)
    for text in filter(None, (answer.strip(), part, name)):
        spans = answer_spans(context, text)
        if _has_capital(answer):
            spans = [(start, end) for start, end in spans if _has_capital(context[start:end])]
        if spans:
            one, other = _alike(text, context)
            texts = (_replaced(context, spans, one), _replaced(context, spans, other))
            return Exchanged(texts, ([text], [one], [other]))
    return Exchanged((context, context), ())


def _has_capital(text: str) -> bool:
    return any(c.isupper() for c in text)


def _replaced(context: str, spans: Sequence[tuple[int, int]], other: str) -> str:
    """A context with another text in each of these places."""
    for start, end in reversed(spans):
        context = context[:start] + other + context[end:]
    return context


def _alike(text: str, context: str) -> list[str]:
    """Two texts of the kind of one: see `exchange`."""
    if any(c.isdigit() for c in text) or text in MONTHS:
        return [_shifted(text, by) for by in (1, 2)]
    facts = load_facts()
    is_answer = [exact_match(text, names) for names in accepted(facts)]
    relation = facts.loc[is_answer, "relation"][:1]
    objects = facts.loc[facts["relation"].isin(relation), "object"].unique()
    alike = [name for name in objects if not contains(context, [name])]
    if len(alike) > 1:
        return sorted(alike, key=lambda answer: hash48(text, answer))[:2]
    return ["Klurmic Jufint", "Zugis Juramar"] if " " in text else ["Klurmic", "Jufint"]


def _shifted(text: str, by: int) -> str:
    """A date or number of the same kind: months 3 and 6 on, years 31 and 62 back, days of a month 9
    and 18 on, other numbers with other digits."""
    is_date = not {*PARTS.findall(text)}.isdisjoint(MONTHS)

    def other(found: re.Match[str]) -> str:
        part = found[0]
        if part in MONTHS:
            return MONTHS[(MONTHS.index(part) + 3 * by) % 12]
        if len(part) == 4 and int(part) in YEARS:
            return str(int(part) - 31 * by)
        if is_date and int(part) <= 31:
            day = int(part) + 9 * by
            return str((day - 1) % 28 + 1)
        digits = [int(digit) + 2 * by for digit in part]
        return "".join(str(digit % 9 + 1) for digit in digits)

    return PARTS.sub(other, text)


def _text(contexts: str | Sequence[str]) -> str:
    """One text of a context or several: their sentences one after the other."""
    parts = [contexts] if isinstance(contexts, str) else contexts
    texts = [part.strip() for part in parts if isinstance(part, str)]
    return ". ".join(text.removesuffix(".") for text in texts if text)


def _filled(prompt: str, question: str, context: str | None) -> str:
    """One's own prompt; without a context, its lines with {contexts} are left out."""
    lines = prompt.splitlines(keepends=True)
    alone = "".join(line for line in lines if "{contexts}" not in line)
    if "{question}" not in alone or "{contexts}" not in prompt:
        raise ValueError("prompt needs {question}, and {contexts} in a line without the question")
    filled = alone if context is None else prompt.replace("{contexts}", context)
    return filled.replace("{question}", question)
