import subprocess
import sys


def test_notebooks_show_a_figure_as_it_is_saved():
    """Whether the inline backend is set up before or after: its size is that of the figure."""
    code = """
import base64, struct, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.kernel = object()
def set_up():
    from matplotlib_inline.backend_inline import configure_inline_support
    configure_inline_support(shell, "module://matplotlib_inline.backend_inline")
if "before" in sys.argv: set_up()
from factrobust.plots import style
if "after" in sys.argv: set_up()
figure, _ = style.panels(1, 1, 3.0, 2.0)
png = base64.b64decode(shell.display_formatter.format(figure)[0]["image/png"])
print(struct.unpack(">II", png[16:24]))
"""
    for when in ("before", "after"):
        done = subprocess.run(
            [sys.executable, "-c", code, when], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "(300, 200)"  # at 100 dots an inch
