"""2.5 The placebo · implement, 15 minutes

A drug is compared with a pill that holds nothing. Here the pill is another block of dates. Sort the dates of a fact by
time. The correct ones stand together, with incorrect ones on both sides. Pretend that **another block of as many
dates** was the validity, and compute its win rate against all dates outside the block. If the other blocks do as well
as the true one, the model does not know this validity.

`values` are log-probabilities in the order of time, `k` is the number of correct dates, `first` is the place of the
first one. A block must have at least one date on each side. Return two numbers: the win rate of the true block, and
the mean win rate of all **other** blocks.
"""


# %% stub
def placebo(values, k, first):
    return ...


# %% check
def check(placebo):
    from factrobust.temporal import placebo as ours

    rng = np.random.default_rng(25)
    for k, n in ((1, 5), (3, 9), (2, 8)):
        first = int(rng.integers(1, n - k))
        values = rng.normal(size=n)
        inside = (np.arange(n) >= first) & (np.arange(n) < first + k)
        scores = pd.DataFrame({"logprob": values, "date": [str(1950 + i) for i in range(n)]})
        scores["label"] = np.where(inside, "correct", "incorrect")
        scores = scores.assign(model="m", prompt_format="q", fact_id="f", precision="year")
        blocks = ours.windows(scores)
        truth = blocks.loc[blocks["true"], "win_rate"].iloc[0]
        others = blocks.loc[~blocks["true"], "win_rate"].mean()
        found = placebo(values, k, first)
        given(found)
        assert np.isclose(found[0], truth), "The win rate of the true block is wrong."
        assert np.isclose(found[1], others), (
            f"The mean of the other blocks is off by {abs(found[1] - others):.3f}: which blocks count?"
        )


# %% hints
"""
- A block may begin at place 1 at the earliest, and at place `len(values) - k - 1` at the latest.
- `np.delete(values, np.arange(start, start + k))` gives the dates outside a block.
- Leave the true block out of the mean. Without any other block the mean is `np.nan`.
"""


# %% solution
def placebo(values, k, first):
    rates = {}
    for start in range(1, len(values) - k):
        outside = np.delete(values, np.arange(start, start + k))
        rates[start] = (values[start : start + k, None] > outside).mean()
    truth = rates.pop(first)
    return truth, np.mean(list(rates.values())) if rates else np.nan


# %% use
from factrobust.intervals import bootstrap_mean

for model, rows in data("years").query("label != 'transitional'").groupby("model"):
    gaps = []
    for _, fact in rows.sort_values("year").groupby("fact_id"):
        right = (fact["label"] == "correct").to_numpy()
        truth, others = placebo(fact["logprob"].to_numpy(), right.sum(), right.argmax())
        if np.isfinite(others):  # some facts have no other block
            gaps.append(truth - others)
    mean, low, high, n = bootstrap_mean(gaps)
    print(f"{model}: validity minus placebo {mean:.3f} [{low:.3f}, {high:.3f}], n = {n} facts")


# %% wrong
def placebo(values, k, first):
    rates = {}
    for start in range(1, len(values) - k):
        outside = np.delete(values, np.arange(start, start + k))
        rates[start] = (values[start : start + k, None] > outside).mean()
    return rates[first], np.mean(list(rates.values()))


# %% wrong
def placebo(values, k, first):
    rates = {}
    for start in range(len(values) - k + 1):
        outside = np.delete(values, np.arange(start, start + k))
        rates[start] = (values[start : start + k, None] > outside).mean()
    truth = rates.pop(first)
    return truth, np.mean(list(rates.values()))
