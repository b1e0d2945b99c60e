import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.plots import style

LAPTOP = ["gemma-3-270m", "smollm2-135m-instruct"]
names = st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=12, unique=True)


def test_plots_import_no_heavy_library():
    code = (
        "import sys\n"
        "from factrobust.plots import decoding, decoding, decoding\n"
        "assert not {'torch', 'transformers', 'seaborn', 'statsmodels'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@settings(deadline=None)
@given(names)
def test_models_of_a_figure_look_different(models):
    looks = style.looks(models)
    assert set(looks) == set(models)
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(models)
    if len(models) <= 5:
        assert len({look.colour for look in looks.values()}) == len(models)


@settings(deadline=None)
@given(names)
def test_embedded_models_keep_colours_of_their_own(models):
    models = [m for m in models if m not in LAPTOP][:5]
    alone = style.looks(LAPTOP)
    together = style.looks([*models, *LAPTOP])
    assert {m: together[m] for m in LAPTOP} == alone
    assert not {together[m].colour for m in models} & {look.colour for look in alone.values()}


def test_an_unknown_model_looks_the_same_in_every_figure_and_order():
    alone = style.looks(["my-model"])["my-model"]
    assert style.looks(["my-model", *LAPTOP])["my-model"] == alone
    assert style.looks([*LAPTOP, "my-model"])["my-model"] == alone
    assert style.looks(["a", "b", "c"]) == style.looks(["c", "a", "b"])


def test_known_models_come_first_then_by_name():
    assert list(style.looks(["z", "a", *reversed(LAPTOP)])) == [*LAPTOP, "a", "z"]


def test_names_as_figures_show_them():
    assert style.domain_name("science-history") == "science and history"
    assert style.domain_name("my_facts") == "my facts"
    assert style.model_name("meta-llama/Llama-3.2-1B-Instruct") == "Llama-3.2-1B-Instruct"
    assert style.model_name("/home/me/models/mine/") == "mine"
    endpoint = "http://localhost:8000/v1 org/llama key=A_KEY api=completions"
    assert style.model_name(endpoint) == "llama @localhost"
    assert style.printable("US$\n北") == "US\\$↵\\u5317"


def test_numbers_of_facts_are_told_per_model_where_they_differ():
    table = pd.DataFrame({"model": ["a", "a", "b"], "n": [40, 40, 38]})
    assert style.counts(table, ["a", "b"]) == "n = 40 / 38 facts"
    assert style.counts(table.assign(n=40), ["a", "b"]) == "n = 40 facts each"
    assert style.counts(table, ["a", "c"]) == "n = 40 / – facts"
    assert style.count([40, 12, 38]) == "12–40"


def test_missing_bounds_draw_no_interval():
    table = pd.DataFrame({"mean": [0.5, 0.5], "low": [0.3, None], "high": [0.6, None]})
    assert style.errors(table).tolist() == [pytest.approx([0.2, 0]), pytest.approx([0.1, 0])]


def test_jitter_stays_within_its_width():
    shifts = style.jitter(1000, 0.4)
    assert abs(shifts).max() <= 0.2
    assert abs(shifts.mean()) < 0.001
    assert len(set(shifts.round(12))) == 1000


def test_a_figure_that_fails_leaves_nothing_behind():
    @style.styled
    def broken():
        style.panels(1, 1, 3, 3)
        raise RuntimeError("no")

    before = dict(mpl.rcParams)
    with pytest.raises(RuntimeError):
        broken()
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def test_what_is_missing_is_named():
    with pytest.raises(KeyError, match="needs columns \\['n'\\]"):
        style.need(pd.DataFrame({"model": ["a"]}), "model", "n")
    with pytest.raises(ValueError, match="no rows"):
        style.need(pd.DataFrame({"model": []}), "model")


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
