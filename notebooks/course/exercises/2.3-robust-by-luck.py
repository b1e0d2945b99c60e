"""2.3 Robust by luck · predict, 6 minutes

A fact is *robust* if no match is lost: **every** correct date beats every incorrect one. Suppose a model knows nothing,
and its nine log-probabilities (three correct dates, six incorrect ones) stand in a random order without ties.

Predict: how many facts **in a thousand** are robust by luck alone? Write down your first guess. Then compute it, and
put the computed number in.
"""

# %% stub
prediction = ...  # facts in a thousand


# %% check
def check(prediction):
    from factrobust.temporal.metrics import chance

    truth = 1000 * chance(3, 6)
    assert is_number(prediction), "Give a number."
    assert prediction > 0.8 * truth, (
        "Too few: count the orders in which the correct dates come first."
    )
    assert prediction < 1.25 * truth, "Too many: all three correct dates must beat all six others."


# %% hints
"""
- Only the set of the three highest places matters, not the order among them.
- In how many ways can three places be chosen out of nine?
"""

# %% solution
prediction = 1000 / 84

# %% use
from math import comb

for n_incorrect in (1, 3, 6, 20, 60):
    print(
        f"3 correct and {n_incorrect} incorrect dates: {1000 / comb(3 + n_incorrect, 3):.2f} in 1,000"
    )
print("With few dates luck makes facts robust, so n of dates belongs beside every robustness.")

# %% wrong
prediction = 1000 / 2**9

# %% wrong
prediction = 1000 * 3 / 9
