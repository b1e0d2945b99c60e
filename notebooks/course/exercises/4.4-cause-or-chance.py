r"""4.4 Cause, or chance? · implement, 15 minutes

In the invented world chance decided **when** a fact is told: early in the corpus or late. More late facts are known at
the end. Because chance assigned the timing, nothing else can be behind the difference but the timing, or luck. A
*randomisation test* tells the two apart: shuffle the labels "early" and "late" over the facts many times, and see how
often the shuffled difference is at least as large as the real one, in **either** direction.

`late` is an array of 1 (late) and 0 (early), `known` is an array of 1 and 0. Return the p-value
$(1 + \text{shuffles as large}) / (1 + \text{shuffles})$, so that it is never 0. Differences that are equal but for
rounding (1e-12) count as large.
"""


# %% stub
def p_value(late, known, shuffles=2000):
    return ...


# %% check
def check(p_value):
    from scipy.stats import permutation_test

    def difference(one, other, axis=0):
        return one.mean(axis=axis) - other.mean(axis=axis)

    rng = np.random.default_rng(44)
    for shift in (0.0, 0.15, -0.2):
        late = np.repeat([0, 1], [40, 50])
        known = (rng.uniform(size=90) < 0.5 + shift * late).astype(int)
        sides = known[late == 1], known[late == 0]
        options = {"vectorized": True, "n_resamples": 4000, "rng": 1}
        truth = permutation_test(sides, difference, permutation_type="independent", **options)
        found = p_value(late, known)
        given(found)
        assert found > 0, "A p-value of 0 cannot be: the real arrangement is one of them."
        assert found > 0.7 * truth.pvalue - 0.02, "Too small: do you count both directions?"
        assert found < truth.pvalue + 0.06, "Too large: do you shuffle the labels, and all of them?"
    clear = np.repeat([0, 1], [40, 50])
    assert np.isclose(p_value(clear, clear, shuffles=19), 1 / 20), (
        "With 19 shuffles p cannot be below 1/20, and a clear effect reaches that: do you shuffle?"
    )
    alone = np.array([1] + [0] * 19)
    found = p_value(alone, alone, shuffles=4000)
    assert 0.035 < found < 0.065, (
        "One late fact of 20 is the one known: p is 1/20. Does each shuffle keep the number of labels?"
    )
    equal = p_value(np.array([0, 1] * 20), np.ones(40, int))
    assert np.isclose(equal, 1), (
        "If all facts are known, every shuffle is as large as the real one."
    )


# %% hints
"""
- `rng.permutation(late)` shuffles labels and keeps their number.
- Compare absolute values: `abs(shuffled) >= abs(real) - 1e-12`.
"""


# %% solution
def p_value(late, known, shuffles=2000):
    rng = np.random.default_rng(0)

    def difference(labels):
        return known[labels == 1].mean() - known[labels == 0].mean()

    real = abs(difference(late))
    as_large = sum(abs(difference(rng.permutation(late))) >= real - 1e-12 for _ in range(shuffles))
    return (1 + as_large) / (1 + shuffles)


# %% use
rows = data("world").query("exposure >= 64 and timing in ['early', 'late']")
for model, part in rows.groupby("model"):
    late, known = [], []
    for row in part.itertuples():
        late += [row.timing == "late"] * row.n
        known += [1] * row.known + [0] * (row.n - row.known)
    late, known = np.array(late, int), np.array(known)
    shares = known[late == 1].mean(), known[late == 0].mean()
    print(
        f"{model}: late {shares[0]:.0%}, early {shares[1]:.0%}, p = {p_value(late, known):.4f}, n = {len(late)}"
    )


# %% wrong
def p_value(late, known, shuffles=2000):
    from scipy.stats import norm

    one, other = known[late == 1], known[late == 0]
    error = np.sqrt(known.var() * (1 / len(one) + 1 / len(other))) + 1e-12
    return 2 * norm.sf(abs(one.mean() - other.mean()) / error)  # shuffles nothing


# %% wrong
def p_value(late, known, shuffles=2000):
    rng = np.random.default_rng(0)

    def difference(labels):
        if labels.min() == labels.max():
            return 0.0
        return known[labels == 1].mean() - known[labels == 0].mean()

    real = abs(difference(late))
    drawn = (rng.choice(late, len(late)) for _ in range(shuffles))  # with replacement
    return (1 + sum(abs(difference(x)) >= real - 1e-12 for x in drawn)) / (1 + shuffles)


# %% wrong
def p_value(late, known, shuffles=2000):
    rng = np.random.default_rng(0)
    real = known[late == 1].mean() - known[late == 0].mean()
    found = 0
    for _ in range(shuffles):
        labels = rng.permutation(late)
        found += known[labels == 1].mean() - known[labels == 0].mean() >= real - 1e-12
    return (1 + found) / (1 + shuffles)


# %% wrong
def p_value(late, known, shuffles=2000):
    rng = np.random.default_rng(0)
    real = abs(known[late == 1].mean() - known[late == 0].mean())
    found = 0
    for _ in range(shuffles):
        labels = rng.permutation(late)
        found += abs(known[labels == 1].mean() - known[labels == 0].mean()) > real + 1e-12
    return found / shuffles
