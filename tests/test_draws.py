"""Records and figures rest on the draws: their values are fixed, and only names and seed count."""

import pandas as pd
import pytest

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
    names = pd.Series(["v", "w", "x", "y", "z"], index=[3, 1, 4, 0, 9])
    groups = pd.Series(["g", "g", "g", "h", "h"], index=names.index)
    places = draws.ranks(names, groups, 0)
    assert places.index.tolist() == [3, 1, 4, 0, 9]
    drawn = names.map(lambda name: draws.hash48(0, name))
    assert places.tolist() == drawn.groupby(groups).rank().sub(1).astype(int).tolist()
    again = draws.ranks(names[::-1], groups[::-1], 0)
    assert again[names.index].tolist() == places.tolist()


def test_every_group_comes_once_before_any_comes_twice():
    frame = pd.DataFrame({"fact_id": list("abcdef"), "relation": list("rrrsst")})
    order = draws.in_turns(frame, 6, 7, ["relation"])
    assert [len(set(part)) for part in (order["relation"][:3], order["relation"][3:5])] == [3, 2]
    again = draws.in_turns(frame[::-1], 6, 7, ["relation"])
    assert again["fact_id"].tolist() == order["fact_id"].tolist()
    others = (draws.in_turns(frame, 6, seed, ["relation"]) for seed in range(5))
    assert any(other["fact_id"].tolist() != order["fact_id"].tolist() for other in others)


def test_a_sample_is_even_over_domains_then_relations():
    rows = [
        ("A", "r"),
        ("A", "r"),
        ("A", "s"),
        ("B", "t"),
        ("B", "t"),
        ("C", "u"),
    ]
    frame = pd.DataFrame(rows, columns=["domain", "relation"])
    frame["fact_id"] = [f"fact-{n}" for n in frame.index]
    for n, sizes in ((3, [1, 1, 1]), (5, [2, 2, 1]), (9, [3, 2, 1])):  # of A, B and C
        drawn = sample_evenly(frame, n, 7)["domain"].value_counts().sort_index()
        assert drawn.tolist() == sizes
    assert set(sample_evenly(frame, 5, 7).query("domain == 'A'")["relation"]) == {"r", "s"}
    mixed = sample_evenly(frame.sample(frac=1, random_state=1), 4, 7)
    assert set(mixed["fact_id"]) == set(sample_evenly(frame, 4, 7)["fact_id"])
    assert sample_evenly(frame, 4, 7).index.is_monotonic_increasing
    picks = {tuple(sample_evenly(frame, 3, seed)["fact_id"]) for seed in range(9)}
    assert len(picks) > 1
    with pytest.raises(ValueError, match="limit is 0; give a whole number"):
        sample_evenly(frame, 0, 7)
