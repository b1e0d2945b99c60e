"""Paper 3's regression against statsmodels' own fits of its formula, and by hand."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from frames import assert_rows, frame
from numpy.testing import assert_allclose
from pandas.testing import assert_series_equal
from scipy.special import expit
from scipy.stats import t

from factrobust.intervals import binomial_interval
from factrobust.wording import regression
from factrobust.wording.regression import FULL, design, fit_logistic, predict

PAPER = "correct ~ QCat*SPop + QCat*SCons + QCat*Cert"
PLAIN = "correct ~ QCat + SPop + SCons + Cert"
assert_close = partial(assert_allclose, rtol=1e-6)


@pytest.fixture(scope="module")
def groups(simulate):
    return simulate(600)


def named(groups):
    return groups.rename(columns=regression.COLUMNS).astype({"correct": float})


def theirs(groups, formula=PAPER):
    """statsmodels' fit of a formula, predictors in standard deviations."""
    rows = named(groups)
    numeric = rows[[*regression.NUMERIC]]
    rows[numeric.columns] = (numeric - numeric.mean()) / numeric.std(ddof=0)
    return smf.logit(formula, rows).fit(disp=0)


@pytest.mark.parametrize("formula", [PAPER, PLAIN])
def test_a_fit_is_that_of_the_formula(groups, formula):
    expected = theirs(groups, formula)
    rows = design(groups, interactions=formula == PAPER)
    made = fit_logistic(rows, groups["correct"])
    assert made.method == "maximum likelihood"
    assert_series_equal(made.coefficients, expected.params)
    assert_close(made.covariance, expected.cov_params())
    assert_close(predict(made, rows), expected.predict())


def test_predictors_are_standardised_on_the_rows_fitted(groups):
    moved = groups.assign(cert=5 + 3 * groups["cert"])
    rows = design(moved)
    made = fit_logistic(rows[:300], moved["correct"][:300])
    cert = moved["cert"][:300]
    assert_close(made.scaling.loc["Cert"], [np.mean(cert), np.std(cert)])
    known = named(moved)
    by_formula = smf.logit(PAPER, known[:300]).fit(disp=0)
    assert_close(predict(made, rows[300:]), by_formula.predict(known[300:]))


@pytest.mark.parametrize("lacking", ["a", "b", "ab"])
def test_rows_of_a_design_are_fitted_as_by_themselves(groups, lacking):
    """Whether they lack the reference (a), another category, or all but one."""
    kept = ~groups["relation"].isin([*lacking])
    correct = groups["correct"][kept]
    rows = design(groups)[kept]
    made = fit_logistic(rows, correct)
    alone = design(groups[kept])
    expected = fit_logistic(alone, correct)
    assert_series_equal(made.coefficients, expected.coefficients)
    assert_close(predict(made, rows), predict(expected, alone))


def test_other_sets_of_predictors(groups):
    table = groups.assign(agreement=np.linspace(0, 1, 600))
    assert list(design(table, ["agreement"])) == ["Intercept", "agreement"]
    assert list(design(table, [])) == ["Intercept"]
    # With the category alone the probabilities are the shares.
    rows = design(table, ["QCat"])
    assert list(rows) == ["Intercept", "QCat[T.b]", "QCat[T.c]"]
    shares = groups.groupby("relation")["correct"].transform("mean")
    assert_close(predict(fit_logistic(rows, groups["correct"]), rows), shares)


def test_what_has_no_finite_or_no_unique_estimate(groups):
    in_c = groups["relation"] == "c"
    flat = groups.assign(cert=1 + 1e-16 * np.arange(600))
    flat_in_c = groups.assign(cert=groups["cert"].mask(in_c, 1.0))
    wrong_in_c = groups.assign(correct=groups["correct"] & ~in_c)
    tables = [(flat, "collinear"), (flat_in_c, "collinear"), (wrong_in_c, "separated")]
    for table, reason in tables:
        rows = design(table)
        made = fit_logistic(rows, table["correct"])
        assert made.method == f"penalised ({reason})"
        assert np.isfinite(made.coefficients).all()
    # Of the last:
    means = pd.Series(predict(made, rows)).groupby(groups["relation"]).mean()
    assert 0 < means["c"] < 0.05


def test_evidence_by_hand():
    """Slopes of 3 and 4 have a length of 5; in b they are 0 and 4, of length 4."""
    coefficients = pd.Series([9.0, 7, 3, -3, 4])
    rows = frame("""
        Intercept  QCat[T.b]  SCons  QCat[T.b]:SCons  Cert
        1.0        0          1      0                2
        1.0        1          1      1                2
    """)
    scaling = frame("""
        mean  sd
        0.0   1.0
        1.0   2.0
    """)
    coefficients.index = rows.columns
    scaling.index = ["SCons", "Cert"]
    made = regression.Fit(coefficients, np.eye(5), 5, 0, "", scaling)
    # In standard deviations the predictors are 1 and (2 - 1) / 2.
    assert_close(regression.evidence(made, rows), [(3 * 1 + 4 * 0.5) / 5, 0.5])
    assert_close(predict(made, rows), expit([9 + 3 + 2, 9 + 7 + 2]))


def test_the_tables_have_statsmodels_numbers(groups):
    expected = theirs(groups)
    fitness = regression.goodness_of_fit(groups, [FULL])
    assert_close(fitness["pseudo_r2"], expected.prsquared)
    assert_close(fitness["aic"], expected.aic)
    # Wald's tests.
    tests = expected.wald_test_terms(scalar=True).table.astype(float)
    found = regression.wald(groups, FULL)
    assert found["term"].tolist() == ["intercept", *tests.index[1:]]
    assert found["df"].tolist() == [1, 2] * 4
    assert_close(found["statistic"], tests["statistic"])
    assert_close(found["p_value"], tests["pvalue"])
    # Coefficients.
    table = regression.coefficients(groups, FULL)
    assert table["term"].tolist() == ["intercept", *expected.params.index[1:]]
    assert_close(table["coefficient"], expected.params)
    assert_close(table[["low", "high"]], expected.conf_int())
    assert_close(table["p_value"], expected.pvalues)
    assert_close(table["n"], 600)


def test_conditional_coefficients_are_the_categories_own(groups):
    """With all interactions, a category's coefficients are those of a regression on its rows, in
    the units of all."""
    rows = named(groups)
    by_category = regression.coefficients(groups, FULL).set_index("category")
    formula = "correct ~ SPop + SCons + Cert"
    in_b = smf.logit(formula, rows[rows["QCat"] == "b"]).fit(disp=0)
    expected = in_b.params[1:] * rows[[*regression.NUMERIC]].std(ddof=0)
    assert_close(by_category.loc["b", "conditional"][1:], expected)
    of_reference = by_category.loc["a"]
    assert of_reference["term"].tolist() == ["intercept", *regression.NUMERIC]
    assert_close(of_reference["conditional"], of_reference["coefficient"])


def test_a_regression_of_each_part(groups, simulate):
    both = pd.concat([groups, simulate(300, seed=2, model="n")])
    table = regression.coefficients(both, ["Cert"], ["model", "relation"])
    assert len(table) == 2 * 3 * 2
    part = both.query("model == 'n' and relation == 'b'")
    found = table.query("model == 'n' and relation == 'b'")["coefficient"]
    assert_close(found, regression.coefficients(part, ["Cert"])["coefficient"])
    assert regression.coefficients(both[:0], ["Cert"]).empty


def test_binned_correctness_by_hand():
    """Two bins of a: 0.1 and 0.2, then the three equal ones, of rank (3 + 4 + 5) / 3 of 5."""
    groups = frame("""
        relation  scons  correct
        a         0.1    True
        a         0.2    False
        a         0.5    False
        a         0.5    True
        a         0.5    True
        b         1.0    True
    """)
    table = regression.binned_correctness(groups.assign(model="m", cert=0.0), bins=2)
    # cert has one value.
    assert_rows(
        table,
        """
        predictor  relation  midpoint  mean          n
        SCons      a         0.15      0.5           2
        SCons      a         0.5       0.6666666667  3
        SCons      b         1         1             1
        """,
    )
    low, _ = binomial_interval([1, 2, 1], [2, 3, 1])
    assert_close(table["low"], low)


def simpsons(n_each=1000):
    """Within each of 16 relations a larger SCons is right more often; relations with a larger SCons
    are right less often. Cert tells as much within as over all."""
    rng = np.random.default_rng(0)
    relation = np.repeat(np.arange(16), n_each)
    inside, cert = rng.normal(size=(2, 16 * n_each))
    logits = inside + cert - 0.6 * (relation - 7.5)
    table = pd.DataFrame({"relation": relation.astype(str), "cert": cert})
    return table.assign(
        model="m",
        correct=rng.random(len(logits)) < expit(logits),
        scons=inside + relation * 0.5,
    )


def test_odds_ratios_and_the_change_from_over_all_to_within():
    table = simpsons()
    both = ["SCons", "Cert"]
    alone = regression.odds_ratios(table, both).set_index("term")
    within = regression.odds_ratios(table, ["QCat", *both]).set_index("term")
    assert alone.loc["SCons", "high"] < 1
    true = np.exp(table[["scons", "cert"]].std().to_numpy())  # the logit's slopes are 1
    assert (within["low"] < true).all()
    assert (within["high"] > true).all()
    change = regression.change_within(table, *both).iloc[0]
    gain = np.log(within["odds_ratio"] / alone["odds_ratio"])
    assert change["change"] == pytest.approx(gain["SCons"] - gain["Cert"])
    assert 0 < change["low"] < change["change"] < change["high"]
    turned = regression.change_within(table, "Cert", "SCons").iloc[0]
    assert turned["low"] == pytest.approx(-change["high"])


def test_the_jackknife_by_hand():
    """Without each of three: 1, 2 and 6. Their mean is 3, the squares are 4, 1 and 9: the error is
    the root of 2/3 of 14."""
    found = regression._jackknifed(pd.Series([5.0, 1, 2, 6]))
    reach = t.ppf(0.975, 2) * np.sqrt(2 / 3 * 14)
    assert_close(found, [5, 5 - reach, 5 + reach])


def test_relations_that_are_always_wrong_or_right_do_not_count_within():
    table = simpsons(100)
    table["correct"] &= table["relation"] != "3"
    mixed = regression.mixed(table)["relation"]
    assert len(mixed) == 1500
    assert "3" not in set(mixed)
    for predictors, n, relations in ((["QCat", "SCons"], 1500, 15), (["SCons"], 1600, 16)):
        odds = regression.odds_ratios(table, predictors)
        assert_close(odds[["n", "relations"]], [[n, relations]])
