"""Logs as lm-evaluation-harness 0.4.13 and inspect_ai 0.3.285 wrote them, and logs that cannot be read."""

import json
from pathlib import Path

import pytest
from frames import assert_rows

from factrobust.datasets import logs
from factrobust.tables import FactsError
from factrobust.together import flips

DATA = Path(__file__).parent / "data" / "logs"
pytestmark = pytest.mark.usefixtures("new_records")


def sent(prompt, until="\n"):
    return {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": [until]}}}


def lm_eval(path, marks, **changed):
    """A log of its shape: a line a question, whose answer is marked."""
    lines = []
    for i, mark in enumerate(marks):
        question = f"What is number {i}?"
        answer = f" n{i}" if mark else " no"
        line = {
            "doc_id": i,
            "doc": {"question": question, "relation": "number"},
            "target": f"n{i}",
            "arguments": sent(f"Q: {question}\nA:"),
            "resps": [[answer]],
            "filtered_resps": [answer],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": float(mark),
        }
        lines.append(json.dumps(line | changed))
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    return str(path)


def inspected(path, marks, model="mock", **changed):
    samples = []
    for i, mark in enumerate(marks):
        answer = f"It is n{i}." if mark == "C" else "No."
        sample = {
            "id": f"q{i}",
            "epoch": 1,
            "input": f"What is number {i}?",
            "target": [f"n{i}", f"number {i}"],
            "output": {"choices": [{"message": {"content": answer}}]},
            "scores": {"includes": {"value": mark}},
        }
        samples.append(sample | changed)
    about = {"model": model, "task": "lost", "model_generate_config": {"max_tokens": 32}}
    log = {"eval": about, "plan": {"config": {"temperature": 0.0}}, "samples": samples}
    path.write_text(json.dumps(log))
    return str(path)


def test_a_log_is_read_with_its_signs_as_they_are(tmp_path):
    """The harness writes them so; U+2028 is a line's end to Python, and none in JSON."""
    path = tmp_path / "samples_facts_2026.jsonl"
    lm_eval(path, [1, 0], filtered_resps=["a_b"])
    path.write_text("\ufeff" + path.read_text().replace("a_b", "a\u2028b"), encoding="utf-8")
    assert logs.read_log(path).table["text"].tolist() == ["a\u2028b"] * 2
    path.write_bytes(b"\xff\xfe{}")
    with pytest.raises(FactsError, match=r"2026\.jsonl is no log of lm-evaluation-harness \(Uni"):
        logs.read_log(path)


def test_two_runs_of_lm_evaluation_harness_in_pairs(tmp_path):
    """Of three right ones two are lost, of one wrong one is gained."""
    before = lm_eval(tmp_path / "base" / "samples_facts_2026.jsonl", [1, 1, 1, 0])
    after = lm_eval(tmp_path / "q4" / "samples_facts_2026.jsonl", [1, 0, 0, 1])
    found = flips.flips(before, [after], fail_if="lost>0.5", margin=0.1)
    [side] = found.sides
    assert (found.a, side.name) == ("base/samples_facts_2026.jsonl", "q4/samples_facts_2026.jsonl")
    assert (side.lost.value, side.lost.n) == (pytest.approx(2 / 3), 3)
    assert (side.gained.value, side.gained.n) == (1, 1)
    assert side.mcnemar == 1
    assert side.claim.verdict == "cannot tell"
    assert found.met == [side.name]
    expected = """
        question            before  after
        What is number 1?   n1      no
        What is number 2?   n2      no
    """
    assert_rows(found.losses, expected)
    assert [(r.relation, r.lost) for r in side.relations] == [("number", 2)]


@pytest.mark.parametrize("sign", [float, str])
def test_choices_are_answered_by_the_likeliest(tmp_path, sign):
    """The harness writes numbers, or texts of them."""
    choices = [[sign(-3.0), False], [sign(-1.5), True], [sign(-2.0), False]]
    path = lm_eval(
        tmp_path / "a.jsonl",
        [1],
        filtered_resps=choices,
        metrics=["acc_norm", "acc"],
        acc_norm=0.5,
        acc=1.0,
    )
    read = logs.read_log(path)
    assert read.metric == "acc"  # the first that is 0 or 1
    assert read.table["text"].tolist() == ["choice 2"]


@pytest.mark.parametrize(
    ("responses", "text"),
    [([None], ""), ([[None]], ""), (["a"], "a"), ([["a", "b"]], "a"), ("ab", "ab")],
)
def test_an_answer_that_the_harness_does_not_tell_is_empty(tmp_path, responses, text):
    doc = {"question": ["?"], "category": ["of", "two"]}
    path = lm_eval(tmp_path / "a.jsonl", [1], filtered_resps=responses, target=None, doc=doc)
    [row] = logs.read_log(path).table.to_dict("records")
    assert (row["text"], row["object"], row["aliases"]) == (text, "", [])
    assert (row["question"], row["relation"]) == ("A:", "['of', 'two']")


@pytest.mark.parametrize(
    ("content", "text"),
    [(None, ""), ([], ""), ([{"type": "reasoning"}, {"text": "Hi"}, {"text": None}], "Hi")],
)
def test_an_answer_that_inspect_ai_does_not_tell_is_empty(tmp_path, content, text):
    output = {"choices": [{"message": {"content": content}}]}
    path = inspected(tmp_path / "a.json", "C", output=output)
    assert logs.read_log(path).table["text"].tolist() == [text]


def test_two_runs_of_inspect_ai_in_pairs(tmp_path):
    before = inspected(tmp_path / "a.json", "CCIC", "base")
    after = inspected(tmp_path / "b.json", "CICI", "q4")
    found = flips.flips(before, [after])
    [side] = found.sides
    assert side.name == "q4 (b.json)"
    assert side.lost.value == pytest.approx(2 / 3)
    assert side.gained.value == 1
    assert found.facts[0].accepted == ["n0", "number 0"]


def test_a_log_against_itself_loses_nothing(tmp_path):
    path = inspected(tmp_path / "a.json", "CCIC")
    [side] = flips.flips(path, [path]).sides
    assert (side.lost.value, side.gained.value, side.churn.value, side.mcnemar) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"arguments": sent("Who?")}, "differ in the prompt of 1 of 1 questions, the first '0'"),
        ({"arguments": sent("Q: What is number 0?\nA:", ".")}, "differ in the settings of 1 of 1"),
        ({"target": "x"}, "differ in the target of 1 of 1"),
        ({"doc_id": "8"}, "share no question"),
        ({"metrics": ["bleu"], "bleu": 0.3}, "has no metric that is 0 or 1"),
    ],
)
def test_logs_of_lm_evaluation_harness_that_cannot_be_compared(tmp_path, changed, fault):
    one = lm_eval(tmp_path / "a.jsonl", [1])
    other = lm_eval(tmp_path / "b.jsonl", [1], **changed)
    with pytest.raises(ValueError, match=fault):
        flips.flips(one, [other])


def test_logs_that_are_none(tmp_path):
    one = lm_eval(tmp_path / "a.jsonl", [1])
    twice = lm_eval(tmp_path / "b.jsonl", [1, 0], doc_id="7")
    unsure = inspected(tmp_path / "c.json", [0.5])
    unmarked = inspected(tmp_path / "d.json", "C", scores=None)
    for log, fault in (
        (twice, "holds the question '7' twice"),
        (unsure, "marks the sample 'q0' as 0.5, which is neither"),
        (unmarked, "holds the sample 'q0' without a score; run what failed again"),
        ("world-s", "a log can be compared with logs only"),
    ):
        with pytest.raises(ValueError, match=fault):
            flips.flips(one, [log])
    with pytest.raises(ValueError, match="logs bring their own questions"):
        flips.flips(one, [one], tmp_path / "mine.csv")
    wrong = {
        "x.jsonl": "no JSON",
        "y.jsonl": "",
        "x.json": "{",
        "y.json": "[]",
        "z.json": "[" * 10**5,
    }
    for name, text in wrong.items():
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name} "):
            logs.read_log(tmp_path / name)


def test_the_logs_that_the_packages_wrote():
    """Each of two models that answered README's three facts, by `tests/datasets/data/logs/README.md`."""
    for end in ("jsonl", "json"):
        found = flips.flips(str(DATA / f"before.{end}"), [str(DATA / f"after.{end}")])
        [side] = found.sides
        assert len(found.facts) == side.lost.n + side.gained.n == 3
