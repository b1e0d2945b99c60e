"""Paper 3's regression against statsmodels' own fits of its formula, and by hand."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.special import expit
from scipy.stats import t

from factrobust.intervals import binomial_interval
from factrobust.wording import regression
from factrobust.wording.regression import design, fit, predict

PAPER = "correct ~ QCat*SPop + QCat*SCons + QCat*Cert"
PLAIN = "correct ~ QCat + SPop + SCons + Cert"


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


@pytest.mark.parametrize(
    ("interactions", "formula"),
    [(True, PAPER), (False, PLAIN)],
)
def test_a_fit_is_that_of_the_formula(groups, interactions, formula):
    expected = theirs(groups, formula)
    rows = design(groups, interactions=interactions)
    made = fit(rows, groups["correct"])
    assert made.method == "maximum likelihood"
    assert made.coefficients.to_dict() == pytest.approx(expected.params.to_dict())
    assert made.covariance == pytest.approx(expected.cov_params().to_numpy())
    assert predict(made, rows) == pytest.approx(np.asarray(expected.predict()))


def test_predictors_are_standardised_on_the_rows_fitted(groups):
    moved = groups.assign(cert=5 + 3 * groups["cert"])
    rows = design(moved)
    made = fit(
        rows[:300],
        moved["correct"][:300],
    )
    cert = moved["cert"][:300]
    scaling = [cert.mean(), cert.std(ddof=0)]
    assert made.scaling.loc["Cert"].tolist() == pytest.approx(scaling)
    known = named(moved)
    expected = smf.logit(PAPER, known[:300]).fit(disp=0).predict(known[300:])
    assert predict(made, rows[300:]) == pytest.approx(expected.to_numpy())


@pytest.mark.parametrize("lacking", ["a", "b", "ab"])
def test_rows_of_a_design_are_fitted_as_by_themselves(groups, lacking):
    """Whether they lack the reference (a), another category, or all but one."""
    kept = ~groups["relation"].isin([*lacking])
    rows = design(groups)[kept]
    correct = groups["correct"][kept]
    made = fit(rows, correct)
    alone = design(groups[kept])
    expected = fit(alone, correct)
    assert made.coefficients.to_dict() == pytest.approx(expected.coefficients.to_dict())
    assert predict(made, rows) == pytest.approx(predict(expected, alone))


@pytest.mark.parametrize(
    ("predictors", "columns"),
    [
        (["QCat"], ["Intercept", "QCat[T.b]", "QCat[T.c]"]),
        (["SPop", "Cert"], ["Intercept", "SPop", "Cert"]),
        (["agreement"], ["Intercept", "agreement"]),
        ([], ["Intercept"]),
    ],
)
def test_other_sets_of_predictors(groups, predictors, columns):
    rows = design(
        groups.assign(agreement=np.linspace(0, 1, 600)),
        predictors,
    )
    assert list(rows) == columns
    made = fit(rows, groups["correct"])
    if predictors == ["QCat"]:  # the probabilities are the shares
        shares = groups.groupby("relation")["correct"].transform("mean")
        assert predict(made, rows) == pytest.approx(shares.to_numpy())


def test_what_has_no_finite_or_no_unique_estimate(groups):
    in_c = groups["relation"] == "c"
    flat = groups.assign(cert=1 + 1e-16 * np.arange(600))
    flat_in_c = groups.assign(cert=groups["cert"].mask(in_c, 1.0))
    wrong_in_c = groups.assign(correct=groups["correct"] & ~in_c)
    methods = {"collinear": [flat, flat_in_c], "separated": [wrong_in_c]}
    for reason, tables in methods.items():
        for table in tables:
            made = fit(design(table), table["correct"])
            assert made.method == f"penalised ({reason})"
            assert np.isfinite(made.coefficients).all()
    rows = design(wrong_in_c)
    p = predict(fit(rows, wrong_in_c["correct"]), rows)
    assert 0 < p[in_c].mean() < 0.05
    assert p[~in_c].mean() == pytest.approx(
        groups["correct"][~in_c].mean(),
        abs=0.01,
    )


def test_evidence_by_hand():
    """Slopes of 3 and 4 have a length of 5; in b they are 0 and 4, of length 4."""
    slopes = {
        "Intercept": 9.0,
        "QCat[T.b]": 7.0,
        "SCons": 3.0,
        "QCat[T.b]:SCons": -3.0,
        "Cert": 4.0,
    }
    scaling = pd.DataFrame(
        {"mean": [0.0, 1.0], "sd": [1.0, 2.0]},
        ["SCons", "Cert"],
    )
    made = regression.Fit(
        pd.Series(slopes),
        np.eye(5),
        5,
        0,
        "",
        scaling,
    )
    rows = pd.DataFrame(
        [[1.0, 0, 1, 0, 2], [1, 1, 1, 1, 2]],
        columns=[*slopes],
    )
    # In standard deviations the predictors are 1 and (2 - 1) / 2.
    found = regression.evidence(made, rows)
    assert found.tolist() == pytest.approx([(3 * 1 + 4 * 0.5) / 5, 0.5])
    logits = [
        9 + 3 * 1 + 4 * 0.5,
        9 + 7 + 0 + 4 * 0.5,
    ]
    assert predict(made, rows) == pytest.approx(expit(logits))


def test_the_tables_have_statsmodels_numbers(groups):
    expected = theirs(groups)
    [r2, aic] = regression.summary(groups, [regression.FULL])[["pseudo_r2", "aic"]].to_numpy()[0]
    assert (r2, aic) == pytest.approx((expected.prsquared, expected.aic))
    # Wald's tests.
    tests = expected.wald_test_terms(scalar=True).table.astype(float)
    found = regression.wald(groups, regression.FULL)
    assert found["term"].tolist() == [
        "intercept",
        *tests.index[1:],
    ]
    assert found["df"].tolist() == [
        1,
        2,
        1,
        2,
        1,
        2,
        1,
        2,
    ]
    for ours, name in (("statistic", "statistic"), ("p_value", "pvalue")):
        assert found[ours].to_numpy() == pytest.approx(tests[name].to_numpy())
    # Coefficients.
    table = regression.coefficients(groups, regression.FULL).set_index("term")
    assert table.index.tolist() == [
        "intercept",
        *expected.params.index[1:],
    ]
    numbers = table[["coefficient", "low", "high", "p_value"]].to_numpy().T
    low, high = expected.conf_int().to_numpy().T
    assert numbers == pytest.approx(np.array([expected.params, low, high, expected.pvalues]))
    assert table["n"].eq(600).all()


def test_conditional_coefficients_are_the_categories_own(groups):
    """With all interactions, a category's coefficients are those of a regression on its rows, in
    the units of all."""
    rows = named(groups)
    table = regression.coefficients(groups, regression.FULL)
    own = table[table["category"] == "b"]
    sd = rows[[*regression.NUMERIC]].std(ddof=0)
    in_b = smf.logit("correct ~ SPop + SCons + Cert", rows[rows["QCat"] == "b"]).fit(disp=0)
    slopes = own["conditional"].iloc[1:].to_numpy()
    assert slopes == pytest.approx((in_b.params[1:] * sd).to_numpy())
    of_reference = table[table["category"] == "a"]
    assert of_reference["term"].tolist() == ["intercept", *regression.NUMERIC]
    assert (of_reference["conditional"] == of_reference["coefficient"]).all()


def test_a_regression_of_each_part(groups, simulate):
    both = pd.concat([groups, simulate(300, seed=2, model="n")])
    table = regression.coefficients(both, ["Cert"], ["model", "relation"])
    assert len(table) == 2 * 3 * 2
    part = both[(both["model"] == "n") & (both["relation"] == "b")]
    expected = fit(design(part, ["Cert"]), part["correct"]).coefficients
    found = table[(table["model"] == "n") & (table["relation"] == "b")]
    assert found["coefficient"].tolist() == pytest.approx(expected.tolist())
    assert regression.coefficients(both[:0], ["Cert"]).empty


def test_binned_correctness_by_hand():
    """Two bins of a: 0.1 and 0.2, then the three equal ones, of rank (3 + 4 + 5) / 3 of 5."""
    groups = pd.DataFrame({"scons": [0.1, 0.2, 0.5, 0.5, 0.5, 1.0], "relation": [*"aaaaab"]})
    groups["correct"] = [True, False, False, True, True, True]
    groups = groups.assign(model="m", cert=0.0)
    table = regression.binned_correctness(groups, bins=2)
    assert table["predictor"].unique().tolist() == ["SCons"]  # the other has one value
    low, high = binomial_interval(
        [1, 2, 1],
        [2, 3, 1],
    )
    assert table["relation"].tolist() == ["a", "a", "b"]
    columns = ["midpoint", "mean", "low", "high", "n"]
    expected = [
        [0.15, 0.5, 1],
        [1 / 2, 2 / 3, 1],
        low,
        high,
        [2, 3, 1],
    ]
    assert pytest.approx(np.array(expected)) == table[columns].to_numpy().T


def simpsons(n_each=1000):
    """Within each of 16 relations a larger SCons is right more often; relations with a larger SCons
    are right less often. Cert tells as much within as over all."""
    rng = np.random.default_rng(0)
    relation = np.repeat(np.arange(16), n_each)
    inside, cert = rng.normal(size=(2, 16 * n_each))
    logits = inside + cert - 0.6 * (relation - 7.5)
    return pd.DataFrame(
        {
            "model": "m",
            "relation": relation.astype(str),
            "correct": rng.random(len(logits)) < expit(logits),
            "scons": inside + relation * 0.5,
            "cert": cert,
        }
    )


def test_odds_ratios_and_the_change_from_over_all_to_within():
    table = simpsons()
    both = ["SCons", "Cert"]
    alone = regression.odds_ratios(table, both).set_index("term")
    within = regression.odds_ratios(table, ["QCat", *both]).set_index("term")
    assert alone.loc["SCons", "high"] < 1
    true = np.exp(table[["scons", "cert"]].std().to_numpy())  # the logit's slopes are 1
    assert (within["low"].to_numpy() < true).all()
    assert (true < within["high"].to_numpy()).all()
    assert (within["high"] / within["low"]).max() < 1.5
    assert within[["n", "relations"]].to_numpy().tolist() == [[16000, 16]] * 2
    [change] = regression.change_within(table, *both).to_dict("records")
    leads = [np.log(odds.loc["SCons", "odds_ratio"] / odds.loc["Cert", "odds_ratio"])
             for odds in (alone, within)]  # fmt: skip
    assert change["change"] == pytest.approx(leads[1] - leads[0])
    assert 0 < change["low"] < change["change"] < change["high"]
    [turned] = regression.change_within(table, "Cert", "SCons").to_dict("records")
    assert turned["low"] == pytest.approx(-change["high"])


def test_the_jackknife_by_hand():
    """Without each of three: 1, 2 and 6. Their mean is 3, the squares are 4, 1 and 9: the error is
    the root of 2/3 of 14."""
    value, low, high = regression._jackknifed(pd.Series([5.0, 1, 2, 6]))
    reach = t.ppf(0.975, 2) * np.sqrt(2 / 3 * 14)
    assert (value, low, high) == pytest.approx((5, 5 - reach, 5 + reach))


def test_relations_that_are_always_wrong_or_right_do_not_count_within():
    table = simpsons(100)
    table["correct"] &= table["relation"] != "3"
    assert set(regression.mixed(table)["relation"]) == {*map(str, range(16))} - {"3"}
    for used, n, relations in ((["QCat", "SCons"], 1500, 15), (["SCons"], 1600, 16)):
        [found] = regression.odds_ratios(table, used).to_dict("records")
        assert (found["n"], found["relations"]) == (n, relations)
