"""Will a model answer a question correctly? Paper 3's logistic regression (4.2), fitted and applied.

Predictors have the paper's names: QCat (category), SPop (log of the subject's popularity), SCons and
Cert; any other is a numeric column of the table, such as agreement. With QCat, each numeric predictor
has a slope of its own in each category: correct ~ QCat*log_SPop + QCat*SCons + QCat*Cert. Numeric
predictors are standardised with the mean and standard deviation of the rows fitted on. Tables are
those of `metrics.wording.groups`.

How coefficients are estimated, and what is done where maximum likelihood has no finite estimates,
stands in `metrics.logistic`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from factrobust.metrics.logistic import Estimates, estimate, log_likelihood

Array = NDArray[np.float64]
COLUMNS = {"QCat": "relation", "SPop": "log_popularity", "SCons": "scons", "Cert": "cert"}
NUMERIC = ("SPop", "SCons", "Cert")
FULL = ("QCat", *NUMERIC)
TERMS = {"SPop": "log_SPop"}  # where a predictor's name in the formula is another
CATEGORY = re.compile(r"QCat\[T\.(.*?)\](?=:|$)")  # in the name of a coefficient


@dataclass(frozen=True)
class Fit:
    """A logistic regression of one model's correctness."""

    model: str
    predictors: tuple[str, ...]
    categories: tuple[str, ...]  # of QCat in the rows fitted on; the first is the reference
    scaling: pd.DataFrame  # index: numeric term of the formula; mean, sd
    estimates: Estimates
    null_log_likelihood: float  # of the intercept alone
    n: int

    @property
    def pseudo_r2(self) -> float:
        """McFadden's pseudo R2, 1 - log-likelihood / null log-likelihood."""
        return 1 - self.estimates.log_likelihood / self.null_log_likelihood

    @property
    def aic(self) -> float:
        """Akaike's criterion, 2 degrees - 2 log-likelihood; lower is better."""
        return 2 * self.estimates.degrees - 2 * self.estimates.log_likelihood


def fit(groups: pd.DataFrame, predictors: Sequence[str] = FULL) -> Fit:
    """Fit correctness on the predictors, one row a question of one model.

    A numeric predictor that does not vary becomes 0 throughout, and is reported as collinear; a
    QCat of one category is left to the intercept. Raises ValueError for rows of several models,
    two of a question, a predictor that is missing somewhere, or answers all right or all wrong.
    """
    frame, numeric = _frame(groups, predictors)
    names = groups["model"].unique()
    if len(names) != 1:
        raise ValueError(f"a fit takes the rows of one model, not of {len(names)}; select one")
    if (twice := groups["group_id"].duplicated()).any():
        raise ValueError(
            f"{groups['group_id'][twice].iloc[0]} has several rows of {names[0]}; keep one a question"
        )
    if (reason := undefined(groups)) is not None:
        raise ValueError(
            f"{names[0]}: {reason}, so there is nothing to predict; ask other questions"
        )
    mean, sd = frame[numeric].mean(), frame[numeric].std(ddof=0)
    flat = sd <= 1e-12 * mean.abs().clip(lower=1.0)  # no more than rounding
    scaling = pd.DataFrame({"mean": mean, "sd": sd.mask(flat, np.inf)})
    categories = tuple(sorted(frame["QCat"].unique())) if "QCat" in frame else ()
    share = np.full(len(frame), frame["correct"].mean())
    return Fit(
        model=str(names[0]),
        predictors=tuple(predictors),
        categories=categories,
        scaling=scaling,
        estimates=estimate(_model(frame, scaling, categories)),
        null_log_likelihood=log_likelihood(logit(share), frame["correct"].to_numpy()),
        n=len(frame),
    )


def predict(fitted: Fit, groups: pd.DataFrame) -> Array:
    """Predicted probability that each question is answered correctly, [row].

    Raises ValueError for a category that the fit has not seen (see `seen`).
    """
    new = ~seen(fitted, groups)
    if new.any():
        names = ", ".join(sorted(groups.loc[new, COLUMNS["QCat"]].unique()))
        raise ValueError(
            f"{new.sum()} question(s) are of categories that the fit has not seen ({names}); fit on "
            "rows that hold them, or drop these questions"
        )
    frame, _ = _frame(groups, fitted.predictors)
    data = {n: c.to_numpy() for n, c in _standardised(frame, fitted.scaling).items()}
    data["Intercept"] = data[""] = np.ones(len(frame))
    logits = np.zeros(len(frame))
    # Column by column: building the design from the formula would cost more than a fit.
    coefficients = fitted.estimates.coefficients
    for name, coefficient in zip(coefficients.index, coefficients, strict=True):
        category, term = CATEGORY.search(name), CATEGORY.sub("", name).strip(":")
        rows = 1.0 if category is None else data["QCat"] == category[1]
        logits += coefficient * rows * data[term]
    return expit(logits)


def seen(fitted: Fit, groups: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether the fit knows each question's category, [row]; always so without QCat."""
    if "QCat" not in fitted.predictors:
        return np.ones(len(groups), dtype=bool)
    return groups[COLUMNS["QCat"]].astype(str).isin(fitted.categories).to_numpy(dtype=bool)


def undefined(groups: pd.DataFrame) -> str | None:
    """Why no regression can be fitted to these rows (none, all right, all wrong), or None."""
    right = int(groups["correct"].sum())
    if len(groups) == 0:
        return "there are no questions"
    if right in (0, len(groups)):
        return f"all {len(groups)} answers are {'right' if right else 'wrong'}"
    return None


def summary(groups: pd.DataFrame, predictors: Sequence[str] = FULL) -> pd.DataFrame:
    """Goodness of fit without a held-out part, one row a model (table 8).

    Columns: model, pseudo_r2, aic, degrees, n, fit. A model for which no regression can be fitted
    has NaN and the reason in `fit`.
    """
    rows = []
    for model, part in groups.groupby("model", sort=False):
        if (reason := undefined(part)) is not None:
            rows.append((model, np.nan, np.nan, np.nan, len(part), f"none: {reason}"))
            continue
        made = fit(part, predictors)
        rows.append(
            (model, made.pseudo_r2, made.aic, made.estimates.degrees, made.n, made.estimates.method)
        )
    return pd.DataFrame(rows, columns=["model", "pseudo_r2", "aic", "degrees", "n", "fit"])


def _frame(groups: pd.DataFrame, predictors: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Outcome and predictors by their names in the formula, and which of them are numeric."""
    columns = {TERMS.get(name, name): COLUMNS.get(name, name) for name in predictors}
    if absent := [c for c in columns.values() if c not in groups]:
        raise ValueError(
            f"no column {absent[0]!r} in the table; it has {', '.join(groups.columns)}"
        )
    frame = pd.DataFrame({"correct": groups["correct"].to_numpy(dtype=float)})
    numeric = [name for name in columns if name != "QCat"]
    for name in numeric:
        frame[name] = groups[columns[name]].to_numpy(dtype=float)
        if (bad := ~np.isfinite(frame[name].to_numpy())).any():
            raise ValueError(
                f"{bad.sum()} of {len(bad)} questions, such as {groups['group_id'].iloc[bad.argmax()]}, "
                f"have no {columns[name]}; drop them, or leave {name} out of the predictors"
            )
    if "QCat" in columns:
        frame["QCat"] = groups[columns["QCat"]].astype(str).to_numpy(dtype=object)
    return frame, numeric


def _standardised(frame: pd.DataFrame, scaling: pd.DataFrame) -> pd.DataFrame:
    mean, sd = scaling["mean"], scaling["sd"]
    return frame.assign(**{term: (frame[term] - mean[term]) / sd[term] for term in scaling.index})


def _model(frame: pd.DataFrame, scaling: pd.DataFrame, categories: Sequence[str]) -> Any:
    """statsmodels' Logit of the frame, standardised, with the categories given."""
    import statsmodels.formula.api as smf

    terms = list(scaling.index)
    data = _standardised(frame, scaling)
    if len(categories) > 1:
        levels = pd.Index(list(categories), dtype=object)
        data["QCat"] = pd.Categorical(frame["QCat"], categories=levels)
        terms = [f"QCat*{t}" for t in terms] or ["QCat"]
    return smf.logit(f"correct ~ {' + '.join(terms) or '1'}", data)
