from common import *
NAME='3.2-which-wording-breaks-what'
CELLS=[
('md','''
# 3.2 Which wording breaks what?

TITLE
'''),
('code',START+'''n_new: int = 160  # of them asked in new templates, too
n_prompts: int = 160  # of them asked in a second prompt, too
'''+TAIL,'parameters'),
('code','''
import pandas as pd

from factrobust import tables, wording
from factrobust.datasets.facts import load_facts
from factrobust.statistics import exact_table, interval_table
from factrobust.wording import facts, metrics, plots

study = wording.Study(globals())
marked = study.marked
''','nbval-ignore-output'),
('md','''
## What does a paraphrase cost?

An answer is right if it states an accepted answer (3.3; 3.6 checks that rule). The table has the share of facts that
are answered rightly in the original wording, the mean over paraphrases, and their difference, fact by fact. The facts of a
relation share their wordings, so the bootstrap intervals draw whole relations.
'''),
('code','''
asked = marked["variant"].eq(0).map({True: "original", False: "paraphrases"})
by_fact = marked.assign(asked=asked).groupby(["model", "relation", "group_id", "asked"])
shares, pair = by_fact["correct"].mean().reset_index(), ("original", "paraphrases")
cost = study.paired(shares, ["model"], "correct", "asked", pair)
study.save_table(cost.round(4), "3-wording/table-paraphrase-cost")
'''),
('md','''A1'''),
('code','''
wordings = exact_table(marked, ["model", "relation", "variant"], "correct")
study.save_figure(plots.by_wording(wordings), "3-wording/figure-wordings", wordings)
'''),
('md','''
A2 How far apart are the worst and the best wording of a relation? Among six or seven wordings some are better by chance.
So the table also has the distance by chance: each fact's answers are dealt out to the wordings at random (mean of 50 deals).
'''),
('code','''
def apart(table):
    shares = table.groupby(["model", "relation", "variant"])["correct"].mean()
    wordings = shares.groupby(["model", "relation"])
    return wordings.max() - wordings.min()


deals = [marked.sample(frac=1, random_state=seed + k) for k in range(50)]
dealt = [deal.assign(variant=deal.groupby(["model", "group_id"]).cumcount()) for deal in deals]
chance = pd.DataFrame(map(apart, dealt)).mean()
each = pd.DataFrame({"worst to best": apart(marked), "by chance": chance})
each["beyond chance"] = each["worst to best"] - each["by chance"]
long = each.melt(var_name="distance", value_name="points", ignore_index=False).reset_index()
distance = interval_table(long, ["model", "distance"], "points", "relation", n_boot=n_boot)
study.save_table(distance.round(3), "3-wording/table-worst-to-best")
'''),
('md','''A3'''),
('code','''
sample = study.questions.drop_duplicates(["relation", "variant"])
named = wordings.merge(sample[["relation", "variant", "question"]])
order = named.sort_values(["mean", "variant"]).groupby(["model", "relation"])
ends = order.first().join(order.last(), lsuffix=" (worst)", rsuffix=" (best)")
ends["apart"] = ends["mean (best)"] - ends["mean (worst)"]
most = ends.sort_values("apart", ascending=False).groupby("model").head(3).reset_index()
shown = [f"{name} ({end})" for end in ("worst", "best") for name in ("question", "mean", "low", "high")]
study.save_table(most[["model", "relation", *shown]].round(2), "3-wording/table-worst-wordings")
'''),
('md','''A4'''),
('md','''
## Fact, wording, or the two together?

In a relation the facts $i = 1 \\dots n$ and the wordings $v = 1 \\dots V$ make a table of answers, $x_{iv} = 1$ if right, else
0. Its sum of squares has three parts:

$$\\sum_{i,v} (x_{iv} - \\bar x)^2 = V \\sum_i (\\bar x_{i\\cdot} - \\bar x)^2 + n \\sum_v (\\bar x_{\\cdot v} - \\bar x)^2 +
\\sum_{i,v} (x_{iv} - \\bar x_{i\\cdot} - \\bar x_{\\cdot v} + \\bar x)^2.$$

Facts known in any wording; wordings bad for all facts; and the *interaction*: this wording breaks this fact and not that
one. But answers are 0 or 1. Suppose that a degree of knowledge and the ease of a wording only add up, and the sum is
rounded to right or wrong. Then the table is perfectly **nested** (Guttman's scale): what a hard wording gets right, each easier
one gets right, too. Even this table, with the same wordings' totals as ours, has an interaction, made by rounding alone. It is the
null, below. The components are those of a two-way random-effects model, summed over relations.
'''),
('code','''
tried = {"as answered": marked, "perfectly nested": metrics.nested(marked)}
found = {name: metrics.variance_shares(t, n_boot=n_boot, seed=seed) for name, t in tried.items()}
variance = found["as answered"]
study.save_figure(plots.variance(variance), "3-wording/figure-variance", variance)
'''),
('code','''
both = tables.stacked(found, "table").query("relation == 'all'").drop(columns=["relation", "n"])
study.save_table(both.round(4), "3-wording/table-nested")
'''),
('md','''A5'''),
('md','''
## Before the rounding

An item-response model has no such floor. Behind each answer it puts a sum, right if above 0: the ease $a_v$ of the
wording, the knowledge $s z_i$ of the fact and an interaction $e_{iv}$ ($z$ and $e$ standard normal):

$$x_{iv} = 1 \\quad\\text{if}\\quad a_v + s\\, z_i + e_{iv} > 0.$$

Fitted in each relation, it has the variances $s^2$, that of $a$, and 1. Mean shares over relations:
'''),
('code','''
latent = metrics.latent_shares(marked)
shares = study.means(latent, ["model", "source"], "share", group="relation")
study.save_table(shares.round(4), "3-wording/table-latent")
'''),
('md','''A6'''),
('md','''
## What about a wording breaks answers?

We sort the templates by four forms: a *plain question* ("Who wrote ...?"), a *command* ("Name the writer of ..."), a *request*
("Can you tell me ..."), and a question whose *question word comes last*, behind the subject ("... is a city in which country?"). Right
answers in each form minus those to plain questions about the same facts:
'''),
('code','''
def by_form(answers, path=facts.PARAPHRASES):
    rows = answers.merge(facts.load_forms(path), on=["relation", "variant"])
    shares = rows.groupby(["model", "relation", "group_id", "form"])["correct"].mean().unstack()
    apart = shares.sub(shares["plain question"], axis=0).drop(columns="plain question")
    long = apart.melt(value_name="points", ignore_index=False).dropna().reset_index()
    return study.means(long, ["model", "form"], "points").round(4)


ours = data == "embedded"  # whose templates we wrote
study.save_table(by_form(marked), "3-wording/table-forms") if ours else None
'''),
('md','''A7'''),
('code','''
relations = facts.load_paraphrases()["relation"]
fresh = facts.paraphrased(load_facts(relations=relations), facts.NEW).table
again = study.ask_again(facts.sample(fresh, n_new, seed)) if ours else None
study.save_table(by_form(again, facts.NEW), "3-wording/table-forms-new") if ours else None
'''),
('md','''A8'''),
('md','''
## Another prompt

SmolLM2 is tuned, so these notebooks ask it in its chat template. The paper asks all decoder-only models with "Question: ...
Answer:". Models with a chat template get both prompts, on about `n_prompts` of the facts. How often does an answer begin with a
newline, which we skip, and how often is it empty?
'''),
('code','''
tuned = [name for name, model in zip(models, study.models, strict=True) if model.chat]
second = globals() | {"models": tuned, "n_facts": n_prompts}
others = [wording.Study(second, prompt_format="question-answer")] if tuned else []
''','nbval-ignore-output'),
('code','''
prompts = pd.concat([s.marked for s in [study, *others]])
prompts = prompts[prompts["model"].isin(tuned)]
prompts["newline first"], prompts["empty"] = prompts["first"].eq("newline"), prompts["text"].eq("")
keys, values = ["model", "prompt_format", "relation", "group_id"], ["correct", "newline first", "empty"]
long = prompts.groupby(keys)[values].mean().melt(var_name="measure", ignore_index=False)
pair = ("chat", "question-answer")
table = study.paired(long.reset_index(), ["model", "measure"], "value", "prompt_format", pair)
study.save_table(table.round(4), "3-wording/table-prompts")
'''),
('md','''A9'''),
('md','''
## What we saw, and what it means

END
'''),
]
