import os
import subprocess
import sys

import pandas as pd
from frames import frame
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.plots import style

LAPTOP = ["gemma-3-270m", "smollm2-135m-instruct"]
names = st.lists(
    st.text(min_size=1, max_size=12),
    min_size=1,
    max_size=12,
    unique=True,
)


@settings(deadline=None, max_examples=20)
@given(names)
def test_models_of_a_figure_look_different(models):
    looks = style.looks([*models, *LAPTOP])
    alone = style.looks(LAPTOP)
    assert set(looks) == {*models, *LAPTOP}
    assert len({(look.colour, look.marker) for look in looks.values()}) == len(looks)
    assert {m: looks[m] for m in LAPTOP} == alone  # and theirs are theirs alone:
    if len(looks) <= 7:
        assert len({look.colour for look in looks.values()}) == len(looks)


def test_an_unknown_model_looks_the_same_in_every_figure_and_order():
    alone = style.looks(["my-model"])["my-model"]
    assert style.looks(["my-model", *LAPTOP])["my-model"] == alone
    assert style.looks([*LAPTOP, "my-model"])["my-model"] == alone
    assert style.looks(["a", "b", "c"]) == style.looks(["c", "a", "b"])
    assert list(style.looks(["z", "a", *reversed(LAPTOP)])) == [*LAPTOP, "a", "z"]


def test_other_models_stand_by_family_and_size():
    ordered = [
        "google/gemma-2-2b", "google/gemma-2-2b-it", "google/gemma-2-9b", "google/gemma-2-27b",
        "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B",
        "org/OpenELM-450M", "org/OpenELM-3B", "org/no-size",
    ]  # fmt: skip
    assert list(style.looks([*reversed(ordered), *LAPTOP])) == [*LAPTOP, *ordered]


def test_names_as_figures_show_them():
    assert style.name("science-history") == "science and history"
    assert style.name("price_in_$") == r"price in \$"
    assert style.model_name("meta-llama/Llama-3.2-1B-Instruct") == "Llama-3.2-1B-Instruct"
    assert style.model_name("/home/me/models/mine/") == "mine"
    endpoint = "http://localhost:8000/v1 org/llama key=A_KEY api=completions"
    assert style.model_name(endpoint) == "llama @localhost"
    assert style.printable("US$\n") == "US\\$↵"


COUNTS = """
    models   what   text
    a b      -      40 / 38
    a b      facts  n = 40 / 38 facts
    a c      facts  n = 40 facts each
    b        facts  n = 38 facts
    a d      facts  n = 40 / – facts
    a b c    facts  n = 40 / 38 / 40 facts
    a b c e  facts  n = 38–41 facts
"""


def test_numbers_of_facts_are_told_per_model_where_they_differ():
    table = pd.DataFrame({"model": [*"aabce"], "n": [40, 40, 38, 40, 41]})
    for models, what, text in frame(COUNTS).replace("-", "").itertuples(index=False):
        assert style.counts(table, models.split(), what) == text
    assert style.count_range([40, 12, 38]) == "12–40"


def test_lines_that_are_no_models_have_no_colour_of_an_embedded_model():
    looks = style.series([*"abcde", "a"])
    assert list(looks) == list("abcde")
    assert len({look.colour for look in looks.values()}) == 5
    models = {look.colour for look in style.looks(LAPTOP).values()}
    assert not {*(look.colour for look in looks.values()), style.RIGHT, style.WRONG} & models
    assert style.series("abcdef")["f"] == looks["a"]


SHOWN = """
import os, struct
from IPython.core.interactiveshell import InteractiveShell
from factrobust.plots import style

def pyplot():
    import matplotlib.pyplot as plt
    plt.figure()

shell = InteractiveShell.instance()
shell.kernel = object()
child = os.fork()
for step in (pyplot, style.setup) if child else (style.setup, pyplot):
    step()
figure, _ = style.grid(1, 1, 3.0, 2.0)
data, about = shell.display_formatter.format(figure)
assert struct.unpack(">II", data["image/png"][16:24]) == (600, 400)
assert about["image/png"] == {"width": 300, "height": 200}  # at 100 dots an inch
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_notebooks_show_a_figure_as_it_is_saved():
    """Two pixels for each of the page, whether pyplot is set up before or after."""
    inline = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    subprocess.run([sys.executable, "-c", SHOWN], check=True, env=inline)
