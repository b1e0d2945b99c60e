"""What the methods of part 1 cost, on the same real questions, measured side by side in one run.

    python benchmarks/decoding.py          # or `make bench`, some minutes

Every method is timed on one question after the other, in turn with its rivals, so that whatever
else the machine does slows all of them; ratios are taken within a turn and given as median (lowest
- highest). Tokens and head positions are counted by hooks on the network, not estimated. Writes
data/benchmarks/1-decoding.csv (read by notebook 1.2) and 1-decoding.json beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from measuring.decoding import (
    BISECTION,
    EXACT,
    EXACT_BATCH,
    FULL_LOGITS,
    FULL_LOGITS_SHORT,
    GREEDY,
    GREEDY_BATCH,
    ONE_BY_ONE,
    SCORE,
    SCORE_SHORT,
    SEPARATE,
    SHARED,
    TOGETHER,
    UNSTOPPED,
    Settings,
    batch_methods,
    full_logits_score,
    score_pairs,
    single_methods,
)
from measuring.meter import Cost, Meter
from measuring.plain import plain_network
from measuring.report import about, options, print_ratios, ratio, two_digits, write_json

from factrobust import load_model
from factrobust.datasets.facts import load_facts, with_questions
from factrobust.decoding import metrics as part1
from factrobust.decoding import probe
from factrobust.models.causal import CausalLM
from factrobust.models.records import progress_bar
from factrobust.provenance import write_atomically

# Rows of the CSV: what each method does to one question.
DESCRIPTIONS = {
    SEPARATE: "transformers' generate, one call a sample; ten samples timed, one a temperature, "
    "times ten",
    TOGETHER: "transformers' generate, one call a temperature, ten rows a call",
    SHARED: "our sampler, all in one call; equal beginnings computed once, ends with the answer",
    UNSTOPPED: "our sampler, all in one call; always five tokens, as generate makes",
    BISECTION: "our sampler, ten samples at each temperature that a binary search visits",
    EXACT: "greedy answer, its probability at all temperatures, entropy, breaking temperature, FRS",
    GREEDY: "our greedy answer and its ten likeliest alternatives a token",
    EXACT_BATCH: "the exact curve, many questions at once",
    GREEDY_BATCH: "the greedy answer, many questions at once",
}

# What is compared: seconds of the first over seconds of the second, and the target if there is one.
COMPARISONS: tuple[tuple[str, str, str, float | None], ...] = (
    (SEPARATE, EXACT, "at least", 450),
    (EXACT, GREEDY, "at most", 2),
    (EXACT_BATCH, GREEDY_BATCH, "at most", 1.3),
    (SEPARATE, SHARED, "at least", 8),
    (FULL_LOGITS, SCORE, "at least", 2),
    (FULL_LOGITS_SHORT, SCORE_SHORT, "", None),
    (SEPARATE, EXACT_BATCH, "", None),
    (SEPARATE, UNSTOPPED, "", None),
    (TOGETHER, SHARED, "", None),
    (BISECTION, EXACT, "", None),
)


def known_facts(model: CausalLM, count: int) -> pd.DataFrame:
    """`count` facts that the model knows (fewer if it knows fewer), as questions."""
    facts = with_questions(load_facts(limit=4 * count))
    known = part1.select_known(part1.mark_greedy(probe.greedy_answers(model, facts)))
    chosen = known["fact_id"].iloc[_spread(len(known), count)]
    return facts[facts["fact_id"].isin(chosen)].reset_index(drop=True)


@dataclass
class Measured:
    """Costs a question of each method, turn by turn, and two checks.

    `separate_in_full` is the seconds of the samples of the first question when all are made,
    `score_difference` the largest difference between the two ways of scoring, in log-probability.
    """

    costs: dict[str, list[Cost]] = field(default_factory=dict)
    separate_in_full: float = 0.0
    score_difference: float = 0.0

    def seconds(self, method: str) -> np.ndarray:
        return np.array(self.costs[method])[:, 0]

    def ratios(self, first: str, second: str) -> np.ndarray:
        """Seconds of the first over seconds of the second: within a turn where they share turns."""
        a, b = self.seconds(first), self.seconds(second)
        together = (first in ONE_BY_ONE) == (second in ONE_BY_ONE)
        return a / b if together else np.median(a) / b


def measure(model: CausalLM, facts: pd.DataFrame, settings: Settings) -> Measured:
    """Run every method on questions one by one, then on all facts as a batch."""
    torch.manual_seed(0)  # of transformers' samples
    meter = Meter(model.body.network, plain_network(model))
    singles = facts.iloc[_spread(len(facts), settings.questions)]
    result = Measured()
    many = batch_methods(model, facts, settings)
    steps = settings.rounds + 1 + len(singles)
    with progress_bar("[bench]", steps) as advance:
        # The first round warms up: caches of the processor, and our cache of the shared examples.
        for turn in range(settings.rounds + 1):
            for method, work in many.items():
                cost = meter.cost(work) / len(facts)
                if turn:
                    result.costs.setdefault(method, []).append(cost)
            advance(1)
        for k in range(len(singles)):
            for method, work in single_methods(model, singles[k : k + 1], settings).items():
                cost = meter.cost(work)
                if method == SEPARATE and k == 0:
                    more = [meter.cost(work) for _ in range(settings.samples - 1)]
                    result.separate_in_full = float(sum([cost, *more])[0])
                if method == SEPARATE:
                    cost = cost * settings.samples
                result.costs.setdefault(method, []).append(cost)
            advance(1)
    prompts, given = score_pairs(model, facts, model.prompt_format)
    both = zip(model.score(prompts, given), full_logits_score(model, prompts, given), strict=True)
    result.score_difference = max(float(np.abs(a - b).max()) for a, b in both)
    return result


def _spread(length: int, count: int) -> np.ndarray:
    """At most `count` places, evenly from the first to the last."""
    return np.linspace(0, length - 1, min(count, length)).astype(int)


def table(measured: Measured, n_facts: int) -> pd.DataFrame:
    """The CSV: a row a method, costs a question (mean tokens and positions, median seconds).

    `ratio_to_naive` says how many times less time than `SEPARATE`; it is rounded as seconds are.
    """
    rows = []
    for method, description in DESCRIPTIONS.items():
        costs = measured.costs[method]
        _, tokens, positions = np.mean(costs, axis=0)
        row = {
            "method": method,
            "description": description,
            "tokens": round(float(tokens), 1),
            "head_positions": round(float(positions), 1),
            "seconds": two_digits(np.median(measured.seconds(method))),
            "ratio_to_naive": two_digits(np.median(measured.ratios(SEPARATE, method))),
            "n_questions": len(costs) if method in ONE_BY_ONE else n_facts,
        }
        rows.append(row)
    return pd.DataFrame(rows)


def comparisons(measured: Measured) -> list[dict[str, Any]]:
    """Ratios of seconds with their targets: lowest, median, highest; reached by the median or
    not."""
    found = []
    for first, second, bound, target in COMPARISONS:
        ratios = measured.ratios(first, second)
        found.append(ratio(first, second, ratios, bound, target))
    return found


def _print(costs: pd.DataFrame, compared: list[dict[str, Any]], measured: Measured) -> None:
    print(
        "\nCosts a question: forward-pass tokens, positions at which the head was applied, seconds"
    )
    shown = costs.drop(columns="description").rename(columns={"ratio_to_naive": "times faster"})
    print(shown.to_markdown(index=False, floatfmt=("", ",.1f", ",.1f", "g", "g", "g")))
    print_ratios(compared)
    estimate = measured.seconds(SEPARATE)[0]
    print(
        f"\nChecks: {SEPARATE} of the first question, all of them made: "
        f"{measured.separate_in_full:.1f} s (estimated from ten: {estimate:.1f} s); "
        f"the two scores differ by at most {measured.score_difference:.1g}"
    )


def main() -> None:
    usual = Settings()
    given = options(
        __doc__,
        model="gemma-3-270m",
        questions=usual.questions,
        batch=usual.batch,
        rounds=usual.rounds,
    )
    settings = Settings(questions=given.questions, batch=given.batch, rounds=given.rounds)
    model = cast(CausalLM, load_model(given.model))  # float32, as transformers' side
    print(f"[bench] {model.name}: looking for {settings.batch} facts that it knows", flush=True)
    facts = known_facts(model, settings.batch)
    measured = measure(model, facts, settings)
    costs = table(measured, len(facts))
    compared = comparisons(measured)
    _print(costs, compared, measured)
    told = {
        "model": about(model),
        "settings": asdict(settings),
        "facts": facts["fact_id"].tolist(),
        "comparisons": compared,
        "separate_in_full_seconds": two_digits(measured.separate_in_full),
        "separate_estimated_seconds": two_digits(measured.seconds(SEPARATE)[0]),
        "score_difference": two_digits(measured.score_difference),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    write_atomically(given.out / "1-decoding.csv", costs.to_csv(index=False).encode())
    write_json(given.out / "1-decoding.json", told)
    print(f"[bench] written: {given.out / '1-decoding.csv'} and .json")


if __name__ == "__main__":
    main()
