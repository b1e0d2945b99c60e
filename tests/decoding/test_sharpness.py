"""The sharpness dial: what it says of a sharpened model is what that model says itself."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from scipy.special import log_softmax

from factrobust.decoding import metrics, probe, sharpness

# As in tests/decoding/test_probe.py: one rival token, four, and an answer of two tokens.
TABLE = {
    " Egypt": {
        " Cairo": 0.7,
        " Giza": 0.1,
        " Suez": 0.1,
        " Luxor": 0.1,
    },
    " Kenya": {
        " Nairobi": 0.6,
        " Mombasa": 0.1,
        " Kisumu": 0.1,
        " Nakuru": 0.1,
        " Lamu": 0.1,
    },
    " Peru": {" Li": 0.8, " Cu": 0.2},
    " Li": {"ma": 0.9, "ga": 0.05, "on": 0.05},
}
OBJECTS = {"Egypt": "Cairo", "Kenya": "Nairobi", "Peru": "Lima"}


def times(s):
    """The table of a model with all logits times s: probabilities to the power of s, normalised."""
    powers = {last: {w: p**s for w, p in row.items()} for last, row in TABLE.items()}
    return {
        last: {w: p / sum(row.values()) for w, p in row.items()} for last, row in powers.items()
    }


def known(model):
    names = pd.Series([*OBJECTS])
    facts = pd.DataFrame({"fact_id": names, "subject": names, "object": names.map(OBJECTS)})
    facts = facts.assign(
        relation="capital",
        aliases=[[] for _ in names],
        answer_type="Location",
        domain="geography",
        question="Where is " + names + "?",
        prefix="To " + names,
    )
    answers = metrics.select_known(metrics.mark_greedy(probe.greedy(model, facts)))
    return answers.merge(metrics.exact_breaking(probe.curves(answers)))


@pytest.mark.parametrize("s", [0.7, 2.0, 3.5])
def test_a_sharpened_model_is_what_the_dial_says(toy_model, s):
    made = known(toy_model(times(s)))
    said = sharpness.sharpened(known(toy_model(TABLE)), s)
    assert made["text"].tolist() == said["text"].tolist()  # the facts that it knows
    np.testing.assert_allclose(said["entropy"], made["entropy"], atol=1e-6)
    np.testing.assert_allclose(said["t_b"], made["t_b"], rtol=2e-3)
    grid = metrics.grid_breaking(probe.curves(made), probe.TEMPERATURES)["t_b"]
    assert said["grid_t_b"].tolist() == grid.tolist()
    by_hand = metrics.frs(made["entropy"], grid)
    np.testing.assert_allclose(said["frs"], by_hand, atol=1e-6)
    curves = probe.curves(known(toy_model(TABLE)))
    for t in (0.2, 1.3, 2.0):
        hot = np.exp(probe.tempered(toy_model(times(s)), made, [t])["logprob"])
        found = sharpness.probability(curves, t / s)[[("toy", fact) for fact in made["fact_id"]]]
        np.testing.assert_allclose(found, hot, atol=2e-3)


def test_the_entropy_at_s_1_is_the_published_one(toy_model):
    rows = known(toy_model(TABLE))
    found = sharpness.entropies(sharpness.positions(rows["top_logprobs"]))
    np.testing.assert_allclose(found, rows["entropy"], atol=1e-12)
    # Peru by hand at s = 2: 0.64 and 0.04 of the first token, 0.81 and twice 0.0025 of the second.
    first = np.array([0.64, 0.04]) / 0.68
    second = np.array([0.81, 0.0025, 0.0025]) / 0.815
    by_hand = np.mean([-(p * np.log10(p)).sum() for p in (first, second)])
    at_two = sharpness.entropies(sharpness.positions(rows["top_logprobs"]), 2)
    assert at_two[rows["fact_id"].tolist().index("Peru")] == pytest.approx(by_hand)


def test_the_papers_t_b_is_the_next_of_its_temperatures():
    assert sharpness.SCAN.tolist() == [*probe.TEMPERATURES]
    found = sharpness.on_grid([0.1, 0.2, 0.3999, 0.4, 1.99, 2.0, 7.0, np.inf])
    assert found.tolist() == [0.2, 0.4, 0.4, 0.6, 2.0, np.inf, np.inf, np.inf]


def held(text: str, **columns: object) -> pd.DataFrame:
    """Known answers of one token with t_b: columns model, fact_id, t_b, and others."""
    table = frame(text)
    logs = log_softmax([5.0, *[1.0] * 9])
    top = pd.Series([[logs.tolist()]] * len(table))
    usual = {"tokens": 1, "domain": "d", "relation": "r", "top_logprobs": top}
    return table.assign(**{k: v for k, v in usual.items() if k not in table} | columns)


def test_on_the_dial_all_domains_weigh_alike():
    rows = held("""
        model  fact_id  t_b  domain
        m      a        0.1  x
        m      b        9.0  y
        m      c        9.0  y
    """)
    [entropy] = {*sharpness.entropies(sharpness.positions(rows["top_logprobs"])).round(12)}
    found = sharpness.dial(rows, [1, 30], [1, 5]).set_index(["d", "s"])["frs"]
    for d in (1, 5):
        broken = float(metrics.frs(entropy, 0.2, d))
        assert found[d, 1] == pytest.approx((broken + 1) / 2)  # and two thirds of the facts hold
        assert found[d, 30] == pytest.approx(1)


BOTH = """
    model  fact_id  t_b
    z      a        1.0
    m      a        1.0
    z      b        1.0
    other  a        1.0
"""


def test_models_stand_in_their_order():
    rows = held(BOTH)
    assert sharpness.dial(rows, [1], [1])["model"].tolist() == ["z", "m", "other"]
    # Shared facts are those that all of the named ones know.
    assert_rows(
        sharpness.shared(rows, ["m", "z"]),
        """
        model  fact_id
        m      a
        z      a
        """,
    )


def test_a_column_of_table_1_is_found_on_the_dial():
    dialled = pd.DataFrame(
        [("m", d, s, s / 10 + d / 100) for d in (1, 2) for s in (0.5, 1.0, 2.0, 4.0)],
        columns=["model", "d", "s", "frs"],
    )
    # A is s = 4; B misses d = 2 at s = 2 by 0.04. s = 1 has 0.11, 0.12: A is 0.30 above both; B 0.10
    # and 0.14, so a constant of 0.12 misses by 0.02.
    theirs = frame("""
        model  d  frs
        A      1  0.41
        A      2  0.42
        B      1  0.21
        B      2  0.26
    """)
    assert_rows(
        sharpness.on_the_dial(dialled, theirs).sort_values("column"),
        """
        column  s  miss  miss of a shift
        A       4  0     0
        B       2  0.04  0.02
        """,
    )


def test_models_brought_to_one_median_differ_by_no_sharpness():
    """A model beside itself, sharpened: as published they differ, at one median they do not."""
    plain = held("""
        model  fact_id  t_b
        m      f0       0.31
        m      f1       0.52
        m      f2       0.77
        m      f3       0.94
        m      f4       1.23
    """)
    sharp = sharpness.sharpened(plain, 3).assign(model="m3")
    logs = [[(3 * np.array(at)).tolist() for at in answer] for answer in sharp["top_logprobs"]]
    both = pd.concat([plain, sharp.assign(top_logprobs=pd.Series(logs))], ignore_index=True)
    published = sharpness.sharpened(both, 1).groupby("model")["frs"].mean()
    assert published["m3"] > published["m"] + 0.1
    equal = sharpness.to_one_median(both, goal=0.7)
    assert equal.groupby("model")["t_b"].median().tolist() == pytest.approx([0.7, 0.7])
    wide = equal.pivot(index="fact_id", columns="model", values="frs")
    np.testing.assert_allclose(wide["m"], wide["m3"], atol=1e-9)
    assert equal.groupby("model")["s"].first().tolist() == pytest.approx([0.7 / 0.77, 0.7 / 2.31])


def test_relative_by_hand_and_whatever_the_sharpness():
    """To the median of answers as long, if there are three of them, and they break."""
    table = held("""
        model  fact_id  t_b  tokens
        m      s0       0.5  1
        m      s1       1.0  1
        m      s2       4.0  1
        m      l0       0.1  5
        m      l1       0.2  5
        m      l2       0.8  5
        m      odd      1.0  2
        m      never    inf  1
    """)
    expected = """
        fact_id  relative
        s0       -1
        s1       0
        s2       2
        l0       -1
        l1       0
        l2       2
    """
    assert_rows(sharpness.relative(table, least=3), expected)
    assert_rows(sharpness.relative(table.assign(t_b=3.7 * table["t_b"]), least=3), expected)


def test_pairs_of_models_on_the_facts_that_both_know():
    own = held("""
        model  fact_id  t_b
        a      f0       0.3
        a      f1       0.45
        a      f2       0.6
        a      f3       0.75
        a      f4       0.9
        a      f5       1.05
        a      f6       1.2
        a      f7       1.35
        a      f8       1.5
    """)
    other = own[1:].assign(model="b", t_b=2 * own["t_b"])
    found = sharpness.pairs(
        pd.concat([own, other], ignore_index=True), "relative", sharpness.relative
    )
    assert found[["first", "second"]].drop_duplicates().to_numpy().tolist() == [["a", "b"]]
    assert len(found) == 8
    # The medians are those of the eight shared facts, so that the sharper twin is no firmer.
    assert found["x"].tolist() == pytest.approx(found["y"].tolist())
    as_they_are = sharpness.pairs(
        pd.concat([other, own], ignore_index=True), "t_b", lambda rows: rows
    )
    assert as_they_are["first"].unique().tolist() == ["b"]
    assert as_they_are["x"].tolist() == pytest.approx((2 * as_they_are["y"]).tolist())
    alone = sharpness.pairs(own, "relative", sharpness.relative)
    assert alone.empty
    assert list(alone) == list(found)


def test_split_halves_tell_a_property_of_relations_from_luck():
    rng = np.random.default_rng(3)
    rows = pd.DataFrame({"model": "m", "fact_id": [f"f{i:03}" for i in range(480)]})
    rows["relation"] = [f"r{i // 12}" for i in range(480)]
    of_relation = np.repeat(rng.normal(size=40), 12)
    rows["luck"] = rng.normal(size=480)
    rows["both"] = of_relation + rows["luck"]
    luck, both = (sharpness.halves(rows, name).iloc[0] for name in ("luck", "both"))
    assert both["relations"] == 40
    assert both["n"] == 480
    assert abs(luck["r"]) < 0.35
    # A half's mean has a variance of 1 between relations and 1 / 6 of luck: r is near 6 / 7.
    assert both["r"] == pytest.approx(6 / 7, abs=0.08)
    assert both["reliability"] == pytest.approx(2 * both["r"] / (1 + both["r"]))
    few = rows.groupby("relation").head(5)
    assert sharpness.halves(few, "both").iloc[0]["n"] == 0
