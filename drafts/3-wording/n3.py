from common import *
NAME='3.3-correctness-and-consistency'
CELLS=[
('md','''
# 3.3 Correctness and consistency

TITLE
'''),
('code',START+TAIL,'parameters'),
('code','''
from factrobust import tables, wording
from factrobust.statistics import exact_table, side_by_side
from factrobust.wording import metrics, plots

study = wording.Study(globals())
marked, questions = study.marked, study.originals
''','nbval-ignore-output'),
('md','''
## Correctness

The paper counts an answer as right if an accepted answer is a substring of it (section 3.3.1; PopQA's rule). That finds the
country "US" inside "Ho**us**ton, Texas". Our rule, `correct`, wants whole words, which are no part of a longer name
("Equatorial Guinea") or of words repeated from the question. Both rules, for the original questions and their paraphrases:
'''),
('code','''
asked = marked["variant"].eq(0).map({True: "original", False: "paraphrases"})
keys = ["model", "relation", "group_id", "asked"]
rules = marked.assign(asked=asked).melt(keys, ["substring", "correct"], "rule")
facts = rules.astype({"value": float}).groupby([*keys, "rule"], as_index=False)["value"].mean()
by_rule = study.means(facts, ["model", "rule", "asked"], "value")
study.save_table(by_rule, "3-wording/table-rules").round(3)
'''),
('md','''B1 From here on, correctness is that of the **original** questions:'''),
('code','''
overall = study.means(questions, ["model"], "correct")
study.save_table(overall, "3-wording/table-correctness").round(3)
'''),
('md','''B2'''),
('code','''
paper = study.published("3-wording-table-5").query("questions == 'all'")
paper = paper.assign(correctness=1 - paper["baseline"])
paper[["model", "architecture", "correctness"]].round(3)
'''),
('md','''B3'''),
('md','''
## Consistency

The consistency of a question is the mean cosine over all pairs of its $n$ answers, with embeddings $e_i$, vectors that stand
for texts (equation 1; an example by hand is in 3.0):

$$SCons = \\frac{1}{\\binom{n}{2}} \\sum_{i=1}^{n-1} \\sum_{j=i+1}^{n} \\cos(e_i, e_j)
        = \\frac{\\left|\\sum_i u_i\\right|^2 - n}{n (n - 1)}, \\qquad u_i = \\frac{e_i}{|e_i|}$$

The second form needs no pairs. Two empty answers have a cosine of 1, an empty one and a text have 0. **Bare SCons**
is the same of *bare* answers: each without the words of its own question. Of "The capital of Kenya is Nairobi" is left "nairobi".
'''),
('code','''
questions["bare SCons"] = study.bare_sets["int_sim"].clip(0, 1)
long = questions.rename(columns={"scons": "SCons"})
consistency = study.means(long, ["model"], "SCons")
study.save_table(consistency, "3-wording/table-consistency").round(3)
'''),
('md','''B4'''),
('md','''
## Figures 1 and 2: by relation

In both panels the relations are sorted by correctness.
'''),
('code','''
parts = {"correctness": "correct", "consistency (SCons)": "scons"}
means = {name: study.means(questions, ["model", "relation"], of) for name, of in parts.items()}
by_relation = tables.stacked(means, "what")
fig = plots.by_relation(by_relation, "what", "mean over questions")
study.save_figure(fig, "3-wording/figure-01-02", by_relation)
'''),
('md','''B5'''),
('md','''
## Figure 3: does consistency go with correctness?

The paper's claim is about **categories** (relations): where answers are more alike, more of them are right. A user needs a
claim about **questions** of one category: is this answer right? So the table has two correlations r: over the means of the 16
relations, and over questions, with each relation's means subtracted. *Agreement* is the share of pairs of equal answers.
'''),
('code','''
questions["agreement"] = metrics.equal_pairs(questions["texts"].tolist())
measures = ["scons", "bare SCons", "agreement"]
correlation = metrics.relation_correlations(questions, measures, n_boot=n_boot)
study.save_table(correlation, "3-wording/table-correlation").round(2)
'''),
('md','''B6'''),
('code','''
by, names = ["model", "relation"], {"scons": "SCons", "bare SCons": "bare SCons"}
of = {new: questions.rename(columns={old: "consistency"}) for old, new in names.items()}
cells = tables.stacked(of, "measure").groupby(["measure", *by], as_index=False, sort=False)
means = cells.agg(
    consistency=("consistency", "mean"), correctness=("correct", "mean"), n=("correct", "size")
)
fig = plots.correctness_by_consistency(means, ["capital", "religion", "occupation"])
study.save_figure(fig, "3-wording/figure-03", means)
'''),
('md','''B7'''),
('code','''
capital = exact_table(marked[marked["relation"] == "capital"], ["model", "variant"], "correct")
side_by_side(capital, "variant", "model")
'''),
('md','''B8'''),
('md','''
## What we saw, and what it means

END
'''),
]
