"""4.3 Known, and kept · predict, 8 minutes

The model `world-s` was grown on an invented world in which we counted every sentence. Take the facts that it was told
64 times or more. Asked alone, it says a share of them rightly: they are *known*. Asked behind a context that states
another answer, it still says the right one for some: they are *kept*.

Predict the ratio: of a hundred facts that it says alone, how many are left behind the false context? (As a ratio of
the two shares.)
"""

# %% stub
prediction = ...  # a number from 0 to 100


# %% check
def check(prediction):
    rows = data("world").query("model == 'world-s' and exposure >= 64")
    truth = 100 * rows["kept"].sum() / rows["known"].sum()
    assert is_number(prediction), "Give a number."
    assert 0 <= prediction <= 100, "Give a number from 0 to 100."
    assert prediction > truth - 10, "Too few: the model met false contexts while it learned."
    assert prediction < truth + 10, "Too many: a context is near, and the sentences are long ago."


# %% hints
"""
- Gemma and SmolLM2 keep nearly nothing: see exercise 4.1.
- `world-s` learned beside contexts that were false in one case of two. Does that help it?
- `data("world")` has the counts: exposure, n, known, kept.
"""

# %% solution
rows = data("world").query("model == 'world-s' and exposure >= 64")
prediction = 100 * float(rows["kept"].sum() / rows["known"].sum())

# %% use
counts = data("world").groupby(["model", "exposure"])[["n", "known", "kept"]].sum()
small = counts.loc["world-s"]
print(
    small.assign(known_share=small["known"] / small["n"], kept_share=small["kept"] / small["n"])
    .round(2)
    .to_string()
)

# %% wrong
prediction = 1

# %% wrong
prediction = 99
