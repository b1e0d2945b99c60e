"""Every recorded question with its answer and verdict, one table for all parts."""

import os
from collections.abc import Sequence
from typing import Any
from unittest import mock

import pandas as pd

from factrobust import context, decoding, time, wording
from factrobust.datasets.facts import answers as accepted
from factrobust.paths import ROOT
from factrobust.reproduce.profiles import declared_parameters, find_notebooks
from factrobust.together.study import Study

# Of each part: its study, the notebook whose parameters tell what was asked, where its study keeps answers,
# and which column marks them.
PARTS: dict[str, tuple[Any, str, str, str]] = {
    "decoding": (decoding.Study, "1-decoding/1.1-*", "marked", "exact_match"),
    "time": (time.Study, "2-time/2.2-*", "scores", ""),
    "wording": (wording.Study, "3-wording/3.2-*", "marked", "correct"),
    "context": (context.Study, "4-context/4.2-*", "marked", "correct"),
    "together": (Study, "6-together/6.1-*", "answers", "right"),
}
SHOWN = ("part", "model", "fact_id", "prompt", "text", "accepted", "correct", "logprob")
SAME = {"question_id": "fact_id", "contextual": "text", "answers": "accepted"}  # parts' names


def answers(part: str | None = None, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Every question that the records hold of a part (a key of PARTS; None: all), a row an answer.

    Columns: SHOWN, then all else that the part measured (data/columns.csv explains them). prompt is
    missing where a part does not keep it; accepted is a list; correct is missing where nothing is
    marked; logprob is in nats, of the answer. Only answers of the notebooks in PARTS come, and of their
    models, or those named in `models`. Nothing is asked: RecordsError if records are missing.
    """
    if part is not None and part not in PARTS:
        raise ValueError(f"part is {part!r}; give one of {', '.join(PARTS)}, or None for all")
    found = pd.concat(
        [_of(name, models) for name in ([part] if part else PARTS)], ignore_index=True
    )
    if found.empty:
        raise ValueError(f"no notebook of these parts asked {models}; give a model that one names")
    return found


def _of(part: str, models: Sequence[str] | None) -> pd.DataFrame:
    study, pattern, where, mark = PARTS[part]
    [notebook] = find_notebooks(ROOT, f"notebooks/{pattern}")
    given = declared_parameters(ROOT / notebook)
    wanted = [m for m in given["models"] if models is None or m in models]
    if not wanted:
        return pd.DataFrame()
    with mock.patch.dict(os.environ, {"FACTROBUST_RECORDS": "replay"}):
        table = getattr(study(given | {"__annotations__": given}), where)
    table = table[table["model"].isin(wanted)]  # all were asked: which facts may depend on it
    table = table.rename(columns={old: new for old, new in SAME.items() if new not in table})
    if "accepted" not in table and {"object", "aliases"} <= {*table}:
        table = table.assign(accepted=accepted(table))
    if "logprob" not in table and "logprobs" in table:
        table = table.assign(logprob=table["logprobs"].map(sum))
    table = table.rename(columns={mark: "correct"}).assign(part=part)
    first = [name for name in SHOWN if name in table]
    return table[[*first, *table.columns.difference(first, sort=False)]]
