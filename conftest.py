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
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

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
        notebook = name_of(self)
        out = saved_by(self)
        shutil.rmtree(out, ignore_errors=True)  # of an earlier run
        out.mkdir(parents=True)
        variables = kernel_environment(Mode(ROOT, records="replay"), notebook, out)
        variables["PYTHONSTARTUP"] = str(ROOT / "tests" / "opened.py")
        forks.use(variables)  # from the first notebook on: other tests need no kernel
        with pytest.MonkeyPatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            start_kernel(self)

    def collect(self: Any) -> Iterator[pytest.Item]:
        outputs = held_outputs(name_of(self))
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


def name_of(notebook: Any) -> str:
    """The path of a notebook in the repository."""
    return notebook.path.relative_to(ROOT).as_posix()


def saved_by(notebook: Any) -> Path:
    """Where what a notebook saves goes: never over the committed files."""
    return ROOT / "build" / "nbval" / Path(name_of(notebook)).with_suffix("")


class SavedData(pytest.Item):
    """Whether the tables and figures that a notebook saved hold the committed numbers.

    nbval compares no pictures, so the CSV beside each is compared, with the same tolerance.
    """

    def runtest(self) -> None:
        out = saved_by(self)
        wrong = [*changed_tables(name_of(self), out), *unnamed_inputs(out)]
        if wrong:
            pytest.fail("\n".join(wrong), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"{name_of(self)}::{self.name}"


def changed_tables(notebook: str, out: Path) -> Iterator[str]:
    """How the tables that a notebook saved differ from those that git holds of it."""
    texts = held()
    new = {path.relative_to(out).as_posix() for path in out.glob("figures/**/*.csv")}
    old = set()
    for path, text in texts.items():
        is_about = path.startswith("figures/") and path.endswith(".json")
        if is_about and json.loads(text)["notebook"] == notebook:
            old.add(path.removesuffix("json") + "csv")
    for path in sorted(old - new):
        yield f"{path} is in git, but this notebook no longer saves it"
    for path in sorted(new - old):
        yield f"{path} is not in git: {UPDATE}"
    for path in sorted(new & old):
        difference = compare_tables((out / path).read_text("utf-8"), texts[path])
        found = [*difference.others, *(place for _, place in difference.moves)]
        if found:
            yield "\n".join([f"{path} is not what it was; {UPDATE}:", *found[:SHOWN]])


def unnamed_inputs(out: Path) -> Iterator[str]:
    """The data files that a notebook read before it saved its last table, and that no .json of its
    own names."""
    named = set()
    for about in out.glob("figures/**/*.json"):
        named.update(json.loads(about.read_text("utf-8")).get("inputs", []))
    opened = out / "opened.txt"
    text = opened.read_text("utf-8") if opened.exists() else ""
    before, _, _ = text.rpartition("saved\n")  # what is read after that is only shown
    for path in sorted({*before.splitlines()} - named):
        if not path.startswith(("saved", *NO_INPUTS)):
            yield f"{path} was read, and no .json says so: see paths.noted"


def align(test: str, reference: str) -> str:
    """`test` with each number that is close to its counterpart in `reference` replaced by that.

    So the result equals `reference` exactly if the two agree, and otherwise differs from it only
    where they do not. Numbers are paired in order; if their count differs, nothing is replaced.
    """
    counterparts = NUMBER.findall(reference)
    if len(NUMBER.findall(test)) != len(counterparts):
        return test

    def nearest(new: re.Match[str]) -> str:
        old = counterparts.pop(0)
        return old if close(new[0], old) else new[0]

    return NUMBER.sub(nearest, test)


def with_tolerance(test: list[Any], reference: list[Any]) -> tuple[list[Any], list[Any]]:
    """Both lists of outputs in canonical form, numbers of `test` aligned with `reference`."""
    import nbformat

    test = clean_outputs(list(map(nbformat.from_dict, test)))
    reference = clean_outputs(list(map(nbformat.from_dict, reference)))
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
