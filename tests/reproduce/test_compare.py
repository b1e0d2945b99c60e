"""What counts as the same number, text or table, and what a reader learns about those that
moved."""

import math
import runpy
import subprocess

import pytest
from frames import frame

from factrobust.paths import ROOT
from factrobust.reproduce.compare import (
    NotHeldError,
    close,
    compare_tables,
    differences,
    held_by_git,
    present,
)

PAIRS = frame("""
    new          old           agreed
    0.123456789  0.1234567891  True
    0.505        0.5           False
    1.0000011    1.0           False
    1.0000009    1.0           True
    -1.5         1.5           False
    3e-10        0.0           True
    3e-8         0.0           False
    1000001      1000000       False
    5            5.0           True
    -            -             True
""")


def test_close():
    """1e-9 relative is another machine's rounding, and below ATOL everything is zero; integers are
    compared exactly, though 1e-6 apart."""
    for new, old, agreed in PAIRS.itertuples(index=False):
        assert close(new, old) is agreed, new
        moves = compare_tables(f"x\n{new}\n", f"x\n{old}\n").moves
        assert bool(moves) is not agreed, new


align = runpy.run_path(str(ROOT / "conftest.py"))["align"]


@pytest.mark.parametrize(
    ("new", "old", "aligned"),
    [
        (
            "gemma 0.5000000004 of 161, <td>-1.2500000001</td> 3.1e-3",
            "gemma 0.5000000 of 160, <td>-1.25</td> 3.0e-3",
            "gemma 0.5000000 of 161, <td>-1.25</td> 3.1e-3",
        ),
        # Words, versions and dates are no numbers.
        ("v1.5 x2.0 2024-01-02", "v1.6 x2.1 2024-01-03", "v1.5 x2.0 2024-01-02"),
        ("Py 3.11.2", "Py 3.11.3", "Py 3.11.2"),
        ("0.1 0.2", "0.1000000001", "0.1 0.2"),  # not as many
    ],
)
def test_align_replaces_only_numbers_that_agree(new, old, aligned):
    assert align(new, old) == aligned


TABLE = "model,n,frs\ngemma,3,0.5\nsmollm,4,\n"


def test_a_moved_number_is_counted_and_placed():
    found = compare_tables(TABLE.replace("0.5", "0.55"), TABLE)
    assert found.numbers == 3
    assert found.moves == [(pytest.approx(0.1), "row 1, column frs: 0.5 -> 0.55 (0.1 relative)")]
    assert found.others == []
    [(move, _)] = compare_tables("x\n0.1\n", "x\n0.0\n").moves
    assert move == math.inf


@pytest.mark.parametrize(
    ("new", "what"),
    [
        (TABLE.replace("n,frs", "n,score"), "columns: model, n, frs -> model, n, score"),
        (TABLE + "third,1,2\n", "rows: 2 -> 3"),
        (TABLE.replace("smollm,4,", "smollm,4,0.5"), "column frs: '' -> '0.5'"),
        (TABLE.replace("gemma", "Gemma"), "column model: 'gemma' -> 'Gemma'"),
        (TABLE.replace("gemma,3,0.5", "gemma,3,nan"), "column frs: '0.5' -> 'nan'"),
    ],
)
def test_other_changes_of_a_table_are_told(new, what):
    found = compare_tables(new, TABLE)
    assert found.moves == []
    assert what in found.others[0]


FIRST = "figures/1/table-01.csv"
OTHER = "figures/1/figure-01.csv"
OLD = {FIRST: "model,frs\ngemma,0.5\nsmollm,10.0\n", OTHER: "x\n1.0\n"}


def test_the_report_counts_moves_and_places_the_largest():
    new = OLD | {FIRST: "model,frs\ngemma,0.6\nsmollm,10.5\n"}
    [*report, meaning], moved = differences(OLD, new)
    assert moved == "2 of 3 numbers moved"
    assert report == [
        "Compared with what git holds: 3 numbers in 2 tables.",
        "2 numbers moved by more than 1e-06 (relative); the largest moves:",
        f"  {FIRST}: row 1, column frs: 0.5 -> 0.6 (0.2 relative)",
        f"  {FIRST}: row 2, column frs: 10 -> 10.5 (0.05 relative)",
    ]
    assert "all others come from a change of code, data or versions" in meaning
    # What another processor moves is told to be no fault.
    [*_, meaning], _ = differences(OLD, OLD | {OTHER: "x\n1.00001\n"})
    assert meaning.startswith("Moves of this size are no fault")
    # Jitter is no move, and other changes are named.
    new = OLD | {OTHER: "x\n1.0000000001\n", "figures/1/x.json": "{}"}
    [_, *rest], moved = differences(OLD, new)
    assert moved == "none of 3 numbers moved"
    assert rest == ["No number moved by more than 1e-06 (relative)."]
    new = {FIRST: "model,frs\ngemma,0.5\n", "figures/new.csv": "x\n1\n"}
    [_, _, *rest], _ = differences(OLD, new)
    assert rest == [f"Changed in {FIRST}, rows: 2 -> 1"]


def test_the_baseline_is_what_git_holds(tmp_path):
    root = tmp_path / "my repo"
    results = OLD | {"figures/1/figure-01.json": "{}", "notebooks/1.ipynb": "{}"}
    for path, content in results.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    (root / "figures/1/figure-01.png").write_bytes(b"no text")
    with pytest.raises(NotHeldError, match=r"not a git repository.* Work in a clone"):
        held_by_git(root)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    add = [*git, "add", "."]
    for command in ([*git, "init", "-q"], add, [*git, "commit", "-q", "-m", "results"]):
        subprocess.run(command, cwd=root, check=True)
    found = held_by_git(root)
    assert found == results == present(root)
    with pytest.raises(NotHeldError, match="Nothing is compared"):
        held_by_git(root / "figures")  # not the top of the checkout
    # A run's numbers in the working tree leave it as it is; what is staged counts.
    (root / OTHER).write_text("x\n2.0\n")
    assert held_by_git(root) == found
    assert "column x: 1 -> 2" in "\n".join(differences(found, present(root))[0])
    subprocess.run(add, cwd=root, check=True)
    assert held_by_git(root) == present(root) != found
    # Another process that holds git's lock changes nothing.
    (root / ".git" / "index.lock").touch()
    assert held_by_git(root) == present(root)


def test_why_git_cannot_say_what_it_holds(tmp_path, monkeypatch):
    def refused(command, **options):
        reason = b"fatal: detected dubious ownership in repository at '/srv/x'\nTo add an exception"
        raise subprocess.CalledProcessError(128, command, stderr=reason)

    monkeypatch.setattr(subprocess, "run", refused)
    remedy = rf"dubious.*: git config --global --add safe.directory '{tmp_path}'"
    with pytest.raises(NotHeldError, match=remedy):
        held_by_git(tmp_path)

    def missing(command, **options):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", missing)
    with pytest.raises(NotHeldError, match="git is not installed"):
        held_by_git(tmp_path)
