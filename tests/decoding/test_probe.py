"""Part 1 from prompt to score, by hand on a toy model."""

import math

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import binom
from toys import chances

from factrobust.decoding import metrics, probe
from factrobust.schemas import Samples

# Kenya: one token ahead of four equal ones, P_t = 1 / (1 + 4 (1/6)^(1/t)), t_b = log 6 / log 4.
# Peru: two tokens, P_t = 1 / (1 + (1/4)^(1/t)) x 1 / (1 + 2 (1/18)^(1/t)).
# Egypt: one competitor, so above one half at any temperature.
# Ghana: a detour, since " big Accra" is right, too. P_1 is one half.
# Chile: the greedy answer is wrong. Niamey: it begins a longer word in two of five samples.
TABLE = chances("""
    _Kenya   _Nairobi 0.6  _Mombasa 0.1  _Kisumu 0.1  _Nakuru 0.1  _Lamu 0.1
    _Peru    _Li 0.8  _Cu 0.2
    _Li      ma 0.9  ga 0.05  on 0.05
    _Egypt   _Cairo 0.9  _Giza 0.1
    _Ghana   _Accra 0.5  _big 0.3  _Lagos 0.2
    _big     _Accra 1
    _Chile   _Quito 0.7  _Santiago 0.3
    _Niamey  _Niger 1
    _Niger   </s> 0.6  ia 0.4
""")
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
def answers(toy, facts):
    return probe.greedy_answers(toy, facts)


@pytest.fixture(scope="module")
def known(answers):
    return metrics.select_known(metrics.mark_greedy(answers))


@pytest.fixture(scope="module")
def curves(known):
    return probe.answer_curves(known)


CURVES = {
    "Kenya": lambda t: 1 / (1 + 4 * (1 / 6) ** (1 / t)),
    "Peru": lambda t: 1 / (1 + (1 / 4) ** (1 / t)) / (1 + 2 * (1 / 18) ** (1 / t)),
    "Egypt": lambda t: 1 / (1 + (1 / 9) ** (1 / t)),
    "Ghana": lambda t: 1 / (1 + 0.6 ** (1 / t) + 0.4 ** (1 / t)),
    "Niamey": lambda t: 1.0,
}


def test_greedy_answers(toy, facts, answers, known):
    pd.testing.assert_frame_equal(answers[list(facts)], facts)
    assert answers["prompt"].tolist() == probe.prompts(toy, facts)
    assert answers["prompt"][0] == "Where is Kenya? To Kenya"
    expected = facts["object"].replace("Santiago", "Quito")
    assert answers["text"].tolist() == (" " + expected).tolist()
    assert known["fact_id"].tolist() == ["Kenya", "Peru", "Egypt", "Ghana", "Niamey"]
    peru = known.iloc[1]
    assert_allclose(np.exp(peru["logprobs"]), [0.8, 0.9], rtol=1e-6)
    assert [at[0] for at in peru["top_tokens"]] == [" Li", "ma"]
    assert np.shape(peru["top_logprobs"]) == (2, 10)
    assert_allclose([at[0] for at in peru["top_logprobs"]], peru["logprobs"])


def test_entropies_come_with_the_answers(known):
    first = 0.8 * math.log(0.8) + 0.2 * math.log(0.2)
    second = 0.9 * math.log(0.9) + 0.1 * math.log(0.05)
    by_fact = known.set_index("fact_id")["entropies"]
    assert_allclose(by_fact["Peru"], [-first, -second], rtol=1e-5)


def test_the_right_answer_is_scored_whatever_was_said(toy, answers):
    both = pd.concat([answers.assign(model="another"), answers])
    found = np.exp(probe.truths(toy, both))
    # Lima in two tokens; Santiago, where the greedy answer is Quito.
    assert_allclose(found[[0, 1, 4]], [0.6, 0.8 * 0.9, 0.3], rtol=1e-6)


class Scorer:
    """A model that remembers what it scores."""

    name = "m"

    def score(self, prompts, answers):
        self.answers = answers
        return [np.zeros(1)]


@pytest.mark.parametrize(
    ("prompt_format", "answer"), [("chat", "Nairobi"), ("zero-shot", " Nairobi")]
)
def test_a_right_answer_follows_as_its_format_separates_it(prompt_format, answer):
    scorer = Scorer()
    row = {"model": "m", "prompt": "p", "prompt_format": prompt_format, "object": "Nairobi"}
    probe.truths(scorer, pd.DataFrame([row]))
    assert scorer.answers == [answer]


def test_curves(curves):
    assert list(curves) == ["model", "fact_id", "temperature", "logprob"]
    for fact, group in curves.groupby("fact_id"):
        expected = [CURVES[fact](t) for t in group["temperature"]]
        assert_allclose(np.exp(group["logprob"]), expected, atol=1e-6)


def test_breaking_temperatures(curves):
    exact = metrics.exact_breaking(curves).set_index("fact_id")["t_b"]
    kenya = math.log(6) / math.log(4)  # 1.2925
    peru = brentq(lambda t: CURVES["Peru"](t) - 0.5, 0.1, 9)
    facts = ["Kenya", "Peru", "Ghana", "Egypt", "Niamey"]
    assert_allclose(exact[facts], [kenya, peru, 1, math.inf, math.inf], rtol=1e-3)
    paper = metrics.grid_breaking(curves, probe.TEMPERATURES).set_index("fact_id")["t_b"]
    assert_allclose(paper[["Kenya", "Egypt"]], [1.4, math.inf])


SAMPLED = CURVES | {
    "Ghana": lambda t: CURVES["Ghana"](t) * (1 + 0.6 ** (1 / t)),  # with the detour
    "Niamey": lambda t: 1 / (1 + (2 / 3) ** (1 / t)),  # without Nigeria
}


@pytest.fixture(scope="module")
def samples(toy, facts):
    asked = facts[facts["fact_id"] != "Chile"]
    return probe.sampled_answers(toy, asked, temperatures=[0.4, 1.0, 2.4], n=400, seed=5)


def test_samples_are_of_every_fact_and_temperature(samples):
    Samples.validate(samples)
    assert len(samples) == 5 * 3 * 400
    assert samples.groupby(["fact_id", "temperature"])["sample"].nunique().eq(400).all()
    # Under the distribution that they were drawn from, and under the model's own.
    nairobi = samples.query("text == ' Nairobi' and temperature == 2.4")
    tempered = np.exp(nairobi["tempered_logprobs"].str[0])
    assert_allclose(tempered, CURVES["Kenya"](2.4), rtol=1e-6)
    assert_allclose(np.exp(nairobi["logprobs"].str[0]), 0.6, rtol=1e-6)


def test_sampled_accuracies(samples):
    accuracy = metrics.sampled_accuracy(metrics.mark_samples(samples))
    for row in accuracy.itertuples():
        p = SAMPLED[row.fact_id](row.temperature)
        low, high = binom.ppf([ALPHA / 2, 1 - ALPHA / 2], 400, p)
        assert low <= row.accuracy * 400 <= high, (row, p)
    assert_rows(
        metrics.sampled_breaking(accuracy),
        """
        fact_id  t_b
        Kenya    2.4
        Peru     2.4
        Egypt    inf
        Ghana    inf
        Niamey   inf
        """,
    )


def test_curves_come_with_the_answers(toy, known):
    silent = known.head(2).assign(model="endpoint", curve=[[], []])
    found = probe.answer_curves(pd.concat([known, silent]))
    assert found["model"].unique().tolist() == [toy.name]
    assert found.groupby("fact_id")["temperature"].agg(list).tolist() == [[*probe.GRID]] * 5
    nothing = probe.answer_curves(silent)
    assert list(nothing) == list(found)
    assert metrics.exact_breaking(nothing).empty
    assert metrics.grid_breaking(nothing, probe.TEMPERATURES)["t_b"].dtype == float


def test_truncated_answers_by_hand(toy, known):
    """Kenya's rivals have 0.1 against 0.6: below a fifth of it at t = 1, above at t = 2."""
    kenyan = known[known["fact_id"] == "Kenya"]
    found = probe.truncated_curves(toy, kenyan, [1.0, 2.0], min_p=0.2)
    assert_allclose(np.exp(found["logprob"]), [1.0, CURVES["Kenya"](2.0)], rtol=1e-6)
    samples = probe.sampled_answers(toy, kenyan, temperatures=[1.0], n=50, min_p=0.2)
    assert set(samples["text"]) == {" Nairobi"}
