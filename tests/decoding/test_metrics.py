"""Part 1 by hand: entropy, the breaking temperature, equations 3 and 4, and the tables of them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import logsumexp

from factrobust import statistics
from factrobust.decoding import metrics
from factrobust.decoding.probe import GRID

UNIFORM = [math.log(0.1)] * 10
CERTAIN = [0.0] + [-math.inf] * 9
PAPER = [round(0.2 * k, 1) for k in range(1, 11)]
LOGITS = list[np.ndarray]  # one array a token of the answer, the answer's token first
ENTROPY, TEMPERATURE = st.floats(0, 1), st.floats(0, 50)
D = st.sampled_from([0.5, 1, 2, 5, 10, 50])


@pytest.mark.parametrize(("logs", "entropy"), [
    *(([math.log(mass / 10)] * 10, 1) for mass in (1.0, 0.3, 1e-6)),  # whatever their mass
    (CERTAIN, 0),
    ([0.0] + [-1e9] * 9, 0),
    ([math.log(0.5)] * 2 + [-math.inf] * 8, 0.30103),  # - 2 x 0.5 log10 0.5 = log10 2
    # - (0.75 log2 0.75 + 0.25 log2 0.25) = 0.811278 for two; over log2(4) = 2 for four.
    ([math.log(0.75), math.log(0.25)], 0.811278),
    ([math.log(0.75), math.log(0.25), -math.inf, -math.inf], 0.405639),
])  # fmt: skip
def test_entropy_by_hand(logs: list[float], entropy: float) -> None:
    assert statistics.top_entropy(logs) == pytest.approx(entropy, abs=1e-6)


@given(st.lists(st.floats(-20, 0), min_size=2, max_size=12), st.floats(-30, 30))
@settings(deadline=None)
def test_of_entropy_only_the_ratios_count(logs: list[float], shift: float) -> None:
    expected = statistics.top_entropy(logs)
    assert 0 <= expected <= 1
    assert statistics.top_entropy([x + shift for x in logs]) == pytest.approx(expected, abs=1e-9)
    assert statistics.top_entropy(logs[::-1]) == pytest.approx(expected, abs=1e-9)


def log_p(tokens: LOGITS, t: float) -> float:
    return float(sum(z[0] / t - logsumexp(z / t) for z in tokens))


def curve(tokens: LOGITS) -> np.ndarray:
    return np.array([log_p(tokens, t) for t in GRID], dtype=np.float32)  # what a model gives


@pytest.mark.parametrize(("accuracy", "t_b"), [
    ([1.0, 0.9, 0.4], 0.6),
    ([1.0, 0.5, 0.5], np.inf),  # one half is not below one half
    ([1.0, 0.4, 0.9], 0.4),  # the first drop counts, also if the accuracy comes back
    ([0.4, 1.0, 1.0], 0.2),
    ([1.0, 1.0, 1.0], np.inf),
])  # fmt: skip
def test_first_break(accuracy: list[float], t_b: float) -> None:
    assert metrics.first_break([0.2, 0.4, 0.6], accuracy) == t_b


def test_where_no_root_lies_between() -> None:
    never = curve([np.array([0.0, -0.5])])  # one competitor never wins
    assert np.all(never >= np.float32(np.log(0.5)))
    assert metrics.crossing(GRID, never) == np.inf
    second = curve([np.array([0.0, 1.0, -1.0])])  # not the greedy answer: it gains from heat first
    assert second[0] < second[20]
    assert np.isnan(metrics.crossing(GRID, second))


def test_random_logits_keep_the_promise_of_the_docstring() -> None:
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(70):
        tokens = []
        for _ in range(rng.integers(1, 6)):
            z = np.sort(rng.normal(0, rng.uniform(0.3, 4), int(10 ** rng.uniform(0.4, 3.6))))[::-1]
            z[1:] -= rng.exponential(rng.choice([0.3, 3.0, 15.0]))
            tokens.append(z)
        logs = curve(tokens)
        assert np.all(np.diff(logs) <= 1e-5)  # falls, but for rounding
        if np.log(0.5) > log_p(tokens, GRID[-1]) and log_p(tokens, GRID[0]) > np.log(0.5):
            exact = brentq(lambda t, z=tokens: log_p(z, t) - np.log(0.5), GRID[0], GRID[-1])
            errors.append(abs(metrics.crossing(GRID, logs) / exact - 1))
    assert len(errors) > 40
    assert max(errors) < 1e-3


@pytest.mark.parametrize(("h", "t_b", "d", "f", "score"), [
    (0.0, 0.0, 1, 1.0, 2 / 3), (1.0, 0.0, 1, -1.0, 0.0),
    (0.5, 1.0, 1, 0.75, 1.75 / 2.75),  # 0.5 x 2 - 0.5 / 2
    (0.5, 1.0, 2, 0.25, 1.25 / 2.25),  # 0.25 x 2 - 0.5 / 2
    (0.2, 0.6, 1, 1.155, 2.155 / 3.155),  # 0.8 x 1.6 - 0.2 / 1.6
    (0.0, 2.0, 50, 3.0, 0.8), (1.0, 3.0, 5, -0.25, 0.75 / 1.75),
])  # fmt: skip
def test_frs_by_hand(h: float, t_b: float, d: float, f: float, score: float) -> None:
    assert float(metrics.raw_frs(h, t_b, d)) == pytest.approx(f)
    assert float(metrics.frs(h, t_b, d)) == pytest.approx(score)


@given(ENTROPY, TEMPERATURE, D)
@settings(deadline=None)
def test_bounds_of_frs(h: float, t_b: float, d: float) -> None:
    assert float(metrics.raw_frs(h, t_b, d)) >= -1
    assert float(metrics.raw_frs(h, 0)) == pytest.approx(1 - 2 * h)  # appendix B
    assert 0 <= float(metrics.frs(h, t_b, d)) < 1
    # Appendix G: no scores between 0.8 and 1.
    assert float(metrics.frs(h, min(t_b, 2.0), d)) <= 0.8


def test_appendix_b_at_infinity() -> None:
    assert metrics.raw_frs([0, 0.5, 1], np.inf).tolist() == [np.inf, np.inf, 0]
    assert metrics.frs([0, 0.5, 1], np.inf, unbroken=None).tolist() == [1, 1, 0.5]
    assert metrics.frs([0, 0.5, 1], np.inf).tolist() == [1, 1, 1]  # figure 4: whatever the entropy
    # The equation approaches its limit.
    assert metrics.frs([0.5, 1], 1e9, unbroken=None) == pytest.approx([1, 0.5], abs=1e-8)


@given(ENTROPY, TEMPERATURE, st.floats(1e-3, 1), D)
@settings(deadline=None)
def test_rises_with_t_b_and_falls_with_entropy(h: float, t_b: float, more: float, d: float) -> None:
    assert metrics.frs(h, t_b, d) < metrics.frs(h, t_b + more, d)
    if h + more <= 1:
        assert metrics.frs(h, t_b, d) > metrics.frs(h + more, t_b, d)


FACTS = pd.DataFrame({"object": ["Nairobi", "8", "Washington", "Jane Austen"]})
FACTS["aliases"] = [[], ["eight"], ["Washington, D.C."], []]


def test_a_high_mean_score_needs_unbroken_facts() -> None:
    # Half of the facts at 1 and half at 0.8 make 0.9.
    assert metrics.least_unbroken(pd.Series([0.9, 1.0, 0.7])).tolist() == pytest.approx([0.5, 1, 0])


def test_mark() -> None:
    texts = [" in Nairobi", " Eight", " Washington DC.", ""]
    tops = [[UNIFORM, CERTAIN], [CERTAIN], [CERTAIN] * 2, []]
    marked = metrics.mark_greedy(FACTS.assign(text=texts, top_logprobs=tops))
    assert marked["exact_match"].tolist() == [False, True, True, False]
    assert marked["contains"].tolist() == [True, True, True, False]
    np.testing.assert_allclose(marked["entropy"], [0.5, 0, 0, np.nan], atol=1e-12)
    nothing = metrics.mark_greedy(FACTS[:0].assign(text="", top_logprobs=""))
    assert nothing[["exact_match", "contains"]].dtypes.tolist() == [bool, bool]


def test_select_known_draws_by_hash() -> None:
    marked = pd.DataFrame({"model": list("aaaaab"), "fact_id": list("uvwxyu")})
    marked = marked.assign(domain=list("ggghhg"), exact_match=[False] + [True] * 5)
    assert metrics.select_known(marked)["fact_id"].tolist() == list("vwxyu")
    assert metrics.select_known(marked, 9)["fact_id"].tolist() == list("vwxyu")
    # By SHA-256, v (4c94...) comes before w (50e7...), x (2d71...) before y (a1fc...).
    assert metrics.select_known(marked, 1)["fact_id"].tolist() == list("vxu")
    # The order of the table does not matter.
    assert sorted(metrics.select_known(marked[::-1], 1)["fact_id"]) == list("uvx")


def test_who_knows_each_fact() -> None:
    rows = [
        ("all", 1, 1, 1),
        ("lost", 0, 1, 0),
        ("new", 1, 0, 0),
        ("none", 0, 0, 0),
        ("two", 1, 0, 1),
    ]
    marked = pd.DataFrame(rows, columns=["fact_id", "large", "mid", "small"]).assign(relation="r")
    marked = marked.melt(["fact_id", "relation"], var_name="model", value_name="exact_match")
    marked = marked.astype({"exact_match": bool})[::-1]
    found = metrics.known_by(marked, "large").set_index("fact_id")["known_by"]
    both = "the largest and smaller ones"
    expected = {
        "all": both,
        "lost": "only smaller ones",
        "new": "only the largest",
        "none": "no model",
    }
    assert found.to_dict() == expected | {"two": both}
    assert (
        metrics.known_by(marked, "small").set_index("fact_id")["known_by"]["new"]
        == "only smaller ones"
    )


def test_mark_detours() -> None:
    known = pd.DataFrame({"model": "m", "fact_id": ["p", "q"], "token_ids": [[1, 2], [7]]})
    forms = pd.DataFrame(
        {"model": "m", "fact_id": ["p", "p"], "form": [" The Dutch", " in Holland"]}
    )
    samples = pd.DataFrame({"model": "m", "fact_id": list("ppppqp"), "correct": [1, 0, 1, 0, 1, 1]})
    samples["token_ids"] = [[1, 2, 9], [1, 2, 5], [4, 1, 2], [1], [7], [4]]
    samples["text"] = [" Holland", " Hollands", " The Dutch", " H", " The Dutch", " old Holland"]
    marked = metrics.mark_detours(samples.astype({"correct": bool}), known, forms)
    assert marked[["begins", "detour", "listed", "spoiled"]].astype(int).to_numpy().tolist() == [
        *([1, 0, 0, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]),
    ]


def test_mark_samples() -> None:
    samples = FACTS.iloc[[1, 1, 0]].assign(text=[" 18 legs", " 8", ""])
    samples["logprobs"] = [[math.log(0.2), math.log(0.4)], [0.0], []]
    samples["tempered_logprobs"] = [[math.log(0.1), math.log(0.9)], [0.0], []]
    marked = metrics.mark_samples(samples)
    assert marked["correct"].tolist() == [False, True, False]
    np.testing.assert_allclose(marked["certainty"], [0.5, 1, np.nan])
    np.testing.assert_allclose(marked["certainty_at_1"], [0.3, 1, np.nan])


def test_sampled_accuracy_and_its_break() -> None:
    cells = {("u", 0.4): [1, 0, 0, 0], ("u", 0.2): [1] * 4, ("v", 0.2): [1, 0], ("v", 0.4): [1, 0]}
    rows = [("toy", *cell, bool(x)) for cell, right in cells.items() for x in right]
    marked = pd.DataFrame(rows, columns=["model", "fact_id", "temperature", "correct"])
    accuracy = metrics.sampled_accuracy(marked)
    found = accuracy.set_index(["fact_id", "temperature"])
    assert found["accuracy"].to_dict() == {cell: np.mean(right) for cell, right in cells.items()}
    assert found["n"].tolist() == [4, 4, 2, 2]
    t_b = metrics.sampled_breaking(accuracy).set_index("fact_id")["t_b"]
    assert t_b.to_dict() == {"u": 0.4, "v": np.inf}


def test_certainty_bins() -> None:
    marked = pd.DataFrame({"temperature": [0.2] * 6 + [0.4] * 2})
    marked["certainty"] = [0.0, 0.0999, 0.1, 1.0, 0.95, np.nan, 1.0 + 1e-9, 0.9]
    marked["correct"] = [False, False, False, True, False, True, True, True]
    table = metrics.certainty_bins(marked, ["temperature"])
    columns = ["temperature", "bin", "correct", "count", "share", "n"]
    by_hand = [
        *([0.2, 0.0, 0, 2, 0.4, 5], [0.2, 0.1, 0, 1, 0.2, 5], [0.2, 0.9, 0, 1, 0.2, 5]),
        *([0.2, 0.9, 1, 1, 0.2, 5], [0.4, 0.9, 1, 2, 1.0, 2]),
    ]
    assert table[columns].astype(float).to_numpy() == pytest.approx(np.array(by_hand))


def test_frs_table() -> None:
    known = pd.DataFrame({"model": "toy", "fact_id": ["u", "v", "w"], "entropy": [0.5, 1.0, 0.1]})
    known = known.assign(domain="g", answer_type="Location", relation="capital")
    t_b = pd.DataFrame({"model": "toy", "fact_id": ["v", "u"], "t_b": [np.inf, 1.0]})
    scored = metrics.frs_table(known, t_b)
    assert len(scored) == 2 * 5  # w has no breaking temperature
    cells = scored.set_index(["fact_id", "d"])["frs"]
    assert cells["u", 1] == pytest.approx(1.75 / 2.75)
    assert cells["u", 2] == pytest.approx(1.25 / 2.25)
    assert cells["u", 5] == pytest.approx((0.5**5 * 2 - 0.25 + 1) / (0.5**5 * 2 - 0.25 + 2))
    assert cells["v"].tolist() == [1] * 5
    exact = metrics.frs_table(known, t_b, unbroken=None).set_index(["fact_id", "d"])["frs"]
    assert exact["v"].tolist() == [0.5] * 5


def scored(scores: list[float], types: str) -> pd.DataFrame:
    ids = [f"fact/{i}" for i in range(len(scores))]
    return pd.DataFrame({"model": "toy", "fact_id": ids, "answer_type": list(types), "frs": scores})


def test_type_shares_of_the_extremes() -> None:
    table = metrics.type_shares(scored([0.1, 0.2, 0.5, 0.6, 0.8, 0.9], "NLLHNN"), 2)
    assert set(table["fact_id"]) == {"fact/0", "fact/1", "fact/4", "fact/5"}
    # N: facts 4 and 5 among the best, 0 among the worst; L: fact 1 among the worst.
    assert table.groupby("answer_type")["robust"].mean().to_dict() == {"N": 2 / 3, "L": 0}
    # No more than a third of the facts each, 2 of 8, so that the middle stays out.
    eight = metrics.type_shares(scored([0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1], "N" * 8), 1000)
    assert eight["fact_id"].tolist() == ["fact/7", "fact/6", "fact/1", "fact/0"]
    # Facts without a score are left out.
    table = metrics.type_shares(scored([0.3, np.nan, 0.1, 0.2], "NHLH"), 1000)
    assert table[["fact_id", "robust"]].to_numpy().tolist() == [["fact/2", False], ["fact/0", True]]


def test_type_shares_do_not_favour_the_end_of_the_alphabet_in_ties() -> None:
    # All equal: types must come out near one half, not N all among the worst.
    table = metrics.type_shares(scored([1.0] * 600, "N" * 300 + "L" * 300), 200)
    shares = table.groupby("answer_type")["robust"].mean()
    assert shares.between(0.4, 0.6).all()
    again = scored([1.0] * 600, "N" * 300 + "L" * 300).sample(frac=1, random_state=1)
    other = metrics.type_shares(again, 200)
    assert other["fact_id"].tolist() == table["fact_id"].tolist()


# -- what samples tell ----------------------------------------------------------------------------

STEPS = (0.5, 1.0, 1.5)


def test_distribution_by_hand() -> None:
    # Two samples break a temperature if both are wrong: q = (1 - p)^2.
    found = metrics.breaking_distribution([[0.8, 0.5, 0.0]], 2)
    assert found[0] == pytest.approx([0.04, 0.96 * 0.25, 0.96 * 0.75, 0.0])
    # One of three right is under one half: q = (1 - p)^3 + 3 p (1 - p)^2.
    found = metrics.breaking_distribution([[0.5, 1.0, 1.0]], 3)
    assert found[0] == pytest.approx([0.5, 0, 0, 0.5])


def test_sampling_error() -> None:
    rows = [("m", "a", t, math.log(p)) for t, p in zip(STEPS, (0.8, 0.5, 1e-9), strict=True)]
    rows += [("m", "a", 0.7, math.log(0.4))]  # not on the paper's grid
    curves = pd.DataFrame(rows, columns=["model", "fact_id", "temperature", "logprob"])
    two, many = metrics.sampling_error(curves, STEPS, [2, 1001]).to_dict("records")
    # P = 0.04, 0.24, 0.72: the mean is 0.02 + 0.24 + 1.08, the mean square 0.01 + 0.24 + 1.62.
    assert two["on_grid"] == 1.5
    assert two["expected"] == pytest.approx(1.34)
    assert two["bias"] == pytest.approx(1.34 - 1.5)
    assert two["sd"] == pytest.approx(math.sqrt(1.87 - 1.34**2))
    # At exactly one half, an odd number of samples breaks at 1.0 every other time, however many.
    assert many["expected"] == pytest.approx(1.25)
    unbroken = curves.assign(logprob=math.log(0.9))
    assert metrics.sampling_error(unbroken, STEPS, [999])["expected"].item() == pytest.approx(2.0)


def test_merged_entropy() -> None:
    logs = np.log([0.4, 0.4, 0.1, 0.1])
    # " red" and "Red" are one answer of 0.8: -(0.8 log4 0.8 + 0.2 log4 0.1).
    hand = -(0.8 * math.log(0.8) + 0.2 * math.log(0.1)) / math.log(4)
    assert metrics.merged_entropy([" red", "Red", "blue", "green"], logs) == pytest.approx(hand)
    assert metrics.merged_entropy(["red", "Red", "RED ", " red"], logs) == 0


def test_entropies() -> None:
    logs = np.log([0.3, 0.2]).tolist()
    known = pd.DataFrame({"model": ["m"], "fact_id": ["a"], "entropy": [0.9]})
    known["top_logprobs"] = [[logs, np.log([0.5, 0.5]).tolist()]]
    known["top_tokens"] = [[["Red", "red"], ["x", "y"]]]
    known["entropies"] = [[math.log(10), 3 * math.log(10)]]
    found = metrics.entropies(known).iloc[0]
    plain = (-0.3 * math.log2(0.3) - 0.2 * math.log2(0.2) + 1) / 2
    assert found["published"] == 0.9
    assert found["not renormalised"] == pytest.approx(plain)
    assert found["merged"] == pytest.approx(0.5)  # 0 for the first token, 1 for the second
    assert found["vocabulary"] == pytest.approx(2)


def test_beginnings_are_likely_tokens_that_say_something() -> None:
    tokens = [" Holland", " The", "\n", " in", "", "\ufffd"]
    known = pd.DataFrame({"top_tokens": [[tokens, ["x"]]]})
    known["top_logprobs"] = [[np.log([0.5, 0.1, 0.1, 0.05, 0.1, 0.1]).tolist(), [0.0]]]
    assert metrics.beginnings(known, 0.06) == [[" The"]]
    assert metrics.beginnings(known, 0.05) == [[" The", " in"]]
    assert metrics.beginnings(known, 0.5) == [[]]


def test_wordings_end_with_the_truth_and_share_no_output() -> None:
    outputs = [
        *((" in", [" 19", "86", " in", " May"]), (" 1", ["986"]), (" It", [" 1986", "."])),
        *((" April", [" 1986"]), (" April", [" 1986", " or"]), (" In", [" 1985"]), (" 1986s", [])),
        (" year", [" 1986", "0"]),  # goes on to another number
    ]
    said = pd.DataFrame(outputs, columns=["begun", "tokens"])
    said = said.assign(model="m", fact_id="f", prompt="p", text=" 1986 ", object="1986")
    said["aliases"] = [[] for _ in outputs]
    other = said.iloc[[3]].assign(fact_id="g", text=" May")
    found = metrics.wordings(pd.concat([said, other]))
    assert list(found) == ["model", "fact_id", "prompt", "form", "tokens"]
    assert found[["fact_id", "form", "tokens"]].to_numpy().tolist() == [
        *(["f", " in 1986", 3], ["f", " It 1986", 2], ["f", " April 1986", 2]),
        ["g", " April 1986", 2],
    ]
    assert metrics.wordings(said[:0]).empty


def test_wordings_add_up_to_a_limit_of_tokens() -> None:
    curves = pd.DataFrame(
        {"model": "m", "fact_id": ["f", "f", "g"], "temperature": [1.0, 2.0, 1.0]}
    )
    curves["logprob"] = np.log([0.5, 0.3, 0.9])
    others = pd.DataFrame({"model": "m", "fact_id": "f", "temperature": [1.0, 2.0, 1.0]})
    others = others.assign(logprob=np.log([0.2, 0.1, 0.1]), form=["a", "a", "b"], tokens=[5, 5, 6])
    for limit, sums in ((4, [0.5, 0.3, 0.9]), (5, [0.7, 0.4, 0.9]), (6, [0.8, 0.4, 0.9])):
        found = metrics.with_wordings(curves, others, limit)
        assert list(found) == list(curves)
        assert np.exp(found["logprob"]).tolist() == pytest.approx(sums)


def test_a_scan_finds_nothing_beyond_its_end() -> None:
    t_b = pd.DataFrame({"fact_id": list("abc"), "t_b": [0.4, 0.8, np.inf]})
    assert metrics.scan_to(t_b, 0.4)["t_b"].tolist() == [0.4, np.inf, np.inf]
    assert metrics.scan_to(t_b, 2.0)["t_b"].tolist() == [0.4, 0.8, np.inf]


def test_entropy_bound_by_hand() -> None:
    # t = 1: one half, and 1/18 for each of nine: 0.5 log10 2 + 0.5 log10 18 = 0.7781.
    assert metrics.entropy_bound(1.0, 1) == pytest.approx(0.5 * np.log10(2) + 0.5 * np.log10(18))
    # Two tokens of 2^-1/2 each, whose nine rivals share the rest.
    q = 0.5**0.5
    two = -q * np.log10(q) - (1 - q) * np.log10((1 - q) / 9)
    assert metrics.entropy_bound(1.0, 2) == pytest.approx(two)
    # High t: one rival that is as likely (log10 2), in one of three tokens.
    assert metrics.entropy_bound([50.0], 3) == pytest.approx([np.log10(2) / 3])
    assert metrics.entropy_bound(1e-6, 4) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("tokens", [1, 2, 4])
def test_no_answer_lies_above_the_entropy_bound(tokens: int) -> None:
    rng = np.random.default_rng(tokens)
    for _ in range(150):
        gaps = [rng.exponential(rng.choice([0.2, 2, 9]), 9) for _ in range(tokens)]
        if rng.random() < 0.3:  # equal rivals come near the bound
            gaps = [np.full(9, gap.mean()) for gap in gaps]
        answer = [np.concatenate([[0.0], -gap]) for gap in gaps]
        t_b = metrics.crossing(GRID, [log_p(answer, t) for t in GRID])
        if not np.isfinite(t_b):
            continue
        entropy = np.mean([statistics.top_entropy(logits) for logits in answer])
        assert entropy <= metrics.entropy_bound(t_b, tokens) + 1e-3


def test_noise_weakens_a_correlation() -> None:
    x, y = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 3.0])
    weights = np.ones((1, 4))
    # Covariance 1, variances 1.25 and 1.25; with a noise of variance 1.25 r falls by sqrt 2.
    plain = metrics.noisy_correlation(weights, x, y, np.zeros(4))
    assert plain == pytest.approx([0.8])
    noisy = metrics.noisy_correlation(weights, x, y, np.array([0.0, 2.5, 2.5, 0.0]))
    assert noisy == pytest.approx([0.8 / math.sqrt(2)])
    drawn = metrics.noisy_correlation(np.array([[2.0, 0, 0, 1]]), x, y, np.zeros(4))
    assert drawn == pytest.approx([1.0])
