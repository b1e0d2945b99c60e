"""The intervals that a notebook's text states are those of the tables and figures it saved.

How a notebook opens and ends, and how many words all have.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from factrobust.paths import ROOT
from factrobust.reproduce.profiles import find_notebooks

NUMBER = r"-?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"\[({NUMBER})%?,\s+({NUMBER})%?\](?!\$)")
REACH = 60  # characters before an interval among which its estimate stands


class Estimate(NamedTuple):
    value: float
    low: float
    high: float


class Statement(NamedTuple):
    before: str
    low: str
    high: str


def all_cells(notebook: str) -> list[dict[str, Any]]:
    return json.loads((ROOT / notebook).read_text(encoding="utf-8"))["cells"]


def cells_of(notebook: str) -> list[str]:
    """The markdown cells of a notebook."""
    found = [cell for cell in all_cells(notebook) if cell["cell_type"] == "markdown"]
    return ["".join(cell["source"]) for cell in found]


def statements(notebook: str) -> Iterator[Statement]:
    """Each interval in the text of a notebook, after what stands before it."""
    for cell in cells_of(notebook):
        yield from statements_in(cell)


def statements_in(text: str) -> Iterator[Statement]:
    for found in INTERVAL.finditer(text):
        before = text[max(0, found.start() - REACH) : found.start()]
        if not before.endswith("$"):  # a range, in a formula
            yield Statement(" ".join(before.split()), found[1], found[2])


def estimates(notebook: str, results: Path) -> Iterator[Estimate]:
    """All estimates with an interval in the data of the notebook's figures and tables."""
    for about in sorted(results.glob("figures/**/*.json")):
        if json.loads(about.read_text(encoding="utf-8"))["notebook"] == notebook:
            yield from estimates_in(about.with_suffix(".csv"))


def estimates_in(path: Path) -> Iterator[Estimate]:
    table = pd.read_csv(path)
    for place, name in enumerate(table.columns):
        if re.search(r"\blow$", name.replace("_", " ")):  # "hollow" is no bound
            rows = table.iloc[:, place - 1 : place + 2]
            high = name.removesuffix("low") + "high"
            assert rows.columns[2] == high, f"{path}: {name} is not followed by {high}"
            yield from map(Estimate._make, rows.to_numpy())


def is_rounded(text: str, number: float) -> bool:
    """Whether the number, or its percentage, is what the text rounds it to."""
    digits = len(text.partition(".")[2])
    return any(abs(float(text) - n) <= 0.5001 * 10**-digits for n in (number, 100 * number))


def agrees(stated: Statement, made: Estimate) -> bool:
    """Whether a statement is about this estimate, or about what is lost ("costs 15 points [8,
    24]").

    The estimate itself may stand there as a count ("7 of 10").
    """
    for value, low, high in (made, Estimate(-made.value, -made.high, -made.low)):
        if is_rounded(stated.low, low) and is_rounded(stated.high, high):
            counts = re.findall(r"(\d+) of (?:\w+'s )?(\d+)", stated.before)
            if any(abs(int(k) / int(n) - value) < 1e-5 for k, n in counts):
                return True
            return any(is_rounded(n, value) for n in re.findall(NUMBER, stated.before))
    return False


def drifted(stated: list[Statement], made: list[Estimate]) -> list[Statement]:
    """The statements that are about none of the estimates."""
    return [one for one in stated if not any(agrees(one, estimate) for estimate in made)]


# "0.39 [0.28, 0.50]" and "(350, 4.6)" count as one number; so does none of a formula, code or link.
NO_NUMBER = re.compile(
    rf"\[{NUMBER}%?,\s+{NUMBER}%?\]|\[[^\]]*\]\([^)]*\)|\$[^$]*\$|`[^`]*`|\*\*[^*]*\*\*|\b[1-6]\.\d\b(?!%)"
)
MOST_WORDS = 37_000  # of parts 0 to 6


def ending(cell: str) -> tuple[str, int, int]:
    """The headline of a last cell, and how many words and numbers follow it."""
    found = re.search(r"\A(?:#.*\n+)?\*\*(.+?)\*\*(.*)", cell[cell.rfind("## What we saw") :], re.S)
    headline, rest = found.groups() if found else ("", cell)
    return headline, len(rest.split()), len(re.findall(NUMBER, NO_NUMBER.sub("", rest)))


PARTS = [name for name in find_notebooks(ROOT) if re.match(r"notebooks/\d", name)]


@pytest.mark.parametrize("notebook", PARTS)
def test_a_notebook_opens_with_what_one_can_do_then_and_ends_short(notebook):
    first, *_, last = cells_of(notebook)
    assert re.search(r"[Aa]fter (this|these)\s", first)
    assert re.search(r"(\d+|ten) minutes", first)
    headline, words, numbers = ending(last)
    assert headline
    assert words <= 150, headline
    assert numbers <= 12, headline
    assert len(all_cells(notebook)) <= 30


def test_how_an_ending_is_counted():
    cell = "What was said. 9\n\n## What we saw\n\n**One.**\n\n- Of $n = 3$ 41% [33, 47] and\n-0.5 (1.8)."
    assert ending(cell) == ("One.", 11, 2)
    assert ending("No headline, 2 words.") == ("", 4, 1)


def test_all_parts_can_be_read_in_a_day():
    words = {name: sum(len(cell.split()) for cell in cells_of(name)) for name in PARTS}
    assert sum(words.values()) <= MOST_WORDS, words


NOTEBOOKS = [name for name in find_notebooks(ROOT) if any(statements(name))]


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_intervals_in_the_text_are_those_of_the_tables(notebook, results):
    made = list(estimates(notebook, results))
    assert drifted(list(statements(notebook)), made) == []


def test_a_statement_that_drifted_is_found():
    assert sum(len(list(statements(name))) for name in NOTEBOOKS) > 30
    made = Estimate(0.4146, 0.3349, 0.4688)
    assert agrees(*statements_in("Gemma answers 41% [33, 47] of the questions"), made)
    assert agrees(*statements_in("the mean is 0.41 [0.33, 0.47]"), made)
    assert agrees(*statements_in("it costs -41 points [-47, -33]"), made)
    assert not agrees(*statements_in("Gemma answers 42% [33, 47]"), made)
    assert not agrees(*statements_in("Gemma answers 41% [34, 47]"), made)
    assert not agrees(*statements_in("Gemma answers 41% [33, 48]"), made)
    held = Estimate(0.7, 0.348, 0.933)
    assert agrees(*statements_in("kind 5 holds 7 of 10 [35, 93]"), held)
    assert not agrees(*statements_in("kind 5 holds 6 of 10 [35, 93]"), held)
