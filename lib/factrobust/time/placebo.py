"""Part 2, beyond the paper: would a wrong name, or wrong years, do as well?

Two nulls for the win rate W and the robustness R of a fact. **Wrong names** (the main one): other
objects of the relation under the same dates (`names`); what a date does to any name is in both.
**Other years**: in order of time, a fact's correct dates are one block among its incorrect ones, and
any other block of as many dates, with a date on both sides, could be its validity (`windows`).
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factrobust.statistics import Array, in_ranges, paired_difference
from factrobust.time.metrics import CELL, KEY, chance, match_table

MEASURES = ("win_rate", "robust")
STEP = ("step",)
DRAWS = 400  # of `power`
BOUNDARIES = {"before": "start", "after": "end"}
YEARS = {"up to 5": 5.0, "5 to 20": 20.0, "over 20": np.inf}  # from the validity


def names(scores: pd.DataFrame, nats: float = 0.0) -> pd.DataFrame:
    """W and R of each fact's object and of its wrong names under the same dates (equations 1 and
    2): a row a cell and name (0: the object), true (it is the object), win_rate (ties are not won),
    robust (0 or 1). Cells without match or wrong name are left out. `nats` raise correct dates."""
    rows = []
    for cell, part, values in _by_cell(scores[scores["label"] != "transitional"]):
        right = (part["label"] == "correct").to_numpy()
        won = values[right][:, None] + nats > values[~right]  # [correct, incorrect, name]
        if won.shape[0] * won.shape[1]:
            rates, robust = won.mean((0, 1)), won.all((0, 1)).astype(float)
            rows += [
                (*cell, k, k == 0, *pair) for k, pair in enumerate(zip(rates, robust, strict=False))
            ]
    return pd.DataFrame(rows, columns=[*CELL, "name", "true", *MEASURES])


def _by_cell(scores: pd.DataFrame) -> Iterator[tuple[Any, pd.DataFrame, Array]]:
    """Each cell with wrong names: its rows in order of time, and all scores [date, name]."""
    asked = scores[scores["other_logprobs"].map(len) > 0].sort_values("date", kind="stable")
    for cell, part in asked.groupby(CELL, sort=False):
        others = np.array(part["other_logprobs"].tolist(), dtype=float)
        yield cell, part, np.column_stack([part["logprob"].to_numpy(dtype=float), others])


def knows(scores: pd.DataFrame) -> pd.DataFrame:
    """Does a model prefer a fact's object to all of its wrong names, whatever the year? A row a
    cell: lead (nats: the object's mean score minus that of the best wrong name) and known (lead >
    0). Only years in which the fact did not hold count, so that knowledge of time cannot help."""
    rows = []
    for cell, _, values in _by_cell(scores[scores["label"] == "incorrect"]):
        mean = values.mean(axis=0)
        rows.append((*cell, mean[0] - mean[1:].max(), mean[0] > mean[1:].max()))
    return pd.DataFrame(rows, columns=[*CELL, "lead", "known"])


def steps(scores: pd.DataFrame, reach: int = 5) -> pd.DataFrame:
    """How much higher each name's score is just inside a boundary than a smooth era would have it.

    Least squares of the scores (nats) of the years up to `reach` from a boundary, with one line
    through both sides and a `step` at the boundary: 0 for any line, whatever its slope; the rise, if
    all correct years are raised. A row a cell, boundary ("start", "end") and name: name, true, step.
    Needs two years on each side; years of a bound itself are left out.
    """
    rows = []
    for cell, part, values in _by_cell(scores[scores["label"] != "transitional"]):
        right, off = (part["label"] == "correct").to_numpy(), part["years_off"].to_numpy()
        year = part["year"].to_numpy()
        for boundary, sign in (("start", -1), ("end", 1)):
            outside = ~right & (off * sign > 0)
            if not (right.any() and outside.any()):
                continue
            # Of the bound: it lies between the nearest years of the two sides.
            edge = (sign * (sign * year[right]).max() + sign * (sign * year[outside]).min()) / 2
            near = (right | outside) & (abs(year - edge) <= reach + 0.5)
            if min((near & right).sum(), (near & outside).sum()) < 2:
                continue
            design = np.column_stack([np.ones(near.sum()), year[near] - edge, right[near]])
            found = np.linalg.lstsq(design, values[near], rcond=None)[0][2]
            rows += [(*cell, boundary, k, k == 0, step) for k, step in enumerate(found)]
    return pd.DataFrame(rows, columns=[*CELL, "boundary", "name", "true", "step"])


def power(
    null: pd.DataFrame, raised: pd.DataFrame, facts: pd.DataFrame, measure: str
) -> pd.DataFrame:
    """How often a planted rise is seen: a row a model, with power, planted (mean difference), n.

    `null` and `raised` are the `names` (or `steps` of one boundary) of the same scores, before and
    after their correct years were raised. In each of DRAWS draws one wrong name of every fact, drawn
    at random, stands for the object: its `measure` in `raised` minus the mean of the other wrong
    names in `null`. Subjects are drawn with replacement; the rise is seen if the mean difference
    exceeds 1.96 of its standard errors by subject. Without a rise that is 0.025.
    """
    rows = []
    for model, part in null[~null["true"]].groupby("model", sort=False):
        plain = part.pivot(index="fact_id", columns="name", values=measure).dropna()
        more = raised[raised["model"] == model]
        lifted = more.pivot(index="fact_id", columns="name", values=measure)
        values = plain.to_numpy()
        rest = (values.sum(1, keepdims=True) - values) / (values.shape[1] - 1)
        # [fact, name]
        apart, n = lifted.loc[plain.index, plain.columns].to_numpy() - rest, len(plain)
        subject = pd.factorize(facts.set_index("fact_id")["subject"].loc[plain.index])[0]
        members = [np.flatnonzero(subject == s) for s in range(subject.max() + 1)]
        rng, seen = np.random.default_rng(0), 0
        for _ in range(DRAWS):
            again = [members[s] for s in rng.integers(len(members), size=len(members))]
            facts_drawn, counts = np.concatenate(again), np.array([len(part) for part in again])
            drawn = apart[facts_drawn, rng.integers(apart.shape[1], size=len(facts_drawn))]
            mean = drawn.mean()
            sums = np.bincount(np.repeat(np.arange(len(again)), counts), drawn)
            error = np.sqrt(((sums - mean * counts) ** 2).sum()) / counts.sum()
            seen += mean > 1.96 * error
        rows.append((model, seen / DRAWS, apart.mean(), n))
    return pd.DataFrame(rows, columns=["model", "power", "planted", "n"])


def windows(scores: pd.DataFrame) -> pd.DataFrame:
    """W and R of every block of a fact's dates that could be its validity (equations 1 and 2). A
    row a cell and block: before (dates before it), true (it is the validity), win_rate (ties are
    not won), robust (0 or 1). Cells are those of `in_time`."""
    rows = []
    for cell, values, k, first in in_time(scores):
        for before in range(1, len(values) - k):
            block = np.s_[before : before + k]
            won = values[block][:, None] > np.delete(values, block)
            rows.append((*cell, before, before == first, won.mean(), won.all()))
    table = pd.DataFrame(rows, columns=[*CELL, "before", "true", *MEASURES])
    return table.astype({"true": bool} | dict.fromkeys(MEASURES, float))


def in_time(scores: pd.DataFrame) -> Iterator[tuple[Any, Array, int, int]]:
    """Each cell with incorrect dates on both sides and all values: the values in order of time, the
    number of its correct dates, and the place of the first."""
    dated = scores[scores["label"] != "transitional"].sort_values("date", kind="stable")
    every, right = dated["logprob"].to_numpy(dtype=float), (dated["label"] == "correct").to_numpy()
    for cell, places in dated.groupby(CELL, sort=False).indices.items():
        values, correct = every[places], right[places]
        k, first, last = correct.sum(), correct.argmax(), len(correct) - correct[::-1].argmax()
        if k and first > 0 and last < len(correct) and not np.isnan(values).any():
            yield cell, values, int(k), int(first)


def placebo(blocks: pd.DataFrame, measures: Sequence[str] = MEASURES) -> pd.DataFrame:
    """The true row of each cell of `windows`, `names` or `steps` beside the mean of its others,
    exactly. A row a cell, and for each measure win_rate, placebo_win_rate, win_rate_difference,
    robust, ... Cells without another row are left out."""
    true, others = blocks[blocks["true"]], blocks[~blocks["true"]]
    cells = others.groupby(CELL, sort=False)[[*measures]].mean()
    table = true.set_index(CELL)[[*measures]].join(cells.add_prefix("placebo_"), how="inner")
    for measure in measures:
        table[f"{measure}_difference"] = table[measure] - table[f"placebo_{measure}"]
    return table.reset_index()


def placebo_test(
    blocks: pd.DataFrame,
    facts: pd.DataFrame,
    by: Sequence[str] = (),
    *,
    measures: Sequence[str] = MEASURES,
    n_boot: int = 2000,
    n_draws: int = 9999,
) -> pd.DataFrame:
    """Is the true row above the others of its cell? A row a model, format, precision, `by` (of facts)
    and measure; `blocks` of `windows`, `names`, or `steps` of one boundary.

    validity (the true row) and placebo are means over facts; mean, low and high are of the difference, with whole
    subjects drawn (`facts` has fact_id and subject); n counts facts, subjects their subjects. p is
    of a permutation test: in each of `n_draws` draws every fact's true row is drawn among all of
    its own, facts of one subject at the same quantile; p = (1 + draws with at least the mean seen)
    / (1 + n_draws). Drift spreads the win rates of blocks, not of the balanced validity: then p of
    `windows` errs on the safe side.
    """
    keys, rows = [*KEY[:2], "precision", *by], []
    found = placebo(blocks, measures).merge(facts[["fact_id", "subject", *by]], on="fact_id")
    every = found[[*CELL, "subject", *by]].merge(blocks, on=CELL)
    order = "before" if "before" in blocks else "name"
    parts = dict(iter(every.sort_values(["fact_id", order]).groupby(keys)))
    for key, part in found.groupby(keys, sort=False):
        p = _permuted(parts[key], measures, n_draws)
        for measure in measures:
            pair = part[measure], part[f"placebo_{measure}"]
            apart = paired_difference(*pair, part["subject"], n_boot=n_boot)
            means = [one.mean() for one in pair]
            rows.append((*key, measure, *means, *apart._replace(n=len(part)), apart.n, p[measure]))
    columns = ["measure", "validity", "placebo", "mean", "low", "high", "n", "subjects", "p"]
    return pd.DataFrame(rows, columns=[*keys, *columns])


def _permuted(blocks: pd.DataFrame, measures: Sequence[str], n_draws: int) -> dict[str, float]:
    """The p-values of `measures`; `blocks` are sorted by fact, then by place."""
    sizes = blocks.groupby("fact_id").size().to_numpy()
    first = np.cumsum([0, *sizes[:-1]])
    number = pd.factorize(blocks["subject"].iloc[first], sort=True)[0]
    quantile = np.random.default_rng(0).random((n_draws, number.max() + 1))
    drawn = first + (quantile[:, number] * sizes).astype(int)  # [draw, fact] the number of a block
    values = blocks[[*measures]]
    least = values[blocks["true"]].mean() - 1e-9
    return {
        m: (1 + (values[m].to_numpy()[drawn].mean(axis=1) >= least[m]).sum()) / (1 + n_draws)
        for m in measures
    }


def by_number_of_dates(scores: pd.DataFrame, incorrect: Sequence[int]) -> pd.DataFrame:
    """Probability that a fact is robust when fewer of its incorrect dates are tested.

    For every k of `incorrect`: the share C(b, k) / C(n, k) of the choices of k of n incorrect dates
    with every match won, where b lie below the lowest correct one. A row a cell and k
    (n_incorrect): n_correct, robust, placebo (the mean over other blocks, or NaN), chance. Only
    facts with max(incorrect) incorrect dates, so that all points of a curve are of the same facts.
    """
    rows = []
    for cell, values, size, first in in_time(scores):
        n = len(values) - size
        below = [int((values < values[b : b + size].min()).sum()) for b in range(1, n)]
        for k in incorrect if n >= max(incorrect) else ():
            robust = [math.comb(number, k) / math.comb(n, k) for number in below]
            true = robust.pop(first - 1)
            others = np.mean(robust) if robust else np.nan
            rows.append((*cell, size, k, true, others, chance(size, k)))
    columns = [*CELL, "n_correct", "n_incorrect", "robust", "placebo", "chance"]
    return pd.DataFrame(rows, columns=columns)


def beaten(scores: pd.DataFrame) -> pd.DataFrame:
    """The incorrect dates with side ("before" or "after"), won (share of the fact's correct dates
    that are strictly likelier), drawn (equally likely), others_won (by the wrong names, mean; NaN
    without) and years (of YEARS). Facts without a correct date, or a score, are left out there."""
    missing = scores["logprob"].isna().groupby([scores[name] for name in CELL]).transform("any")
    rows = scores[~missing]
    pairs = match_table(rows).rename(columns={"incorrect": "date"})
    pairs = pairs.assign(won=pairs["outcome"] == "won", drawn=pairs["outcome"] == "tied")
    shares = pairs.groupby([*CELL, "date"])[["won", "drawn"]].mean().reset_index()
    table = rows[rows["label"] == "incorrect"].merge(shares, on=[*CELL, "date"])
    lost = []
    for _cell, part, values in _by_cell(rows[rows["label"] != "transitional"]):
        right = (part["label"] == "correct").to_numpy()
        if right.any():
            won = (values[right][:, None] > values[~right])[..., 1:].mean((0, 2))
            lost.append(part.loc[~right, [*CELL, "date"]].assign(others_won=won))
    if lost:
        table = table.merge(pd.concat(lost), on=[*CELL, "date"], how="left")
    years = in_ranges(table["years_off"].abs(), YEARS)
    return table.assign(years=years, side=np.where(table["years_off"] < 0, *BOUNDARIES))


def boundary_auc(scores: pd.DataFrame) -> pd.DataFrame:
    """How well the dates at a boundary are told apart: a row a cell of the scores and boundary. auc
    is the share of pairs in which the correct date is likelier than one before the "start", or
    after the "end"; ties count half. Scores that only rise have 1 at the start and 0 at the end."""
    table = beaten(scores)
    boundary = table["side"].map(BOUNDARIES)
    table = table.assign(auc=table["won"] + table["drawn"] / 2, boundary=boundary)
    return table.groupby([*CELL, "boundary"], sort=False)["auc"].mean().reset_index()
