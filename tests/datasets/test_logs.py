"""Logs as lm-evaluation-harness 0.4.13 and inspect_ai 0.3.285 wrote them, and logs that cannot be read."""

import json
from pathlib import Path

import pytest

from factrobust.datasets import logs
from factrobust.together import flips

DATA = Path(__file__).parent / "data" / "logs"
pytestmark = pytest.mark.usefixtures("new_records")


def lm_eval(path, marks, **changed):
    """A log of its shape: a line a question, whose answer is marked."""
    lines = []
    for i, mark in enumerate(marks):
        prompt = f"Q: What is number {i}?\nA:"
        lines.append(
            {
                "doc_id": i,
                "doc": {"question": f"What is number {i}?", "relation": "number"},
                "target": f"n{i}",
                "arguments": {"gen_args_0": {"arg_0": prompt, "arg_1": {"until": ["\n"]}}},
                "resps": [[f" n{i}" if mark else " no"]],
                "filtered_resps": [f" n{i}" if mark else " no"],
                "filter": "none",
                "metrics": ["exact_match"],
                "exact_match": float(mark),
            }
            | changed
        )
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, lines)))
    return str(path)


def inspected(path, marks, model="mock", **changed):
    samples = [
        {
            "id": f"q{i}",
            "epoch": 1,
            "input": f"What is number {i}?",
            "target": [f"n{i}", f"number {i}"],
            "output": {
                "choices": [{"message": {"content": f"It is n{i}." if mark == "C" else "No."}}]
            },
            "scores": {"includes": {"value": mark}},
        }
        | changed
        for i, mark in enumerate(marks)
    ]
    about = {"model": model, "task": "lost", "model_generate_config": {"max_tokens": 32}}
    log = {"eval": about, "plan": {"config": {"temperature": 0.0}}, "samples": samples}
    path.write_text(json.dumps(log))
    return str(path)


def test_two_runs_of_lm_evaluation_harness_in_pairs(tmp_path):
    """Of three right ones two are lost, of one wrong one is gained."""
    before = lm_eval(tmp_path / "base" / "samples_facts_2026.jsonl", [1, 1, 1, 0])
    after = lm_eval(tmp_path / "q4" / "samples_facts_2026.jsonl", [1, 0, 0, 1])
    found = flips.flips(before, [after], fail_if="lost>0.5", margin=0.1)
    [side] = found.sides
    assert found.a == "base/samples_facts_2026.jsonl"
    assert side.name == "q4/samples_facts_2026.jsonl"
    assert side.lost.value == pytest.approx(2 / 3)
    assert side.lost.n == 3
    assert side.gained.value == 1
    assert side.gained.n == 1
    assert side.mcnemar == 1
    assert side.claim.verdict == "cannot tell"
    assert found.met == [side.name]
    assert found.losses[["question", "before", "after"]].to_numpy().tolist() == [
        ["What is number 1?", "n1", "no"],
        ["What is number 2?", "n2", "no"],
    ]
    assert [(r.relation, r.lost) for r in side.relations] == [("number", 2)]


def test_choices_are_answered_by_the_likeliest(tmp_path):
    marked = {
        "filtered_resps": [
            [-3.0, False],
            [-1.5, True],
            [-2.0, False],
        ],
        "metrics": ["acc_norm", "acc"],
    }
    path = lm_eval(tmp_path / "a.jsonl", [1], **marked, acc=1.0, acc_norm=0.5)
    read = logs.read_log(path)
    assert read.metric == "acc"  # the first that is 0 or 1
    assert read.table["text"].tolist() == ["choice 2"]


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


def test_logs_that_cannot_be_compared(tmp_path):
    one = lm_eval(tmp_path / "a.jsonl", [1, 0])
    other_prompt = {"arguments": {"gen_args_0": {"arg_0": "Who?", "arg_1": {"until": ["\n"]}}}}
    other_settings = {
        "arguments": {
            "gen_args_0": {"arg_0": "Q: What is number 0?\nA:", "arg_1": {"until": ["."]}}
        }
    }
    for log, said in (
        (
            lm_eval(tmp_path / "b.jsonl", [1, 0], **other_prompt),
            "differ in the prompt of 2 of 2 questions, the first '0'",
        ),
        (lm_eval(tmp_path / "c.jsonl", [1], **other_settings), "differ in the settings of 1 of 1"),
        (lm_eval(tmp_path / "d.jsonl", [1, 0], target="x"), "differ in the target of 2 of 2"),
        (lm_eval(tmp_path / "e.jsonl", [1, 0], doc_id="7"), "holds the question '7' twice"),
        (lm_eval(tmp_path / "f.jsonl", [1], doc_id="8"), "share no question"),
        (
            lm_eval(tmp_path / "g.jsonl", [1], metrics=["bleu"], bleu=0.3),
            "has no metric that is 0 or 1",
        ),
        (inspected(tmp_path / "h.json", [0.5]), "marks the sample 'q0' as 0.5, which is neither"),
        (inspected(tmp_path / "i.json", "C", scores=None), "is no log of inspect_ai with scores"),
    ):
        with pytest.raises(ValueError, match=said):
            flips.flips(one, [log])
    for name, text in (("x.jsonl", "no JSON"), ("y.jsonl", ""), ("x.json", "{"), ("y.json", "[]")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match=f"{name} "):
            logs.read_log(tmp_path / name)
    with pytest.raises(ValueError, match="a log can be compared with logs only"):
        flips.flips(one, ["world-s"])
    with pytest.raises(ValueError, match="logs bring their own questions"):
        flips.flips(one, [one], tmp_path / "mine.csv")


def test_the_logs_that_the_packages_wrote():
    """Each of two models that answered README's three facts, by `tests/datasets/data/logs/README.md`."""
    for end, n in (("jsonl", 3), ("json", 3)):
        found = flips.flips(str(DATA / f"before.{end}"), [str(DATA / f"after.{end}")])
        assert len(found.facts) == n
        assert found.sides[0].lost.n + found.sides[0].gained.n == n
