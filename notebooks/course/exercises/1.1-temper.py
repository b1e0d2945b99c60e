r"""1.1 Temper a distribution · implement, 10 minutes

A model gives every token of its vocabulary a number, the *logit*. Tokens are drawn with the probabilities

$$P_t(i) = \frac{e^{z_i / t}}{\sum_j e^{z_j / t}},$$

where $z$ are the logits and $t$ is the temperature. Write this as a function. `logits` is an array of numbers, `t` a
number above 0. The result is an array of the same length. Logits can be as large as 1,000: your function must not
overflow.
"""


# %% stub
def temper(logits, t):
    return ...


# %% check
def check(temper):
    from scipy.special import softmax

    rng = np.random.default_rng(11)
    for t in (0.5, 1.0, 2.0):
        logits = rng.normal(scale=3, size=12)
        found = temper(logits, t)
        given(found)
        assert np.shape(found) == (12,), "The result must have one probability a token."
        assert np.isclose(np.sum(found), 1), f"At t = {t} the probabilities do not sum to 1."
        apart = np.abs(np.asarray(found) - softmax(logits / t)).max()
        assert apart < 1e-9, (
            f"At t = {t} a probability is off by {apart:.3f}; look at the exponent."
        )
    with np.errstate(all="ignore"):
        large = temper(np.array([1000.0, 999.0]), 1.0)
    assert np.all(np.isfinite(large)), "Logits of 1,000 overflow; what can you subtract from all?"


# %% hints
"""
- Divide by the temperature first, then take the exponential.
- Probabilities do not change when the same number is subtracted from all logits. Which number keeps the exponential
  small?
- `np.exp` and `.sum()` are all you need.
"""


# %% solution
def temper(logits, t):
    z = np.asarray(logits) / t
    weights = np.exp(z - z.max())
    return weights / weights.sum()


# %% use
heads = data("heads")
kenya = heads[(heads["fact_id"] == "capital/kenya") & (heads["model"] == "gemma-3-270m")]
for t in (0.5, 1.0, 2.0):
    shares = temper(kenya["logprob"], t)
    print(f"t = {t}: {kenya['token'].iloc[0].strip()} holds {shares[0]:.0%} of the ten likeliest")


# %% wrong
def temper(logits, t):
    z = np.asarray(logits) * t
    weights = np.exp(z - z.max())
    return weights / weights.sum()


# %% wrong
def temper(logits, t):
    weights = np.exp(np.asarray(logits) / t)
    return weights / weights.sum()
