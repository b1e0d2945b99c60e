from common import *
NAME='3.5-one-answer'
CELLS=[
('md','''
# 3.5 What one answer already tells

TITLE
'''),
('code',START+SAMPLES+'''nli_model: str = ""  # tells which samples say the same, if named: microsoft/deberta-xlarge-mnli@...
'''+TAIL+'''repeats: int = 3  # of the five-fold cross-validation
''','parameters'),
('code','''
from factrobust import wording
from factrobust.wording import plots, prediction, probe

study = wording.Study(globals())
asked = study.groups.merge(study.p_true)
answered = asked.dropna(subset=["logprob", "predictive_entropy"])
groups = probe.predictable(answered, study.models)
print("left out, because an answer has no token:", len(asked) - len(answered))
''','nbval-ignore-output'),
('md','''
SCons needs four to eleven answers and Cert ten. One greedy answer comes with the log-probabilities of its tokens. What do
these tell, before anything else is paid for?

- the **sum** of its log-probabilities, $\\log P(\\text{answer})$; their **mean** a token; the **first** and the **least** of them; the **number of
  tokens**;
- **P(true)**: the model is shown the question and its answer, and asked whether it is true (Kadavath et al., 2022): $P(\\text{Yes}) /
  (P(\\text{Yes}) + P(\\text{No}))$. That is one more question.

Of ten samples: the **predictive entropy** (minus their mean log-probability), **string entropy** and **semantic entropy** (of the shares
of equal samples, and of equal meanings: a cosine of at least 0.8), **Rouge-L** and **Cert**. Of the answers to all wordings:
**agreement**, **SCons** and **bare SCons** (3.3). A baseline knows the **relation alone**: its share of right answers.
'''),
('code','''
ONE = {"sum": "logprob_sum", "mean": "logprob", "first": "logprob_first", "least": "logprob_least",
       "number of tokens": "n_tokens", "P(true)": "p_true"}  # fmt: skip
MANY = {"predictive entropy": "predictive_entropy", "string entropy": "string_entropy",
        "semantic entropy": "semantic_entropy", "Rouge-L": "rouge_l", "Cert": "cert",
        "agreement": "agreement", "SCons": "scons", "bare SCons": "scons_bare"}  # fmt: skip
sets = {name: (column,) for name, column in (ONE | MANY).items()}
sets |= {"relation and sum": ("QCat", "logprob_sum"), "relation and bare SCons": ("QCat", "scons_bare")}
sets |= {"relation and all": ("QCat", *ONE.values(), *MANY.values()), "the paper's model": ("QCat", "SCons", "Cert")}
predictions = prediction.ladder(groups, sets, repeats=repeats, seed=seed)
'''),
('md','''
Each is put into a logistic regression and predicts held-out questions (five folds, three times). The **AUC** is the share of pairs of
a right and a wrong answer in which the right one has the higher probability, ties half; **within relations** only pairs of one
relation count, pooled. All are compared with the sum, on the same questions; intervals draw whole relations.
'''),
('code','''
judged = prediction.compared(predictions, reference="sum", n_boot=n_boot)
study.save_table(judged, "3-wording/table-ladder")
wide = judged.pivot(index="predictor", columns=["measure", "model"], values="mean")
wide.reindex(predictions["predictor"].unique())[["auc", "auc_within"]].round(2)
'''),
('code','''
study.save_figure(plots.ladder(judged, "sum"), "3-wording/figure-ladder", judged)
'''),
('md','''D1'''),
('code','''
apart = ["difference", "difference_low", "difference_high"]
chosen = ["P(true)", "number of tokens", "mean", "Cert", "SCons", "bare SCons"]
few = judged[judged["measure"].eq("auc_within") & judged["predictor"].isin(chosen)]
few[["model", "predictor", "mean", *apart]].round(2).reset_index(drop=True)
'''),
('md','''D2'''),
('md','''
## With the relation

Who asks knows the relation, too. Does one answer's sum add to it as much as everything else?
'''),
('code','''
named = ["relation alone", "relation and sum", "relation and bare SCons", "relation and all", "the paper's model"]
known = judged[judged["measure"].eq("auc") & judged["predictor"].isin(named)]
known[["model", "predictor", "mean", "low", "high", *apart]].round(2).reset_index(drop=True)
'''),
('md','''D3'''),
('md','''
## What does each token buy?

With a budget of $b$ answers, every measure gets the greedy answer and $b - 1$ more: answers to paraphrases (SCons, bare SCons)
or samples (Cert). A question with fewer wordings gets as many answers as wordings, samples too. The horizontal axis is
the number of tokens that were generated (of answers; samples have about as many), so points above each other cost the same.
'''),
('code','''
paid = prediction.equal_budget_texts(study.answer_sets, study.sample_sets, [2, 3, 4, 6, 11])
bare = prediction.equal_budget_texts(study.bare_sets, study.sample_sets, [2, 3, 4, 6, 11])
parts = {"SCons": paid["answers"], "Cert": paid["samples"], "bare SCons": bare["answers"]}
bought = paid.assign(**{name: study.encoder.similarity(texts) for name, texts in parts.items()})
names = ["model", "group_id", "relation", "correct", "logprob_sum", "n_tokens"]
bought = bought.merge(groups[names])
named = {"sum": "logprob_sum"} | {name: name for name in parts}
by = ["model", "budget"]
costs = prediction.compared(bought, by, named, reference="sum", n_boot=n_boot)
costs = costs[costs["measure"] == "auc_within"].merge(bought.groupby(by)["tokens"].mean().reset_index())
one = costs["predictor"] == "sum"
costs.loc[one, "tokens"] = costs["model"].map(groups.groupby("model")["n_tokens"].mean())
costs = costs[~one | (costs["budget"] == 2)].drop(columns="measure").reset_index(drop=True)
study.save_figure(plots.bought(costs), "3-wording/figure-bought", costs)
'''),
('code','''
two = costs[costs["budget"].isin([4, 11])].sort_values(["model", "budget"], kind="stable")
two[["model", "budget", "tokens", "predictor", "mean", *apart]].round(2).reset_index(drop=True)
'''),
('md','''D4'''),
('md','''
## What we saw, and what it means

END
'''),
]
