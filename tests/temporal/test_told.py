"""Numbers in part 2's notebooks that have no interval: each is one that the notebook shows or saved.

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
SAID = re.compile(r"(?<![\w.])(-?\d+\.\d\d+|\d+(?:\.\d+)?%|\d+ of \d+)(?![\w.]*\d)")
# Not of our models: what the paper says of its own, and bits as a factor of a probability.
PAPERS = {*load_published("2-time-text")["value"], *load_published("2-time-table-2")["value"]}
ALLOWED = {2**0.04 - 1}


def cells(path: Path, kind: str) -> list[dict]:
    read = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in read if cell["cell_type"] == kind]


def told(text: str) -> list[str]:
    """The numbers in a text, but for formulas, links, and those with an interval."""
    plain = FORMULA.sub(" ", re.sub(r"\s+", " ", text))
    return SAID.findall(INTERVAL.sub(" ", plain))


def shown(path: Path) -> list[list[float]]:
    """The numbers in each row of the tables that a notebook shows."""
    rows = []
    for cell in cells(path, "code"):
        for output in cell["outputs"]:
            html = "".join(output.get("data", {}).get("text/html", []))
            for row in re.findall(r"<tr.*?</tr>", html, re.S):
                texts = re.findall(r"<t[dh][^>]*>([^<]*)<", row)
                rows.append([float(t) for t in texts if re.fullmatch(r"-?[\d.]+", t)])
    return rows


def saved(path: Path, results: Path) -> list[list[float]]:
    """The same of the data of its figures and tables."""
    rows = []
    notebook = path.relative_to(ROOT).as_posix()
    for about in sorted(results.glob("figures/2-time/*.json")):
        if json.loads(about.read_text(encoding="utf-8"))["notebook"] == notebook:
            table = pd.read_csv(about.with_suffix(".csv")).select_dtypes("number")
            rows += [row[~np.isnan(row)].tolist() for row in table.astype(float).to_numpy()]
    return rows


def numbers(path: Path, results: Path) -> tuple[set[float], set[tuple[int, int]]]:
    """All numbers that a notebook shows or saved, and pairs of whole ones in a row."""
    values: set[float] = set()
    pairs: set[tuple[int, int]] = set()
    for row in shown(path) + saved(path, results):
        values |= set(row)
        whole = {int(x) for x in row if x == int(x)}
        whole |= {round(x * n) for x in row for n in whole if 0 <= x <= 1}
        pairs |= {(k, n) for k in whole for n in whole if k <= n}
    return values, pairs


def is_one_of(said: str, values: set[float], pairs: set[tuple[int, int]]) -> bool:
    if " of " in said:
        k, n = map(int, said.split(" of "))
        return (k, n) in pairs
    text, scale = (said[:-1], 100) if said.endswith("%") else (said, 1)
    half = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return any(abs(scale * value - float(text)) <= half + 1e-9 for value in values)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_says_is_what_it_shows(path: Path, results: Path) -> None:
    values, pairs = numbers(path, results)
    text = "\n".join("".join(cell["source"]) for cell in cells(path, "markdown"))
    unknown = [x for x in told(text) if not is_one_of(x, values | PAPERS | ALLOWED, pairs)]
    assert unknown == []


def test_a_number_that_nothing_shows_is_found() -> None:
    said = "It wins 85% (0.84, 0.91 [0.80, 0.95]; 22 of 29), $p = 0.33$, [2.2](a-0.77), `0.66`."
    assert told(said) == ["85%", "0.84", "22 of 29"]
    assert is_one_of("85%", {0.853}, set())
    assert not is_one_of("84%", {0.853}, set())
    assert is_one_of("22 of 29", set(), {(22, 29)})
    assert not is_one_of("21 of 29", set(), {(22, 29)})


def test_pairs_see_time_where_the_bar_sees_none(results: Path) -> None:
    """2.4 of 5.3: at dates that were told in world-l and world-m-1, too; nowhere at other dates."""
    pairs = pd.read_csv(results / "figures" / "5-exposure" / "table-pairs.csv")
    often = pairs[pairs["the less told"] == "64 to 512"].set_index(["date", "model"])["low"]
    told = often["a date that was told"]
    assert {*told.index[told > 0.5]} == {"world-l", "world-m", "world-m-1", "world-m-2"}
    assert (often["another date of the period"] < 0.5).all()
    bars = pd.read_csv(results / "figures" / "2-time" / "table-cube-often.csv").set_index("model")
    assert {*bars.index[bars["low"] > 0]} == {"all seven", "world-m", "world-m-2"}


def test_what_results_say_of_size(results: Path) -> None:
    """1.5B minus 0.5B: the fact's bar, the other way round in 2.4's table."""
    sizes = pd.read_csv(results / "figures" / "2-time" / "table-cube-sizes.csv")
    names = ["qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct"]
    [row] = sizes[(sizes["first"] == names[0]) & (sizes["second"] == names[1])].itertuples()
    said = f"{-row.mean:.3f} [{-row.high:.3f}, {-row.low:.3f}], n = {row.n} |"
    assert said in (ROOT / "notebooks" / "results.md").read_text(encoding="utf-8")
