from common import *
NAME='3.8-appendix'
CELLS=[
('md','''
# 3.8 Appendix: the paper's other tables and figures

Tables 3, 4, 7 and 9 to 14 and figure 5 of the paper, for our models. 3.4 has what follows from them; with thirty
questions a relation, single coefficients say little.
'''),
('code',START+SAMPLES+TAIL,'parameters'),
('code','''
import pandas as pd

from factrobust import tables, wording
from factrobust.datasets.published import load_labels
from factrobust.wording import plots, probe, regression

study = wording.Study(globals())
groups = study.groups
known = probe.predictable(groups, study.models)
parts = [own for _, own in known.groupby("model", sort=False)]
''','nbval-ignore-output'),
('md','''
## Table 3: why cosine, not entailment?

For short answers the paper prefers the cosine, because entailment is not symmetric, and unsure even of equal words (0.876). Its pairs
and numbers, and our cosine, which is close:
'''),
('code','''
paper = study.published("3-wording-table-3").drop(columns=["where", "check"])
paper = paper.rename(columns={"nli": "paper_nli", "cosine": "paper_cosine"})
study.save_table(probe.compared(paper, study.encoder), "3-wording/table-03").round(3)
'''),
('md','''
## Table 4: certainty in examples

The paper prints five of ten samples (four in the first example), so its certainty and ours need not agree. The order is the same.
'''),
('code','''
table4 = study.published("3-wording-table-4")[["question", "sampled_answers", "certainty"]]
table4["ours"] = study.encoder.similarity(table4["sampled_answers"].str.split("|").tolist())
study.save_table(table4, "3-wording/table-04-published").round(2)
'''),
('md','''
## Figure 5: is the logit linear?

Each relation's questions in four bins of equal size; each shaded row is a relation, from 0 to 1.
'''),
('code','''
binned = regression.binned_correctness(groups)
study.save_figure(plots.binned_correctness(binned), "3-wording/figure-05", binned)
'''),
('md','''F5'''),
('md','''
## Table 9: what each term contributes

Wald's statistic tests whether all coefficients of a term are 0. Beside ours the smallest and largest of the paper's five models, on
14,267 questions; statistics grow with their number, so only the order can be compared.
'''),
('code','''
terms = ("QCat", "SCons", "Cert")
full = [regression.fit(own, terms) for own in parts]
paper = study.published("3-wording-table-9").groupby("regressor")["wald"].agg(["min", "max"])
table9 = pd.concat(map(regression.wald, full)).join(paper.add_prefix("paper_"), on="term")
study.save_table(table9.reset_index(drop=True), "3-wording/table-09").drop(columns=["fit", "n"]).round(3)
'''),
('md','''F9'''),
('md','''
## Tables 10 to 14: all categories

Conditional coefficients are each category's own intercept and slopes. Their medians over categories, and the share of categories in which they are above 0:
'''),
('code','''
ours = pd.concat(map(regression.coefficients, full))
study.save_table(ours, "3-wording/table-10")
plain = ours["term"].str.replace(regression.CATEGORY, "", regex=True).str.strip(":")
ours["predictor"] = plain.replace("", "intercept")
ours["category"] = ours["category"].str.replace("_", " ")
papers = pd.concat(study.published(f"3-wording-table-{k}") for k in range(10, 15))
papers = papers.rename(columns={"conditional_coefficient": "conditional"})
both = tables.stacked({"ours": ours, "paper": papers}, "whose")
both["positive"] = both["conditional"] > 0
counted = both.groupby(["whose", "model", "predictor"])
counted.agg(median=("conditional", "median"), positive=("positive", "mean")).unstack().round(2)
'''),
('md','''F10'''),
('md','''
## Table 7: two categories by themselves

The numbers in the paper's table 7 are odds ratios (of Flan-UL2, in the last column).
'''),
('code','''
table7 = regression.within(known, ["capital", "sport"], terms[1:])
study.save_table(table7, "3-wording/table-07")
paper = study.published("3-wording-table-7").set_index(["category", "predictor"])["estimate"]
numbers = ["relation", "term", "model", "odds_ratio", "odds_low", "odds_high", "n"]
table7[numbers].join(paper.rename("paper"), on=["relation", "term"]).round(2)
'''),
('md','''F7'''),
('md','''
## With labels of a reader model

The regression of 3.4 with an intercept for each relation is too large for the hundred answers of each model that a reader model labelled
(3.6). Without relations, by its labels and by our rule:
'''),
('code','''
labels = load_labels("wording_answers").query("label != 'unclear'")
labels["group_id"] = labels["question_id"].str.removesuffix("#0")
read = groups.merge(labels[["model", "group_id", "label"]])
by_label = {"reader model": read.assign(correct=read["label"] == "right"), "our rule": read}
fitted = regression.within(tables.stacked(by_label, "relation"), list(by_label), terms[1:])
fitted = study.save_table(fitted.rename(columns={"relation": "labels"}), "3-wording/table-labels")
shown = fitted[fitted["term"].isin(["SCons", "Cert"])]
shown[["model", "term", "labels", "odds_ratio", "odds_low", "odds_high", "n"]].round(2)
'''),
('md','''
## What we saw, and what it means

F-END
'''),
]
