"""A sample of the recorded answers is asked again: what is drawn, what counts as the same."""

import math
from collections import Counter

import pandas as pd
import pytest
from export_records import export, stored
from frames import frame

from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.records import Call, Records, decode, encode, key_of, places, read_index
from factrobust.reproduce import again
from factrobust.reproduce.again import Recorded, ask_again, compare, draw

ONE = "notebooks/1.ipynb"
TWO = "notebooks/2.ipynb"
BOTH = [ONE, TWO]
IDENTITY = "sha256:0123456789abcdef"


def silent(line):
    """Tells nobody."""


@pytest.fixture
def toy(toy_model):
    """After "?": " a" in 60%, " b" in 40% of cases; then the end."""
    chances = {
        "?": {" a": 0.6, " b": 0.4},
        " a": {".": 1.0},
        " b": {".": 1.0},
    }
    toy = toy_model(chances)
    toy.name = "toy"
    toy.fingerprint = f"{IDENTITY} float32"
    return toy


@pytest.fixture
def folder(toy, tmp_path):
    """Its committed answers: 50 greedy ones of notebook ONE, and 20 scores and 4 samples of TWO."""
    new = tmp_path / "records.sqlite"
    recorded = RecordedModel(
        Records(new),
        lambda: toy,
        name=toy.name,
        fingerprint=toy.fingerprint,
        prompt_format=toy.prompt_format,
        chat=toy.chat,
    )
    prompts = [f"{i}?" for i in range(50)]
    recorded.generate(prompts, max_new_tokens=2)
    recorded.score(prompts[:20], [" b"] * 20)
    recorded.sample(prompts[:4], temperature=1.0, n=3, max_new_tokens=2)
    used = {ONE: set(), TWO: set()}
    for call in stored(new):
        notebook = ONE if call.operation == "generate" else TWO
        used[notebook].add(key_of(call))
    folder = tmp_path / "committed"
    export(
        folder,
        new=new,
        again=tmp_path / "none",
        used=used,
        there=BOTH,
    )
    return folder


def test_the_same_share_of_each_notebook_model_and_operation_is_drawn(folder):
    drawn = draw(folder, 0.1, 3, BOTH)
    counts = Counter((each.notebook, each.call.operation) for each in drawn)
    # A tenth of 50, 20 and 4, rounded up.
    assert counts == {
        (ONE, "generate"): 5,
        (TWO, "score"): 2,
        (TWO, "sample"): 1,
    }
    assert drawn == draw(folder, 0.1, 3, BOTH)
    assert drawn != draw(folder, 0.1, 4, BOTH)
    of_two = draw(folder, 0.1, 3, [TWO])
    assert {each.notebook for each in of_two} == {TWO}
    every = draw(folder, 1.0, 0, BOTH)
    assert len({each.call for each in every}) == 74
    assert again.count(folder, BOTH) == 74
    assert again.count(folder, [TWO]) == 24


def test_it_says_how_far_it_is_and_how_long_the_model_takes(folder, toy, monkeypatch):
    """A second an answer, told every SHOW_SECONDS: after six of 74, 68 are left."""
    seconds = iter(range(1000))
    monkeypatch.setattr(again.time, "monotonic", lambda: float(next(seconds)))
    lines = []
    ask_again(draw(folder, 1.0, 0, BOTH), lines.append, lambda _: toy)
    assert "6 of 74 answers" in lines[1]
    assert lines[1].endswith(" for about 68 s more")


def test_what_the_model_says_again_is_the_same(folder, toy):
    lines = []
    drawn = draw(folder, 1.0, 0, BOTH)
    compared, left_out = ask_again(drawn, lines.append, lambda _: toy)
    assert left_out == {}
    assert {each.verdict for each in compared} <= {"equal", "close"}
    assert len(compared) == 74
    assert "0 of 74 answers, loading" in lines[0]
    [counts, limit] = again.summary(compared, 74 * 2)
    assert counts.startswith("Asked again: 74 of 148 recorded answers. 74 came out the same:")
    # (1/2) ** 5 is the first power below 5%.
    assert "Had 5 recorded answers been wrong" in limit


def test_one_answer_is_drawn_as_often_as_the_share_says(folder):
    """One of 50 greedy answers, and a share of 0.2: it is drawn, and found if it is wrong, one time
    in five."""
    [planted] = [each for each in draw(folder, 1.0, 0, [ONE]) if each.call.prompt == "7?"]
    samples = [draw(folder, 0.2, seed, [ONE]) for seed in range(50)]
    assert {len(sample) for sample in samples} == {10}
    found = sum(planted in sample for sample in samples)
    # Binomial of 50 and 0.2: 10, with a standard deviation of 2.8.
    assert abs(found - 10) < 3 * 2.8


def test_a_planted_wrong_answer_is_found(folder, toy):
    """How it is told and saved is tested of the command."""
    first, *others = draw(folder, 1.0, 0, [ONE])
    wrong = first._replace(value=first.value | {"text": " b."})
    compared, _ = ask_again([wrong, *others], silent, lambda _: toy)
    [bad] = again.worst(compared)
    assert bad.verdict == "other words"
    assert bad.recorded == wrong
    assert bad.now["text"] == first.value["text"]
    assert len(again.summary(compared, 50)) == 1  # no word of what a clean sample would show


def greedy(text):
    """A recorded greedy answer from "1 2; a -0.5 b -2.0; ...": the ids of its tokens, and at each
    position the likeliest tokens."""
    ids, *positions = text.split("; ")
    tops = []
    for position in positions:
        words = position.split()
        pairs = zip(words[::2], words[1::2], strict=True)
        tops.append([[word, float(logprob)] for word, logprob in pairs])
    value = {
        "text": "x",
        "token_ids": [int(token) for token in ids.split()],
        "logprobs": [likeliest[1] for likeliest, *_ in tops],
        "top_logprobs": tops,
    }
    return decode(encode(value))


CLEAR = "1 2; a -0.5 b -2.0; . -0.25 ! -3.0"
# Two alternatives that are nearly as likely change places, and the numbers are the same. A word that
# the record does not have among its likeliest is no tie.
GREEDY = frame(f"""
    recorded              now                                  verdict
    {CLEAR}               {CLEAR}                              equal
    {CLEAR}               1 2; a -0.5 c -2.0; . -0.25 ! -3.0   equal
    {CLEAR}               1 2; a -0.5 b -2.0; . -0.246 ! -3.0  close
    {CLEAR}               1 2; a -0.5 b -2.0; . -0.25 ! -3.02  other numbers
    1; a -0.690 b -0.698  9; b -0.692 a -0.696                 near tie
    1; a -0.60 b -0.79    9; b -0.692 a -0.696                 other words
    1; a -0.690 b -0.698  9; z -0.692 a -0.696                 other words
""")


@pytest.mark.parametrize(("recorded", "now", "verdict"), GREEDY.to_numpy().tolist())
def test_verdicts_of_greedy_answers(recorded, now, verdict):
    found, _ = compare(greedy(recorded), greedy(now))
    assert found == verdict


SURE = -math.inf  # of what is impossible


def sampled(text, token):
    return [{"text": text, "token_ids": [token], "logprobs": [-0.5]}]


@pytest.mark.parametrize(
    ("recorded", "now", "verdict"),
    [
        ([0.5, SURE], [0.5, SURE], "equal"),
        ([0.5, SURE], [0.5, -9.0], "other words"),
        ([0.5], [0.5, 0.1], "other words"),
        (0.25, 0.251, "close"),  # a cosine
        # Of samples nothing says how near a draw was to another word.
        (sampled("a", 1), sampled("b", 2), "other words"),
    ],
)
def test_verdicts_of_numbers_and_samples(recorded, now, verdict):
    found, _ = compare(recorded, now)
    assert found == verdict


def test_the_largest_difference_is_told():
    now = greedy("1 2; a -0.5 b -2.001; . -0.246 ! -3.0")
    _, difference = compare(greedy(CLEAR), now)
    assert difference == pytest.approx(0.004, abs=1e-6)


def test_a_model_that_cannot_be_had_is_left_out_and_named(folder, toy):
    def missing(fingerprint):
        raise ModelError("toy is not installed: make toys")

    lines = []
    drawn = draw(folder, 0.1, 0, [ONE])
    compared, left_out = ask_again(drawn, lines.append, missing)
    assert compared == []
    assert lines[-1] == f"asking again: {IDENTITY} is left out, toy is not installed: make toys"
    assert left_out == {IDENTITY: "toy is not installed: make toys"}
    call = Call("tiny", "training", "", "{}")
    trained = Recorded(call, ONE, {"texts": {}})
    _, left_out = ask_again([trained], silent)
    assert [*left_out] == ["training"]


def test_real_answers_come_out_the_same(monkeypatch):
    """Recorded answers of a small real model: up to three of each operation."""
    _, folder = places()
    index = read_index(folder)
    of_model = {}
    for file, about in index["files"].items():
        if again.name_of(about["model"]) == "world-s":
            of_model[file] = about
    monkeypatch.setattr(again, "read_index", lambda folder: index | {"files": of_model})
    calls = pd.read_csv(folder / "calls.csv")
    drawn = draw(folder, 1e-9, 5, set(calls["notebook"]))
    asked = []
    for operation in ("generate", "score", "temper", "sample"):
        found = [each for each in drawn if each.call.operation == operation]
        assert found
        asked += found[:3]
    compared, left_out = ask_again(asked, silent)
    assert left_out == {}
    assert len(compared) == len(asked)
    assert {each.verdict for each in compared} <= {*again.SAME}
