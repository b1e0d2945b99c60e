"""Part 6's numbers by hand, and on simulated data whose correlations are known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.together import metrics, spine


def rows(text):
    """Answers of one model: a line a fact and arm, with a sign for each form; x is right."""
    found = []
    for line in text.strip().splitlines():
        fact, arm, signs = [part.strip() for part in line.split("|")]
        for form, sign in enumerate(signs, start=1):
            found.append((fact, arm, form, sign == "x"))
    table = pd.DataFrame(found, columns=["fact_id", "arm", "form", "right"])
    return table.assign(
        model="m",
        relation="r",
        text="x",
    )


ANSWERS = rows("""
    a | other words     | x-
    a | no word changed | xx
    b | other words     | --
    b | no word changed | x-
    a | false           | -
    a | nonsense        | -
    a | filler          | x
""")


def test_what_is_lost_stands_beside_its_placebo():
    shares = metrics.lost(ANSWERS)
    table = metrics.beside_placebos(shares)
    side = table.pivot(
        index=["way", "fact_id"],
        columns="side",
        values="lost",
    )
    words, nonsense, filler = [*metrics.WAYS][1:4]
    assert side.loc[(words, "a"), ["change", "placebo"]].tolist() == [0.5, 0]
    assert side.loc[(words, "b"), ["change", "placebo"]].tolist() == [1, 0.5]
    # The false sentence stands beside both of its placebos.
    assert side.loc[(nonsense, "a"), ["change", "placebo"]].tolist() == [1, 1]
    assert side.loc[(filler, "a"), ["change", "placebo"]].tolist() == [1, 0]
    assert len(table) == 8


def test_measures_by_hand():
    """Two facts of one model: tokens of log P -0.1 and -0.3, and of -0.2."""
    known = pd.DataFrame({"model": "m", "fact_id": ["a", "b"], "relation": "r"})
    known["logprobs"] = [[-0.1, -0.3], [-0.2]]
    known = known.assign(
        logprob=[-0.4, -0.2],
        t_b=[1.0, spine.HIGHEST],
        frs=[0.6, 1.0],
    )
    a, b = metrics.measures(known, ANSWERS).to_dict("records")
    assert [a["short"], a["logprob"], a["t_b"]] == [-2, -0.4, 1]
    assert (a["words"], b["words"]) == (0.5, 0)
    assert a["context"] == pytest.approx(1 / 3)
    assert np.isnan(b["context"])  # it has no sentence
    assert np.isnan(a["heat"])  # nothing was sampled


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


def test_reliabilities_are_computed_from_the_answers():
    known = pd.DataFrame(
        {
            "model": "m",
            "fact_id": [*"abcd"],
            "relation": "r",
            "text": "x",
        }
    )
    known = known.assign(
        logprob=[-4.0, -3.0, -2.0, -1.0],
        t_b=[1.0, 2.0, 3.0, 4.0],
    )
    again = known.assign(
        arm="no word changed",
        form=1,
        right=True,
    )
    again["logprob"] = [-4.0, -3.0, -1.0, -2.0]
    again.loc[0, "text"] = "another answer"  # it has no second value
    hot = rows("a | hot | --\n b | hot | x-\n c | hot | xx\n d | hot | xx")
    table = metrics.reliabilities(known, pd.concat([again, hot])).set_index("measure")
    assert table.loc["logprob", ["reliability", "n"]].tolist() == [0.5, 3]  # ranks 1 3 2
    assert table.loc["t_b", "reliability"] == 1
    # Variances of 1/4 and 1/3, and of 11/12 for the sum.
    assert table.loc["heat", "reliability"] == pytest.approx(8 / 11)
    assert table.loc["heat", ["n", "forms"]].tolist() == [4, 2]


def test_corrected_and_partial_correlations_of_simulated_data():
    """Two measures of noise as large as what they measure, whose truths have a correlation of 0.6."""
    n = 40_000
    z, w, y, *noise = np.random.default_rng(0).normal(size=(5, n))
    relation = np.arange(n) % 20
    table = pd.DataFrame({"z": z, "w": w, "relation": relation})
    table["y"] = 0.6 * z + 0.8 * y + noise[0]
    table["x"] = z + noise[1]
    shifted = table.assign(x=table["x"] + relation % 2)

    def means(table, given):
        found = metrics.together(table, "x", "y", 0.5, [given], n_boot=20)
        return found.set_index("how")["mean"]

    true = 6 / np.pi * np.arcsin(0.3 / 2)  # Spearman's of normal variables with Pearson's 0.6 / 2
    found = means(shifted, "z")
    assert found["within relations"] == pytest.approx(true, abs=0.02)
    assert found["corrected"] == pytest.approx(found["plain"] / 0.5)
    assert found[metrics.GIVEN] == pytest.approx(0, abs=0.02)
    straight = means(table, "w")
    assert straight["plain"] == pytest.approx(true, abs=0.02)
    assert straight[metrics.GIVEN] == pytest.approx(true, abs=0.02)
    assert metrics.GIVEN not in means(table, "x")  # it is one of the two


def test_a_pair_is_corrected_by_both_reliabilities():
    """0.9 and 0.4: their product's root is 0.6. Nothing corrects a measure that is all chance."""
    table = pd.DataFrame({"model": "m", "relation": [*"rrss"], "logprob": [1, 2, 3, 4]})
    table = table.assign(
        short=0.0,
        words=[1, 2, 4, 3],
        heat=[4, 1, 2, 3],
    )
    reliable = pd.DataFrame({"model": "m", "measure": ["logprob", "words", "heat"]})
    reliable["reliability"] = [0.9, 0.4, 0.0]
    named = [("logprob", "words"), ("logprob", "heat")]
    found = metrics.pairs(table, reliable, named, n_boot=20).set_index(["pair", "how"])["mean"]
    words, heat = found["log P and other words"], found["log P and heat"]
    assert words["plain"] == pytest.approx(0.8)
    assert words["corrected"] == pytest.approx(0.8 / 0.6)
    assert heat["plain"] == pytest.approx(-0.2)
    assert np.isnan(heat["corrected"])


def test_what_foretells_by_hand():
    """Forty facts of two relations; each measure ranks a known share of the pairs rightly."""
    table = pd.DataFrame(
        {
            "m": "m",
            "fact_id": range(40),
            "relation": ["r", "s"] * 20,
        }
    )
    table["right"] = table["fact_id"] % 4 < 2  # ten of each relation
    table["perfect"] = table["right"] * 1.0
    table["logprob"] = 0.0
    table["relation at best"] = (table["relation"] == "r") * 1.0
    signs = ["perfect", "logprob", "relation at best"]
    found = metrics.foretold(table, ["m"], "right", signs, n_boot=20)
    found = found.set_index(["measure", "predictor"])
    for measure in ("auc", "auc_within"):
        assert found.loc[(measure, "perfect"), ["mean", "difference", "n"]].tolist() == [1, 0.5, 40]
        assert found.loc[(measure, "relation at best"), "mean"] == 0.5  # half are right in each
    assert metrics.foretold(table.head(16), ["m"], "right", ["perfect"], n_boot=20).empty
