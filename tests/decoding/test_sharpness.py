"""The sharpness dial: what it says of a sharpened model is what that model says itself."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from numpy.testing import assert_allclose
from scipy.special import log_softmax
from toys import chances

from factrobust.decoding import metrics, probe, sharpness

# As in tests/decoding/test_probe.py: one rival token, four, and an answer of two tokens.
TABLE = chances("""
    _Egypt  _Cairo 0.7  _Giza 0.1  _Suez 0.1  _Luxor 0.1
    _Kenya  _Nairobi 0.6  _Mombasa 0.1  _Kisumu 0.1  _Nakuru 0.1  _Lamu 0.1
    _Peru   _Li 0.8  _Cu 0.2
    _Li     ma 0.9  ga 0.05  on 0.05
""")
FACTS = frame("""
    fact_id  object
    Egypt    Cairo
    Kenya    Nairobi
    Peru     Lima
""")


def times(s):
    """The table of a model with all logits times s: probabilities to the power of s, normalised."""
    table = {}
    for last, row in TABLE.items():
        powers = {word: p**s for word, p in row.items()}
        total = sum(powers.values())
        table[last] = {word: p / total for word, p in powers.items()}
    return table


def known(model):
    names = FACTS["fact_id"]
    facts = FACTS.assign(
        subject=names,
        relation="capital",
        aliases=[[] for _ in names],
        answer_type="Location",
        domain="geography",
        question="Where is " + names + "?",
        prefix="To " + names,
    )
    answers = metrics.select_known(metrics.mark_greedy(probe.greedy_answers(model, facts)))
    return answers.merge(metrics.exact_breaking(probe.answer_curves(answers)))


@pytest.fixture(scope="module")
def plain(toy_model):
    return known(toy_model(TABLE))


@pytest.mark.parametrize("s", [0.7, 2.0, 3.5])
def test_a_sharpened_model_is_what_the_dial_says(toy_model, plain, s):
    sharp = toy_model(times(s))
    made = known(sharp)
    computed = sharpness.sharpened(plain, s)
    assert made["text"].tolist() == computed["text"].tolist()  # the facts that it knows
    assert_allclose(computed["entropy"], made["entropy"], atol=1e-6)
    assert_allclose(computed["t_b"], made["t_b"], rtol=2e-3)
    grid = metrics.grid_breaking(probe.answer_curves(made), probe.TEMPERATURES)["t_b"]
    assert computed["grid_t_b"].tolist() == grid.tolist()
    assert_allclose(computed["frs"], metrics.frs(made["entropy"], grid), atol=1e-6)
    curves = probe.answer_curves(plain)
    for t in (0.2, 1.3, 2.0):
        hot = np.exp(probe.truncated_curves(sharp, made, [t])["logprob"])
        found = sharpness.probability(curves, t / s)["toy"]
        assert_allclose(found[made["fact_id"]], hot, atol=2e-3)


def test_the_entropy_at_s_1_is_the_published_one(plain):
    positions = sharpness.positions(plain["top_logprobs"])
    assert_allclose(sharpness.entropies(positions), plain["entropy"], atol=1e-12)
    # Peru by hand at s = 2: 0.64 and 0.04 of the first token, 0.81 and twice 0.0025 of the second.
    first = np.array([0.64, 0.04]) / 0.68
    second = np.array([0.81, 0.0025, 0.0025]) / 0.815
    by_hand = np.mean([-(p * np.log10(p)).sum() for p in (first, second)])
    at_two = pd.Series(sharpness.entropies(positions, 2), plain["fact_id"])
    assert at_two["Peru"] == pytest.approx(by_hand)


def test_the_papers_t_b_is_the_next_of_its_temperatures():
    assert sharpness.SCAN.tolist() == [*probe.TEMPERATURES]
    found = sharpness.on_grid([0.1, 0.2, 0.3999, 0.4, 1.99, 2.0, 7.0, np.inf])
    assert found.tolist() == [0.2, 0.4, 0.4, 0.6, 2.0, np.inf, np.inf, np.inf]


def held(text):
    """Known answers with t_b, of one token unless the text says otherwise."""
    table = frame(text)
    logs = log_softmax([5.0, *[1.0] * 9])
    table["top_logprobs"] = [[logs.tolist()]] * len(table)
    usual = {"tokens": 1, "domain": "d", "relation": "r"}
    return table.assign(**{name: usual[name] for name in usual if name not in table})


def test_on_the_dial_all_domains_weigh_alike():
    rows = held("""
        model  fact_id  t_b  domain
        m      a        0.1  x
        m      b        9.0  y
        m      c        9.0  y
    """)
    [entropy, *_] = sharpness.entropies(sharpness.positions(rows["top_logprobs"]))
    found = sharpness.dial(rows, [1, 30], [1, 5]).set_index(["d", "s"])["frs"]
    for d in (1, 5):
        broken = float(metrics.frs(entropy, 0.2, d))
        assert found[d, 1] == pytest.approx((broken + 1) / 2)  # and two thirds of the facts hold
        assert found[d, 30] == pytest.approx(1)


def test_models_stand_in_their_order():
    rows = held("""
        model  fact_id  t_b
        z      a        1.0
        m      a        1.0
        z      b        1.0
        other  a        1.0
    """)
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
    dialled = frame("""
        model  d  s    frs
        m      1  0.5  0.06
        m      1  1.0  0.11
        m      1  2.0  0.21
        m      1  4.0  0.41
        m      2  0.5  0.07
        m      2  1.0  0.12
        m      2  2.0  0.22
        m      2  4.0  0.42
    """)
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
    """A model beside itself, sharpened: at one median they are the same."""
    plain = held("""
        model  fact_id  t_b
        m      f0       0.31
        m      f1       0.52
        m      f2       0.77
        m      f3       0.94
        m      f4       1.23
    """)
    sharp = sharpness.sharpened(plain, 3).assign(model="m3")
    sharp["top_logprobs"] = [[(3 * np.array(at)).tolist()] for [at] in plain["top_logprobs"]]
    both = pd.concat([plain, sharp], ignore_index=True)
    equal = sharpness.to_one_median(both, goal=0.7)
    assert_allclose(equal.groupby("model")["t_b"].median(), 0.7)
    wide = equal.pivot(index="fact_id", columns="model", values="frs")
    assert_allclose(wide["m"], wide["m3"], atol=1e-9)
    assert_allclose(equal.groupby("model")["s"].first(), [0.7 / 0.77, 0.7 / 2.31])
    unasked = sharpness.to_one_median(both)
    assert_allclose(unasked.groupby("model")["t_b"].median(), 0.9)


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
    a = held("""
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
    b = a[1:].assign(model="b", t_b=2 * a["t_b"])
    both = pd.concat([a, b], ignore_index=True)
    found = sharpness.model_pairs(both, "relative", sharpness.relative)
    assert found["first"].eq("a").all()
    assert found["second"].eq("b").all()
    assert len(found) == 8
    # The medians are those of the eight shared facts, so that the sharper twin is no firmer.
    assert_allclose(found["x"], found["y"])
    turned = pd.concat([b, a], ignore_index=True)
    as_they_are = sharpness.model_pairs(turned, "t_b", lambda rows: rows)
    assert as_they_are["first"].eq("b").all()
    assert_allclose(as_they_are["x"], 2 * as_they_are["y"])
    alone = sharpness.model_pairs(a, "relative", sharpness.relative)
    assert alone.empty
    assert list(alone) == list(found)


def test_split_halves_tell_a_property_of_relations_from_luck():
    rng = np.random.default_rng(3)
    numbers = np.arange(480)
    rows = pd.DataFrame({"model": "m", "fact_id": numbers, "relation": numbers // 12})
    rows["luck"] = rng.normal(size=480)
    rows["both"] = rows["luck"] + rng.normal(size=40)[rows["relation"]]
    [luck] = sharpness.halves(rows, "luck").to_dict("records")
    [both] = sharpness.halves(rows, "both").to_dict("records")
    assert (both["relations"], both["n"]) == (40, 480)
    assert abs(luck["r"]) < 0.35
    # A half's mean has a variance of 1 between relations and 1 / 6 of luck: r is near 6 / 7.
    assert both["r"] == pytest.approx(6 / 7, abs=0.08)
    assert both["reliability"] == pytest.approx(2 * both["r"] / (1 + both["r"]))
    few = rows.groupby("relation").head(5)
    assert sharpness.halves(few, "both")["n"].tolist() == [0]
