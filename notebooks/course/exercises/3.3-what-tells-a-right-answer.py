"""3.3 What tells a right answer? · predict, 8 minutes

You may know one thing about a question that a model has answered, and you bet on whether the answer is right:

- "consistency": how alike its answers to eleven wordings are (SCons);
- "relation": what kind of question it is (a capital, an author, ...), and how many **other** questions of this kind
  the model gets right.

The measure is the AUC: the probability that a right answer scores higher than a wrong one (one half: useless). Which
one has the higher AUC on average over our two models?
"""

# %% stub
prediction = ...  # "consistency", "relation", or "equal" (within 0.02)


# %% check
def check(prediction):
    from course import auc

    choices = ("consistency", "relation", "equal")
    assert prediction in choices, f"Choose one of {', '.join(choices)}."
    gaps = []
    for _, rows in data("groups").groupby("model"):
        of = rows.groupby("relation")["correct"]
        others = (of.transform("sum") - rows["correct"]) / (of.transform("size") - 1)
        gaps.append(auc(rows["correct"], rows["scons"]).auc - auc(rows["correct"], others).auc)
    gap = np.mean(gaps)
    truth = "equal" if abs(gap) < 0.02 else "consistency" if gap > 0 else "relation"
    assert prediction == truth, "The records say otherwise: think of how unlike the kinds are."


# %% hints
"""
- Nearly all capitals are known to Gemma, and nearly no directors.
- A measure can look good only because it tells the kinds of questions apart.
- Notebook 3.4 has one table of predictors.
"""

# %% solution
prediction = "relation"

# %% use
from course import auc

for model, rows in data("groups").groupby("model"):
    of = rows.groupby("relation")["correct"]
    others = (of.transform("sum") - rows["correct"]) / (of.transform("size") - 1)
    for name, score in {"consistency": rows["scons"], "relation": others}.items():
        found = auc(rows["correct"], score)
        print(
            f"{model}, {name}: AUC {found.auc:.2f} [{found.low:.2f}, {found.high:.2f}], n = {len(rows)}"
        )

# %% wrong
prediction = "consistency"

# %% wrong
prediction = "equal"
