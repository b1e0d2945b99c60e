"""Records and figures rest on the draws: their values are fixed, and only names and seed count."""

import pandas as pd
import pytest
from frames import frame

from factrobust import draws
from factrobust.draws import sample_evenly


def test_numbers_are_pinned():
    # `printf v | sha256sum`, `printf 7/capital/kenya | sha256sum`
    assert draws.hash48("v") == 0x4C94485E0C21
    assert draws.hash48(7, "capital/kenya") == 0xC5364D390268
    # Lots are blake2b: `printf 0/v/2001 | b2sum -l 56`, and -l 64
    assert draws.hash64("0/v/2001", 7) == 0xF846E8CAF7915D
    assert draws.hash64("0/v/2001") == 0xEEA4ABDF99439376
    assert draws.by_lot("0/v/", ("2001", "a", "b")) == [2, 1, 0]
    assert draws.sample_key(7, "p", 0.5, 2) == b"7\n0.5\n2\np"


def test_ranks_are_places_in_a_group():
    names = pd.Series([*"vwxyz"], index=[3, 1, 4, 0, 9])
    groups = pd.Series([*"ggghh"], index=names.index)
    places = draws.ranks(names, groups, 0)
    drawn = names.map(lambda name: draws.hash48(0, name))
    expected = drawn.groupby(groups).rank() - 1
    assert places.to_dict() == expected.to_dict()
    assert [*places.index] == [*names.index]
    assert draws.ranks(names[::-1], groups[::-1], 0).to_dict() == expected.to_dict()


FACTS = frame("""
    fact_id  domain  relation
    a        A       r
    b        A       r
    c        A       s
    d        B       t
    e        B       t
    f        C       u
""")
MIXED = FACTS.sample(frac=1, random_state=1)


def test_every_group_comes_once_before_any_comes_twice():
    def turns(table, seed):
        return draws.in_turns(table, 6, seed, ["domain"])

    order = turns(FACTS, 7)
    domains = [*order["domain"]]
    assert {*domains[:3]} == {*"ABC"}
    assert {*domains[3:5]} == {*"AB"}
    assert [*turns(MIXED, 7)["fact_id"]] == [*order["fact_id"]]
    assert len({tuple(turns(FACTS, seed)["fact_id"]) for seed in range(5)}) > 1


@pytest.mark.parametrize(("n", "sizes"), [(3, [1, 1, 1]), (5, [2, 2, 1]), (9, [3, 2, 1])])
def test_a_sample_is_even_over_domains(n, sizes):
    drawn = sample_evenly(FACTS, n, 7)
    assert drawn.groupby("domain").size().tolist() == sizes  # of A, B and C
    assert drawn.index.is_monotonic_increasing


def test_a_sample_is_even_over_a_domains_relations_and_drawn_by_the_seed():
    drawn = sample_evenly(FACTS, 5, 7)
    assert {*drawn.query("domain == 'A'")["relation"]} == {"r", "s"}
    assert {*sample_evenly(MIXED, 4, 7)["fact_id"]} == {*sample_evenly(FACTS, 4, 7)["fact_id"]}
    assert len({tuple(sample_evenly(FACTS, 3, seed)["fact_id"]) for seed in range(9)}) > 1
    with pytest.raises(ValueError, match="limit is 0; give a whole number"):
        sample_evenly(FACTS, 0, 7)
