"""Who is named for a year: a chain of four terms by hand, and what a permutation leaves."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust import schemas
from factrobust.temporal import successions

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
NAMED = {
    (1990, 0): "Ann",
    (1995, 0): "Bob",
    (2000, 2): "Ann",
    (2010, 3): "Bob",
    (2015, 3): "Cid",
}


def test_who_is_named_by_hand() -> None:
    scores = successions.above_own_mean(asked(NAMED)).sample(frac=1, random_state=1)
    table = successions.predicted(scores).sort_values("year")
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
    scores = asked(NAMED)
    scores.loc[scores["holder"] == "Bob", "logprob"] += 5
    likeliest = scores.loc[scores.groupby("year")["logprob"].idxmax(), "holder"]
    assert likeliest.eq("Bob").all()
    above = successions.above_own_mean(scores)
    assert above.groupby("candidate")["above"].mean().tolist() == pytest.approx([0, 0, 0, 0])
    # Bob's two years stand out for him again, the others' for Ann and Cid.
    named = successions.predicted(above).set_index("year")["named"]
    assert named.to_dict() == {year: who for (year, _), who in NAMED.items()}


@pytest.mark.parametrize("seed", range(3))
def test_the_posterior_sums_over_all_ways_to_share_the_years(seed: int) -> None:
    rng = np.random.default_rng(seed)
    years = 5
    terms = 3
    evidence = rng.normal(size=(years, terms))
    prior = np.log(rng.dirichlet(np.ones(years + 1)))
    chances = np.zeros((years, terms))
    for counts in product(range(years + 1), repeat=terms):
        if sum(counts) == years:
            held = np.repeat(range(terms), counts)
            weight = np.exp(evidence[range(years), held].sum() + prior[list(counts)].sum())
            chances[range(years), held] += weight
    expected = chances / chances.sum(axis=1, keepdims=True)
    assert successions.posterior(evidence, prior) == pytest.approx(expected)


def test_usual_lengths_by_hand() -> None:
    # exp(-log((n + 1) / 2) / 0.3) of n = 0 and 2 beside a count of 1: 2^(-1/0.3) and (3/2)^(-1/0.3).
    found = successions.usual_lengths(np.array([1]), 2)
    expected = np.array([2 ** (-1 / 0.3), 1, 1.5 ** (-1 / 0.3)])
    assert found == pytest.approx(expected / expected.sum())
    assert successions.usual_lengths(np.array([4, 4, 8]), 9).argmax() == 4


def office(chain: str, ends: list[int], nats: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores in every year of terms that begin in 1900, `nats` higher for the one in office."""
    rows = []
    term = 0
    for year in range(1900, ends[-1]):
        term += year == ends[term]
        rows += [
            (year, term, k, f"{chain}{k}", k == term, nats * (k == term) - 9 - k, -1.0)
            for k in range(len(ends))
        ]
    terms = pd.DataFrame({"start": [1900, *ends[:-1]], "end": ends}).astype(str)
    return holder_scores(rows, chain), terms.assign(chain=chain)


@pytest.mark.parametrize("nats", [0.0, 3.0])
def test_bits_beyond_the_order(nats: float) -> None:
    made = [office("a", [1904, 1908, 1912], nats), office("b", [1902, 1912, 1914], nats)]
    scores, terms = (pd.concat(parts) for parts in zip(*made, strict=True))
    table = successions.with_order(scores, terms)
    assert len(table) == 12 + 14
    if nats == 0:
        assert table["bits"].eq(0).all()  # all weights do as well
    else:
        assert table["weight"].eq(4).all()
        assert table["right_both"].eq(1).all()
        assert table["bits"].mean() > 0.3
    # The first year is the first holder's: only a term of no year stands against it.
    first = table[table["year"] == 1900]
    assert (first["order"] > -0.2).all()
    assert first["right_order"].eq(1).all()


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
        successions.crossed(scores),
        """
        chain  term  term_other  nats  moved
        one    0     1           2     True
        other  0     1           -2    False
        three  0     1           0     False
        """,
    )
