"""2.2 The win rate · implement, 8 minutes

The same question is asked with many dates: "In 1998, who was the president of Kenya?" At some dates the object is
correct, at others it is not. In a *match* a correct date meets an incorrect one. It wins if the object is **strictly**
more probable after the correct date; a tie is no win. The win rate $W$ is the share of matches that are won.

`correct` and `incorrect` are arrays of log-probabilities. Every correct date meets every incorrect one.
"""


# %% stub
def win_rate(correct, incorrect):
    return ...


# %% check
def check(win_rate):
    from factrobust.temporal import metrics

    rng = np.random.default_rng(22)
    for n_correct, n_incorrect in ((1, 1), (3, 6), (5, 4)):
        values = rng.integers(-6, 0, n_correct + n_incorrect).astype(float)  # with ties
        labels = ["correct"] * n_correct + ["incorrect"] * n_incorrect
        scores = pd.DataFrame({"label": labels, "logprob": values})
        scores = scores.assign(model="m", prompt_format="question", fact_id="f", precision="year")
        truth = metrics.matches(scores)["win_rate"].iloc[0]
        found = win_rate(values[:n_correct], values[n_correct:])
        given(found)
        assert 0 <= found <= 1, "A share lies between 0 and 1: divide by the number of matches."
        assert np.isclose(found, truth), (
            f"With {n_correct} correct and {n_incorrect} incorrect dates W is off by "
            f"{abs(found - truth):.2f}; what do you do with ties?"
        )


# %% hints
"""
- `correct[:, None] > incorrect` compares every correct date with every incorrect one.
- The mean of true and false is a share.
"""


# %% solution
def win_rate(correct, incorrect):
    return float((np.asarray(correct)[:, None] > np.asarray(incorrect)).mean())


# %% use
for model, rows in data("years").groupby("model"):
    rates = []
    for _, fact in rows.groupby("fact_id"):
        of = {label: part["logprob"].to_numpy() for label, part in fact.groupby("label")}
        rates.append(win_rate(of["correct"], of["incorrect"]))
    print(f"{model}: mean W = {np.mean(rates):.2f}, n = {len(rates)} facts")


# %% wrong
def win_rate(correct, incorrect):
    return float((np.asarray(correct)[:, None] >= np.asarray(incorrect)).mean())


# %% wrong
def win_rate(correct, incorrect):
    higher = np.sign(np.asarray(correct)[:, None] - np.asarray(incorrect))
    return float((1 + higher).mean() / 2)  # a tie counts half
