"""What it costs to score part 2's dated questions, on the same real statements, in one run.

    python benchmarks/dates.py          # or `make bench`, some minutes

The usual way is one forward pass a statement, in the order in which they come, that makes all
logits of all its tokens. Ours is `temporal.probe.scored_statements`. Ratios are taken within
rounds. Head positions are counted by a hook: each holds as many float32 numbers as the vocabulary
has tokens. Writes data/benchmarks/2-time.json."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd
from measuring.decoding import full_logits_score
from measuring.meter import Meter
from measuring.plain import plain_network
from measuring.report import (
    about,
    in_turns,
    options,
    print_ratios,
    speed_up,
    two_digits,
    write_json,
)

from factrobust import load_model
from factrobust.models.causal import CausalLM
from factrobust.models.prompts import FORMATS
from factrobust.temporal import probe
from factrobust.temporal.dates import sample_dates, thinned
from factrobust.temporal.facts import load_temporal_facts, sample_facts

SHARES = {"question": 1, "dated-few-shot": 6}  # every n-th statement: long prompts take minutes
TARGET = 3  # times the throughput of the usual way


def one_by_one(model: CausalLM, statements: pd.DataFrame, form: str) -> list[float]:
    """log P of each object by one full-logits forward pass a statement."""
    prompts = probe.prompts(model, statements, form)
    answers = [FORMATS[form].separator + answer for answer in statements["object"]]
    return [
        float(full_logits_score(model, [prompt], [answer])[0].sum())
        for prompt, answer in zip(prompts, answers, strict=True)
    ]


def measure(model: CausalLM, statements: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """Ratios, head positions at once, and the largest difference between the two ways."""
    compared = []
    most = {}
    gaps = []
    meter = Meter(model.body.network, plain_network(model))
    for form, every in SHARES.items():
        asked = statements.iloc[::every]
        usual, ours = f"one by one, {form}", f"scored, {form}"
        works: dict[str, Callable[[], object]] = {
            usual: partial(one_by_one, model, asked, form),
            ours: partial(probe.scored_statements, model, asked, prompt_format=form),
        }
        seconds = in_turns(works, rounds)
        compared.append(speed_up(seconds, usual, ours, TARGET))
        for name, work in works.items():
            meter.most_at_once = 0
            work()
            most[name] = meter.most_at_once
        scores = probe.scored_statements(model, asked, prompt_format=form)["logprob"].to_numpy()
        gaps.append(np.abs(scores - one_by_one(model, asked, form)).max())
    return {
        "comparisons": compared,
        "head_positions_at_once": most,
        "largest_difference": two_digits(max(gaps)),
    }


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", facts=2, rounds=2)

    model = cast(CausalLM, load_model(given.model))
    facts = sample_facts(load_temporal_facts(), given.facts, seed=0)
    statements = probe.statements(facts, thinned(sample_dates(facts), n_correct=2, n_incorrect=4))
    print(
        f"[bench] {model.name}: {len(statements)} dated questions of {len(facts)} facts", flush=True
    )
    found = measure(model, statements, given.rounds)
    print_ratios(found["comparisons"])
    print("\nPositions at which the head was applied at once (memory: x vocabulary x 4 bytes)")
    for name, count in found["head_positions_at_once"].items():
        print(f"  {name:<58} {count}")
    print(f"\nCheck: the two ways differ by at most {found['largest_difference']:g} nats")
    told = {
        "model": about(model),
        "facts": facts["fact_id"].tolist(),
        "statements": len(statements),
    }
    write_json(given.out / "2-time.json", told | found)


if __name__ == "__main__":
    main()
