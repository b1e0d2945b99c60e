"""What a profile asks of each model, and about what it costs; no model is loaded or looked up.

    python -m factrobust.reproduce.plan --profile paper --tflops 200

A call is what the records keep: an answer, an answer to score, the samples at one temperature. What
a part asks follows from its parameters and from the sizes of its data (data/sizes.csv). Answers count with as many
tokens as they may have; sentence encoders and NLI models do not count. Hours are those of one
device that holds the model, or of several that hold a part each and take turns.
"""

import argparse
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from tabulate import tabulate

from factrobust.models.endpoint import read_endpoint
from factrobust.models.load import Settings, settings_of
from factrobust.models.prompts import FORMATS
from factrobust.paths import DATA, ROOT
from factrobust.reproduce.profiles import LAPTOP, declared_parameters, parameters
from factrobust.time.dates import GRID
from factrobust.time.facts import load_successions, moments

OPERATIONS = ("generate", "sample", "score", "temper")
CHARACTERS_A_TOKEN = 3.7  # both embedded models need 3.1 (dates) to 4.8 (chat) in these prompts
CHAT = (115, 33)  # characters that a small model's template puts before and after a message
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}
# What is achieved, not promised: TFLOP/s and GB of memory a second. Two cores of a laptop, in
# float32; about a third of the peak of an A100 with 80 GB.
CPU, GPU = (0.15, 15.0), (100.0, 1000.0)
KNOWN = 0.4  # share of part 1's facts that models know: the embedded ones 0.30 and 0.39
# Share of a fact's incorrect dates that balanced ones keep: the embedded facts' 0.49.
BALANCED = 0.5

# A row a domain of a set: its facts, the mean characters of a question, its prefix and its answer, the
# dates of a fact at a precision, and how many `wordings` all its questions have.
SIZES = pd.read_csv(DATA / "sizes.csv")


class Asked(NamedTuple):
    """A model as far as what it is asked depends on it; `lacks` as for `models.interface.Model`."""

    name: str
    prompt_format: str = "two-shot"
    chat: bool = False
    lacks: frozenset[str] = frozenset()


class Demand(NamedTuple):
    """Calls that are alike: their number, and their tokens on average.

    A prompt has `prompt` tokens, of which the first `shared` are those of all prompts, and `answers`
    of `answer` tokens (at most) in `calls / prompts` calls, which share its keys.
    """

    operation: str
    calls: float
    prompts: float
    prompt: float
    shared: float
    answer: float
    answers: float = 1

    @property
    def tokens(self) -> float:
        """Prompts and answers, each call by itself: what an endpoint counts."""
        return self.calls * self.prompt + self.prompts * self.answers * self.answer


def asked_model(model: str | Mapping[str, Any]) -> Asked:
    """How a model is asked by default; ModelError for an endpoint that cannot be read."""
    if isinstance(model, Mapping):
        endpoint = read_endpoint(model)
        chat = endpoint.chat is not None
        return Asked(endpoint.name, endpoint.format, chat, frozenset(endpoint.lacks))
    if settings := settings_of(model):
        return Asked(model, settings.prompt_format, settings.chat_template != "no")
    return Asked(model)


def demands(part: str, values: Mapping[str, Any], model: Asked) -> list[Demand]:
    """What a part ("1-decoding") with these parameters asks of the model; ValueError for data whose
    size is not known. A parameter of a notebook that does not run is missing, and counts as 0.
    """
    rule = {"1": _decoding, "2": _time, "3": _wording, "4": _context}.get(part[0])
    found = rule(defaultdict(int, values), model) if rule else []
    return [demand for demand in found if demand.calls and demand.operation not in model.lacks]


def _decoding(v: Mapping[str, Any], model: Asked) -> Iterator[Demand]:
    domains = sorted((d for name in v["data"] for d in _sizes(name, 1)), key=lambda d: d.facts)
    left = float(v["n_questions"])
    for rank, domain in enumerate(domains):  # from each the same number, as far as they go
        n = min(domain.facts, left / (len(domains) - rank))
        left -= n
        yield _demand("generate", n, model.prompt_format, domain, 5)
        some = min(v["n_known"], KNOWN * n)
        sampled = _demand("sample", some, model.prompt_format, domain, 5)
        # At ten temperatures.
        yield sampled._replace(calls=10 * some, answers=10 * v["n_samples"])
        answer = domain.answer / CHARACTERS_A_TOKEN
        yield _demand("temper", KNOWN * n, model.prompt_format, domain, answer)


def _time(v: Mapping[str, Any], model: Asked) -> Iterator[Demand]:
    [size] = _sizes(v["data"] or "embedded", 2)  # notebooks without data ask none of it

    def scored(
        facts: float, dates: float, form: str = "question", others: float = 0, of: Any = size
    ) -> Demand:
        n, answer = min(facts, of.facts) * dates, (of.answer + 1) / CHARACTERS_A_TOKEN
        single = _demand("score", n, form, of, answer)
        return single._replace(calls=n * (1 + others), answers=1 + others)

    both = 2 * v["n_incorrect"]  # sides
    few, drawn = min(both, BALANCED * size.incorrect), min(both, size.incorrect)
    tested = min(v["n_correct"], size.correct) + few  # at a precision
    dates = tested + size.transitional
    yield scored(v["n_facts"], tested, others=v["n_others"])  # years
    yield scored(v["n_fine"], size.transitional, others=v["n_others"])
    yield scored(max(v["n_fine"], v["n_formats"]), 2 * dates)
    yield scored(v["n_formats"], 3 * dates, "dated-few-shot")
    if model.chat:
        yield scored(v["n_formats"], 3 * dates, "chat")
    # As the paper samples them: years that are incorrect, but were not asked balanced.
    yield scored(v["n_fine"], drawn * (1 - few / size.incorrect))
    yield scored(v["n_decoded"], len(GRID), others=v["n_others"])
    if model.name in v["models"][:1]:  # the others in their own dtype alone
        yield scored(v["n_dtype"], dates)
    if v["n_moments"]:  # every holder of an office after each question, and once without a year
        terms = load_successions(offices=v["offices"] or [])
        years = moments(terms, v["n_moments"])
        holders = years["chain"].map(terms["chain"].value_counts())
        texts = {"question": terms["question"] + "In 2000, ", "answer": terms["holder"]}
        means = {name: column.str.len().mean() for name, column in texts.items()}
        office = size._replace(facts=len(terms), **means)
        yield scored(len(years), 1, others=holders.mean() - 1, of=office)
        yield scored(terms["chain"].isin(years["chain"]).sum(), 1, of=office)


def _wording(v: Mapping[str, Any], model: Asked) -> Iterator[Demand]:
    [size] = _sizes(v["data"], 3)
    n, longest = min(v["n_facts"], size.facts), v["max_new_tokens"]
    bare = "question" if model.prompt_format == "question" else "question-answer"
    form = "chat" if model.chat else bare
    for used in dict.fromkeys([form, bare]):  # notebook 3.5 asks a tuned model as others, too
        yield _demand("generate", n * size.wordings / size.facts, used, size, longest)
    yield _demand("sample", n, form, size, longest)._replace(answers=v["n_samples"])


def _context(v: Mapping[str, Any], model: Asked) -> Iterator[Demand]:
    if "token_ids" in model.lacks:
        return
    form = "chat-prefix" if FORMATS[model.prompt_format].chat else "prefix"
    world = "world" in (v["data"], v["questions"])
    facts, thesis, n_base = ("world", "world", 4) if world else ("facts", "thesis", 100)
    kinds = (  # with contexts a question: true, irrelevant and false; and those of known facts
        (thesis, n_base * v["n_objects"], 1),
        (facts, v["n_facts"], 3),
        (facts, v["n_asked"], KNOWN * v["n_contexts"]),
    )
    for name, wanted, contexts in kinds:
        [size] = _sizes(name, 4)
        n = min(wanted, size.facts)
        plain = size._replace(question=len("Q:  A:") + size.question)
        more = len("Context: [ ]. ") + size.prefix + size.answer
        stated = plain._replace(question=plain.question + more)
        yield _demand("generate", n, form, plain, 20)
        yield _demand("generate", contexts * n, form, stated, 20)
        # P1, then P2 or P3: one of them is told by the answer in context.
        yield _demand("score", n, form, plain, size.answer / CHARACTERS_A_TOKEN)
        yield _demand("score", contexts * n, form, stated, size.answer / CHARACTERS_A_TOKEN)


def _demand(operation: str, n: float, form: str, size: Any, answer: float) -> Demand:
    f = FORMATS[form]
    head, tail = CHAT if f.chat else (0, 0)
    shared = (head + len(f.before)) / CHARACTERS_A_TOKEN
    rest = size.question + len(f.after) + tail + (size.prefix if f.prefix else 0)
    return Demand(operation, n, n, shared + rest / CHARACTERS_A_TOKEN, shared, answer)


def _sizes(name: str, part: int) -> list[Any]:
    """Rows of SIZES of a data set, whose name may go on with @revision or :file; of a CSV in part 1,
    one of its own number of facts."""
    of_part = SIZES[SIZES["part"] == part]
    base = re.split("[@:]", name)[0]
    rows = of_part[of_part["set"] == base]
    if part == 1 and name.endswith(".csv"):
        rows = of_part[:1].assign(facts=len(pd.read_csv(name)))
    if rows.empty:
        raise ValueError(
            f"The size of {name!r} is not known (part {part}): plan with "
            f"{', '.join(of_part['set'].unique())}, or a CSV in part 1."
        )
    return list(rows.itertuples())


def cost(
    demand: Demand, settings: Settings, tflops: float, bandwidth: float
) -> tuple[float, float]:
    """Bytes at the peak, and seconds on one device: arithmetic on round numbers.

    As the engine works: prompts in batches under a token budget, what all share read once, a pass a
    generated token for the whole batch. A pass takes what is slowest of its arithmetic, fetching the
    weights, and Python's millisecond a layer. An encoder and a decoder are half a model each, and
    every answer has a copy of its prompt there. Left out are attention itself (prompts are short),
    logits and other intermediate values, and loading.
    """
    generates = demand.operation in ("generate", "sample")
    two_parts = settings.architecture == "encoder-decoder"
    copies = demand.answers if two_parts else 1
    read = demand.prompt - (0 if two_parts else demand.shared)
    written = demand.answers * demand.answer
    in_a_pass = read * copies + (demand.answers if generates else written)
    rows = min(demand.prompts, max(settings.tokens_per_batch // in_a_pass, 1))
    batches = math.ceil(demand.prompts / rows)

    bytes_each = BYTES[settings.dtype]
    weights = settings.parameters * bytes_each
    keys = 2 * settings.layers * settings.key_value_heads * settings.head_size * bytes_each
    memory = weights + rows * (demand.prompt * copies + written) * keys

    head = settings.vocabulary * settings.width
    embeddings = head * (1 if settings.tied == "yes" else 2)
    body = (settings.parameters - embeddings) / (1 + two_parts)
    a_pass = max(weights / (bandwidth * 1e9), settings.layers * 1e-3)
    a_token = 2 * demand.prompts / (tflops * 1e12)  # of each prompt, a parameter
    reading = max(a_token * body * read, batches * a_pass)
    passes = batches * (demand.answer - 1) if generates else 0
    return memory, reading + max(a_token * (body + head) * written, passes * a_pass)


def collect(root: Path, profile: str) -> dict[tuple[str, str], list[Demand]]:
    """What the profile asks of each model in each part. Notebooks that share a parameter share its
    calls. Raises ValueError and its kind for a profile or data that cannot be planned."""
    merged: dict[tuple[str, Asked], dict[str, Any]] = defaultdict(dict)
    for notebook, overrides in parameters(root, profile).items():
        values = declared_parameters(root / notebook) | overrides
        for model in values.get("models", ()):
            together = merged[notebook.split("/")[1], asked_model(model)]
            for key, value in values.items():
                larger = isinstance(value, int) and value < together.get(key, value)
                together[key] = together[key] if larger else value
    by_part = sorted(merged.items(), key=lambda item: item[0][0])
    return {(part, m.name): demands(part, values, m) for (part, m), values in by_part}


def as_table(
    wanted: Mapping[tuple[str, str], Sequence[Demand]], tflops: float, bandwidth: float
) -> str:
    """A table, a line a part and model, and the sum; memory and hours where sizes are known."""
    rows: list[list[Any]] = []
    for (part, name), demanded in wanted.items():
        calls = [sum(d.calls for d in demanded if d.operation == op) for op in OPERATIONS]
        row = [part, name, *calls, sum(d.tokens for d in demanded) / 1e6, None, None]
        if (settings := settings_of(name)) and settings.sized:
            costs = [cost(demand, settings, tflops, bandwidth) for demand in demanded]
            peaks, seconds = zip((0.0, 0.0), *costs, strict=True)
            row[-2:] = sum(seconds) / 3600, max(peaks) / 1e9
        rows.append(row)
    sums = [sum(row[i] or 0 for row in rows) for i in range(2, len(OPERATIONS) + 4)]
    rows.append(["all", "", *sums, ""])
    headers = ["part", "model", *OPERATIONS, "M tokens", "hours", "GB memory"]
    digits = ("", "", *[",.0f"] * len(OPERATIONS), ",.1f", ".2g", ".1f")
    look: dict[str, Any] = {"intfmt": ",", "numalign": "right", "missingval": "unknown"}
    return tabulate(rows, headers, "plain", floatfmt=digits, **look)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Command line. Exit status: 0, or 2 for a bad request."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--profile", default=LAPTOP, help="a file of that name in profiles/")
    parser.add_argument("--tflops", type=float, help="10^12 operations a second, achieved")
    parser.add_argument("--bandwidth", type=float, help="10^9 bytes of memory a second, achieved")
    options = parser.parse_args(arguments)
    usual = CPU if options.profile in (LAPTOP, "smoke") else GPU
    tflops, bandwidth = options.tflops or usual[0], options.bandwidth or usual[1]
    try:
        table = as_table(collect(root, options.profile), tflops, bandwidth)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"What the profile {options.profile} asks, estimated without loading anything\n\n{table}")
    print(
        f"\nAssumed: {tflops:g} TFLOP/s and {bandwidth:g} GB of memory a second, achieved (--tflops, "
        f"--bandwidth), and models that know {KNOWN:.0%} of part 1's facts. Hours are "
        "rough: those of the laptop profile came within a factor of two. They are unknown for an "
        "endpoint, and for a model without a complete line in data/models.csv."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
