"""nbval for this repository: notebooks replay the committed records and compare with a tolerance.

`pytest` alone runs the tests, then every notebook, then tests/test_figures_data.py. A cell's tags
may loosen its tolerance ("rtol=0.02"); nbval's own tags (nbval-skip, nbval-ignore-output) work too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from factrobust.reproduce.compare import align, tolerance
from factrobust.reproduce.kernel import kernel_environment

ROOT = Path(__file__).resolve().parent
OUT = ROOT / "build" / "nbval"  # what the notebooks save goes here, never over the committed files


def pytest_configure(config: pytest.Config) -> None:
    """nbval has no hook for a kernel's environment or a tolerance, so two methods are wrapped."""
    if not config.getoption("nbval", default=False):
        return
    from nbval import plugin

    start_kernel = plugin.IPyNbFile.setup
    compare_exactly = plugin.IPyNbCell.compare_outputs

    def setup(self: Any) -> None:
        notebook = self.path.relative_to(ROOT).as_posix()
        variables = kernel_environment(ROOT, notebook, out=OUT, records="replay")
        with mock.patch.dict(os.environ, variables):
            start_kernel(self)

    def compare_outputs(self: Any, test: list[Any], reference: list[Any], skip: Any = None) -> Any:
        test, reference = with_tolerance(test, reference, self.cell.metadata.get("tags", []))
        return compare_exactly(self, test, reference, skip)

    plugin.IPyNbFile.setup = setup
    plugin.IPyNbCell.compare_outputs = compare_outputs


def with_tolerance(
    test: list[Any], reference: list[Any], tags: list[str]
) -> tuple[list[Any], list[Any]]:
    """Both lists of outputs in canonical form, numbers of `test` aligned with `reference`."""
    import nbformat

    from factrobust.reproduce.normalise import clean_outputs

    rtol, atol = tolerance(tags)
    test = clean_outputs([nbformat.from_dict(output) for output in test])
    reference = clean_outputs([nbformat.from_dict(output) for output in reference])
    for new, old in zip(test, reference, strict=False):  # nbval itself reports unequal lengths
        if new.output_type != old.output_type:
            continue
        if new.output_type == "stream":
            new.text = align(new.text, old.text, rtol, atol)
            continue
        for mime in new.get("data", {}).keys() & old.get("data", {}).keys():
            if mime.startswith("text/"):
                new.data[mime] = align(new.data[mime], old.data[mime], rtol, atol)
    return test, reference


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The figures' data are compared when the notebooks have written them."""
    items.sort(key=lambda item: item.path.name == "test_figures_data.py")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Figures of an earlier run must not pass for those of this one."""
    if any(item.path.suffix == ".ipynb" for item in session.items):
        shutil.rmtree(OUT, ignore_errors=True)
