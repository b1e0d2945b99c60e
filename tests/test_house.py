"""The house keeps its shape: which way imports go, what a notebook repeats, what a replay loads."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict

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
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("factrobust"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("factrobust"))


def code_cells(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and "parameters" not in cell["metadata"].get("tags", []):
            yield "".join(cell["source"])


def kind_of(stem):
    [kind] = [kind for kind, stems in KINDS.items() if stem in stems.split()]
    return kind


MODULES = sorted(path.relative_to(LIB).as_posix() for path in LIB.rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module):
    """Every module of the library: one that no rule speaks of is an error."""
    first, *rest = module.removesuffix(".py").split("/")
    allowed, refused, kinds = {first, *BELOW[first]}, set(), {*KINDS}
    if first in (*ROOMS, *UPPER):
        assert len(rest) == 1
        kinds, refused = INSIDE[kind_of(rest[0])]
    against = []
    for name in imports(LIB / module):
        part, *inner = [*name.split(".")[1:], ""]
        module = inner[0] if inner and (LIB / part / f"{inner[0]}.py").exists() else ""
        if part and ((LIB / part).exists() or (LIB / f"{part}.py").exists()):
            of_room = module and part in (*ROOMS, *UPPER)
            if part not in allowed - refused or (of_room and kind_of(module) not in kinds):
                against.append(name)
    assert against == []


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
    where = defaultdict(set)
    for path in NOTEBOOKS:
        for source in code_cells(path):
            if len([line for line in source.splitlines() if line.strip()]) > 2:
                where[source].add(path.name)
    assert {source: names for source, names in where.items() if len(names) > 1} == {}


# What else must be had without a model: figures, the classifier's recorded types, a plan.
MORE = """
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
    [path] = [path for path in NOTEBOOKS if path.name.startswith("1.1-")]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    count = "replayed = sorted(name for name in sys.modules if name.split('.')[0] == 'factrobust')"
    script.write_text("\n".join(["import sys", "display = print", *code, count, MORE]))
    ours = {"FACTROBUST_RECORDS": "replay", "FACTROBUST_OUT": str(tmp_path), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, script], env=os.environ | ours, capture_output=True, text=True, check=True
    )
    *_, modules, loads_network = done.stdout.splitlines()
    assert loads_network == "False"
    BUILD.mkdir(exist_ok=True)
    (BUILD / "replayed.txt").write_text(modules)  # for tests/thinness.py to count
    assert len(modules.split()) <= 25, modules


PROMISED = [
    "papermill", "torch", "transformers", "openai", "pandas", "matplotlib", "seaborn",
    "statsmodels", "scipy",
]  # fmt: skip


def test_what_the_repository_promises_to_be_built_on_is_used():
    """They are what a reader comes with; a shorter way without one of them is no reason to leave
    it."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in LIB.rglob("*.py"))
    assert {*PROMISED} <= {*re.findall(r"^\s*(?:import|from) (\w+)", texts, re.MULTILINE)}
