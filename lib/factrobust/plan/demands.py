"""What the notebooks ask of a model: how many calls of which operation, and of how many tokens.

A call is what the records keep under one key: an answer, an answer to score, the samples at one
temperature. The rules below follow the notebooks; a change of what one asks is a change here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from factrobust.datasets.named import EMBEDDED
from factrobust.models import weights
from factrobust.models.endpoint import is_endpoint, read_endpoint
from factrobust.models.load import settings_of
from factrobust.models.prompts import FORMATS
from factrobust.plan import questions
from factrobust.plan.questions import Texts
from factrobust.probes import context, decoding
from factrobust.probes.context import KINDS
from factrobust.probes.wording import paper_format

# Both embedded models need 3.1 (dates) to 4.8 (chat) in the notebooks' prompts.
CHARACTERS_A_TOKEN = 3.7
# What stands around a user's message: that of one small model, for all.
CHAT = weights.EMBEDDED["smollm2-135m-instruct"].chat or ("", "")


@dataclass(frozen=True)
class Asked:
    """A model as far as what it is asked depends on it; `lacks` as for `models.interface.Model`."""

    name: str
    prompt_format: str
    chat: bool
    lacks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Demand:
    """Calls that are alike: their number, and their tokens on average.

    `what` names the questions: several notebooks that ask the same ask it once. A call reads a
    prompt of `prompt` tokens, of which the first `shared` are those of all prompts, and makes or
    scores `samples` answers of `answer` tokens (at most). The calls of one prompt, `calls / prompts`
    of them, share its computation.
    """

    what: str
    operation: str
    calls: float
    prompts: float
    prompt: float
    shared: float
    answer: float
    samples: int = 1

    @property
    def tokens(self) -> float:
        """Prompts and answers, each call by itself: what an endpoint counts."""
        return self.calls * (self.prompt + self.samples * self.answer)


def asked_model(name: str) -> Asked:
    """How a model is asked by default; one that is neither known nor an endpoint counts as two-shot.

    Raises ModelError for an endpoint's line that cannot be read.
    """
    if is_endpoint(name):
        address = read_endpoint(name)
        return Asked(name, address.format, address.chat is not None, frozenset(address.lacks))
    settings = settings_of(name)
    if settings is None:
        return Asked(name, "two-shot", False)
    return Asked(name, settings.prompt_format, settings.chat_template != "no")


def merged(demands: Iterable[Demand]) -> list[Demand]:
    """Demands without those that a larger one on the same questions contains.

    Samples of data are nested: of two limits the larger one keeps all that the smaller keeps.
    """
    largest: dict[tuple[str, str], Demand] = {}
    for demand in demands:
        key = demand.what, demand.operation
        if key not in largest or demand.calls > largest[key].calls:
            largest[key] = demand
    return [demand for demand in largest.values() if demand.calls]


def demands(
    notebook: str, values: Mapping[str, Any], model: Asked, known: float
) -> list[Demand] | None:
    """What a notebook ("1-decoding/1.2-temperature.ipynb") with these parameters asks of the model.

    `known` is the share of part 1's facts that the model is taken to know. None for a notebook of
    which nothing is known here. Raises UnknownSize for data whose size is not known.
    """
    number = notebook.rpartition("/")[2].partition("-")[0]
    rule = RULES.get(number)
    if rule is None:
        return None
    return [d for d in rule(number, values, model, known) if d.operation not in model.lacks]


def _decoding(
    number: str, values: Mapping[str, Any], model: Asked, known: float
) -> Iterator[Demand]:
    if number in ("1.5", "1.6") and "temper" in model.lacks:
        return
    data = tuple(values.get("data", [EMBEDDED]))
    domains = questions.decoding_facts(data, values["n_questions"])
    facts = _pooled(domains)
    what = f"{data} {values['seed']}"
    lengths = _prompt(model.prompt_format, facts)
    yield Demand(what, "generate", facts.n, facts.n, *lengths, decoding.MAX_NEW_TOKENS)
    if number in ("1.2", "1.3", "1.4", "1.6"):
        n = sum(min(values["n_known"], round(known * part.n)) for part in domains)
        times, samples = len(decoding.TEMPERATURES), values["n_samples"]
        sampled = f"{what} {samples}"
        longest = decoding.MAX_NEW_TOKENS
        yield Demand(sampled, "sample", n * times, n, *lengths, longest, samples)
    if number in ("1.3", "1.4", "1.5", "1.6"):
        n = round(known * facts.n)
        yield Demand(what, "temper", n, n, *lengths, _tokens(facts.answer))


def _time(number: str, values: Mapping[str, Any], model: Asked, known: float) -> Iterator[Demand]:
    data = values.get("data", EMBEDDED)
    thinned = values["n_correct"], values["n_incorrect"], values["seed"]

    def scored(what: str, texts: Texts, form: str = "question") -> Demand:
        what = f"{data} {thinned} {what}"
        lengths = _prompt(form, texts)
        return Demand(what, "score", texts.n, texts.n, *lengths, _tokens(texts.answer + 1))

    if number in ("2.4", "2.5"):
        other = {"2.4": "chat", "2.5": "dated-few-shot"}[number]
        if number == "2.4" and not model.chat:
            return
        few = questions.dated(data, values["n_formats"], *thinned)
        yield scored("question", few)
        yield scored(other, few, other)
        return
    yield scored("question", questions.dated(data, values["n_facts"], *thinned))
    if number == "2.7":
        dense = values["n_dense"], values["n_years"]
        yield scored("years", questions.dense_years(data, values["n_facts"], *thinned, *dense))
        if model.name == values["models"][0]:
            yield scored("bfloat16", questions.dated(data, values["n_dtype"], *thinned))


def _wording(
    number: str, values: Mapping[str, Any], model: Asked, known: float
) -> Iterator[Demand]:
    data = values.get("data", EMBEDDED)
    texts, facts = questions.paraphrases(data, values["n_facts"], values["seed"])
    longest, samples = values["max_new_tokens"], values["n_samples"]
    what = f"{data} {values['seed']} {longest}"
    lengths = _prompt(paper_format(model.prompt_format, model.chat), texts)
    yield Demand(what, "generate", texts.n, texts.n, *lengths, longest)
    if number in ("3.3", "3.4"):
        yield Demand(f"{what} {samples}", "sample", facts, facts, *lengths, longest, samples)


def _context(
    number: str, values: Mapping[str, Any], model: Asked, known: float
) -> Iterator[Demand]:
    if "token_ids" in model.lacks:
        return
    form = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"

    def asked(what: str, operation: str, texts: Texts, times: int, stated: bool) -> Demand:
        around = float(len("Q:  A:"))
        if stated:
            around += len("Context: [ ]. ") + texts.prefix + texts.answer
        lengths = _prompt(form, texts._replace(question=texts.question + around))
        longest = context.MAX_NEW_TOKENS
        answer = longest if operation == "generate" else _tokens(texts.answer)
        calls = times * texts.n
        return Demand(f"{what} {values['seed']}", operation, calls, calls, *lengths, answer)

    if number != "4.6":
        texts = questions.context_questions(values["n_objects"], values["seed"])
        yield asked("questions", "generate", texts, 1, False)
        yield asked("questions in context", "generate", texts, 1, True)
        # P1; then P2 or P3, for one of them is told by the answer in context where that is p or q.
        yield asked("questions", "score", texts, 1, False)
        yield asked("questions in context", "score", texts, 1, True)
    if number in ("4.5", "4.6"):
        texts = questions.context_facts(values["n_facts"], values["seed"])
        yield asked("facts", "generate", texts, 1, False)
        yield asked("facts in context", "generate", texts, len(KINDS), True)


RULES: dict[str, Callable[[str, Mapping[str, Any], Asked, float], Iterator[Demand]]] = {
    **dict.fromkeys(("1.1", "1.2", "1.3", "1.4", "1.5", "1.6"), _decoding),
    **dict.fromkeys(("2.2", "2.3", "2.4", "2.5", "2.6", "2.7"), _time),
    **dict.fromkeys(("3.2", "3.3", "3.4"), _wording),
    **dict.fromkeys(("4.2", "4.3", "4.4", "4.5", "4.6"), _context),
}


def _pooled(parts: Iterable[Texts]) -> Texts:
    """All together, with mean lengths."""
    rows = [part for part in parts if part.n]
    n = sum(part.n for part in rows)
    means = (sum(part[i] * part.n for part in rows) / n for i in (1, 2, 3))
    return Texts(n, *means)


def _prompt(form: str, texts: Texts) -> tuple[float, float]:
    """Tokens of a prompt, and of the beginning that all have in common."""
    f = FORMATS[form]
    head, tail = CHAT if f.chat else ("", "")
    before = len(head + f.before)
    rest = texts.question + len(f.after + tail) + (texts.prefix if f.prefix else 0)
    return _tokens(before + rest), _tokens(before)


def _tokens(characters: float) -> float:
    return characters / CHARACTERS_A_TOKEN
