"""Part 6's numbers by hand, and on simulated data whose correlations are known."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust.together import metrics, spine


def rows(text):
    """Answers of one model: a line a fact and arm, with a sign for each form; x is right."""
    table = frame("fact_id  arm  signs\n" + text)
    table["right"] = table["signs"].map(list)
    table = table.explode("right", ignore_index=True)
    table["right"] = table["right"] == "x"
    table["form"] = table.groupby(["fact_id", "arm"]).cumcount() + 1
    return table.assign(model="m", relation="r", text="x")


ANSWERS = """
a  other words      x-
a  no word changed  xx
b  other words      --
b  no word changed  x-
a  false            -
a  nonsense         -
a  filler           x
"""


def test_what_is_lost_stands_beside_its_placebo():
    """The false sentence stands beside both of its placebos."""
    table = metrics.beside_placebos(metrics.lost(rows(ANSWERS)))
    wide = table.pivot(index=["way", "fact_id"], columns="side", values="lost").reset_index()
    expected = """
        way                                fact_id  change  placebo
        a false sentence, beside a filler  a        1       0
        a false sentence, beside nonsense  a        1       1
        other words, beside none changed   a        0.5     0
        other words, beside none changed   b        1       0.5
    """
    assert_rows(wide, expected)


def test_measures_by_hand():
    """Two facts of one model: tokens of log P -0.1 and -0.3, and of -0.2. Fact b has no sentence,
    and nothing was sampled."""
    known = frame("""
        model  fact_id  relation  logprob  t_b  frs
        m      a        r         -0.4     1    0.6
        m      b        r         -0.2     99   1
    """)
    known["logprobs"] = [[-0.1, -0.3], [-0.2]]
    found = metrics.measures(known, rows(ANSWERS))
    expected = """
        fact_id  short  logprob  t_b  frs  words  context   heat
        a        -2     -0.4     1    0.6  0.5    0.333333  NaN
        b        -1     -0.2     99   1    0      NaN       NaN
    """
    assert_rows(found.round(6), expected)
    assert spine.HIGHEST == 99


@pytest.mark.parametrize(
    ("one", "other", "alpha"),
    [
        # Variances of 1/3 and 1/4, and of 11/12 for the sum.
        ([1, 1, 0, 0], [1, 0, 0, 0], 2 * (1 - (1 / 3 + 1 / 4) / (11 / 12))),
        ([1, 1, 0, 0], [1, 1, 0, 0], 1),
        ([1, 1, 0, 0], [0, 0, 1, 1], np.nan),  # no sum differs
        ([1, 1, 0, 0], [0, 0, 0, 1], 0),  # not below
        ([1, 0, np.nan], [1, 0, 1], np.nan),  # two facts with both forms
    ],
)
def test_alpha_by_hand(one, other, alpha):
    forms = pd.DataFrame({"one": one, "other": other})
    assert metrics.alpha(forms) == pytest.approx(alpha, nan_ok=True)
    assert np.isnan(metrics.alpha(forms[["one"]]))


def test_three_forms_that_agree_have_an_alpha_of_one():
    """The sum's variance is nine times that of a form: 3 / 2 (1 - 3 / 9)."""
    one = [1, 1, 0, 0]
    forms = pd.DataFrame({"one": one, "other": one, "third": one})
    assert metrics.alpha(forms) == pytest.approx(1)


def test_reliabilities_are_computed_from_the_answers():
    """Fact a has another answer, so no second value; the ranks of the others are 1 3 2. Of heat the
    variances are 1/4 and 1/3, and 11/12 for the sum."""
    known = frame("""
        model  fact_id  relation  text  logprob  t_b
        m      a        r         x     -4       1
        m      b        r         x     -3       2
        m      c        r         x     -2       3
        m      d        r         x     -1       4
    """)
    again = known.assign(arm="no word changed", form=1, right=True)
    again["logprob"] = [-4.0, -3.0, -1.0, -2.0]
    again.loc[0, "text"] = "another answer"
    hot = rows("a  hot  --\nb  hot  x-\nc  hot  xx\nd  hot  xx")
    found = metrics.reliabilities(known, pd.concat([again, hot]))
    expected = """
        measure  reliability  n  forms
        logprob  0.5          3  2
        t_b      1            3  2
        heat     0.727272727  4  2
    """
    assert_rows(found, expected)


def test_corrected_and_partial_correlations_of_simulated_data():
    """Two measures of noise as large as what they measure, whose truths have a correlation of 0.6:
    theirs is 0.3, and of normal variables Spearman's is 6 / pi times the arc sine of its half."""
    n = 40_000
    z, w, rest, noise, more = np.random.default_rng(0).normal(size=(5, n))
    relation = np.arange(n) % 20
    table = pd.DataFrame({"z": z, "w": w, "relation": relation})
    table["x"] = z + more
    table["y"] = 0.6 * z + 0.8 * rest + noise
    shifted = table.assign(x=table["x"] + relation % 2)

    def means(table, given):
        found = metrics.together(table, "x", "y", 0.5, [given], n_boot=20)
        return found.set_index("how")["mean"]

    true = pytest.approx(6 / np.pi * np.arcsin(0.3 / 2), abs=0.02)
    found = means(shifted, "z")
    assert found["within relations"] == true
    assert found["corrected"] == pytest.approx(found["plain"] / 0.5)
    assert found[metrics.GIVEN] == pytest.approx(0, abs=0.02)
    straight = means(table, "w")
    assert straight["plain"] == true
    assert straight[metrics.GIVEN] == true
    assert metrics.GIVEN not in means(table, "x")  # it is one of the two


def test_a_pair_is_corrected_by_both_reliabilities():
    """0.9 and 0.4: their product's root is 0.6. Nothing corrects a measure that is all chance."""
    table = frame("""
        model  relation  logprob  words  heat  short
        m      r         1        1      4     0
        m      r         2        2      1     0
        m      s         3        4      2     0
        m      s         4        3      3     0
    """)
    reliable = frame("""
        model  measure  reliability
        m      logprob  0.9
        m      words    0.4
        m      heat     0
    """)
    named = [("logprob", "words"), ("logprob", "heat")]
    found = metrics.pairs_together(table, reliable, named, n_boot=20)
    wide = found.pivot(index="pair", columns="how", values="mean").reset_index()
    expected = """
        pair                   plain  corrected
        log P and heat         -0.2   NaN
        log P and other words  0.8    1.333333333
    """
    assert_rows(wide, expected)


def test_what_foretells_by_hand():
    """Forty facts of two relations, of each of which half are right; each measure ranks a known
    share of the pairs rightly."""
    table = pd.DataFrame({"m": "m", "fact_id": range(40), "relation": ["r", "s"] * 20})
    table["right"] = table["fact_id"] % 4 < 2
    table["perfect"] = table["right"] * 1.0
    table["logprob"] = 0.0
    table["its relation"] = (table["relation"] == "r") * 1.0
    signs = ["perfect", "logprob", "its relation"]
    found = metrics.foretold(table, ["m"], "right", signs, n_boot=20)
    found = found[found["predictor"] != "logprob"].sort_values(["measure", "predictor"])
    expected = """
        measure     predictor     mean  difference  n
        auc         its relation  0.5   0           40
        auc         perfect       1     0.5         40
        auc_within  its relation  0.5   0           40
        auc_within  perfect       1     0.5         40
    """
    assert_rows(found, expected)
    assert metrics.foretold(table.head(16), ["m"], "right", ["perfect"], n_boot=20).empty
