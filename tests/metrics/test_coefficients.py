"""Tables of coefficients and Wald tests against statsmodels and by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import regression as coefficients
from factrobust.metrics.regression import fit


def test_symbols() -> None:
    p_values = [0, 0.0009, 0.001, 0.009, 0.01, 0.049, 0.05, 0.099, 0.1, 1]
    assert coefficients.symbols(p_values) == [
        *("***", "***", "**", "**", "*", "*", ".", ".", "", "")
    ]


def test_spector_equals_statsmodels(spector: pd.DataFrame) -> None:
    import statsmodels.formula.api as smf

    names = ["GPA", "TUCE", "PSI"]
    z = spector.assign(
        **{n: (spector[n] - spector[n].mean()) / spector[n].std(ddof=0) for n in names}
    )
    theirs = smf.logit("GRADE ~ GPA + TUCE + PSI", z).fit(disp=0)
    table = coefficients.coefficients(fit(spector, names))
    assert table["term"].tolist() == ["intercept", *names]
    assert table["coefficient"].tolist() == pytest.approx(theirs.params.tolist())
    assert table["standard_error"].tolist() == pytest.approx(theirs.bse.tolist())
    assert table["p_value"].tolist() == pytest.approx(theirs.pvalues.tolist())
    assert table[["low", "high"]].to_numpy() == pytest.approx(theirs.conf_int().to_numpy())
    # Textbook p-values of the slopes: 0.025, 0.501, 0.025.
    assert table["p_value"][1:].round(3).tolist() == [0.025, 0.501, 0.025]
    assert table["symbol"][1:].tolist() == ["*", "", "*"]
    assert table["odds_ratio"].tolist() == pytest.approx(np.exp(theirs.params).tolist())
    assert table["odds_low"].tolist() == pytest.approx(np.exp(theirs.conf_int()[0]).tolist())
    assert (table["conditional"] == table["coefficient"]).all()
    assert (table["problem"] == "").all()
    assert (table["category"] == "").all()
    assert table[["fit", "n"]].drop_duplicates().values.tolist() == [["maximum likelihood", 32]]


def test_conditional_coefficients_are_the_categories_own(simulate) -> None:
    """With all interactions, a category's coefficients are those of a regression on its rows."""
    import statsmodels.formula.api as smf

    groups = simulate(900)
    table = coefficients.coefficients(fit(groups)).set_index("term")
    names = {"log_popularity": "log_SPop", "scons": "SCons", "cert": "Cert"}
    z = groups.assign(
        **{n: (groups[c] - groups[c].mean()) / groups[c].std(ddof=0) for c, n in names.items()}
    )
    own = z[z["relation"] == "b"].assign(y=lambda rows: rows["correct"].astype(int))
    theirs = smf.logit("y ~ log_SPop + SCons + Cert", own).fit(disp=0)
    rows = table.loc[["QCat[T.b]", *(f"QCat[T.b]:{n}" for n in names.values())]]
    assert rows["conditional"].tolist() == pytest.approx(theirs.params.tolist())
    assert rows[["conditional_low", "conditional_high"]].to_numpy() == pytest.approx(
        theirs.conf_int().to_numpy()
    )
    assert (rows["category"] == "b").all()
    assert table.loc["SCons", "category"] == "a"
    summed = table.loc["SCons", "coefficient"] + table.loc["QCat[T.b]:SCons", "coefficient"]
    assert table.loc["QCat[T.b]:SCons", "conditional"] == pytest.approx(summed)
    assert table.loc["SCons", "conditional"] == table.loc["SCons", "coefficient"]


def test_the_order_is_the_papers(simulate) -> None:
    terms = coefficients.coefficients(fit(simulate(300, "ab")))["term"].tolist()
    assert terms == [
        *("intercept", "QCat[T.b]", "log_SPop", "QCat[T.b]:log_SPop"),
        *("SCons", "QCat[T.b]:SCons", "Cert", "QCat[T.b]:Cert"),
    ]


def test_level(simulate) -> None:
    made = fit(simulate(300))
    narrow, wide = (coefficients.coefficients(made, level=level) for level in (0.5, 0.95))
    ratio = (narrow["high"] - narrow["coefficient"]) / (wide["high"] - wide["coefficient"])
    assert ratio.tolist() == pytest.approx([0.67449 / 1.95996] * 12, rel=1e-4)


def test_wald_equals_statsmodels(simulate) -> None:
    import statsmodels.formula.api as smf

    groups = simulate(900)
    table = coefficients.wald(fit(groups))
    names = {"log_popularity": "log_SPop", "scons": "SCons", "cert": "Cert"}
    z = groups.assign(
        **{n: (groups[c] - groups[c].mean()) / groups[c].std(ddof=0) for c, n in names.items()},
        y=groups["correct"].astype(int),
        QCat=groups["relation"].to_numpy(dtype=object),
    )
    result = smf.logit("y ~ QCat*log_SPop + QCat*SCons + QCat*Cert", z).fit(disp=0)
    theirs = result.wald_test_terms(scalar=True).table
    assert table["term"].tolist() == ["intercept", *theirs.index[1:]]
    assert table["statistic"].tolist() == pytest.approx(theirs["statistic"].astype(float).tolist())
    assert table["p_value"].tolist() == pytest.approx(theirs["pvalue"].astype(float).tolist())
    assert table["df"].tolist() == [1, 2, 1, 2, 1, 2, 1, 2]
    assert table["symbol"].tolist() == coefficients.symbols(table["p_value"])


def test_a_category_without_a_right_answer_is_marked(simulate) -> None:
    groups = simulate(600)
    groups["correct"] &= groups["relation"] != "b"
    table = coefficients.coefficients(fit(groups))
    assert table["fit"].unique().tolist() == ["penalised (separated)"]
    of_b = table["category"] == "b"
    assert (table.loc[of_b, "problem"] == "separated").all()
    assert (table.loc[~of_b, "problem"] == "").all()
    assert np.isfinite(table[["coefficient", "low", "high", "p_value"]]).all(axis=None)
    assert coefficients.wald(fit(groups))["fit"].unique().tolist() == ["penalised (separated)"]


def test_a_separated_reference_leaves_the_others_their_own(simulate) -> None:
    groups = simulate(600)
    groups["correct"] &= groups["relation"] != "a"
    table = coefficients.coefficients(fit(groups))
    # Every coefficient is relative to the reference's, and so undetermined; the sums are not.
    assert (table["problem"] == "separated").all()
    of_a = table["category"] == "a"
    assert (table.loc[of_a, "conditional_problem"] == "separated").all()
    assert (table.loc[~of_a, "conditional_problem"] == "").all()


def test_a_category_with_a_constant_predictor_is_collinear(simulate) -> None:
    groups = simulate(600)
    groups.loc[groups["relation"] == "c", "cert"] = 1.0
    table = coefficients.coefficients(fit(groups)).set_index("term")
    assert table["fit"].iloc[0] == "penalised (collinear)"
    # Its intercept and slope cannot be told apart; the rest is determined.
    expected = {"QCat[T.c]", "QCat[T.c]:Cert"}
    assert set(table.index[table["problem"] == "collinear"]) == expected
    assert set(table.index[table["conditional_problem"] == "collinear"]) == expected


def test_within(simulate) -> None:
    groups = pd.concat([simulate(300), simulate(300, model="n", seed=2)])
    groups["correct"] &= groups["relation"] != "c"
    table = coefficients.within(groups, ["b", "c", "d"])
    own = groups[(groups["relation"] == "b") & (groups["model"] == "n")]
    made = fit(own, ["SPop", "SCons", "Cert"])
    assert made.scaling.loc["Cert", "mean"] == pytest.approx(own["cert"].mean())
    rows = table[(table["relation"] == "b") & (table["model"] == "n")]
    assert rows["term"].tolist() == ["intercept", "log_SPop", "SCons", "Cert"]
    assert rows["coefficient"].tolist() == pytest.approx(made.estimates.coefficients.tolist())
    assert rows["odds_ratio"].tolist() == pytest.approx(np.exp(rows["coefficient"]).tolist())
    none = table[table["relation"] != "b"]
    assert (
        none["fit"].tolist()
        == [
            "none: all 100 answers are wrong",
            "none: there are no questions",
        ]
        * 2
    )
    assert none["n"].tolist() == [100, 0] * 2
    assert none["coefficient"].isna().all()
    only = coefficients.within(groups, ["c"])
    assert only["fit"].tolist() == ["none: all 100 answers are wrong"] * 2
    assert list(only) == list(table)
    assert list(table) == ["relation", *(c for c in coefficients.coefficients(made) if c in table)]
