"""1.5 An interval that draws facts · implement, 15 minutes

A fact was asked in eleven wordings. The eleven answers are alike: if one is right, most are. So 20 facts are 20 pieces
of news, and not 220. The *bootstrap by facts* respects that: draw as many facts as there are, with replacement, take
**all rows** of each drawn fact (twice, if it is drawn twice), and compute the mean of all these rows. Do this `n_boot`
times. The interval runs from the 2.5th to the 97.5th percentile of these means.

`values` and `facts` are arrays of one length: a number and the name of its fact. Facts may have different numbers of
rows. Return two numbers, low and high.
"""


# %% stub
def interval(values, facts, n_boot=500):
    return ...


# %% check
def check(interval):
    from factrobust.intervals import bootstrap_mean

    rng = np.random.default_rng(15)
    sizes = rng.integers(1, 20, 40)
    facts = np.repeat(np.arange(40), sizes)
    values = (np.repeat(rng.uniform(size=40), sizes) > rng.uniform(size=len(facts))).astype(float)
    values = np.where(facts % 2 == 0, np.repeat(rng.integers(0, 2, 40), sizes), values)
    found = interval(values, facts)
    given(found)
    low, high = found
    assert low < high, "Return the lower bound first."
    one = interval(values, facts, n_boot=1)
    assert one[0] == one[1], (
        "With n_boot=1 there is one mean, and both ends are that: do you draw n_boot times?"
    )
    rare = np.array([1.0] + [0.0] * 9)
    assert interval(rare, np.arange(10))[0] >= 0, (
        "One right answer of ten, and your interval begins below 0: no drawn mean lies there."
    )
    true, alone = bootstrap_mean(values, facts), bootstrap_mean(values)
    width, wide, narrow = high - low, true.high - true.low, alone.high - alone.low
    assert width > (narrow + wide) / 2, "Your interval is too narrow: do you draw rows, or 90%?"
    assert width > 0.85 * wide, "Your interval is too narrow: which percentiles do you take?"
    assert width < 1.15 * wide, "Your interval is too wide."
    middle = (low + high) / 2 - (true.low + true.high) / 2
    assert abs(middle) < 0.1 * wide, "Your interval lies beside ours: do all rows weigh the same?"


# %% hints
"""
- First make a list of arrays, one a fact: `[values[facts == name] for name in np.unique(facts)]`.
- `rng.integers(len(parts), size=len(parts))` draws places with replacement.
- The mean of all drawn rows is not the mean of the facts' means: a fact with many rows weighs more.
"""


# %% solution
def interval(values, facts, n_boot=500):
    rng = np.random.default_rng(0)
    parts = [values[facts == name] for name in np.unique(facts)]
    means = []
    for _ in range(n_boot):
        drawn = rng.integers(len(parts), size=len(parts))
        means.append(np.concatenate([parts[i] for i in drawn]).mean())
    return np.percentile(means, [2.5, 97.5])


# %% use
rows = data("wordings").query("model == 'gemma-3-270m'")
right, facts = rows["correct"].to_numpy(float), rows["group_id"].to_numpy()
for name, groups in {"facts": facts, "rows": np.arange(len(rows))}.items():
    low, high = interval(right, groups)
    print(f"drawing {name}: {right.mean():.3f} [{low:.3f}, {high:.3f}]")
print(f"{len(rows)} rows of {len(set(facts))} facts: rows alone make the interval look too good.")


# %% wrong
def interval(values, facts, n_boot=500):
    means = np.array([values[facts == name].mean() for name in np.unique(facts)])  # draws nothing
    error = means.std(ddof=1) / np.sqrt(len(means))
    return values.mean() - 1.96 * error, values.mean() + 1.96 * error


# %% wrong
def interval(values, facts, n_boot=500):
    rng = np.random.default_rng(0)
    means = [rng.choice(values, len(values)).mean() for _ in range(n_boot)]
    return np.percentile(means, [2.5, 97.5])


# %% wrong
def interval(values, facts, n_boot=500):
    rng = np.random.default_rng(0)
    parts = [values[facts == name] for name in np.unique(facts)]
    means = []
    for _ in range(n_boot):
        drawn = rng.integers(len(parts), size=len(parts))
        means.append(np.concatenate([parts[i] for i in drawn]).mean())
    return np.percentile(means, [16, 84])
