"""IPython start-up file of the notebooks' kernels: imports what nearly every notebook needs.

A kernel starts while the notebook before its own still runs, so this costs nobody's time. Copied
like kernel_note_reads; only other people's packages, whose files are no inputs of a notebook.
"""


def _warm_up() -> None:
    import contextlib
    import gc
    import importlib

    names = ["matplotlib.pyplot", "matplotlib.backends.backend_pdf", "pandas", "pandera.pandas"]
    names += ["pandera.backends.pandas.builtin_checks"]  # at the first table that is checked
    for name in [*names, "matplotlib_inline.backend_inline", "scipy.special", "sqlite3"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    # Imports and tables make millions of objects that stay: looking for garbage among them again and
    # again takes a tenth of a notebook's time.
    gc.freeze()
    gc.set_threshold(100_000)


_warm_up()
del _warm_up
