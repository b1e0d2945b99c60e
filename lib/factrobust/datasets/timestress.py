"""TimeStress: the temporal facts and dated statements that the authors of paper 2 published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from factrobust.datasets.dates import COLUMNS as DATE_COLUMNS
from factrobust.datasets.dates import PRECISIONS, is_date, parse, position, verbalise
from factrobust.datasets.formats import check_format, is_parquet
from factrobust.datasets.hub import located, read_lines
from factrobust.datasets.temporal import complete
from factrobust.tables import FactsError, slug

HUB = "Orange/TimeStress"
REVISION = "d8fd7c143bde1aaa15befe7b549ebb31aaa83eda"  # of 2025
# What is read, under their names and ours. Their Alpha is computed anew, and a date's length is its
# precision, so that their Granularity is not needed; Wikidata's ids and FactPop may be missing.
FACT = {
    "SubjectLabel": "subject",
    "RelationLabel": "relation",
    "ObjectLabel": "object",
    "StartDate": "start",
    "EndDate": "end",
}
DATE = {"Time": "date", "Statement": "statement", "IsCorrect": "label"}
IDS = ("SubjectID", "RelationID", "ObjectID")
LABELS = ("correct", "incorrect", "transitional", "discarded", "no context")


def load_timestress(
    path: str | Path | None = None, *, revision: str = REVISION
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The facts and the dates of TimeStress (2,003 facts of 86 relations, CC BY-SA 4.0).

    `path` is a local copy: a parquet, CSV or JSON-lines file, or a folder of parquet files. None
    takes the hub's Orange/TimeStress, or its cache, at `revision`, as the column source tells. This
    project's tests cannot reach the hub: the download is untried.

    facts has the columns of `load_temporal_facts`, then question: the authors' wording, which varies
    from fact to fact, to be put after a date. Relations are their labels with underscores
    ("member_of_sports_team"); popularity is log10 of FactPop, their geometric mean of the visits to
    the subject's and the object's page.

    dates has the columns of `sample_dates`, with the authors' labels (rule "published"). Left out
    and counted in dates.attrs["dropped"]: "no context" (a question without a date), "discarded" (the
    month and day of a year that is transitional), "before year 1" (in the date or a bound).

    Raises FactsError for a file that cannot be read, lacks a column or holds a row that is not as
    described, ConnectionError when the hub's copy cannot be fetched.
    """
    files, source = located(path, HUB, revision, "*.parquet")
    if files[0].is_dir():
        files = _inside(files[0])
    rows = _checked(pd.concat([_read(file) for file in files]), Path(path or files[0]))
    early = rows[["start", "end", "date"]].apply(_is_early).any(axis=1)
    dropped = {
        "no context": int((rows["label"] == "no context").sum()),
        "discarded": int((rows["label"] == "discarded").sum()),
        "before year 1": int(early.sum()),
    }
    rows = rows[~early].copy()
    key = [name for name in (*IDS, *FACT.values()) if name in rows]
    rows["fact"] = rows.groupby(key, sort=False, dropna=False).ngroup()
    # A question without a date comes first, where there is one.
    first = rows.sort_values("date", na_position="first", kind="stable").drop_duplicates("fact")
    facts = _facts(first.sort_index(), source)
    dates = _dates(rows[rows["label"].isin(LABELS[:3])], facts.set_index("fact"))
    dates.attrs["dropped"] = dropped
    return facts.drop(columns="fact"), dates


def _facts(first: pd.DataFrame, source: str) -> pd.DataFrame:
    """One row a fact, from one row of each."""
    popularity = pd.to_numeric(first["FactPop"]) if "FactPop" in first else np.nan
    wording = [
        (text if pd.isna(date) else text.removeprefix(f"{verbalise(date)}, ")).split("?")[0] + "?"
        for text, date in zip(first["statement"], first["date"], strict=True)
    ]
    facts = first[[*FACT.values(), "fact"]].assign(
        relation=[slug(label).replace("-", "_") for label in first["relation"]],
        popularity=np.log10(popularity),
        popularity_source="log10 of TimeStress's FactPop" if "FactPop" in first else "",
        source=source,
        question=wording,
    )
    facts = complete(facts.reset_index(drop=True))
    again = facts.groupby("fact_id").cumcount()  # different things of one name
    facts["fact_id"] += ("/" + (again + 1).astype(str)).where(again > 0, "")
    return facts


def _dates(rows: pd.DataFrame, facts: pd.DataFrame) -> pd.DataFrame:
    """The table of dates, sorted by fact, precision and date."""
    span = parse(rows["date"])
    alpha, years_off = position(span, parse(rows["start"]), parse(rows["end"]))
    precision = rows["date"].str.len().map({4: 0, 7: 1, 10: 2})
    dates = rows.assign(
        fact_id=rows["fact"].map(facts["fact_id"]),
        precision=precision.map(dict(enumerate(PRECISIONS))),
        year=rows["date"].str[:4].astype(int),
        alpha=alpha,
        years_off=years_off,
    )
    order = np.lexsort((span[0], precision.to_numpy(), rows["fact"].to_numpy()))
    return dates.iloc[order][list(DATE_COLUMNS)].reset_index(drop=True)


def _checked(rows: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The rows as texts under our names, numbered from 1."""
    if missing := [name for name in (*FACT, *DATE) if name not in rows]:
        raise FactsError(
            f"{path}: the column {missing[0]!r} of TimeStress is missing; it has {', '.join(rows.columns)}."
        )
    if rows.empty:
        raise FactsError(f"{path} has no rows; fetch {HUB} anew.")
    rows = rows.rename(columns=FACT | DATE).set_axis(range(1, len(rows) + 1))
    for name in (*FACT.values(), *DATE.values()):
        rows[name] = rows[name].astype("str")
    rows["label"] = rows["label"].str.lower()
    rows["date"] = rows["date"].where(rows["label"] != "no context")
    bad = {"label": ~rows["label"].isin(LABELS)}
    for name in ("start", "end", "date"):
        known = [text for text in rows[name].dropna().unique() if is_date(text)]
        undated = rows["label"] == "no context" if name == "date" else False
        bad[name] = ~(rows[name].isin(known) | _is_early(rows[name]) | undated)
    theirs = {ours: name for name, ours in (FACT | DATE).items()}
    for name, where in bad.items():
        for row in rows.index[where][:1]:
            raise FactsError(
                f"{path}, row {row}: {theirs[name]} {rows.at[row, name]!r} is not as TimeStress has "
                "it; mend or remove the row."
            )
    return rows


def _is_early(dates: pd.Series) -> pd.Series:
    return dates.str.startswith(("-", "0000"), na=False)  # before year 1: -0044, 0000


def _inside(folder: Path) -> list[Path]:
    files = sorted(folder.rglob("*.parquet"))
    if not files:
        raise FactsError(f"{folder} holds no parquet files; give a folder that does, or a file.")
    return files


def _read(path: Path) -> pd.DataFrame:
    check_format(path, "TimeStress")
    try:
        if is_parquet(path):
            return pd.read_parquet(path)
        if path.suffix == ".csv":
            return pd.read_csv(path, dtype=str, keep_default_na=False, na_values={"Time": [""]})
        return pd.DataFrame([row for _, row in read_lines(path, "TimeStress")])
    except FactsError:
        raise
    except (OSError, ValueError) as error:
        said = " ".join(str(error).split())
        raise FactsError(
            f"{path} cannot be read as TimeStress ({said}); give a parquet, CSV or JSON-lines file, "
            "or a folder of parquet files."
        ) from error
