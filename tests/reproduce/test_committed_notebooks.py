"""The notebooks of this repository as committed."""

from __future__ import annotations

import pytest

from factrobust.paths import ROOT
from factrobust.reproduce.mode import find_notebooks
from factrobust.reproduce.normalise import canonical
from factrobust.reproduce.state import read_cells


@pytest.mark.parametrize("name", find_notebooks(ROOT))
def test_is_canonical_and_was_run_to_its_end(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert canonical(text) == text, f"run `make normalise`: {name} is not canonical"
    # nbval compares no cell that was not run.
    code = [cell for cell in read_cells(ROOT / name) if cell["cell_type"] == "code"]
    left = [cell for cell in code if cell["source"] and cell["execution_count"] is None]
    assert not left, f"run `make reproduce`: cells of {name} were not run"
