"""Part 1 by hand: entropy, the breaking temperature, equations 3 and 4, and the tables of them."""

import math

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom

from factrobust import intervals
from factrobust.decoding import metrics
from factrobust.decoding.probe import GRID

UNIFORM = [math.log(0.1)] * 10
CERTAIN = [0.0] + [-math.inf] * 9
PAPER = [round(0.2 * k, 1) for k in range(1, 11)]
LOGITS = list[np.ndarray]  # one array a token of the answer, the answer's token first


@pytest.mark.parametrize(
    ("logs", "entropy"),
    [
        *(([math.log(mass / 10)] * 10, 1) for mass in (1.0, 0.3, 1e-6)),  # whatever their mass
        (CERTAIN, 0),
        ([0.0] + [-1e9] * 9, 0),
        ([math.log(0.5)] * 2 + [-math.inf] * 8, 0.30103),  # - 2 x 0.5 log10 0.5 = log10 2
        # - (0.75 log2 0.75 + 0.25 log2 0.25) = 0.811278 for two; over log2(4) = 2 for four.
        ([math.log(0.75), math.log(0.25)], 0.811278),
        ([math.log(0.75), math.log(0.25), -math.inf, -math.inf], 0.405639),
    ],
)
def test_entropy_by_hand(logs: list[float], entropy: float) -> None:
    assert intervals.top_entropy(logs) == pytest.approx(entropy, abs=1e-6)


def log_p(tokens: LOGITS, t: float) -> float:
    return float(sum(z[0] / t - logsumexp(z / t) for z in tokens))


def curve(tokens: LOGITS) -> np.ndarray:
    return np.array([log_p(tokens, t) for t in GRID], dtype=np.float32)  # what a model gives


@pytest.mark.parametrize(
    ("accuracy", "t_b"),
    [
        ([1.0, 0.9, 0.4], 0.6),
        ([1.0, 0.5, 0.5], np.inf),  # one half is not below one half
        ([1.0, 0.4, 0.9], 0.4),  # the first drop counts, also if the accuracy comes back
        ([0.4, 1.0, 1.0], 0.2),
        ([1.0, 1.0, 1.0], np.inf),
    ],
)
def test_first_break(accuracy: list[float], t_b: float) -> None:
    assert metrics.first_break([0.2, 0.4, 0.6], accuracy) == t_b


def test_where_no_root_lies_between() -> None:
    never = curve([np.array([0.0, -0.5])])  # one competitor never wins
    assert np.all(never >= np.float32(np.log(0.5)))
    assert metrics.crossing(GRID, never) == np.inf
    second = curve([np.array([0.0, 1.0, -1.0])])  # not the greedy answer: it gains from heat first
    assert second[0] < second[20]
    assert np.isnan(metrics.crossing(GRID, second))


def test_random_logits_keep_the_promise_of_the_docstring() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(35):
        tokens = []
        for _ in range(rng.integers(1, 6)):
            z = np.sort(rng.normal(0, rng.uniform(0.3, 4), int(10 ** rng.uniform(0.4, 3.6))))[::-1]
            z[1:] -= rng.exponential(rng.choice([0.3, 3.0, 15.0]))
            tokens.append(z)
        logs = curve(tokens)
        assert np.all(np.diff(logs) <= 1e-5)  # falls, but for rounding
        if np.log(0.5) > log_p(tokens, GRID[-1]) and log_p(tokens, GRID[0]) > np.log(0.5):
            exact = brentq(lambda t, z=tokens: log_p(z, t) - np.log(0.5), GRID[0], GRID[-1])
            errors.append(abs(metrics.crossing(GRID, logs) / exact - 1))
    assert len(errors) > 20
    assert max(errors) < 1e-3


@pytest.mark.parametrize(
    ("h", "t_b", "d", "f", "score"),
    [
        (0.0, 0.0, 1, 1.0, 2 / 3),
        (1.0, 0.0, 1, -1.0, 0.0),
        (0.5, 1.0, 1, 0.75, 1.75 / 2.75),  # 0.5 x 2 - 0.5 / 2
        (0.5, 1.0, 2, 0.25, 1.25 / 2.25),  # 0.25 x 2 - 0.5 / 2
        (0.2, 0.6, 1, 1.155, 2.155 / 3.155),  # 0.8 x 1.6 - 0.2 / 1.6
        (0.0, 2.0, 50, 3.0, 0.8),
        (1.0, 3.0, 5, -0.25, 0.75 / 1.75),
    ],
)
def test_frs_by_hand(h: float, t_b: float, d: float, f: float, score: float) -> None:
    assert float(metrics.raw_frs(h, t_b, d)) == pytest.approx(f)
    assert float(metrics.frs(h, t_b, d)) == pytest.approx(score)


def test_appendix_b_at_infinity() -> None:
    assert metrics.raw_frs([0, 0.5, 1], np.inf).tolist() == [np.inf, np.inf, 0]
    assert metrics.frs([0, 0.5, 1], np.inf, unbroken=None).tolist() == [1, 1, 0.5]
    assert metrics.frs([0, 0.5, 1], np.inf).tolist() == [1, 1, 1]  # figure 4: whatever the entropy
    # The equation approaches its limit.
    assert metrics.frs([0.5, 1], 1e9, unbroken=None) == pytest.approx([1, 0.5], abs=1e-8)


FACTS = frame("""
    object
    Nairobi
    8
    Washington
    Jane Austen
""")
FACTS["aliases"] = [[], ["eight"], ["Washington, D.C."], []]


def test_mark() -> None:
    texts = [" in Nairobi", " Eight", " Washington DC.", ""]
    tops = [[UNIFORM, CERTAIN], [CERTAIN], [CERTAIN] * 2, []]
    marked = metrics.mark_greedy(FACTS.assign(text=texts, top_logprobs=tops))
    assert marked["exact_match"].tolist() == [False, True, True, False]
    assert marked["contains"].tolist() == [True, True, True, False]
    np.testing.assert_allclose(marked["entropy"], [0.5, 0, 0, np.nan], atol=1e-12)
    nothing = metrics.mark_greedy(FACTS[:0].assign(text="", top_logprobs=""))
    assert nothing[["exact_match", "contains"]].dtypes.tolist() == [bool, bool]


def test_select_known_draws_by_hash() -> None:
    # By SHA-256, v (4c94...) comes before w (50e7...), x (2d71...) before y (a1fc...).
    marked = frame("""
        model  fact_id  domain  exact_match
        a      u        g       False
        a      v        g       True
        a      w        g       True
        a      x        h       True
        a      y        h       True
        b      u        g       True
    """)
    marked["token_ids"] = [[1], [1, 2], [1], [1], [1], [1, 2, 3]]
    assert metrics.select_known(marked)["tokens"].tolist() == [2, 1, 1, 1, 3]
    for per_domain, known in ((None, "vwxyu"), (9, "vwxyu"), (1, "vxu")):
        found = metrics.select_known(marked, per_domain)
        assert "".join(found["fact_id"]) == known
        backward = metrics.select_known(marked[::-1], per_domain)
        assert sorted(backward["fact_id"]) == sorted(known)


def test_who_knows_each_fact() -> None:
    table = frame("""
        fact_id  large  mid  small  known_by
        all      1      1    1      the largest and smaller ones
        lost     0      1    0      only smaller ones
        new      1      0    0      only the largest
        none     0      0    0      no model
        two      1      0    1      the largest and smaller ones
    """)
    marked = table.assign(relation="r").drop(columns="known_by")
    marked = marked.melt(["fact_id", "relation"], var_name="model", value_name="exact_match")
    marked = marked.astype({"exact_match": bool})[::-1]
    found = metrics.known_by(marked, "large").sort_values("fact_id")
    assert found["known_by"].tolist() == table["known_by"].tolist()
    other = metrics.known_by(marked, "small").set_index("fact_id")
    assert other.loc["new", "known_by"] == "only smaller ones"


def test_mark_samples() -> None:
    samples = FACTS.iloc[[1, 1, 0]].assign(text=[" 18 legs", " 8", ""])
    samples["logprobs"] = [[math.log(0.2), math.log(0.4)], [0.0], []]
    samples["tempered_logprobs"] = [[math.log(0.1), math.log(0.9)], [0.0], []]
    marked = metrics.mark_samples(samples)
    assert marked["correct"].tolist() == [False, True, False]
    np.testing.assert_allclose(marked["certainty"], [0.5, 1, np.nan])


def test_sampled_accuracy_and_its_break() -> None:
    rows = frame("""
        fact_id  temperature  correct
        u        0.4          1000
        u        0.2          1111
        v        0.2          10
        v        0.4          10
    """)
    rows["correct"] = rows["correct"].astype(str).map(list)
    marked = rows.explode("correct").assign(model="toy").astype({"correct": int})
    accuracy = metrics.sampled_accuracy(marked)
    assert_rows(
        accuracy,
        """
        fact_id  temperature  accuracy  n
        u        0.4          0.25      4
        u        0.2          1         4
        v        0.2          0.5       2
        v        0.4          0.5       2
        """,
    )
    t_b = metrics.sampled_breaking(accuracy).set_index("fact_id")["t_b"]
    assert t_b.to_dict() == {"u": 0.4, "v": np.inf}


def test_certainty_bins() -> None:
    marked = frame("""
        temperature  certainty  correct
        0.2          0.0        False
        0.2          0.0999     False
        0.2          0.1        False
        0.2          1.0        True
        0.2          0.95       False
        0.2          NaN        True
        0.4          1.0000001  True
        0.4          0.9        True
    """)
    assert_rows(
        metrics.certainty_bins(marked, ["temperature"]),
        """
        temperature  bin  correct  count  share  n
        0.2          0.0  False    2      0.4    5
        0.2          0.1  False    1      0.2    5
        0.2          0.9  False    1      0.2    5
        0.2          0.9  True     1      0.2    5
        0.4          0.9  True     2      1.0    2
        """,
    )


def test_frs_table() -> None:
    known = frame("""
        model  fact_id  entropy  domain  answer_type  relation
        toy    u        0.5      g       Location     capital
        toy    v        1.0      g       Location     capital
        toy    w        0.1      g       Location     capital
    """)
    t_b = frame("""
        model  fact_id  t_b
        toy    v        inf
        toy    u        1.0
    """)
    scored = metrics.frs_table(known, t_b)
    assert len(scored) == 2 * 5  # w has no breaking temperature
    cells = scored.set_index(["fact_id", "d"])["frs"]
    for d in (1, 2, 5):
        f = 0.5**d * 2 - 0.25
        assert cells["u", d] == pytest.approx((f + 1) / (f + 2))
    assert cells["v"].tolist() == [1] * 5
    assert metrics.frs_table(known, t_b, ds=[1])["d"].tolist() == [1, 1]
    exact = metrics.frs_table(known, t_b, unbroken=None).set_index(["fact_id", "d"])["frs"]
    assert exact["v"].tolist() == [0.5] * 5


def scored(scores: str, types: str) -> pd.DataFrame:
    table = pd.DataFrame({"frs": [float(x) for x in scores.split()], "answer_type": [*types]})
    return table.assign(model="toy", fact_id=[f"fact/{i}" for i in table.index])


def test_type_shares_of_the_extremes() -> None:
    # N: facts 4 and 5 among the best, 0 among the worst; L: fact 1 among the worst.
    table = metrics.type_shares(scored("0.1 0.2 0.5 0.6 0.8 0.9", "NLLHNN"), 2)
    assert_rows(
        table.sort_values("fact_id"),
        """
        fact_id  answer_type  robust
        fact/0   N            False
        fact/1   L            False
        fact/4   N            True
        fact/5   N            True
        """,
    )
    # No more than a third of the facts each, 2 of 8, so that the middle stays out.
    eight = metrics.type_shares(scored("0.8 0.7 0.6 0.5 0.4 0.3 0.2 0.1", "N" * 8), 1000)
    assert eight["fact_id"].tolist() == ["fact/7", "fact/6", "fact/1", "fact/0"]
    # Facts without a score are left out.
    table = metrics.type_shares(scored("0.3 nan 0.1 0.2", "NHLH"), 1000)
    assert table["fact_id"].tolist() == ["fact/2", "fact/0"]


def test_type_shares_do_not_favour_the_end_of_the_alphabet_in_ties() -> None:
    # All equal: types must come out near one half, not N all among the worst.
    equal = scored("1 " * 600, "N" * 300 + "L" * 300)
    table = metrics.type_shares(equal, 200)
    shares = table.groupby("answer_type")["robust"].mean()
    assert shares.between(0.4, 0.6).all()
    other = metrics.type_shares(equal.sample(frac=1, random_state=1), 200)
    assert other["fact_id"].tolist() == table["fact_id"].tolist()


# -- t_b from samples -----------------------------------------------------------------------------


def logistic(t_b: float, slope: float) -> np.ndarray:
    return 1 / (1 + (np.array(PAPER) / t_b) ** slope)


@pytest.mark.parametrize(("t_b", "slope"), [(0.45, 6), (1.1, 3), (1.7, 12)])
def test_a_fit_finds_the_t_b_of_a_logistic_curve(t_b: float, slope: float) -> None:
    n = 2000
    right = np.round(n * logistic(t_b, slope))
    assert metrics.fitted_break(PAPER, right, n) == pytest.approx(t_b, rel=0.02)
    both = metrics.fitted_break(PAPER, [right, np.round(n * logistic(0.8, 5))], n)
    assert both == pytest.approx([t_b, 0.8], rel=0.02)


def test_what_another_draw_of_samples_would_change() -> None:
    p = logistic(1.0, 6)
    rows = [("m", "a", t, math.log(x)) for t, x in zip(PAPER, p, strict=True)]
    rows += [("m", "a", 0.7, math.log(0.4))]  # not on the paper's grid
    curves = pd.DataFrame(rows, columns=["model", "fact_id", "temperature", "logprob"])
    found = metrics.sampling_spread(curves, PAPER, 10, draws=1000)
    found = found.set_index("estimator")
    # The scan's by hand: it stops at the i-th temperature with q_i (1 - q_1) ... (1 - q_{i-1}).
    q = binom.cdf(4, 10, p)
    stops = q * np.cumprod([1, *(1 - q[:-1])])
    t = np.array([*PAPER, 2.2])
    stops = np.append(stops, 1 - stops.sum())
    mean = stops @ t
    assert found.loc["scan", "mean"] == pytest.approx(mean, abs=0.02)
    assert found.loc["scan", "sd"] == pytest.approx(math.sqrt(stops @ t**2 - mean**2), rel=0.1)
    assert found.loc["fit", "sd"] < 0.6 * found.loc["scan", "sd"]
    assert found.loc["fit", "mean"] == pytest.approx(1.0, abs=0.03)
    two = pd.concat([curves.assign(model="a", logprob=-0.1), curves])
    beside = metrics.sampling_spread(two, PAPER, 10, draws=1000).query("model == 'm'")
    assert beside["mean"].tolist() == found["mean"].tolist()  # whatever other model there is
    many = metrics.sampling_spread(curves, PAPER, 90, draws=300).set_index("estimator")
    assert many.loc["fit", "sd"] == pytest.approx(found.loc["fit", "sd"] / 3, rel=0.25)


def test_per_token_is_the_root_of_the_probability() -> None:
    curves = pd.DataFrame({"model": "m", "fact_id": list("aab"), "temperature": [1.0, 2.0, 1.0]})
    curves["logprob"] = np.log([0.125, 0.001, 0.25])
    index = pd.MultiIndex.from_tuples([("m", "b"), ("m", "a")], names=metrics.KEY)
    found = metrics.per_token(curves, pd.Series([2, 3], index))
    assert np.exp(found["logprob"]).tolist() == pytest.approx([0.5, 0.1, 0.5])
