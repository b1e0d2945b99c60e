"""Part 3's questions asked of models whose numbers are known."""

import math
from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest
from scipy.stats import binom

from factrobust.models import prompts
from factrobust.models.interface import Generation, LacksError, Model
from factrobust.models.sentences import Encoder
from factrobust.wording import probe

TABLE = {
    " Kenya?": {" Nairobi": 0.8, " Mombasa": 0.2},
    " Kenyans?": {" Mombasa": 0.7, " Nairobi": 0.3},
    " Nairobi": {".": 0.9, ",": 0.1},
    " Mombasa": {".": 1.0},
    ".": {" It": 0.6, " He": 0.4},
    " It": {"\n": 1.0},
    " Peru?": {" Li": 0.7, " Cu": 0.3},
    " Li": {"ma": 0.9, "ga": 0.1},
    " Chad?": {"\n": 1.0},
    "\n": {" never": 1.0},
    " Washington?": {" D": 1.0},
    " D": {".C": 1.0},
    ".C": {". ": 1.0},
    ". ": {"This": 1.0},
}
ASKED = {
    "kenya#0": "What is the capital of Kenya?",
    "kenya#1": "What is the capital of the Kenyans?",
    "kenya#2": "What is the capital of Kenya?",
    "peru#0": "Where is the government of Peru?",
    "peru#1": "Which city rules Chad?",
    "dc#0": "Who is Washington?",
}
KENYA, _, _, PERU, CHAD, _ = ASKED.values()


@pytest.fixture
def questions():
    made = pd.DataFrame(
        ASKED.items(),
        columns=["question_id", "question"],
        index=range(10, 16),
    )
    made["group_id"] = made["question_id"].str.split("#").str[0]
    return made.assign(prefix="To " + made["group_id"])


@pytest.fixture(scope="module")
def toy(toy_model):
    return toy_model(TABLE, prompt_format="question")


class Parrot(Model):
    """Says the same to everything; remembers what it was asked, call by call."""

    name = "parrot"
    fingerprint = "parrot"
    prompt_format = "question"
    chat = None

    def __init__(self):
        self.calls = []
        self.settings = {}

    def answer(self, job):
        asked = [request["prompt"] for request in job.requests]
        self.calls.append((job.operation, asked, job.requests[0].get("temperature")))
        self.settings[job.operation] = job.settings
        for i, prompt in enumerate(asked):
            made = Generation(
                prompt,
                " Ann. Or",
                [1, 2],
                [-1.0, -2.0],
            )
            yield [i], [[made] * job.settings["n"] if job.operation == "sample" else made]


def test_prompt_is_the_papers(toy, questions):
    for form, prompt in {
        "question-answer": f"Question:{KENYA}\n Answer:",
        "prefix": f"{KENYA} To kenya",
        "question": KENYA,
    }.items():
        assert probe.prompts(toy, questions[:1], form) == [prompt]
    assert probe.paper_format("two-shot", ("<user>", "<model>")) == "chat"
    assert probe.paper_format("question", None) == "question"  # as encoder-decoders are
    assert probe.paper_format("two-shot", None) == "question-answer"


def test_greedy_answers(toy, questions):
    made = probe.greedy(toy, questions)
    about = ["model", "prompt_format", *questions, "prompt", "text", "raw", "logprobs"]
    assert list(made) == about
    pd.testing.assert_frame_equal(
        made[list(questions)],
        questions.reset_index(drop=True),
    )
    assert made["prompt"].tolist() == [*ASKED.values()]
    assert made[["model", "prompt_format"]].eq(["toy", "question"]).all(axis=None)
    # After "Chad?" a newline comes first, and is skipped; raw is not cut.
    assert made[["text", "raw"]].values.tolist() == [
        ["Nairobi", " Nairobi. It"],
        ["Mombasa", " Mombasa. It"],
        ["Nairobi", " Nairobi. It"],
        ["Lima", " Lima"],
        ["never", "\n never"],
        ["D.C.", " D.C. This"],
    ]
    # Of the tokens up to the sentence's end: Nairobi alone, newline and never, " D" to ". ".
    assert made["logprobs"].map(len).tolist() == [
        1,
        1,
        1,
        2,
        2,
        3,
    ]
    assert made["logprobs"][3] == pytest.approx(
        [math.log(0.7), math.log(0.9)],
        abs=1e-6,
    )


def test_newlines_are_skipped(toy_model, questions):
    """An answer that says nothing before a newline goes on to the next one, and so does a
    sample."""
    rows = {
        " Chad?": {"\n": 1.0},
        "\n": {"\n": 0.1, "Ndjamena": 0.5, "Abeche": 0.4},
    }
    ends = {
        " Peru?": {"</s>": 1.0},
        "Ndjamena": {"\n": 1.0},
        "Abeche": {"\n": 1.0},
    }
    model = toy_model(rows | ends, prompt_format="question")
    asked = questions.iloc[[4, 3]]
    made = probe.greedy(model, asked, max_new_tokens=6)
    assert made[["text", "raw"]].values.tolist() == [
        ["Ndjamena", "\nNdjamena"],
        ["", ""],
    ]
    assert made["logprobs"][0] == pytest.approx(
        [0, math.log(0.5)],
        abs=1e-6,
    )
    assert made["logprobs"][1] == []
    drawn = probe.sampled(model, asked, n=99, max_new_tokens=6)
    texts = drawn.groupby("question")["text"].agg(set)
    assert texts.to_dict() == {CHAD: {"Ndjamena", "Abeche"}, PERU: {""}}
    # Those of models that were grown to end there stop at the newline.
    for ask in (probe.greedy, probe.sampled):
        assert set(ask(model, asked, max_new_tokens=4, skip_newlines=False)["text"]) == {""}


def test_a_label_is_no_answer_and_the_next_question_ends_one(toy_model, questions):
    """After "Peru?" comes a label and a newline, then Lima; after "Chad?" the model asks on."""
    words = [" Peru?", " Answer", ":", "\n", "Lima", "\n"]
    rows = {word: {following: 1.0} for word, following in pairwise(words)}
    model = toy_model(
        rows | {" Chad?": {" Question": 1.0}, " Question": {":": 1.0}},
        prompt_format="question",
    )
    asked = questions.iloc[[3, 4]]
    went_on = probe.greedy(model, asked, max_new_tokens=4, go_on=True)["text"]
    assert went_on.tolist() == ["Lima", ""]
    assert probe.greedy(model, asked, max_new_tokens=4)["text"][0] == "Answer:"  # else it is one
    assert set(probe.sampled(model, asked, n=2, max_new_tokens=4)["text"]) == {""}


def test_equal_prompts_are_asked_once_in_chunks_as_the_paper_does(questions, monkeypatch):
    monkeypatch.setattr(prompts, "CHUNK", 3)
    parrot = Parrot()
    assert probe.greedy(parrot, questions)["text"].tolist() == ["Ann"] * 6
    assert probe.sampled(parrot, questions, max_new_tokens=3)["text"].tolist() == ["Ann"] * 60
    distinct = list(dict.fromkeys(ASKED.values()))
    assert parrot.calls == [
        ("generate", distinct[:3], None),
        ("generate", distinct[3:], None),
        ("sample", distinct[:3], 0.5),
        ("sample", distinct[3:], 0.5),
    ]
    # Not the format's own stop strings, which would make J out of J. K. Rowling.
    greedy = {"max_new_tokens": 16, "stop": ["\n"], "skip_blank": True}
    assert parrot.settings["generate"] == greedy
    drawn = {"n": 10, "max_new_tokens": 3, "top_k": None, "top_p": None}
    assert parrot.settings["sample"].items() >= drawn.items()


def test_samples(toy, questions):
    made = probe.sampled(toy, questions, n=400, seed=3)
    assert made["sample"].tolist() == [*range(400)] * 6
    assert made["question_id"].tolist() == questions["question_id"].repeat(400).tolist()
    first = made[made["text"] == "Nairobi"].iloc[0]
    assert first["logprobs"][0] == pytest.approx(math.log(0.8))  # not of 0.64 / 0.68, tempered
    texts = made.groupby("question_id")["text"].agg(list)
    assert set(texts["kenya#0"]) == {"Nairobi", "Nairobi,", "Mombasa"}
    assert texts["kenya#0"] == texts["kenya#2"]  # the same prompt
    # At temperature 1/2 probabilities are squared: 0.8^2 / (0.8^2 + 0.2^2).
    hits = sum(text.startswith("Nairobi") for text in texts["kenya#0"])
    low, high = binom.interval(
        0.9999,
        400,
        0.64 / 0.68,
    )
    assert low <= hits <= high
    # A sample depends on the seed, the prompt and its number, not on the other questions.
    for seed, n in ((3, 5), (4, 400)):
        alone = probe.sampled(toy, questions[1:2], n=n, seed=seed)["text"].tolist()
        assert (alone == texts["kenya#1"][:n]) == (seed == 3)


def test_table_4():
    """The paper, with an encoder that it does not name: 1.000, 0.250 and 0.521."""
    samurai = ["samurai", "samurai", "film director", "actor", "director"]
    benin = ["cotonou", "bamako", "abidjan", "bamako", "bamako"]
    one, low, made = Encoder().similarity([["guitarist"] * 4, samurai, benin])
    assert low < made < one == 1
    assert made == pytest.approx(0.521, abs=0.05)


def test_models_of_which_nothing_can_be_predicted_are_left_out():
    table = pd.DataFrame({"model": ["a", "a", "b", "b"], "correct": [True, False, False, False]})
    model = SimpleNamespace(name="b")
    assert probe.predictable(table, [model])["model"].tolist() == [
        "a",
        "a",
    ]
    with pytest.raises(LacksError, match=r"^b: all answers are right, or all are wrong; ask other"):
        probe.predictable(table[2:], [model])
