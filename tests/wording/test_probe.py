"""Part 3's questions asked of models whose numbers are known."""

import math

import pandas as pd
import pytest
from frames import frame
from numpy.testing import assert_allclose
from scipy.stats import binom
from toys import chances, jobs_of

from factrobust.models import prompts
from factrobust.models.interface import LacksError
from factrobust.models.sentences import Encoder
from factrobust.wording import probe

TABLE = chances("""
    _Kenya?       _Nairobi 0.8  _Mombasa 0.2
    _Kenyans?     _Mombasa 0.7  _Nairobi 0.3
    _Nairobi      . 0.9  , 0.1
    _Mombasa      . 1
    .             _It 0.6  _He 0.4
    _It           ↵ 1
    _Peru?        _Li 0.7  _Cu 0.3
    _Li           ma 0.9  ga 0.1
    _Chad?        ↵ 1
    ↵             _never 1
    _Washington?  _D 1
    _D            .C 1
    .C            ._ 1
    ._            This 1
""")
ASKED = """
    question_id  group_id  question
    kenya#0      kenya     What is the capital of Kenya?
    kenya#1      kenya     What is the capital of the Kenyans?
    kenya#2      kenya     What is the capital of Kenya?
    peru#0       peru      Where is the government of Peru?
    peru#1       peru      Which city rules Chad?
    dc#0         dc        Who is Washington?
"""
PERU = "Where is the government of Peru?"
CHAD = "Which city rules Chad?"


@pytest.fixture
def questions():
    made = frame(ASKED).set_axis(range(10, 16))
    return made.assign(prefix="To " + made["group_id"])


@pytest.fixture(scope="module")
def toy(toy_model):
    return toy_model(TABLE, prompt_format="question")


def test_prompt_is_the_papers(toy, questions):
    kenya = "What is the capital of Kenya?"
    by_format = {
        "question-answer": f"Question:{kenya}\n Answer:",
        "prefix": f"{kenya} To kenya",
        "question": kenya,
    }
    for form, prompt in by_format.items():
        assert probe.prompts(toy, questions[:1], form) == [prompt]
    assert probe.paper_format("two-shot", ("<user>", "<model>")) == "chat"
    assert probe.paper_format("question", None) == "question"  # as encoder-decoders are
    assert probe.paper_format("two-shot", None) == "question-answer"


def test_greedy_answers(toy, questions):
    made = probe.greedy_responses(toy, questions)
    about = ["model", "prompt_format", *questions, "prompt", "text", "raw", "logprobs"]
    assert list(made) == about
    pd.testing.assert_frame_equal(made[list(questions)], questions.reset_index(drop=True))
    assert made["prompt"].tolist() == questions["question"].tolist()
    assert made[["model", "prompt_format"]].eq(["toy", "question"]).all(axis=None)
    # After "Chad?" a newline comes first, and is skipped; raw is not cut.
    assert made["text"].tolist() == ["Nairobi", "Mombasa", "Nairobi", "Lima", "never", "D.C."]
    raw = [" Nairobi. It", " Mombasa. It", " Nairobi. It", " Lima", "\n never", " D.C. This"]
    assert made["raw"].tolist() == raw
    # Of the tokens up to the sentence's end: Nairobi alone, newline and never, " D" to ". ".
    assert made["logprobs"].map(len).tolist() == [1, 1, 1, 2, 2, 3]
    assert_allclose(made["logprobs"][3], [math.log(0.7), math.log(0.9)], atol=1e-6)


def test_newlines_are_skipped(toy_model, questions):
    """An answer that says nothing before a newline goes on to the next one, and so does a
    sample."""
    rows = chances("""
        _Chad?    ↵ 1
        ↵         ↵ 0.1  Ndjamena 0.5  Abeche 0.4
        _Peru?    </s> 1
        Ndjamena  ↵ 1
        Abeche    ↵ 1
    """)
    model = toy_model(rows, prompt_format="question")
    asked = questions.iloc[[4, 3]]
    made = probe.greedy_responses(model, asked, max_new_tokens=6)
    assert made["text"].tolist() == ["Ndjamena", ""]
    assert made["raw"].tolist() == ["\nNdjamena", ""]
    chad, peru = made["logprobs"]
    assert_allclose(chad, [0, math.log(0.5)], atol=1e-6)
    assert peru == []
    drawn = probe.sampled_responses(model, asked, n=99, max_new_tokens=6)
    texts = drawn.groupby("question")["text"].agg(set)
    assert texts.to_dict() == {CHAD: {"Ndjamena", "Abeche"}, PERU: {""}}
    # Those of models that were grown to end there stop at the newline.
    for ask in (probe.greedy_responses, probe.sampled_responses):
        stopped = ask(model, asked, max_new_tokens=4, skip_newlines=False)
        assert set(stopped["text"]) == {""}


def test_a_label_is_no_answer_and_the_next_question_ends_one(toy_model, questions):
    """After "Peru?" comes a label and a newline, then Lima; after "Chad?" the model asks on."""
    rows = chances("""
        _Peru?     _Answer 1
        _Answer    : 1
        :          ↵ 1
        ↵          Lima 1
        Lima       ↵ 1
        _Chad?     _Question 1
        _Question  : 1
    """)
    model = toy_model(rows, prompt_format="question")
    asked = questions.iloc[[3, 4]]
    went_on = probe.greedy_responses(model, asked, max_new_tokens=4, go_on=True)
    assert went_on["text"].tolist() == ["Lima", ""]
    assert len(went_on["logprobs"][0]) == 4  # with the label's tokens
    plain = probe.greedy_responses(model, asked, max_new_tokens=4)
    assert plain["text"][0] == "Answer:"  # else it is one
    drawn = probe.sampled_responses(model, asked, n=2, max_new_tokens=4)
    assert set(drawn["text"]) == {""}


def test_equal_prompts_are_asked_once_in_chunks_as_the_paper_does(toy, questions, monkeypatch):
    jobs = jobs_of(toy, monkeypatch)
    monkeypatch.setattr(prompts, "CHUNK", 3)
    probe.greedy_responses(toy, questions)
    assert len(probe.sampled_responses(toy, questions, max_new_tokens=3)) == 60
    distinct = questions["question"].unique().tolist()
    sent = [[request["prompt"] for request in job.requests] for job in jobs]
    assert sent == [distinct[:3], distinct[3:]] * 2
    greedy, _, sample, _ = jobs
    # Not the format's own stop strings, which would make J out of J. K. Rowling.
    expected = {"max_new_tokens": 16, "stop": ["\n"], "skip_blank": True}
    assert expected.items() <= greedy.settings.items()
    assert sample.requests[0]["temperature"] == 0.5
    drawn = {"n": 10, "max_new_tokens": 3, "top_k": None, "top_p": None}
    assert drawn.items() <= sample.settings.items()


def test_samples(toy, questions):
    made = probe.sampled_responses(toy, questions, n=400, seed=3)
    assert made["sample"].tolist() == [*range(400)] * 6
    first = made[made["text"] == "Nairobi"].iloc[0]
    assert first["logprobs"][0] == pytest.approx(math.log(0.8))  # not of 0.64 / 0.68, tempered
    texts = made.groupby("question_id")["text"].agg(list)
    assert set(texts["kenya#0"]) == {"Nairobi", "Nairobi,", "Mombasa"}
    assert texts["kenya#0"] == texts["kenya#2"]  # the same prompt
    # At temperature 1/2 probabilities are squared: 0.8^2 / (0.8^2 + 0.2^2).
    hits = sum(text.startswith("Nairobi") for text in texts["kenya#0"])
    low, high = binom.interval(0.9999, 400, 0.64 / 0.68)
    assert low <= hits <= high
    # A sample depends on the seed, the prompt and its number, not on the other questions.
    alone = probe.sampled_responses(toy, questions[1:2], n=5, seed=3)
    assert alone["text"].tolist() == texts["kenya#1"][:5]
    other = probe.sampled_responses(toy, questions[1:2], n=400, seed=4)
    assert other["text"].tolist() != texts["kenya#1"]


def test_table_4():
    """The paper, with an encoder that it does not name: 1.000, 0.250 and 0.521."""
    samurai = ["samurai", "samurai", "film director", "actor", "director"]
    benin = ["cotonou", "bamako", "abidjan", "bamako", "bamako"]
    one, low, made = Encoder().similarity([["guitarist"] * 4, samurai, benin])
    assert low < made < one == 1
    assert made == pytest.approx(0.521, abs=0.05)


def test_models_of_which_nothing_can_be_predicted_are_left_out(toy):
    table = frame("""
        model  correct
        a      True
        a      False
        toy    False
        toy    False
    """)
    assert probe.predictable(table, [toy])["model"].tolist() == ["a", "a"]
    with pytest.raises(LacksError, match=r"^toy: all answers are right, or all are wrong; ask"):
        probe.predictable(table[2:], [toy])
