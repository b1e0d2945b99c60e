r"""1.4 The Factual Robustness Score · implement, 10 minutes

The paper joins two measures of one answer. The entropy $H$ (0: sure, 1: no preference among ten tokens) says how
undecided the model is, and $t_b$ says how much heat the answer survives. With $d = 1$

$$f = (1 - H)\,(t_b + 1) - \frac{H}{t_b + 1}, \qquad FRS = \frac{f + 1}{f + 2}.$$

An answer that never breaks ($t_b = \infty$) scores 1. `entropy` and `t_b` are arrays of one length.
"""


# %% stub
def frs(entropy, t_b):
    return ...


# %% check
def check(frs):
    from factrobust.decoding import metrics

    rng = np.random.default_rng(14)
    entropy, t_b = rng.uniform(0, 0.9, 30), rng.uniform(0.1, 3, 30)
    found = frs(entropy, t_b)
    given(found)
    apart = np.abs(np.asarray(found) - metrics.frs(entropy, t_b)).max()
    assert apart < 1e-9, f"A score is off by {apart:.3f}; compare your two fractions with the text."
    with np.errstate(all="ignore"):
        never = frs(np.array([0.2, 0.2]), np.array([np.inf, 1.0]))
    assert np.isclose(never[0], 1), "An answer that never breaks must score 1."


# %% hints
"""
- Compute $f$ for all answers at once, then the fraction.
- Infinity over infinity is not a number: treat these answers apart, with `np.where`.
"""


# %% solution
def frs(entropy, t_b):
    entropy, t_b = np.asarray(entropy), np.asarray(t_b)
    finite = np.where(np.isinf(t_b), 1.0, t_b)
    f = (1 - entropy) * (finite + 1) - entropy / (finite + 1)
    return np.where(np.isinf(t_b), 1.0, (f + 1) / (f + 2))


# %% use
known = data("answers").query("right").dropna(subset=["t_b"])
known = known.assign(score=frs(known["entropy"], known["t_b"]))
print(known.groupby("model")["score"].agg(["mean", "min", "max", "size"]).round(3).to_string())
print(
    "The lowest possible score of a sure answer (H = 0, t_b near 0) is",
    frs([0.0], [1e-9]).round(3)[0],
)


# %% wrong
def frs(entropy, t_b):
    f = (1 - entropy) * t_b - entropy / (t_b + 1)
    return np.where(np.isinf(t_b), 1.0, (f + 1) / (f + 2))


# %% wrong
def frs(entropy, t_b):
    f = (1 - entropy) * (t_b + 1) - entropy / (t_b + 1)
    return (f + 1) / (f + 2)
