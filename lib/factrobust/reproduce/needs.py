"""What the machines of a plan must have: GPUs, hours, disk, and dollars for endpoints.

A kernel has one model in memory at a time (`models.memory`), so that it needs what its largest one
needs. With CLUSTER=local every worker has a share of the GPUs and a copy of the model, and answers
a slice of each job: hours fall with the number of workers.
"""

from math import ceil
from typing import NamedTuple

import pandas as pd

from factrobust.models.load import BYTES, settings_of

READING = 1.0  # GB a second that weights are loaded with
# Dollars for a million tokens of prompts and of answers: OpenAI's gpt-4o-mini in 2025.
PRICE = (0.15, 0.60)
CHARACTERS_A_TOKEN = 3.7  # both embedded models need 3.1 (dates) to 4.8 (chat) in these prompts


class Gpus(NamedTuple):
    """How many there are, and the GB of memory of each."""

    number: int
    memory: float


def workers_for(memory: float, gpus: Gpus) -> int:
    """How many workers can each hold a model that takes so many GB; 0 if all GPUs together
    cannot."""
    of_one = ceil(memory / gpus.memory)
    return gpus.number // max(of_one, 1)


def of_parts(costs: pd.DataFrame, gpus: Gpus) -> pd.DataFrame:
    """A row a part of `plan.costs`: GB that a kernel needs, `workers` that can hold its largest
    model, and hours with these (infinite where a model does not fit), without loading."""
    rows = []
    for part, models in costs.groupby("part"):
        memory = models["GB memory"].max()
        workers = workers_for(memory, gpus)
        hours = models["hours"].sum() / workers if workers else float("inf")
        rows.append([part, memory, workers, hours])
    return pd.DataFrame(rows, columns=["part", "GB a kernel", "workers", "hours"])


def disk(calls: pd.DataFrame) -> tuple[float, float]:
    """GB of the models' files, and GB that are read from them: each notebook loads each model
    once."""
    loads = calls[["notebook", "model"]].drop_duplicates()
    sizes = {}
    for name in loads["model"].unique():
        model = settings_of(str(name))
        sizes[name] = 0.0
        if model:
            size = model.parameters * BYTES[model.dtype]
            sizes[name] = size / 1e9
    read = loads["model"].map(sizes).sum()
    return sum(sizes.values()), float(read)


def dollars(asked: pd.DataFrame) -> float:
    """What an endpoint takes for rows of calls."""
    of_prompts, of_answers = PRICE
    read = asked["characters"].sum() / CHARACTERS_A_TOKEN
    written = asked["written"].sum()
    return float(read * of_prompts + written * of_answers) / 1e6


def text(calls: pd.DataFrame, costs: pd.DataFrame, gpus: Gpus) -> str:
    """Paragraphs about the GPUs, the disk and the endpoints of a plan."""
    parts = of_parts(costs.fillna({"GB memory": 0.0}), gpus)
    stored, read = disk(calls)
    plural = "s" if gpus.number > 1 else ""
    lines = [
        f"On {gpus.number} GPU{plural} of {gpus.memory:g} GB (--gpus, --gpu-memory), with "
        "CLUSTER=local and WORKERS as here, a part at a time (ONLY=1-decoding ...):"
    ]
    for part, memory, workers, hours in parts.itertuples(index=False):
        time = "too large for them"
        if workers:
            time = f"WORKERS={workers}, {hours:.2g} hours"
        lines.append(f"  {part}: {memory:.1f} GB a kernel, {time}")
    fitting = parts.loc[parts["workers"] > 0, "hours"].sum()
    loading = read / READING / 3600
    lines.append(
        f"Together {fitting:.2g} hours, and at least {loading:.2g} more to load {read:,.0f} GB of "
        f"weights at {READING:g} GB a second. The models' files take {stored:,.0f} GB of disk."
    )
    for name, asked in calls.groupby("model"):
        if "://" in str(name):
            price = dollars(asked)
            lines.append(
                f"{name} takes {asked['calls'].sum():,.0f} requests, {price:,.2f} dollars at "
                f"{PRICE[0]:g} and {PRICE[1]:g} for a million tokens of prompts and of answers."
            )
    return "\n".join(lines)
