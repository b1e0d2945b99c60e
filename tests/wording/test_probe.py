"""Part 3 from questions to consistency, on models and encoders whose numbers are known."""

import math
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from factrobust.models import prompts
from factrobust.models.interface import Generation, Job, LacksError, Model
from factrobust.models.sentences import Encoder
from factrobust.wording import probe

TABLE = {
    " Kenya?": {" Nairobi": 0.8, " Mombasa": 0.2},
    " Kenyans?": {" Mombasa": 0.7, " Nairobi": 0.3},
    " Nairobi": {".": 0.9, ",": 0.1},
    " Mombasa": {".": 1.0},
    ".": {" It": 0.6, " He": 0.4},
    " It": {" is": 1.0},
    " is": {"\n": 1.0},
    "\n": {" never": 1.0},
    " Peru?": {" Li": 0.7, " Cu": 0.3},
    " Li": {"ma": 0.9, "ga": 0.1},
    " Chad?": {"\n": 1.0},
    " Washington?": {" D": 1.0},
    " D": {".C": 1.0},
    ".C": {". ": 1.0},
    ". ": {"This": 1.0},
}
QUESTIONS = [
    ("kenya#0", "What is the capital of Kenya?"),
    ("kenya#1", "What is the capital of the Kenyans?"),
    ("kenya#2", "Which city rules Kenya?"),
    ("kenya#3", "What is the capital of Kenya?"),
    ("peru#0", "Where is the government of Peru?"),
    ("peru#1", "Which city rules Chad?"),
    ("dc#0", "Who is Washington?"),
    ("dc#1", "Who is this Washington?"),
]
TEXTS = [text for _, text in QUESTIONS]
ALPHA = 1e-4


@pytest.fixture
def questions():
    made = pd.DataFrame(QUESTIONS, columns=["question_id", "question"], index=range(10, 18))
    made[["group_id", "variant"]] = made["question_id"].str.split("#", expand=True)
    group = made["group_id"]
    accepted = {"kenya": ["Nairobi"], "peru": ["Lima"], "dc": ["George"]}
    relation = group.map({"kenya": "capital", "peru": "capital", "dc": "name"})
    made = made.assign(
        variant=made["variant"].astype(int),
        relation=relation,
        prefix="To " + group,
    )
    return made.assign(
        answers=group.map(accepted),
        popularity=4.0,
        log_popularity=9.2,
    )


@pytest.fixture(scope="module")
def toy(toy_model):
    return toy_model(TABLE, prompt_format="question")


class Parrot(Model):
    """Answers by a table of prompts; remembers what it was asked, call by call."""

    name = "parrot"
    fingerprint = "parrot"
    prompt_format = "question"
    chat = None

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.calls: list[list[str]] = []
        self.settings: dict[str, Any] = {}
        self.temperatures: set[float | None] = set()

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        prompts = [request["prompt"] for request in job.requests]
        self.calls.append(prompts)
        self.settings = job.settings
        self.temperatures |= {request.get("temperature") for request in job.requests}
        for i, prompt in reversed(list(enumerate(prompts))):
            made = Generation(prompt, self.answers.get(prompt, "?"), [1, 2], [-1.0, -2.0])
            yield [i], [[made] * job.settings["n"] if job.operation == "sample" else made]


class ByHand(Encoder):
    """An encoder whose vectors are a table; it need not be loaded."""

    def __init__(self, vectors: Mapping[str, tuple[float, ...]], records: Any = None) -> None:
        super().__init__(records=records)
        self.vectors = vectors

    def embed(self, texts: Any) -> np.ndarray:
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def test_prompt_is_the_papers(toy, questions):
    asked = {"question-answer": "Question:What is the capital of Kenya?\n Answer:"}
    asked |= {"prefix": "What is the capital of Kenya? To kenya", None: TEXTS[0]}  # as it is
    for form, prompt in asked.items():
        assert probe.prompts(toy, questions[:1], *filter(None, [form])) == [prompt]
    assert probe.paper_format("two-shot", ("<user>", "<model>")) == "chat"
    assert probe.paper_format("question", None) == "question"  # as encoder-decoders are
    assert probe.paper_format("two-shot", None) == "question-answer"


def test_greedy_answers(toy, questions):
    made = probe.greedy(toy, questions)
    added = ["prompt", "text", "raw", "logprobs", "first"]
    assert list(made) == ["model", "prompt_format", *questions, *added]
    pd.testing.assert_frame_equal(made[list(questions)], questions.reset_index(drop=True))
    assert made["prompt"].tolist() == TEXTS
    assert made[["model", "prompt_format"]].eq(["toy", "question"]).all(axis=None)
    nairobi = ["Nairobi", "Mombasa", "Nairobi", "Nairobi"]
    # After "Chad?" a newline comes first, and is skipped.
    assert made["text"].tolist() == [*nairobi, "Lima", "never", "D.C.", "D.C."]
    assert made["first"].tolist() == [*["text"] * 5, "newline", "text", "text"]
    # What was cut, and nothing after the first line.
    assert made["raw"].tolist()[:2] == [" Nairobi. It is", " Mombasa. It is"]
    assert made["raw"].tolist()[4:7] == [" Lima", "\n never", " D.C. This"]
    # Of the tokens up to the sentence's end: " Nairobi" alone, the newline and " never", " D" to ". ".
    assert made["logprobs"][4] == pytest.approx([math.log(0.7), math.log(0.9)], abs=1e-6)
    assert made["logprobs"].map(len).tolist()[:7] == [1, 1, 1, 1, 2, 2, 3]


def test_newlines_are_skipped_and_the_end_of_a_text_is_told_from_them(toy_model, questions):
    """An answer that says nothing before a newline goes on to the next one, and so does a sample."""
    rows = {" Chad?": {"\n": 1.0}, "\n": {"\n": 0.1, "Ndjamena": 0.5, "Abeche": 0.4}}
    ends = {" Peru?": {"</s>": 1.0}, "Ndjamena": {"\n": 1.0}, "Abeche": {"\n": 1.0}}
    model = toy_model(rows | ends, prompt_format="question")
    asked = questions.iloc[[5, 4]]  # which rules Chad, which Peru
    made = probe.greedy(model, asked, max_new_tokens=6)
    assert made["text"].tolist() == ["Ndjamena", ""]
    assert made["raw"].tolist() == ["\nNdjamena", ""]
    assert made["first"].tolist() == ["newline", "end"]
    assert made["logprobs"][0] == pytest.approx([0, math.log(0.5)], abs=1e-6)
    assert made["logprobs"][1] == []
    drawn = probe.sampled(model, asked, n=99, max_new_tokens=6)
    texts = drawn.groupby("question")["text"].agg(set)
    assert texts.to_dict() == {TEXTS[5]: {"Ndjamena", "Abeche"}, TEXTS[4]: {""}}
    said = drawn[drawn["text"] == "Abeche"]["logprobs"]
    assert min(said, key=len) == pytest.approx([0, math.log(0.4)], abs=1e-6)
    assert set(drawn["logprobs"].map(len)) <= {0, 2, 3, 4}  # after one newline, two or three
    # Those of models that were grown to end there stop at the newline.
    for ask in (probe.greedy, probe.sampled):
        assert set(ask(model, asked, max_new_tokens=4, skip_newlines=False)["text"]) == {""}


def test_a_label_is_no_answer_and_the_next_question_ends_one(toy_model, questions):
    """After "Peru?" comes a label and a newline, then Lima; after "Chad?" the model asks on at once."""
    rows = {
        " Peru?": {" Answer": 1.0},
        " Answer": {":": 1.0},
        ":": {"\n": 1.0},
        "\n": {"Lima": 1.0},
        "Lima": {"\n": 1.0},
        " Chad?": {" Question": 1.0},
        " Question": {":": 1.0},
    }
    model = toy_model(rows, prompt_format="question")
    asked = questions.iloc[[4, 5]]
    assert probe.greedy(model, asked, max_new_tokens=4, go_on=True)["text"].tolist() == ["Lima", ""]
    # Without going on a label is taken for the answer.
    assert probe.greedy(model, asked, max_new_tokens=4)["text"].tolist()[0] == "Answer:"
    assert set(probe.sampled(model, asked, n=2, max_new_tokens=4)["text"]) == {""}


def test_equal_prompts_are_asked_once_in_chunks_as_the_paper_does(questions, monkeypatch):
    monkeypatch.setattr(prompts, "CHUNK", 4)
    parrot = Parrot({"What is the capital of Kenya?": " Mombasa. Or"})
    greedy = probe.greedy(parrot, questions)
    # Not the format's own stop strings, which would make J out of J. K. Rowling.
    assert parrot.settings == {"max_new_tokens": 16, "stop": ["\n"], "skip_blank": True}
    sampled = probe.sampled(parrot, questions, max_new_tokens=3)
    distinct = list(dict.fromkeys(TEXTS))
    assert parrot.calls == [distinct[:4], distinct[4:]] * 2
    assert greedy["text"].tolist() == ["Mombasa", "?", "?", "Mombasa", "?", "?", "?", "?"]
    assert sampled["text"].tolist() == [t for t in greedy["text"] for _ in range(10)]
    assert parrot.temperatures == {None, 0.5}
    settings = {
        "n": 10,
        "max_new_tokens": 3,
        "top_k": None,
        "top_p": None,
    }
    assert parrot.settings.items() >= settings.items()


def test_samples(toy, questions):
    n = 400
    made = probe.sampled(toy, questions[:5], n=n, seed=3)
    assert list(made) == ["model", "prompt_format", *questions, "sample", "text", "logprobs"]
    first = made[made["text"] == "Nairobi"].iloc[0]
    assert first["logprobs"][0] == pytest.approx(math.log(0.8))  # not of 0.64 / 0.68, tempered
    assert made["sample"].tolist() == list(range(n)) * 5
    assert made["question_id"].tolist() == questions["question_id"][:5].repeat(n).tolist()
    texts = {q: rows["text"].tolist() for q, rows in made.groupby("question_id")}
    assert set(texts["kenya#0"]) == {"Nairobi", "Nairobi,", "Mombasa"}
    assert texts["kenya#0"] == texts["kenya#3"]  # the same prompt
    assert texts["kenya#0"] != texts["kenya#2"]  # another prompt, another stream
    # At temperature 1/2 probabilities are squared: 0.8^2 / (0.8^2 + 0.2^2).
    hits = sum(text.startswith("Nairobi") for text in texts["kenya#0"])
    low, high = binom.interval(1 - ALPHA, n, 0.64 / 0.68)
    assert low <= hits <= high
    # A sample depends on the seed, the prompt and its number, not on the other questions.
    alone = probe.sampled(toy, questions[1:2], n=5, seed=3)
    assert alone["text"].tolist() == texts["kenya#1"][:5]
    again = probe.sampled(toy, questions[:1], n=n, seed=4)
    assert again["text"].tolist() != texts["kenya#0"]


def test_pairs_are_compared():
    class Equal:
        def similarity(self, groups: list[list[str]]) -> np.ndarray:
            return np.array([float(a == b) for a, b in groups])

    pairs = pd.DataFrame({"answer_1": ["actor", "Oslo"], "answer_2": ["an actor", "Oslo"]})
    assert probe.compared(pairs, Equal())["cosine"].tolist() == [0, 1]


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
    assert probe.predictable(table, [model])["model"].tolist() == ["a", "a"]
    with pytest.raises(LacksError, match=r"^b: all answers are right, or all are wrong; ask other"):
        probe.predictable(table[2:], [model])
