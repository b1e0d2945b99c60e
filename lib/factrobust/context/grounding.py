"""Did an answer come from the context? A call for one question or many, with what was retrieved for
it.

    from factrobust import ground, load_model

    model = load_model("gemma-3-270m") ground(model, "What is the capital of Kenya?", ["The capital
    of Kenya is Lima."], swap=True)

The model is asked without the contexts (memory) and with them. `swap=True` exchanges the answer's
words in the contexts, twice, and asks again: an answer that follows came from them
(`rules.swap_source`). Without it words decide: whether the answer changed, and whether the contexts
hold it.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust.context import facts
from factrobust.context.attribution import by_words
from factrobust.context.metrics import perplexity
from factrobust.context.probe import ABOUT, greedy, score_once
from factrobust.context.rules import MONTHS, named, swap_source
from factrobust.datasets.facts import load_facts
from factrobust.draws import hash48
from factrobust.models.interface import Model
from factrobust.text import contains, exact_match, places

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


class Grounded(NamedTuple):
    """What `ground` finds of an answer.

    source: with `swap` one of `rules.CAUSES`; without, by words alone, "context", "both", "memory",
    "moved" or "none". why: what keeps it from being told, or "". p0, p1, p4: perplexities of
    memory's answer, and of the answer without and with the contexts; NaN where a model gives none.
    swapped: the answers to the exchanged contexts.
    """

    memory: str
    answer: str
    source: str
    why: str
    p0: float
    p1: float
    p4: float
    swapped: tuple[str, ...]


def ground(
    model: Model,
    question: str | Sequence[str],
    contexts: str | Sequence[Any],
    answer: str | Sequence[str] | None = None,
    prompt: str | None = None,
    *,
    prefix: str | Sequence[str] = "",
    swap: bool = False,
) -> Any:
    """Tell whether a model's answer came from the contexts: a `Grounded`, or a list for a batch.

    `question` is one, with a context or a list of them, or a list of questions with a list that
    holds for each a context or a list of them. `answer` is one that you have (else the model's own,
    greedy); with `swap` the model's answers to the exchanged contexts are held against it. `prompt`
    is your own, with {question}, and with {contexts} in lines of their own, which memory is asked
    without; `prefix` begins the answer, which small models need.

    Raises ValueError, or TypeError for a model that is not loaded, in one sentence.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model is {model!r}; load it first: ground(load_model(...), ...)")
    is_one = isinstance(question, str)
    # 1. One value for each question.
    questions: list[Any] = [question] if is_one else list(question)
    given = [contexts] if is_one else _each("contexts", contexts, questions)
    texts = [_text(context) for context in given]
    _check(questions, texts)
    prefixes = _each("prefix", prefix, questions)
    asking = _Asking(model, questions, prefixes, prompt)
    # 2. What the model says without the contexts, with them, and with them exchanged.
    memory = asking.answers(None)
    with_contexts = asking.answers(texts)
    if answer is None:
        answers = with_contexts["text"].tolist()
    else:
        answers = _each("answer", answer, questions)
    exchanged = []
    swapped: list[tuple[str, ...]] = [()] * len(questions)
    if swap:
        exchanged = list(map(exchange, texts, answers))
        first = asking.answers([both.texts[0] for both in exchanged])["text"]
        second = asking.answers([both.texts[1] for both in exchanged])["text"]
        swapped = list(zip(first, second, strict=True))
    # 3. Scores and verdicts.
    scored_texts = None if answer is None else answers
    scores = _perplexities(asking, memory, with_contexts, scored_texts).values.tolist()
    words = by_words(memory["text"], answers, texts)
    found = []
    for i, row in enumerate(words.to_dict("records")):
        before = memory["text"][i]
        if not row["says"]:
            source, why = "none", SILENT
        elif swap:
            slots = [exchanged[i].names] if exchanged[i].names else []
            source = swap_source(before, answers[i], swapped[i], slots)
            why = "" if slots else NOT_STATED
        else:
            source = WORDS[row["changed"], row["stated"]]
            why = "" if row["defined"] else AGREES
        p0, p1, p4 = scores[i]
        grounded = Grounded(
            memory=before,
            answer=answers[i],
            source=source,
            why=why,
            p0=p0,
            p1=p1,
            p4=p4,
            swapped=swapped[i],
        )
        found.append(grounded)
    return found[0] if is_one else found


def _check(questions: Sequence[Any], texts: Sequence[str]) -> None:
    """Raise ValueError for an empty question, or one without contexts."""
    for i, (question, text) in enumerate(zip(questions, texts, strict=True)):
        if not text or not isinstance(question, str) or not question.strip():
            what = "question" if text else "contexts"
            raise ValueError(f"{what} {i} is empty or no text; without it an answer has no source")


class _Asking:
    """How a model is asked the questions of one call."""

    def __init__(
        self,
        model: Model,
        questions: Sequence[str],
        prefixes: Sequence[str],
        prompt: str | None,
    ) -> None:
        self.model = model
        self.questions = questions
        self.prompt = prompt
        self.can_score = not {"score", "token_ids"} & set(model.lacks)
        table = pd.DataFrame([dict.fromkeys(ABOUT, "")] * len(questions))
        self.table = table.assign(question=questions, prefix=prefixes)

    def answers(self, contexts: Sequence[str] | None) -> pd.DataFrame:
        """The greedy answers with contexts or without."""
        prompts = None
        if self.prompt is not None:
            prompts = _filled(self.prompt, self.questions, contexts)
        return greedy(
            self.model,
            self.table,
            contexts,
            prompts=prompts,
            scored=self.can_score,
            go_on=True,
        )


def _perplexities(
    asking: _Asking,
    memory: pd.DataFrame,
    given: pd.DataFrame,
    answers: Sequence[str] | None,
) -> pd.DataFrame:
    """p0, p1 and p4 of `Grounded`, [row], for one's own answers or those `given`."""
    table = pd.DataFrame(np.nan, memory.index, ["p0", "p1", "p4"])
    if not asking.can_score:
        return table
    scored: list[Any] = given["token_ids"].map(tuple).tolist()
    if answers is not None:
        scored = [f" {answer}" if answer.strip() else "" for answer in answers]
    table["p0"] = memory["logprobs"].map(perplexity)
    for name, asked in (("p1", memory), ("p4", given)):
        pairs = zip(asked["prompt"], scored, strict=True)
        logprobs = score_once(asking.model, pairs, (memory, given))
        table[name] = list(map(perplexity, logprobs))
    return table


class Exchanged(NamedTuple):
    """Contexts with an answer's words exchanged twice, and the three names; none if it is not
    there."""

    texts: tuple[str, str]
    names: tuple[list[str], ...]


def exchange(context: str, answer: str, others: Sequence[str] = ()) -> Exchanged:
    """Exchange what a context holds of an answer (its text, or its first part) for `others`: by
    default for answers of the same relation where it is an embedded fact's, for other dates, years
    or numbers of as many digits, or for names of the invented world. Where the answer begins with a
    capital, words that do not are left alone ("he may go")."""
    part = re.split(r",(?!\d)|[;:(\[]", answer)[0].strip()
    name = " ".join(named(answer).first)
    for text in filter(None, (answer.strip(), part, name)):
        spans = places(context, text)
        if _has_capital(answer):
            spans = [(start, end) for start, end in spans if _has_capital(context[start:end])]
        if spans:
            one, other = list(others) or _alike(text, context)
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
    pool = facts.facts_as_questions(load_facts())
    is_answer = [exact_match(text, names) for names in pool["answers"]]
    relation = pool.loc[is_answer, "base_id"][:1]
    answers = pool.loc[pool["base_id"].isin(relation), "answers"].str[0].unique()
    alike = [answer for answer in answers if not contains(context, [answer])]
    if len(alike) > 1:
        return sorted(alike, key=lambda answer: hash48(text, answer))[:2]
    return ["Klurmic Jufint", "Zugis Juramar"] if " " in text else ["Klurmic", "Jufint"]


def _shifted(text: str, by: int) -> str:
    """A date or number of the same kind: months 3 and 6 on, years 31 and 62 back, days of a month 9
    and 18 on, other numbers with other digits."""
    for month in re.findall(r"[A-Z][a-z]+", text):
        if month in MONTHS:
            other = MONTHS[(MONTHS.index(month) + 3 * by) % 12]
            text = re.sub(rf"\b{month}\b", f"<{other}>", text)
    is_date = "<" in text
    text = text.replace("<", "").replace(">", "")

    def number(found: re.Match[str]) -> str:
        digits = found[0]
        if len(digits) == 4 and int(digits) in YEARS:
            return str(int(digits) - 31 * by)
        if is_date and int(digits) <= 31:
            return str((int(digits) + 9 * by - 1) % 28 + 1)
        return re.sub(r"\d", lambda d: str((int(d[0]) + 2 * by) % 9 + 1), digits)

    return re.sub(r"\d+", number, text)


def _text(contexts: Any) -> str:
    """One text of a context or several: their sentences one after the other."""
    parts = [contexts] if isinstance(contexts, str) else contexts
    texts = [part.strip() for part in parts if isinstance(part, str)]
    return ". ".join(text.removesuffix(".") for text in texts if text)


def _each(name: str, values: Any, asked: Sequence[str]) -> list[Any]:
    """One value for each question."""
    if isinstance(values, str) and name == "prefix":
        return [values] * len(asked)
    if isinstance(values, str) and name == "answer" and len(asked) == 1:
        return [values]
    if isinstance(values, str) or len(values) != len(asked):
        raise ValueError(f"{name} must be a list with one for each of {len(asked)} questions")
    return list(values)


def _filled(
    prompt: str,
    asked: Sequence[str],
    stated: Sequence[str] | None,
) -> list[str]:
    """One's own prompt for each question; without contexts, its lines with {contexts} are left
    out."""
    lines = prompt.splitlines(keepends=True)
    alone = "".join(line for line in lines if "{contexts}" not in line)
    if "{question}" not in alone or "{contexts}" not in prompt:
        raise ValueError("prompt needs {question}, and {contexts} in a line without the question")
    if stated is None:
        return [alone.replace("{question}", question) for question in asked]
    prompts = []
    for question, contexts in zip(asked, stated, strict=True):
        filled = prompt.replace("{contexts}", contexts)
        prompts.append(filled.replace("{question}", question))
    return prompts
