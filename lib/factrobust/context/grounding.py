"""Did an answer come from the context? A call for one question or many, with what was retrieved for it.

    from factrobust import ground, load_model

    model = load_model("gemma-3-270m")
    ground(model, "What is the capital of Kenya?", ["The capital of Kenya is Lima."], swap=True)

The model is asked without the contexts (memory) and with them. `swap=True` exchanges the answer's words
in the contexts, twice, and asks again: an answer that follows came from them (`rules.swap_source`).
Without it words decide: whether the answer changed, and whether the contexts hold it.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

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
    (True, True): "context", (True, False): "moved", (False, True): "both", (False, False): "memory",
}  # fmt: skip
YEARS = range(1000, 2030)


class Grounded(NamedTuple):
    """What `ground` finds of an answer.

    source: with `swap` one of `rules.CAUSES`; without, by words alone, "context", "both", "memory",
    "moved" or "none". why: what keeps it from being told, or "". p0, p1, p4: perplexities of memory's
    answer, and of the answer without and with the contexts; NaN where a model gives none. swapped: the
    answers to the exchanged contexts.
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

    `question` is one, with a context or a list of them, or a list of questions with a list that holds for
    each a context or a list of them. `answer` is one that you have (else the model's own, greedy); with
    `swap` the model's answers to the exchanged contexts are held against it. `prompt` is your own, with
    {question}, and with {contexts} in lines of their own, which memory is asked without; `prefix` begins
    the answer, which small models need.

    Raises ValueError, or TypeError for a model that is not loaded, in one sentence.
    """
    if not isinstance(model, Model):
        raise TypeError(f"model is {model!r}; load it first: ground(load_model(...), ...)")
    one = isinstance(question, str)
    asked: list[Any] = [question] if one else list(question)
    texts = [_text(x) for x in ([contexts] if one else _each("contexts", contexts, asked))]
    for i, (q, text) in enumerate(zip(asked, texts, strict=True)):
        if not isinstance(q, str) or not q.strip() or not text:
            what = "question" if text else "contexts"
            raise ValueError(f"{what} {i} is empty or no text; without it an answer has no source")
    table = pd.DataFrame([dict.fromkeys(ABOUT, "")] * len(asked))
    table = table.assign(question=asked, prefix=_each("prefix", prefix, asked))
    scores = not {"score", "token_ids"} & set(model.lacks)

    def greedily(stated: Sequence[str] | None) -> pd.DataFrame:
        prompts = None if prompt is None else _filled(prompt, asked, stated)
        return greedy(
            model,
            table,
            stated,
            prompts=prompts,
            scored=scores,
            go_on=True,
        )

    memory, given = greedily(None), greedily(texts)
    answers = given["text"].tolist() if answer is None else _each("answer", answer, asked)
    found = by_words(memory["text"], answers, texts)
    found[["p0", "p1", "p4"]] = np.nan
    if scores:
        own = [f" {a}" if a.strip() else "" for a in answers]
        said = own if answer is not None else given["token_ids"].map(tuple)
        found["p0"] = memory["logprobs"].map(perplexity)
        for name, at in (("p1", memory), ("p4", given)):
            pairs = zip(at["prompt"], said, strict=True)
            found[name] = list(map(perplexity, score_once(model, pairs, (memory, given))))
    swaps: list[tuple[str, ...]] = [()] * len(asked)
    exchanged = [exchange(*pair) for pair in zip(texts, answers, strict=True)] if swap else []
    if swap:
        asks = [greedily([x.texts[i] for x in exchanged])["text"] for i in range(2)]
        swaps = [*zip(*asks, strict=True)]
    each, rows = [], cast(Any, found.itertuples())
    for i, row in enumerate(rows):
        m, a = memory["text"][i], answers[i]
        if swap:
            slots = [exchanged[i].names] if exchanged[i].names else []
            source, why = swap_source(m, a, swaps[i], slots), "" if slots else NOT_STATED
        else:
            source, why = WORDS[row.changed, row.stated], "" if row.defined else AGREES
        if not row.says:
            source, why = "none", SILENT
        each.append(Grounded(m, a, source, why, row.p0, row.p1, row.p4, swaps[i]))
    return each[0] if one else each


class Exchanged(NamedTuple):
    """Contexts with an answer's words exchanged twice, and the three names; none if it is not there."""

    texts: tuple[str, str]
    names: tuple[list[str], ...]


def exchange(context: str, answer: str, others: Sequence[str] = ()) -> Exchanged:
    """Exchange what a context holds of an answer (its text, or its first part) for `others`: by default
    for answers of the same relation where it is an embedded fact's, for other dates, years or numbers of
    as many digits, or for names of the invented world. Where the answer begins with a capital, words
    that do not are left alone ("he may go")."""
    first = re.split(r",(?!\d)|[;:(\[]", answer)[0].strip()
    for text in filter(None, (answer.strip(), first, " ".join(named(answer).first))):
        spans = places(context, text)
        if _capital(answer):
            spans = [(start, end) for start, end in spans if _capital(context[start:end])]
        if spans:
            two = [*others] or _alike(text, context)
            texts = [_replaced(context, spans, other) for other in two]
            return Exchanged((texts[0], texts[1]), ([text], [two[0]], [two[1]]))
    return Exchanged((context, context), ())


def _capital(text: str) -> bool:
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
    own = pool.loc[[exact_match(text, names) for names in pool["answers"]], "base_id"]
    alike = pool.loc[pool["base_id"].isin(own[:1]), "answers"].str[0].unique().tolist()
    alike = [x for x in alike if not contains(context, [x])]
    invented = ["Klurmic Jufint", "Zugis Juramar"] if " " in text else ["Klurmic", "Jufint"]
    return sorted(alike, key=lambda x: hash48(text, x))[:2] if len(alike) > 1 else invented


def _shifted(text: str, by: int) -> str:
    """A date or number of the same kind: months 3 and 6 on, years 31 and 62 back, days of a month 9 and
    18 on, other numbers with other digits."""
    for month in re.findall(r"[A-Z][a-z]+", text):
        if month in MONTHS:
            other = MONTHS[(MONTHS.index(month) + 3 * by) % 12]
            text = re.sub(rf"\b{month}\b", f"<{other}>", text)
    dated = "<" in text
    text = text.replace("<", "").replace(">", "")

    def number(found: re.Match[str]) -> str:
        digits = found[0]
        if len(digits) == 4 and int(digits) in YEARS:
            return str(int(digits) - 31 * by)
        if dated and int(digits) <= 31:
            return str((int(digits) + 9 * by - 1) % 28 + 1)
        return re.sub(r"\d", lambda d: str((int(d[0]) + 2 * by) % 9 + 1), digits)

    return re.sub(r"\d+", number, text)


def _text(contexts: Any) -> str:
    """One text of a context or several: their sentences one after the other."""
    parts = [contexts] if isinstance(contexts, str) else [x for x in contexts if isinstance(x, str)]
    return ". ".join(x.strip().removesuffix(".") for x in parts if x.strip())


def _each(name: str, values: Any, asked: Sequence[str]) -> list[Any]:
    """One value for each question."""
    if name != "contexts" and isinstance(values, str):
        values = [values] * len(asked) if name == "prefix" or len(asked) == 1 else values
    if isinstance(values, str) or len(values) != len(asked):
        raise ValueError(f"{name} must be a list with one for each of {len(asked)} questions")
    return list(values)


def _filled(prompt: str, asked: Sequence[str], stated: Sequence[str] | None) -> list[str]:
    """One's own prompt for each question; without contexts, its lines with {contexts} are left out."""
    lines = prompt.splitlines(keepends=True)
    alone = "".join(line for line in lines if "{contexts}" not in line)
    if "{question}" not in alone or "{contexts}" not in prompt:
        raise ValueError("prompt needs {question}, and {contexts} in a line without the question")
    told = [alone if stated is None else prompt.replace("{contexts}", x) for x in stated or asked]
    return [text.replace("{question}", q) for text, q in zip(told, asked, strict=True)]
