"""The facts lost (lost.csv beside it) for inspect_ai: inspect eval lost_inspect.py --model NAME"""

import csv
import json
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate


@task
def lost():
    with open(Path(__file__).with_name("lost.csv"), encoding="utf-8", newline="") as file:
        samples = [
            Sample(
                id=row["question"],
                input=row["message"],
                target=[row["answer"], *json.loads(row["aliases"])],
                metadata={"relation": row["relation"]},
            )
            for row in csv.DictReader(file)
        ]
    return Task(
        dataset=MemoryDataset(samples),
        solver=generate(temperature=0, max_tokens=32),
        scorer=includes(),
    )
