"""Part 1 by hand: entropy, the breaking temperature, equations 3 and 4, and the tables of them."""

import math
from itertools import product

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


def test_entropy_by_hand():
    # log10 2 = 0.30103. - (0.75 log2 0.75 + 0.25 log2 0.25) = 0.811278; over log2 4 it is half.
    rows = frame("""
        entropy   probabilities
        0.30103   .5 .5 0 0 0 0 0 0 0 0
        0.811278  .75 .25
        0.405639  .75 .25 0 0
        1         .5 .5
        1         1e-7 1e-7 1e-7
    """)
    for entropy, text in rows.itertuples(index=False):
        logs = [math.log(p) if p else -math.inf for p in map(float, text.split())]
        assert intervals.top_entropy(logs) == pytest.approx(entropy, abs=1e-6)
    assert intervals.top_entropy(CERTAIN) == 0


def log_p(logits, t):
    """log P_t of an answer, [token, vocabulary] with the answer's own tokens first."""
    of_answer = logits[:, 0] / t
    return float(np.sum(of_answer - logsumexp(logits / t, axis=1)))


def curve(logits):
    return np.array([log_p(logits, t) for t in GRID], dtype=np.float32)  # what a model gives


def test_first_break():
    """One half is not below one half; the first drop counts, also if the accuracy comes back."""
    rows = frame("""
        0.2  0.4  0.6  t_b
        1.0  0.9  0.4  0.6
        1.0  0.5  0.5  inf
        1.0  0.4  0.9  0.4
        0.4  1.0  1.0  0.2
        1.0  1.0  1.0  inf
    """)
    accuracy = rows.drop(columns="t_b")
    found = metrics.first_break([0.2, 0.4, 0.6], accuracy)
    assert found.tolist() == rows["t_b"].tolist()


def test_where_no_root_lies_between():
    never = curve(np.array([[0.0, -0.5]]))  # one competitor never wins
    assert metrics.exact_break(GRID, never) == np.inf
    # Not the greedy answer: it gains from heat first.
    second = curve(np.array([[0.0, 1.0, -1.0]]))
    assert second[0] < second[20]
    assert np.isnan(metrics.exact_break(GRID, second))


def test_random_logits_keep_the_promise_of_the_docstring():
    rng = np.random.default_rng(1)
    goal = np.log(0.5)
    errors = []
    for spread, lead, size in product((0.3, 1, 4), (0.3, 3, 15), (3, 50, 4000)):
        logits = rng.normal(0, spread, (rng.integers(1, 6), size))
        logits[:, 0] = logits.max(axis=1) + rng.exponential(lead)
        logs = curve(logits)
        assert np.all(np.diff(logs) <= 1e-5)  # falls, but for rounding
        if logs[0] > goal > logs[-1]:
            exact = brentq(lambda t, z=logits: log_p(z, t) - goal, GRID[0], GRID[-1])
            errors.append(metrics.exact_break(GRID, logs) / exact - 1)
    assert len(errors) > 20
    assert np.abs(errors).max() < 1e-3


def test_frs_by_hand():
    # The third row: 0.5 x 2 - 0.5 / 2 = 0.75, and 1.75 / 2.75.
    rows = frame("""
        h    t_b  d   f      score
        0.0  0.0  1   1      0.6666666667
        1.0  0.0  1   -1     0
        0.5  1.0  1   0.75   0.6363636364
        0.5  1.0  2   0.25   0.5555555556
        0.2  0.6  1   1.155  0.6830427892
        0.0  2.0  50  3      0.8
        1.0  3.0  5   -0.25  0.4285714286
    """)
    given = (rows["h"], rows["t_b"], rows["d"])
    assert metrics.raw_frs(*given) == pytest.approx(rows["f"].to_numpy())
    assert metrics.frs(*given) == pytest.approx(rows["score"].to_numpy())


def test_appendix_b_at_infinity():
    entropy = [0, 0.5, 1]
    assert metrics.raw_frs(entropy, np.inf).tolist() == [np.inf, np.inf, 0]
    assert metrics.frs(entropy, np.inf, unbroken=None).tolist() == [1, 1, 0.5]
    assert metrics.frs(entropy, np.inf).tolist() == [1, 1, 1]  # figure 4: whatever the entropy
    # The equation approaches its limit.
    assert metrics.frs(entropy, 1e9, unbroken=None) == pytest.approx([1, 1, 0.5], abs=1e-8)


FACTS = frame("""
    object
    Nairobi
    8
    Washington
    Jane Austen
""")
FACTS["aliases"] = [[], ["eight"], ["Washington, D.C."], []]


def test_greedy_answers_are_marked():
    texts = [" in Nairobi", " Eight", " Washington DC.", ""]
    tops = [[UNIFORM, CERTAIN], [CERTAIN], [CERTAIN] * 2, []]
    marked = metrics.mark_greedy(FACTS.assign(text=texts, top_logprobs=tops))
    assert_rows(
        marked,
        """
        exact_match  contains  entropy
        False        True      0.5
        True         True      0
        True         True      0
        False        False     NaN
        """,
    )
    nothing = metrics.mark_greedy(FACTS[:0].assign(text="", top_logprobs=""))
    assert nothing[["exact_match", "contains"]].dtypes.eq(bool).all()


def test_samples_are_marked():
    samples = FACTS.iloc[[1, 1, 0]].assign(text=[" 18 legs", " 8", ""])
    samples["logprobs"] = [np.log([0.2, 0.4]), [0.0], []]
    samples["tempered_logprobs"] = [np.log([0.1, 0.9]), [0.0], []]
    assert_rows(
        metrics.mark_samples(samples),
        """
        correct  certainty
        False    0.5
        True     1
        False    NaN
        """,
    )


def test_known_facts_are_drawn_by_hash():
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


def test_who_knows_each_fact():
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
    found = metrics.known_by(marked[::-1], "large").sort_values("fact_id")
    assert found["known_by"].tolist() == table["known_by"].tolist()


def test_sampled_accuracy_and_its_break():
    marked = frame("""
        fact_id  temperature  correct
        u        0.4          1
        u        0.4          0
        u        0.4          0
        u        0.2          1
        v        0.2          1
        v        0.2          0
        v        0.4          1
        v        0.4          0
    """)
    accuracy = metrics.sampled_accuracy(marked.assign(model="toy"))
    assert_rows(
        accuracy,
        """
        fact_id  temperature  accuracy      n
        u        0.4          0.3333333333  3
        u        0.2          1             1
        v        0.2          0.5           2
        v        0.4          0.5           2
        """,
    )
    assert_rows(
        metrics.sampled_breaking(accuracy),
        """
        fact_id  t_b
        u        0.4
        v        inf
        """,
    )


def test_certainty_bins():
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


def test_frs_of_every_fact_and_d():
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
    # w has no breaking temperature. u by hand, above: 1.75 / 2.75 and 1.25 / 2.25.
    published = """
        fact_id  d  frs
        u        1  0.6363636364
        v        1  1
        u        2  0.5555555556
        v        2  1
    """
    assert_rows(metrics.frs_table(known, t_b, ds=[1, 2]), published)
    assert len(metrics.frs_table(known, t_b)) == 2 * 5
    exact = metrics.frs_table(known, t_b, ds=[5], unbroken=None)
    assert exact["frs"].tolist()[1] == 0.5


def scored(scores, types):
    table = pd.DataFrame({"frs": scores, "answer_type": [*types]})
    return table.assign(model="toy", fact_id=[f"fact/{i}" for i in table.index])


def test_type_shares_of_the_extremes():
    # N: facts 4 and 5 among the best, 0 among the worst; L: fact 1 among the worst.
    table = metrics.type_shares(scored([0.1, 0.2, 0.5, 0.6, 0.8, 0.9], "NLLHNN"), 2)
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
    eight = metrics.type_shares(scored(np.arange(8, 0, -1), "N" * 8), 1000)
    assert eight["fact_id"].tolist() == ["fact/7", "fact/6", "fact/1", "fact/0"]
    # Facts without a score are left out.
    table = metrics.type_shares(scored([0.3, math.nan, 0.1, 0.2], "NHLH"), 1000)
    assert table["fact_id"].tolist() == ["fact/2", "fact/0"]


def test_type_shares_do_not_favour_the_end_of_the_alphabet_in_ties():
    # All equal: types must come out near one half, not N all among the worst.
    equal = scored([1.0] * 600, "N" * 300 + "L" * 300)
    table = metrics.type_shares(equal, 200)
    shares = table.groupby("answer_type")["robust"].mean()
    assert shares.between(0.4, 0.6).all()
    other = metrics.type_shares(equal.sample(frac=1, random_state=1), 200)
    assert other["fact_id"].tolist() == table["fact_id"].tolist()


# -- t_b from samples -----------------------------------------------------------------------------


def logistic(t_b, slope):
    return 1 / (1 + (np.array(PAPER) / t_b) ** slope)


def test_a_fit_finds_the_t_b_of_logistic_curves():
    t_b = [0.45, 0.8, 1.1, 1.7]
    curves = map(logistic, t_b, [6, 5, 3, 12])
    n = 2000
    right = [np.round(n * p) for p in curves]
    assert metrics.fitted_break(PAPER, right, n) == pytest.approx(t_b, rel=0.02)


def test_what_another_draw_of_samples_would_change():
    p = logistic(1.0, 6)
    curves = pd.DataFrame({"temperature": PAPER, "logprob": np.log(p)})
    curves.loc[10] = [0.7, math.log(0.4)]  # not on the paper's grid
    curves = curves.assign(model="m", fact_id="a")
    never = curves.assign(model="a", logprob=-0.01)
    spread = metrics.sampling_spread(pd.concat([never, curves]), PAPER, 10, draws=1000)
    beyond, _, scan, fit = spread.to_dict("records")
    assert beyond["mean"] == pytest.approx(2.2)  # one step beyond
    # The scan's by hand: it stops at the i-th temperature with q_i (1 - q_1) ... (1 - q_{i-1}).
    q = binom.cdf(4, 10, p)
    stops = q * np.cumprod([1, *(1 - q[:-1])])
    stops = np.append(stops, 1 - stops.sum())
    t = np.array([*PAPER, 2.2])
    mean = stops @ t
    sd = math.sqrt(stops @ t**2 - mean**2)
    assert scan["mean"] == pytest.approx(mean, abs=0.02)
    assert scan["sd"] == pytest.approx(sd, rel=0.1)
    assert fit["sd"] < 0.6 * scan["sd"]
    assert fit["mean"] == pytest.approx(1.0, abs=0.03)
    # Whatever other model there is.
    alone = metrics.sampling_spread(curves, PAPER, 10, draws=1000)
    assert alone["mean"].tolist() == [scan["mean"], fit["mean"]]


def test_per_token_is_the_root_of_the_probability():
    curves = frame("""
        model  fact_id  temperature  p      root
        m      a        1.0          0.125  0.5
        m      a        2.0          0.001  0.1
        m      b        1.0          0.25   0.5
    """)
    curves["logprob"] = np.log(curves["p"])
    index = pd.MultiIndex.from_tuples([("m", "b"), ("m", "a")], names=metrics.KEY)
    found = metrics.per_token(curves, pd.Series([2, 3], index))
    assert np.exp(found["logprob"]).tolist() == pytest.approx(curves["root"].tolist())
