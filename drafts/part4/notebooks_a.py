"""Sources of notebooks 4.0 to 4.2; «...» is filled from the tables by fill.py."""

MODELS = """models: list = ["gemma-3-270m", "smollm2-135m-instruct"]  # names, folders, .gguf files or hub ids
"""
BOOT = """n_boot: int = 2000  # bootstrap resamples behind an interval"""

N40 = (
    "4.0-did-it-come-from-the-context",
    [
        (
            "md",
            """# 4.0 Did the answer come from the context?

*Ours, for the question of the thesis.* A program finds a text, puts it before a question, and a model answers. Did the
answer come from the text, or from what the model knew? **Exchange the answer in the text for another one: an answer that
follows came from the text.** One call does it:""",
        ),
        (
            "params",
            MODELS
            + """question: str = "What is the capital of Kenya?"
prefix: str = "The capital of Kenya is"  # begins the answer, which small models need""",
        ),
        (
            "code",
            """import pandas as pd

from factrobust import ground
from factrobust.study import Study

study = Study(globals())
texts = ["The capital of Kenya is Lima.", "The capital of Kenya is Nairobi."]
texts += ["The capital of Peru is Lima.", "Kenya lies in Africa."]
found = [
    {"model": model.name, "context": text}
    | ground(model, question, text, prefix=prefix, swap=True)._asdict()
    for model in study.models
    for text in texts
]
table = pd.DataFrame(found)
columns = ["model", "context", "memory", "answer", "swapped", "source"]
study.save_table(table, "4-context/table-ground")[columns]""",
        ),
        (
            "md",
            """`memory` is the answer without a context, `answer` the one with it. Then the words of the answer are exchanged in the
context, and the model is asked twice more (`swapped`). The `source` is

- **context**: the answer follows both exchanges;
- **both**: it follows, and memory says the same without the context;
- **memory**: it stays the same, and is what memory says;
- **neither**: all else. An answer that says nothing has the source "none".

Both models follow the false sentence. Gemma follows the true one as well, although it knew the answer. SmolLM2 follows only
one of its two exchanges, and says something else after the other. Where a sentence holds no answer, a model says what it
remembers.

Only words that stand in the context can be exchanged. Where the answer's words do not stand there, `why` says so.

## What it costs, and the cheaper question

The exchange asks a model four times instead of two. Without `swap=True` the words decide, and a *probability* goes with
them, where one is defined:""",
        ),
        (
            "code",
            """cheap = [
    {"model": model.name, "context": text} | ground(model, question, text, prefix=prefix)._asdict()
    for model in study.models
    for text in texts
]
columns = ["model", "context", "answer", "source", "probability", "why"]
pd.DataFrame(cheap)[columns].round(3)""",
        ),
        (
            "md",
            """If memory says what the context says, neither words nor scores can tell the source: the probability is None. 4.5 tests both
ways on passages of 3 to 10 sentences.

## Your own texts

One may give several contexts, an answer that one has already, one's own prompt, or many questions at once:""",
        ),
        (
            "code",
            """prompt = "Read this.\\n{contexts}\\nQ: {question}\\nA:"
contexts = ["Kenya lies in Africa.", "Its capital is Lima."]
mine = [ground(m, question, contexts, answer="Lima", prompt=prompt, swap=True) for m in study.models]
pd.DataFrame(mine, index=[m.name for m in study.models])[["memory", "answer", "swapped", "source"]]""",
        ),
        (
            "md",
            """In one's own prompt the lines with `{contexts}` are left out when memory is asked. With this prompt, and no prefix, neither
model follows the exchange: "Lima" is not their own answer.

## What follows

- [4.1](4.1-which-contexts-win.ipynb): facts that a model knows, against contexts of a growing dose.
- [4.2](4.2-memory-or-context.ipynb) to [4.4](4.4-others.ipynb): the thesis, its tables, its perplexities and its rules.
- [4.5](4.5-which-source.ipynb): which scores tell the source, held against the exchange.
- [4.6](4.6-questions.ipynb): the thesis's 4,760 questions.""",
        ),
        (
            "md",
            """## What we saw, and what it means

**A false sentence about Kenya's capital is followed by both models, and the exchange shows that it was. Gemma alone follows
a true one, which no comparison of words or scores can tell.** One question is an example, and no
claim: 4.1 asks hundreds of facts that the models know.""",
        ),
    ],
)

N41 = (
    "4.1-which-contexts-win",
    [
        (
            "md",
            """# 4.1 Which contexts win over which memories?

*Ours, beyond the thesis.* Tell a model something false about a fact that it knows. **Gemma follows «P('table-dose',"factor=='all' and "+MG)»
of such contexts and SmolLM2 «P('table-dose',"factor=='all' and "+MS)».** What makes a context win: a statement that the model
finds likely, repetition, or a named source? Chance draws each of them, so that its effect is a difference.""",
        ),
        (
            "params",
            MODELS
            + """data: str = "embedded"  # or world, town, or a CSV of facts
n_asked: int = 540  # facts asked; those that a model knows get two false contexts
n_facts: int = 80  # facts, known or not, with a true, an irrelevant and a false context
seed: int = 0  # which facts and contexts are drawn
n_boot: int = 2000  # resamples behind an interval, and arrangements behind a p-value""",
        ),
        (
            "code",
            """import pandas as pd

from factrobust import context
from factrobust.context import following, metrics, plots
from factrobust.context.facts import DOSE
from factrobust.models.interface import need

study = context.KnownContexts(globals())
right = study.marked[["correct", "parametric_correct"]].any(axis=None)
need(right, study.models, "no answer is right; ask easier questions, or another model")""",
        ),
        (
            "md",
            """## What a model knows

A fact counts as known if the answer without a context is right and has a **margin**: the right answer is at least twice as
likely as the likeliest of eight rivals. These are answers to the same question about other subjects, those nearest in
popularity. This leaves out lucky guesses.""",
        ),
        (
            "code",
            """known = study.known.assign(known=study.known["margin"] >= following.MARGIN, asked=n_asked)
table = known.groupby("model").agg(
    asked=("asked", "first"), right=("known", "size"), known=("known", "sum")
)
study.save_table(table.reset_index(), "4-context/table-known")""",
        ),
        (
            "md",
            """## A dose of contradiction

Each known fact gets two false contexts. Chance draws what they are like:

- **likely**: the rival that is stated is one of the likelier four by the model's own probability, else of the other four;
- **repeated**: it is said three times, else once;
- **attributed**: "According to the encyclopedia, ..." stands before it.

Each holds for one of a fact's two contexts. The **gap** says how much likelier the right answer was, without a context,
than the one stated (nats):""",
        ),
        (
            "code",
            """dosed = study.dosed
columns = ["model", "sentence", "gap", "parametric", "contextual", "source"]
dosed[columns].groupby("model").head(3).round(2)""",
        ),
        (
            "md",
            """## What makes a context win

The share of contexts that are followed, with each factor and without it. Both of a fact's contexts are compared; intervals
draw facts, and the p-value compares with the other arrangements that could have been drawn. With three factors and two
models, a p-value below 0.05 / 6 stands by itself.""",
        ),
        (
            "code",
            """moved = following.effects(dosed, DOSE, n_boot=n_boot)
study.save_table(moved, "4-context/table-context-effects")
fig = plots.by_row(
    moved, "factor", "change in the share that follow the context", rows=plots.FACTORS, at=0
)
study.save_figure(fig, "4-context/figure-context-effects", moved)""",
        ),
        ("code", """moved.round(4)"""),
        (
            "md",
            """Said three times instead of once changes «I('table-context-effects',"factor=='repeated' and "+MG,0,True)» points for Gemma and «I('table-context-effects',"factor=='repeated' and "+MS,0,True)» for SmolLM2;
a likelier rival «I('table-context-effects',"factor=='likely' and "+MG,0,True)» and «I('table-context-effects',"factor=='likely' and "+MS,0,True)»; a source «I('table-context-effects',"factor=='attributed' and "+MG,0,True)» and «I('table-context-effects',"factor=='attributed' and "+MS,0,True)». An interval that holds 0 shows no effect.

## Beside the thesis, like for like

The thesis states one near answer, once, without a source. Our contexts of that kind are those that are likely, said once,
and bare. But ours ask facts that a model knows, and the thesis whatever it asked.""",
        ),
        (
            "code",
            """plain = dosed[dosed["likely"] & ~dosed["repeated"] & ~dosed["attributed"]]
ours = {"all": dosed, "like the thesis": plain}
rows = [study.means(part, ["model"], "followed").assign(factor=f) for f, part in ours.items()]
table = pd.concat(rows)[["model", "factor", "mean", "low", "high", "n"]]
study.save_table(table, "4-context/table-dose").round(3)""",
        ),
        (
            "md",
            """On these it is «I('table-dose',"factor=='like the thesis' and "+MG,0,True)»% and «I('table-dose',"factor=='like the thesis' and "+MS,0,True)»%; the thesis has 77% and 69% for its Llama models and 90% for both Flan-T5.

## Which memories give way

A logistic regression of following on the gap, with the other two factors beside it. A coefficient is in logits a nat of the
gap: a stronger memory, or a stranger rival, has a larger gap. The dull rivals are the perplexity of memory's answer
($\\log P_0$) and the popularity of the subject.""",
        ),
        (
            "code",
            """terms = ["repeated", "attributed"]
fits = [following.fit(dosed, [name, *terms]) for name in ("gap", "log_p0", "popularity")]
fitted = pd.concat(fits).query("term in ('gap', 'log_p0', 'popularity')")
study.save_table(fitted, "4-context/table-context-fit").round(4)""",
        ),
        (
            "code",
            """points = following.binned(dosed, ("gap", "log_p0"), 4, n_boot=n_boot)
fig = plots.followed_by_memory(points)
study.save_figure(fig, "4-context/figure-context-memory", points)""",
        ),
        (
            "md",
            """A nat of gap changes «I('table-context-fit',"term=='gap' and "+MG,2,False,'coefficient')» logits (Gemma) and «I('table-context-fit',"term=='gap' and "+MS,2,False,'coefficient')» (SmolLM2). Points are quarters of the contexts.

## Does it read whom a context is about?

Now facts that a model knows or not, with single sentences: **true**, **false**, or **irrelevant**. The last two state the
same answer, and differ in the subject alone.""",
        ),
        (
            "code",
            """marked = study.marked
memory = marked[marked["context"] == "true"].assign(context="none")
memory["correct"] = memory["parametric_correct"]
right = pd.concat([memory, marked])
right["facts"] = right["parametric_correct"].map({True: "known", False: "unknown"})
both = pd.concat([right.assign(facts="all"), right])
both = both[(both["facts"] == "all") | (both["context"] != "none")]
table = metrics.counts_by(both, ["facts", "context", "model"], "correct").query("correct")
table = table.rename(columns={"share": "mean"})
table = table[["facts", "context", "model", "mean", "low", "high", "n"]]
study.save_table(table, "4-context/table-contexts")
study.save_figure(plots.right_by_context(table), "4-context/figure-contexts", table)""",
        ),
        (
            "md",
            """A true sentence makes every answer right. Intervals are exact. How much more often does a model say the stated answer if the
sentence is about the subject that is asked for?""",
        ),
        (
            "code",
            """beside = following.followed(marked[marked["context"] != "true"])
beside = beside.assign(subject=beside["context"] == "false")
reading = following.effects(beside, ["subject"], n_boot=n_boot)
study.save_table(reading, "4-context/table-context-reading").round(4)""",
        ),
        (
            "md",
            """Both models read the subject: a sentence about it is repeated more often, by «I('table-context-reading',MG,0,True)» and «I('table-context-reading',MS,0,True)» points. But they still
repeat «P('table-context-reading',MG,'without_it')» and «P('table-context-reading',MS,'without_it')» of the sentences about somebody else.

## What we saw, and what it means

**A false context wins over a known fact in «I('table-dose',"factor=='all' and "+MG,0,True)»% of cases for Gemma and «I('table-dose',"factor=='all' and "+MS,0,True)»% for SmolLM2.**

- Said three times: «I('table-context-effects',"factor=='repeated' and "+MG,0,True)» and «I('table-context-effects',"factor=='repeated' and "+MS,0,True)» points more. A named source: «I('table-context-effects',"factor=='attributed' and "+MG,0,True)» and «I('table-context-effects',"factor=='attributed' and "+MS,0,True)».
- A rival that the model finds likelier: «I('table-context-effects',"factor=='likely' and "+MG,0,True)» and «I('table-context-effects',"factor=='likely' and "+MS,0,True)» points.
- The thesis, on all its questions: 69% to 90%.

A larger model for which a source, and not repetition, moves answers would refute this.""",
        ),
    ],
)

N42 = (
    "4.2-memory-or-context",
    [
        (
            "md",
            """# 4.2 Memory or context?

*The thesis, sections 3.2 and 4.2.* A model answers a question from memory: the **parametric** answer. Then it is asked again
behind a context that states another answer, the **counterfactual**: what the model itself said about another object. Which
of the two does it say now? **Of the answers that make sense, Gemma takes «P('table-sound',"source=='contextual' and "+MG,'share')» from the context and SmolLM2 «P('table-sound',"source=='contextual' and "+MS,'share')»** (the
thesis's Llama models 77% and 69%).""",
        ),
        (
            "params",
            MODELS
            + """questions: str = "embedded"  # or world, town, thesis:FOLDER (base_questions.txt, objects.csv)
results: str = ""  # a CSV of results that were computed elsewhere, to stand beside
n_objects: int = 4  # objects of each of the 100 base questions (thesis: all, 4,760 questions)
wordings: str = "thesis"  # nine base questions in the thesis's own words
grown: list = ["world-m", "world-t5"]  # a decoder and an encoder-decoder, grown alike (part 5)
n_facts: int = 240  # facts of the invented world that these are asked
contexts: list = ["false", "irrelevant"]  # the kinds of contexts of these facts
seed: int = 0  # which objects and counterfactuals are drawn
"""
            + BOOT,
        ),
        (
            "code",
            """import pandas as pd

from factrobust import context
from factrobust.context import metrics, plots, probe
from factrobust.datasets.published import THEIRS, load_labels
from factrobust.statistics import side_by_side

study = context.Study(globals())
asked, answers, marked = study.questions, study.results, study.marked""",
        ),
        (
            "md",
            """## What a model is asked

The thesis's form has no example and no instruction, and the context repeats the words that the answer follows. SmolLM2 gets
it through its chat template. One question, as each model gets it:""",
        ),
        (
            "code",
            """one = answers[answers["question_id"] == "city-15/toronto"]
one = one if len(one) else answers.iloc[[0]]
own = asked[asked["question_id"] == one["question_id"].iloc[0]]
stated = f"{own['prefix'].iloc[0]} {one['counterfactual'].iloc[0]}"
for model in study.models:
    print(repr(probe.context_prompts(model, own, [stated])[0]))
one[["model", "parametric", "counterfactual", "contextual"]]""",
        ),
        (
            "md",
            """Both models repeat the context's false airport. Answers are greedy (always the most probable token), at most 20 tokens, and
end with their first sentence. Where all answers to a base question are equal there is no counterfactual:""",
        ),
        ("code", """study.counts"""),
        (
            "md",
            """## Table 4: where did an answer come from?

The thesis compares words, and so do our rules (4.4). An answer is **parametric** or **contextual** if it says the same as
one of the two, **other** if it says neither, **none** if it says nothing, and **same** if memory and counterfactual agree
already. 4.5 asks for causes instead. The first of each:""",
        ),
        (
            "code",
            """columns = ["object", "parametric", "counterfactual", "contextual", "source"]
table4 = marked.drop_duplicates(["model", "source"])[["model", *columns]]
study.save_table(table4, "4-context/table-04")""",
        ),
        (
            "md",
            """## Table 8 and figure 5: how often each

Shares of all answers; "same" is left out. Intervals draw whole base questions.""",
        ),
        (
            "code",
            """table8 = metrics.counts_by(marked, group="base_id", n_boot=n_boot)
thesis = metrics.shares(study.published("4-context-table-8", "thesis"))
both = pd.concat([table8, thesis])
study.save_figure(plots.source_shares(both), "4-context/figure-05", both)""",
        ),
        (
            "code",
            """study.save_table(side_by_side(both, "model", "source", "share"), "4-context/table-08")""",
        ),
        (
            "md",
            """In all six models most answers come from the context. More than a tenth of Gemma's say nothing: they are empty, or more of
the prompt's form ("A: Jazz B: Rock"). An answer is **sound** if its memory, its counterfactual and itself are answers, and
the first two differ:""",
        ),
        (
            "code",
            """sound = marked[marked["sound"]]
by_source = metrics.counts_by(sound, group="base_id", n_boot=n_boot).drop(columns="n_missing")
study.save_table(by_source, "4-context/table-sound")
side_by_side(by_source, "model", "source", "share")""",
        ),
        (
            "md",
            """## How far the comparison can be trusted

300 of these answers, drawn at random, were labelled without sight of what the rule says (`data/labels`). The corrected share
(*mean*) is the rule's share of all answers, plus the labels' minus the rule's on the labelled ones.""",
        ),
        (
            "code",
            """corrected = metrics.corrected_shares(marked, load_labels("context"))
study.save_table(corrected, "4-context/table-corrected")
corrected[corrected["source"].isin(["contextual", "same"])].round(3)""",
        ),
        (
            "md",
            """With this correction «I('table-corrected',"source=='contextual' and "+MG,0,True)»% of Gemma's and «I('table-corrected',"source=='contextual' and "+MS,0,True)»% of SmolLM2's answers are from the context.

## Tables 9 and 10, figures 6 and 7: by category

The share from the context: our models' sound answers, and all answers of the thesis's models.""",
        ),
        (
            "code",
            """by, label = ["model", "category"], "share of answers from the context"
ours = metrics.counts_by(sound, by, group="base_id", n_boot=n_boot).drop(columns="n_missing")
table9 = pd.concat([ours, metrics.shares(study.published("4-context-table-9", "thesis"), by)])
table10 = study.published("4-context-table-10").drop(columns=["where", "check"])
tables = [table9, metrics.shares(table10, by)]
tables = [t[t["source"] == "contextual"].rename(columns={"share": "mean"}) for t in tables]
for table, number, whose in zip(tables, ("09", "10"), ({}, THEIRS), strict=True):
    study.save_table(side_by_side(table, "category", "model"), f"4-context/table-{number}", **whose)""",
        ),
        (
            "code",
            """shown = {"xlim": (0.4, 1.02), "shares": "x"}
fig = plots.by_row(tables[0], "category", label, **shown)
study.save_figure(fig, "4-context/figure-06", tables[0])""",
        ),
        (
            "code",
            """fig = plots.by_row(tables[1], "category", label, **shown)
study.save_figure(fig, "4-context/figure-07", tables[1], **THEIRS)""",
        ),
        (
            "md",
            """Our categories have few answers and wide intervals, some of which go on beyond the left edge: nothing
can be claimed of them. Llama's lowest shares are those of elements and historical events.

## The thesis's own words

Our base questions are worded by us. Nine of the thesis's own, one a category (its appendix A), asked about the same objects:
does the wording matter? The difference is theirs minus ours, fact by fact. (`questions: thesis:FOLDER` asks all 100; the
profile `thesis` does so.)""",
        ),
        (
            "code",
            """theirs = context.Study(globals() | {"questions": wordings, "results": ""})
rows = {"ours": marked, "theirs": theirs.marked}
rows = pd.concat([table.assign(wording=name) for name, table in rows.items()])
rows = rows[rows["sound"] & rows["base_id"].isin(theirs.questions["base_id"])]
rows["followed"] = rows["source"] == "contextual"
apart = study.paired(rows, ["model"], "followed", "wording", ("ours", "theirs"))
study.save_table(apart, "4-context/table-wordings").round(3)""",
        ),
        (
            "md",
            """«I('table-wordings',MG,2)» for Gemma and «I('table-wordings',MS,2)» for SmolLM2: an interval that holds 0 shows no difference.

## An encoder-decoder beside a decoder

The thesis finds that its encoder-decoders follow contexts more often than its decoders. But these differ in everything. Two
models that were grown here differ in the architecture alone: the same invented world, texts, steps and a like number of
weights (5.5). Both are asked facts of that world with a sentence that contradicts them, or that is about another subject:""",
        ),
        (
            "code",
            """alike = context.KnownContexts(globals() | {"models": grown, "questions": "world", "results": ""})
rows = alike.marked[alike.marked["parametric_correct"]]
rows = rows.assign(says=metrics.answer_source_label(rows), followed=lambda t: t["says"] == "the context")
study.others = alike.models
table = study.means(rows, ["model", "context"], "followed")
study.save_table(table, "4-context/table-seq2seq").round(3)""",
        ),
        (
            "md",
            """Of what they know, `world-m` follows «I('table-seq2seq',"model=='world-m' and context=='false'",0,True)»% of the contradicting sentences and `world-t5` «I('table-seq2seq',"model=='world-t5' and context=='false'",0,True)»%. But
`world-t5` repeats a sentence about another subject as well, in «I('table-seq2seq',"model=='world-t5' and context=='irrelevant'",0,True)»% (`world-m`: «I('table-seq2seq',"model=='world-m' and context=='irrelevant'",0,True)»%): it copies, whomever
the sentence is about. It is one model each, and training luck alone moves such shares (5.5), so a difference here is no law of
architectures.

## What we saw, and what it means

**Where they say anything, both models say what the context says: in «I('table-sound',"source=='contextual' and "+MG,0,True,'share')»% of Gemma's sound answers and «I('table-sound',"source=='contextual' and "+MS,0,True,'share')»% of SmolLM2's.**
The thesis has 77% and 69% for Llama, 90% for both Flan-T5.

- Corrected by labels, of all answers it is «I('table-corrected',"source=='contextual' and "+MG,0,True)»% and «I('table-corrected',"source=='contextual' and "+MS,0,True)»%.
- That need not be trust in the context: most memories here are guesses. 4.1 asks facts that are known.
- By category nothing can be claimed of our models.""",
        ),
    ],
)
