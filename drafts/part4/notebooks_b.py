"""Sources of notebooks 4.3 to 4.6; «...» is filled from the tables by fill.py."""

from notebooks_a import BOOT, MODELS

N43 = (
    "4.3-perplexity",
    [
        (
            "md",
            """# 4.3 Perplexity

*The thesis, sections 3.3, 4.3 and 5.4.* Perplexity says how surprising an answer is to the model that gives it. The thesis
hopes that this tells memory from context without a second question. **Among answers to contexts about another subject it
ranks one from memory above one from the context in «P('table-source-auc',"score=='minus_log_p4' and against=='memory' and "+MG,'auc')» (Gemma) and «P('table-source-auc',"score=='minus_log_p4' and against=='memory' and "+MS,'auc')» (SmolLM2) of the pairs, where chance has 50%.**
The thesis's own groups differ for another reason.""",
        ),
        (
            "params",
            MODELS
            + """questions: str = "embedded"  # or world, town, thesis:FOLDER (base_questions.txt, objects.csv)
results: str = ""  # a CSV of results that were computed elsewhere, to stand beside
n_objects: int = 4  # objects of each of the 100 base questions (thesis: all, 4,760 questions)
n_facts: int = 80  # facts with a true, an irrelevant and a false context (4.1)
seed: int = 0  # which objects, facts and contexts are drawn
"""
            + BOOT,
        ),
        (
            "code",
            """import numpy as np
import pandas as pd

from factrobust import context, tables
from factrobust.context import attribution, metrics, plots, probe
from factrobust.datasets.published import THEIRS
from factrobust.statistics import side_by_side

study, facts = context.Study(globals()), context.KnownContexts(globals())
answered, marked = study.results, study.marked""",
        ),
        (
            "md",
            """## One question, four perplexities (table 6)

The perplexity of an answer $x_1, \\ldots, x_n$ to a prompt $Q$ is
$$\\mathrm{PPL}(x \\mid Q) = 2^{-\\frac{1}{n} \\sum_i \\log_2 P(x_i \\mid Q, x_1, \\ldots, x_{i-1})}$$
(equations 1 and 2). It is 1 if the model was sure of every token, and 2 if each was a coin toss. Two answers, the parametric
$p$ (from memory) and the counterfactual $q$ (stated in the context), after two prompts, without and with that context, give
four perplexities. $P_4$ is that of the answer given with the context:""",
        ),
        (
            "code",
            """both = answered[(answered[["n_tokens_parametric", "n_tokens_counterfactual"]] > 0).all(axis=1)]
one = both[both["question_id"] == "city-15/toronto"]
one = (one if len(one) else both).iloc[0]
table6 = study.published("4-context-table-6")[["quantity", "answer", "prompt"]]
table6["text"] = table6["answer"].map(one)
table6["perplexity"] = table6["quantity"].str.lower().map(one)
study.save_table(table6, "4-context/table-06").round(2)""",
        ),
        (
            "md",
            """The context makes its own answer hardly surprising, and that of memory more so.

## Figure 4: token by token

Both answers are forced through the model. The points are $-\\log_2 P$, the bits of surprise; their mean is $\\log_2$ of the
perplexity.""",
        ),
        (
            "code",
            """[model] = [model for model in study.models if model.name == one["model"]]
tokens = probe.answer_tokens(model, study.questions, one)
study.save_figure(plots.worked_example(tokens), "4-context/figure-04", tokens)""",
        ),
        (
            "md",
            """The thesis's own example can be checked against the probabilities in its figure, which are rounded to two digits:""",
        ),
        (
            "code",
            """printed = study.published("4-context-figure-4-tokens").groupby("answer", sort=False)["probability"]
again = printed.agg(lambda p: metrics.perplexity(np.log(p))).rename("recomputed").to_frame()
figure4 = study.published("4-context-figure-4").set_index("quantity")["value"]
again.assign(printed=[figure4["P2"], figure4["P3"]], n_tokens=printed.size()).round(4)""",
        ),
        (
            "md",
            """$P_2$ agrees within rounding. The printed $P_3$ does not: it is at least 1.0119 whatever the rounding.

## Is the parametric answer the least surprising?

"By definition" $P_0 \\leq P_1$, says the thesis (3.3.2). For an answer of one token that is so. Greedy decoding takes the
likeliest token at each step, and an answer that begins worse may go on better:""",
        ),
        (
            "code",
            """sound = marked[marked["sound"]]
study.save_table(metrics.p0_exceptions(sound), "4-context/table-p0-exceptions").round(3)""",
        ),
        (
            "md",
            """Answers of one token never break it; of the longer ones, «P('table-p0-exceptions',"tokens=='more' and "+MG,'share')» (Gemma) and «P('table-p0-exceptions',"tokens=='more' and "+MS,'share')» (SmolLM2) do.

## Tables 11 and 12: the groups of the thesis's code

The thesis compares $P_4$ in two groups of answers. Its text (3.3.3) would group by $P_2$ and $P_3$. Its code groups by
whether $P_4 > P_3$: whether the answer given surprises more than the counterfactual would. **That tables 11 and 12 show the
code's groups is our reading**; the text does not say so. For our models, and the thesis's:""",
        ),
        (
            "code",
            """published = metrics.mark_sources(answered, study.questions, "published")
table11 = metrics.perplexity_table(published, ["model", "preference"], n_boot=n_boot)
study.save_table(table11, "4-context/table-11")
thesis = pd.concat(study.published(f"4-context-table-{number}") for number in (11, 12))
wide = thesis.pivot(index=["where", "model", "preference"], columns="statistic", values="value")
wide = wide[["count", "mean", "std", "25%", "50%", "75%"]].astype({"count": int})
study.save_table(wide.sort_index(ascending=False).loc["table 12"], "4-context/table-12", **THEIRS)
table11[["model", "preference", "count", "mean", "low", "high"]].round(2)""",
        ),
        (
            "md",
            """## Figure 8: such a gap needs no memory

A group selected by $P_4 > P_3$ tends to a larger $P_4$ whatever the source. So the gap must show among answers from the
context alone, in which memory has no part. (Groups of fewer than ten answers are left out.)""",
        ),
        (
            "code",
            """from_context = published[marked["sound"] & (marked["source"] == "contextual")]
selected = metrics.perplexity_table(from_context, ["model", "preference"], n_boot=n_boot)
theirs = wide.loc["table 11"].reset_index().rename(columns={"count": "n"})
theirs["model"] += " (thesis)"
every = {"all answers": pd.concat([table11, theirs]), "from the context only": selected}
groups = tables.stacked(every, "of")
signs = {"parametric": "P4 > P3, ", "contextual": "P4 ≤ P3, "}
groups["group"] = groups["preference"].map(signs) + groups["of"]
label = "mean perplexity of the answer given (P4)"
groups = groups.loc[groups["n"] >= 10, ["model", "group", "mean", "low", "high", "n"]]
fig = plots.by_row(groups, "group", label, xlim=(0.95, 2.0))
study.save_figure(fig, "4-context/figure-08", groups)""",
        ),
        (
            "md",
            """It does: among SmolLM2's answers from the context alone the gap is as wide as among all.

## By where the answers came from

On the thesis's questions fewer than ten sound answers a model come from memory: no claim. On embedded facts (4.1) more do.
What kind of context it was moves $P_4$, too, so each kind stands by itself. (A true sentence is followed always.)""",
        ),
        (
            "code",
            """known = facts.marked[facts.marked["context"] != "true"]
by_source = metrics.perplexity_table(known, ["model", "context", "source"], n_boot=n_boot)
study.save_table(by_source, "4-context/table-p4-known")
shown = by_source[by_source["n"] >= 10].assign(kind=lambda t: t["source"] + ", " + t["context"])
shown = shown[["model", "kind", "mean", "low", "high", "n"]]
fig = plots.by_row(shown, "kind", label, xlim=(0.95, None))
study.save_figure(fig, "4-context/figure-08-sources", shown)""",
        ),
        (
            "md",
            """With irrelevant contexts the mean $P_4$ of Gemma's answers from memory is «I('table-p4-known',"context=='irrelevant' and source=='parametric' and "+MG)», and «I('table-p4-known',"context=='irrelevant' and source=='contextual' and "+MG)» from the context;
SmolLM2's is «I('table-p4-known',"context=='irrelevant' and source=='parametric' and "+MS)» and «I('table-p4-known',"context=='irrelevant' and source=='contextual' and "+MS)».

## Does a perplexity rank them?

The AUC is the probability that an answer from the context has the higher score; 0.5 is chance. Against memory, as the thesis
has it, and against memory and others, which a program meets as well. Bounds are those of Hanley and McNeil:""",
        ),
        (
            "code",
            """irrelevant = attribution.cases(known[known["context"] == "irrelevant"])
memory = irrelevant[irrelevant["source"] != "other"]
parts = {"memory": memory, "memory and others": irrelevant}
aucs = tables.stacked({k: attribution.auc_table(part) for k, part in parts.items()}, "against")
study.save_table(aucs, "4-context/table-source-auc")
side_by_side(aucs, ["against", "model", "n_not"], "score", "auc", digits=2)""",
        ),
        (
            "md",
            """$P_4$ alone says little. Comparing $P_2$ with $P_3$ says much, but one has to know what the context states, and then it
nearly is the definition of the outcome. 4.5 tests scores against the exchange, on longer passages.

## Figure 9: by category

Mean $P_4$ of the sound answers. The thesis shows Flan-T5 in figure 10, and prints no numbers.""",
        ),
        (
            "code",
            """by_category = metrics.perplexity_table(sound, ["model", "category"], n_boot=n_boot)
by_category = by_category[["model", "category", "mean", "low", "high", "n"]]
fig = plots.by_row(by_category, "category", label, xlim=(0.98, None))
study.save_figure(fig, "4-context/figure-09", by_category)""",
        ),
        (
            "md",
            """## What we saw, and what it means

**The perplexity of an answer tells little of its source: with contexts about another subject the AUC of $P_4$ is
«A('table-source-auc',"score=='minus_log_p4' and against=='memory and others' and "+MG)» for Gemma and «A('table-source-auc',"score=='minus_log_p4' and against=='memory and others' and "+MS)» for SmolLM2.**

- In the code's groups mean $P_4$ is «N('table-11',"preference=='parametric' and "+MG,'mean',2)» against «N('table-11',"preference=='contextual' and "+MG,'mean',2)» and «N('table-11',"preference=='parametric' and "+MS,'mean',2)» against «N('table-11',"preference=='contextual' and "+MS,'mean',2)»; in the thesis 1.67
  against 1.20 and 1.56 against 1.22. Among SmolLM2's answers from the context alone the gap is as wide, so it needs no
  memory.
- $P_0 \\leq P_1$ is no theorem: it fails for «P('table-p0-exceptions',"tokens=='more' and "+MG,'share')» and «P('table-p0-exceptions',"tokens=='more' and "+MS,'share')» of answers of several tokens.""",
        ),
    ],
)

N44 = (
    "4.4-others",
    [
        (
            "md",
            """# 4.4 What are the others, and can rules tell?

*The thesis, sections 3.2.2, 5.3 and 6.1.1.* Some answers say neither what the memory says (parametric) nor what the context
says. The thesis read these **others** one by one and found seven kinds. Here rules decide, and are held against answers
that were read. **Where it matters, on answers that are not simply the context's, our rules are right in «P('table-rules-claims',"rule=='ours'")» and
the thesis's code in «P('table-rules-claims',"rule=='code'")».** Recounted by our rules, more than half of Flan-T5-XL's published answers have no source.""",
        ),
        (
            "params",
            MODELS
            + """questions: str = "embedded"  # or world, town, thesis:FOLDER (base_questions.txt, objects.csv)
n_objects: int = 4  # objects of each of the 100 base questions (thesis: all, 4,760 questions)
seed: int = 0  # which objects and counterfactuals are drawn
n_boot: int = 2000  # bootstrap resamples behind an interval
results: str = ""  # a CSV of results computed elsewhere (data/README.md), to stand beside""",
        ),
        (
            "code",
            """import pandas as pd

from factrobust import context, tables
from factrobust.context import metrics
from factrobust.context.facts import load_base_question_traits
from factrobust.context.rules import KINDS, RULES, decide, verdicts
from factrobust.datasets.published import THEIRS, load_labels
from factrobust.plots import blocks
from factrobust.statistics import exact_table, with_bounds

study = context.Study(globals())
marked = study.marked""",
        ),
        (
            "md",
            """## Seven kinds

Kinds 1 and 5 are memory or context in other words: if answers were compared by what they mean, these would be no others at
all. To tell kinds 2, 3 and 6 apart, one must know what is true of the world.""",
        ),
        ("code", """pd.DataFrame(KINDS.values(), index=pd.Index(KINDS, name="kind"))"""),
        (
            "md",
            """## The rules

The first that applies decides. They compare what answers **name**: their words but for "the", "of", "city" and the like,
their numbers and months.

1. Parametric and counterfactual answers name the same: **same**. No source can be told.
2. The answer is empty, a mark of an option, more of the prompt ("A: ... B:"), or repeats itself: **none**.
3. The same text as one of the two: 1 or 5.
4. A word that only the context has comes after "not": 4.
5. Numbers, or all words, from both, some from each alone: 7.
6. It names all that one of the two names, or the first part of one does: 1 or 5.
7. Its unit is the context's and not memory's ("70 years"): 3.
8. An accepted answer, or a question with several right ones: 6. The rest: 2.

## How often are they right?

A language model read answers of part 4 by a guide (`data/labels/README.md`). First 300 drawn at random, without sight of any
rule. Of these 259 are contextual: whoever always says so is right in 86%. Therefore all 161 answers, to the thesis's
questions and to sentences about facts, that our rules called parametric, other or same were read, too. Here the reader saw
the rules' verdict, and mistakes led to mends of the rules (initials, digits that are cut off, centimeters). And the rows were
chosen by our rules' verdict, which flatters ours. So these 161 are no unseen test.""",
        ),
        (
            "code",
            """every = {"300 drawn": load_labels("context"), "161 claims": load_labels("context_claims")}
rules = RULES | {"always contextual": lambda p, q, a: "contextual"}
said = {name: verdicts(labels, rules) for name, labels in every.items()}
right = exact_table(tables.stacked(said, "labels"), ["labels", "rule"], "right")
study.save_table(right, "4-context/table-rules-right")
claims = exact_table(said["161 claims"], ["rule"], "right")
study.save_table(claims, "4-context/table-rules-claims").round(3)""",
        ),
        (
            "code",
            """fig, _ = blocks.forest(
    right, "rule", by="labels", xlabel="share of verdicts that are right", shares="x"
)
study.save_figure(fig, "4-context/figure-rules", right)""",
        ),
        ("md", """Where our rules err on the 161:"""),
        (
            "code",
            """ours = said["161 claims"][said["161 claims"]["rule"] == "ours"]
confusion = pd.crosstab(ours["label"], ours["verdict"].rename("verdict of our rules"))
study.save_table(confusion, "4-context/table-rules-confusion")""",
        ),
        (
            "md",
            """They confuse others with more or less detail ("the Scottish Highlands" for Scotland), and do not know that American football
is football. The thesis's code has no "same", and calls those answers contextual or parametric.

## The thesis's answers, recounted

The thesis's author published all answers of four models. We recounted them by our rules (`data/recount_thesis.py`; only the
counts are here). Rows are the thesis's verdict, columns ours:""",
        ),
        (
            "code",
            """recount = study.published("4-context-recount")
wide = recount.pivot_table("count", ["model", "published"], "ours", "sum", sort=False, fill_value=0)
wide = wide[["contextual", "parametric", "other", "same", "none"]].astype(int)
study.save_table(wide, "4-context/table-recount", **THEIRS)""",
        ),
        (
            "code",
            """counted = metrics.shares(recount.groupby(["model", "ours"], sort=False)["count"].sum().reset_index())
study.save_table(counted, "4-context/table-recount-shares", **THEIRS)
counted[counted["ours"].isin(["none", "same"])].round(3)""",
        ),
        (
            "md",
            """Of Flan-T5-XL's answers, 90% contextual as published, «Q('none')» say nothing ("(D"), and «Q('same')» stand where memory and counterfactual
already say the same. Together these are 56% of its answers. The Llama models' counts hardly change.

## Tables 15 and 16: the thesis's examples

Beside the thesis's kind stands that of our rules, which were written with these in view.""",
        ),
        (
            "code",
            """texts = ["parametric", "counterfactual", "contextual"]
table15 = study.published("4-context-table-15")[["kind", "base_id", *texts]]
several = load_base_question_traits()["right_answers"][table15.pop("base_id")]
rows = zip(table15[texts].to_numpy(), several, strict=True)
decided = [decide(*row, right_answers=right)[1:] for row, right in rows]
table15[["kind_by_rules", "rule"]] = decided
study.save_table(table15, "4-context/table-15")
table16 = study.published("4-context-table-16")[[*texts, "comparison", "expected"]]
table16["source"] = [decide(*row).source for row in table16[texts].to_numpy()]
study.save_table(table16, "4-context/table-16")""",
        ),
        (
            "md",
            """Table 16 is the thesis's own criticism of its comparison: two others that a reader would call parametric and contextual. Our
rules call them so, too.

## Tables 13 and 14: how many others, and which kinds

By the thesis's comparison (`published`) and by ours (`robust`). The thesis's table 13 does not agree with its table 8; its
published answers give table 13's numbers.""",
        ),
        (
            "code",
            """published = metrics.mark_sources(study.results, study.questions, "published")
both = tables.stacked({"published": published, "robust": marked}, "comparison")
ours = metrics.counts_by(both, ["comparison", "model"])
thesis = study.published("4-context-table-13", "thesis").assign(comparison="published")
thesis = with_bounds(thesis.assign(share=thesis["count"] / 4760, n=4760, total=4760), "share")
table13 = pd.concat([ours[ours["source"] == "other"], thesis])
columns = ["model", "comparison", "count", "total", "share", "low", "high"]
study.save_table(table13[columns], "4-context/table-13").round(3)""",
        ),
        (
            "code",
            """thesis = study.published("4-context-table-14", "thesis")
thesis = metrics.shares(thesis[thesis["label"] != ""].astype({"kind": int}))
table14 = pd.concat([metrics.counts_by(published, value="kind"), thesis])
columns = ["model", "kind", "count", "total", "share", "low", "high", "n"]
study.save_table(table14[columns], "4-context/table-kinds")
wide = table14.pivot(index="kind", columns="model", values="count")[table14["model"].unique()]
study.save_table(wide, "4-context/table-14")""",
        ),
        (
            "md",
            """Kind 5, the context in other words, holds most of SmolLM2's others, as of Flan-T5's; of the Llama models' it holds 11% [7, 15]
and 10% [7, 13]. Gemma's are too few for a claim.

## What we saw, and what it means

**A rule that is right in «P('table-rules-right',"labels=='300 drawn' and rule=='ours'")» of answers drawn at random owes this to the context's copies: always saying "contextual" has 86%. On
the 161 answers that carry claims ours are right in «X('table-rules-claims',"rule=='ours'")», the thesis's code in «X('table-rules-claims',"rule=='code'")».**

- Of Flan-T5-XL's 4,760 published answers «Q('none')» say nothing, and of «Q('same')» no source can be told.
- Others by the thesis's comparison: «N('table-13',"comparison=='published' and "+MG,'count')» of Gemma's answers and «N('table-13',"comparison=='published' and "+MS,'count')» of SmolLM2's; by ours «N('table-13',"comparison=='robust' and "+MG,'count')» and «N('table-13',"comparison=='robust' and "+MS,'count')».
- Another reader, who does not see the verdicts, may refute the 161 labels.""",
        ),
    ],
)

N45 = (
    "4.5-which-source",
    [
        (
            "md",
            """# 4.5 Which source, and who can tell?

*The thesis, sections 3.3.3, 5.4.1 and 6.1.3.* A program that hands a retrieved text to a model would like to know whether the
answer rests on it. People read this off words, perplexities and other scores. Here the truth is a cause: **we exchange the
answers in the text, and see whether the model's answer follows.** Against this stand the rules and scores, led by the dullest:
the answer changed, and its words are in the text. Its log loss is «V('two-line rule')»; with all scores it is «V('texts and perplexities')» (Gemma, SmolLM2).""",
        ),
        (
            "params",
            MODELS
            + """data: str = "embedded"  # or world, town, or a CSV of facts
n_facts: int = 60  # facts, with five passages each
seed: int = 0  # which facts, passages and folds are drawn
n_boot: int = 2000  # bootstrap resamples behind an interval
nli_model: str = ""  # an NLI model (folder or hub id) that judges whether the passage entails the answer""",
        ),
        (
            "code",
            """import pandas as pd

from factrobust import context, tables
from factrobust.context import attribution, metrics, plots
from factrobust.models.interface import need
from factrobust.plots import blocks, style
from factrobust.statistics import as_mean, side_by_side

study = context.Passages(globals())
cases = study.cases
some = (cases[cases["defined"]].groupby("model")["from_context"].nunique() > 1).any()
need(some, study.models, "all answers have one source; ask more questions, or another model")""",
        ),
        (
            "md",
            """## The passages

Each of 3 to 10 sentences, about the fact that is asked for or around it; half of them in other words than the question:

- **true**, **false**: it states the right answer, or another fact's;
- **negated**: it says that a wrong answer is not true, and no more;
- **missing**: it does not state an answer;
- **retrieved**: BM25, a search by words, ranks it first among passages that tell half of the facts.

One or two sentences are about other subjects of the same relation (distractors). One fact's passages:""",
        ),
        (
            "code",
            """shown = study.passages[["question_id", "context", "sentence", "swap_1"]]
shown[shown["question_id"] == shown["question_id"].iloc[0]]""",
        ),
        (
            "md",
            """The last column has every answer of the relation exchanged for another of its kind. This is done twice.

## Where the answers come from

An answer is from the **context** if it states an answer of the passage, and after each exchange one that stands there then;
from **both** if it does, and memory says the same; from **memory** if it stays, and is what memory says; else from
**neither**.""",
        ),
        (
            "code",
            """causes = metrics.counts_by(cases, ["model", "context"], "cause", group="question_id", n_boot=n_boot)
study.save_table(causes.drop(columns="n_missing"), "4-context/table-causes")
fig = plots.causes(causes)
study.save_figure(fig, "4-context/figure-causes", causes)""",
        ),
        (
            "md",
            """«CAUSES()»

What the words say of the same answers: columns are the rule's verdict (4.4), rows the cause.""",
        ),
        (
            "code",
            """words = pd.crosstab([cases["model"], cases["cause"]], cases["source"].rename("by words"))
study.save_table(words, "4-context/table-words")""",
        ),
        (
            "md",
            """## Who can tell?

Each way of telling is a logistic regression on what it sees, fitted on other facts and relations. The **constant** knows the
share alone. The **two-line rule** sees whether the answer changed and its words stand in the passage. Perplexity, sequence
probability, entropy and pointwise mutual information (how much likelier the passage made the answer) are scores of
lm-polygraph, the share of the answer's words in the passage is one of ragas. Left out are answers that say nothing, and those
where memory says what the passage says: no score is defined there. *gain* is the log loss of the two-line rule minus that of
the way; intervals draw whole relations.""",
        ),
        (
            "code",
            """said = attribution.held_out(cases, seed=seed)
scores = attribution.scores_table(said, n_boot=n_boot)
study.save_table(scores, "4-context/table-ladder")
drawn = {"log loss (nats)": "log_loss", "Brier score": "brier"}
drawn = tables.stacked({name: as_mean(scores, column) for name, column in drawn.items()}, "score")
ways = [way for way in attribution.WAYS if way in set(scores["way"])]
fig, _ = blocks.forest(drawn, "way", ways, xlabel="lower is better", panel="score", what="answers",
                       width=style.DOUBLE, sharex=False)  # fmt: skip
study.save_figure(fig, "4-context/figure-ladder", drawn)""",
        ),
        ("code", """side_by_side(as_mean(scores, "gain"), "way", "model", digits=3)"""),
        (
            "md",
            """The constant's log loss is «V('constant')», the two-line rule's «V('two-line rule')». The thesis proposes the answer's own
perplexity: «V("answer's perplexity (thesis)")».
An interval of the gain that holds 0 shows no gain over the two lines.

## Does the probability hold where it matters?

For each kind of passage: the share that should be from the context by the probabilities of all texts and perplexities, and
the share that is, with exact intervals.""",
        ),
        (
            "code",
            """full = said[said["way"] == "texts and perplexities"]
defined = full[full["defined"]]
held = attribution.strata(defined, ["model", "context"])
study.save_table(held[["model", "context", "expected", "mean", "low", "high", "n"]], "4-context/table-strata")
fig = plots.expected(held)
study.save_figure(fig, "4-context/figure-strata", held)""",
        ),
        (
            "md",
            """«STRATA()»

And where memory agrees with the passage? There the same fits would say this, if they were asked:""",
        ),
        (
            "code",
            """agrees = full[~full["defined"] & full["contextual"].str.strip().astype(bool)]
table = attribution.strata(agrees, ["model"])
study.save_table(table[["model", "expected", "mean", "low", "high", "n"]], "4-context/table-agrees").round(3)""",
        ),
        (
            "md",
            """Of such answers «P('table-agrees',MG)» and «P('table-agrees',MS)» follow the exchange, and the fits would expect «P('table-agrees',MG,'expected')» and «P('table-agrees',MS,'expected')». So `ground` gives no
probability there, says why, and the exchange decides.

## Another model

Each model's answers, told by a fit on the other model alone:""",
        ),
        (
            "code",
            """carried = attribution.held_out(cases, over="model", k=len(study.models), seed=seed)
other = attribution.scores_table(carried, n_boot=n_boot)
study.save_table(other, "4-context/table-carried")
side_by_side(as_mean(other, "log_loss"), "way", "model", digits=3)""",
        ),
        (
            "md",
            """To fit `ground` to your own model: `python data/fit_ground.py --models NAME --out mine.json`, then
`ground(..., detector=grounding.load(file="mine.json"))`.

## What we saw, and what it means

**The exchange tells the source without words or scores. Two lines, "it changed, and its words are there", tell it with a log
loss of «V('two-line rule')»; with perplexities it is «V('texts and perplexities')», a gain of «G('texts and perplexities',MG)» (Gemma) and «G('texts and perplexities',MS)» (SmolLM2).**

- A constant has «V('constant')», the thesis's perplexity alone «V("answer's perplexity (thesis)")».
- Where memory agrees with the passage no score is defined; the exchange is.

Larger models, and passages whose answers cannot be exchanged word by word, would test this.""",
        ),
    ],
)

N46 = (
    "4.6-questions",
    [
        (
            "md",
            """# 4.6 The thesis's questions

*The thesis, sections 3.1 and 4.1.* Whether an answer comes from memory or from the context can be told if the context states
another answer, in the same form as the memory's. **The thesis takes such contexts from the model itself: what it says about
one object is stated of another object.** So 100 base questions about 411 objects make 4,760 questions with a context each.""",
        ),
        (
            "params",
            """questions: str = "embedded"  # or world, town, thesis:FOLDER (base_questions.txt, objects.csv)
n_objects: int = 4  # objects of each of the 100 base questions (thesis: all, 4,760 questions)
seed: int = 0  # which objects are drawn""",
        ),
        (
            "code",
            """import pandas as pd

from factrobust import context
from factrobust.context.facts import (
    FILES,
    describe,
    load_base_question_traits,
    load_context_questions,
    read_base_questions,
)
from factrobust.tables import read_csv

study = context.Study(globals())""",
        ),
        (
            "md",
            """## The whole way (the thesis's figure 3 and table 5)

A model is asked **Q** without a context: its answer **p** is the *parametric* one. Its answer to the same question about
another object is **q**, the *counterfactual*. A context states q of the first object, and the model is asked again: does it
say p or q? P0 to P4 are perplexities (4.3). Answers and counterfactuals are the thesis's, the sentences ours:""",
        ),
        (
            "code",
            """every = load_context_questions()
example = study.published("4-context-table-5").merge(every, on=["base_id", "object"])
columns = ["object", "question", "prefix", "parametric", "counterfactual"]
study.save_table(example[columns], "4-context/table-05")""",
        ),
        (
            "md",
            """## Base questions, and table 1

A base question belongs to a category and has a slot for one of its objects; its prefix begins the sentence that the answer
completes. The thesis chose what is asked; the sentences are ours. The thesis's examples, in our words:""",
        ),
        (
            "code",
            """base = read_base_questions(FILES[0])
table1 = study.published("4-context-table-1")[["base_id", "object"]].merge(every)
study.save_table(table1[["category", "object", "question", "prefix"]], "4-context/table-01")""",
        ),
        (
            "md",
            """## Table 7: how many there are

Our counts beside the thesis's. (The captions of its tables 9 and 10 speak of ten categories; there are nine.)""",
        ),
        (
            "code",
            """counts = describe(every).drop(columns="example")
thesis = study.published("4-context-table-7")
thesis = thesis.pivot(index="category", columns="quantity", values="value")
print("the same:", counts.equals(thesis.loc[counts.index, counts.columns]))
study.save_table(counts.join(thesis.add_suffix("_thesis")), "4-context/table-07")""",
        ),
        (
            "md",
            """All counts are the same.

## Where our list of objects differs from the printed one

The text of the thesis's list that we had repeats, misreads or lacks some lines. Every change is in
`data/context/mended.csv`:""",
        ),
        (
            "code",
            """mended = read_csv(FILES[1].with_name("mended.csv"), keep_default_na=False)
mended["change"] = "renamed"
mended.loc[mended["mended"] == "", "change"] = "dropped"
mended.loc[mended["as_printed"] == "", "change"] = "restored"
changes = pd.crosstab(mended["category"], mended["change"], margins=True, margins_name="total")
study.save_table(changes, "4-context/table-mended")""",
        ),
        (
            "md",
            """Most of the 89 changes drop or rename a line. One error is the thesis's own, a misspelt painting, which then is in the list
twice; both stay, so that the counts are the thesis's.

## What kind of answer?

The thesis wants short, unambiguous answers, so that two can be compared. We judged what each base question's answers are,
and whether more than one can be right.""",
        ),
        (
            "code",
            """traits = load_base_question_traits()
answers = pd.crosstab(traits["answer_kind"], traits["right_answers"])
answers = answers.assign(all=answers.sum(axis=1)).sort_values("all", ascending=False, kind="stable")
answers.loc["total"] = answers.sum()
study.save_table(answers.rename_axis("answer"), "4-context/table-answers")""",
        ),
        (
            "md",
            """A third have several right answers. The most frequent answer is a number, which is asked for in a unit.

## The questions asked in this part

To ask each model 4,760 questions twice takes too long on a laptop. So the notebooks draw the same number of objects for each
base question. The draw does not depend on the order of the files, and a larger `n_objects` contains a smaller one.""",
        ),
        ("code", """study.save_table(describe(study.questions), "4-context/table-sample")"""),
        (
            "md",
            """## What we saw, and what it means

**The thesis's 4,760 questions can be asked with our sentences: 100 base questions about 411 objects, as many in each category
as its table 7 prints.**

- 23 base questions ask for a number, and 32 have several right answers by our judgement.
- The models here are asked 400 of the questions.""",
        ),
    ],
)
