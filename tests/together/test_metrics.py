"""Part 6's numbers by hand, and on simulated data whose correlations are known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.together import metrics, spine


def rows(*cells):
    """Answers of one model: fact, arm, form, right."""
    table = pd.DataFrame(cells, columns=["fact_id", "arm", "form", "right"])
    return table.assign(model="m", relation="r", text="x")


ANSWERS = rows(
    ("a", "other words", 1, True), ("a", "other words", 2, False),
    ("a", "no word changed", 1, True), ("a", "no word changed", 2, True),
    ("b", "other words", 1, False), ("b", "other words", 2, False),
    ("b", "no word changed", 1, True), ("b", "no word changed", 2, False),
    ("a", "false", 1, False), ("a", "nonsense", 1, False), ("a", "filler", 1, True),
)  # fmt: skip


def test_what_is_lost_stands_beside_its_placebo():
    shares = metrics.lost(ANSWERS)
    found = shares.set_index(["fact_id", "arm"])["lost"]
    assert found["a", "other words"] == 0.5
    assert found["b", "other words"] == 1
    assert found["b", "no word changed"] == 0.5
    table = metrics.beside_placebos(shares)
    side = table.pivot(index=["way", "fact_id"], columns="side", values="lost")
    words = side.loc["other words, beside none changed"]
    assert words.loc["b", ["change", "placebo"]].tolist() == [1, 0.5]
    false = [way for way in metrics.WAYS if way.startswith("a false sentence")]
    assert [side.loc[(way, "a"), "placebo"] for way in false] == [1, 0]
    assert len(table) == 2 * 2 + 2 * 2  # the false sentence stands beside both of its placebos


def known():
    """Two facts of one model: tokens of log P -0.1 and -0.3, and of -0.2."""
    table = pd.DataFrame({"model": "m", "fact_id": ["a", "b"], "relation": "r"})
    table = table.assign(text="x", logprob=[-0.4, -0.2], t_b=[1.0, spine.HIGHEST])
    return table.assign(logprobs=[[-0.1, -0.3], [-0.2]], frs=[0.6, 1.0])


def test_measures_by_hand():
    a, b = metrics.measures(known(), ANSWERS).to_dict("records")
    assert [a["short"], a["logprob"], a["t_b"]] == [-2, -0.4, 1]
    assert (a["words"], b["words"]) == (0.5, 0)
    assert a["context"] == pytest.approx(1 / 3)
    assert np.isnan(b["context"])  # it has no sentence
    assert np.isnan(a["heat"])  # nothing was sampled


def test_alpha_by_hand():
    """Of two forms with variances 1/3 and 1/4, and a sum with variance 11/12."""
    forms = pd.DataFrame({"one": [1, 1, 0, 0], "other": [1, 0, 0, 0]})
    variances = 1 / 3 + 1 / 4
    assert metrics.alpha(forms) == pytest.approx(2 * (1 - variances / (11 / 12)))
    assert metrics.alpha(forms.assign(other=forms["one"])) == pytest.approx(1)
    assert np.isnan(metrics.alpha(forms.assign(other=1 - forms["one"])))  # no sum differs
    assert metrics.alpha(forms.assign(other=[0, 0, 0, 1])) == 0  # not below
    assert np.isnan(metrics.alpha(forms[["one"]]))


def test_reliabilities_are_computed_from_the_answers():
    facts = pd.DataFrame({"model": "m", "fact_id": list("abcd"), "relation": "r", "text": "x"})
    facts = facts.assign(logprob=[-4.0, -3.0, -2.0, -1.0], t_b=[1.0, 2.0, 3.0, 4.0])
    again = facts.assign(arm="no word changed", form=1, right=True)
    again["logprob"] = [-4.0, -3.0, -1.0, -2.0]
    again.loc[0, "text"] = "another answer"  # it has no second value
    forms = rows(*(("abcd"[k], "hot", form, k >= form) for k in range(4) for form in (1, 2)))
    table = metrics.reliabilities(facts, pd.concat([again, forms])).set_index("measure")
    assert table.loc["logprob", ["reliability", "n"]].tolist() == [0.5, 3]  # ranks 1 3 2
    assert table.loc["t_b", "reliability"] == 1
    hot = pd.DataFrame({"one": [0, 1, 1, 1], "two": [0, 0, 1, 1]})
    assert table.loc["heat", "reliability"] == pytest.approx(metrics.alpha(hot))
    assert table.loc["heat", ["n", "forms"]].tolist() == [4, 2]


def test_corrected_and_partial_correlations_of_simulated_data():
    """Two measures of noise as large as what they measure, whose truths have a correlation of 0.6."""
    rng = np.random.default_rng(0)
    z, x, y = rng.normal(size=(3, 40_000))
    true = 0.6 * z + 0.8 * y
    noise = rng.normal(size=(2, 40_000))
    table = pd.DataFrame({"x": z + noise[0], "y": true + noise[1], "z": z, "w": x})
    table["relation"] = [f"r{i % 20}" for i in range(len(table))]
    table["x"] += table["relation"].str[1:].astype(int) % 2  # a shift of relations

    def spearman(r):  # of normal variables with Pearson's r
        return 6 / np.pi * np.arcsin(r / 2)

    found = metrics.together(table, "x", "y", 0.5, ["z"], n_boot=20).set_index("how")["mean"]
    assert found["within relations"] == pytest.approx(spearman(0.6 / 2), abs=0.02)
    assert found["corrected"] == pytest.approx(found["plain"] / 0.5)
    assert found["given z"] == pytest.approx(0, abs=0.02)
    straight = metrics.together(table.assign(x=z + noise[0]), "x", "y", 0.5, ["w"], n_boot=20)
    means = straight.set_index("how")["mean"]
    assert means["plain"] == pytest.approx(spearman(0.3), abs=0.02)
    assert means["corrected"] == pytest.approx(
        spearman(0.3) / 0.5, abs=0.03
    )  # near Spearman's of 0.6
    assert means["given w"] == pytest.approx(spearman(0.3), abs=0.02)


def test_what_foretells_by_hand():
    """Forty facts of two relations; each measure ranks a known share of the pairs rightly."""
    rows = pd.DataFrame({"m": "m", "fact_id": range(40), "relation": ["r", "s"] * 20, "draw": 0})
    rows["right"] = rows["fact_id"] % 4 < 2  # ten of each relation
    rows["perfect"], rows["logprob"] = rows["right"] * 1.0, 0.0
    rows["relation at best"] = (rows["relation"] == "r") * 1.0
    found = metrics.foretold(
        rows, ["m"], "right", ["perfect", "logprob", "relation at best"], n_boot=20
    )
    table = found.set_index(["measure", "predictor"])
    for measure in ("auc", "auc_within"):
        assert table.loc[(measure, "perfect"), ["mean", "difference", "n"]].tolist() == [1, 0.5, 40]
        assert table.loc[(measure, "relation at best"), "mean"] == 0.5  # half are right in each
    assert metrics.foretold(rows.head(16), ["m"], "right", ["perfect"], n_boot=20).empty


def test_pairs_are_of_one_draw():
    rows = pd.DataFrame({"m": "m", "fact_id": range(40), "relation": ["r", "s"] * 20, "draw": 0})
    rows["right"] = rows["fact_id"] % 4 < 2
    rows["sign"] = rows["right"] * 1.0
    turned = rows.assign(draw=1, right=~rows["right"], sign=rows["right"] * -1.0)
    found = metrics.foretold(
        pd.concat([rows, turned]), ["m"], "right", ["sign"], draw="draw", n_boot=20
    )
    assert found["mean"].tolist() == [1, 1]
    assert found["n"].tolist() == [40, 40]
