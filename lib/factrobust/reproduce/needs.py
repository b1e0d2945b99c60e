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


def text(calls: pd.DataFrame, costs: pd.DataFrame, gpus: Gpus) -> str:
    """Paragraphs about the GPUs, the disk and the endpoints of a plan, from its calls and from
    `plan.costs`."""
    plural = "s" if gpus.number > 1 else ""
    lines = [
        f"On {gpus.number} GPU{plural} of {gpus.memory:g} GB (--gpus, --gpu-memory), with "
        "CLUSTER=local and WORKERS as here, a part at a time (ONLY=1-decoding ...):"
    ]
    # 1. A part needs what its largest model needs; its models are asked one after the other.
    together = 0.0
    for part, models in costs.fillna({"GB memory": 0.0}).groupby("part"):
        memory = models["GB memory"].max()
        workers = workers_for(memory, gpus)
        time = "too large for them"
        if workers:
            hours = models["hours"].sum() / workers
            together += hours
            time = f"WORKERS={workers}, {hours:.2g} hours"
        lines.append(f"  {part}: {memory:.1f} GB a kernel, {time}")
    # 2. Disk.
    stored, read = disk(calls)
    loading = read / READING / 3600
    lines.append(
        f"Together {together:.2g} hours, and at least {loading:.2g} more to load {read:,.0f} GB of "
        f"weights at {READING:g} GB a second. The models' files take {stored:,.0f} GB of disk."
    )
    # 3. Endpoints.
    of_prompts, of_answers = PRICE
    for name, asked in calls.groupby("model"):
        if "://" not in str(name):
            continue
        count, characters, written = asked[["calls", "characters", "written"]].sum()
        tokens = characters / CHARACTERS_A_TOKEN
        price = (of_prompts * tokens + of_answers * written) / 1e6
        lines.append(
            f"{name} takes {count:,.0f} requests, {price:,.2f} dollars at {of_prompts:g} and "
            f"{of_answers:g} for a million tokens of prompts and of answers."
        )
    return "\n".join(lines)
