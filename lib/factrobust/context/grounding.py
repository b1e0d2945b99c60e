"""Did an answer come from the context? A call for one question or many, with what was retrieved for it.

    from factrobust import ground, load_model

    model = load_model("gemma-3-270m")
    ground(model, "What is the capital of Kenya?", ["The capital of Kenya is Lima."], swap=True)

The model is asked without the contexts (memory) and with them. `swap=True` exchanges the answer's words
in the contexts, twice, and asks again: an answer that follows came from them (`rules.swap_source`).
Without it two lines of rules and a logistic regression tell by words and scores (tested in 4.5).
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from factrobust.context import facts
from factrobust.context.attribution import TEXTS, Detector, by_words, probability
from factrobust.context.metrics import perplexity
from factrobust.context.probe import ABOUT, greedy, score_once
from factrobust.context.rules import named, same_answer, states, swap_source
from factrobust.datasets.facts import load_facts
from factrobust.draws import hash48
from factrobust.models.interface import Model
from factrobust.paths import DATA, noted
from factrobust.text import exact_match, places

FILE = DATA / "ground.json"
FITTED = {"texts": TEXTS, "scores": (*TEXTS, "given", "memory", "raised")}  # the detectors in FILE
AGREES = (
    "memory says what the contexts say, so neither words nor scores can tell: ask with swap=True"
)
SILENT = "the answer says nothing"
NOT_STATED = "the contexts do not hold the answer's words, so there is nothing to exchange"
WORDS = {  # by the two-line rule: whether memory says otherwise, and the contexts hold the words
    (True, True): "context", (True, False): "neither", (False, True): "both", (False, False): "memory",
}  # fmt: skip


class Grounded(NamedTuple):
    """What `ground` finds of an answer.

    source: "context", "memory", "both", "neither" or "none" (says nothing), by the exchange if it was
    asked for, else by words. probability: that the answer came from the contexts; None where it is not
    defined, and `why` says so. p0, p1, p4: perplexities of memory's answer, and of the answer without and
    with the contexts; NaN where a model gives none. swapped: the answers to the exchanged contexts.
    """

    memory: str
    answer: str
    source: str
    probability: float | None
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
    others: Sequence[Any] = (),
    detector: Detector | None = None,
) -> Any:
    """Tell whether a model's answer came from the contexts: a `Grounded`, or a list for a batch.

    `question` is one, with a context or a list of them, or a list of questions with a list that holds for
    each a context or a list of them. `answer` is one that you have (else the model's own, greedy); with
    `swap` the model's answers to the exchanged contexts are held against it. `prompt` is your own, with
    {question}, and with {contexts} in lines of their own, which memory is asked without; `prefix` begins
    the answer, which small models need. `others` are two texts that replace the answer in the contexts
    (default: other names, numbers or words of its kind). `detector` is one of your own (`load`,
    `data/fit_ground.py`). An endpoint that tells no probabilities gets a verdict by texts alone.

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
        return greedy(model, table, stated, prompts=prompts, scored=scores, go_on=True)

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
    detector = load("scores" if scores else "texts") if detector is None else detector
    told = probability(found, detector).tolist()
    n, swaps, names = len(asked), None, []
    if swap:
        two_each = _each("others", others, asked) if len(others) and not one else [others] * n
        exchanged = [exchange(*x) for x in zip(texts, answers, two_each, strict=True)]
        asks = [greedily([x.texts[i] for x in exchanged])["text"] for i in range(2)]
        swaps, names = [*zip(*asks, strict=True)], [x.names for x in exchanged]
    each, rows = [], cast(Any, found.itertuples())
    for i, row in enumerate(rows):
        m, a, two = memory["text"][i], answers[i], swaps[i] if swaps else ()
        why = SILENT if not row.says else "" if row.defined else AGREES
        source = WORDS[row.changed, row.stated]
        if swaps:
            source = swap_source(m, a, two, [names[i]] if names[i] else [])
            why = "" if why == AGREES else why or ("" if names[i] else NOT_STATED)
        p = told[i] if row.defined else None
        source = source if row.says else "none"
        each.append(Grounded(m, a, source, p, why, row.p0, row.p1, row.p4, two))
    return each[0] if one else each


class Exchanged(NamedTuple):
    """Contexts with an answer's words exchanged twice, and the three names; none if it is not there."""

    texts: tuple[str, str]
    names: tuple[list[str], ...]


def exchange(context: str, answer: str, others: Sequence[str] = ()) -> Exchanged:
    """Exchange what a context holds of an answer (its text, or its first part) for `others`: by default
    for answers of the same relation where it is an embedded fact's, for numbers of as many digits, or for
    names of the invented world."""
    first = re.split(r",(?!\d)|[;:(\[]", answer)[0].strip()
    for text in filter(None, (answer.strip(), first, " ".join(named(answer).first))):
        if spans := places(context, text):
            two = [*others] or _alike(text, context)
            if len(two) != 2 or same_answer(two[0], two[1]) or text in two:
                raise ValueError(f"others is {two!r}; give two different texts to replace {text!r}")
            texts = [_replaced(context, spans, other) for other in two]
            return Exchanged((texts[0], texts[1]), ([text], [two[0]], [two[1]]))
    return Exchanged((context, context), ())


def _replaced(context: str, spans: Sequence[tuple[int, int]], other: str) -> str:
    """A context with another text in each of these places."""
    for start, end in reversed(spans):
        context = context[:start] + other + context[end:]
    return context


def _alike(text: str, context: str) -> list[str]:
    """Two texts of the kind of one: see `exchange`."""
    if any(c.isdigit() for c in text):
        return [re.sub(r"\d", lambda d: str((int(d[0]) + 2) % 9 + 1), text),
                re.sub(r"\d", lambda d: str((int(d[0]) + 4) % 9 + 1), text)]  # fmt: skip
    pool = facts.facts_as_questions(load_facts())
    own = pool.loc[[exact_match(text, names) for names in pool["answers"]], "base_id"]
    alike = pool.loc[pool["base_id"].isin(own[:1]), "answers"].str[0].unique().tolist()
    alike = [x for x in alike if not states(context, x)]
    invented = ["Klurmic Jufint", "Zugis Juramar"] if " " in text else ["Klurmic", "Jufint"]
    return sorted(alike, key=lambda x: hash48(text, x))[:2] if len(alike) > 1 else invented


def load(name: str = "scores", file: str | Path = FILE) -> Detector:
    """A detector of data/ground.json ("scores", or "texts", which needs no probabilities), or of a file
    that `data/fit_ground.py` wrote for your model."""
    return dict(json.loads(noted(Path(file)).read_text(encoding="utf-8"))["detectors"][name])


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
