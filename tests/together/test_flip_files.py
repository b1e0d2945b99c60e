"""What flips are told in."""

import csv
import io
import json
import runpy
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pandas as pd
import pytest

from factrobust.datasets.own import read_questions
from factrobust.paths import DATA
from factrobust.together import flip_files, flips

ruled = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ruled.py"))))
Rule, knows = ruled.Rule, ruled.knows
pytestmark = pytest.mark.usefixtures("new_records")


@pytest.fixture
def found(mine):
    """Of three known facts one model lost two, another none."""
    one = Rule(knows("Kenya", "Peru", "Italy"), "one")
    others = [Rule(knows("Kenya"), "/home/me/lossy"), Rule(one.rule, "same")]
    return flips.flips(one, others, mine, fail_if="lost>0.3", all_facts=True)


def test_the_headline_answers_whether_it_is_still_fine(found):
    said = flip_files.headline(found)
    assert said.startswith(
        "No: lost>0.3 is true of lossy, but the interval of lossy, same holds the limit; "
        "asking one again, or at 8 bits, loses at most 0%"
    )
    fine = found.model_copy(update={"condition": "lost>0.9"})
    assert flip_files.headline(fine).startswith("Yes: lost>0.9 is true of none")
    bare = found.model_copy(update={"condition": ""})
    assert flip_files.headline(bare).startswith(
        "No: lossy loses 67% [9, 99], n = 3 of 3 of the known"
    )
    kept = bare.model_copy(update={"sides": found.sides[1:]})
    assert flip_files.headline(kept).startswith("Yes, as far as was asked: no known fact is lost")
    null = found.sides[-1]
    worse = null.model_copy(update={"lost": null.lost.model_copy(update={"value": 0.2})})
    unsure = bare.model_copy(update={"sides": [*found.compared, worse]})
    assert flip_files.headline(unsure).startswith("Too few facts to tell: lossy loses 67%")


def test_the_page_has_every_lost_fact_with_both_answers_and_no_place_of_a_machine(found):
    page = flip_files.html(found)
    for text in ("Lima", "Rome", "What is the capital of Peru?", "0.819", "lossy"):
        assert text in page
    assert "/home/me" not in page
    assert "http" not in page
    odd = found.model_copy(deep=True)
    odd.facts[0].question = "<script>alert(1)</script>"
    assert "<script>alert" not in flip_files.html(odd)


def test_junit_tells_each_model_and_what_failed(found):
    [suite] = ElementTree.fromstring(flip_files.junit(found))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    bad, good = suite
    assert bad.get("name") == "lossy: lost>0.3"
    [failure] = bad.findall("failure")
    assert "lost 67%" in failure.get("message")
    assert "What is the capital of Peru? 'Lima' became 'Paris'" in failure.text
    assert good.findall("failure") == []


def test_the_facts_lost_can_be_asked_again(found, tmp_path):
    (tmp_path / "lost.csv").write_text(flip_files.lost_csv(found))
    rows = [*csv.DictReader(io.StringIO(flip_files.lost_csv(found)))]
    assert sorted(row["answer"] for row in rows) == ["Lima", "Rome"]
    assert json.loads(rows[0]["after"]) == {"lossy": "Paris"}
    again = read_questions(tmp_path / "lost.csv")
    assert sorted(again["object"]) == ["Lima", "Rome"]


def test_the_json_is_that_of_the_schema_and_comes_back(found):
    schema = json.loads((DATA / "cards" / "flips.schema.json").read_text())
    assert schema == flips.Flips.model_json_schema()
    again = flips.Flips.model_validate_json(found.model_dump_json())
    assert again == found
    pd.testing.assert_frame_equal(again.losses, found.losses)


def test_other_models_data_or_conditions_have_a_folder_of_their_own(found, tmp_path):
    changed = [
        found,
        found.model_copy(update={"condition": "lost>0.4"}),
        found.model_copy(update={"data_sha256": "1"}),
    ]
    places = {one.save(tmp_path)[0].parent for one in changed}
    assert len(places) == 3
    assert found.save(tmp_path)[0].parent in places
    assert all(
        {"index.html", "flips.json", "junit.xml"} <= {p.name for p in place.iterdir()}
        for place in places
    )


def test_the_task_files_are_what_the_packages_run(found, tmp_path):
    """With lm-evaluation-harness's own dummy model, which is always wrong."""
    if not (find_spec("lm_eval") and find_spec("datasets")):
        pytest.skip("lm_eval is not installed")
    folder = found.save(tmp_path)[0].parent
    command = [
        sys.executable,
        "-m",
        "lm_eval",
        "run",
        "--model",
        "dummy",
        "--tasks",
        "factrobust_lost",
    ]
    command += [
        "--include_path",
        str(folder),
        "--output_path",
        str(tmp_path / "out"),
        "--log_samples",
    ]
    subprocess.run(command, check=True, capture_output=True)
    [log] = (tmp_path / "out").rglob("samples*.jsonl")
    shutil.copy(log, tmp_path / "a.jsonl")
    [side] = flips.flips(str(tmp_path / "a.jsonl"), [str(tmp_path / "a.jsonl")]).sides
    assert (side.lost.n, side.gained.n) == (0, 2)


def test_inspect_ai_runs_its_task_file_and_its_log_can_be_compared(found, tmp_path):
    """With inspect_ai's own mock model, which never says Lima or Rome."""
    if not find_spec("inspect_ai"):
        pytest.skip("inspect_ai is not installed")
    folder = found.save(tmp_path)[0].parent
    subprocess.run(
        [sys.executable, "-m", "inspect_ai", "eval", "lost_inspect.py", "--model", "mockllm/model",
         "--log-dir", str(tmp_path / "logs"), "--log-format", "json", "--display", "none"],
        check=True, capture_output=True, cwd=folder,
    )  # fmt: skip
    [log] = (tmp_path / "logs").glob("*.json")
    [side] = flips.flips(str(log), [str(log)]).sides
    assert (side.lost.n, side.gained.n, side.churn.value) == (0, 2, 0)


def test_a_claim_of_no_loss_is_the_headline_beside_what_was_lost(mine):
    """Kenya kept, Peru lost for Norway: as many are right, and one of two known facts is lost. Of no
    change in 5 pairs a fall by half is excluded (5 x .5 / .5 > 1.645^2), by 2 points it is not: that
    takes 133 (see test_pairs)."""
    one = Rule(knows("Kenya", "Peru"), "one")
    other, same = Rule(knows("Kenya", "Norway"), "other"), Rule(one.rule, "same")
    assert flip_files.headline(flips.flips(one, [same], mine, margin=0.5)).startswith(
        "Yes; same: equivalent within 50 points (share right +0 points, p = 0.013); "
        "of the known facts lost: 0% [0, 84], n = 2 of 2; asking one again"
    )
    said = flip_files.headline(flips.flips(one, [same], mine, margin=0.02))
    assert said.startswith(
        "Cannot tell; same: cannot tell whether equivalent within 2 points, ask 128 more ("
    )
    said = flip_files.headline(flips.flips(one, [other], mine, margin=0.02))
    assert "(share right +0 points, " in said
    assert "of the known facts lost: 50% [1, 99], n = 2 of 2" in said


def test_worse_is_said_of_the_worst(tmp_path):
    """Six of six lost: McNemar's p is 2 / 2^6 = .03."""
    lines = [f"What is number {i}?,n{i}" for i in range(6)]
    (tmp_path / "six.csv").write_text("question,answer\n" + "\n".join(lines))
    one = Rule(lambda q: "n" + q.rpartition(" ")[2].rstrip("?"), "one")
    sides = [Rule(one.rule, "same"), Rule(lambda _: "no", "none")]
    found = flips.flips(one, sides, tmp_path / "six.csv", margin=0.02)
    said = flip_files.headline(found)
    assert said.startswith("No; same: cannot tell")
    assert "none: worse (share right -100 points); of the known facts lost: 100%" in said
    table = flip_files.text(found).splitlines()
    assert [line.split()[0] for line in table[:3]] == ["model", "same", "none"]
    assert "  0.0312  worse" in table[2]
    assert "worse" in flip_files.junit(found).decode()


def test_other_facts_asked_or_another_margin_have_a_folder_of_their_own(tmp_path):
    """Of six known facts two are asked for sure and two of four by lot; or all six."""
    lines = [f"What is number {i}?,n{i}" for i in range(6)]
    (tmp_path / "six.csv").write_text("question,answer\n" + "\n".join(lines))
    one = Rule(lambda q: "n" + q.rpartition(" ")[2].rstrip("?"), "one")
    same = Rule(one.rule, "same")
    ways = ({}, {"all_facts": True}, {"margin": 0.02}, {"margin": 0.5})
    made = [flips.flips(one, [same], tmp_path / "six.csv", **way) for way in ways]
    assert [len(found.sides[0].answers) for found in made] == [4, 6, 6, 6]
    assert len({flip_files.stem(found) for found in made}) == 4


def test_a_lost_fact_can_be_traced(found):
    """P of what a rule says is e^-0.2, before and after."""
    [peru] = [row for row in found.losses.to_dict("records") if row["before"] == "Lima"]
    assert (peru["after"], round(peru["its_probability"], 3)) == ("Paris", 0.819)
    page = flip_files.html(found)
    row = page[page.index("What is the capital of Peru?") :].partition("</tr>")[0]
    assert "Q: What is the capital of Peru?" in row  # the prompt
    assert "<td>Lima<td>0.819<td" in row
    assert ">Paris<td>0.819" in row


def test_where_nothing_is_known_nothing_is_told_of_losses(mine):
    found = flips.flips(Rule(knows(), "one"), [Rule(knows("Kenya"), "other")], mine)
    assert flip_files.headline(found).startswith("Cannot tell: one knows none of these facts")
