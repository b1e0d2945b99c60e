NAME='3.1-questions-and-paraphrases'
CELLS=[
('md',r'''
# 3.1 Questions and their paraphrases

*Paper 3, section 2.* The same fact can be asked for in many ways. The paper judges its paraphrases by one number: the
mean cosine of a paraphrase with its original question (both as sentence embeddings, vectors that stand for texts) is
0.914. Ours have «table-quality|pair=paraphrase|=mean:2». But a question that asks for *something else* about the same subject has «table-quality|pair=other relation|=mean:2». So a large
cosine is mostly the subject's name, and no proof of the same meaning.
'''),
('code',r'''
data: str = "embedded"  # or world, town, popqa_tp (@REVISION or :FILE), or a CSV of questions
n_facts: int = 192  # facts asked about, the same number from each relation
sentence_encoder: str = "all-MiniLM-L6-v2"  # measures likeness: this, a folder or a hub id
seed: int = 0  # which facts are drawn, and which questions stand beside them
n_boot: int = 2000  # bootstrap resamples behind an interval
''', 'parameters'),
('code',r'''
from factrobust import statistics, wording
from factrobust.wording import plots
from factrobust.wording.facts import describe, load_named_questions, load_paraphrases, quality_pairs

study = wording.Study(globals())
''', 'nbval-ignore-output'),
('md',r'''
## Templates

A template is a question with a gap for the subject. Ours were written for this repository, as many for each relation
as in the paper's table 1. (With the parameter `data`, the notebooks of this part ask the paper's own questions,
PopQA-TP, or yours.) A template must keep the meaning for every subject of its relation, because all wordings share
one list of accepted answers. The first template of each relation:
'''),
('code',r'''
load_paraphrases().groupby("relation").first()
'''),
('md',r'''
All wordings of one fact (#0 is the original):
'''),
('code',r'''
every, counts, *_ = load_named_questions(data)
if data != "embedded":
    print("left out or amiss:", counts)
fact = every[every["group_id"] == "occupation/frank-lloyd-wright"]
fact = fact if len(fact) else every[every["group_id"] == every["group_id"].iloc[0]]
fact[["question_id", "question", "answers"]].reset_index(drop=True)
'''),
('md',r'''
## Table 1

Questions, alternatives (paraphrases of each question), and all wordings together, of all 879 facts with templates.
This notebook looks at 192 of them, the following ones at 480. Then the paper's table:
'''),
('code',r'''
study.save_table(describe(every), "3-wording/table-01")
'''),
('code',r'''
paper = study.published("3-wording-table-1")
paper[["relation", "questions", "alternatives", "total_questions", "check"]]
'''),
('md',r'''
We have fewer facts, and as many templates. The paper's row for *author* does not add up: 9,084 is 6 times 1,514, an
original and five alternatives, not six. We wrote six.

## Table 2

All wordings of two questions:
'''),
('code',r'''
shown = every[every["group_id"].isin(["genre/b-b-king", "occupation/frank-lloyd-wright"])]
shown = shown if len(shown) else every[every["group_id"].isin(every["group_id"].unique()[:2])]
study.save_table(shown[["relation", "question"]].reset_index(drop=True), "3-wording/table-02")
'''),
('md',r'''
The alternatives keep the subject and change the words around it.

## How good are the paraphrases?

The paper measures the quality of a relation's paraphrases by the mean cosine of a paraphrase $p$ and its original
question $q(p)$, over the set $P$ of paraphrases, with the embeddings $e$:

$$\text{quality} = \frac{1}{|P|} \sum_{p \in P} \cos\big(e_{q(p)}, e_p\big).$$

Averaged over relations it is 0.914 in the paper. Is that much? For a scale, we also compare each original with two
questions that are *no* paraphrases of it:

- **other relation**: another question about the same subject ("Who produced the film ..." for "Who directed the film ..."); five
  relations (capitals, cities, colors, composers) share no subject with another, and get **nonsense** ("What was the occupation of Japan?");
- **other subject**: the same question about another subject.
'''),
('code',r'''
pairs = quality_pairs(study.questions, seed)
pairs["cosine"] = study.encoder.similarity(pairs[["original", "question"]].values.tolist())
pairs.groupby("pair").head(2)[["pair", "original", "question", "cosine"]].round(2)
'''),
('code',r'''
quality = study.means(pairs, ["relation", "pair"], "cosine")
study.save_figure(plots.quality(quality), "3-wording/figure-quality", quality)
'''),
('md',r'''
The table gives two pairs of each kind, the figure the means. In every relation the paraphrases stand on the right. The other question
about the same subject is not far behind for films. The same question about another subject is far away. The means over
relations, each counted alike (intervals draw whole relations):
'''),
('code',r'''
scale = statistics.interval_table(quality, ["pair"], "mean", "relation", n_boot=n_boot)
study.save_table(scale.sort_values("mean", ascending=False).round(3), "3-wording/table-quality")
'''),
('md',r'''
So the scale is this: «table-quality|pair=other subject|mean:2» for the same words about another subject, «table-quality|pair=other relation|mean:2» for the same subject with another
meaning (n = 11 relations; 0.77 if the nonsense of the other five counts, too), and «table-quality|pair=paraphrase|mean:2» for a paraphrase.

How often is a paraphrase closer to its original than the other question about the same subject is? Chance would give one half.
'''),
('code',r'''
paraphrases = pairs[pairs["pair"] == "paraphrase"]
others = pairs[pairs["pair"].isin(["other relation", "nonsense"])][["group_id", "question", "cosine"]]
duels = paraphrases.merge(others, on="group_id", suffixes=("", " (other)"))
duels["lead"] = duels["cosine (other)"] - duels["cosine"]
closer = study.means(duels.assign(closer=duels["lead"] < 0), ["relation"], "closer")
study.save_table(closer.sort_values("mean").round(3), "3-wording/table-closer")
'''),
('code',r'''
every_relation = study.means(duels.assign(closer=duels["lead"] < 0), [], "closer")
study.save_table(every_relation.round(3), "3-wording/table-closer-all")
'''),
('md',r'''
The paraphrase wins in «table-closer-all||mean:0%» of the pairs. It wins less often for films: for "Who wrote the screenplay of the film ...?" in
«table-closer|relation=screenwriter|mean:0%». There the cosine alone cannot tell a paraphrase from a question about the director or the producer. In six relations,
the paraphrase that loses by most:
'''),
('code',r'''
lost = duels.sort_values("lead", ascending=False).drop_duplicates("relation").head(6)
lost[["original", "question", "cosine", "question (other)", "cosine (other)"]].round(2)
'''),
('md',r'''
Each of these paraphrases asks for the same thing as its original, and the question that beats it does not. The cosine
mostly shows how many words are shared, and a paraphrase is meant to change the words.
'''),
('md',r'''
## What we saw, and what it means

**Our paraphrases have a quality of «table-quality|pair=paraphrase|=mean:2», the paper's have 0.914, and a question that asks for something else about the same subject has
«table-quality|pair=other relation|=mean:2»: the measure sees words, and above all the subject.**

- The paper does not name its encoder; ours is all-MiniLM-L6-v2, so the two need not be comparable.
- For screenwriters the other question is closer in half of the pairs: no threshold on this number could keep bad paraphrases out.
- Whether a template keeps the meaning was judged by a reader model. Some ask politely ("Can you tell me ...") and may be answered with
  yes; 3.2 measures what that costs. One subject, "the season of Lent", has no religion of its own; it stays, since it is asked elsewhere.

A template that changes which answer is right would refute that, whatever its cosine. Our subjects are better known than PopQA's (3.7).
'''),
]
