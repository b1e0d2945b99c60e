"""The regression against statsmodels, known coefficients, and what only the training rows may set."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from factrobust.metrics import regression as prediction

STUDENTS = ("GPA", "TUCE", "PSI")


def test_spector_as_in_the_textbook(spector: pd.DataFrame) -> None:
    # Greene, Econometric Analysis, table 21.1; predictors here are standardised.
    made = prediction.fit(spector, STUDENTS)
    sd, mean = made.scaling["sd"], made.scaling["mean"]
    b = made.estimates.coefficients
    slopes = (b[list(STUDENTS)] / sd).to_dict()
    assert slopes == pytest.approx({"GPA": 2.82611, "TUCE": 0.09516, "PSI": 2.37869}, abs=1e-5)
    assert b["Intercept"] - (b[list(STUDENTS)] * mean / sd).sum() == pytest.approx(
        -13.02135, abs=1e-4
    )
    errors = np.sqrt(np.diag(made.estimates.covariance))[1:] / sd
    assert errors.to_dict() == pytest.approx(
        {"GPA": 1.26294, "TUCE": 0.14155, "PSI": 1.06456}, abs=1e-4
    )
    assert made.estimates.log_likelihood == pytest.approx(-12.8896, abs=1e-4)
    assert made.null_log_likelihood == pytest.approx(-20.5917, abs=1e-4)
    assert made.pseudo_r2 == pytest.approx(0.3740, abs=1e-4)
    assert made.aic == pytest.approx(2 * 4 + 2 * 12.8896, abs=1e-3)
    assert made.estimates.method == "maximum likelihood"


def test_spector_equals_statsmodels(spector: pd.DataFrame) -> None:
    import statsmodels.formula.api as smf

    theirs = smf.logit("GRADE ~ GPA + TUCE + PSI", spector).fit(disp=0)
    made = prediction.fit(spector, STUDENTS)
    assert made.pseudo_r2 == pytest.approx(theirs.prsquared)
    assert made.aic == pytest.approx(theirs.aic)
    new = spector[::3].assign(GPA=lambda rows: rows["GPA"] - 0.4)
    assert prediction.predict(made, new) == pytest.approx(theirs.predict(new).to_numpy())


def test_the_formula_of_the_paper(simulate) -> None:
    import statsmodels.formula.api as smf

    groups = simulate(600)
    made = prediction.fit(groups)
    z = {
        name: (groups[c] - groups[c].mean()) / groups[c].std(ddof=0)
        for name, c in (("log_SPop", "log_popularity"), ("SCons", "scons"), ("Cert", "cert"))
    }
    data = pd.DataFrame(z | {"correct": groups["correct"].astype(int)}).assign(
        QCat=groups["relation"].to_numpy(dtype=object)
    )
    formula = "correct ~ QCat*log_SPop + QCat*SCons + QCat*Cert"
    theirs = smf.logit(formula, data).fit(disp=0)
    assert made.estimates.coefficients.to_dict() == pytest.approx(theirs.params.to_dict())
    assert made.estimates.covariance == pytest.approx(theirs.cov_params().to_numpy())
    assert prediction.predict(made, groups) == pytest.approx(theirs.predict().tolist())
    assert made.categories == ("a", "b", "c")


def test_known_coefficients_are_recovered(simulate) -> None:
    groups = simulate(30_000, seed=1)
    made = prediction.fit(groups)
    b = made.estimates.coefficients
    sd, mean = made.scaling["sd"], made.scaling["mean"]
    truth = {"log_SPop": 0.8, "SCons": 0.4, "Cert": 0.6}
    expected = {name: slope * sd[name] for name, slope in truth.items()}
    expected["Intercept"] = -0.5 + sum(truth[name] * mean[name] for name in truth)
    for i, relation in ((1, "b"), (2, "c")):
        expected[f"QCat[T.{relation}]:SCons"] = 0.2 * i * sd["SCons"]
        expected[f"QCat[T.{relation}]:log_SPop"] = expected[f"QCat[T.{relation}]:Cert"] = 0
        expected[f"QCat[T.{relation}]"] = 0.5 * i + 0.2 * i * mean["SCons"]
    assert set(expected) == set(b.index)
    errors = np.sqrt(np.diag(made.estimates.covariance))
    z = (b - pd.Series(expected)[b.index]) / errors
    assert z.abs().max() < 3.5
    assert errors.max() < 0.06


def test_standardised_on_the_rows_fitted_only(simulate) -> None:
    groups = simulate(400).assign(cert=lambda rows: 5 + 3 * rows["cert"])
    train, test = groups[:300], groups[300:].assign(cert=lambda rows: 100 * rows["cert"])
    made = prediction.fit(train)
    assert made.scaling.loc["Cert"].tolist() == pytest.approx(
        [train["cert"].mean(), np.sqrt(np.mean((train["cert"] - train["cert"].mean()) ** 2))]
    )
    assert made.scaling.loc["log_SPop", "mean"] == pytest.approx(train["log_popularity"].mean())
    # A question's prediction does not depend on the questions predicted beside it.
    together = prediction.predict(made, test)
    alone = [prediction.predict(made, test[i : i + 1])[0] for i in range(0, 100, 9)]
    assert together[::9].tolist() == pytest.approx(alone)


def test_prediction_by_hand(simulate) -> None:
    groups = simulate(500)
    made = prediction.fit(groups, ["QCat", "SCons"])
    b = made.estimates.coefficients
    x = 1.3
    z = (x - groups["scons"].mean()) / groups["scons"].std(ddof=0)
    new = groups[:2].assign(relation=["a", "b"], scons=x)
    expected = [
        expit(b["Intercept"] + b["SCons"] * z),
        expit(b["Intercept"] + b["QCat[T.b]"] + (b["SCons"] + b["QCat[T.b]:SCons"]) * z),
    ]
    assert prediction.predict(made, new).tolist() == pytest.approx(expected)
    assert prediction.predict(made, new[:0]).tolist() == []


def test_row_labels_do_not_matter(simulate) -> None:
    groups = simulate(300)
    plain = prediction.predict(prediction.fit(groups[:200]), groups[200:])
    labelled = groups.set_axis([7] * 300)
    assert prediction.predict(
        prediction.fit(labelled[:200]), labelled[200:]
    ).tolist() == pytest.approx(plain.tolist())


@pytest.mark.parametrize(
    ("predictors", "names"),
    [
        (["QCat"], ["Intercept", "QCat[T.b]", "QCat[T.c]"]),
        (["SPop", "Cert"], ["Intercept", "log_SPop", "Cert"]),
        (["agreement"], ["Intercept", "agreement"]),
        ([], ["Intercept"]),
    ],
)
def test_other_sets_of_predictors(simulate, predictors: list[str], names: list[str]) -> None:
    groups = simulate(300).assign(agreement=np.linspace(0, 1, 300))
    made = prediction.fit(groups, predictors)
    assert made.estimates.coefficients.index.tolist() == names
    if predictors in (["QCat"], []):  # then the probabilities are the shares
        key = groups["relation"] if predictors else pd.Series("all", index=groups.index)
        shares = groups.groupby(key.to_numpy())["correct"].transform("mean")
        assert prediction.predict(made, groups) == pytest.approx(shares.tolist())


def test_odd_names_of_categories(simulate) -> None:
    plain = simulate(400)
    odd = plain.replace({"relation": {"b": "place of birth: [T.x]", "c": "where's it?"}})
    expected = prediction.fit(plain), prediction.fit(odd)
    assert expected[0].estimates.coefficients.tolist() == pytest.approx(
        expected[1].estimates.coefficients.tolist()
    )
    assert prediction.predict(expected[1], odd) == pytest.approx(
        prediction.predict(expected[0], plain)
    )


def test_one_category_is_left_to_the_intercept(simulate) -> None:
    groups = simulate(200, relations="a")
    with_category, without = prediction.fit(groups), prediction.fit(groups, prediction.NUMERIC)
    pd.testing.assert_series_equal(
        with_category.estimates.coefficients, without.estimates.coefficients
    )
    assert prediction.predict(with_category, groups) == pytest.approx(
        prediction.predict(without, groups)
    )


def test_a_constant_predictor_says_nothing(simulate) -> None:
    groups = simulate(200, relations="a")
    flat = groups.assign(cert=1 + 1e-16 * np.arange(200))
    made = prediction.fit(flat)
    assert made.estimates.method == "penalised (collinear)"
    assert made.estimates.coefficients["Cert"] == pytest.approx(0, abs=1e-12)
    moved = prediction.predict(made, flat.assign(cert=50.0))
    assert moved.tolist() == pytest.approx(prediction.predict(made, flat).tolist())


def test_a_category_without_a_right_answer(simulate) -> None:
    groups = simulate(600)
    groups["correct"] &= groups["relation"] != "b"
    made = prediction.fit(groups)
    assert made.estimates.method == "penalised (separated)"
    p = pd.Series(prediction.predict(made, groups)).groupby(groups["relation"]).mean()
    shares = groups.groupby("relation")["correct"].mean()
    assert 0 < p["b"] < 0.05
    assert p["a"] == pytest.approx(shares["a"], abs=0.01)
    assert p["c"] == pytest.approx(shares["c"], abs=0.01)
    assert 0 < made.pseudo_r2 < 1


def test_a_category_of_one_question(simulate) -> None:
    groups = simulate(300).assign(relation=lambda rows: rows["relation"].mask(rows.index == 7, "d"))
    made = prediction.fit(groups)
    assert made.estimates.method == "penalised (collinear, separated)"
    assert np.isfinite(prediction.predict(made, groups)).all()


def test_penalised_degrees_lie_between(simulate) -> None:
    groups = simulate(60)
    groups["correct"] &= groups["relation"] != "b"
    made = prediction.fit(groups)
    assert 4 < made.estimates.degrees < 12
    assert made.aic == pytest.approx(2 * made.estimates.degrees - 2 * made.estimates.log_likelihood)


def test_categories_not_seen_are_named(simulate) -> None:
    groups = simulate(300)
    made = prediction.fit(groups[groups["relation"] != "c"])
    assert prediction.seen(made, groups[:3]).tolist() == [True, True, False]
    with pytest.raises(ValueError, match=r"100 question.* that the fit has not seen \(c\)"):
        prediction.predict(made, groups)
    numeric = prediction.fit(groups[groups["relation"] != "c"], prediction.NUMERIC)
    assert prediction.seen(numeric, groups).all()
    assert len(prediction.predict(numeric, groups)) == 300


def test_what_cannot_be_fitted(simulate) -> None:
    groups = simulate(90)
    for value, word in ((True, "right"), (False, "wrong")):
        with pytest.raises(ValueError, match=f"m: all 90 answers are {word}, so there is nothing"):
            prediction.fit(groups.assign(correct=value))
    for bad in (np.nan, -np.inf):
        lacking = groups.assign(
            log_popularity=groups["log_popularity"].mask(groups.index == 4, bad)
        )
        with pytest.raises(
            ValueError, match="1 of 90 questions, such as b/4, have no log_popularity"
        ):
            prediction.fit(lacking)
        assert prediction.fit(lacking, ["SCons"]).n == 90
    with pytest.raises(ValueError, match="no column 'entailment' in the table; it has model"):
        prediction.fit(groups, ["entailment"])
    with pytest.raises(ValueError, match="of one model, not of 2"):
        prediction.fit(pd.concat([groups, groups.assign(model="n")]))
    with pytest.raises(ValueError, match="a/0 has several rows of m"):
        prediction.fit(pd.concat([groups, groups]))


def test_summary(simulate) -> None:
    tables = [
        simulate(300),
        simulate(300, model="n", seed=4),
        simulate(30, model="o", correct=False),
    ]
    table = prediction.summary(pd.concat(tables))
    assert table["model"].tolist() == ["m", "n", "o"]
    assert table["n"].tolist() == [300, 300, 30]
    assert table["fit"].tolist() == ["maximum likelihood"] * 2 + ["none: all 30 answers are wrong"]
    made = prediction.fit(tables[1])
    assert table.loc[1, ["pseudo_r2", "aic"]].tolist() == pytest.approx([made.pseudo_r2, made.aic])
    assert table.loc[1, "degrees"] == 12
    assert table.loc[2, ["pseudo_r2", "aic", "degrees"]].isna().all()
