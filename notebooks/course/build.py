"""Make the course's notebooks of exercises/ and the weeks' pages.

python notebooks/course/build.py          # week-1-exercises.ipynb (for students), week-1-solved.ipynb, ... week-4
python notebooks/course/build.py 2        # only the second week
python notebooks/course/build.py playground   # only the outputs of the playground

A solved notebook is run cell by cell as plain Python; what is printed becomes its output. Exercise 4.5
trains a model three times, about a minute. The playground is run where it stands: what its cells show is
kept, but for its widgets, which are made by whoever opens it. A student's notebook is never overwritten: one that is neither
as git holds it nor as it was built last stays, and the new one is put beside it.
"""

import ast
import io
import os
import re
import subprocess
import sys
from contextlib import redirect_stdout
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER))

from course import Exercise, exercises  # noqa: E402

from factrobust.reproduce.notebook import normalise, to_text  # noqa: E402

WEEKS = ("1", "2", "3", "4")
PLAYGROUND = "playground"
SET_UP = "import numpy as np\nimport pandas as pd\nfrom course import check, data"
AFTER = "When the check says *right*, this shows what follows:"
CONFIG = str(FOLDER.parents[1] / "pyproject.toml")
BUILT = FOLDER.parents[1] / "build" / "course"  # the digests of what was built last


def cells_of(exercise: Exercise, solved: bool) -> list[tuple[str, str]]:
    """The cells of an exercise, ("markdown" or "code", source)."""
    [function] = [
        node
        for node in ast.parse(exercise.check).body
        if isinstance(node, ast.FunctionDef) and node.name == "check"
    ]
    names = ", ".join(argument.arg for argument in function.args.args)
    heading = (
        f"## {exercise.number} {exercise.title}\n\n*{exercise.kind}, {exercise.minutes} minutes*"
    )
    call = f'right = check("{exercise.number}", {names})'
    answer = exercise.solution if solved else exercise.stub
    apart = "\n\n\n" if "def " in answer else "\n\n"
    folded = "\n\n".join(
        f"<details><summary>Hint {k}</summary>\n\n{hint}\n\n</details>"
        for k, hint in enumerate(exercise.hints, 1)
    )
    return [
        ("markdown", f"{heading}\n\n{exercise.task}"),
        ("code", f"{answer}{apart}{call}"),
        ("markdown", AFTER if solved else f"{folded}\n\n{AFTER}"),
        ("code", f"if right:\n{indent(exercise.use, '    ')}"),
    ]


def notebook(week: str, *, solved: bool) -> Any:
    """A week's notebook, without outputs."""
    page = (FOLDER / f"week-{week}.md").read_text(encoding="utf-8")
    first, _, rest = page.partition("## Reading")
    kind = "solved" if solved else "exercises"
    first = first.replace(f"# Week {week}:", f"# Week {week}, {kind}:", 1)
    others = "with its solutions. Try the exercises in" if solved else "Solutions are in"
    first += f"This is the week's notebook{' ' if solved else '. '}{others} "
    first += f"[the {'student' if solved else 'solved'} notebook](week-{week}-{'exercises' if solved else 'solved'}.ipynb)."
    cells = [("markdown", first.strip()), ("code", SET_UP)]
    for exercise in exercises().values():
        if exercise.number.startswith(f"{week}."):
            cells += cells_of(exercise, solved)
    after = re.search(r"## Take with you\n.*", rest, flags=re.DOTALL)
    cells.append(("markdown", after[0].strip() if after else "## Take with you"))
    new = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    made = [new[kind](source, id=f"cell-{k:02}") for k, (kind, source) in enumerate(cells, 1)]
    return formatted(normalise(nbformat.v4.new_notebook(cells=made)))


def formatted(made: Any) -> Any:
    """The notebook as `make lint` wants it; as it is where ruff is not installed."""
    if not find_spec("ruff"):
        return made
    command = [
        sys.executable,
        "-m",
        "ruff",
        "format",
        "--config",
        CONFIG,
        "--stdin-filename",
        "x.ipynb",
        "-",
    ]
    done = subprocess.run(
        command, input=to_text(made), capture_output=True, text=True, check=True, cwd=FOLDER
    )
    return normalise(nbformat.reads(done.stdout, as_version=4))


def run(made: Any, *, leave_out: str = "") -> Any:
    """The notebook with what its cells print; cells that hold `leave_out` are not run."""
    names: dict[str, Any] = {"__name__": "__main__"}
    here = Path.cwd()
    with TemporaryDirectory() as folder:  # for the first guesses
        os.chdir(folder)
        try:
            for cell in made.cells:
                if cell.cell_type == "code" and not (leave_out and leave_out in cell.source):
                    cell.outputs = printed(cell, names)
                    cell.execution_count = 1
        finally:
            os.chdir(here)
    return normalise(made)


def printed(cell: Any, names: dict[str, Any]) -> list[Any]:
    """What a cell prints, as its outputs; it leaves its names in `names`."""
    text = io.StringIO()
    with redirect_stdout(text):
        exec(compile(cell.source, f"<{cell.id}>", "exec"), names)
    if not text.getvalue():
        return []
    return [nbformat.v4.new_output("stream", name="stdout", text=text.getvalue())]


def place(path: Path, built: Path = BUILT) -> Path:
    """Where a new notebook goes: `path`, or NAME-new.ipynb beside it if the file there is a student's: it
    is neither what git holds nor what was built last."""
    if not path.exists():
        return path
    digest = built / f"{path.name}.sha256"
    held = sha256(path.read_bytes()).hexdigest()
    if digest.is_file() and digest.read_text() == held:
        return path
    command = ["git", "show", f"HEAD:./{path.name}"]
    committed = subprocess.run(command, cwd=path.parent, capture_output=True, check=False)
    if committed.returncode == 0 and committed.stdout == path.read_bytes():
        return path
    return path.with_stem(f"{path.stem}-new")


def put(text: str, path: Path, built: Path = BUILT) -> Path:
    """Write a notebook to its `place`, and say which it is."""
    to = place(path, built)
    to.write_text(text, encoding="utf-8")
    if to != path:
        print(f"{path.name} was changed by hand and stays as it is: the new one is {to.name}")
        return to
    built.mkdir(parents=True, exist_ok=True)
    (built / f"{path.name}.sha256").write_text(sha256(text.encode()).hexdigest())
    return to


def playground(path: Path) -> str:
    """The text of the playground with what its cells show, of recorded answers alone."""
    made = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(path.parent)}}
    NotebookClient(made, kernel_name="python3", resources=resources).execute()
    for cell in made.cells:
        if "interact(" in cell.source:
            cell.outputs = []
    return to_text(normalise(made))


def main(wanted: list[str]) -> None:
    for week in wanted or [*WEEKS, PLAYGROUND]:
        if week == PLAYGROUND:
            path = FOLDER.parent / f"{PLAYGROUND}.ipynb"
            path.write_text(playground(path), encoding="utf-8")
            continue
        for solved in (False, True):
            made = notebook(week, solved=solved)
            made = run(made) if solved else made
            path = FOLDER / f"week-{week}-{'solved' if solved else 'exercises'}.ipynb"
            print(put(to_text(made), path).relative_to(FOLDER.parents[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
