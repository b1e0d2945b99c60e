NAME='3.0-one-question'
CELLS=[
('md',r'''
# 3.0 One question, ten wordings

*An example, before the measures of paper 3.* Answers that are alike need not be right. We ask two models who directed
the film The Shining: in the original wording, and in ten paraphrases (the same question in other words). Gemma names
Stanley Kubrick in four of its eleven answers, and its consistency is only 0.31. SmolLM2 names seven other people and
never him, but its consistency is 0.77: nine of its answers begin with "The Shining".
'''),
('code',r'''
models: list = ["gemma-3-270m", "smollm2-135m-instruct"]  # names, folders, .gguf files or hub ids
data: str = "embedded"  # or world, town, popqa_tp (@REVISION or :FILE), or a CSV of questions
group: str = "director/the-shining"  # the question; the first one, if this is not asked
n_facts: int = 480  # facts asked about, the same number from each relation
n_samples: int = 10  # samples of the original question (paper: 10)
max_new_tokens: int = 20  # tokens of an answer at most
sentence_encoder: str = "all-MiniLM-L6-v2"  # behind SCons and Cert: this, a folder or a hub id
seed: int = 0  # which facts are drawn, and the samples' random numbers
''', 'parameters'),
('code',r'''
import pandas as pd

from factrobust import wording
from factrobust.statistics import paired_table
from factrobust.wording import metrics, plots, probe

study = wording.Study(globals())
asked = study.questions["group_id"]
group = group if group in set(asked) else asked.iloc[0]
''', 'nbval-ignore-output'),
('md',r'''
## The answers

Each model answers greedily: at each step it takes the likeliest next token (a word or a part of one). A cross marks
an answer that does not state the right name.
'''),
('code',r'''
one = study.marked[study.marked["group_id"] == group]
marks = one["correct"].map({True: "", False: " ✗"})
answers = one.assign(answer=one["text"].replace("", "(empty)") + marks)
wide = answers.pivot(index=["variant", "question"], columns="model", values="answer")
wide.reset_index("question").rename_axis(columns=None)
'''),
('md',r'''
The same question in other words is, for a small model, another question. Gemma answers with an actor of the film,
with "The director", or with nothing. SmolLM2 always writes a sentence, and often puts another name into it.

## How alike are the answers?

The paper turns each answer $i$ into a vector $e_i$, a sentence embedding. The consistency of a question $q$ is the
mean cosine over all pairs of its $n$ answers (equation 1); texts that the encoder takes for equal have a cosine of 1:

$$\operatorname{int\_sim}(\mathcal{T}) = \frac{1}{\binom{n}{2}} \sum_{i=1}^{n-1} \sum_{j=i+1}^{n}
\cos(e_i, e_j), \qquad SCons(q) = \operatorname{int\_sim}(\text{answers to } q \text{ and its paraphrases}).$$

Eleven answers make $\binom{11}{2} = 55$ pairs, each a square in the figure; $SCons$ is their mean.
'''),
('code',r'''
sets = study.answer_sets[study.answer_sets["group_id"] == group]
pairs = probe.compared(metrics.answer_pairs(sets), study.encoder)
study.save_figure(plots.similarities(pairs), "3-wording/figure-one-question", pairs)
'''),
('md',r'''
In Gemma's panel the four answers that name Kubrick are alike (0.62 to 1). SmolLM2's panel is dark all over, though
the names differ: "directed by Steven Spielberg" and "directed by Stephen King" have a cosine of 0.83.

## SCons by hand

An empty answer has no vector, and the paper does not say what to do with it. Here two empty answers have a cosine of
1, and an empty answer and a text have 0. SCons is the total of a model's sums in the table, divided by 55.
'''),
('code',r'''
empty = pairs[["answer_1", "answer_2"]].eq("").sum(axis=1)
pairs["kind"] = empty.map({0: "two texts", 1: "one empty", 2: "two empty"})
kinds = pairs.groupby(["model", "kind"])["cosine"].agg(["size", "mean", "sum"])
kinds = kinds.rename(columns={"size": "pairs", "mean": "mean cosine"}).round(2).reset_index()
study.save_table(kinds, "3-wording/table-one-question")
'''),
('md',r'''
For Gemma this gives $(6 \cdot 1 + 28 \cdot 0 + 21 \cdot 0.53) / 55 = 17.1 / 55 = 0.31$. A third of it comes from
empty answers. For SmolLM2 it gives $55 \cdot 0.77 / 55 = 0.77$, without empty answers.

## Cert by hand

Certainty (Cert) needs no paraphrases: the original question is asked ten times, with answers drawn at random, likely
ones more often (temperature 0.5, the paper's 4.1.3). $Cert$ is the mean cosine over the $\binom{10}{2} = 45$ pairs of
these samples.
'''),
('code',r'''
original = study.questions[asked == group].iloc[:1]
how = {"n": n_samples, "seed": seed, "max_new_tokens": max_new_tokens}
forms = study.formats
drawn = [probe.sampled(m, original, prompt_format=forms[m.name], **how) for m in study.models]
samples = pd.concat(drawn)
samples.pivot(index="sample", columns="model", values="text").rename_axis(columns=None)
'''),
('code',r'''
sets = metrics.text_groups(samples)
sampled = probe.compared(metrics.answer_pairs(sets), study.encoder)
cert = sampled.groupby("model")["cosine"].agg(["size", "sum", "mean"])
cert.set_axis(["pairs", "sum of cosines", "Cert"], axis=1).round(2).reset_index()
'''),
('md',r'''
By Cert, too, Gemma is the less certain model, and again only Gemma names Kubrick: in N0 of its ten samples.

## Consistent or not, right or wrong

One question proves nothing. So take all 480, and call those *consistent* whose SCons is at or above the median **of their relation** (relations
differ in how hard they are: a split over all of them would mostly part capitals from mothers). The table counts the four kinds
of questions (n), each with a typical example: its SCons is nearest to the kind's median.
'''),
('code',r'''
found = metrics.gallery(study.originals)
found["three of its answers"] = [" / ".join(list(dict.fromkeys(t))[:3]) for t in found["texts"]]
names = ["model", "consistent", "correct", "n", "scons", "question", "three of its answers"]
study.save_table(found[names].round({"scons": 2}), "3-wording/table-gallery")
'''),
('md',r'''
A model may be wrong in sentences that are alike, and right in answers that are not.

The share of right answers among the consistent questions of a relation minus that among its others; the interval draws relations:
'''),
('code',r'''
asked = study.originals
middle = asked.groupby(["model", "relation"])["scons"].transform("median")
asked["half"] = (asked["scons"] >= middle).map({True: "consistent", False: "others"})
shares = asked.groupby(["model", "relation", "half"])["correct"].mean().reset_index()
halves = paired_table(shares, ["model"], "correct", "half", ("others", "consistent"), group="relation")
study.save_table(halves.round(4), "3-wording/table-halves")
'''),
('md',r'''
Of Gemma's consistent questions «table-halves|G|=consistent:0%» are answered rightly, of the others «table-halves|G|=others:0%»: «table-halves|G|mean:0%» points apart. For
SmolLM2 it is «table-halves|S|=consistent:0%» and «table-halves|S|=others:0%», «table-halves|S|mean:0%» apart. Within a relation, consistency is a sign of a right answer, and a weak one.
'''),
('md',r'''
## What we saw, and what it means

**A model that never names the director is twice as consistent about him (0.77) as one that names him four times in
eleven (0.31), because SCons measures how alike sentences are, not whether they agree.**

- Gemma's 55 cosines add up to 17.1, and 6 of it comes from pairs of empty answers.
- Cert, from ten samples of one wording, has the same order: 0.32 and 0.75.
- Over 480 questions consistency is a sign of right answers for Gemma: 57% [51, 64] are right in the consistent half,
  24% [19, 30] in the other. For SmolLM2 35% [29, 41] and 27% [22, 33] leave it open (n = 240 each).

The paper's range of SCons by relation is 0.4 to 0.9, and no example in it shows what the number is made of. One
question is no evidence: 3.2 asks 480, and 3.6 takes the question's words out of the answers. If SCons measured
agreement, that would change little.
'''),
]
