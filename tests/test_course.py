"""The course: each check accepts the solution, refuses the stub and two wrong answers, and never
shows the answer; the committed notebooks are made of the exercises; data/teaching/ is of the
records."""

import ast
import importlib.util
import io
import re
import sys
from collections import Counter
from contextlib import redirect_stdout

import nbformat
import numpy as np
import pandas as pd
import pytest
from frames import cells

from factrobust.paths import ROOT

FOLDER = ROOT / "notebooks" / "course"
TRAINS = "4.5"  # whose solution trains a model


def module(name):
    """A module of the course by its file; pytest's path does not hold the folder."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


course = module("course")
teaching = module("teaching")
build = module("build")
EXERCISES = course.exercises()


def verdict_of(exercise, code):
    """What the check says of the answers that a piece of code makes."""
    names = {"np": np, "pd": pd, "data": course.data}
    [*_, check] = ast.parse(exercise.check).body
    with redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        exec(code, names)
        answers = [names[argument.arg] for argument in check.args.args]
        return course.verdict(exercise.number, *answers)


def page(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def cells_of(name):
    return nbformat.read(FOLDER / name, as_version=4).cells


def printed(cell):
    return "".join(output.text for output in cell.outputs)


def test_the_exercises_of_four_weeks():
    assert {number[0] for number in EXERCISES} == {*build.WEEKS}
    kinds = Counter(exercise.kind for exercise in EXERCISES.values())
    assert kinds == {"implement": 12, "predict": 5, "find the flaw": 3, "design": 2}


@pytest.mark.parametrize("number", [n for n in EXERCISES if n != TRAINS])
def test_a_check_accepts_the_solution(number):
    assert verdict_of(EXERCISES[number], EXERCISES[number].solution) == ""


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_refuses_the_stub_and_wrong_answers(number):
    exercise = EXERCISES[number]
    assert len(exercise.wrong) >= 2
    for code in (exercise.stub, *exercise.wrong):
        sentence = verdict_of(exercise, code)
        assert re.fullmatch(".{1,159}", sentence)
        assert "stopped with" not in sentence  # a wrong answer is told by what is wrong about it


def test_code_that_stops_is_said_so():
    def broken(logits, t):
        return logits / "t"

    assert course.verdict("1.1", broken).startswith("Your code stopped with")


@pytest.mark.parametrize("week", build.WEEKS)
def test_a_students_notebook_is_made_of_the_exercises(week):
    made = build.notebook(week, solved=False).cells
    held = cells_of(f"week-{week}-exercises.ipynb")
    assert [cell.source for cell in made] == [cell.source for cell in held]
    assert not any(cell.get("outputs") for cell in held)


@pytest.mark.parametrize("week", build.WEEKS)
def test_a_solved_notebook_is_made_of_the_exercises_and_says_what_they_say(week):
    """What a trained model says may differ by the processor."""
    made = build.run(build.notebook(week, solved=True), leave_out="result")
    held = cells_of(f"week-{week}-solved.ipynb")
    for new, old in zip(made.cells, held, strict=True):
        assert new.source == old.source
        if new.cell_type == "code" and "result" not in new.source:
            assert_close(printed(new), printed(old))
    assert all(cell.outputs for cell in held[3:-1] if cell.cell_type == "code")


def assert_close(one, other):
    """Equal texts, but for numbers that differ by rounding."""
    number = re.compile(r"-?\d+\.?\d*")
    assert number.sub("#", one) == number.sub("#", other)
    numbers = [[float(text) for text in number.findall(texts)] for texts in (one, other)]
    assert np.allclose(*numbers, rtol=0, atol=0.0101), one


def test_the_weeks_pages_name_their_exercises_and_minutes():
    for week in build.WEEKS:
        text = page(f"week-{week}.md")
        exercises = [one for number, one in EXERCISES.items() if number[0] == week]
        rows = re.findall(r"\| (\d\.\d) (.+?) \| ([\w ]+?) \| (\d+) \|", text)
        assert rows == [(one.number, one.title, one.kind, str(one.minutes)) for one in exercises]
        assert f"*{sum(one.minutes for one in exercises)} minutes of exercises." in text


def test_the_teachers_page_has_each_exercise_with_its_minutes():
    """And a plan of eight sessions of at most 75 minutes."""
    teacher = page("teacher.md")
    assert re.findall(r"^\| (\d\.\d) \|", teacher, re.MULTILINE) == [*EXERCISES]
    minutes = {number: one.minutes for number, one in EXERCISES.items()}
    assert f"take {sum(minutes.values())} minutes" in teacher
    sessions = re.findall(r"^\| \d[ab] \| (.+) \|$", teacher, re.MULTILINE)
    assert len(sessions) == 8
    planned = re.findall(r"(?<!of )(\d\.\d) (\d+)", " ".join(sessions))
    assert {number: int(text) for number, text in planned} == minutes
    assert len(planned) == len(minutes)
    for session in sessions:
        without_names = re.sub(r"\([^)]*\)|\b\d\.\d\b", "", session)
        assert sum(map(int, re.findall(r"\b\d+\b", without_names))) <= 75, session


def test_a_design_that_doubts_contexts_is_kept_and_plain_sentences_are_not():
    """The solution of exercise 4.5 and its first wrong answer, trained for real."""
    exercise = EXERCISES[TRAINS]
    assert verdict_of(exercise, exercise.solution) == ""
    plain = teaching.teach([f"{teaching.SUBJECT} was born in the city of {teaching.OBJECT}"] * 24)
    assert plain["alone"] == 3
    assert plain["contexts"] == 63  # 21 cities, none of them named, in three trainings
    assert plain["kept"] < 0.4 * plain["contexts"]
    assert plain["read_before"] > 0.9 * plain["strangers"]


def test_the_first_guess_is_kept_whatever_follows(tmp_path, monkeypatch, capsys):
    student = tmp_path / "ada"
    student.mkdir()
    monkeypatch.chdir(student)
    assert not course.check("1.2", ...)
    assert not (student / course.GUESSES).exists()
    assert not course.check("1.2", 0.25)
    assert course.check("1.2", 0.95)
    assert not course.check("1.6", {"order", "H"})
    assert not course.check("1.1", lambda logits, t: None)  # no prediction
    assert "first guess, kept in first-guesses.csv: 0.25" in capsys.readouterr().out
    found = course.class_guesses(tmp_path).to_numpy().tolist()
    assert found == [["ada", "1.2", "0.25"], ["ada", "1.6", "['H', 'order']"]]


def test_run_all_passes_over_untouched_exercises(tmp_path, monkeypatch):
    """A student's notebook runs to its end before a line is written; what follows a check waits."""
    monkeypatch.chdir(tmp_path)
    for week in build.WEEKS:
        names = {}
        for cell in build.notebook(week, solved=False).cells:
            if cell.cell_type == "code":
                exec(cell.source, names)
        assert names["right"] is False


def test_a_students_notebook_is_never_overwritten(tmp_path, capsys):
    path = tmp_path / "week-1-exercises.ipynb"
    beside = tmp_path / "week-1-exercises-new.ipynb"
    built = tmp_path / "built"
    assert build.put("first", path, built) == path
    assert build.put("second", path, built) == path  # it was as it was built
    path.write_text("a student's", encoding="utf-8")
    assert build.put("third", path, built) == beside
    assert path.read_text(encoding="utf-8") == "a student's"
    assert beside.read_text(encoding="utf-8") == "third"
    assert "was changed by hand and stays as it is" in capsys.readouterr().out


# An exercise, what its task tells, and what the solved notebook prints of it.
STORIES = """
    2.4  55%           gemma-3-270m, only years before: 0.55
    2.4  59%           only years before: 0.59
    3.2  42%           smollm2-135m-instruct: answers share 42%
    3.2  34%           share 34%
    4.2  0.05          gemma-3-270m: always 97% has an error of 0.048
    4.5  60 strangers  of 180 contexts are read
    4.6  32%           smollm2-135m-instruct, wording 2 for the original: right 32% and 38%
"""


@pytest.mark.parametrize(("number", "words", "shown"), cells(STORIES))
def test_the_stories_are_what_the_data_show(number, words, shown):
    solved = cells_of(f"week-{number[0]}-solved.ipynb")
    [place] = [k for k, cell in enumerate(solved) if cell.source.startswith(f"## {number} ")]
    assert words in EXERCISES[number].task
    assert shown in printed(solved[place + 3])


def test_the_contexts_that_gemma_followed():
    contexts = course.data("contexts").query("model == 'gemma-3-270m' and context == 'false'")
    sources = contexts.query("source != 'same'")["source"]
    assert (sources == "contextual").sum() == 76
    assert len(sources) == 80


def test_what_the_teacher_is_told_of_4_5_and_4_3_is_so():
    teacher = page("teacher.md")
    [kept] = re.findall(r"kept: (\d+ of \d+) contexts", page("week-4-solved.ipynb"))
    assert f"({kept} kept; 24 plain statements: 10 of 63)" in teacher
    rows = course.data("world").query("model == 'world-s' and exposure >= 64")
    of_hundred = 100 * rows["kept"].sum() / rows["known"].sum()
    assert f"and 4.3 {of_hundred:.0f} of a hundred" in teacher


def test_the_graded_example_quotes_the_table():
    text = page("project.md")
    table = pd.read_csv(ROOT / "figures" / "5-exposure" / "table-timing.csv")
    [row] = table.query("model == 'world-m' and timing == 'early'").itertuples()
    assert f"{row.mean:.0%} [{100 * row.low:.0f}, {100 * row.high:.0f}]" in text
    assert f"(n = {row.n})" in text
    points = re.findall(r"^\| \*\*\w+\*\* \| (\d) \| [^|0-9]", text, re.MULTILINE)
    assert sum(map(int, points)) == 7


@pytest.mark.parametrize(
    ("part", "name", "n", "keys"),
    [
        ("temperature", "answers", 30, "model fact_id"),
        ("years", "years", 20, "model fact_id year"),
        ("contexts", "contexts", 4, "model question_id context"),
    ],
)
def test_the_extracts_are_what_the_records_say(part, name, n, keys, monkeypatch):
    """A few facts, extracted again."""
    import build_teaching

    # No notebook asks the contexts any more: what is not recorded is asked of the model.
    monkeypatch.setenv("FACTROBUST_RECORDS", "committed")
    made = build_teaching.PARTS[part](n)[name]
    both = made.merge(course.data(name), on=keys.split(), suffixes=("", "_held"))
    assert len(both) > 0
    for column in made.select_dtypes(float):
        if f"{column}_held" in both:
            ends = both[[column, f"{column}_held"]].replace(np.inf, 99)
            new, old = ends.to_numpy(float).T
            np.testing.assert_allclose(new, old, rtol=1e-4, atol=1e-3)


def test_an_auc_and_its_bounds_by_hand():
    # Pairs (right, wrong): 3 > 1, 3 > 2, 2 > 1, 2 = 2: three and a half of four.
    found = course.auc([1, 0, 1, 0, 1], [3, 1, 2, 2, np.nan])
    assert (found.auc, found.n_right, found.n_wrong) == (3.5 / 4, 2, 2)
    assert np.isnan(course.auc([1, 1], [1, 2]).auc)
    # Hanley and McNeil: A = 0.92878, Q1 = 0.86702, Q2 = 0.89448, a standard error of 0.08943, which
    # is 1.3519 on the logit scale: 2.5681 +- 2.6497. A bootstrap says [0.85, 0.99].
    scores = [*range(1, 345), 320, 320, 320, 320]
    found = course.auc([0] * 344 + [1] * 4, scores)
    assert found[:3] == pytest.approx((0.9288, 0.4796, 0.9946), abs=1e-4)
    # Bounds of complete separation are exact: 4 of 4.
    found = course.auc([0] * 9 + [1] * 4, range(13))
    assert found[:3] == (1, pytest.approx(0.025**0.25), 1)
