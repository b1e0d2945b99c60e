"""Who is named for a year: a chain of four terms by hand, and what a permutation leaves."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

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
    # Each holder stands above the own mean where it is named.
    assert table["named"].tolist() == ["Ann", "Bob", "Ann", "Bob", "Cid"]
    assert table["holder"].tolist() == ["Ann", "Ann", "Ann", "Cid", "Cid"]
    assert table["right"].tolist() == [1, 0, 1, 0, 1]
    # Ann is named twice of five, and so is Bob, and Cid once.
    assert table["permuted"].tolist() == pytest.approx([2 / 5, 2 / 5, 2 / 5, 1 / 5, 1 / 5])


def test_a_holder_who_is_always_preferred_is_taken_away() -> None:
    scores = asked(NAMED)
    scores.loc[scores["holder"] == "Bob", "logprob"] += 5
    likeliest = scores.loc[scores.groupby("year")["logprob"].idxmax(), "holder"]
    assert likeliest.eq("Bob").all()
    above = successions.above_own_mean(scores)
    assert above.groupby("candidate")["above"].mean().tolist() == pytest.approx([0, 0, 0, 0])
    # Bob's two years stand out for him again, the others' for Ann and Cid.
    named = successions.predicted(above).set_index("year")["named"]
    assert named.to_dict() == {
        1990: "Ann",
        1995: "Bob",
        2000: "Ann",
        2010: "Bob",
        2015: "Cid",
    }


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
    def scores(rows: list[list[float]]) -> pd.DataFrame:
        cells = [(t, c, value) for t, row in enumerate(rows) for c, value in enumerate(row)]
        table = pd.DataFrame(cells, columns=["term", "candidate", "logprob"])
        return table.assign(model="m", chain="head")

    # The first is always the likelier one, and yet more so in the own term: -1 + 4 + 2 - 3 = 2 nats.
    [pair] = successions.crossed(scores([[-1, -4], [-2, -3]])).to_dict("records")
    assert pair["term"] == 0
    assert pair["term_other"] == 1
    assert pair["nats"] == 2
    assert pair["moved"]
    # Here the date moves it the wrong way, by as much.
    [pair] = successions.crossed(scores([[-2, -3], [-1, -4]])).to_dict("records")
    assert pair["nats"] == -2
    assert not pair["moved"]
    # No date, no move; and of three terms, of which one is not asked for, one pair is left.
    none = successions.crossed(scores([[-1, -2, -3], [-1, -2, -3]]))
    assert none[["term", "term_other", "nats", "moved"]].values.tolist() == [[0, 1, 0, False]]
