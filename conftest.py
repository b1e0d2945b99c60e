"""nbval for this repository: notebooks replay the committed records and compare with a tolerance.

`pytest` runs the tests, and every notebook cell by cell; after a notebook's last cell, the data
behind the figures and tables that it saved. nbval's own tags (nbval-skip, nbval-ignore-output)
work.

The code of a cell is the working tree's. What it is compared with is git's copy, that is, what is
staged or committed (factrobust.reproduce.compare): `make reproduce` may have written the numbers of
another processor into the working tree.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from factrobust.reproduce import forks
from factrobust.reproduce.compare import NUMBER, NotHeldError, close, compare_tables, held_by_git
from factrobust.reproduce.notebook import clean_outputs, kernel_environment
from factrobust.reproduce.profiles import Mode

ROOT = Path(__file__).resolve().parent
SHOWN = 8  # differences of a table
# What no table rests on as an input: models and their answers, which have fingerprints of their
# own, how columns are described and checked, and the cards that 6.5 itself writes.
NO_INPUTS = (
    "data/records/",
    "data/world/models/",
    "data/models.csv",
    "data/columns.csv",
    "data/cards/",
)
collect_ignore = ["notebooks/course", "notebooks/playground.ipynb"]  # tests/test_course.py
# Files that take longest, which begin first where several processes share the files.
LONGEST = (
    "tests/reproduce/test_nbval.py",
    "tests/together/test_flips.py",
    "tests/reproduce/test_main.py",
    "notebooks/3-wording/3.4-predicting-a-right-answer.ipynb",
    "tests/test_command.py",
    "notebooks/3-wording/3.5-appendix.ipynb",
    "tests/models/test_causal.py",
    "tests/models/test_sizes.py",
)
UPDATE = "if this is meant, `make reproduce ASK=0` and `git add figures notebooks`"


def pytest_configure(config: pytest.Config) -> None:
    """nbval has no hook for a kernel's environment or a tolerance, so three methods are wrapped."""
    if not config.getoption("nbval", default=False):
        return
    from nbval import plugin

    start_kernel = plugin.IPyNbFile.setup
    collect_cells = plugin.IPyNbFile.collect
    compare_exactly = plugin.IPyNbCell.compare_outputs

    def setup(self: Any) -> None:
        notebook, out = self.path.relative_to(ROOT).as_posix(), saved_by(self)
        shutil.rmtree(out, ignore_errors=True)  # of an earlier run
        out.mkdir(parents=True)
        variables = kernel_environment(Mode(ROOT, records="replay"), notebook, out)
        variables["PYTHONSTARTUP"] = str(ROOT / "tests" / "opened.py")
        forks.use(variables)  # from the first notebook on: other tests need no kernel
        with mock.patch.dict(os.environ, variables):
            start_kernel(self)

    def collect(self: Any) -> Iterator[pytest.Item]:
        outputs = held_outputs(self.path.relative_to(ROOT).as_posix())
        for item in collect_cells(self):
            item.cell.outputs = outputs.get(item.cell.id, item.cell.outputs)
            yield item
        yield SavedData.from_parent(self, name="saved data")

    def compare_outputs(self: Any, test: list[Any], reference: list[Any], skip: Any = None) -> Any:
        return compare_exactly(self, *with_tolerance(test, reference), skip)

    plugin.IPyNbFile.setup = setup
    plugin.IPyNbFile.collect = collect
    plugin.IPyNbCell.compare_outputs = compare_outputs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """LONGEST first; a file's items stay together and in their order."""
    places = {ROOT / path: place for place, path in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


@functools.cache
def held() -> Mapping[str, str]:
    """The texts of figures/ and notebooks/ as git holds them. Never those of the working tree,
    which would be compared with itself: pytest.fail if git cannot say what it holds."""
    try:
        return held_by_git(ROOT)
    except NotHeldError as error:
        pytest.fail(str(error), pytrace=False)


def held_outputs(notebook: str) -> dict[str, Any]:
    """The outputs in git's copy of a notebook by the id of their cell; of a new one, none."""
    import nbformat

    text = held().get(notebook)
    cells = nbformat.reads(text, as_version=4).cells if text else []
    return {cell.id: cell.outputs for cell in cells if cell.cell_type == "code"}


def saved_by(notebook: pytest.Collector) -> Path:
    """Where what a notebook saves goes: never over the committed files."""
    return ROOT / "build" / "nbval" / notebook.path.relative_to(ROOT).with_suffix("")


class SavedData(pytest.Item):
    """Whether the tables and figures that a notebook saved hold the committed numbers.

    nbval compares no pictures, so the CSV beside each is compared, with the same tolerance.
    """

    def runtest(self) -> None:
        notebook = self.path.relative_to(ROOT).as_posix()
        out = saved_by(self.parent)
        new = {path.relative_to(out).as_posix() for path in out.glob("figures/**/*.csv")}
        texts = held()
        old = {
            path.removesuffix("json") + "csv"
            for path, text in texts.items()
            if path.startswith("figures/")
            and path.endswith(".json")
            and json.loads(text)["notebook"] == notebook
        }
        wrong = [f"{path} is in git, but this notebook no longer saves it" for path in old - new]
        wrong += [f"{path} is not in git: {UPDATE}" for path in new - old]
        for path in sorted(new & old):
            difference = compare_tables((out / path).read_text("utf-8"), texts[path])
            if found := [*difference.others, *(place for _, place in difference.moves)]:
                wrong.append("\n".join([f"{path} is not what it was; {UPDATE}:", *found[:SHOWN]]))
        named = {
            path
            for about in out.glob("figures/**/*.json")
            for path in json.loads(about.read_text("utf-8")).get("inputs", [])
        }
        opened = (out / "opened.txt").read_text("utf-8") if (out / "opened.txt").exists() else ""
        before, _, _ = opened.rpartition("saved\n")  # what is read after that is only shown
        read = {path for path in before.splitlines() if not path.startswith(("saved", *NO_INPUTS))}
        wrong += [
            f"{path} was read, and no .json says so: see paths.noted" for path in read - named
        ]
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{self.path.relative_to(ROOT)}::{self.name}"


def align(test: str, reference: str) -> str:
    """`test` with each number that is close to its counterpart in `reference` replaced by that.

    So the result equals `reference` exactly if the two agree, and otherwise differs from it only
    where they do not. Numbers are paired in order; if their count differs, nothing is replaced.
    """
    old = NUMBER.findall(reference)
    if len(NUMBER.findall(test)) != len(old):
        return test
    counterparts = iter(old)

    def nearest(new: re.Match[str]) -> str:
        counterpart = next(counterparts)
        return counterpart if close(new[0], counterpart) else new[0]

    return NUMBER.sub(nearest, test)


def with_tolerance(test: list[Any], reference: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both lists of outputs in canonical form, numbers of `test` aligned with `reference`."""
    import nbformat

    test = clean_outputs([nbformat.from_dict(output) for output in test])
    reference = clean_outputs([nbformat.from_dict(output) for output in reference])
    for new, old in zip(test, reference, strict=False):  # nbval itself reports unequal lengths
        if new.output_type != old.output_type:
            continue
        if new.output_type == "stream":
            new.text = align(new.text, old.text)
            continue
        for mime in new.get("data", {}).keys() & old.get("data", {}).keys():
            if mime.startswith("text/"):
                new.data[mime] = align(new.data[mime], old.data[mime])
    return test, reference
