"""Numbers that texts on part 5 quote without an interval, from the tables that notebooks saved.

Those with an interval are checked in tests/test_notebook_prose.py.
"""

import re

import nbformat
import numpy as np
import pandas as pd
import pytest
from frames import frame

from factrobust.paths import ROOT

TABLES = ROOT / "figures/5-exposure"
WORLD = ROOT / "data/world"
NUMBER = re.compile(r"#(?:\.(#+))?(%?)")
# What a page says. For #, #.# or #% stands the range of the means in rows of a table, "12 to 54", or
# the one number that there is; rows are of a query each, in the order of the numbers.
QUOTED = frame("""
    page                  says                                 table               rows
    5.2                   #.# sentences                        table-one-half      told == 'spaced'
    README.md             #.# sentences                        table-one-half      told == 'spaced'
    5.2                   #%                                   table-timing        timing == 'early'
    README.md             #%                                   table-timing        timing == 'early'
    5.2                   #%                                   table-timing        timing in ['late', 'spaced']
    README.md             #%                                   table-timing        timing in ['late', 'spaced']
    notebooks/results.md  row 2 ranges from #%, #% and #%      table-timing        timing == 'early' and size == 's'; timing == 'early' and size == 'm'; timing == 'early' and size == 'l'
    notebooks/results.md  row 3 from #.#, #.# and #.# sent     table-one-half      told == 'spaced' and size == 's'; told == 'spaced' and size == 'm'; told == 'spaced' and size == 'l'
    notebooks/results.md  row 4 from #, and #.                 table-keeping       what == 'half are kept' and size == 's'; what == 'half are kept' and size == 'm'
    5.2                   #% say its object                    table-sibling-said  `sibling told` == '32 to 128 times'
    5.2                   After four corrections #% of the     figure-edited       corrections == 4 and told != 'never'
    5.2                   of one size range from #.#.          table-one-half      told == 'spaced' and size == 's'
    5.3                   less often (#%) than the rule (#%)   table-when          answer == 'the right one'; answer == 'most told'
    5.3                   #% are right as a statement          figure-forms        form == 'statements' and asked == 'as a statement'
    5.3                   #% as a question                     figure-forms        form == 'statements' and asked == 'as a question'
    5.3                   #% as a held-out one                 figure-forms        form == 'statements' and asked == 'as a held-out question'
    5.4                   it is #.# and #.# sentences, and     table-keeping       what == 'half are known' and model == 'world-m-1'; what == 'half are known' and model == 'world-m-2'
    5.4                   and #.# and #.#; in `world-s`        table-keeping       what == 'half are kept' and model == 'world-m-1'; what == 'half are kept' and model == 'world-m-2'
    5.4                   after # sentences in one training    table-keeping       what == 'half are kept' and model == 'world-s-1'
    5.4                   after # in another                   table-keeping       what == 'half are kept' and model == 'world-s'
    5.5                   the FRS adds #.### in `world-s`      table-gains         measure == 'frs' and facts == 'known' and model == 'world-s'
    5.5                   it adds #.###, #.### and #.###,      table-gains         measure == 'frs' and facts == 'undisputed' and model == 'world-s'; measure == 'frs' and facts == 'undisputed' and model == 'world-s-1'; measure == 'frs' and facts == 'undisputed' and model == 'world-s-2'
""")


def table(name: str) -> pd.DataFrame:
    """A saved table, with the size of the model: all trainings of world-m without the chat model."""
    rows = pd.read_csv(TABLES / f"{name}.csv")
    size = rows["model"].str.extract(r"^world-([sml])(?!-chat)")
    return rows.assign(size=size)


def text_of(page: str) -> str:
    """The words of a page, or of the markdown of a notebook of part 5, in one line."""
    if page.startswith("5."):
        [path] = ROOT.glob(f"notebooks/5-exposure/{page}-*.ipynb")
        notebook = nbformat.read(path, as_version=4)
        parts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
        text = " ".join(parts)
    else:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
    return " ".join(text.split())


def range_of(values: pd.Series, mark: re.Match) -> str:
    decimals, percent = mark.groups()
    scaled = 100 * values if percent else values
    digits = len(decimals or "")
    low = f"{scaled.min():.{digits}f}"
    high = f"{scaled.max():.{digits}f}"
    if low == high:
        return low + percent
    return f"{low} to {high}{percent}".replace("inf", "never")


@pytest.mark.parametrize(("page", "says", "name", "rows"), QUOTED.to_numpy().tolist())
def test_what_a_page_says_is_what_was_saved(page, says, name, rows):
    saved = table(name)
    for query in rows.split("; "):
        mark = NUMBER.search(says)
        values = saved.query(query)["mean"]
        says = says.replace(mark[0], range_of(values, mark), 1)
    assert says in text_of(page)


@pytest.mark.parametrize("name", ["table-one-half", "table-timing"])
def test_ranges_are_of_all_ten_trainings(name):
    trainings = table(name).groupby("size")["model"].nunique()
    assert trainings.to_dict() == {"s": 5, "m": 3, "l": 2}


def test_what_is_said_of_all_models():
    assert table("table-chance")["holm"].min() == 1  # no model is seen to differ from chance
    beyond = table("table-when").query("answer == 'beyond'")
    assert beyond["low"].max() <= 0
    assert beyond["high"].min() >= 0
    pairs = table("table-pairs").query("`the less told` == '64 to 512'")
    is_other = pairs["date"].str.startswith("another")
    assert is_other.any()
    assert pairs.loc[is_other, "low"].max() <= 0.5
    gains = table("table-gains").query("measure == 'frs' and facts == 'undisputed'")
    assert (gains["mean"] < gains["chance"]).all()
    keeping = table("table-keeping").pivot(index="model", columns="what", values="mean")
    kept = keeping["half are kept"]
    assert np.isinf(kept["world-s-2"])
    both = keeping[np.isfinite(kept)]
    assert (both["half are kept"] > both["half are known"]).all()


def test_other_numbers():
    gains = table("table-gains").query("measure == 'frs' and facts == 'known'")
    [chance] = gains.loc[gains["model"] == "world-s", "chance"]
    assert f"chance reaches {chance:.3f}." in text_of("5.5")
    taught = pd.read_csv(WORLD / "taught.csv")
    [kept] = taught.query("recipe == 'faster' and measure == 'kept'")["value"]
    n_lost = 98 - round(98 * kept)
    assert f"kept {kept:.0%} of 98 known facts, so {n_lost} were lost" in text_of("5.2")


def test_what_the_world_s_page_says_of_rates():
    text = text_of("data/world/README.md")
    rates = pd.read_csv(WORLD / "rates.csv").query("course == 'corpus'")
    of_rate = rates.pivot(index="rate", columns="model", values="value")
    assert of_rate.count().to_dict() == {"world-s": 5, "world-m": 2}
    assert of_rate["world-m"].idxmax() == 0.0015
    small = of_rate["world-s"]
    assert small.idxmax() == 0.006
    costs = small.max() - small
    assert f"costs `world-s` {costs[0.003]:.2f}" in text
    assert f"twice of it {costs[0.012]:.2f};" in text


RATES = frame("""
    model      rate
    world-s    0.006
    world-s-1  0.006
    world-m    0.0015
    world-m-1  0.0015
""")


@pytest.mark.parametrize(("model", "rate"), RATES.to_numpy().tolist())
def test_sizes_and_rates_agree_with_the_models_here(model, rate):
    sizes = pd.read_csv(WORLD / "sizes.csv")
    assert not sizes.duplicated(["model", "rate", "timing", "exposure"]).any()
    n_facts = sizes.groupby(["model", "rate"])["n"].sum()
    assert set(n_facts) == {1430}
    often = sizes.query("model == @model and rate == @rate and exposure >= 64")
    counts = often.groupby("timing")[["right", "n"]].sum()
    shares = counts["right"] / counts["n"]
    of_model = table("table-timing").query("model == @model")
    here = of_model.set_index("timing")["mean"]
    for timing in ("early", "late"):
        assert shares[timing] == pytest.approx(here[timing], abs=1e-5)
