"""What the methods of part 1 cost, on the same real questions, measured side by side in one run.

    python benchmarks/decoding.py          # or `make bench`, some minutes

Every method is timed on one question after the other, in turn with its rivals, so that whatever
else the machine does slows all of them; ratios are taken within a turn. Tokens and head positions
are counted by hooks on the network, not estimated. Writes data/benchmarks/1-decoding.csv, whose
numbers notebook 1.2 quotes, and 1-decoding.json beside it."""

from functools import partial
from typing import Any

import pandas as pd
import torch
from measuring.meter import Meter
from measuring.plain import generated, plain_network
from measuring.report import Works, about, options, ratio, report, rounded

from factrobust import load_model
from factrobust.datasets.facts import load_facts, with_questions
from factrobust.decoding import metrics, probe
from factrobust.models.prompts import FORMATS

# Facts that Gemma knows.
FACTS = [
    "capital/japan",
    "country/basel",
    "language/argentina",
    "genre/britney-spears",
    "sport/cristiano-ronaldo",
]
SEPARATE = "100 separate samples"
TOGETHER = "ten samples a call"
SHARED = "shared prefixes"
EXACT = "exact curve"
GREEDY = "one greedy answer"
DESCRIPTIONS = {
    SEPARATE: "transformers' generate, one call a sample; ten samples timed, one a temperature, "
    "times ten",
    TOGETHER: "transformers' generate, one call a temperature, ten rows a call",
    SHARED: "our sampler, all in one call; equal beginnings computed once, ends with the answer",
    EXACT: "greedy answer, its probability at all temperatures, entropy, breaking temperature, FRS",
    GREEDY: "our greedy answer and its ten likeliest alternatives a token",
}

# Seconds of the first over seconds of the second, and the target.
COMPARED = [
    (SEPARATE, EXACT, "at least", 450),
    (EXACT, GREEDY, "at most", 2),
    (SEPARATE, SHARED, "at least", 8),
]


def methods(model: Any, fact: pd.DataFrame) -> Works:
    """Each method on one question; SEPARATE makes one sample a temperature."""
    prompts = probe.prompts(model, fact)
    return {
        SEPARATE: partial(samples, model, prompts[0], 1),
        TOGETHER: partial(samples, model, prompts[0], probe.SAMPLES),
        SHARED: partial(
            model.sample,
            prompts * len(probe.TEMPERATURES),
            temperature=probe.TEMPERATURES,
            n=probe.SAMPLES,
            max_new_tokens=probe.MAX_NEW_TOKENS,
            stop=FORMATS[model.prompt_format].stop,
        ),
        EXACT: partial(exact_scores, model, fact),
        GREEDY: partial(probe.greedy_answers, model, fact, temperatures=()),
    }


def samples(model: Any, prompt: str, rows: int) -> None:
    """One call of transformers' generate a temperature, which makes so many samples."""
    for temperature in probe.TEMPERATURES:
        generated(
            model,
            prompt,
            do_sample=True,
            temperature=temperature,
            top_k=0,
            top_p=1.0,
            max_new_tokens=probe.MAX_NEW_TOKENS,
            num_return_sequences=rows,
        )


def exact_scores(model: Any, fact: pd.DataFrame) -> pd.DataFrame:
    """Everything from the question to its FRS."""
    responses = probe.greedy_answers(model, fact, temperatures=probe.TEMPERATURES)
    breaking = metrics.exact_breaking(probe.answer_curves(responses, probe.TEMPERATURES))
    return metrics.frs_table(metrics.mark_greedy(responses), breaking, unbroken=None)


def measure(model: Any, facts: pd.DataFrame, n: int) -> pd.DataFrame:
    """Costs on the first n facts, a row a question and method: tokens, head_positions, seconds."""
    torch.manual_seed(0)  # of transformers' samples
    # What warms up: the examples that all prompts begin with are read, and their keys kept.
    probe.greedy_answers(model, facts)
    samples(model, probe.prompts(model, facts)[0], 1)
    meter = Meter(model.body.network, plain_network(model.name))
    rows = []
    for turn in range(n):
        for method, work in methods(model, facts.iloc[[turn]]).items():
            rows.append({"turn": turn, "method": method, **meter.cost(work)})
    costs = pd.DataFrame(rows).set_index(["turn", "method"])
    costs.loc[costs.index.isin([SEPARATE], level="method")] *= probe.SAMPLES
    return costs


def table(costs: pd.DataFrame) -> pd.DataFrame:
    """The CSV: a row a method, costs a question (mean tokens and positions, median seconds).

    `ratio_to_naive` says how many times less time than SEPARATE; it is rounded as seconds are."""
    groups = costs.groupby("method", sort=False)
    seconds = costs["seconds"].unstack()
    times_less = seconds.rdiv(seconds[SEPARATE], axis=0)
    counts = groups[["tokens", "head_positions"]].mean().round(1)
    return counts.assign(
        seconds=groups["seconds"].median().map(rounded),
        ratio_to_naive=times_less.median().map(rounded),
        n_questions=groups.size(),
    )


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", questions=len(FACTS))
    model = load_model(given.model)  # float32, as transformers' side
    every = with_questions(load_facts()).set_index("fact_id", drop=False)
    costs = measure(model, every.loc[FACTS].reset_index(drop=True), given.questions)
    seconds = costs["seconds"].unstack()
    compared = []
    for first, second, bound, target in COMPARED:
        ratios = seconds[first] / seconds[second]
        compared.append(ratio(first, second, ratios, bound, target))
    report(
        given,
        "1-decoding",
        compared,
        model=about(model),
        facts=FACTS[: given.questions],
    )
    found = table(costs)
    found.insert(0, "description", pd.Series(DESCRIPTIONS))
    print(found.drop(columns="description").to_markdown())
    found.to_csv(given.out / "1-decoding.csv")


if __name__ == "__main__":
    main()
