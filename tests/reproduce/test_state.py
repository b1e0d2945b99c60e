"""state and mode: what counts as a change, and in which order notebooks run."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from factrobust.reproduce.mode import Mode, find_notebooks
from factrobust.reproduce.state import (
    is_input,
    load_state,
    read_cells,
    results_hash,
    source_hash,
    stamps,
    state_file,
    unedited_hash,
)


def cell(**changes: object) -> dict[str, object]:
    output = {"output_type": "stream", "name": "stdout", "text": ["1\n", "2\n"]}
    return {
        "cell_type": "code",
        "source": ["a = 1\n", "a"],
        "metadata": {},
        "outputs": [output],
        "execution_count": 1,
    } | changes


def test_only_sources_and_tags_make_the_source() -> None:
    same = [
        cell(source="a = 1\na"),
        cell(outputs=[], execution_count=None),
        cell(metadata={"collapsed": True}, id="other"),
    ]
    assert {source_hash([one]) for one in same} == {source_hash([cell()])}
    assert source_hash([cell(source="a = 2\na")]) != source_hash([cell()])
    assert source_hash([cell(metadata={"tags": ["rtol=0.1"]})]) != source_hash([cell()])


def test_only_outputs_make_the_results() -> None:
    same = cell(outputs=[{"output_type": "stream", "name": "stdout", "text": "1\n2\n"}], source="b")
    assert results_hash([same]) == results_hash([cell(execution_count=9)])
    assert results_hash([cell(outputs=[])]) != results_hash([cell()])


def test_injected_parameters_are_not_part_of_a_notebook(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    injected = cell(metadata={"tags": ["injected-parameters"]})
    path.write_text(json.dumps({"cells": [injected, cell()]}))
    assert read_cells(path) == [cell()]


def test_a_broken_notebook_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text('{"worksheets": []}')
    with pytest.raises(ValueError, match=r"a\.ipynb is not a Jupyter notebook of format 4"):
        read_cells(path)


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("lib/factrobust/metrics/frs.py", True),
        ("data/facts.csv", True),
        ("profiles/paper.yaml", True),
        ("figures/1-decoding/table-01.csv", True),
        ("data/records/a.parquet", False),  # counted as a whole, in a replay
        ("lib/factrobust.egg-info/PKG-INFO", False),
        ("lib/factrobust/__pycache__/paths.cpython-311.pyc", False),
        ("data/.facts.csv.123.part", False),
        ("build/records/records.sqlite", False),
        ("README.md", False),
    ],
)
def test_is_input(path: str, counts: bool) -> None:
    assert is_input(Path(path)) is counts


def test_an_input_edited_since_its_stamp_has_no_hash(root: Path) -> None:
    before = stamps(root)
    assert sorted(before) == ["data/rows.csv", "lib/toysave.py", "lib/toyscale.py"]
    unchanged = unedited_hash(root, "lib/toyscale.py", before)
    assert unchanged == hashlib.sha256((root / "lib/toyscale.py").read_bytes()).hexdigest()
    (root / "lib/toyscale.py").write_text("SCALE = 3.0 \n")
    assert unedited_hash(root, "lib/toyscale.py", before) == "edited"
    (root / "lib/toysave.py").unlink()
    assert unedited_hash(root, "lib/toysave.py", before) == "edited"
    (root / "data/new.csv").write_text("x\n")
    new = unedited_hash(root, "data/new.csv", before)
    assert new == hashlib.sha256(b"x\n").hexdigest()


def test_a_damaged_state_counts_as_none(root: Path) -> None:
    mode = Mode(root)
    path = state_file(mode, "notebooks/1.ipynb")
    path.parent.mkdir(parents=True)
    path.write_text('{"source": "half')
    assert load_state(mode, "notebooks/1.ipynb") is None
    path.write_text('{"of another": "version"}')
    assert load_state(mode, "notebooks/1.ipynb") is None


def test_notebooks_come_in_order_the_introduction_first(root: Path) -> None:
    names = ["1-decoding/1.2-b", "1-decoding/1.1-a", "0-start-here", "0-a", "2-time/2.1-c"]
    for name in [*names, "1-decoding/.ipynb_checkpoints/1.1-a-checkpoint"]:
        path = root / f"notebooks/{name}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = find_notebooks(root)
    assert [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in found] == [
        "0-start-here",
        "0-a",
        "1-decoding/1.1-a",
        "1-decoding/1.2-b",
        "2-time/2.1-c",
    ]
    assert find_notebooks(root, "notebooks/1-*") == found[2:4]


def test_deciding_imports_nothing_heavy() -> None:
    heavy = ["numpy", "pandas", "nbformat", "papermill", "torch"]
    code = f"import sys, factrobust.reproduce.__main__; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
