"""The house keeps its shape: which way imports go, what a notebook repeats, what a replay loads."""

import ast
import os
import re
import subprocess
import sys

import nbformat
import pytest

from factrobust.paths import BUILD, ROOT
from factrobust.reproduce.profiles import find_notebooks

LIB = ROOT / "lib" / "factrobust"
NOTEBOOKS = [ROOT / name for name in find_notebooks(ROOT)]
ROOMS = ("decoding", "temporal", "wording", "context")  # of the four papers
UPPER = ("exposure", "together")  # which stand on these
BASE = {
    "paths",
    "draws",
    "schemas",
    "tables",
    "text",
    "intervals",
    "regression",
    "provenance",
    "pairs",
}
FLOOR = {*BASE, "models", "datasets", "plots", "endings", "study"}
# What each part of the library may import, beside itself; the base is one part.
BELOW = dict.fromkeys(BASE, BASE)
BELOW |= dict.fromkeys(("models", "datasets", "plots"), BASE)  # a model knows no fact
BELOW |= {"endings": {*BASE, "models"}, "study": {*BASE, "models", "datasets", "plots"}}
BELOW |= dict.fromkeys(ROOMS, FLOOR)
BELOW |= {"exposure": {*FLOOR, *ROOMS}, "together": {*FLOOR, *ROOMS, "exposure", "reproduce"}}
BELOW |= {"reproduce": {*FLOOR, "together"}, "__init__": {"models", "context", "together"}}
BELOW |= {"command": {*FLOOR, *ROOMS, "together"}}
# In a room: what a module is, which of these it may import, and what of the floor it may not.
KINDS = {
    "facts": "facts dates rules corpus", "probe": "probe classify",
    "metrics": "metrics meter passages placebo floor successions prediction regression attribution following sharpness",
    "plots": "plots", "study": "study shaken grounding spine opened card page flips flip_files files answers __init__",
}  # fmt: skip
INSIDE = {
    "facts": ({"facts"}, {"models", "plots", "study"}),
    "probe": ({"facts", "probe"}, {"plots", "study"}),
    "metrics": ({"facts", "metrics"}, {"models", "plots", "study"}),
    "plots": ({"facts", "metrics", "plots"}, {"models", "study"}),
    "study": ({*KINDS}, set()),
}


def imports(path):
    """The modules of factrobust that a file imports, wherever in it."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in found if name and name.startswith("factrobust")]


def code_cells(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def kind_of(stem):
    [kind] = [kind for kind, stems in KINDS.items() if stem in stems.split()]
    return kind


MODULES = sorted(path.relative_to(LIB).as_posix() for path in LIB.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    """Every module of the library: one that no rule speaks of is an error."""
    first, *rest = module.removesuffix(".py").split("/")
    allowed = {first, *BELOW[first]}
    kinds = {*KINDS}
    if first in (*ROOMS, *UPPER):
        [stem] = rest
        kinds, refused = INSIDE[kind_of(stem)]
        allowed -= refused
    for name in imports(LIB / module):
        _, part, inner, *_ = [*name.split("."), "", ""]
        if (LIB / part).exists() or (LIB / f"{part}.py").exists():
            assert part in {"", *allowed}, name
        if part in (*ROOMS, *UPPER) and (LIB / part / f"{inner}.py").exists():
            assert kind_of(inner) in kinds, name


def test_nothing_is_imported_by_a_string():
    """An editor, a type checker and the test above can follow every import."""
    by_string = re.compile(r"\bimport_module\b|__import__")
    found = [path for path in MODULES if by_string.search((LIB / path).read_text("utf-8"))]
    assert found == ["__init__.py"]  # which loads nothing until it is used


def test_a_room_has_eleven_files_at_most():
    sizes = {room: len([*(LIB / room).glob("*.py")]) - 1 for room in (*ROOMS, *UPPER)}
    assert max(sizes.values()) <= 11, sizes


def test_no_module_uses_dataframe_attrs_as_a_channel():
    assert [path.name for path in LIB.rglob("*.py") if ".attrs" in path.read_text()] == []


def test_no_code_cell_of_more_than_two_lines_stands_in_two_notebooks():
    first = {}
    for path in NOTEBOOKS:
        for cell in code_cells(path):
            lines = [line for line in cell.source.splitlines() if line.strip()]
            if len(lines) > 2 and "parameters" not in cell.metadata.get("tags", []):
                assert first.setdefault(cell.source, path.name) == path.name, cell.source


# What else must be had without a model: figures, the classifier's recorded types, a plan.
MORE = """
replayed = sorted(name for name in sys.modules if name.split(".")[0] == "factrobust")
import factrobust.context.plots, factrobust.exposure.plots, factrobust.temporal.plots
import factrobust.wording.plots, factrobust.wording.prediction, factrobust.wording.regression
from factrobust.datasets.named import load_named_types
from factrobust.decoding.classify import type_questions
from factrobust.reproduce import plan
train, test = load_named_types("embedded")
type_questions(study.records, train[train["relation"] == ""], test["question"], epochs=10, seed=0)
assert plan.main([]) == 0
print(*replayed)
print("torch" in sys.modules or "transformers" in sys.modules)
"""


def test_replaying_a_notebook_loads_few_modules_and_no_model(tmp_path):
    """Notebook 1.1, cell by cell as plain Python, from the committed records."""
    [path] = ROOT.glob("notebooks/*/1.1-*.ipynb")
    code = "\n".join(cell.source for cell in code_cells(path))
    script = tmp_path / "notebook.py"
    script.write_text(f"import sys\ndisplay = print\n{code}\n{MORE}")
    ours = {"FACTROBUST_RECORDS": "replay", "FACTROBUST_OUT": str(tmp_path), "MPLBACKEND": "agg"}
    command = [sys.executable, script]
    done = subprocess.check_output(command, env=os.environ | ours, text=True)
    *_, modules, loads_network = done.splitlines()
    assert loads_network == "False"
    BUILD.mkdir(exist_ok=True)
    (BUILD / "replayed.txt").write_text(modules)  # for tests/thinness.py to count
    assert len(modules.split()) <= 25, modules


PROMISED = "papermill torch transformers openai pandas matplotlib seaborn statsmodels scipy"


def test_what_the_repository_promises_to_be_built_on_is_used():
    """They are what a reader comes with; a shorter way without one of them is no reason to leave
    it."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in LIB.rglob("*.py"))
    used = re.findall(r"^\s*(?:import|from) (\w+)", texts, re.MULTILINE)
    assert {*PROMISED.split()} <= {*used}
