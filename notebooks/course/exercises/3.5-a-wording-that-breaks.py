"""3.5 A wording that breaks · design, 15 minutes

Your task is to find the wording that loses most facts, and to say honestly how many. Who tries ten wordings and
reports the worst one has already been lucky: part of its loss is chance. The cure is to **choose on one half of the
facts and count on the other**.

`answers` is an array [fact, wording] of 1 (right) and 0. Wording 0 is the original. `half` is an array [fact] of true
and false. Choose, among the wordings 1, 2, ..., the one with the lowest share of right answers on the facts where
`half` is true. Return three numbers: its place, its loss on that half (share of the original minus its share), and its
loss on the other half.
"""


# %% stub
def worst_wording(answers, half):
    return ...


# %% check
def check(worst_wording):
    rng = np.random.default_rng(35)
    for _ in range(10):
        answers = (rng.uniform(size=(41, 8)) < rng.uniform(0.2, 0.9, 8)).astype(int)
        half = rng.uniform(size=41) < 0.5
        found = worst_wording(answers, half)
        given(found)
        assert len(found) == 3, "Return three numbers: the place and two losses."
        place, chosen_on, fresh = found
        assert place != 0, "Wording 0 is the original; it cannot be chosen."
        seen = answers[half][:, 1:].mean(axis=0)
        assert np.isclose(seen[place - 1], seen.min()), (
            "Another wording has fewer right answers there."
        )
        for loss, part, name in (
            (chosen_on, answers[half], "first"),
            (fresh, answers[~half], "other"),
        ):
            truth = part[:, 0].mean() - part[:, place].mean()
            assert np.isclose(loss, truth), (
                f"The loss on the {name} half is off by {abs(loss - truth):.2f}."
            )


# %% hints
"""
- `answers[half]` are the facts on which you choose, `answers[~half]` the fresh ones.
- `argmin` over the columns 1, 2, ... counts from 0: add 1.
"""


# %% solution
def worst_wording(answers, half):
    shares, fresh = answers[half].mean(axis=0), answers[~half].mean(axis=0)
    place = 1 + int(shares[1:].argmin())
    return place, shares[0] - shares[place], fresh[0] - fresh[place]


# %% use
rows = data("wordings").query("model == 'gemma-3-270m'")
losses = []
for _, part in rows.groupby("relation"):
    wide = part.pivot(index="group_id", columns="variant", values="correct").dropna(axis=1)
    answers = wide.to_numpy(int)
    if answers[:, 0].any():
        for seed in range(20):
            half = np.random.default_rng(seed).permutation(len(answers)) < len(answers) // 2
            losses.append(worst_wording(answers, half)[1:])
chosen, fresh = np.mean(losses, axis=0)
print(f"loss on the facts where the wording was chosen {chosen:.2f}, on fresh facts {fresh:.2f}")


# %% wrong
def worst_wording(answers, half):
    shares = answers.mean(axis=0)  # chosen on all facts
    place = 1 + int(shares[1:].argmin())
    first, fresh = answers[half].mean(axis=0), answers[~half].mean(axis=0)
    return place, first[0] - first[place], fresh[0] - fresh[place]


# %% wrong
def worst_wording(answers, half):
    shares, fresh = answers[half].mean(axis=0), answers[~half].mean(axis=0)
    place = 1 + int(shares[1:].argmin())
    return place, shares[0] - shares[place], fresh[0] - fresh[1:].min()
