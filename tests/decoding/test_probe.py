"""Part 1 from prompt to score, by hand on a toy model."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from frames import frame
from scipy.optimize import brentq
from scipy.stats import binom

from factrobust.decoding import metrics, probe

TABLE = {
    # One token ahead of four equal ones: P_t = 1 / (1 + 4 (1/6)^(1/t)), t_b = log 6 / log 4.
    " Kenya": {" Nairobi": 0.6, " Mombasa": 0.1, " Kisumu": 0.1, " Nakuru": 0.1, " Lamu": 0.1},
    # Two tokens: P_t = 1 / (1 + (1/4)^(1/t)) x 1 / (1 + 2 (1/18)^(1/t)).
    " Peru": {" Li": 0.8, " Cu": 0.2},
    " Li": {"ma": 0.9, "ga": 0.05, "on": 0.05},
    # One competitor: above one half at any temperature.
    " Egypt": {" Cairo": 0.9, " Giza": 0.1},
    # A detour: " big Accra" is right, too. P_1 is one half.
    " Ghana": {" Accra": 0.5, " big": 0.3, " Lagos": 0.2},
    " big": {" Accra": 1.0},
    # The greedy answer is wrong.
    " Chile": {" Quito": 0.7, " Santiago": 0.3},
    # The answer begins a longer word in two of five samples.
    " Niamey": {" Niger": 1.0},
    " Niger": {"</s>": 0.6, "ia": 0.4},
}
FACTS = frame("""
    fact_id  object
    Kenya    Nairobi
    Peru     Lima
    Egypt    Cairo
    Ghana    Accra
    Chile    Santiago
    Niamey   Niger
""")
ALPHA = 1e-4


@pytest.fixture(scope="module")
def facts():
    names = FACTS["fact_id"]
    return FACTS.assign(
        subject=names,
        relation="capital",
        aliases=[[] for _ in names],
        answer_type="Location",
        domain="geography",
        question="Where is " + names + "?",
        prefix="To " + names,
    )


@pytest.fixture(scope="module")
def toy(toy_model):
    return toy_model(TABLE)


@pytest.fixture(scope="module")
def known(toy, facts):
    return metrics.select_known(metrics.mark_greedy(probe.greedy(toy, facts)))


@pytest.fixture(scope="module")
def curves(toy, known):
    return probe.curves(known)


CURVES: dict[str, Any] = {
    "Kenya": lambda t: 1 / (1 + 4 * (1 / 6) ** (1 / t)),
    "Peru": lambda t: 1 / (1 + (1 / 4) ** (1 / t)) / (1 + 2 * (1 / 18) ** (1 / t)),
    "Egypt": lambda t: 1 / (1 + (1 / 9) ** (1 / t)),
    "Ghana": lambda t: 1 / (1 + 0.6 ** (1 / t) + 0.4 ** (1 / t)),
    "Niamey": lambda t: 1.0,
}


def test_greedy_answers(toy, facts, known):
    made = probe.greedy(toy, facts)
    pd.testing.assert_frame_equal(made[list(facts)], facts)
    assert made["prompt"].tolist() == probe.prompts(toy, facts)
    assert made["prompt"][0] == "Where is Kenya? To Kenya"
    made = made.set_index("fact_id")
    said = " " + facts.set_index("fact_id")["object"].replace("Santiago", "Quito")
    assert made["text"].to_dict() == said.to_dict()
    assert known["fact_id"].tolist() == ["Kenya", "Peru", "Egypt", "Ghana", "Niamey"]
    assert np.exp(made.loc["Peru", "logprobs"]) == pytest.approx([0.8, 0.9])
    assert [len(at) for at in made.loc["Peru", "top_logprobs"]] == [10, 10]
    assert np.exp(made.loc["Kenya", "top_logprobs"][0][:2]) == pytest.approx([0.6, 0.1])


def test_the_right_answer_is_scored_whatever_was_said(toy, facts):
    said = probe.greedy(toy, facts).set_index("fact_id", drop=False)
    found = np.exp(probe.truths(toy, pd.concat([said.assign(model="another"), said])))
    # Lima in two tokens; Santiago, where the greedy answer is Quito.
    assert found[["Kenya", "Peru", "Chile"]].tolist() == pytest.approx([0.6, 0.8 * 0.9, 0.3])


@pytest.mark.parametrize(
    ("prompt_format", "answer"), [("chat", "Nairobi"), ("zero-shot", " Nairobi")]
)
def test_a_right_answer_follows_as_its_format_separates_it(prompt_format, answer):
    said: list[str] = []
    model: Any = SimpleNamespace(
        name="m", score=lambda prompts, answers: said.extend(answers) or [np.zeros(1)]
    )
    row = {
        "model": "m",
        "prompt": "p",
        "prompt_format": prompt_format,
        "object": "Nairobi",
    }
    probe.truths(model, pd.DataFrame([row]))
    assert said == [answer]


def test_curves(curves):
    assert list(curves) == ["model", "fact_id", "temperature", "logprob"]
    for fact, group in curves.groupby("fact_id"):
        expected = [CURVES[fact](t) for t in group["temperature"]]
        np.testing.assert_allclose(np.exp(group["logprob"]), expected, atol=1e-6)


def test_breaking_temperatures(curves):
    exact = metrics.exact_breaking(curves).set_index("fact_id")["t_b"].to_dict()
    peru = brentq(lambda t: CURVES["Peru"](t) - 0.5, 0.1, 9)
    expected = {"Kenya": math.log(6) / math.log(4), "Peru": peru, "Ghana": 1.0}  # Kenya's: 1.2925
    never = dict.fromkeys(("Egypt", "Niamey"), math.inf)
    assert exact == pytest.approx(expected | never, rel=1e-3)
    paper = metrics.grid_breaking(curves, probe.TEMPERATURES).set_index("fact_id")["t_b"]
    assert paper["Kenya"] == pytest.approx(1.4)
    assert paper["Egypt"] == math.inf


def test_sampled_accuracies(toy, facts):
    temperatures = [0.4, 1.0, 2.4]
    n = 400
    asked = facts[facts["fact_id"] != "Chile"]
    samples = probe.sampled(
        toy,
        asked,
        temperatures=temperatures,
        n=n,
        seed=5,
    )
    assert list(samples) == [
        *(*probe.ABOUT, "model", "temperature", "sample"),
        *("text", "token_ids", "logprobs", "tempered_logprobs"),
    ]
    assert len(samples) == 5 * 3 * n
    assert samples.groupby(["fact_id", "temperature"])["sample"].nunique().eq(n).all()
    right = {
        **CURVES,
        "Ghana": lambda t: CURVES["Ghana"](t) * (1 + 0.6 ** (1 / t)),  # with the detour
        "Niamey": lambda t: 1 / (1 + (2 / 3) ** (1 / t)),  # without Nigeria
    }
    accuracy = metrics.sampled_accuracy(metrics.mark_samples(samples))
    for row in accuracy.itertuples():
        p = right[row.fact_id](row.temperature)
        low, high = binom.ppf([ALPHA / 2, 1 - ALPHA / 2], n, p)
        assert low <= row.accuracy * n <= high, (row, p)
    t_b = metrics.sampled_breaking(accuracy).set_index("fact_id")["t_b"].to_dict()
    assert t_b == dict.fromkeys(asked["fact_id"], math.inf) | {"Kenya": 2.4, "Peru": 2.4}
    # Under the distribution that they were drawn from, and under the model's own.
    nairobi = samples[(samples["text"] == " Nairobi") & (samples["temperature"] == 2.4)]
    tempered = np.exp(nairobi["tempered_logprobs"].str[0])
    assert tempered.to_numpy() == pytest.approx(CURVES["Kenya"](2.4))
    assert np.exp(nairobi["logprobs"].str[0]).to_numpy() == pytest.approx(0.6)


def test_curves_come_with_the_answers(toy, known):
    silent = known.head(2).assign(model="endpoint", curve=[[], []])
    found = probe.curves(pd.concat([known, silent]))
    assert found.groupby("model")["fact_id"].nunique().to_dict() == {toy.name: 5}
    assert found.groupby("fact_id")["temperature"].agg(list).tolist() == [[*probe.GRID]] * 5
    nothing = probe.curves(silent)
    assert list(nothing) == list(found)
    assert metrics.exact_breaking(nothing).empty
    assert metrics.grid_breaking(nothing, probe.TEMPERATURES)["t_b"].dtype == float


def test_entropies_come_with_the_answers(known):
    peru = known.set_index("fact_id").loc["Peru"]
    first = -(0.8 * math.log(0.8) + 0.2 * math.log(0.2))
    second = -0.9 * math.log(0.9) - 0.1 * math.log(0.05)
    assert peru["entropies"] == pytest.approx([first, second], rel=1e-5)
    assert [at[0] for at in peru["top_tokens"]] == [" Li", "ma"]


def test_truncated_answers_by_hand(toy, known):
    """Kenya's rivals have 0.1 against 0.6: below a fifth of it at t = 1, above at t = 2."""
    kenyan = known[known["fact_id"] == "Kenya"]
    found = probe.tempered(toy, kenyan, [1.0, 2.0], min_p=0.2)
    assert np.exp(found["logprob"]).tolist() == pytest.approx([1.0, CURVES["Kenya"](2.0)])
    samples = probe.sampled(
        toy,
        kenyan,
        temperatures=[1.0],
        n=50,
        min_p=0.2,
    )
    assert set(samples["text"]) == {" Nairobi"}
