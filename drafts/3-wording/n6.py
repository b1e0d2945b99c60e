NAME='3.6-labels-and-measure'
CELLS=[
('md',r'''
# 3.6 Can the labels and the measure be trusted?

*Ours, not in the paper.* All of part 3 rests on two automatic judgements: which answers are right, and which answers say the same. Here both are compared with labels of
a reader model, a language model that followed a guide; no person has read them. Right answers are told well: our rule errs in «table-rule-errors|rule=correct&what=error|mean:1%» of 200. Equal meanings are
not: the cosine errs in «table-pairs-errors|rule=cosine from 0.8&what=error|mean:0%» of the pairs, partly because it also counts the words that both answers repeat from the question.
'''),
('code',r'''
models: list = ["gemma-3-270m", "smollm2-135m-instruct"]  # names, folders, .gguf files or hub ids
data: str = "embedded"  # or world, town, popqa_tp (@REVISION or :FILE), or a CSV of questions
n_facts: int = 480  # facts asked about, the same number from each relation
max_new_tokens: int = 20  # tokens of an answer at most
sentence_encoder: str = "all-MiniLM-L6-v2"  # behind SCons and Cert: this, a folder or a hub id
nli_model: str = ""  # entailment beside them (paper: microsoft/deberta-xlarge-mnli), if named
seed: int = 0  # which facts are drawn, the samples' random numbers, and the splits
n_boot: int = 2000  # bootstrap resamples behind an interval
''', 'parameters'),
('code',r'''
import pandas as pd

from factrobust import tables, wording
from factrobust.datasets.published import load_labels
from factrobust.statistics import Agreement, agreement, estimates, paired_table, rule_errors
from factrobust.wording import metrics, plots, prediction, probe

study = wording.Study(globals())
marked = study.marked
''', 'nbval-ignore-output'),
('md',r'''
## The labels

`data/draw_labels.py` drew 200 answers to original questions and 200 pairs of different answers to one question, 100
of each model, evenly over relations, before any rule was asked about them. A reader labelled each twice, in two
orders: a language model that followed the guide in `data/labels/README.md`, not a person. How often the two readings
agree (*disputed*: see below; *kappa*: agreement beyond chance, at most 1):
'''),
('code',r'''
def twice(sheet):
    return agreement(sheet["label"], sheet["label_again"])


sheets = {name: load_labels(f"wording_{name}") for name in ("answers", "pairs", "disputed")}
labels = tables.stacked(sheets, "labels")
read = estimates(labels, ["labels"], twice, Agreement._fields, sort=False)
study.save_table(read, "3-wording/table-readings").round(3)
'''),
('md',r'''
The two readings of the reader model agree in «table-readings|labels=answers|mean:1%», «table-readings|labels=pairs|mean:1%» and «table-readings|labels=disputed|mean:1%». That shows that the guide can be followed twice, not that another reader would agree. The first reading is
used; rows labelled "unclear" are left out.

## Which answers are right?

`substring` is the paper's rule (section 3.3.1), `correct` ours (3.3). Bounds are exact (Clopper and Pearson).
'''),
('code',r'''
key = ["model", "question_id"]
verdicts = marked[[*key, "group_id", "substring", "correct"]]
known = sheets["answers"].query("label != 'unclear'").merge(verdicts, on=key, validate="1:1")
known["right"] = known["label"] == "right"
errors = rule_errors(known, ["substring", "correct"], "right")
study.save_table(errors, "3-wording/table-rule-errors").round(3)
'''),
('md',r'''
Our rule errs in «table-rule-errors|rule=correct&what=error|mean:1%» of the answers, the paper's in «table-rule-errors|rule=substring&what=error|mean:1%». Ours errs in these:
'''),
('code',r'''
known[known["right"] != known["correct"]][["model", "question", "answer", "label", "note"]]
'''),
('md',r'''
So few labels of part 3 are wrong. But which rule is right where they differ? The reader model labelled all such answers, without the verdicts:
'''),
('code',r'''
disputed = sheets["disputed"].merge(verdicts, on=key, validate="1:1")
disputed["accepted by"] = disputed["correct"].map({True: "correct", False: "substring"}) + " only"
split = disputed.groupby(["model", "accepted by", "label"]).size().unstack(fill_value=0)
study.save_table(split.reset_index(), "3-wording/table-disputed")
'''),
('md',r'''
Where they differ, our rule is too strict, and the paper's too lenient. 3.8 repeats the regression with the reader model's labels: no conclusion on prediction hangs on the rule.

## Which answers say the same?

The pairs were drawn among answers whose texts differ. How well do measures tell those that say the same from those that do not? An AUC of
1 would be without error, 0.5 is chance. Of *bare* answers (3.3) the question's words are taken out. Rouge-L is the longest common
subsequence of words, as an F measure.
'''),
('code',r'''
pairs = sheets["pairs"].query("label != 'unclear'")
pairs = pairs.assign(same=pairs["label"] == "same")
bare = metrics.without_question(marked)[[*key, "text"]]
for k in (1, 2):  # the pairs of questions that were asked
    of = bare.rename(columns={"question_id": f"question_{k}", "text": f"bare_{k}"})
    pairs = pairs.merge(of, validate="m:1")
left = pairs.assign(answer_1=pairs["bare_1"], answer_2=pairs["bare_2"])
pairs, left = (probe.compared(table, study.encoder, study.nli) for table in (pairs, left))
'''),
('code',r'''
told = {"cosine": pairs["cosine"], "cosine, bare": left["cosine"]}
for name, table in {"": pairs, ", bare": left}.items():
    told["Rouge-L" + name] = metrics.rouge_l(table[["answer_1", "answer_2"]].values.tolist())
    if study.nli:
        told["entailment" + name] = table[["forward", "backward"]].min(axis=1)
'''),
('code',r'''
relation = marked.drop_duplicates("question_id").set_index("question_id")["relation"]
scores = pairs.assign(relation=pairs["question_1"].map(relation), **told)
scores = scores.rename(columns={"label_id": "group_id", "same": "correct"})
names = {name: name for name in told}
auc = prediction.compared(scores, value=names, reference="cosine", n_boot=n_boot)
auc = auc[auc["measure"] == "auc"].rename(columns={"predictor": "of"})
study.save_table(auc, "3-wording/table-pairs-auc").round(3)
'''),
('md',r'''
The cosine as written, on which SCons and Cert rest, has an AUC of «table-pairs-auc|G&of=cosine|mean:2» and «table-pairs-auc|S&of=cosine|mean:2». Without the question's words it is «table-pairs-auc|G&of=cosine, bare|difference:2» and «table-pairs-auc|S&of=cosine, bare|difference:2» larger.

Two uses need a yes or no. Agreement (3.3) calls only equal texts the same; semantic entropy (3.5) joins answers from a cosine of 0.8 on, set before the labels were read. Their errors
(false negatives say the same and are missed, false positives do not and are joined), and the difference of two, pair by pair:
'''),
('code',r'''
rules = {
    "equal texts": False,
    f"cosine from {probe.SAME}": pairs["cosine"] >= probe.SAME,
}
rules[f"cosine from {probe.SAME}, bare"] = left["cosine"] >= probe.SAME
if study.nli:
    rules["entailment both ways"] = told["entailment"] >= probe.ENTAILED
said = rule_errors(pairs.assign(**rules), list(rules), "same")
study.save_table(said, "3-wording/table-pairs-errors").round(3)

parts = {name: pairs.assign(rule=name, error=rule != pairs["same"]) for name, rule in rules.items()}
written, bare = [name for name in rules if name.startswith("cosine")]
pair = {"group": "label_id", "n_boot": n_boot}
apart = paired_table(pd.concat(parts.values()).assign(what="error"), ["what"], "error", "rule", (written, bare), **pair)
study.save_table(apart, "3-wording/table-pairs-apart").round(3)
'''),
('md',r'''
On bare answers the threshold errs in «table-pairs-errors|rule=cosine from 0.8, bare&what=error|mean:0%» of the pairs, as written in «table-pairs-errors|rule=cosine from 0.8&what=error|mean:0%»: a difference of «table-pairs-apart||mean:0%» points. It misses most of those that say the same, so a semantic
entropy made without an NLI model is a rough one. As written, different answers reach far above 0.8:
'''),
('code',r'''
shown = tables.stacked({"as written": pairs, "without the question's words": left}, "measure")
fig = plots.labelled_pairs(shown, probe.SAME)
study.save_figure(fig, "3-wording/figure-pairs", shown.drop(columns=["label_again", "note"]))
'''),
('md',r'''
Without the question's words the different answers move to the left, and almost none passes 0.8.

## What SCons is made of

If answers are alike because they have one form, answers to **different** questions must be alike, too. The control
compares such answers as SCons does: for each question as many, each to another question of its relation in the
wording of the same number. It holds what form and relation give. Bare SCons takes out what each answer repeats from
its question, its subject above all.
'''),
('code',r'''
sets = {"SCons": study.answer_sets, "bare SCons": study.bare_sets, "control": study.control_sets}
long = tables.stacked(sets, "what")
long["value"] = long["int_sim"].clip(0, 1)
study.save_table(study.means(long, ["model", "what"], "value"), "3-wording/table-control").round(3)
'''),
('md',r'''
Form and relation alone give «table-control|G&what=control|mean:2» for Gemma and «table-control|S&what=control|mean:2» for SmolLM2: a value of SCons below that says nothing. Without the question's words SmolLM2 falls from «table-control|S&what=SCons|mean:2» to «table-control|S&what=bare SCons|mean:2», Gemma from
«table-control|G&what=SCons|mean:2» to «table-control|G&what=bare SCons|mean:2». Whether bare SCons is the better sign of a right answer, 3.5 and 3.7 ask.
'''),
('md',r'''
## What we saw, and what it means

**Labels hold; the cosine of whole answers shows only roughly whether they say the same.**

- Our rule errs in «table-rule-errors|rule=correct&what=error|mean:1%» of 200 answers.
- The cosine tells pairs that say the same with an AUC of «table-pairs-auc|G&of=cosine|mean:2» and «table-pairs-auc|S&of=cosine|mean:2», without the question's words «table-pairs-auc|G&of=cosine, bare|mean:2» and «table-pairs-auc|S&of=cosine, bare|mean:2».
- SmolLM2's lead in consistency is repetition of the question: «table-control|S&what=bare SCons|=mean:2» without it against Gemma's «table-control|G&what=bare SCons|=mean:2».

The paper has no such check. A person's labels may refute this; a language model read them.
'''),
]