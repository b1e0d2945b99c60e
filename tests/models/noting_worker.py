"""Preloaded into the worker processes of the tests: notes each slice before it is answered, and
waits for as long as the tests want."""

import json
import os
import time
from pathlib import Path
from typing import Any

from factrobust.models import cluster


def dask_setup(worker: Any) -> None:
    folder = Path(os.environ["NOTED"])
    answer = cluster.answer_slice

    def noting(job: Any, **loading: Any) -> list[Any]:
        line = json.dumps([os.getpid(), [r["prompt"] for r in job.requests]])
        with (folder / "slices").open("a") as file:
            file.write(line + "\n")
        while (folder / "wait").exists():
            time.sleep(0.02)
        return answer(job, **loading)

    cluster.answer_slice = noting
