from common import *
NAME='3.4-simpsons-lesson'
CELLS=[
('md','''
# 3.4 Simpson's lesson: within relations and between them

TITLE
'''),
('code',START+SAMPLES+TAIL+'''repeats: int = 3  # of the five-fold cross-validation
''','parameters'),
('code','''
import pandas as pd

from factrobust import tables, wording
from factrobust.wording import metrics, plots, prediction, probe, regression

study = wording.Study(globals())
groups = probe.predictable(study.groups, study.models)
''','nbval-ignore-output'),
('md','''
## What the paper predicts from

Will an answer be right? The paper (section 4) predicts it from the question's category (**QCat**, its relation), the subject's page
views (**SPop**; our facts have none, see 3.7) and two numbers from the model's own answers, both mean cosines over pairs: **SCons**
of the greedy answers to all wordings (3.3), and certainty, **Cert**, of ten answers to the original wording, sampled at temperature
0.5. Each row is a model and a question:
'''),
('code','''
groups[["model", "group_id", "correct", "scons", "cert"]].groupby("model").head(2).round(2)
'''),
('md','''
## Two scatter plots

At the left a point is a relation: its mean of a predictor, and its share of right answers. At the right each question is set
against its own relation: both means are subtracted, and the questions stand in eight groups of equal size, with 95%
intervals. The left side says which *relations* are easy. Only the right side says which *answers* to believe.
'''),
('code','''
between, inside = metrics.between_and_within(groups, {"scons": "SCons", "cert": "Cert"})
within = study.means(inside, ["model", "predictor", "x"], "correct")
points = tables.stacked({"between": between, "within": within}, "level")
study.save_figure(plots.within_and_between(points), "3-wording/figure-simpson", points)
'''),
('md','''C1'''),
('md','''
## The same in a regression

A logistic regression of right answers on both predictors, once with one intercept for all questions, once with an intercept
$\\alpha_k$ for each relation $k$ ($z$: in standard deviations):

$$\\log \\frac{p}{1 - p} = \\alpha + \\beta z_{SCons} + \\gamma z_{Cert}
\\qquad\\text{and}\\qquad \\log \\frac{p}{1 - p} = \\alpha_k + \\beta z_{SCons} + \\gamma z_{Cert}$$

The odds ratio $e^\\beta$ says how many times larger the odds of a right answer are with one standard deviation more. The intervals leave
out one relation after the other (jackknife), since the questions of a relation resemble each other.
'''),
('code','''
kinds = {"one intercept": ("SCons", "Cert"), "an intercept a relation": ("QCat", "SCons", "Cert")}
odds = {name: regression.odds_ratios(groups, terms) for name, terms in kinds.items()}
odds = tables.stacked(odds, "regression").sort_values(["model", "term"], kind="stable")
study.save_table(odds.reset_index(drop=True), "3-wording/table-simpson").round(2)
'''),
('md','''C2'''),
('md','''
## What the paper published

The paper's regression has the category *and* a slope in each category: its published slopes (tables 10 to 14) are slopes
within relations. Their medians over categories, in logits a standard deviation, and the share of categories in which they are above 0:
'''),
('code','''
papers = pd.concat(study.published(f"3-wording-table-{k}") for k in range(10, 15))
papers["positive"] = papers["conditional_coefficient"] > 0
slopes = papers[papers["predictor"].isin(["SCons", "Cert"])].groupby(["model", "predictor"])
slopes.agg(median=("conditional_coefficient", "median"), positive=("positive", "mean")).unstack().round(2)
'''),
('md','''C3'''),
('md','''
## All relations at once (table 8)

The paper's model has slopes for each category, 64 coefficients with SPop. McFadden's $R^2 = 1 - \\log L / \\log L_0$ compares the
likelihood with that of an intercept alone; the AIC adds a cost for coefficients, lower is better. A fit without a finite maximum
is *penalised*: coefficients are drawn towards 0 (normal prior, standard deviation 2.5).
'''),
('code','''
sets = [("QCat", "SCons", "Cert"), ("SCons", "Cert"), ("Cert",), ("SCons",)]
one_slope = regression.summary(groups, sets[:1], interactions=False)
one_slope["predictors"] += ", one slope"
table8 = pd.concat([regression.summary(groups, sets), one_slope])
table8 = table8.sort_values("model", kind="stable").reset_index(drop=True)
study.save_table(table8, "3-wording/table-08").round(2)
'''),
('md','''C4'''),
('md','''
## On questions not seen before (tables 5 and 6)

The paper fits on four fifths of the questions, tests on one fifth, and compares with a baseline that always says what is more
frequent. One such split of ours has 96 test questions. So we take all five fifths in turn, three times over, and print the
difference to that baseline on the same questions; and the relation's own share of right answers as a second baseline.
'''),
('code','''
tests = {", ".join(terms): terms for terms in sets}
rows = prediction.ladder(groups, tests, repeats=repeats, seed=seed)
table6 = prediction.compared(rows, reference="majority", n_boot=n_boot)
table6 = table6[table6["measure"] == "accuracy"].drop(columns="measure").reset_index(drop=True)
study.save_table(table6, "3-wording/table-06").round(3)
'''),
('md','''C5'''),
('code','''
study.published("3-wording-table-6").query("questions == 'all'").drop(columns=["where", "check"])
'''),
('md','''C6'''),
('md','''
## What we saw, and what it means

END
'''),
]
