"""IPython start-up file of the notebooks' kernels: imports what nearly every notebook needs.

A kernel starts while the notebook before its own still runs, so this costs nobody's time. Copied
like kernel_note_reads; only other people's packages, whose files are no inputs of a notebook.
"""


def _warm_up() -> None:
    import contextlib
    import importlib

    for name in ("matplotlib.pyplot", "pandas", "pandera.pandas", "sqlite3"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


_warm_up()
del _warm_up
