r"""4.1 Perplexity and the two answers · implement, 8 minutes

A question is asked with a context that states another answer. Two answers compete: the one from memory and the one of
the context. The *perplexity* of an answer says how surprised the model is by it:

$$P = \exp\Big(-\frac{1}{n} \sum_{i=1}^{n} \log p_i\Big),$$

where $\log p_i$ are the natural log-probabilities of its $n$ tokens. It is 1 for an answer that is certain. An answer
without tokens has no perplexity: return `np.nan`.
"""


# %% stub
def perplexity(logprobs):
    return ...


# %% check
def check(perplexity):
    from factrobust.context import metrics

    rng = np.random.default_rng(41)
    for n in (1, 2, 7):
        logprobs = -rng.exponential(size=n)
        found = perplexity(logprobs)
        given(found)
        assert found >= 1, "A perplexity is never below 1: mind the sign."
        truth = metrics.perplexity(logprobs)
        assert np.isclose(found, truth), (
            f"With {n} token{'s' * (n > 1)} you are off by {abs(found - truth):.2f}."
        )
    with np.errstate(all="ignore"):
        assert np.isnan(perplexity([])), "An answer without tokens must give np.nan."


# %% hints
"""
- It is a mean, and not a sum: long answers must not be punished.
- `np.exp` undoes the natural logarithm.
"""


# %% solution
def perplexity(logprobs):
    logprobs = np.asarray(logprobs, dtype=float)
    return float(np.exp(-logprobs.mean())) if logprobs.size else np.nan


# %% use
print("two tokens of 50% each:", perplexity(np.log([0.5, 0.5])))
false = data("contexts").query("context == 'false' and knows == 1")
for model, rows in false.groupby("model"):
    share = (rows["p3"] < rows["p2"]).mean()
    print(
        f"{model}: behind a false context its answer has the lower perplexity in {share:.0%}, n = {len(rows)}"
    )


# %% wrong
def perplexity(logprobs):
    logprobs = np.asarray(logprobs, dtype=float)
    return float(np.exp(-logprobs.sum())) if logprobs.size else np.nan


# %% wrong
def perplexity(logprobs):
    logprobs = np.asarray(logprobs, dtype=float)
    return float(2 ** -logprobs.mean()) if logprobs.size else np.nan
