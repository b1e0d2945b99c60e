"""Part 2, beyond the paper: is it the fact that a date makes likelier, or its name, or its subject?

A right name after a right year may be likelier because of the year, which moves every name; of the
name, which is of an era; of the subject, which is of an era; or of the fact. So the right and wrong
names are scored after the questions of the right and of wrong subjects, in years inside and outside
the fact's time. Scores are `schemas.CubeScores`: a row a date and subject asked, `asked_of` 0 for the
fact's own, with the wrong names as `other_logprobs`.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.time.metrics import CELL

MEASURES = ("nats", "win_rate", "robust")
CORNERS = {  # of the cube: (right subject, right name)
    (True, True): "own",
    (True, False): "other names",
    (False, True): "other subjects",
    (False, False): "both other",
}
ORDER = [*CORNERS.values()]
EFFECTS = ("the date", "the name's era", "the subject's era", "the fact")


def measured(scores: pd.DataFrame, split: str = "") -> pd.DataFrame:
    """What the right dates do to each name after the question of each subject: a row a cell, subject
    (`asked_of`) and `name` (0: the object).

    nats is the mean log-probability in correct dates minus that in incorrect ones, win_rate and robust
    (0 or 1) are W and R (paper 2, 3.2; ties are not won). A `split`, a column of the scores, sets the
    same correct dates against the incorrect ones of each of its values. Facts without a correct and an
    incorrect date, another name and another subject are left out.
    """
    rows = []
    keys = [*CELL, *([split] if split else [])]
    tested = scores[scores["label"] != "transitional"]
    for cell, part in tested.groupby(CELL, sort=False):
        values, dates = _stacked(part)
        if min(values.shape[1:]) < 2:
            continue
        right = (dates["label"] == "correct").to_numpy()
        groups = dates.loc[~right, split] if split else pd.Series("", dates.index[~right])
        for group in groups.unique():
            outside = values[~right][(groups == group).to_numpy()]
            key = (*cell, group) if split else cell
            rows += [(*key, *row) for row in _beaten(values[right], outside)]
    table = pd.DataFrame(rows, columns=[*keys, "asked_of", "name", *MEASURES])
    return table.astype(dict.fromkeys(MEASURES, float))


def _stacked(part: pd.DataFrame) -> tuple[np.ndarray, pd.DataFrame]:
    """The scores of a cell [date, subject, name], and its dates in this order."""
    dates = part[part["asked_of"] == 0].sort_values("date")
    subjects = []
    for _, asked in part.groupby("asked_of"):
        asked = asked.set_index("date").loc[dates["date"]]
        others = np.array(asked["other_logprobs"].tolist(), dtype=float)
        subjects.append(np.column_stack([asked["logprob"].to_numpy(dtype=float), others]))
    return np.stack(subjects, axis=1), dates


def _beaten(inside: np.ndarray, outside: np.ndarray) -> list[tuple[float, ...]]:
    """asked_of, name and MEASURES of scores [date, subject, name]; none without a date on a side."""
    if not len(inside) * len(outside):
        return []
    won = np.greater(inside[:, None], outside).astype(float)
    nats = inside.mean(axis=0) - outside.mean(axis=0)
    rates, robust = won.mean(axis=(0, 1)), won.min(axis=(0, 1))
    return [(*place, nats[place], rates[place], robust[place]) for place in np.ndindex(nats.shape)]


def corners(table: pd.DataFrame) -> pd.DataFrame:
    """The measures of `measured` at each corner of the cube: a row a fact, measure and `corner` of
    CORNERS, with `value`, the mean over wrong names, wrong subjects, or both."""
    by = [name for name in table if name not in ("asked_of", "name", *MEASURES)]
    kind = pd.Series(
        [CORNERS[pair] for pair in zip(table["asked_of"] == 0, table["name"] == 0, strict=True)],
        index=table.index,
    )
    means = table.assign(corner=kind).groupby([*by, "corner"], sort=False)[[*MEASURES]].mean()
    return means.reset_index().melt([*by, "corner"], [*MEASURES], "measure")


def effects(corners: pd.DataFrame) -> pd.DataFrame:
    """The four parts of what the right dates do to the right name: a row a fact, measure and `effect`
    of EFFECTS. They add up to the fact's own value.

    With v(s, n) the value after a right (1) or wrong (0) subject's question of a right or wrong name:
    the date v(0, 0), the name's era v(0, 1) - v(0, 0), the subject's era v(1, 0) - v(0, 0), and the
    fact v(1, 1) - v(1, 0) - v(0, 1) + v(0, 0), the interaction of the three.
    """
    by = [name for name in corners if name not in ("corner", "value")]
    wide = corners.pivot(index=by, columns="corner", values="value").reindex(columns=ORDER)
    own, names, subjects, both = (wide[name] for name in ORDER)
    parts = [both, subjects - both, names - both, own - names - subjects + both]
    table = pd.concat(dict(zip(EFFECTS, parts, strict=True)), names=["effect"])
    return table.rename("value").reset_index()[[*by, "effect", "value"]]


def leads(corners: pd.DataFrame, null: Sequence[str] = ORDER[1:]) -> pd.DataFrame:
    """The own value minus each null of it, another corner: a row a fact, measure and `null`."""
    by = [name for name in corners if name not in ("corner", "value")]
    wide = corners.pivot(index=by, columns="corner", values="value").reindex(columns=ORDER)
    table = pd.concat({name: wide["own"] - wide[name] for name in null}, names=["null"])
    return table.rename("value").reset_index()[[*by, "null", "value"]]


def bars(scores: pd.DataFrame, split: str = "") -> pd.DataFrame:
    """The `effects` of scores in nats: a row a fact and effect, and a value of `split`."""
    table = effects(corners(measured(scores, split)))
    return table[table["measure"] == "nats"].drop(columns="measure").reset_index(drop=True)
