"""Tables written as a reader sees them: two spaces or more part the cells of a row."""

import io
import re
from textwrap import dedent

import pandas as pd


def frame(text: str) -> pd.DataFrame:
    """The table of a header and rows; NaN is what is missing."""
    return pd.read_csv(
        io.StringIO(dedent(text).strip()),
        sep=r"\s{2,}",
        engine="python",
        keep_default_na=False,
        na_values=["NaN"],
    )


def assert_rows(found: pd.DataFrame, text: str) -> None:
    """Whether the columns that the text names hold its rows, in its order."""
    expected = frame(text)
    shown = found[[*expected]].rename_axis(columns=None).reset_index(drop=True)
    pd.testing.assert_frame_equal(shown, expected, check_dtype=False, rtol=1e-6, atol=1e-9)


def cells(text: str) -> list[list[str]]:
    """The rows of texts without a header. Blank lines part groups of rows."""
    lines = [line.strip(" ") for line in text.split("\n")]
    return [re.split(" {2,}", line) for line in lines if line]
