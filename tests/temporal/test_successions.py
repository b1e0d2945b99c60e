"""Who is named for a year: a chain of four terms by hand, and what a permutation leaves."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust import schemas
from factrobust.temporal import successions

# Ann came back. Without a date Bob is likeliest; at a moment one of them is.
TERMS = frame("""
    candidate  holder  prior
    0          Ann     -3
    1          Bob     -1
    2          Ann     -3
    3          Cid     -3
""")
# Right, too late by one, right (the second time), too early by two (Bob, or by one: Ann's last), right.
NAMED = frame("""
    year  term  named  right_one
    1990  0     Ann    Ann
    1995  0     Bob    Ann
    2000  2     Ann    Ann
    2010  3     Bob    Cid
    2015  3     Cid    Cid
""")


def scores_of_named() -> pd.DataFrame:
    rows = NAMED.merge(TERMS, how="cross").assign(model="m", chain="head")
    rows["true"] = rows["holder"] == rows["right_one"]
    is_named = rows["holder"] == rows["named"]
    rows["logprob"] = np.where(is_named, -1.0, -2.0 - rows["candidate"] / 8)
    rows["prior"] = rows["prior"].astype(float)
    return schemas.HolderScores.validate(rows.drop(columns=["named", "right_one"]))


def test_who_is_named_by_hand() -> None:
    scores = successions.above_own_mean(scores_of_named())
    table = successions.predicted(scores.sample(frac=1, random_state=1)).sort_values("year")
    # Each holder stands above the own mean where it is named. Ann is named twice of five, and so is
    # Bob, and Cid once.
    assert_rows(
        table,
        """
        year  named  holder  right  permuted
        1990  Ann    Ann     1      0.4
        1995  Bob    Ann     0      0.4
        2000  Ann    Ann     1      0.4
        2010  Bob    Cid     0      0.2
        2015  Cid    Cid     1      0.2
        """,
    )


def test_a_holder_who_is_always_preferred_is_taken_away() -> None:
    scores = scores_of_named()
    scores.loc[scores["holder"] == "Bob", "logprob"] += 5  # now the likeliest in all years
    above = successions.above_own_mean(scores)
    means = above.groupby("candidate")["above"].mean()
    assert means.tolist() == pytest.approx([0, 0, 0, 0])
    named = successions.predicted(above).sort_values("year")["named"]
    assert named.tolist() == NAMED["named"].tolist()


@pytest.mark.parametrize("seed", range(3))
def test_the_posterior_sums_over_all_ways_to_share_the_years(seed: int) -> None:
    rng = np.random.default_rng(seed)
    evidence = rng.normal(size=(5, 3))  # [year, term]
    prior = np.log(rng.dirichlet(np.ones(6)))
    chances = np.zeros((5, 3))
    for counts in product(range(6), repeat=3):
        if sum(counts) == 5:
            held = np.arange(5), np.repeat(range(3), counts)
            chances[held] += np.exp(evidence[held].sum() + prior[list(counts)].sum())
    expected = chances / chances.sum(axis=1, keepdims=True)
    assert successions.posterior(evidence, prior) == pytest.approx(expected)


def test_usual_lengths_by_hand() -> None:
    # exp(-log((n + 1) / 2) / 0.3) of n = 0 and 2 beside a count of 1: 2^(-1/0.3) and (3/2)^(-1/0.3).
    found = successions.usual_lengths(np.array([1]), 2)
    expected = np.array([2 ** (-1 / 0.3), 1, 1.5 ** (-1 / 0.3)])
    assert found == pytest.approx(expected / expected.sum())
    assert successions.usual_lengths(np.array([4, 4, 8]), 9).argmax() == 4


OFFICES = frame("""
    chain  term  start  end
    a      0     1900   1904
    a      1     1904   1908
    a      2     1908   1912
    b      0     1900   1902
    b      1     1902   1912
    b      2     1912   1914
""")


def scores_of_offices(nats: float) -> pd.DataFrame:
    """Scores in every year, so many nats higher for the one in office."""
    years = pd.DataFrame({"year": range(1900, 1914)})
    asked = OFFICES.merge(years, how="cross").query("start <= year < end")
    others = OFFICES[["chain", "term"]].rename(columns={"term": "candidate"})
    scores = asked.merge(others, on="chain").assign(model="m")
    is_right = scores["term"] == scores["candidate"]
    scores["logprob"] = nats * is_right - 9 - scores["candidate"]
    scores["holder"] = scores["chain"] + scores["candidate"].astype(str)
    return scores


@pytest.mark.parametrize("nats", [0.0, 3.0])
def test_bits_beyond_the_order(nats: float) -> None:
    terms = OFFICES.astype({"start": str, "end": str})
    table = successions.with_order(scores_of_offices(nats), terms)
    assert len(table) == 12 + 14
    if nats == 0:
        assert table["bits"].eq(0).all()  # all weights do as well
    else:
        assert table["weight"].eq(4).all()
        assert table["right_both"].eq(1).all()
        assert table["bits"].mean() > 0.3
    # The first year is the first holder's: only a term of no year stands against it.
    first = table[table["year"] == 1900]
    assert first["order"].min() > -0.2
    assert first["right_order"].eq(1).all()


def test_the_order_knows_the_other_offices_terms_and_who_came_back() -> None:
    """Of a, whose first holder is its last one too, from the lengths of b's terms."""
    scores = scores_of_offices(0.0).replace("a2", "a0")
    terms = OFFICES.astype({"start": str, "end": str})
    table = successions.with_order(scores, terms).query("chain == 'a'")
    lengths = successions.usual_lengths(np.array([2, 10, 2]), 12)
    first, second, third = successions.posterior(np.zeros((12, 3)), np.log(lengths)).T
    is_second = np.arange(12) // 4 == 1
    expected = np.where(is_second, second, first + third)
    found = table.sort_values("year")["order"].to_numpy()
    assert found == pytest.approx(np.log2(expected))


def test_the_date_moves_a_pair_whoever_is_likelier_in_general() -> None:
    scores = frame("""
        model  chain  term  candidate  logprob
        m      one    0     0          -1
        m      one    0     1          -4
        m      one    1     0          -2
        m      one    1     1          -3
        m      other  0     0          -2
        m      other  0     1          -3
        m      other  1     0          -1
        m      other  1     1          -4
        m      three  0     0          -1
        m      three  0     1          -2
        m      three  0     2          -3
        m      three  1     0          -1
        m      three  1     1          -2
        m      three  1     2          -3
    """)
    # The first is always the likelier one, and yet more so in the own term: -1 + 4 + 2 - 3 = 2 nats.
    # Then the date moves it the wrong way, by as much. No date, no move; and of three terms, of
    # which one is not asked for, one pair is left.
    assert_rows(
        successions.moved_choices(scores),
        """
        chain  term  term_other  nats  moved
        one    0     1           2     True
        other  0     1           -2    False
        three  0     1           0     False
        """,
    )
