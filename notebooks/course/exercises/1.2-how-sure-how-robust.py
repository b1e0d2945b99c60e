"""1.2 How sure, how robust? · predict, 8 minutes

The *breaking temperature* $t_b$ of a known answer is the temperature at which its probability falls to one half. The
*log-probability* of the same answer is known from a single greedy run, at no further cost.

Take all answers that Gemma knows. Rank them by $t_b$, and rank them by their log-probability. Predict
Spearman's rank correlation of the two: 0 if the one tells nothing of the other, 1 if both rank the facts alike. Write
your number down before you look at any notebook of part 1.
"""

# %% stub
prediction = ...  # a number from -1 to 1


# %% check
def check(prediction):
    rows = data("answers").query("model == 'gemma-3-270m' and right")
    truth = rows["logprob"].corr(rows["t_b"], method="spearman")
    assert is_number(prediction), "Give a number."
    assert -1 <= prediction <= 1, "A correlation lies between -1 and 1."
    assert prediction > truth - 0.1, "Too low: think of what happens to a token with 99%."
    assert prediction < truth + 0.1, (
        "Too high: the rivals of two equally likely answers can differ."
    )


# %% hints
"""
- A token with a probability of 99% has rivals that are all far behind. Which temperature lets them catch up?
- Does $t_b$ use anything that the probabilities at $t = 1$ do not hold?
- Notebook 1.3 asks this question of all models.
"""

# %% solution
prediction = 0.95

# %% use
rows = data("answers").query("right")
for model, part in rows.groupby("model"):
    r = part["logprob"].corr(part["t_b"], method="spearman")
    print(f"{model}: {r:.2f}, n = {len(part)} known facts")

# %% wrong
prediction = 0.3

# %% wrong
prediction = -0.9
