"""A tiny repository with notebooks that really run."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbformat import v4

from factrobust.reproduce.notebook import KERNEL

SAVE = """
import os
from pathlib import Path
def save(name, text):
    path = Path(os.environ["FACTROBUST_OUT"], "figures", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
"""


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    """One path for the repositories of all tests. Kernels are forks of a process that imports for
    seconds, one for each path of a library (`reproduce.forks`)."""
    return tmp_path_factory.mktemp("repository") / "my repo"


@pytest.fixture
def root(place):
    """A repository whose path has a space, with a library of two modules and one data file."""
    folder = place
    shutil.rmtree(folder, ignore_errors=True)  # of another test
    (folder / "profiles").mkdir(parents=True)
    modules = {"lib/toysave.py": SAVE, "lib/toyscale.py": "SCALE = 2.0\n"}
    for name, text in (modules | {"data/rows.csv": "x,y\na,1.5\nb,2.5\n"}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def write(root):

    def write_notebook(path: str, *cells: str, parameters: str | None = None) -> Path:
        nodes = [v4.new_markdown_cell("# A notebook")]
        if parameters is not None:
            nodes.append(v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
        nodes += [v4.new_code_cell(cell) for cell in cells]
        for number, node in enumerate(nodes):
            node["id"] = f"cell-{number}"
        target = root / "notebooks" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"kernelspec": KERNEL}
        nbformat.write(v4.new_notebook(cells=nodes, metadata=metadata), target)
        return target

    return write_notebook
