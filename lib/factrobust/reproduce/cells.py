"""papermill's way of running a notebook, which also tells which cell is at work."""

from collections.abc import Callable
from typing import Any

from nbformat import NotebookNode
from papermill.engines import NBClientEngine, papermill_engines

ENGINE = "telling"


class TellingEngine(NBClientEngine):
    """papermill's own engine; `show` is called with "cell 3 of 12, The dose" as each code cell
    begins."""

    @classmethod
    def execute_managed_notebook(
        cls,
        nb_man: Any,
        kernel_name: str,
        *,
        show: Callable[[str], None],
        **options: Any,
    ) -> Any:
        begin = nb_man.cell_start

        def cell_start(cell: NotebookNode, cell_index: int | None = None, **others: Any) -> None:
            if cell.cell_type == "code" and cell_index is not None:
                show(place(nb_man.nb.cells, cell_index))
            begin(cell, cell_index, **others)

        nb_man.cell_start = cell_start
        return super().execute_managed_notebook(nb_man, kernel_name, **options)


def place(cells: list[NotebookNode], index: int) -> str:
    """Where a cell stands: its number, how many there are, and the last heading before it."""
    heading = ""
    for cell in cells[:index]:
        lines = cell.source.splitlines() if cell.cell_type == "markdown" else []
        headings = [line for line in lines if line.startswith("#")]
        heading = headings[-1].lstrip("# ") if headings else heading
    return f"cell {index + 1} of {len(cells)}" + (f", {heading}" if heading else "")


papermill_engines.register(ENGINE, TellingEngine)
