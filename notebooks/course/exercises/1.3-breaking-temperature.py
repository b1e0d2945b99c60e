"""1.3 Find the breaking temperature · implement, 15 minutes

The probability of the likeliest token falls when the temperature rises. So there is one temperature at which it is
exactly one half: the breaking temperature $t_b$. Find it to 0.001 by halving an interval: begin with 0.01 and 10, look
at the middle, keep the half in which the answer breaks.

`logits` are the logits of all tokens, `answer` is the place of the likeliest one. Return `np.inf` if its probability
is still above one half at $t = 10$, and `np.nan` if it is below one half already at $t = 0.01$.
"""


# %% stub
def breaking_temperature(logits, answer):
    return ...


# %% check
def check(breaking_temperature):
    from scipy.special import log_softmax

    from factrobust.decoding.metrics import exact_break
    from factrobust.decoding.probe import GRID

    rng = np.random.default_rng(13)
    for lead in (2.0, 5.0, 8.0):
        logits = rng.normal(size=60)
        logits[7] = logits.max() + lead
        found = breaking_temperature(logits, 7)
        given(found)
        truth = exact_break(GRID, [log_softmax(logits / t)[7] for t in GRID])
        apart = abs(found - truth)
        assert apart < 0.004 * truth, f"One of your temperatures is off by {apart:.3f}."
    assert np.isinf(breaking_temperature(np.array([99.0, 0.0]), 0)), (
        "An answer that is sure at t = 10 must give np.inf."
    )
    assert np.isnan(breaking_temperature(np.zeros(4), 0)), (
        "Four equal tokens never reach one half: this must give np.nan."
    )


# %% hints
"""
- Use `temper` of exercise 1.1 in a small function of the temperature alone.
- Test the two ends first: they decide about `np.inf` and `np.nan`.
- Thirteen halvings of an interval of length 10 leave 0.0012; take some more.
"""


# %% solution
def breaking_temperature(logits, answer):
    def probability(t):
        z = np.asarray(logits) / t
        weights = np.exp(z - z.max())
        return weights[answer] / weights.sum()

    low, high = 0.01, 10.0
    if probability(low) < 0.5:
        return np.nan
    if probability(high) > 0.5:
        return np.inf
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if probability(middle) > 0.5 else (low, middle)
    return (low + high) / 2


# %% use
heads = data("heads").query("model == 'gemma-3-270m'")
exact = data("answers").query("model == 'gemma-3-270m' and tokens == 1").set_index("fact_id")["t_b"]
for fact, head in list(heads[heads["fact_id"].isin(exact.index)].groupby("fact_id"))[:6]:
    of_ten = breaking_temperature(head["logprob"].to_numpy(), 0)
    print(f"{fact}: {of_ten:.2f} with ten tokens, {exact[fact]:.2f} with the whole vocabulary")
print("Ten tokens are too few: at high temperatures the others hold most of the probability.")


# %% wrong
def breaking_temperature(logits, answer):
    for t in np.arange(0.2, 10, 0.2):  # the paper's grid is too coarse here
        weights = np.exp((logits - np.max(logits)) / t)
        if weights[answer] / weights.sum() < 0.5:
            return t
    return np.inf


# %% wrong
def breaking_temperature(logits, answer):
    first, second = np.sort(logits)[::-1][:2]  # only one rival counts
    return (first - second) / np.log(2)
