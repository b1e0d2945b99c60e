"""IPython start-up file of the notebooks' kernels: imports what nearly every notebook needs.

A kernel starts while the notebook before its own still runs, so this costs nobody's time. Copied
like kernel_note_reads; only other people's packages, whose files are no inputs of a notebook.
"""


def _warm_up() -> None:
    import contextlib
    import gc
    import importlib
    import io

    names = ["pandas", "pandera.pandas", "pandera.backends.pandas.builtin_checks"]
    names += ["pandas.io.formats.style", "tabulate", "scipy.special", "sqlite3"]
    for name in [*names, "matplotlib.pyplot", "matplotlib_inline.backend_inline"]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        from matplotlib.figure import Figure

        figure = Figure()
        figure.text(0, 0, "The first text in each format reads the fonts.")
        for form in ("pdf", "png"):
            figure.savefig(io.BytesIO(), format=form)
    # Imports and tables make millions of objects that stay: looking for garbage among them again and
    # again takes a tenth of a notebook's time.
    gc.freeze()
    gc.set_threshold(100_000)


_warm_up()
del _warm_up
