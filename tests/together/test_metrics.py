"""Part 6's numbers by hand, and on simulated data whose correlations are known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.together import metrics
from factrobust.together import spine as questions

KEY = metrics.KEY


def test_facts_that_all_models_know_come_first():
    rows = [("m", "a"), ("m", "b"), ("m", "c"), ("n", "b"), ("n", "d")]
    table = pd.DataFrame(rows, columns=KEY).assign(right=[True, True, True, True, False])
    one = metrics.most_shared(table, 1)
    assert one[KEY].values.tolist() == [["m", "b"], ["n", "b"]]
    more = metrics.most_shared(table, 2)
    assert set(one.index) <= set(more.index)  # a larger spine asks nothing again
    assert len(metrics.most_shared(table, 9)) == 4  # what is wrong is never taken


def spine():
    """Two facts of one model: tokens of log P -0.1 and -0.3, and of -0.2."""
    known = pd.DataFrame({"model": "m", "fact_id": ["a", "b"], "relation": "r", "domain": "d"})
    known = known.assign(text=["Lima", "Oslo"], logprob=[-0.4, -0.2], entropy=[0.2, 0.1])
    known = known.assign(
        logprobs=[[-0.1, -0.3], [-0.2]], t_b=[1.0, questions.HIGHEST], frs=[0.6, 1.0]
    )
    rows = [("a", "wording", 1, "Lima", True), ("a", "wording", 2, "Rome", False),
            ("b", "wording", 1, "Oslo", True), ("b", "wording", 2, "Oslo", True),
            ("a", "context", "false", "Rome", False), ("a", "context", "irrelevant", "Lima", True),
            ("a", "context", "true", "Lima", True)]  # fmt: skip
    changed = pd.DataFrame(rows, columns=["fact_id", "way", "form", "text", "right"])
    samples = pd.DataFrame({"model": "m", "fact_id": list("aaaabbbb"), "sample": [0, 1, 2, 3] * 2})
    samples["correct"] = [True, False, True, True, True, True, False, False]
    return known, changed.assign(model="m"), samples.assign(text="x")


def test_measures_by_hand():
    table = metrics.measures(*spine(), lambda groups: [len({*texts}) - 1.5 for texts in groups])
    a, b = table.to_dict("records")
    assert [a["short"], a["logprob"], a["mean_logprob"]] == pytest.approx([-2, -0.4, -0.2])
    assert (a["minus_h"], a["t_b"], b["t_b"]) == (0.8, 1, questions.HIGHEST)
    assert (a["heat"], b["heat"]) == (0.75, 0.5)
    assert (a["wordings"], b["wordings"], a["contexts"]) == (0.5, 1, 0.5)
    assert (a["true"], a["irrelevant"], a["false"]) == (1, 1, 0)
    assert np.isnan(b["contexts"])  # nothing could be stated
    assert (a["scons"], b["scons"], a["cert"]) == (0.5, 0, 0)  # clipped at 0


def test_two_forms_of_each_measure():
    known, changed, samples = spine()
    own = {"logprob": -0.5, "logprobs": [[-0.5]] * len(changed), "entropy": 0.3, "t_b": 0.7}
    halves = metrics.second_forms(known, changed.assign(**own), samples).set_index(
        ["measure", "fact_id"]
    )
    assert halves.loc[("logprob", "a"), ["one", "other"]].tolist() == [-0.4, -0.5]
    assert halves.loc[("t_b", "b"), ["one", "other"]].tolist() == [questions.HIGHEST, 0.7]
    assert halves.loc[("wordings", "a"), ["one", "other"]].tolist() == [0, 1]  # form 2, and form 1
    changed.loc[changed["text"] == "Oslo", "text"] = (
        "Oslo is it"  # another answer has no second form
    )
    other = metrics.second_forms(known, changed.assign(**own), samples)
    assert set(other.loc[other["measure"] == "logprob", "fact_id"]) == {"a"}
    assert halves.loc[("cert", "b"), ["one", "other"]].tolist() == [1, 0]


def test_reliability_by_hand():
    halves = pd.DataFrame({"one": [1, 2, 3, 4], "other": [1, 2, 4, 3]})
    r = 1 - 6 * 2 / (4 * 15)  # Spearman's, of four ranks with two apart by 1
    assert metrics.reliability(halves) == pytest.approx(2 * r / (1 + r))
    assert metrics.reliability(halves.assign(other=[4, 3, 2, 1])) == 0
    assert np.isnan(metrics.reliability(halves.assign(other=1)))
    assert np.isnan(metrics.reliability(halves.head(2)))


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


def test_odds_are_of_a_fit_on_other_relations():
    rng = np.random.default_rng(2)
    x = rng.normal(size=400)
    rows = pd.DataFrame({"x": x, "relation": [f"r{i % 20}" for i in range(400)]})
    rows["y"] = rng.random(400) < 1 / (1 + np.exp(-2 * x))
    odds = metrics.held_out_odds(rows, "y", ["x"])
    assert np.corrcoef(odds, x)[0, 1] > 0.9
    flipped = rows.assign(y=np.where(rows["relation"] == "r3", ~rows["y"], rows["y"]))
    here = (rows["relation"] == "r3").to_numpy()
    assert metrics.held_out_odds(flipped, "y", ["x"])[here] == pytest.approx(odds[here])
