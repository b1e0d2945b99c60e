"""1.6 Logits times four · predict, 8 minutes

Somebody multiplies all logits of a model by 4 and publishes it as a new model. Which of these five differ between the
old model and the new one?

- `accuracy`: the share of right greedy answers
- `order`: the order of the known facts by breaking temperature $t_b$
- `H`: the mean entropy of the known answers
- `FRS`: the mean score of the known answers
- `best type`: whether numbers or places are the type with most facts among the highest third of the scores (Gemma)

Write down those that **change**, as a set of their names, before you look at notebook 1.4.
"""

# %% stub
prediction = ...  # such as {"accuracy", "order"}


# %% check
def check(prediction):
    names = {"accuracy", "order", "H", "FRS", "best type"}
    assert isinstance(prediction, set | list | tuple), "Give a set of names."
    said = set(prediction)
    assert said <= names, f"Take names from these five: {', '.join(sorted(names))}."
    assert "accuracy" not in said, "The likeliest token stays the likeliest: which answer changes?"
    assert "order" not in said, (
        "softmax(4 z / t) is softmax(z / (t / 4)): what happens to each t_b?"
    )
    assert "H" in said, (
        "Write ten probabilities down and raise each to the fourth power: what of H?"
    )
    assert "FRS" in said, (
        "Each t_b is four times as high, and H is lower: what does equation 3 say?"
    )
    assert "best type" in said, (
        "The score mixes H, a mean, with t_b, a product: one of them may win now."
    )


# %% hints
"""
- A softmax of logits times 4 is the old softmax at a temperature of 1/4.
- What is multiplied by one number keeps its order; what is added to something else need not.
- Numbers are long answers of sure tokens (1.5). Do they profit from a low $H$ or from a high $t_b$?
"""

# %% solution
prediction = {"H", "FRS", "best type"}

# %% use
heads = data("heads")
sharp = np.exp(heads["logprob"] * 4)
sharp = sharp / sharp.groupby([heads["model"], heads["fact_id"]]).transform("sum")
likeliest = heads.assign(p=sharp).query("rank == 0").groupby("model")["p"].mean()
plain = np.exp(heads.query("rank == 0").set_index("model")["logprob"]).groupby("model").mean()
print("mean probability of the likeliest first token, logits as they are and times 4:")
print(pd.DataFrame({"as they are": plain, "times 4": likeliest}).round(2).to_string())
print("The same facts, the same answers: it only sounds surer.")

# %% wrong
prediction = {"order", "H", "FRS", "best type"}

# %% wrong
prediction = {"H", "FRS"}
