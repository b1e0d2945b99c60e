"""2.4 A model that knows the dates? · find the flaw, 12 minutes

A colleague shows you a result. She asked about 60 facts at dates **in** their validity and at years **before** it. The
correct dates win 55% of the matches with Gemma, and 59% with SmolLM2. "Both are above one half," she says, "so both
models know when facts became true."

A rule that knows nothing of facts may do as well. The dullest one is *later is likelier*: the later the year, the
higher the score. Write a function that gives the mean win rate of this rule on the same dates. `dates` is a table with
a row a date: fact_id, year and label ("correct", "incorrect" or "transitional"; the last ones meet nobody). Compute
the win rate of each fact, then the mean over facts.
"""


# %% stub
def null_win_rate(dates):
    return ...


# %% check
def check(null_win_rate):
    from factrobust.temporal.metrics import later_is_likelier, matches

    rng = np.random.default_rng(24)
    rows = []
    for fact in range(8):
        start = rng.integers(1950, 1990)
        years = rng.choice(np.arange(start - 15, start + 25), 12, replace=False)
        for year in years:
            inside = start < year < start + 10
            label = (
                "correct"
                if inside
                else "transitional"
                if year in (start, start + 10)
                else "incorrect"
            )
            rows.append((f"f{fact}", int(year), label))
        rows.append((f"f{fact}", int(start + 5), "correct"))
        rows.append((f"f{fact}", int(start - 20), "incorrect"))
    dates = pd.DataFrame(rows, columns=["fact_id", "year", "label"])
    scores = dates.assign(model="m", prompt_format="q", precision="year", logprob=0.0)
    rates = matches(later_is_likelier(scores)).query("precision == 'year'")["win_rate"]
    found = null_win_rate(dates)
    given(found)
    only = dates[(dates["fact_id"] == "f0") & dates["label"].isin(["correct", "incorrect"])]
    middle = only.loc[only["label"] == "correct", "year"].min()
    before = pd.concat([only[only["label"] == "correct"], only[only["year"] < middle]])
    assert np.isclose(null_win_rate(before), 1), (
        "Where all incorrect years come before, the rule must win every match."
    )
    assert np.isclose(found, rates.mean()), (
        f"You are off by {abs(found - rates.mean()):.2f}: leave out transitional dates, and average "
        "over facts."
    )


# %% hints
"""
- The score of a date is its year. The rest is `win_rate` of exercise 2.2.
- `dates.groupby("fact_id")` gives the dates of each fact.
"""


# %% solution
def null_win_rate(dates):
    rates = []
    for _, fact in dates.groupby("fact_id"):
        correct = fact.loc[fact["label"] == "correct", "year"].to_numpy()
        incorrect = fact.loc[fact["label"] == "incorrect", "year"].to_numpy()
        rates.append((correct[:, None] > incorrect).mean())
    return float(np.mean(rates))


# %% use
for model, years in data("years").groupby("model"):
    first = years[years["label"] == "correct"].groupby("fact_id")["year"].min()
    early = years[(years["label"] == "correct") | (years["year"] < years["fact_id"].map(first))]
    for name, dates in {"only years before": early, "years on both sides": years}.items():
        rates = [
            (f.loc[f["label"] == "correct", "logprob"].to_numpy()[:, None]
             > f.loc[f["label"] == "incorrect", "logprob"].to_numpy()).mean()
            for _, f in dates.groupby("fact_id")
        ]  # fmt: skip
        print(f"{model}, {name}: {np.mean(rates):.2f}, the rule {null_win_rate(dates):.2f}")
print("On her dates the null is 1, and not one half: a model that only drifts would win them all.")


# %% wrong
def null_win_rate(dates):
    correct = dates.loc[dates["label"] == "correct", "year"].to_numpy()
    incorrect = dates.loc[dates["label"] == "incorrect", "year"].to_numpy()
    return float((correct[:, None] > incorrect).mean())  # facts meet each other


# %% wrong
def null_win_rate(dates):
    rates = []
    for _, fact in dates.groupby("fact_id"):
        correct = fact.loc[fact["label"] == "correct", "year"].to_numpy()
        others = fact.loc[fact["label"] != "correct", "year"].to_numpy()
        rates.append((correct[:, None] > others).mean())
    return float(np.mean(rates))
