"""How Jupyter shows our figures below a cell."""

from __future__ import annotations

import sys
from typing import Any


def show_as_saved() -> None:
    """Let notebooks show figures as they are saved, in JupyterLab and when the runner executes them.

    Jupyter would crop each figure anew, which takes as long as drawing it and makes another picture.
    Nothing happens outside of a kernel.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return
    from IPython.core.pylabtools import select_figure_formats
    from matplotlib_inline.config import InlineBackend

    inline: Any = InlineBackend.instance(parent=shell)
    inline.print_figure_kwargs = {"bbox_inches": None}  # for when it is set up after this
    select_figure_formats(shell, inline.figure_formats, bbox_inches=None)
