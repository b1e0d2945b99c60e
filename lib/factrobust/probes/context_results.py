"""Part 4's results, a row a question: what they are, and those that were computed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factrobust.tables import FactsError, read_table, slug

COLUMNS = (
    *("model", "question_id", "category", "base_id", "object"),
    *("parametric", "counterfactual", "contextual"),
    *("p0", "p1", "p2", "p3", "p4"),
    *("n_tokens_parametric", "n_tokens_counterfactual"),
    *("first_entropy", "first_entropy_context", "first_shift"),
)
# The answer that each perplexity is of.
SCORED = {
    "p0": "parametric",
    "p1": "counterfactual",
    "p2": "parametric",
    "p3": "counterfactual",
    "p4": "contextual",
}
TEXTS = ("category", "base_id", "object", "parametric", "counterfactual", "contextual")
REQUIRED = (*TEXTS, "p0", "p1", "p2", "p3")
THESIS = {
    "Category": "category",
    "Base_Question": "base_id",
    "Thing": "object",
    "Object": "object",
    "Question": "question",
    "Prefix": "prefix",
    "base_proba": "p0",
    "base_cf_proba": "p1",
    "ctx_param_proba": "p2",
    "ctx_cf_proba": "p3",
    "ctx_proba": "p4",
}
JUDGED = ("comparison", "preference", "Num", "")  # what marking decides anew, and row numbers
LOWEST = 1 - 1e-6  # of a perplexity: 1, but for rounding


def read_results(path: str | Path, *, model: str | None = None) -> pd.DataFrame:
    """Return results that were computed elsewhere as the table of `probes.context.ask`.

    `path` is a CSV or parquet file with the columns category, base_id, object, parametric,
    counterfactual, contextual and p0 ... p3, or with the thesis's names for them (Category,
    Base_Question, Thing, base_proba, base_cf_proba, ctx_param_proba, ctx_cf_proba). p4 (ctx_proba)
    and the further columns of `ask` may be there; without them they are NaN. model is the file's
    name unless there is such a column or it is given. Columns of its own are kept, but for the
    thesis's verdicts (comparison, preference).

    attrs["counts"] holds "questions" and the numbers of empty answers. Raises FactsError with file,
    line and remedy for a missing column, and for a perplexity of an answer with letters or digits
    that is missing, no number, or below 1.
    """
    path = Path(path)
    given, row = _read(path)
    table = given.drop(columns=[name for name in JUDGED if name in given])
    if {"Thing", "Object"} <= set(table):  # one of the two was never filled in
        table = table.drop(columns="Thing" if table["Thing"].eq("").all() else "Object")
    table = table.rename(columns=THESIS)
    if missing := [name for name in REQUIRED if name not in table]:
        names = {ours: theirs for theirs, ours in THESIS.items()}
        wanted = ", ".join(f"{n} ({names[n]})" if n in names else n for n in missing)
        raise FactsError(
            f"{path}: these columns are missing: {wanted}; add them, by our name or, in brackets, "
            "the thesis's."
        )
    for column in TEXTS:
        table[column] = table[column].fillna("").astype("str")
    for column, answer in SCORED.items():
        if column in table:
            table[column] = _numbers(table, column, answer, f"{path}, {row}")
    if "model" not in table:
        table["model"] = model or path.stem
    if "question_id" not in table:
        table["question_id"] = table["base_id"] + "/" + table["object"].map(slug)
    for column in COLUMNS[12:]:
        values = table[column] if column in table else pd.Series(np.nan, index=table.index)
        numbers = pd.to_numeric(values, errors="coerce")
        counted = column.startswith("n_tokens")
        table[column] = numbers.astype("Int64") if counted else numbers.astype(float)
    rest = [name for name in table if name not in COLUMNS]
    table = table[[*COLUMNS, *rest]].reset_index(drop=True)
    table.attrs["counts"] = {"questions": len(table)} | count_empty(table)
    return table


def count_empty(results: pd.DataFrame) -> dict[str, int]:
    """How many answers of each sort have no letter or digit, as {"empty_parametric": 3, ...}."""
    return {f"empty_{name}": int(_empty(results[name]).sum()) for name in TEXTS[3:]}


def _read(path: Path) -> tuple[pd.DataFrame, str]:
    """The file's table, indexed by line or row, and the word for that."""
    if path.suffix != ".parquet":
        return read_table(path, required=(), optional=()), "line"
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise FactsError(f"{path} cannot be read ({error}); check the path.") from error
    return table.set_axis(range(1, len(table) + 1)), "row"


def _numbers(table: pd.DataFrame, column: str, answer: str, where: str) -> pd.Series:
    values = pd.to_numeric(table[column], errors="coerce").astype(float)
    counted = ~_empty(table[answer])
    for line in values.index[counted & ~(values >= LOWEST)][:1]:
        cell: Any = table.at[line, column]
        told = "missing" if pd.isna(cell) or cell == "" else cell
        raise FactsError(
            f"{where} {line}: the perplexity {column} of the {answer} answer "
            f"{table.at[line, answer]!r} is {told}, and not a number from 1 up; compute it, or "
            "delete the row."
        )
    return values


def _empty(texts: pd.Series) -> pd.Series:
    return ~texts.map(lambda text: any(c.isalnum() for c in text)).astype(bool)
