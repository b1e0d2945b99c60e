"""The data behind every figure and table, as the notebooks under nbval just wrote them.

nbval compares no pictures. So the CSV beside every figure and table that this session's notebooks
saved (build/nbval/figures) is compared with the committed one, with the same tolerance.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from factrobust.paths import ROOT
from factrobust.reproduce.compare import compare_tables
from factrobust.reproduce.mode import find_notebooks

WRITTEN = ROOT / "build" / "nbval"
COMMITTED = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("figures/**/*.csv"))


@pytest.fixture
def written(request: pytest.FixtureRequest) -> Path:
    """Folder of what the notebooks saved, if all of them ran in this session."""
    ran = {item.path for item in request.session.items}
    left = [name for name in find_notebooks(ROOT) if ROOT / name not in ran]
    if left:
        pytest.skip(f"needs every notebook in the same session ({left[0]} is not): `make test`")
    return WRITTEN


@pytest.mark.parametrize("path", COMMITTED)
def test_notebooks_write_the_committed_data(written: Path, path: str) -> None:
    assert (written / path).exists(), (
        f"no notebook wrote {path}: delete it if none should, otherwise see which notebook failed"
    )
    new, old = (folder / path for folder in (written, ROOT))
    difference = compare_tables(new.read_text("utf-8"), old.read_text("utf-8"))
    assert difference.same, f"{path} is not what it was:\n{difference}"


def test_every_written_table_is_committed(written: Path) -> None:
    new = {path.relative_to(written).as_posix() for path in written.glob("figures/**/*.csv")}
    assert sorted(new - set(COMMITTED)) == [], "run `make reproduce` and commit these"


@pytest.mark.parametrize("path", COMMITTED)
def test_provenance_lies_beside_the_data(path: str) -> None:
    assert (ROOT / path).with_suffix(".json").exists(), (
        f"{path} has no provenance (.json) beside it"
    )
