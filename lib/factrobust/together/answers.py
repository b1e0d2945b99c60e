"""Every recorded question with its answer and verdict, one table for all parts."""

import ast
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from factrobust import context, decoding, time, wording
from factrobust.paths import ROOT

# Of each part: its study, the notebook whose parameters tell what was asked, and where its study keeps answers.
PARTS: dict[str, tuple[Any, str, str, str]] = {
    "decoding": (decoding.Study, "1-decoding/1.1-*", "marked", "exact_match"),
    "time": (time.Study, "2-time/2.2-*", "scores", ""),
    "wording": (wording.Study, "3-wording/3.2-*", "marked", "correct"),
    "context": (context.Study, "4-context/4.2-*", "marked", "correct"),
}
SHOWN = ("part", "model", "fact_id", "prompt", "text", "accepted", "correct", "logprob")
SAME = {"question_id": "fact_id", "contextual": "text"}  # parts' names for the same


def parameters(notebook: str) -> dict[str, Any]:
    """The parameters of a notebook of notebooks/, by its name or a pattern."""
    [path] = (ROOT / "notebooks").glob(f"{notebook}.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    tagged = (c["source"] for c in cells if "parameters" in c["metadata"].get("tags", []))
    nodes = ast.parse("".join(next(tagged))).body
    pairs = [(n.target, n.value) for n in nodes if isinstance(n, ast.AnnAssign) and n.value]
    return {ast.unparse(target): ast.literal_eval(value) for target, value in pairs}


def answers(part: str | None = None, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Every question that the records hold of a part (a key of PARTS; None: all), a row an answer.

    Columns: SHOWN, then all else that the part measured (data/columns.csv explains them). prompt is
    missing where a part does not keep it; accepted is a list; correct is missing where nothing is
    marked; logprob is in nats, of the answer. Only answers of the notebooks in PARTS come, and of their
    models, or those named in `models`. Nothing is asked: RecordsError if records are missing.
    """
    if part is not None and part not in PARTS:
        raise ValueError(f"part is {part!r}; give one of {', '.join(PARTS)}, or None for all")
    return pd.concat([_of(name, models) for name in ([part] if part else PARTS)], ignore_index=True)


def _of(part: str, models: Sequence[str] | None) -> pd.DataFrame:
    study, pattern, where, mark = PARTS[part]
    given = parameters(pattern)
    given["models"] = [m for m in given["models"] if models is None or m in models]
    with mock.patch.dict(os.environ, {"FACTROBUST_RECORDS": "replay"}):
        table = getattr(study(given | {"__annotations__": given}), where)
    table = table.rename(columns={old: new for old, new in SAME.items() if new not in table})
    if "answers" not in table and {"object", "aliases"} <= {*table}:
        pairs = zip(table["object"], table["aliases"], strict=True)
        table = table.assign(answers=[[name, *more] for name, more in pairs])
    if "logprob" not in table and "logprobs" in table:
        table = table.assign(logprob=table["logprobs"].map(sum))
    table = table.rename(columns={"answers": "accepted"} | ({mark: "correct"} if mark else {}))
    return table.assign(part=part)[[*(n for n in SHOWN if n in table or n == "part"),
                                    *(n for n in table if n not in SHOWN)]]  # fmt: skip


def write(folder: str | Path) -> list[Path]:
    """Write the answers of all parts, as texts, to answers.parquet and answers.csv; lists are JSON."""
    place, paths = Path(folder), [Path(folder, f"answers.{end}") for end in ("parquet", "csv")]
    place.mkdir(parents=True, exist_ok=True)
    flat = (
        answers().astype(object).map(lambda x: x if np.isscalar(x) else json.dumps(x, default=list))
    )
    flat.astype(str).to_parquet(paths[0])
    flat.to_csv(paths[1], index=False)
    return paths
