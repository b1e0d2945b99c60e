"""A sample of the recorded answers is asked again: what is drawn, what counts as the same."""

import json
import math
from pathlib import Path

import pandas as pd
import pytest
from export_records import export

from factrobust.models.interface import RecordedModel
from factrobust.models.records import Call, Records, decode, encode, key_of, places, read_index
from factrobust.reproduce import again
from factrobust.reproduce.again import Compared, Recorded, ask_again, compare, draw

ONE = "notebooks/1.ipynb"
TWO = "notebooks/2.ipynb"


@pytest.fixture
def toy(toy_model):
    """After "?": " a" in 60%, " b" in 40% of cases; then the end."""
    toy = toy_model({"?": {" a": 0.6, " b": 0.4}, " a": {".": 1.0}, " b": {".": 1.0}})
    toy.name = "toy"
    toy.fingerprint = "sha256:0123456789abcdef float32"
    return toy


@pytest.fixture
def folder(toy, tmp_path):
    """Its committed answers: 50 greedy ones of notebook ONE, and 20 scores and 4 samples of TWO."""
    store = Records(tmp_path / "records.sqlite")
    recorded = RecordedModel(store, lambda: toy, **vars_of(toy))
    prompts = [f"{i}?" for i in range(50)]
    recorded.generate(prompts, max_new_tokens=2)
    recorded.score(prompts[:20], [" b"] * 20)
    recorded.sample(
        prompts[:4],
        temperature=1.0,
        n=3,
        max_new_tokens=2,
    )
    return committed(tmp_path)


def vars_of(model):
    names = ("name", "fingerprint", "prompt_format", "chat")
    return {name: getattr(model, name, None) for name in names}


def committed(tmp_path: Path) -> Path:
    import export_records

    working = tmp_path / "records.sqlite"
    calls = export_records.stored(working)
    used = {ONE: set(), TWO: set()}
    for call in calls:
        used[ONE if call.operation == "generate" else TWO].add(key_of(call))
    folder = tmp_path / "committed"
    export(
        folder,
        new=working,
        again=tmp_path / "none",
        used=used,
        there=[ONE, TWO],
    )
    return folder


def test_the_same_share_of_each_notebook_model_and_operation_is_drawn(folder):
    drawn = draw(folder, 0.1, 3, [ONE, TWO])
    counts = pd.Series([(r.notebook, r.call.operation) for r in drawn]).value_counts().to_dict()
    # A tenth of 50, 20 and 4, rounded up.
    assert counts == {(ONE, "generate"): 5, (TWO, "score"): 2, (TWO, "sample"): 1}
    assert drawn == draw(folder, 0.1, 3, [ONE, TWO])
    assert drawn != draw(folder, 0.1, 4, [ONE, TWO])
    assert {r.notebook for r in draw(folder, 0.1, 3, [TWO])} == {TWO}
    assert len({r.call for r in draw(folder, 1.0, 0, [ONE, TWO])}) == 74
    assert again.count(folder, [ONE, TWO]) == 74
    assert again.count(folder, [TWO]) == 24


def test_what_the_model_says_again_is_the_same(folder, toy):
    lines = []
    compared, left_out = ask_again(draw(folder, 1.0, 0, [ONE, TWO]), lines.append, lambda _: toy)
    assert left_out == {}
    assert {each.verdict for each in compared} <= {"equal", "close"}
    assert len(compared) == 74
    assert "0 of 74 answers, loading" in lines[0]
    [said, limit] = again.summary(compared, 74 * 2)
    assert said.startswith("Asked again: 74 of 148 recorded answers. 74 came out the same:")
    # (1/2) ** 5 is the first power below 5%.
    assert "Had 5 recorded answers been wrong" in limit


def test_a_planted_wrong_answer_is_found_as_often_as_it_is_drawn(folder, toy, tmp_path):
    """One of 50 greedy answers is changed: a share of 0.2 draws it, and finds it, one time in
    five."""
    [changed, *others] = [r for r in draw(folder, 1.0, 0, [ONE]) if r.call.prompt == "7?"]
    assert others == []
    truth = encode(changed.value)
    found = 0
    for seed in range(50):
        drawn = draw(folder, 0.2, seed, [ONE])
        assert len(drawn) == 10
        found += any(recorded.call == changed.call for recorded in drawn)
    # Binomial of 50 and 0.2: 10, with a standard deviation of 2.8.
    assert 0 < found < 10 + 3 * 2.8

    wrong = changed._replace(value=changed.value | {"text": " b."})
    drawn = [*(r for r in draw(folder, 0.2, 0, [ONE]) if r.call != changed.call), wrong]
    compared, _ = ask_again(drawn, lambda line: None, lambda _: toy)
    [bad] = again.worst(compared)
    assert bad.verdict == "other words"
    assert bad.recorded.call.prompt == "7?"
    assert encode(bad.now)[:40] == truth[:40]
    again.save(compared, tmp_path / "build" / "asked.csv")
    [row] = pd.read_csv(tmp_path / "build" / "asked.csv").to_dict("records")
    assert row["notebook"] == ONE
    assert json.loads(row["recorded"])["text"] == " b."
    assert json.loads(row["now"])["text"] == changed.value["text"]
    assert len(again.summary(compared, 50)) == 1  # no word of what a clean sample would show


def greedy(ids, *positions):
    """A recorded greedy answer; at each position the likeliest tokens, "a -0.5 b -2.0"."""
    tops = []
    for position in positions:
        words = position.split()
        tops.append([[word, float(p)] for word, p in zip(words[::2], words[1::2], strict=True)])
    logprobs = [at[0][1] for at in tops]
    value = {"text": "x", "token_ids": ids, "logprobs": logprobs, "top_logprobs": tops}
    return decode(encode(value))


def test_verdicts_on_numbers():
    value = greedy([1, 2], "a -0.5 b -2.0", ". -0.25 ! -3.0")
    assert compare(value, value) == ("equal", 0.0)
    # Two alternatives that are nearly as likely change places: the numbers are the same.
    swapped = greedy([1, 2], "a -0.5 c -2.0", ". -0.25 ! -3.0")
    assert compare(value, swapped) == ("equal", 0.0)
    verdict, difference = compare(value, greedy([1, 2], "a -0.5 b -2.0", ". -0.246 ! -3.0"))
    assert verdict == "close"
    assert difference == pytest.approx(0.004, abs=1e-6)
    far = greedy([1, 2], "a -0.5 b -2.0", ". -0.25 ! -3.02")
    assert compare(value, far)[0] == "other numbers"
    assert compare([0.5, -math.inf], [0.5, -math.inf]) == ("equal", 0.0)
    assert compare([0.5, -math.inf], [0.5, -9.0])[0] == "other words"
    assert compare([0.5], [0.5, 0.1])[0] == "other words"
    assert compare(0.25, 0.251)[0] == "close"  # a cosine


def test_a_near_tie_is_one_in_the_record():
    tied = greedy([1], "a -0.690 b -0.698")
    other = greedy([9], "b -0.692 a -0.696")
    assert compare(tied, other)[0] == "near tie"
    clear = greedy([1], "a -0.60 b -0.79")
    assert compare(clear, other)[0] == "other words"
    # A word that the record does not have among its likeliest is no tie.
    assert compare(tied, greedy([9], "z -0.692 a -0.696"))[0] == "other words"
    # Of samples nothing says how near a draw was to another word.
    samples = [{"text": "a", "token_ids": [1], "logprobs": [-0.5]}]
    others = [{"text": "b", "token_ids": [2], "logprobs": [-0.5]}]
    assert compare(samples, others)[0] == "other words"


def test_a_model_that_cannot_be_had_is_left_out_and_named(folder, toy):
    from factrobust.models.interface import ModelError

    def missing(fingerprint):
        raise ModelError("toy is not installed: make toys")

    lines = []
    compared, left_out = ask_again(draw(folder, 0.1, 0, [ONE]), lines.append, missing)
    assert compared == []
    name = "sha256:0123456789abcdef"
    assert lines[-1] == f"asking again: {name} is left out, toy is not installed: make toys"
    assert left_out == {name: "toy is not installed: make toys"}
    trained = Recorded(Call("tiny", "training", "", "{}"), ONE, {"texts": {}})
    assert list(ask_again([trained], lambda line: None)[1]) == ["training"]


def test_all_that_was_asked_again_is_compared(folder, toy, tmp_path):
    """After a run that asked everything again, its store is compared with the committed answers."""
    store = Records(tmp_path / "again.sqlite")
    recorded = draw(folder, 1.0, 0, [ONE])
    store.put([r.call for r in recorded[1:]], [r.value for r in recorded[1:]])
    wrong = recorded[0].value | {"text": "no"}
    store.put([recorded[0].call], [wrong])
    compared = again.compare_stores(folder, store, [ONE])
    assert len(compared) == 50
    assert [each.recorded.call for each in again.worst(compared)] == [recorded[0].call]
    assert isinstance(compared[0], Compared)


def test_real_answers_come_out_the_same(monkeypatch):
    """Recorded answers of a small real model: up to three of each operation."""
    _, folder = places()
    index = read_index(folder)
    own = {
        name: about
        for name, about in index["files"].items()
        if again.name_of(about["model"]) == "world-s"
    }
    monkeypatch.setattr(again, "read_index", lambda folder: index | {"files": own})
    drawn = draw(folder, 1e-9, 5, set(pd.read_csv(folder / "calls.csv")["notebook"]))
    asked = []
    for operation in ("generate", "score", "temper", "sample"):
        asked += [recorded for recorded in drawn if recorded.call.operation == operation][:3]
    assert len({recorded.call.operation for recorded in asked}) == 4
    compared, left_out = ask_again(asked, lambda line: None)
    assert left_out == {}
    assert len(compared) == len(asked)
    assert {each.verdict for each in compared} <= {*again.SAME}
