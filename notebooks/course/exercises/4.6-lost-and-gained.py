r"""4.6 Lost and gained · implement, 12 minutes

SmolLM2 answers 32% of 80 questions rightly, and 38% in another wording. "So nothing is lost in the other wording," says
somebody. But that is a net number: who loses five facts and gains nine others has lost five. A changed model is told by
the same two shares, and hides its losses in the same way.

The same facts were asked before and after, so they are **pairs**. Write `flips(before, after)` for two arrays of 1
(right) and 0, [fact]. Return three numbers:

- the share **lost**: of the facts right before, those wrong after;
- the share **gained**: of the facts wrong before, those right after;
- McNemar's exact p: if nothing but chance turned facts, each of the turned ones is a loss with probability one half.
  Two-sided, by the binomial distribution; 1 if no fact turned.

A share of no facts is `np.nan`.
"""


# %% stub
def flips(before, after):
    return ...


# %% check
def check(flips):
    from scipy.stats import binomtest

    rng = np.random.default_rng(46)
    for turned in (0.1, 0.4):
        before = (rng.uniform(size=80) < 0.6).astype(int)
        after = np.where(rng.uniform(size=80) < turned * (0.5 + before), 1 - before, before)
        found = flips(before, after)
        given(found)
        assert len(found) == 3, "Return three numbers: lost, gained and p."
        lost, gained = after[before == 1] == 0, after[before == 0] == 1
        assert np.isclose(found[0], lost.mean()), "Lost: of the facts right before, not of all."
        assert np.isclose(found[1], gained.mean()), "Gained: of the facts wrong before, not of all."
        truth = binomtest(int(lost.sum()), int(lost.sum() + gained.sum())).pvalue
        assert np.isclose(found[2], truth), (
            f"p is off by {abs(found[2] - truth):.2f}: count only facts that turned, in both directions."
        )
    same = np.array([1, 0, 1])
    assert flips(same, same)[2] == 1, "A thing compared with itself shows no difference: p is 1."
    with np.errstate(all="ignore"):
        assert np.isnan(flips(np.ones(3, int), np.ones(3, int))[1]), (
            "If all facts were right before, none can be gained: return np.nan."
        )


# %% hints
"""
- `after[before == 1]` are the facts that were known.
- `scipy.stats.binomtest(k, n).pvalue` is two-sided and has one half as its null.
- Facts that stay right or stay wrong say nothing about the direction.
"""


# %% solution
def flips(before, after):
    from scipy.stats import binomtest

    lost, gained = before[after == 0] == 1, before[after == 1] == 0
    known, others = (before == 1).sum(), (before == 0).sum()
    turned = int(lost.sum() + gained.sum())
    p = binomtest(int(lost.sum()), turned).pvalue if turned else 1.0
    shares = [n / of if of else np.nan for n, of in ((lost.sum(), known), (gained.sum(), others))]
    return *shares, p


# %% use
rows = data("wordings")
for model, part in rows.groupby("model"):
    wide = part.pivot(index="group_id", columns="variant", values="correct")
    for variant in (1, 2):
        both = wide[[0, variant]].dropna().astype(int)
        before, after = both[0].to_numpy(), both[variant].to_numpy()
        lost, gained, p = flips(before, after)
        print(
            f"{model}, wording {variant} for the original: right {before.mean():.0%} and "
            f"{after.mean():.0%}; lost {lost:.0%} of {before.sum()}, gained {gained:.0%} of "
            f"{(1 - before).sum()}, p = {p:.2f}"
        )
print("The net difference hides the losses. Part 6 asks the same of files of one model.")


# %% wrong
def flips(before, after):
    from scipy.stats import binomtest

    lost, gained = (before > after).sum(), (before < after).sum()
    p = binomtest(int(lost), int(lost + gained)).pvalue if lost + gained else 1.0
    return lost / len(before), gained / len(before), p


# %% wrong
def flips(before, after):
    from scipy.stats import norm

    lost, gained = (after[before == 1] == 0).mean(), (after[before == 0] == 1).mean()
    apart = before.mean() - after.mean()
    error = np.sqrt((before.var() + after.var()) / len(before)) + 1e-12  # not pairs
    return lost, gained, 2 * norm.sf(abs(apart) / error)
