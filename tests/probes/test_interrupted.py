"""A run of a real model that is killed in the middle goes on where it was, with the same table."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust import load_model
from factrobust.datasets.facts import load_facts, questions
from factrobust.probes import decoding
from factrobust.records import Records

MODEL, FACTS = "smollm2-135m-instruct", 120

KILLED = f"""
import sys
from pathlib import Path
from factrobust import load_model
from factrobust.datasets.facts import load_facts, questions
from factrobust.probes import decoding
from factrobust.records import Records

class Told(Records):
    def put(self, calls, values):
        super().put(calls, values)
        print(len(calls), flush=True)

model = load_model({MODEL!r}, records=Told(Path(sys.argv[1])))
decoding.greedy(model, questions(load_facts(limit={FACTS})))
"""


class Counting(Records):
    computed = 0

    def put(self, calls: Any, values: Any) -> None:
        super().put(calls, values)
        self.computed += len(calls)


def test_a_killed_run_goes_on_and_gives_the_same_table(tmp_path: Path) -> None:
    store = tmp_path / "records.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(store)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    told = [int(process.stdout.readline())]  # one batch is committed, the next one is under way
    process.send_signal(signal.SIGKILL)
    told += [int(line) for line in process.stdout.read().split()]
    assert process.wait() == -signal.SIGKILL, "the run ended before it could be killed"

    facts = questions(load_facts(limit=FACTS))
    records = Counting(store)
    resumed = decoding.greedy(load_model(MODEL, records=records), facts)
    # At most the batch whose commit could not be told any more is missing from the sum.
    assert 0 < records.computed <= FACTS - sum(told)
    again = Counting(store)
    pd.testing.assert_frame_equal(decoding.greedy(load_model(MODEL, records=again), facts), resumed)
    assert again.computed == 0

    whole = decoding.greedy(load_model(MODEL), facts)
    plain = ["model", "fact_id", "prompt", "text", "token_ids"]
    pd.testing.assert_frame_equal(whole[plain], resumed[plain])
    # Another composition of batches may move the last digits of a float32 sum, no more (rule 2).
    gaps = [
        abs(a - b)
        for x, y in zip(whole["logprobs"], resumed["logprobs"], strict=True)
        for a, b in zip(x, y, strict=True)
    ]
    assert max(gaps) < 1e-4
