"""What flips are told in."""

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from xml.etree import ElementTree

import pandas as pd
import pytest
from ruled import Rule, knows, number

from factrobust.datasets.user_questions import read_questions
from factrobust.paths import DATA
from factrobust.together import flip_files, flips

pytestmark = pytest.mark.usefixtures("new_records")


@pytest.fixture
def found(mine):
    """Of three known facts one model lost two, another none."""
    one = Rule(knows("Kenya", "Peru", "Italy"), "one")
    others = [Rule(knows("Kenya"), "/home/me/lossy"), Rule(one.rule, "same")]
    return flips.flips(one, others, mine, fail_if="lost>0.3", all_facts=True)


@pytest.fixture
def six(numbered):
    return numbered(["own"] * 6)


def test_the_headline_answers_whether_it_is_still_fine(found):
    def headline(**changed):
        return flip_files.headline(found.model_copy(update=changed))

    assert headline().startswith(
        "No: lost>0.3 is true of lossy, but the interval of lossy, same holds the limit; "
        "asking one again loses at most 0%"
    )
    assert headline(condition="lost>0.9").startswith("Yes: lost>0.9 is true of none")
    loses = "of the known facts lossy loses 67% [9, 99], n = 3 of 3; asking"
    assert headline(condition="").startswith(f"No: {loses}")
    kept = headline(condition="", sides=found.sides[1:])
    assert kept.startswith("Yes, as far as was asked: no known fact is lost")
    worse = found.sides[-1].model_copy(deep=True)
    worse.lost.value = 0.2
    unsure = headline(condition="", sides=[*found.compared_sides, worse])
    assert unsure.startswith(f"Too few facts to tell: {loses}")


def test_the_page_traces_every_lost_fact_and_names_no_place_of_a_machine(found):
    """P of what a rule says is e^-0.2, before and after."""
    found.facts[0].question = "<script>alert(1)</script>"
    page = flip_files.html(found)
    for absent in ("/home/me", "http", "<script>alert"):
        assert absent not in page
    row = page[page.index("What is the capital of Peru?") :].partition("</tr>")[0]
    for text in ("Q: What is the capital of Peru?", "<td>Lima<td>0.819<td", ">Paris<td>0.819"):
        assert text in row
    for text in ("Rome", "lossy", "Facts lost: 2", "Facts gained: 0"):
        assert text in page


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
    path = tmp_path / "lost.csv"
    path.write_text(flip_files.lost_csv(found))
    assert sorted(read_questions(path)["object"]) == ["Lima", "Rome"]
    rows = pd.read_csv(path)
    assert rows["before"].equals(rows["answer"])
    assert json.loads(rows["after"][0]) == {"lossy": "Paris"}


def test_the_json_is_that_of_the_schema_and_comes_back(found):
    schema = json.loads((DATA / "cards" / "flips.schema.json").read_text())
    assert schema == flips.Flips.model_json_schema()
    assert flips.Flips.model_validate_json(found.model_dump_json()) == found


def test_other_models_data_conditions_margins_or_facts_have_a_folder_of_their_own(six):
    """Of six known facts two are asked for sure and two of four by lot; or all six."""
    one = Rule(number, "one")
    same = Rule(number, "same")
    made = []
    for asked, options in [
        (4, {}),
        (6, {"all_facts": True}),
        (6, {"margin": 0.02}),
        (6, {"margin": 0.5}),
    ]:
        made.append(flips.flips(one, [same], six, **options))
        assert len(made[-1].sides[0].answers) == asked
    made.append(made[0].model_copy(update={"condition": "lost>0.4"}))
    made.append(made[0].model_copy(update={"data_sha256": "1"}))
    stems = {flip_files.stem(each) for each in made}
    assert len(stems) == len(made)
    assert flip_files.stem(flips.flips(one, [same], six)) in stems


@pytest.mark.parametrize(
    ("package", "command", "log"),
    [
        # Its own dummy model, which is always wrong.
        (
            "lm_eval",
            "run --model dummy --tasks factrobust_lost --include_path . --output_path out --log_samples",
            "out/**/samples*.jsonl",
        ),
        # Its own mock model, which never says Lima or Rome.
        (
            "inspect_ai",
            "eval lost_inspect.py --model mockllm/model --log-dir out --log-format json --display none",
            "out/*.json",
        ),
    ],
)
def test_the_task_files_are_what_the_packages_run_and_their_logs_can_be_compared(
    found, tmp_path, package, command, log
):
    if not find_spec(package) or not find_spec("datasets"):
        pytest.skip(f"{package} is not installed")
    folder = found.save(tmp_path)[0].parent
    words = [sys.executable, "-m", package, *command.split()]
    subprocess.run(words, check=True, capture_output=True, cwd=folder)
    [path] = folder.glob(log)
    name = str(shutil.copy(path, tmp_path / f"log{path.suffix}"))
    [side] = flips.flips(name, [name]).sides
    assert (side.lost.n, side.gained.n, side.churn.value) == (0, 2, 0)


@pytest.mark.parametrize(
    ("country", "margin", "headline"),
    [
        (
            "Peru",
            0.5,
            "Yes; other: equivalent within 50 points (share right +0 points, p = 0.013); "
            "of the known facts lost: 0% [0, 84], n = 2 of 2; asking one again",
        ),
        (
            "Peru",
            0.02,
            "Cannot tell; other: cannot tell whether equivalent within 2 points, ask 128 more "
            "(share right +0 points, p = 0.",
        ),
        (
            "Norway",
            0.02,
            "Cannot tell; other: cannot tell whether equivalent within 2 points, ask NUMBER more "
            "(share right +0 points, p = 0.NUMBER); of the known facts lost: 50% [1, 99], n = 2 of 2",
        ),
    ],
)
def test_a_claim_of_no_loss_is_the_headline_beside_what_was_lost(mine, country, margin, headline):
    """Kenya kept, Peru lost for Norway: as many are right, and one of two known facts is lost. Of no
    change in 5 pairs a fall by half is excluded (5 x .5 / .5 > 1.645^2), by 2 points it is not: that
    takes 133 (see test_pairs)."""
    one = Rule(knows("Kenya", "Peru"), "one")
    other = Rule(knows("Kenya", country), "other")
    found = flips.flips(one, [other], mine, margin=margin)
    pattern = re.escape(headline).replace("NUMBER", r"[\d,]+")
    assert re.match(pattern, flip_files.headline(found))


def test_worse_is_said_of_the_worst(six):
    """Six of six lost: McNemar's p is 2 / 2^6 = .03."""
    one, same, none = Rule(number, "one"), Rule(number, "same"), Rule(lambda _: "no", "none")
    found = flips.flips(one, [same, none], six, margin=0.02)
    headline = flip_files.headline(found)
    assert headline.startswith("No; same: cannot tell")
    assert "none: worse (share right -100 points); of the known facts lost: 100%" in headline
    table = flip_files.screen_table(found).splitlines()
    assert [line.split()[0] for line in table[:3]] == ["model", "same", "none"]
    assert "  0.0312  worse" in table[2]
    assert "worse" in flip_files.junit(found).decode()


def test_where_nothing_is_known_nothing_is_told_of_losses(mine):
    found = flips.flips(Rule(knows(), "one"), [Rule(knows("Kenya"), "other")], mine)
    assert flip_files.headline(found).startswith("Cannot tell: one knows none of these facts")
