"""Part 4's tables of counts: sources and kinds, perplexities, degenerate answers, P0 above P1.

Marked results are those of `metrics.grounding.mark`; the other functions need no marks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.metrics.grounding import ANSWERS, PREFERENCES, SOURCES
from factrobust.metrics.others import KINDS
from factrobust.metrics.phrases import empty
from factrobust.statistics import Interval, binomial_interval, bootstrap_mean

VALUES: dict[str, tuple] = {
    "source": SOURCES,
    "preference": PREFERENCES,
    "kind": tuple(KINDS),
}
DEGENERATE = ("empty", "option", "marks", "short")
_OPTION = re.compile(r"\s*(?:[(\[{]\s*(?:\w|[ivxIVX]{2,4})|(?:[A-E]|[a-e]))(?!\w)[^\w]*")
_MARK = re.compile(r"(?<!\w)[A-Z]:")


def counts_by(
    marked: pd.DataFrame,
    by: Sequence[str] = ("model",),
    value: str = "source",
    *,
    group: str | None = "question_id",
    n_boot: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """How often each value occurs, and its share of the rows that have one (tables 8 to 10, 13, 14).

    `value` is source, preference or kind, whose values are all listed, or any other column. Columns:
    those of `by`, value, count, total (rows with a value), share, low, high, n (number of `group`s),
    n_missing (rows without a value). Sources, preferences and kinds stand in their order, other
    columns of `by` in that of their first rows.

    Where each group has one row, low and high are exact binomial bounds (Clopper-Pearson), which say
    how little 0 of 8 tells; resampling would say that it is 0 for sure. Where a group has several
    rows, whole groups are resampled (`bootstrap_mean`).
    """
    rows = []
    order = VALUES.get(value, tuple(marked[value].dropna().unique()))
    for key, part in _groups(marked, by):
        known = part[part[value].notna()]
        groups = pd.Series(range(len(known))) if group is None else known[group]
        for name in order:
            hits = (known[value] == name).to_numpy(dtype=float)
            share = _share(hits, groups, n_boot, seed)
            missing = len(part) - len(known)
            rows.append((*key, name, int(hits.sum()), len(known), *share, missing))
    columns = [*by, value, "count", "total", "share", "low", "high", "n", "n_missing"]
    return pd.DataFrame(rows, columns=columns)


def shares(counts: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """Counts that a paper prints with their shares of the total over the columns `by`.

    `counts` has those, count, and what was counted, such as source. Adds total, share, low and high
    (exact binomial bounds, as if questions were independent) and n (the total), as in `counts_by`.
    """
    total = counts.groupby(list(by), sort=False)["count"].transform("sum")
    low, high = binomial_interval(counts["count"], total)
    return counts.assign(total=total, share=counts["count"] / total, low=low, high=high, n=total)


def perplexity_table(
    marked: pd.DataFrame,
    by: Sequence[str] = ("model", "source"),
    value: str = "p4",
    *,
    group: str | None = "question_id",
    n_boot: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Distribution of a perplexity, or any other number (tables 11 and 12).

    The thesis groups P4, the perplexity of the answer given, by the published preference: then the
    groups differ by their selection, P4 > P3. Columns: those of `by`, count, mean, low, high (of the
    mean), n (number of `group`s), std, 25%, 50%, 75%, n_missing (rows without a finite number).
    """
    rows = []
    for key, part in _groups(marked, by):
        known = part[np.isfinite(part[value].to_numpy(dtype=float))]
        numbers = known[value].astype(float)
        groups = None if group is None else known[group]
        mean = bootstrap_mean(numbers, groups, n_boot=n_boot, seed=seed)
        quartiles = numbers.quantile([0.25, 0.5, 0.75])
        rows.append((*key, len(known), *mean, numbers.std(), *quartiles, len(part) - len(known)))
    columns = [*by, "count", "mean", "low", "high", "n", "std", "25%", "50%", "75%", "n_missing"]
    return pd.DataFrame(rows, columns=columns)


def degeneracy(text: object) -> str | None:
    """Why a text is hardly an answer, or None.

    "empty": no word but "the", or missing; "option": the mark of an option, such as "(D", "[4" or
    "b)", a letter A to E also by itself; "marks": a capital and a colon somewhere, which go on with
    the prompt's form ("A: Jazz B: Rock"); "short": one or two characters without a digit. Symbols of
    elements ("Au"; "C" is an option) are degenerate here, too, and right where one is asked for.
    """
    if not isinstance(text, str) or empty(text):
        return "empty"
    if _OPTION.fullmatch(text):
        return "option"
    if _MARK.search(text):
        return "marks"
    left = re.sub(r"[\W_]", "", text)
    return "short" if len(left) <= 2 and not any(c.isdigit() for c in left) else None


def degenerate_counts(results: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """How many answers are degenerate (see `degeneracy`).

    Columns: those of `by`, answer (one of ANSWERS), empty, option, marks, short, degenerate (their
    sum), n (rows), share.
    """
    tables = []
    for answer in ANSWERS:
        why = results[answer].map(degeneracy)
        rows = results[list(by)].assign(**{name: why == name for name in DEGENERATE}, n=1)
        table = rows.groupby(list(by), sort=False, observed=True).sum().reset_index()
        tables.append(table.assign(answer=answer))
    table = pd.concat(tables, ignore_index=True)
    table["degenerate"] = table[list(DEGENERATE)].sum(axis=1)
    table["share"] = table["degenerate"] / table["n"]
    return table[[*by, "answer", *DEGENERATE, "degenerate", "n", "share"]]


def p0_exceptions(results: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """How often P0 > P1, which the thesis excludes by definition (3.3.2).

    The parametric answer is greedy, so its first token is the likeliest; but a mean over several
    tokens may be lower for another answer. Only where both answers have one token is P0 <= P1 sure
    (if generation could choose from all tokens, as scoring does). Columns: those of `by`, tokens
    ("one each", "more", or "unknown" without n_tokens_parametric and n_tokens_counterfactual), n
    (rows with both perplexities), exceptions, share, n_missing.
    """
    lengths = [f"n_tokens_{name}" for name in ANSWERS[:2]]
    counts = results.reindex(columns=lengths).to_numpy(dtype=float, na_value=np.nan)
    one = np.where((counts == 1).all(axis=1), "one each", "more")
    tokens = np.where(np.isnan(counts).any(axis=1), "unknown", one)
    known = results[["p0", "p1"]].notna().all(axis=1)
    rows = results[list(by)].assign(
        tokens=tokens, n=known, exceptions=results["p0"] > results["p1"], n_missing=~known
    )
    table = rows.groupby([*by, "tokens"], sort=False, observed=True).sum().reset_index()
    table["share"] = table["exceptions"] / table["n"]
    return table[[*by, "tokens", "n", "exceptions", "share", "n_missing"]]


def _share(hits: np.ndarray, groups: pd.Series, n_boot: int, seed: int) -> Interval:
    """Share of hits with the interval that `counts_by` describes."""
    n = len(hits)
    if n == 0 or groups.duplicated().any():
        return bootstrap_mean(hits, groups, n_boot=n_boot, seed=seed)
    low, high = binomial_interval(hits.sum(), n)
    return Interval(float(hits.mean()), float(low), float(high), n)


def _groups(table: pd.DataFrame, by: Sequence[str]) -> list[tuple[tuple, pd.DataFrame]]:
    """The parts of a table by the columns `by`, column by column in the order of VALUES, or else of
    the first rows; missing values last."""
    parts = list(table.groupby(list(by), sort=False, observed=True, dropna=False))
    ranks = []
    for name in by:
        order = [*VALUES.get(name, ()), *table[name].dropna().unique()]
        ranks.append({value: order.index(value) for value in reversed(order)})
    keys = [[rank.get(x, np.inf) for x, rank in zip(key, ranks, strict=True)] for key, _ in parts]
    return [parts[i] for i in sorted(range(len(parts)), key=keys.__getitem__)]
