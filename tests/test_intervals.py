"""Bootstrap intervals against closed forms, SciPy, and the degenerate cases."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from frames import assert_rows, frame
from scipy import stats

from factrobust import intervals
from factrobust.intervals import bootstrap_correlation, bootstrap_mean, interval_table

RNG = np.random.default_rng(20)
NAN = np.nan
# Of 5, 10 or 40 trials without a success, the upper bound p has (1 - p)^n = 0.025.
NONE_OF = {n: pytest.approx(1 - 0.025 ** (1 / n)) for n in (5, 10, 40)}


def approx(*numbers):
    return pytest.approx(numbers, nan_ok=True)


def test_zeros_and_ones_follow_the_binomial_distribution():
    # A resampled count of ones is Binomial(n, share of ones), exactly.
    interval = bootstrap_mean([1] * 30 + [0] * 70, n_boot=20_000)
    assert interval.mean == 0.3
    assert interval.n == 100
    expected = stats.binom.ppf([0.025, 0.975], 100, 0.3) / 100
    assert interval[1:3] == pytest.approx(expected, abs=0.0101)


def test_intervals_cover_the_truth_as_often_as_they_say():
    # 200 data sets of 60 facts with 4 similar rows each. Resampled rows would have half the width,
    # and cover 67%.
    rng = np.random.default_rng(1)
    facts = np.repeat(np.arange(60), 4)
    covered = 0
    for seed in range(200):
        values = np.repeat(rng.normal(size=60), 4)
        values += rng.normal(scale=0.1, size=240)
        found = bootstrap_mean(values, facts, n_boot=200, seed=seed)
        covered += found.low <= 0 <= found.high
    assert 0.89 < covered / 200 < 0.98  # 95% - 2% of the bootstrap itself, +- 3 s.e.


def test_mean_is_over_rows_of_the_groups_drawn():
    # Group a holds one row of 0, group b three rows of 1. The mean over rows is 0.75; the resamples
    # aa, ab or ba, bb give 0, 0.75, 1 with shares 1/4, 1/2, 1/4.
    assert bootstrap_mean([0, 1, 1, 1], [*"abbb"]) == (0.75, 0, 1, 2)


def test_row_order_does_not_matter_and_the_seed_does():
    x, y = RNG.normal(size=(2, 90))
    groups = np.repeat([f"f{i}" for i in range(30)], 3)
    order = RNG.permutation(90)
    other_x, other_y, by = x[order], y[order], groups[order]
    assert bootstrap_mean(x) == bootstrap_mean(other_x) != bootstrap_mean(other_x, seed=1)
    assert bootstrap_mean(x, groups) == bootstrap_mean(other_x, by)
    found = bootstrap_correlation(x, y, groups)
    assert found == bootstrap_correlation(other_x, other_y, by)


@pytest.mark.parametrize(
    ("values", "groups", "expected"),
    [
        ([0.1] * 10, None, (0.1, 0.1, 0.1, 10)),
        ([0.5] * 40, None, (0.5, 0.5, 0.5, 40)),
        ([], None, (NAN, NAN, NAN, 0)),
        ([], [], (NAN, NAN, NAN, 0)),
        ([0.2, 0.4], [*"aa"], (0.3, NAN, NAN, 1)),
        ([True, False], None, (0.5, 0, 1, 2)),
        ([0] * 40, None, (0, 0, 1 - 0.025 ** (1 / 40), 40)),  # exact, see NONE_OF
        ([1.0] * 40, [*"abcdefghij"] * 4, (1, 0.025 ** (1 / 10), 1, 10)),  # groups are trials
    ],
)
def test_degenerate_cases(values, groups, expected):
    assert bootstrap_mean(values, groups) == approx(*expected)


@pytest.mark.parametrize(("values", "n"), [([1, NAN, np.inf], 2), ([1, None], 1)])
def test_what_is_missing_or_infinite_is_refused(values, n):
    with pytest.raises(ValueError, match=f"{n} values are missing or infinite"):
        bootstrap_mean(values)


def test_correlation_is_pearson_with_fishers_interval():
    x = RNG.normal(size=300)
    y = 0.6 * x + 0.8 * RNG.normal(size=300) + 1e6  # an offset that must not cost digits
    ours = bootstrap_correlation(x, y, n_boot=10_000)
    pearson = stats.pearsonr(x, y)
    assert ours.mean == pytest.approx(pearson.statistic, abs=1e-9)
    assert ours[1:3] == pytest.approx(pearson.confidence_interval(), abs=0.025)
    assert bootstrap_correlation(x, -2 * x) == approx(-1, -1, -1, 300)
    assert bootstrap_correlation([0.1] * 5, range(5)) == approx(NAN, NAN, NAN, 5)
    # Resamples that happen to be constant are left out, so the bounds stay numbers.
    assert np.isfinite(bootstrap_correlation([0, 0, 0, 1], [1, 2, 3, 4])).all()


def test_whole_groups_are_drawn_and_weights_are_repetitions():
    x = RNG.normal(size=12)
    y = x + RNG.normal(size=12)
    groups = [*"abc"] * 4
    seen = []

    def slow_pearson(weights, x, y):
        seen.extend(weights.astype(int))
        found = []
        for times in weights.astype(int):
            found.append(stats.pearsonr(np.repeat(x, times), np.repeat(y, times)).statistic)
        return np.array(found)

    slow = intervals.bootstrap_statistic(slow_pearson, [x, y], groups, n_boot=200)
    assert slow == pytest.approx(bootstrap_correlation(x, y, groups, n_boot=200))
    assert len(seen) == 201  # the estimate itself and the resamples
    for weights in seen:
        assert weights.sum() == 12
        assert (weights.reshape(3, 4) == weights[::4, None]).all()


def test_a_paired_difference_is_that_of_the_same_facts():
    # Each differs by one half: the interval is a point, though those of a and b are wide.
    b = pd.Series(range(10), index=[*"abcdefghij"])
    a = b + 0.5
    assert intervals.paired_difference(a, b[::-1]) == (0.5, 0.5, 0.5, 10)
    with pytest.raises(ValueError, match="2 values are missing"):
        intervals.paired_difference(a, b.rename({"f": "other"}))
    # If none differs, a difference may be as rare in either direction.
    same = pd.Series([1, 0] * 20)
    _, low, high, n = intervals.paired_difference(same, same)
    assert (-low, high, n) == (NONE_OF[40], NONE_OF[40], 40)


def test_paired_table_compares_the_facts_that_have_both():
    table = frame("""
        model  fact_id  format  subject  value
        m      f        a       s        0
        m      g        a       s        0.5
        m      h        a       t        1
        m      f        b       s        1
        m      g        b       s        0.5
        m      h        b       t        0
        m      i        b       t        9
        m      f        c       s        7
    """)
    how = ["model"], "value", "format", ("a", "b")
    # Both subjects are drawn (0), or twice that of f and g (1 / 2), or twice that of h (-1).
    by_subject = """
        model  a    b    mean  low  high  n  subjects
        m      0.5  0.5  0     -1   0.5   3  2
    """
    assert_rows(intervals.paired_table(table, *how, cluster="subject"), by_subject)
    # Facts: 1, 0 and -1, one drawn thrice.
    by_fact = """
        model  a    b    mean  low  high  n
        m      0.5  0.5  0     -1   1     3
    """
    named = table.rename(columns={"fact_id": "group_id"})
    assert_rows(intervals.paired_table(named, *how, group="group_id"), by_fact)
    # The first minus the second.
    pairs = intervals.pairwise(table, "value", "format", cluster="subject")
    counts = """
        first  second  n
        a      b       3
        a      c       1
        b      c       1
    """
    assert_rows(pairs, counts)
    assert pairs.loc[0, ["mean", "low", "high", "subjects"]].tolist() == [0, -0.5, 1, 2]


def test_ranges_hold_their_last_value():
    found = intervals.in_ranges([0, 1, 8, 9, 32], {"none": 0, "few": 8, "many": 32})
    assert found.tolist() == ["none", "few", "few", "many", "many"]


def test_statistics_of_weighted_rows_by_hand():
    weights = np.array([[1.0, 1, 1, 1], [3, 0, 0, 2], [1, 1, 1, 0]])
    values = np.array([1.0, 2, 3, 8])
    zeros = np.zeros(4)
    found = intervals.ratio_of_sums(weights, values, np.array([1.0, 4, 1, 2]))
    assert found.tolist() == [14 / 8, 19 / 7, 6 / 6]
    assert np.isnan(intervals.ratio_of_sums(weights, values, zeros)).all()
    # A mean of means counts each part alike: it is not 14 / 4, nor 19 / 5.
    parts = np.array([0.0, 0, 0, 1])
    found = intervals.mean_of_means(weights, values, parts)
    assert found == approx((2 + 8) / 2, (1 + 8) / 2, NAN)  # the second part is not drawn at last
    assert intervals.mean_of_means(weights, values, zeros).tolist() == [14 / 4, 19 / 5, 2]
    slopes = intervals.slope_through_0(weights, np.array([1.0, 2, 3, 0]), values)
    assert slopes[0] == pytest.approx((1 + 4 + 9 + 0) / (1 + 4 + 9))
    slopes = intervals.slope_through_0(weights, values, np.array([1.0, 2, 6, 0]))
    assert slopes[2] == pytest.approx((1 + 4 + 18) / (1 + 4 + 9))


def test_intervals_side_by_side():
    table = frame("""
        model  source   share  low    high
        n      memory   0.25   0.104  0.4
        n      context  0.754  0.5    0.9
        m      context  1      0.964  1
    """)
    wide = intervals.side_by_side(table, "model", "source", "share")
    assert wide.columns.tolist() == ["memory", "context"]
    assert wide.index.tolist() == ["n", "m"]
    assert wide.values.tolist() == [["25% [10, 40]", "75% [50, 90]"], ["", "100% [96, 100]"]]
    means = table.rename(columns={"share": "mean"})
    wide = intervals.side_by_side(means, ["model"], "source", digits=2)
    assert wide.loc["n"].tolist() == ["0.25 [0.10, 0.40]", "0.75 [0.50, 0.90]"]
    wide = intervals.side_by_side(table, "source", ["model", "low"], "share")
    assert wide.columns.tolist() == [("n", 0.104), ("n", 0.5), ("m", 0.964)]


def test_another_estimate_takes_the_place_of_the_mean():
    table = frame("""
        mean  n  brier  brier_low  brier_high
        1     5  2      3          4
    """)
    made = intervals.as_mean(table, "brier")
    assert made.to_dict("records") == [{"n": 5, "mean": 2, "low": 3, "high": 4}]


def test_an_estimate_of_each_part():
    table = frame("""
        model  x  y   relation
        b      1  -1  r
        b      2  -2  r
        b      3  -3  s
        b      4  -4  t
        a      1  1   r
        a      2  2   r
        a      3  3   s
        a      4  4   t
    """)
    expected = """
        model  mean  n  relations
        a      1     4  3
        b      -1    4  3
    """
    found = intervals.correlations(table, ["model"], "x", "y", "relation", n_boot=50)
    assert_rows(found.rename(columns={"r": "mean"}), expected)
    assert "relations" not in intervals.correlations(table, ["model"], "x", "y", n_boot=50)
    how = ["model"], intervals.ratio_of_sums, ["y", "x"]
    assert_rows(intervals.statistic_table(table, *how, "relation", n_boot=50), expected)
    unsorted = intervals.statistic_table(table, *how, n_boot=50, sort=False)
    assert unsorted["model"].tolist() == ["b", "a"]


def test_rank_correlation_is_spearmans():
    """In each model 1 2 4 3 against 1 2 3 4."""
    df = pd.DataFrame({"m": [*"aaaabbbb"], "x": range(8), "y": [1.0, 10, 1000, 100] * 2})
    found = intervals.correlations(df, ["m"], "x", "y", ranks=True, n_boot=10)
    assert found["r"].tolist() == pytest.approx([0.8, 0.8])
    assert (intervals.correlations(df, ["m"], "x", "y", n_boot=10)["r"] < 0.6).all()


def test_interval_table_is_tidy():
    table = frame("""
        model  t    fact_id  relation  correct
        b      1.0  x        r         True
        b      1.0  y        r         False
        a      1.0  x        r         True
        a      1.0  x        r         False
        a      0.5  x        r         True
        a      0.5  y        s         True
    """)
    found = interval_table(table, ["model", "t"], "correct")
    expected = """
        model  t    mean  n
        a      0.5  1.0   2
        a      1.0  0.5   1
        b      1.0  0.5   2
    """
    assert_rows(found, expected)
    assert list(found.columns) == ["model", "t", "mean", "low", "high", "n"]
    assert found.loc[2, ["low", "high"]].tolist() == [0, 1]
    assert found.low.isna().tolist() == [False, True, False]
    assert interval_table(table, ["model"], "correct", None).n.tolist() == [4, 2]
    assert interval_table(table, [], "correct")[["mean", "n"]].to_numpy().tolist() == [[4 / 6, 2]]
    empty = interval_table(table[:0], ["model"], "correct")
    assert list(empty.columns) == ["model", "mean", "low", "high", "n"]
    assert len(empty) == 0


def test_clusters_are_drawn_whole_and_counted():
    table = pd.DataFrame({"fact_id": [*"abcdef"], "relation": [*"xxxyyy"], "v": [1, 1, 1, 0, 0, 0]})
    table["m"] = "a"
    expected = """
        m  mean  low  high  n  relations
        a  0.5   0    1     6  2
    """
    assert_rows(interval_table(table, ["m"], "v", cluster="relation"), expected)
    [alone] = interval_table(table, ["m"], "v").itertuples()
    assert alone.low > 0
    assert alone.n == 6


def test_binomial_interval_is_clopper_pearson():
    successes = [0, 1, 5, 9, 10, 3]
    trials = [10, 10, 10, 10, 10, 400]
    exact = []
    for k, n in zip(successes, trials, strict=True):
        exact.append(stats.binomtest(k, n).proportion_ci())
    found = np.transpose(intervals.binomial_interval(successes, trials))
    np.testing.assert_allclose(found, exact, atol=1e-12)


def test_an_exact_table_has_clopper_pearson_bounds():
    table = pd.DataFrame({"test": [*"aaaabb"], "v": [True, True, True, False, True, True]})
    three, two = intervals.exact_table(table, ["test"], "v").itertuples(index=False)
    low, high = stats.binomtest(3, 4).proportion_ci()
    assert three == pytest.approx(("a", 0.75, low, high, 4))
    assert two == pytest.approx(("b", 1, 0.025**0.5, 1, 2))
    assert intervals.exact_share(pd.Series([False] * 10)) == (0, 0, NONE_OF[10], 10)
    assert np.isnan(intervals.exact_share(pd.Series([], dtype=bool)).mean)


def test_explained_is_r_squared_of_least_squares():
    x = RNG.normal(size=(60, 2))
    y = 3 + x @ [0.5, -1] + RNG.normal(size=60)
    ones = np.ones((1, 60))
    weights = RNG.integers(0, 3, size=(4, 60)).astype(float)
    fits = [sm.WLS(y, sm.add_constant(x), weights=w).fit().rsquared for w in weights]
    np.testing.assert_allclose(intervals.r_squared(weights, y, *x.T), fits, rtol=1e-9)
    [alone] = intervals.r_squared(ones, y, x[:, 0])
    assert alone == pytest.approx(np.corrcoef(y, x[:, 0])[0, 1] ** 2)
    assert np.isnan(intervals.r_squared(ones, y, np.ones(60))).all()


def test_agreement_by_hand():
    # 3 of 4 agree; by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2 would.
    found = intervals.agreement(pd.Series([*"aaab"]), pd.Series([*"aabb"]))
    assert found.share == 3 / 4
    assert found.low == pytest.approx(0.1941, abs=5e-5)  # Clopper and Pearson, 3 of 4
    assert found.kappa == 1 / 2
    assert np.isnan(intervals.agreement(pd.Series(["a"]), pd.Series(["a"])).kappa)


def test_errors_of_a_rule_by_hand():
    labels = frame("""
        right  rule   same
        True   True   True
        True   False  True
        False  True   False
        False  False  False
        False  False  False
    """)
    table = intervals.rule_errors(labels, ["rule", "same"], "right").set_index(["rule", "what"])
    shares = {"error": [2 / 5, 5], "false positives": [1 / 3, 3], "false negatives": [1 / 2, 2]}
    for what, expected in shares.items():
        assert table.loc[("rule", what), ["mean", "n"]].tolist() == expected
    none = table.loc[("same", "error"), ["mean", "low", "high"]]
    assert none.tolist() == [0, 0, NONE_OF[5]]
