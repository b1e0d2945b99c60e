"""Who is named for a year: a chain of four terms by hand, and what a permutation leaves."""

from itertools import product

import pandas as pd
import pytest

from factrobust import schemas
from factrobust.time import successions

HOLDERS = ("Ann", "Bob", "Ann", "Cid")  # Ann came back


def holder_scores(rows: list[tuple], chain: str = "head") -> pd.DataFrame:
    columns = ["year", "term", "candidate", "holder", "true", "logprob", "prior"]
    table = pd.DataFrame(rows, columns=columns).assign(model="m", chain=chain)
    return schemas.HolderScores.validate(table[["model", "chain", *columns]])


def asked(named: dict[tuple[int, int], str], chain: str = "head") -> pd.DataFrame:
    """Scores of moments, (year, term), at which one holder is likelier than the others; without a
    date it is Bob."""
    rows = []
    for (year, term), name in named.items():
        for k, who in enumerate(HOLDERS):
            values = -1.0 if who == name else -2.0 - k / 8, -1.0 if who == "Bob" else -3.0
            rows.append((year, term, k, who, who == HOLDERS[term], *values))
    return holder_scores(rows, chain)


# Right, too late by one, right (the second time), too early by two (Bob, or by one: Ann's last), right.
NAMED = {(1990, 0): "Ann", (1995, 0): "Bob", (2000, 2): "Ann", (2010, 3): "Bob", (2015, 3): "Cid"}


def test_who_is_named_by_hand() -> None:
    table = successions.predicted(asked(NAMED).sample(frac=1, random_state=1)).sort_values("year")
    # At most one term from the first are Ann and Bob, from the third Bob, Ann, Cid, from the last two.
    columns = ["holder", "named", "predicted", "drift", "right", "near", "terms", "guess"]
    assert table[columns].values.tolist() == [
        *(["Ann", "Ann", 0, 0, 1, 1, 4, 1 / 2], ["Ann", "Bob", 1, 1, 0, 1, 4, 1 / 2]),
        *(["Ann", "Ann", 2, 0, 1, 1, 4, 1 / 3], ["Cid", "Bob", 1, -2, 0, 0, 4, 1 / 2]),
        ["Cid", "Cid", 3, 0, 1, 1, 4, 1 / 2],
    ]
    counts = successions.confusion(table).set_index(["term", "predicted"])
    assert counts["count"].unstack().values.tolist() == [[1, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 1]]
    assert counts.loc[(0, 1), ["share", "n"]].tolist() == [1 / 2, 2]
    # The term of who came back is the nearest.
    table = successions.predicted(asked({(2010, 3): "Ann", (1992, 1): "Ann"}))
    assert sorted(table["predicted"]) == [0, 2]
    assert table["distance"].tolist() == [1, 1]


def test_the_rule_of_order_by_hand() -> None:
    scores = successions.in_order(pd.concat([asked(NAMED), asked({(1900, 0): "Bob"}, chain="x")]))
    table = successions.predicted(scores[scores["chain"] == "head"], "in_order")
    # In 25 years the term goes from 0 to 3: to 0.6, 1.2 and 2.4 in 1995, 2000 and 2010.
    assert table["predicted"].tolist() == [0, 1, 1, 2, 3]
    assert table["drift"].tolist() == [0, 1, -1, -1, 0]
    far = scores.query("chain == 'head' and year == 1995")["in_order"]
    assert far.tolist() == pytest.approx([-0.6, -0.4, -1.4, -2.4])


def test_baselines_by_hand() -> None:
    table = successions.baselines(asked(NAMED)).set_index(["rule", "year"])["right"].unstack()
    assert table.columns.tolist() == [1990, 1995, 2000, 2010, 2015]
    assert table.loc["the model"].tolist() == [1, 0, 1, 0, 1]
    assert table.loc["any holder"].tolist() == pytest.approx([1 / 3] * 5)
    assert table.loc["one for all"].tolist() == [1, 1, 1, 0, 0]  # always Ann
    assert table.loc["undated"].eq(0).all()  # always Bob
    # Ann is named twice of five, and so is Bob, and Cid once.
    assert table.loc["permuted"].tolist() == pytest.approx([2 / 5, 2 / 5, 2 / 5, 1 / 5, 1 / 5])
    assert table.loc["in order"].tolist() == [1, 0, 0, 0, 1]


def test_a_holder_who_is_always_preferred_is_taken_away() -> None:
    scores = asked(NAMED)
    scores.loc[scores["holder"] == "Bob", "logprob"] += 5
    assert successions.predicted(scores)["named"].eq("Bob").all()
    freed = successions.minus_other_names(scores)
    assert freed.groupby("candidate")["freed"].mean().tolist() == pytest.approx([0, 0, 0, 0])
    # Bob's two years stand out for him again, the others' for Ann and Cid.
    named = successions.predicted(freed, "freed").set_index("year")["named"]
    assert named.to_dict() == {1990: "Ann", 1995: "Bob", 2000: "Ann", 2010: "Bob", 2015: "Cid"}


def test_permuted_and_shifted_years() -> None:
    scores = asked({(1990, 0): "Ann", (2000, 1): "Bob", (2015, 3): "Cid"})
    every = successions.permutation_test(scores).set_index(["null", "measure"])
    found = every.loc["permuted"]
    assert found["mean"].tolist() == [1, 1, 0]
    # One of the six orders is right throughout, and with Ann and Bob exchanged all are near. From Ann
    # (0 and 2) the three right terms are 0, 1, 1 off, from Bob (1) 1, 0, 2, from Cid (3) 3, 2, 0.
    assert found["p"].tolist() == pytest.approx([1 / 6, 1 / 3, 1 / 6], abs=0.02)
    assert found["expected"].tolist() == pytest.approx([1 / 3, 6 / 9, 10 / 9], abs=0.03)
    assert found[["n", "chains"]].values.tolist() == [[3, 1]] * 3
    # Of the three shifts one is right. By one, Bob, Cid and Ann are 1, 2 and 1 off, by two Cid, Ann and
    # Bob 3, 1 and 2; Ann and Bob are not exchanged.
    assert every.loc["shifted", "p"].tolist() == pytest.approx([1 / 3] * 3, abs=0.02)
    expected = [1 / 3, (1 + 2 / 3 + 1 / 3) / 3, (0 + 4 / 3 + 2) / 3]
    assert every.loc["shifted", "expected"].tolist() == pytest.approx(expected, abs=0.03)
    # The years of a chain are permuted among its own moments: of two chains both must be right.
    two = pd.concat([scores, asked({(1990, 0): "Ann", (2015, 3): "Cid"}, chain="other")])
    found = successions.permutation_test(two).set_index(["null", "measure"])
    assert found.loc[("permuted", "right"), "p"] == pytest.approx(1 / 12, abs=0.01)
    assert found.loc[("shifted", "right"), "p"] == pytest.approx(1 / 6, abs=0.02)
    assert found.loc[("shifted", "right"), ["n", "chains"]].tolist() == [5, 2]


def eras(bump: float, years: tuple[int, ...]) -> pd.DataFrame:
    """Scores that rise and fall with the years, one parabola a holder, and a bump in the own term."""
    rows = []
    for (term, year), k in product(enumerate(years), range(len(years))):
        value = -20 - (year - 1950 - 9 * k) ** 2 / 500 + bump * (k == term)
        rows.append((year, term, k, f"h{k}", k == term, value, -1.0))
    return holder_scores(rows)


def test_an_own_term_stands_out_from_eras_that_drift() -> None:
    drift = eras(0, (1950, 1957, 1970, 1974, 1990))
    assert successions.predicted(drift)["right"].mean() > 0.5  # and yet no term is known
    found = successions.standing_out(drift)
    assert found["year"].tolist() == [1957, 1970, 1974]
    assert found["nats"].tolist() == pytest.approx([0, 0, 0])
    # The holder bends up by 1, the neighbours down by half of their own bumps before and after.
    known = successions.standing_out(eras(1, (1950, 1960, 1970, 1980)))
    assert known["nats"].tolist() == pytest.approx([1.5, 1.5])


def test_a_holder_who_returned_stands_beside_others_only() -> None:
    scores = asked({(1990, 0): "Ann", (2000, 1): "Bob", (2010, 2): "Ann", (2020, 3): "Cid"})
    nats = successions.standing_out(scores)["nats"].tolist()
    # 2000: Bob -2.125, -1, -2.125 bends by 1.125; Ann, -1, -2, -1 and -1, -2.25, -1, by -1 and -1.25.
    assert nats[0] == pytest.approx(1.125 + 1.125)
    # 2010: Ann -2.25, -1, -2.25 bends by 1.25; Bob -1, -2.125, -2.125 by -0.5625, Cid -2.375, -2.375,
    # -1 by -0.6875.
    assert nats[1] == pytest.approx(1.25 + 0.625)


def test_the_date_moves_a_pair_whoever_is_likelier_in_general() -> None:
    def scores(rows: list[list[float]]) -> pd.DataFrame:
        cells = [(t, c, value) for t, row in enumerate(rows) for c, value in enumerate(row)]
        table = pd.DataFrame(cells, columns=["term", "candidate", "logprob"])
        return table.assign(model="m", chain="head")

    # The first is always the likelier one, and yet more so in the own term: -1 + 4 + 2 - 3 = 2 nats.
    [pair] = successions.crossed(scores([[-1, -4], [-2, -3]])).to_dict("records")
    assert (pair["term"], pair["term_other"], pair["nats"], pair["moved"]) == (0, 1, 2, True)
    # Here the date moves it the wrong way, by as much.
    [pair] = successions.crossed(scores([[-2, -3], [-1, -4]])).to_dict("records")
    assert (pair["nats"], pair["moved"]) == (-2, False)
    # No date, no move; and of three terms, of which one is not asked for, one pair is left.
    none = successions.crossed(scores([[-1, -2, -3], [-1, -2, -3]]))
    assert none[["term", "term_other", "nats", "moved"]].values.tolist() == [[0, 1, 0, False]]
