"""Part 2, beyond the paper: is it the fact that a right date makes likelier?

A right name after a right year may be likelier because of the year, which moves every name; of the
name, which is of an era; of the subject, which is of an era; or of the fact. So right and wrong names
are scored after the questions of the right and of wrong subjects, in years inside and outside the
fact's time: the cube. Its scores are `schemas.CubeScores`, a row a date and subject asked, `asked_of` 0
for the fact's own, with the wrong names as `other_logprobs`.

A further null are other years (`windows`): in order of time, a fact's correct dates are one block among
its incorrect ones, and any other block of as many dates, with a date on both sides, could be its
validity.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.intervals import (
    Array,
    ratio_of_sums,
)
from factrobust.temporal.metrics import CELL

MEASURES = ["win_rate", "robust"]
CUBE_MEASURES = ["nats", *MEASURES]
CORNERS = {  # of the cube: (right subject, right name)
    (True, True): "own",
    (True, False): "other names",
    (False, True): "other subjects",
    (False, False): "both other",
}
ORDER = [*CORNERS.values()]
EFFECTS = ("the date", "the name's era", "the subject's era", "the fact")


def date_gains(scores: pd.DataFrame, split: str = "") -> pd.DataFrame:
    """What the right dates do to each name after the question of each subject: a row a cell, subject
    (`asked_of`) and `name` (0: the object).

    nats is the mean log-probability in correct dates minus that in incorrect ones, win_rate and robust
    (0 or 1) are W and R (paper 2, 3.2; ties are not won). A `split`, a column of the scores, sets the
    same correct dates against the incorrect ones of each of its values. Facts without a correct and an
    incorrect date, another name and another subject are left out.
    """
    tested = scores[scores["label"] != "transitional"]
    tested = tested.sort_values(["date", "asked_of"], kind="stable")
    names = list(zip(tested["logprob"], tested["other_logprobs"], strict=True))
    asked_of = tested["asked_of"].to_numpy()
    correct = (tested["label"] == "correct").to_numpy()
    groups = tested[split].to_numpy() if split else correct
    rows = []
    places: Any = tested.groupby(CELL, sort=False).indices.items()
    for cell, at in places:
        n_subjects = asked_of[at].max() + 1
        scored = [[names[place][0], *names[place][1]] for place in at]
        n_names = len(scored[0])
        if min(n_subjects, n_names) < 2:
            continue
        values = np.array(scored, dtype=float)
        values = values.reshape(-1, n_subjects, n_names)  # [date, subject, name]
        dates = at[::n_subjects]
        right = correct[dates]
        for group in pd.unique(groups[dates][~right]):
            outside = ~right & (groups[dates] == group)
            key = (*cell, group) if split else cell
            rows += [(*key, *row) for row in _beaten(values[right], values[outside])]
    keys = [*CELL, split] if split else CELL
    table = pd.DataFrame(rows, columns=[*keys, "asked_of", "name", *CUBE_MEASURES])
    return table.astype(dict.fromkeys(CUBE_MEASURES, float))


def _beaten(inside: np.ndarray, outside: np.ndarray) -> list[tuple[float, ...]]:
    """asked_of, name and CUBE_MEASURES of scores [date, subject, name]; none without a date on a side."""
    if not len(inside) * len(outside):
        return []
    won = np.greater(inside[:, None], outside).astype(float)
    nats = inside.mean(axis=0) - outside.mean(axis=0)
    rates = won.mean(axis=(0, 1))
    robust = won.min(axis=(0, 1))
    return [(*place, nats[place], rates[place], robust[place]) for place in np.ndindex(nats.shape)]


def corners(table: pd.DataFrame) -> pd.DataFrame:
    """The measures of `date_gains` at each corner of the cube: a row a fact, measure and `corner`
    of CORNERS, with `value`, the mean over wrong names, wrong subjects, or both."""
    by = [name for name in table if name not in ("asked_of", "name", *CUBE_MEASURES)]
    kind = pd.Series(
        [
            CORNERS[pair]
            for pair in zip(
                table["asked_of"] == 0,
                table["name"] == 0,
                strict=True,
            )
        ],
        index=table.index,
    )
    means = table.assign(corner=kind).groupby([*by, "corner"], sort=False)[CUBE_MEASURES].mean()
    return means.reset_index().melt([*by, "corner"], CUBE_MEASURES, "measure")


def effects(corners: pd.DataFrame) -> pd.DataFrame:
    """The four parts of what the right dates do to the right name: a row a fact, measure and `effect`
    of EFFECTS. They add up to the fact's own value.

    With v(s, n) the value after a right (1) or wrong (0) subject's question of a right or wrong name:
    the date v(0, 0), the name's era v(0, 1) - v(0, 0), the subject's era v(1, 0) - v(0, 0), and the
    fact v(1, 1) - v(1, 0) - v(0, 1) + v(0, 0), the interaction of the three.
    """
    by = [name for name in corners if name not in ("corner", "value")]
    wide = corners.pivot(index=by, columns="corner", values="value").reindex(columns=ORDER)
    right, other_name, other_subject, both_other = (wide[name] for name in ORDER)
    parts = [
        both_other,
        other_subject - both_other,
        other_name - both_other,
        right - other_name - other_subject + both_other,
    ]
    table = pd.concat(
        dict(zip(EFFECTS, parts, strict=True)),
        names=["effect"],
    )
    return table.rename("value").reset_index()[[*by, "effect", "value"]]


def leads(corners: pd.DataFrame, null: Sequence[str] = ORDER[1:]) -> pd.DataFrame:
    """The own value minus each null of it, another corner: a row a fact, measure and `null`."""
    by = [name for name in corners if name not in ("corner", "value")]
    wide = corners.pivot(index=by, columns="corner", values="value").reindex(columns=ORDER)
    table = pd.concat(
        {name: wide["own"] - wide[name] for name in null},
        names=["null"],
    )
    return table.rename("value").reset_index()[[*by, "null", "value"]]


def bars(scores: pd.DataFrame, split: str = "") -> pd.DataFrame:
    """The `effects` of scores in nats: a row a fact and effect, and a value of `split`."""
    table = effects(corners(date_gains(scores, split)))
    return table[table["measure"] == "nats"].drop(columns="measure").reset_index(drop=True)


def often_minus_never(weights: Array, values: Array, often: Array) -> Array:
    """The mean of `values` [row] where `often` is true minus that where it is false, in each resample
    ([resample, row] `weights`, as `intervals.bootstrap_statistic` makes them)."""
    is_often = often.astype(float)
    is_never = 1 - is_often
    mean_often = ratio_of_sums(weights, values * is_often, is_often)
    mean_never = ratio_of_sums(weights, values * is_never, is_never)
    return mean_often - mean_never


def windows(scores: pd.DataFrame) -> pd.DataFrame:
    """W and R of every block of a fact's dates that could be its validity (equations 1 and 2). A
    row a cell and block: before (dates before it), true (it is the validity), win_rate (ties are
    not won), robust (0 or 1). Cells are those of `in_time`."""
    rows = []
    for cell, values, k, first in in_time(scores):
        for before in range(1, len(values) - k):
            block = np.s_[before : before + k]
            won = values[block][:, None] > np.delete(values, block)
            rows.append(
                (
                    *cell,
                    before,
                    before == first,
                    won.mean(),
                    won.all(),
                )
            )
    table = pd.DataFrame(rows, columns=[*CELL, "before", "true", *MEASURES])
    return table.astype({"true": bool} | dict.fromkeys(MEASURES, float))


def in_time(
    scores: pd.DataFrame,
) -> Iterator[tuple[Any, Array, int, int]]:
    """Each cell with incorrect dates on both sides and all values: the values in order of time, the
    number of its correct dates, and the place of the first."""
    dated = scores[scores["label"] != "transitional"].sort_values("date", kind="stable")
    every = dated["logprob"].to_numpy(dtype=float)
    right = (dated["label"] == "correct").to_numpy()
    for cell, places in dated.groupby(CELL, sort=False).indices.items():
        values = every[places]
        correct = right[places]
        k = correct.sum()
        first = correct.argmax()
        last = len(correct) - correct[::-1].argmax()
        if k and first > 0 and last < len(correct) and not np.isnan(values).any():
            yield cell, values, int(k), int(first)
