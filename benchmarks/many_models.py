"""What memory a process takes that asks eighteen models, beside one that asks one, in one run.

    python benchmarks/many_models.py          # or `make bench`, some two minutes

A notebook of the paper's profile asks eighteen models one after the other, and lets each go before
it loads the next. Here they are eighteen copies of an embedded model, under names of their own.
Each process is a new one, since a peak never falls again. Writes data/benchmarks/many-models.json.
"""

import multiprocessing
import os
import re
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from measuring.report import about, options, ratio, report, rounded

from factrobust import load_model
from factrobust.models.records import Records

MODELS = 18
TARGET = 1.5  # times the peak of one model, at most
PROMPTS = [f"The capital of {country} is" for country in ("Japan", "Kenya", "Peru", "Norway")]


def copies(model: Any, root: Path) -> list[str]:
    """Folders that hold the same files, which are on the disk once."""
    first = root / "model-00"
    model.network.save_pretrained(first)
    model.tokenizer.save_pretrained(first)
    folders = [str(first)]
    for k in range(1, MODELS):
        copy = shutil.copytree(first, root / f"model-{k:02}", copy_function=os.link)
        folders.append(str(copy))
    return folders


def asked(folders: list[str]) -> float:
    """Ask models one after the other, as a study does; the peak memory of this process in GB."""
    with TemporaryDirectory() as folder:
        store = Records(Path(folder, "records.sqlite"))
        models = [load_model(name, records=store) for name in folders]
        for model in models:
            model.generate(PROMPTS, max_new_tokens=5)
            model.score(PROMPTS, [" Paris"] * len(PROMPTS))
    # What getrusage says on Linux begins at the parent's peak.
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kilobytes) * 1024 / 1e9


def peak(folders: list[str]) -> float:
    """`asked` in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn) as pool:
        return pool.submit(asked, folders).result()


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", rounds=1)
    model = load_model(given.model)
    of_model = about(model)
    one = "one model"
    many = f"{MODELS} models"
    peaks = []
    with TemporaryDirectory() as root:
        folders = copies(model, Path(root))
        for _ in range(given.rounds):
            peaks.append({one: peak(folders[:1]), many: peak(folders)})
    found = pd.DataFrame(peaks)
    report(
        given,
        "many-models",
        [ratio(many, one, found[many] / found[one], "at most", TARGET)],
        model=of_model,
        models=MODELS,
        rounds=given.rounds,
        peak_gigabytes=found.max().map(rounded).to_dict(),
    )


if __name__ == "__main__":
    main()
