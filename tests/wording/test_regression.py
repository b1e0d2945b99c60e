"""Paper 3's regression against statsmodels and known coefficients."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy.special import expit

from factrobust.intervals import binomial_interval
from factrobust.wording import regression
from factrobust.wording.regression import fit, predict

STUDENTS = ("GPA", "TUCE", "PSI")
PAPER = "y ~ QCat*log_SPop + QCat*SCons + QCat*Cert"


def standardised(groups: pd.DataFrame, **names: str) -> pd.DataFrame:
    """What statsmodels takes: outcome y, QCat, and the predictors in standard deviations."""
    names = names or {"log_popularity": "log_SPop", "scons": "SCons", "cert": "Cert"}
    z = {name: (groups[x] - groups[x].mean()) / groups[x].std(ddof=0) for x, name in names.items()}
    category = groups["relation"].to_numpy(dtype=object)
    return pd.DataFrame(z).assign(y=groups["correct"].astype(int), QCat=category)


def test_spector_as_in_the_textbook_and_in_statsmodels(spector: pd.DataFrame) -> None:
    # Greene, Econometric Analysis, table 21.1; predictors here are standardised.
    made = fit(spector, STUDENTS)
    sd = made.scaling["sd"]
    slopes = (made.coefficients[list(STUDENTS)] / sd).tolist()
    assert slopes == pytest.approx([2.82611, 0.09516, 2.37869], abs=1e-5)
    errors = (np.sqrt(np.diag(made.covariance))[1:] / sd).tolist()
    assert errors == pytest.approx([1.26294, 0.14155, 1.06456], abs=1e-4)
    assert made.log_likelihood == pytest.approx(-12.8896, abs=1e-4)
    assert made.null_log_likelihood == pytest.approx(-20.5917, abs=1e-4)
    theirs = smf.logit("GRADE ~ GPA + TUCE + PSI", spector).fit(disp=0)
    assert made.pseudo_r2 == pytest.approx(theirs.prsquared)
    assert made.aic == pytest.approx(theirs.aic)
    new = spector[::3].assign(GPA=lambda rows: rows["GPA"] - 0.4)
    assert predict(made, new) == pytest.approx(theirs.predict(new).to_numpy())

    z = standardised(spector, **{name: name for name in STUDENTS})
    theirs = smf.logit("y ~ GPA + TUCE + PSI", z).fit(disp=0)
    table = regression.coefficients(made)
    assert table["term"].tolist() == ["intercept", *STUDENTS]
    found = table[["coefficient", "standard_error", "p_value", "low", "high"]].to_numpy()
    bounds = theirs.conf_int().to_numpy().T
    assert pytest.approx(np.array([theirs.params, theirs.bse, theirs.pvalues, *bounds])) == found.T
    # Textbook p-values of the slopes: 0.025, 0.501, 0.025.
    assert table["p_value"][1:].round(3).tolist() == [0.025, 0.501, 0.025]
    assert table["symbol"][1:].tolist() == ["*", "", "*"]
    assert table["odds_ratio"].tolist() == pytest.approx(np.exp(theirs.params).tolist())
    assert table["odds_low"].tolist() == pytest.approx(np.exp(theirs.conf_int()[0]).tolist())
    assert (table["conditional"] == table["coefficient"]).all()
    assert (table["category"] == "").all()
    assert table[["fit", "n"]].drop_duplicates().values.tolist() == [["maximum likelihood", 32]]


def test_the_formula_of_the_paper(simulate) -> None:
    groups = simulate(600)
    made = fit(groups)
    theirs = smf.logit(PAPER, standardised(groups)).fit(disp=0)
    ours = made.coefficients.rename({"intercept": "Intercept"})
    assert ours.to_dict() == pytest.approx(theirs.params.to_dict())
    assert made.covariance == pytest.approx(theirs.cov_params().to_numpy())
    assert predict(made, groups) == pytest.approx(theirs.predict().tolist())
    assert predict(made, groups[:0]).tolist() == []
    assert made.categories == ("a", "b", "c")
    assert regression.coefficients(made)["term"].tolist() == [
        *("intercept", "QCat[T.b]", "QCat[T.c]", "log_SPop", "QCat[T.b]:log_SPop"),
        *("QCat[T.c]:log_SPop", "SCons", "QCat[T.b]:SCons", "QCat[T.c]:SCons", "Cert"),
        *("QCat[T.b]:Cert", "QCat[T.c]:Cert"),
    ]
    # Wald's tests of its terms.
    terms = theirs.wald_test_terms(scalar=True).table
    table = regression.wald(made)
    assert table["term"].tolist() == ["intercept", *terms.index[1:]]
    assert table["statistic"].tolist() == pytest.approx(terms["statistic"].astype(float).tolist())
    assert table["p_value"].tolist() == pytest.approx(terms["pvalue"].astype(float).tolist())
    assert table["df"].tolist() == [1, 2, 1, 2, 1, 2, 1, 2]
    assert table["symbol"].tolist() == regression.symbols(table["p_value"])


def test_conditional_coefficients_are_the_categories_own(simulate) -> None:
    """With all interactions, a category's coefficients are those of a regression on its rows."""
    groups = simulate(900)
    table = regression.coefficients(fit(groups)).set_index("term")
    category = standardised(groups)[groups["relation"] == "b"]
    theirs = smf.logit("y ~ log_SPop + SCons + Cert", category).fit(disp=0)
    rows = table.loc[["QCat[T.b]", *(f"QCat[T.b]:{n}" for n in ("log_SPop", "SCons", "Cert"))]]
    assert rows["conditional"].tolist() == pytest.approx(theirs.params.tolist())
    bounds = rows[["conditional_low", "conditional_high"]].to_numpy()
    assert bounds == pytest.approx(theirs.conf_int().to_numpy())
    assert (rows["category"] == "b").all()
    assert table.loc["SCons", "category"] == "a"
    assert table.loc["SCons", "conditional"] == table.loc["SCons", "coefficient"]


def test_symbols():
    p_values = [0, 0.0009, 0.001, 0.009, 0.01, 0.049, 0.05, 0.099, 0.1, 1]
    assert regression.symbols(p_values) == [*("***", "***", "**", "**", "*", "*", ".", ".", "", "")]


def test_standardised_on_the_rows_fitted_only(simulate) -> None:
    groups = simulate(400).assign(cert=lambda rows: 5 + 3 * rows["cert"])
    train = groups[:300]
    test = groups[300:].assign(cert=lambda rows: 100 * rows["cert"])
    made = fit(train)
    expected = [train["cert"].mean(), train["cert"].std(ddof=0)]
    assert made.scaling.loc["Cert"].tolist() == pytest.approx(expected)
    # A question's prediction does not depend on the questions predicted beside it.
    together = predict(made, test)
    alone = [predict(made, test[i : i + 1])[0] for i in range(0, 100, 9)]
    assert together[::9].tolist() == pytest.approx(alone)


@pytest.mark.parametrize(
    ("predictors", "names"),
    [
        (["QCat"], ["intercept", "QCat[T.b]", "QCat[T.c]"]),
        (["SPop", "Cert"], ["intercept", "log_SPop", "Cert"]),
        (["agreement"], ["intercept", "agreement"]),
        ([], ["intercept"]),
    ],
)
def test_other_sets_of_predictors(simulate, predictors: list[str], names: list[str]) -> None:
    groups = simulate(300).assign(agreement=np.linspace(0, 1, 300))
    made = fit(groups, predictors)
    assert made.coefficients.index.tolist() == names
    if predictors in (["QCat"], []):  # then the probabilities are the shares
        key = groups["relation"] if predictors else pd.Series("all", index=groups.index)
        shares = groups.groupby(key.to_numpy())["correct"].transform("mean")
        assert predict(made, groups) == pytest.approx(shares.tolist())


def test_a_constant_predictor_says_nothing(simulate) -> None:
    groups = simulate(200, relations="a")
    flat = groups.assign(cert=1 + 1e-16 * np.arange(200))
    made = fit(flat)
    assert made.method == "penalised (collinear)"
    assert made.coefficients["Cert"] == pytest.approx(0, abs=1e-12)
    moved = predict(made, flat.assign(cert=50.0))
    assert moved.tolist() == pytest.approx(predict(made, flat).tolist())
    groups = simulate(600)  # nor where it is constant in one category only
    groups.loc[groups["relation"] == "c", "cert"] = 1.0
    assert fit(groups).method == "penalised (collinear)"


def test_a_category_without_a_right_answer(simulate) -> None:
    groups = simulate(600)
    groups["correct"] &= groups["relation"] != "b"
    made = fit(groups)
    assert made.method == "penalised (separated)"
    p = pd.Series(predict(made, groups)).groupby(groups["relation"]).mean()
    shares = groups.groupby("relation")["correct"].mean()
    assert 0 < p["b"] < 0.05
    assert p[["a", "c"]].tolist() == pytest.approx(shares[["a", "c"]].tolist(), abs=0.01)
    assert 0 < made.pseudo_r2 < 1
    assert 4 < made.degrees < 12
    assert made.aic == pytest.approx(2 * made.degrees - 2 * made.log_likelihood)
    table = regression.coefficients(made)
    assert np.isfinite(table[["coefficient", "low", "high", "p_value"]]).all(axis=None)
    for fits in (table["fit"], regression.wald(made)["fit"]):
        assert fits.unique().tolist() == ["penalised (separated)"]


def test_without_interactions_a_predictor_has_one_slope(simulate) -> None:
    groups = simulate(600)
    made = fit(groups, interactions=False)
    theirs = smf.logit("y ~ QCat + log_SPop + SCons + Cert", standardised(groups)).fit(disp=0)
    ours = made.coefficients.rename({"intercept": "Intercept"})
    assert ours.to_dict() == pytest.approx(theirs.params.to_dict())
    assert predict(made, groups) == pytest.approx(theirs.predict().tolist())


def test_summary(simulate) -> None:
    other = simulate(300, model="n", seed=4)
    wrong = simulate(30, model="o", correct=False)
    groups = pd.concat([simulate(300), other, wrong])
    table = regression.summary(groups, [regression.FULL, ("Cert",)])
    assert table["predictors"].tolist() == ["QCat, SPop, SCons, Cert", "Cert"] * 3
    assert table[["model", "n", "fit"]].values.tolist() == [
        *[["m", 300, "maximum likelihood"]] * 2,
        *[["n", 300, "maximum likelihood"]] * 2,
        *[["o", 30, "none: all 30 answers are wrong"]] * 2,
    ]
    for row, names in ((2, regression.FULL), (3, ("Cert",))):
        made = fit(other, names)
        found = table.loc[row, ["pseudo_r2", "aic", "degrees"]].tolist()
        assert found == pytest.approx([made.pseudo_r2, made.aic, len(made.coefficients)])
    assert table.loc[4, ["pseudo_r2", "aic", "degrees"]].isna().all()


def test_within(simulate) -> None:
    groups = pd.concat([simulate(300), simulate(300, model="n", seed=2)])
    groups["correct"] &= groups["relation"] != "c"
    table = regression.within(groups, ["b", "c", "d"])
    part = groups[(groups["relation"] == "b") & (groups["model"] == "n")]
    made = fit(part, ["SPop", "SCons", "Cert"])
    assert made.scaling.loc["Cert", "mean"] == pytest.approx(part["cert"].mean())
    rows = table[(table["relation"] == "b") & (table["model"] == "n")]
    assert rows["term"].tolist() == ["intercept", "log_SPop", "SCons", "Cert"]
    assert rows["coefficient"].tolist() == pytest.approx(made.coefficients.tolist())
    assert rows["odds_ratio"].tolist() == pytest.approx(np.exp(rows["coefficient"]).tolist())
    none = table[table["relation"] != "b"]
    reasons = ["none: all 100 answers are wrong", "none: there are no questions"]
    assert none["fit"].tolist() == reasons * 2
    assert none["n"].tolist() == [100, 0] * 2
    assert none["coefficient"].isna().all()
    assert list(regression.within(groups, ["c"])) == list(table)


def test_binned_correctness_by_hand():
    # Two bins of category a: 0.1 and 0.2, then the three equal ones, whose ranks are (3 + 4 + 5) / 3 of 5.
    groups = pd.DataFrame({"scons": [0.1, 0.2, 0.5, 0.5, 0.5, 1.0], "relation": list("aaaaab")})
    groups["correct"] = [True, False, False, True, True, True]
    groups = groups.assign(
        model="m",
        cert=0.0,
        log_popularity=0.0,
    )
    table = regression.binned_correctness(groups, bins=2)
    assert table["predictor"].unique().tolist() == ["SCons"]  # the others have one value
    found = table[["relation", "midpoint", "correct", "n"]].values.tolist()
    two = pytest.approx(2 / 3)
    assert found == [
        ["a", pytest.approx(0.15), 0.5, 2],
        ["a", 0.5, two, 3],
        ["b", 1.0, 1.0, 1],
    ]
    low, high = binomial_interval([1, 2, 1], [2, 3, 1])
    assert table["low"].tolist() == pytest.approx(low.tolist())
    assert table["high"].tolist() == pytest.approx(high.tolist())


def test_relations_that_are_always_wrong_or_right_do_not_count_within():
    rng = np.random.default_rng(1)
    n = 900
    relation = np.repeat(["a", "b", "c"], 300)
    scons = rng.normal(size=n)
    right = (rng.random(n) < expit(scons)) & (relation != "c")
    table = pd.DataFrame(
        {
            "model": "m",
            "relation": relation,
            "correct": right,
            "scons": scons,
        }
    )
    assert set(regression.mixed(table)["relation"]) == {"a", "b"}
    within = regression.odds_ratios(table, ("QCat", "SCons")).iloc[0]
    without = regression.odds_ratios(table[relation != "c"], ("QCat", "SCons")).iloc[0]
    assert within["odds_ratio"] == without["odds_ratio"]
    assert within[["n", "relations"]].tolist() == [600, 2]
    assert regression.odds_ratios(table, ("SCons",)).iloc[0]["n"] == 900


def test_the_change_from_over_all_to_within_is_the_difference_of_the_leads():
    rng = np.random.default_rng(0)
    n = 8000
    relation = np.repeat(np.arange(16), 500)
    inside, cert = rng.normal(size=(2, n))
    scons = inside + relation * 0.5
    right = rng.random(n) < expit(inside + cert - 0.6 * (relation - 7.5))
    table = pd.DataFrame({"model": "m", "relation": relation.astype(str), "correct": right})
    table = table.assign(scons=scons, cert=cert)
    leads = []
    for predictors in (("SCons", "Cert"), ("QCat", "SCons", "Cert")):
        odds = regression.odds_ratios(table, predictors).set_index("term")["odds_ratio"]
        leads.append(np.log(odds["SCons"]) - np.log(odds["Cert"]))
    found = regression.change_within(table, "SCons", "Cert").iloc[0]
    assert found["change"] == pytest.approx(leads[1] - leads[0])
    assert 0 < found["low"] < found["change"] < found["high"]
    assert found[["n", "relations"]].tolist() == [n, 16]
    turned = regression.change_within(table, "Cert", "SCons").iloc[0]
    assert turned["low"] == pytest.approx(-found["high"])


def test_odds_ratios_with_and_without_relations_are_simpsons():
    """Within each relation a larger SCons is right more often (odds times e a standard deviation);
    relations with a larger SCons are right less often."""
    rng = np.random.default_rng(0)
    n = 16000
    relation = np.repeat(np.arange(16), 1000)
    inside = rng.normal(size=n)
    scons = inside + relation * 0.5
    right = rng.random(n) < expit(inside - 0.6 * (relation - 7.5))
    table = pd.DataFrame({"model": "m", "relation": relation.astype(str), "correct": right})
    table = table.assign(group_id=np.arange(n).astype(str), scons=scons)
    alone = regression.odds_ratios(table, ("SCons",)).iloc[0]
    assert alone["high"] < 1
    within = regression.odds_ratios(table, ("QCat", "SCons")).iloc[0]
    assert within["low"] < np.exp(scons.std()) < within["high"]
    assert within["high"] / within["low"] < 1.5
    assert within[["n", "relations"]].tolist() == [n, 16]


def test_evidence_by_hand(simulate):
    """Slopes of 3 and 4 have a length of 5; in the second relation they are 0 and 4, of length 4."""
    groups = pd.DataFrame({"relation": ["a", "b", "z"], "scons": [1.0] * 3, "cert": [2.0] * 3})
    names = ["intercept", "QCat[T.b]", "SCons", "QCat[T.b]:SCons", "Cert", "QCat[T.b]:Cert"]
    slopes = pd.Series([9.0, 7.0, 3.0, -3.0, 4.0, 0.0], index=names)
    fitted = regression.fit(simulate(60, "ab"), ("QCat", "SCons", "Cert"))
    scaling = pd.DataFrame({"mean": [0.0, 1.0], "sd": [1.0, 2.0]}, ["SCons", "Cert"])
    fitted = replace(fitted, coefficients=slopes, scaling=scaling)
    # z is 1 and (2 - 1) / 2.
    found = regression.evidence(fitted, groups)
    assert found[:2].tolist() == pytest.approx([(3 * 1 + 4 * 0.5) / 5, 0.5])
    assert np.isnan(found[2])  # a relation that was not fitted
