"""3.1 How alike are the answers? · implement, 10 minutes

A question is asked in eleven wordings. Each answer becomes a vector, a *sentence embedding*. The consistency SCons is
the mean cosine over all **pairs** of answers: a pair is two different answers, and no answer is paired with itself.

`vectors` is an array with a row an answer. The rows are not unit vectors.
"""


# %% stub
def scons(vectors):
    return ...


# %% check
def check(scons):
    from factrobust.text import int_sim

    rng = np.random.default_rng(31)
    for n in (2, 3, 11):
        vectors = rng.normal(size=(n, 5)) + 1
        names = [f"answer {chr(97 + i)}" for i in range(n)]
        [truth] = int_sim([names], lambda texts, vectors=vectors: vectors)
        found = scons(vectors)
        given(found)
        assert np.isclose(found, truth), (
            f"With {n} answers you are off by {abs(found - truth):.3f}."
        )


# %% hints
"""
- Divide each row by its length (`np.linalg.norm(vectors, axis=1, keepdims=True)`) first.
- `unit @ unit.T` holds all cosines. Its diagonal is 1, and no pair.
- `np.triu_indices(n, 1)` are the places above the diagonal.
"""


# %% solution
def scons(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    above = np.triu_indices(len(unit), 1)
    return (unit @ unit.T)[above].mean()


# %% use
groups = data("groups")
for model, rows in groups.groupby("model"):
    high = rows["scons"] >= rows["scons"].median()
    right, other = rows.loc[high, "correct"].mean(), rows.loc[~high, "correct"].mean()
    print(f"{model}: right in {right:.0%} of the more consistent half, {other:.0%} of the other")


# %% wrong
def scons(vectors):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit @ unit.T).mean()


# %% wrong
def scons(vectors):
    above = np.triu_indices(len(vectors), 1)
    return (vectors @ vectors.T)[above].mean()
