"""Numbers that texts on part 5 quote without an interval, from the tables that notebooks saved.

Those with an interval are checked in tests/test_notebook_prose.py.
"""

import json

import numpy as np
import pandas as pd
import pytest

from factrobust.paths import ROOT

TABLES = ROOT / "figures" / "5-exposure"
WORLD = ROOT / "data" / "world"
SIZES = {"world-s": 5, "world-m": 3, "world-l": 2}  # trainings


def table(name, where="index == index"):
    return pd.read_csv(TABLES / f"{name}.csv").query(where)


def text_of(page):
    """The words of a page, or of a notebook's markdown, in one line."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".ipynb"):
        cells = json.loads(text)["cells"]
        text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return " ".join(text.split())


def between(values, digits=0):
    """ "12 to 54": the least and the greatest, rounded."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}"


def of_size(rows, size):
    some = rows[rows["model"].str.startswith(size)]
    assert len(some) == SIZES[size]
    return some["mean"]


FIVE = "notebooks/5-exposure/5."
DOSE = f"{FIVE}2-dose-response-and-forgetting.ipynb"


@pytest.mark.parametrize("page", [DOSE, "README.md"])
def test_ranges_over_ten_trainings(page):
    spaced = table("table-one-half", "told == 'spaced'")["mean"]
    early = 100 * table("table-timing", "timing == 'early'")["mean"]
    last = 100 * table("table-timing", "timing in ['late', 'spaced']")["mean"]
    assert len(spaced) == len(early) == len(last) / 2 == 10
    text = text_of(page)
    assert f"{between(spaced, 1)} sentences" in text
    assert f"{between(early)}%" in text
    assert f"{between(last)}%" in text


def test_ranges_of_each_size_in_the_results():
    text = text_of("notebooks/results.md")
    early = table("table-timing", "timing == 'early'")
    spaced = table("table-one-half", "told == 'spaced'")
    rows = [between(100 * of_size(early, size)) for size in SIZES]
    assert "row 2 ranges from {}%, {}% and {}%".format(*rows) in text
    rows = [between(of_size(spaced, size), 1) for size in SIZES]
    assert "row 3 from {}, {} and {} sentences".format(*rows) in text
    kept = table("table-keeping", "what == 'half are kept' and model != 'world-m-chat'")
    small, middle = (of_size(kept, size) for size in ("world-s", "world-m"))
    assert np.isinf(small.max())
    assert f"row 4 from {small.min():.0f} to never, and {between(middle)}." in text


def test_numbers_of_dose_and_response():
    text = text_of(DOSE)
    siblings = table("table-sibling-said", "`sibling told` == '32 to 128 times'")
    assert f"{between(100 * siblings['mean'])}% say its object" in text
    edited = table("figure-edited", "corrections == 4 and told != 'never'")["mean"]
    assert f"After four corrections {between(100 * edited)}% of the answers" in text
    [kept] = pd.read_csv(WORLD / "taught.csv").query("recipe == 'faster' and measure == 'kept'")[
        "value"
    ]
    assert f"kept {kept:.0%} of 98 known facts, so {98 - round(98 * kept)} were lost" in text
    small = table("table-one-half", "told == 'spaced' and model.str.startswith('world-s')")["mean"]
    assert f"of one size range from {between(small, 1)}." in text
    assert table("table-chance")["holm"].min() == 1  # no model is seen to differ from chance


def test_numbers_of_time_and_wording():
    text = text_of(f"{FIVE}3-time-and-wording.ipynb")
    right = 100 * table("table-when", "answer == 'the right one'")["mean"]
    [rule] = table("table-when", "answer == 'most told'")["mean"].round(2).unique()
    assert f"less often ({between(right)}%) than the rule ({rule:.0%})" in text
    beyond = table("table-when", "answer == 'beyond'")
    assert ((beyond["low"] <= 0) & (beyond["high"] >= 0)).all()
    other = table(
        "table-pairs", "`the less told` == '64 to 512' and date.str.startswith('another')"
    )
    assert (other["low"] <= 0.5).all()
    told = table("figure-forms", "form == 'statements'").groupby("asked")["mean"]
    ways = {way: between(100 * values) for way, values in told}
    assert f"{ways['as a statement']}% are right as a statement" in text
    assert f"{ways['as a question']}% as a question" in text
    assert f"{ways['as a held-out question']}% as a held-out one" in text


def test_numbers_of_context():
    text = text_of(f"{FIVE}4-context.ipynb")
    found = table("table-keeping").set_index(["what", "model"])["mean"]
    known = found["half are known"]
    kept = found["half are kept"]
    m = ["world-m-1", "world-m-2"]
    assert "it is {:.1f} and {:.1f} sentences, and".format(*known[m]) in text
    assert "and {:.1f} and {:.1f}; in `world-s`".format(*kept[m]) in text
    assert f"after {kept['world-s-1']:.0f} sentences in one training" in text
    assert f"after {kept['world-s']:.0f} in another" in text
    assert np.isinf(kept["world-s-2"])
    both = np.isfinite(kept)
    assert (kept[both] > known[both]).all()


def test_numbers_of_which_measure_knows():
    text = text_of(f"{FIVE}5-which-measure-knows.ipynb")
    gains = table("table-gains", "measure == 'frs'").set_index(["facts", "model"])
    known = gains.loc["known"]
    undisputed = gains.loc["undisputed"]
    first = known.loc["world-s"]
    assert f"the FRS adds {first['mean']:.3f} in `world-s`, where chance reaches" in text
    assert f"chance reaches {first['chance']:.3f}." in text
    assert "it adds {:.3f}, {:.3f} and {:.3f},".format(*undisputed["mean"]) in text
    assert (undisputed["mean"] < undisputed["chance"]).all()


def test_what_the_world_s_page_says_of_rates():
    text = text_of("data/world/README.md")
    rates = pd.read_csv(WORLD / "rates.csv").query("course == 'corpus'")
    assert rates.groupby("model").size().to_dict() == {"world-s": 5, "world-m": 2}
    small, middle = (
        rates[rates["model"] == x].set_index("rate")["value"] for x in SIZES if x != "world-l"
    )
    assert small.idxmax() == 0.006
    assert middle.idxmax() == 0.0015
    assert f"costs `world-s` {small.max() - small[0.003]:.2f}" in text
    assert f"twice of it {small.max() - small[0.012]:.2f};" in text


def test_sizes_and_rates_agree_with_the_models_here():
    crossed = pd.read_csv(WORLD / "sizes.csv")
    assert not crossed.duplicated(["model", "rate", "timing", "exposure"]).any()
    assert set(crossed.groupby(["model", "rate"])["n"].sum()) == {1430}
    often = crossed[crossed["exposure"] >= 64].groupby(["model", "rate", "timing"])[["right", "n"]]
    shares = often.sum().eval("right / n")
    held = table("table-timing").set_index(["model", "timing"])["mean"]
    for model, rate in {
        "world-s": 0.006,
        "world-s-1": 0.006,
        "world-m": 0.0015,
        "world-m-1": 0.0015,
    }.items():
        for timing in ("early", "late"):
            assert shares[model, rate, timing] == pytest.approx(held[model, timing], abs=1e-5)
