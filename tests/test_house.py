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

LIB = ROOT / "lib" / "factrobust"
NOTEBOOKS = sorted(
    path for path in (ROOT / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
# Data flows datasets -> probes(models) -> metrics -> plots: what a folder must not import.
FORBIDDEN = {
    "datasets": {"models", "probes", "metrics", "plots"},
    "models": {"datasets", "probes", "metrics", "plots"},
    "probes": {"metrics", "plots"},
    "metrics": {"models", "probes", "plots"},
    "plots": {"models", "probes"},
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
    """The source of each code cell but that of the parameters."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and "parameters" not in cell["metadata"].get("tags", []):
            yield "".join(cell["source"])


@pytest.mark.parametrize("folder", FORBIDDEN)
def test_imports_go_one_way(folder):
    files = sorted((LIB / folder).rglob("*.py")) or [LIB / f"{folder}.py"]
    assert files
    against = [
        f"{path.relative_to(LIB)} imports {name}"
        for path in files
        for name in imports(path)
        if len(parts := name.split(".")) > 1 and parts[1] in FORBIDDEN[folder]
    ]
    assert against == []


def test_no_module_uses_dataframe_attrs_as_a_channel():
    assert [path.name for path in LIB.rglob("*.py") if ".attrs" in path.read_text()] == []


def test_no_code_cell_of_more_than_two_lines_stands_in_two_notebooks():
    where = defaultdict(set)
    for path in NOTEBOOKS:
        for source in code_cells(path):
            if len([line for line in source.splitlines() if line.strip()]) > 2:
                where[source].add(path.name)
    assert {source: names for source, names in where.items() if len(names) > 1} == {}


def test_replaying_a_notebook_loads_few_modules_and_no_model(tmp_path):
    """Notebook 1.2, cell by cell as plain Python, from the committed records."""
    [path] = [path for path in NOTEBOOKS if path.name.startswith("1.2-")]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    count = "print(*sorted(name for name in sys.modules if name.split('.')[0] == 'factrobust'))"
    heavy = "print('torch' in sys.modules or 'transformers' in sys.modules)"
    script.write_text("\n".join(["import sys", "display = print", *code, count, heavy]))
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
    "papermill",
    "torch",
    "transformers",
    "openai",
    "pandas",
    "matplotlib",
    "seaborn",
    "statsmodels",
    "scipy",
]


@pytest.mark.parametrize("package", PROMISED)
def test_what_the_repository_promises_to_be_built_on_is_used(package):
    """They are what a reader comes with; a shorter way without one of them is no reason to leave it."""
    used = re.compile(rf"^\s*(import|from) {package}\b", re.MULTILINE)
    assert any(used.search(path.read_text(encoding="utf-8")) for path in LIB.rglob("*.py"))
