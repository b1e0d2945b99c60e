"""Part 1's tables from small responses, every number derived by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import decoding
from factrobust.probes.decoding import temperature_grid

UNIFORM = [math.log(0.1)] * 10
CERTAIN = [0.0] + [-math.inf] * 9


@pytest.fixture
def facts() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "fact_id": ["capital/kenya", "number/spider", "capital/us", "author/emma"],
            "object": ["Nairobi", "8", "Washington", "Jane Austen"],
            "aliases": [[], ["eight"], ["Washington, D.C."], []],
            "domain": ["geography", "science", "geography", "arts"],
            "answer_type": ["Location", "Numerical", "Location", "Human"],
        }
    )


def test_mark(facts: pd.DataFrame) -> None:
    texts = [" in Nairobi", " Eight", " Washington DC.", ""]
    tops = [[UNIFORM, CERTAIN], [CERTAIN], [CERTAIN] * 2, []]
    marked = decoding.mark_greedy(facts.assign(model="toy", text=texts, top_logprobs=tops))
    assert marked["exact_match"].tolist() == [False, True, True, False]
    assert marked["contains"].tolist() == [True, True, True, False]
    np.testing.assert_allclose(marked["entropy"], [0.5, 0, 0, np.nan], atol=1e-12)


def test_select_known_draws_by_hash() -> None:
    marked = pd.DataFrame(
        {
            "model": ["a"] * 5 + ["b"],
            "fact_id": list("uvwxyu"),
            "domain": ["g", "g", "g", "h", "h", "g"],
            "exact_match": [False, True, True, True, True, True],
        }
    )
    assert decoding.select_known(marked)["fact_id"].tolist() == list("vwxyu")
    assert decoding.select_known(marked, 9)["fact_id"].tolist() == list("vwxyu")
    # By SHA-256, v (4c94...) comes before w (50e7...), x (2d71...) before y (a1fc...).
    assert decoding.select_known(marked, 1)["fact_id"].tolist() == list("vxu")
    # The order of the table does not matter.
    assert sorted(decoding.select_known(marked[::-1], 1)["fact_id"]) == list("uvx")


def test_mark_detours() -> None:
    known = pd.DataFrame({"model": ["m", "m"], "fact_id": ["p", "q"], "token_ids": [[1, 2], [7]]})
    samples = pd.DataFrame(
        {
            "model": "m",
            "fact_id": ["p", "p", "p", "p", "q"],
            "token_ids": [[1, 2, 9], [1, 2, 5], [4, 1, 2], [1], [7]],
            "correct": [True, False, True, False, True],
        }
    )
    marked = decoding.mark_detours(samples, known)
    assert marked["begins"].tolist() == [True, True, False, False, True]
    assert marked["detour"].tolist() == [False, False, True, False, False]
    assert marked["spoiled"].tolist() == [False, True, False, False, False]
    balance = marked["begins"].sum() + marked["detour"].sum() - marked["spoiled"].sum()
    assert balance == samples["correct"].sum()


def test_mark_samples(facts: pd.DataFrame) -> None:
    samples = facts.iloc[[1, 1, 0]].assign(
        text=[" 18 legs", " 8", ""],
        logprobs=[[math.log(0.2), math.log(0.4)], [0.0], []],
        tempered_logprobs=[[math.log(0.1), math.log(0.9)], [0.0], []],
    )
    marked = decoding.mark_samples(samples)
    assert marked["correct"].tolist() == [False, True, False]
    np.testing.assert_allclose(marked["certainty"], [0.5, 1, np.nan])
    np.testing.assert_allclose(marked["certainty_at_1"], [0.3, 1, np.nan])
    loose = decoding.mark_samples(samples, whole_words=False)
    assert loose["correct"].tolist() == [True, True, False]


def test_sampled_accuracy_and_its_break() -> None:
    marked = pd.DataFrame(
        {
            "model": "toy",
            "fact_id": ["u"] * 8 + ["v"] * 4,
            "temperature": [0.4] * 4 + [0.2] * 4 + [0.2, 0.2, 0.4, 0.4],
            "correct": [True, False, False, False] + [True] * 4 + [True, False, True, False],
        }
    )
    accuracy = decoding.sampled_accuracy(marked)
    found = accuracy.set_index(["fact_id", "temperature"])
    assert found["accuracy"].to_dict() == {
        ("u", 0.4): 0.25,
        ("u", 0.2): 1.0,
        ("v", 0.2): 0.5,
        ("v", 0.4): 0.5,
    }
    assert found["n"].tolist() == [4, 4, 2, 2]
    t_b = decoding.sampled_breaking(accuracy).set_index("fact_id")["t_b"]
    assert t_b.to_dict() == {"u": 0.4, "v": np.inf}
    strict = decoding.sampled_breaking(accuracy, 0.6).set_index("fact_id")["t_b"]
    assert strict.to_dict() == {"u": 0.4, "v": 0.2}


def test_certainty_bins() -> None:
    marked = pd.DataFrame(
        {
            "temperature": [0.2] * 6 + [0.4] * 2,
            "certainty": [0.0, 0.0999, 0.1, 1.0, 0.95, np.nan, 1.0 + 1e-9, 0.9],
            "correct": [False, False, False, True, False, True, True, True],
        }
    )
    table = decoding.certainty_bins(marked, ["temperature"])
    cells = table.set_index(["temperature", "bin", "correct"])
    assert cells["count"].to_dict() == {
        (0.2, 0.0, False): 2,
        (0.2, 0.1, False): 1,
        (0.2, 0.9, False): 1,
        (0.2, 0.9, True): 1,
        (0.4, 0.9, True): 2,
    }
    assert cells.loc[(0.2, 0.0, False), "share"] == pytest.approx(0.4)
    assert table.groupby("temperature")["n"].first().to_dict() == {0.2: 5, 0.4: 2}
    assert table.groupby("temperature")["share"].sum().tolist() == pytest.approx([1, 1])


@pytest.mark.parametrize("edge", [k / 10 for k in range(10)])
def test_a_bin_holds_its_lower_edge_and_not_its_upper(edge: float) -> None:
    below = np.nextafter(edge + 0.1, 0) if edge < 0.9 else 1.0
    marked = pd.DataFrame({"by": 0, "certainty": [edge, edge + 0.05, below], "correct": True})
    bins = decoding.certainty_bins(marked, ["by"])
    assert dict(zip(bins["bin"], bins["count"], strict=True))[edge] >= 2
    at_edge = decoding.certainty_bins(marked.iloc[:1], ["by"])
    assert at_edge["bin"].tolist() == [edge]


def curves() -> pd.DataFrame:
    """u: 1 / (1 + 2 exp(-1 / t)), one half at 1 / log 2 = 1.443; v: never below one half."""
    t = temperature_grid([0.2 * k for k in range(1, 11)])
    u, v = -np.log1p(2 * np.exp(-1 / t)), -np.log1p(np.exp(-1 / t))
    table = pd.DataFrame(
        {
            "model": "toy",
            "fact_id": ["u"] * len(t) + ["v"] * len(t),
            "temperature": [*t, *t],
            "logprob": [*u, *v],
        }
    )
    return table.sample(frac=1, random_state=0)  # the order of rows does not matter


def test_exact_and_grid_breaking() -> None:
    exact = decoding.exact_breaking(curves()).set_index("fact_id")["t_b"]
    assert exact["u"] == pytest.approx(1 / math.log(2), rel=1e-4)
    assert exact["v"] == np.inf
    paper = decoding.grid_breaking(curves(), [round(0.2 * k, 1) for k in range(1, 11)])
    assert paper.set_index("fact_id")["t_b"].to_dict() == {"u": pytest.approx(1.6), "v": np.inf}
    hot = decoding.exact_breaking(curves(), 0.4).set_index("fact_id")["t_b"]
    assert hot["u"] == pytest.approx(1 / math.log(2 * 0.4 / 0.6), rel=1e-3)


def test_grid_breaking_needs_every_temperature() -> None:
    with pytest.raises(ValueError, match=r"lack the temperatures \[0.3\]"):
        decoding.grid_breaking(curves(), [0.2, 0.3])


def test_scores() -> None:
    known = pd.DataFrame(
        {
            "model": "toy",
            "fact_id": ["u", "v", "w"],
            "domain": "g",
            "answer_type": "Location",
            "entropy": [0.5, 1.0, 0.1],
            "text": "left out",
        }
    )
    t_b = pd.DataFrame({"model": "toy", "fact_id": ["v", "u"], "t_b": [np.inf, 1.0]})
    scored = decoding.frs_table(known, t_b)
    assert len(scored) == 2 * 5  # w has no breaking temperature
    cells = scored.set_index(["fact_id", "d"])["frs"]
    assert cells["u", 1] == pytest.approx(1.75 / 2.75)
    assert cells["u", 2] == pytest.approx(1.25 / 2.25)
    assert cells["u", 5] == pytest.approx((0.5**5 * 2 - 0.25 + 1) / (0.5**5 * 2 - 0.25 + 2))
    assert cells["v"].tolist() == [1] * 5
    exact = decoding.frs_table(known, t_b, unbroken=None).set_index(["fact_id", "d"])["frs"]
    assert exact["v"].tolist() == [0.5] * 5


def scored(frs: list[float], types: str) -> pd.DataFrame:
    ids = [f"fact/{i}" for i in range(len(frs))]
    return pd.DataFrame({"model": "toy", "fact_id": ids, "answer_type": list(types), "frs": frs})


def test_type_shares_of_the_extremes() -> None:
    table = decoding.type_shares(scored([0.1, 0.2, 0.5, 0.6, 0.8, 0.9], "NLLHNN"), 2)
    assert set(table["fact_id"]) == {"fact/0", "fact/1", "fact/4", "fact/5"}
    # N: facts 4 and 5 among the best, 0 among the worst; L: fact 1 among the worst.
    assert table.groupby("answer_type")["robust"].mean().to_dict() == {"N": 2 / 3, "L": 0}


def test_type_shares_of_fewer_facts_than_asked_for() -> None:
    table = decoding.type_shares(scored([0.3, 0.1, 0.2], "NLH"), 1000)
    assert table[["fact_id", "robust"]].to_numpy().tolist() == [["fact/1", False], ["fact/0", True]]


def test_type_shares_leave_out_facts_without_a_score() -> None:
    table = decoding.type_shares(scored([np.nan, 0.1, 0.2], "NLH"), 1)
    assert set(table["fact_id"]) == {"fact/1", "fact/2"}


def test_type_shares_do_not_favour_the_end_of_the_alphabet_in_ties() -> None:
    # All equal: types must come out near one half, not N all among the worst.
    table = decoding.type_shares(scored([1.0] * 400, "N" * 200 + "L" * 200), 200)
    shares = table.groupby("answer_type")["robust"].mean()
    assert shares.between(0.4, 0.6).all()
    again = scored([1.0] * 400, "N" * 200 + "L" * 200).sample(frac=1, random_state=1)
    other = decoding.type_shares(again, 200)
    assert other["fact_id"].tolist() == table["fact_id"].tolist()


def test_type_shares_of_several_d_at_once_are_refused() -> None:
    one = scored([0.1, 0.2], "NL")
    with pytest.raises(ValueError, match="several scores"):
        decoding.type_shares(pd.concat([one.assign(d=1), one.assign(d=2)]), 1)
