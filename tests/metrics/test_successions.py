"""Who is named for a year: a chain of four terms by hand, and what a permutation leaves."""

from __future__ import annotations

import pandas as pd
import pytest

from factrobust import schemas
from factrobust.metrics import successions

HOLDERS = ("Ann", "Bob", "Ann", "Cid")  # Ann came back


def asked(named: dict[tuple[int, int], str], chain: str = "head") -> pd.DataFrame:
    """Scores of moments, (year, term), at which one holder is likelier than the others; without a
    date it is Bob."""
    rows = [
        (
            *("m", chain, year, term, k, holder, holder == HOLDERS[term]),
            *(-1.0 if holder == name else -2.0 - k / 8, -1.0 if holder == "Bob" else -3.0),
        )
        for (year, term), name in named.items()
        for k, holder in enumerate(HOLDERS)
    ]
    columns = ["model", "chain", "year", "term", "candidate", "holder", "true", "logprob", "prior"]
    return schemas.HolderScores.validate(pd.DataFrame(rows, columns=columns))


# Right, too late by one, right (the second time), too early by two (Bob, or by one: Ann's last), right.
NAMED = {(1990, 0): "Ann", (1995, 0): "Bob", (2000, 2): "Ann", (2010, 3): "Bob", (2015, 3): "Cid"}


def test_who_is_named_by_hand() -> None:
    table = successions.predicted(asked(NAMED).sample(frac=1, random_state=1)).sort_values("year")
    assert table["holder"].tolist() == ["Ann", "Ann", "Ann", "Cid", "Cid"]
    assert table["named"].tolist() == ["Ann", "Bob", "Ann", "Bob", "Cid"]
    assert table["predicted"].tolist() == [0, 1, 2, 1, 3]
    assert table["drift"].tolist() == [0, 1, 0, -2, 0]
    assert table["right"].tolist() == [1, 0, 1, 0, 1]
    assert table["near"].tolist() == [1, 1, 1, 0, 1]
    assert table["terms"].eq(4).all()
    counts = successions.confusion(table).set_index(["term", "predicted"])
    assert counts["count"].unstack().values.tolist() == [[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]]
    assert counts.loc[(0, 1), ["share", "n"]].tolist() == [1 / 2, 2]


def test_the_term_of_who_came_back_is_the_nearest() -> None:
    table = successions.predicted(asked({(2010, 3): "Ann", (1992, 1): "Ann"}))
    assert sorted(table["predicted"]) == [0, 2]
    assert table["distance"].tolist() == [1, 1]


def test_baselines_by_hand() -> None:
    row = successions.baselines(asked(NAMED)).iloc[0]
    assert row[["moments", "right", "uniform"]].tolist() == [5, 3 / 5, 1 / 3]
    assert row["constant"] == 3 / 5  # always Ann
    assert row["preferred"] == 0  # always Bob
    # Ann is named twice and right thrice of five, Cid once and twice.
    assert row["permuted"] == pytest.approx((2 * 3 + 1 * 2) / 25)


def test_a_holder_who_is_always_preferred_is_taken_away() -> None:
    scores = asked(NAMED)
    scores.loc[scores["holder"] == "Bob", "logprob"] += 5
    assert successions.predicted(scores)["named"].eq("Bob").all()
    freed = successions.freed(scores)
    assert freed.groupby("candidate")["freed"].mean().tolist() == pytest.approx([0, 0, 0, 0])
    # Bob's two years stand out for him again, the others' for Ann and Cid.
    named = successions.predicted(freed, "freed").set_index("year")["named"]
    assert named.to_dict() == {1990: "Ann", 1995: "Bob", 2000: "Ann", 2010: "Bob", 2015: "Cid"}


def test_permuted_years() -> None:
    scores = asked({(1990, 0): "Ann", (2000, 1): "Bob", (2015, 3): "Cid"})
    found = successions.permutation_test(scores).set_index("measure")
    assert found["mean"].tolist() == [1, 1, 0]
    # One of the six orders is right throughout, and with Ann and Bob exchanged all are near. From Ann
    # (0 and 2) the three right terms are 0, 1, 1 off, from Bob (1) 1, 0, 2, from Cid (3) 3, 2, 0.
    assert found["p"].tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 6], abs=0.02)
    assert found["permuted"].tolist() == pytest.approx([1 / 3, 6 / 9, 10 / 9], abs=0.03)
    assert found[["n", "chains"]].values.tolist() == [[3, 1]] * 3
    # The years of a chain are permuted among its own moments: of two chains both must be right.
    two = pd.concat([scores, asked({(1990, 0): "Ann", (2015, 3): "Cid"}, chain="other")])
    found = successions.permutation_test(two).set_index("measure")
    assert found.loc["right", "p"] == pytest.approx(1 / 12, abs=0.01)
    assert found.loc["right", ["n", "chains"]].tolist() == [5, 2]
