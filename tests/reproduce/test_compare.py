"""compare: what counts as the same number, text or table."""

from __future__ import annotations

import math

import pytest

from factrobust.reproduce.compare import align, close, compare_tables, tolerance


@pytest.mark.parametrize(
    ("new", "old", "agreed"),
    [
        ("0.123456789", "0.1234567891", True),  # 1e-9 relative: another machine's rounding
        ("0.505", "0.5", False),  # 1 %
        ("1.0000011", "1.0", False),
        ("1.0000009", "1.0", True),
        ("-1.5", "1.5", False),
        ("3e-10", "0.0", True),  # below ATOL everything is zero
        ("3e-8", "0.0", False),
        ("1000001", "1000000", False),  # integers exactly, though 1e-6 apart
        ("5", "5.0", True),
    ],
)
def test_close(new: str, old: str, agreed: bool) -> None:
    assert close(new, old) is agreed


def test_align_replaces_only_numbers_that_agree() -> None:
    reference = "gemma 0.5000000 of 160, <td>-1.25</td> 3.0e-3"
    test = "gemma 0.5000000004 of 161, <td>-1.2500000001</td> 3.1e-3"
    assert align(test, reference) == "gemma 0.5000000 of 161, <td>-1.25</td> 3.1e-3"


def test_align_leaves_words_versions_and_dates_alone() -> None:
    assert align("v1.5 x2.0 2024-01-02", "v1.6 x2.1 2024-01-03") == "v1.5 x2.0 2024-01-02"
    assert align("Py 3.11.2", "Py 3.11.3") == "Py 3.11.2"


def test_align_with_another_count_of_numbers_replaces_nothing() -> None:
    assert align("0.1 0.2", "0.1000000001") == "0.1 0.2"


def test_tolerance_of_a_cell_comes_from_its_tags() -> None:
    assert tolerance(["parameters"]) == (1e-6, 1e-9)
    assert tolerance(["rtol=0.02", "atol=0.1"]) == (0.02, 0.1)
    assert align("1.01", "1.0", *tolerance(["rtol=0.02"])) == "1.0"


TABLE = "model,n,frs\ngemma,3,0.5\nsmollm,4,\n"


def test_compare_tables_counts_and_places_a_moved_number() -> None:
    found = compare_tables(TABLE.replace("0.5", "0.55"), TABLE)
    assert found.numbers == 3
    (move,) = found.moves
    assert (move.row, move.column, move.old, move.new) == ("1 (gemma)", "frs", 0.5, 0.55)
    assert move.absolute == pytest.approx(0.05)
    assert move.relative == pytest.approx(0.1)
    assert not found.same


def test_compare_tables_lets_jitter_pass() -> None:
    found = compare_tables(TABLE.replace("0.5", "0.5000000001"), TABLE)
    assert found.same
    assert found.numbers == 3


def test_a_move_from_zero_has_no_finite_relative_size() -> None:
    (move,) = compare_tables("x\n0.1\n", "x\n0.0\n").moves
    assert move.relative == math.inf


@pytest.mark.parametrize(
    ("new", "what"),
    [
        (TABLE.replace("n,frs", "n,score"), "columns: model, n, frs -> model, n, score"),
        (TABLE + "third,1,2\n", "rows: 2 -> 3"),
        (TABLE.replace("smollm,4,", "smollm,4,0.5"), "column frs: '' -> '0.5'"),
        (TABLE.replace("gemma", "Gemma"), "column model: 'gemma' -> 'Gemma'"),
        (TABLE.replace("gemma,3,0.5", "gemma,3,nan"), "column frs: '0.5' -> 'nan'"),
        (TABLE.replace("gemma,3,0.5", "gemma,3"), "row 1 (gemma): 3 cells -> 2"),
        ("", "columns: model, n, frs -> "),
    ],
)
def test_compare_tables_reports_other_changes(new: str, what: str) -> None:
    found = compare_tables(new, TABLE)
    assert what in str(found)
    assert not found.same
