"""The effects of a context's factors, on answers whose law is known."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from factrobust.context import following

FACTORS = ["near", "repeated"]


def answers(follows, facts: int = 60, model: str = "m") -> pd.DataFrame:
    """Four false contexts of each fact, a row each; `follows(log_p0, near, repeated, fact)` is 0 or 1."""
    rows = []
    for fact, (near, repeated) in product(range(facts), product([False, True], repeat=2)):
        p0 = np.exp(0.2 if fact % 2 else 1.2)
        source = "contextual" if follows(np.log(p0), near, repeated, fact) else "parametric"
        rows.append((model, f"f{fact}", near, repeated, source, p0, 4.0, 2.0))
    columns = ["model", "question_id", *FACTORS, "source", "p0", "p2", "p3"]
    return following.followed(pd.DataFrame(rows, columns=columns))


def test_what_is_measured_of_an_answer():
    said = pd.DataFrame({"source": ["contextual", "parametric", "other", "none", "same"]})
    rows = following.followed(
        said.assign(
            p0=np.exp(1.2),
            p2=4.0,
            p3=2.0,
        )
    )
    assert rows["followed"].tolist() == [1, 0, 0, 0, 0]
    assert rows[["pull", "log_p0"]].to_numpy() == pytest.approx(np.tile([np.log(2), 1.2], (5, 1)))


def test_a_factor_that_moves_a_third_of_the_facts():
    # Near contexts win always, others with 40 of 60 facts; to say it thrice changes nothing.
    rows = answers(lambda log_p0, near, repeated, fact: near or fact % 3)
    effects = following.effects(rows, FACTORS, n_boot=999).set_index("factor")
    near = effects.loc["near", ["with_it", "without_it", "mean", "p_value", "n"]].tolist()
    assert near == pytest.approx([1, 2 / 3, 1 / 3, 1 / 1000, 60])
    low = 1 / 3 - 1.96 * np.sqrt(2 / 9 / 60)
    assert effects.loc["near", "low"] == pytest.approx(low, abs=0.03)
    assert effects.loc["repeated", ["mean", "p_value"]].tolist() == [0, 1]


def test_the_randomisation_by_hand():
    # One fact, one context of four is followed, and has the factor: 1/2 - 0, as in every second of
    # the arrangements; in the others it is -1/2, as large in absolute value.
    one = pd.DataFrame({"near": [1, 1, 0, 0], "followed": [1.0, 0, 0, 0]})
    one = one.assign(model="m", question_id="f")
    found = following.effects(one, ["near"], n_boot=99)
    assert found[["mean", "p_value"]].to_numpy().tolist() == [[0.5, 1.0]]
    # Both followed contexts have it: so in one arrangement of six, and against it in another.
    both = pd.concat([one.assign(question_id=str(k), followed=[1.0, 1, 0, 0]) for k in range(2)])
    found = following.effects(both, ["near"], n_boot=20_000)
    assert found["mean"].tolist() == [1]
    assert found["p_value"].iloc[0] == pytest.approx(2 / 36, abs=0.007)
