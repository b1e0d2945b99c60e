"""What it costs to score part 2's dated questions, on the same real statements, in one run.

    python benchmarks/dates.py          # or `make bench`, some minutes

The usual way is one forward pass a statement, in the order in which they come, that makes all
logits of all its tokens. Ours is `temporal.probe.scored_statements`. Writes
data/benchmarks/2-time.json."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from measuring.plain import logprobs
from measuring.report import Works, about, options, report, rounded, speed_up

from factrobust import load_model
from factrobust.models import tokens
from factrobust.models.prompts import FORMATS
from factrobust.temporal import probe
from factrobust.temporal.dates import sample_dates, thinned
from factrobust.temporal.facts import load_temporal_facts, sample_facts

SHARES = {"question": 1, "dated-few-shot": 6}  # every n-th statement: long prompts take minutes
TARGET = 3  # times the throughput of the usual way


def one_by_one(model: Any, statements: pd.DataFrame, form: str) -> list[float]:
    """log P of each object by one full-logits forward pass a statement."""
    found = []
    prompts = probe.prompts(model, statements, form)
    for prompt, name in zip(prompts, statements["object"], strict=True):
        answer = FORMATS[form].separator + name
        ids, start = tokens.encode_pair(model.tokenizer, prompt, answer, bos=model.bos)
        found.append(float(logprobs(model.name, ids, start).sum()))
    return found


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", facts=2, rounds=2)
    model = load_model(given.model)
    facts = sample_facts(load_temporal_facts(), given.facts, seed=0)
    statements = probe.statements(facts, thinned(sample_dates(facts), n_correct=2, n_incorrect=4))
    compared = []
    gaps = []
    for form, every in SHARES.items():
        asked = statements.iloc[::every]
        usual = partial(one_by_one, model, asked, form)
        ours = partial(probe.scored_statements, model, asked, prompt_format=form)
        works: Works = {f"one by one, {form}": usual, f"scored, {form}": ours}
        compared.append(speed_up(works, given.rounds, TARGET))
        gaps.append(np.abs(ours()["logprob"] - usual()).max())
    report(
        given,
        "2-time",
        compared,
        model=about(model),
        facts=facts["fact_id"].tolist(),
        statements=len(statements),
        largest_difference=rounded(max(gaps)),
    )


if __name__ == "__main__":
    main()
