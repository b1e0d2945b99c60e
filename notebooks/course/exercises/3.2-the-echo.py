"""3.2 The consistent model · find the flaw, 12 minutes

Two models are asked 80 questions in many wordings. The answers of SmolLM2 share 42% of their words, those of Gemma 34%.
"So SmolLM2 is the more consistent one," says its maker. But a model that knows nothing can be consistent, too: it
repeats the words of the question. "The director of The Shining is Steven Spielberg" and "The director of The Shining is
Stephen King" share nearly all their words, and no answer.

The right null is the answer **without the words of its question**. Write `bare(answer, question)`. It normalises both
texts (`normalise` does that: lower case, no articles, no punctuation) and returns the words of the answer that are not
in the question, in their order, joined by spaces.
"""

# %% stub
from factrobust.text import normalise


def bare(answer, question):
    return ...


# %% check
def check(bare):
    from factrobust.wording.metrics import without_question

    rows = data("wordings").sample(60, random_state=32)[["text", "question"]]
    rows = rows.fillna("").reset_index(drop=True)
    fixed = ("The Shining was directed by the king.", "Who directed The Shining?")
    rows.loc[len(rows)] = fixed
    truths = without_question(rows)["text"]
    for text, question, truth in zip(rows["text"], rows["question"], truths, strict=True):
        found = bare(text, question)
        given(found)
        assert isinstance(found, str), "Return a text, not a list."
        assert found == truth, f"{text[:60]!r} leaves other words than yours."


# %% hints
"""
- `normalise(question).split()` are the words that do not count.
- Compare whole words: "king" stays, although "making" is in the question.
"""

# %% solution
from factrobust.text import normalise


def bare(answer, question):
    asked = set(normalise(question).split())
    return " ".join(word for word in normalise(answer).split() if word not in asked)


# %% use
from factrobust.text import rouge_l

rows = data("wordings").fillna("")
rows["bare"] = [bare(*pair) for pair in zip(rows["text"], rows["question"], strict=True)]
for model, part in rows.groupby("model"):
    answers = part.groupby("group_id")
    whole, left = (rouge_l(answers[name].agg(list).tolist()).mean() for name in ("text", "bare"))
    print(f"{model}: answers share {whole:.0%} of their words, without the question's {left:.0%}")

# %% wrong
from factrobust.text import normalise


def bare(answer, question):
    words = normalise(answer).split()
    return " ".join(word for word in words if word not in normalise(question))  # inside words


# %% wrong
def bare(answer, question):
    asked = set(question.split())
    return " ".join(word for word in answer.split() if word not in asked)
