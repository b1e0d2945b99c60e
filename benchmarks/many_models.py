"""What memory a process takes that asks eighteen models, beside one that asks one, in one run.

    python benchmarks/many_models.py          # or `make bench`, some two minutes

A notebook of the paper's profile asks eighteen models one after the other, and lets each go before
it loads the next. Here they are eighteen copies of an embedded model, under names of their own.
Each process is a new one, since a peak never falls again. Writes data/benchmarks/many-models.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import cast

import numpy as np
from measuring.report import about, options, ratio, two_digits, write_json

from factrobust import load_model
from factrobust.models.causal import CausalLM

MODELS = 18
TARGET = 1.5  # times the peak of one model, at most


def copies(model: CausalLM, root: Path) -> list[str]:
    """Folders that hold the same files, which are on the disk once."""
    first = root / "model-00"
    model.network.save_pretrained(first)
    model.tokenizer.save_pretrained(first)
    folders = [first]
    for k in range(1, MODELS):
        copy = root / f"model-{k:02}"
        copy.mkdir()
        for file in first.iterdir():
            os.link(file, copy / file.name)
        folders.append(copy)
    return [str(folder) for folder in folders]


def peak(folders: list[str]) -> float:
    """The peak memory in bytes of a process of its own that asks these models."""
    done = subprocess.run(
        [sys.executable, "-m", "measuring.one_by_one", *folders],
        cwd=Path(__file__).parent,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return float(json.loads(done.stdout)["peak_gigabytes"])


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", rounds=1)
    model = cast(CausalLM, load_model(given.model))
    of_model = about(model)
    with tempfile.TemporaryDirectory() as root:
        folders = copies(model, Path(root))
        one = []
        many = []
        for _ in range(given.rounds):
            one.append(peak(folders[:1]))
            many.append(peak(folders))
    found = ratio(f"{MODELS} models", "one model", np.divide(many, one), "at most", TARGET)
    verdict = "reached" if found["reached"] else "NOT REACHED"
    print(f"\n{found['ratio']}, peak memory: {found['median']:g}, {found['target']}: {verdict}")
    told = {
        "model": of_model,
        "models": MODELS,
        "rounds": given.rounds,
        "peak_gigabytes": {
            "one model": two_digits(max(one)),
            f"{MODELS} models": two_digits(max(many)),
        },
        "comparisons": [found],
    }
    write_json(given.out / "many-models.json", told)


if __name__ == "__main__":
    main()
