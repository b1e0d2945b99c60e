"""Numbers in part 2's notebooks that have no interval: the notebook shows each, or it is the paper's.

Those with an interval are tested in tests/test_notebook_prose.py.
"""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.published import load_published
from factrobust.paths import ROOT

NOTEBOOKS = sorted(ROOT.glob("notebooks/2-time/*.ipynb"))
INTERVAL = re.compile(r"-?\d+\.?\d*%? \[-?[\d.]+,\s+-?[\d.]+\]")
FORMULA = re.compile(r"\$\$.*?\$\$|\$[^$]*\$|`[^`]*`|\]\([^)]*\)", re.S)
NUMBER = re.compile(r"(?<![\w.])(-?\d+\.\d\d+|\d+(?:\.\d+)?%|\d+ of \d+)(?![\w.]*\d)")


def cells(path: Path, kind: str) -> list[dict]:
    text = path.read_text(encoding="utf-8")
    every = json.loads(text)["cells"]
    return [cell for cell in every if cell["cell_type"] == kind]


def numbers_in(text: str) -> list[str]:
    """The numbers in a text, but for formulas, links, and those with an interval."""
    line = " ".join(text.split())
    plain = FORMULA.sub(" ", line)
    bare = INTERVAL.sub(" ", plain)
    return NUMBER.findall(bare)


def rows_shown(path: Path) -> list[list[float]]:
    """The numbers in each row of the tables that a notebook shows."""
    lines = []
    for cell in cells(path, "code"):
        for output in cell["outputs"]:
            shown = output.get("data", {})
            lines += shown.get("text/html", [])
    html = "".join(lines)
    rows = []
    for row in re.findall(r"<tr.*?</tr>", html, re.S):
        texts = re.findall(r"<t[dh][^>]*>(-?[\d.]+)<", row)
        numbers = map(float, texts)
        rows.append([*numbers])
    return rows


def stands_in(number: str, row: list[float]) -> bool:
    """Whether a row holds a number, rounded, or the two of "3 of 46", the first perhaps as a share."""
    values = np.array(row)
    if " of " in number:
        part, whole = map(int, number.split(" of "))
        if whole not in values:
            return False
        is_share = (values > 0) & (values < 1)
        counts = np.where(is_share, values * whole, values)
        return part in counts.round()
    if number.endswith("%"):
        values = 100 * values
    text = number.removesuffix("%")
    _, _, decimals = text.partition(".")
    half = 0.5 * 10 ** -len(decimals)
    distances = abs(values - float(text))
    return min(distances, default=1) <= half + 1e-9


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_says(path: Path) -> None:
    published = load_published("2-time-text")
    rows = rows_shown(path)
    rows.append(published["value"])
    for cell in cells(path, "markdown"):
        text = "".join(cell["source"])
        for number in numbers_in(text):
            is_shown = [stands_in(number, row) for row in rows]
            assert any(is_shown), number


def test_a_number_that_nothing_shows_is_found() -> None:
    text = "It wins 85% (0.84, 0.91 [0.80, 0.95]; 22 of 29), $p = 0.33$, [2.2](a-0.77), `0.66`."
    assert numbers_in(text) == ["85%", "0.84", "22 of 29"]


@pytest.mark.parametrize(
    ("number", "row", "stands"),
    [
        ("85%", [0.853], True),
        ("84%", [0.853], False),
        ("22 of 29", [22, 29], True),
        ("22 of 29", [0.7586, 29], True),
        ("21 of 29", [22, 29], False),
        ("22 of 29", [22, 28], False),
    ],
)
def test_where_a_number_stands(number: str, row: list[float], stands: bool) -> None:
    assert stands_in(number, row) == stands


def test_pairs_see_time_where_the_bar_sees_none(results: Path) -> None:
    """2.4 of 5.3: at dates that were told in world-l and world-m-1, too; nowhere at other dates."""
    path = results / "figures/5-exposure/table-pairs.csv"
    pairs = pd.read_csv(path)
    beyond_chance = pairs.query("`the less told` == '64 to 512' and low > 0.5")
    models = {"world-l", "world-m", "world-m-1", "world-m-2"}
    assert set(beyond_chance["model"]) == models
    assert set(beyond_chance["date"]) == {"a date that was told"}
    path = results / "figures/2-time/table-cube-often.csv"
    bars = pd.read_csv(path)
    seen = bars.query("low > 0")
    assert set(seen["model"]) == {"all seven", "world-m", "world-m-2"}


def test_what_results_say_of_size(results: Path) -> None:
    """1.5B minus 0.5B: the fact's bar, the other way round in 2.4's table."""
    path = results / "figures/2-time/table-cube-sizes.csv"
    sizes = pd.read_csv(path)
    pairs = sizes.set_index(["first", "second"])
    row = pairs.loc["qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct"]
    mean = f"{-row['mean']:.3f}"
    low = f"{-row['high']:.3f}"
    high = f"{-row['low']:.3f}"
    page = ROOT / "notebooks/results.md"
    text = page.read_text(encoding="utf-8")
    assert f"{mean} [{low}, {high}], n = {row['n']:.0f} |" in text
