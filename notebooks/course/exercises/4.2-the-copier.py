r"""4.2 A detector that is nearly always right · find the flaw, 12 minutes

A detector tells whether an answer of Gemma came from a false context. "Its mean squared error is 0.05, and guessing one
half has 0.25", says its maker. But 76 of the 80 answers below are copied from the context. A detector that always says
"97%" and never looks at anything does as well.

The right null is the **best constant**: the share of answers that came from the context. Write the *skill*

$$1 - \frac{\text{mean squared error of the probabilities}}{\text{mean squared error of the best constant}}.$$

It is 1 for a perfect detector and 0 for one that is worth no more than a constant. If all outcomes are equal, the
skill is not defined: return `np.nan`.
"""


# %% stub
def skill(probability, outcome):
    return ...


# %% check
def check(skill):
    rng = np.random.default_rng(42)
    for share in (0.7, 0.9):
        outcome = (rng.uniform(size=200) < share).astype(float)
        p = np.clip(0.6 * outcome + rng.uniform(0, 0.4, 200), 0, 1)
        constant = np.full(200, outcome.mean())
        truth = 1 - np.mean((outcome - p) ** 2) / np.mean((outcome - constant) ** 2)
        found = skill(p, outcome)
        given(found)
        assert np.isclose(found, truth), (
            f"Where {share:.0%} come from the context you are off by {abs(found - truth):.2f}; which "
            "constant has the smallest error?"
        )
        assert np.isclose(skill(constant, outcome), 0), "The best constant itself has skill 0."
    with np.errstate(all="ignore"):
        assert np.isnan(skill(p, np.ones(200))), "If all outcomes are equal, return np.nan."


# %% hints
"""
- The constant with the smallest squared error is the mean of the outcomes.
- Its error is `outcome.mean() * (1 - outcome.mean())`.
"""


# %% solution
def skill(probability, outcome):
    constant = outcome.mean()
    of_constant = np.mean((outcome - constant) ** 2)
    if of_constant == 0:
        return np.nan
    return 1 - np.mean((outcome - probability) ** 2) / of_constant


# %% use
rows = data("contexts").query("context == 'false' and source != 'same'")
for model, part in rows.groupby("model"):
    outcome = (part["source"] == "contextual").to_numpy(float)
    always = np.full(len(outcome), 0.97)
    error = np.mean((outcome - always) ** 2)
    print(
        f"{model}: always 97% has an error of {error:.3f} and a skill of {skill(always, outcome):.2f}, n = {len(part)}"
    )


# %% wrong
def skill(probability, outcome):
    return 1 - np.mean((outcome - probability) ** 2) / 0.25 if outcome.std() else np.nan


# %% wrong
def skill(probability, outcome):
    if outcome.std() == 0:
        return np.nan
    right = np.mean((probability > 0.5) == (outcome == 1))
    return (right - outcome.mean()) / (1 - outcome.mean())
