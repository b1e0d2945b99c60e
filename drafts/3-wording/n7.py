from common import *
NAME='3.7-real-questions'
CELLS=[
('md','''
# 3.7 Real questions: page views, and a prediction tested

TITLE
'''),
('code','''
models: list = ["gemma-3-270m", "smollm2-135m-instruct"]  # names, folders, .gguf files or hub ids
data: str = "popqa:data/popqa.csv"  # 1,000 questions of PopQA; or popqa_tp, or a CSV of questions
n_facts: int = 1000  # asked in the original wording
n_worded: int = 200  # of them asked in all wordings
grown: list = ["world-s", "world-m"]  # models of the invented world, asked about it
n_grown: int = 480  # facts of the world, in all wordings
'''+SAMPLES+TAIL,'parameters'),
('code','''
from factrobust import tables, wording
from factrobust.statistics import exact_table
from factrobust.wording import plots, prediction, probe, regression

study = wording.Study(globals(), variants=[0])
marked = study.marked
''','nbval-ignore-output'),
('md','''
PopQA (Mallen et al., 2023) is the question set behind the paper's. `data/popqa.csv` has 1,000 of its 14,267 questions, from all 16
relations, each with its subject's page views a month in the English Wikipedia. This is the paper's popularity. (For our own
facts there is none: how often single words stand in texts says nothing about "Get Out".) Right answers, by relation:
'''),
('code','''
overall = study.means(marked, ["model"], "correct")
study.save_table(overall, "3-wording/table-popqa").round(3)
'''),
('md','''E1'''),
('md','''
## Right answers against page views

The questions in five groups of equal size by their page views, with exact 95% intervals:
'''),
('code','''
place = marked.groupby("model")["log_popularity"].rank(method="first", pct=True)
bins = marked.assign(fifth=(place * 5).clip(upper=4.999).astype(int))
bins["views"] = bins.groupby(["model", "fifth"])["popularity"].transform("median")
views = exact_table(bins, ["model", "views"], "correct")
study.save_figure(plots.by_views(views), "3-wording/figure-views", views)
'''),
('md','''E2 Are popular subjects known better, or are popular *relations* easier? The odds ratio of one standard deviation of log views, with one
intercept and with one a relation (jackknife over relations, as in 3.4):'''),
('code','''
known = probe.predictable(marked, study.models)
kinds = {"one intercept": ("SPop",), "an intercept a relation": ("QCat", "SPop")}
odds = {name: regression.odds_ratios(known, terms) for name, terms in kinds.items()}
study.save_table(tables.stacked(odds, "regression"), "3-wording/table-views").round(2)
'''),
('md','''E3'''),
('md','''
## In all wordings

200 of the questions, spread evenly over relations, in the templates that we wrote for other subjects. Some fit badly (a "city" that is a
village), so paraphrases may lose more here. SCons, bare SCons and Cert (3.3, 3.4), and the regression with page views:
'''),
('code','''
worded = wording.Study(globals() | {"n_facts": n_worded})
groups = probe.predictable(worded.groups, worded.models)
groups.groupby("model")[["correct", "accuracy", "scons", "scons_bare", "cert"]].mean().round(3)
''','nbval-ignore-output'),
('code','''
kinds = {"one intercept": regression.NUMERIC, "an intercept a relation": regression.FULL}
odds = {name: regression.odds_ratios(groups, terms) for name, terms in kinds.items()}
study.save_table(tables.stacked(odds, "regression"), "3-wording/table-popqa-odds").round(2)
'''),
('md','''E4'''),
('md','''
## A prediction, tested

Bare SCons was thought of while the answers to our own facts were read. So it was frozen, and four predictions were written down
(`data/wording_prediction.md`, committed before any of the answers below was looked at). The AUC counts pairs of a right and a wrong
answer of one relation:

1. SmolLM2 on PopQA: bare SCons minus SCons is above 0, and its interval leaves out 0.
2. Gemma on PopQA: the difference is above -0.05.
3. World models, which answer with names alone: the difference is between -0.02 and 0.02.
4. For none of the four is bare SCons surely better than the sum of the log-probabilities of one answer.
'''),
('code','''
world = wording.Study(globals() | {"models": grown, "data": "world", "n_facts": n_grown})
of_world = probe.predictable(world.groups, world.models)
both = tables.stacked({"PopQA": groups, "world": of_world}, "questions")
''','nbval-ignore-output'),
('code','''
both = both.dropna(subset=["logprob_sum"])
named = {"SCons": "scons", "bare SCons": "scons_bare", "sum": "logprob_sum", "Cert": "cert"}
by, tests = ["questions", "model"], []
for reference in ("SCons", "sum"):
    found = prediction.compared(both, by, named, reference=reference, n_boot=n_boot)
    inside = found[found["measure"] == "auc_within"].drop(columns=["measure", "n_missing"])
    tests.append(inside[inside["predictor"] != reference].assign(minus=reference))
tested = pd.concat(tests, ignore_index=True)
study.save_table(tested, "3-wording/table-prediction", models=[*study.models, *world.models, study.encoder])
tested.loc[tested["predictor"] == "bare SCons", [*by, "mean", "minus", "difference", "difference_low", "difference_high", "n"]].round(3)
'''),
('md','''E5'''),
('md','''
## What we saw, and what it means

END
'''),
]
CELLS[2]=('code',CELLS[2][1].replace("from factrobust import tables","import pandas as pd\n\nfrom factrobust import tables"),CELLS[2][2])
