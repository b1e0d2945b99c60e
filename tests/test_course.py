"""The course: each check accepts the solution, refuses the stub and two wrong answers, and never
shows the answer; the committed notebooks are made of the exercises; data/teaching/ is of the
records."""

import ast
import importlib.util
import io
import re
import sys
from contextlib import redirect_stdout

import nbformat
import numpy as np
import pandas as pd
import pytest

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


def said(exercise, code):
    """What the check says of the answers that a piece of code makes."""
    names = {"np": np, "pd": pd, "data": course.data}
    with redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        exec(code, names)
        arguments = ast.parse(exercise.check).body[-1].args.args
        return course.verdict(exercise.number, *(names[a.arg] for a in arguments))


def test_the_exercises_of_four_weeks():
    assert len(EXERCISES) == 22
    assert {number[0] for number in EXERCISES} == {*build.WEEKS}
    kinds = [exercise.kind for exercise in EXERCISES.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "implement": 12,
        "predict": 5,
        "find the flaw": 3,
        "design": 2,
    }


@pytest.mark.parametrize("number", [n for n in EXERCISES if n != TRAINS])
def test_a_check_accepts_the_solution(number):
    assert said(EXERCISES[number], EXERCISES[number].solution) == ""


@pytest.mark.parametrize("number", EXERCISES)
def test_a_check_refuses_the_stub_and_wrong_answers(number):
    exercise = EXERCISES[number]
    assert len(exercise.wrong) >= 2
    for code in (exercise.stub, *exercise.wrong):
        sentence = said(exercise, code)
        assert sentence
        assert "\n" not in sentence
        assert len(sentence) < 160
        assert "stopped with" not in sentence  # a wrong answer is told by what is wrong about it


def test_code_that_stops_is_said_so():
    def broken(logits, t):
        return logits / "t"

    assert course.verdict("1.1", broken).startswith("Your code stopped with")


@pytest.mark.parametrize("week", build.WEEKS)
def test_the_notebooks_are_made_of_the_exercises(week):
    """By cells, and the solved one's outputs; what a trained model says may differ by the
    processor."""
    for solved in (False, True):
        path = FOLDER / f"week-{week}-{'solved' if solved else 'exercises'}.ipynb"
        made = build.notebook(week, solved=solved)
        held = nbformat.read(path, as_version=4)
        assert [cell.source for cell in made.cells] == [cell.source for cell in held.cells], path
        if not solved:
            assert all(not cell.get("outputs") for cell in held.cells)
            continue
        ran = build.run(made, leave_out="result")
        for new, old in zip(ran.cells, held.cells, strict=True):
            if new.cell_type == "code" and "result" not in new.source:
                printed = [[output.text for output in cell.outputs] for cell in (new, old)]
                assert close(*("".join(texts) for texts in printed)), new.source
        assert all(cell.outputs for cell in held.cells[3:-1] if cell.cell_type == "code")


def close(one, other):
    """Equal texts, but for numbers that differ by rounding."""
    number = re.compile(r"-?\d+\.?\d*")
    pairs = zip(number.findall(one), number.findall(other), strict=False)
    apart = [abs(float(a) - float(b)) for a, b in pairs]
    return number.sub("#", one) == number.sub("#", other) and max(apart, default=0) <= 0.0101


def test_the_weeks_pages_name_their_exercises_and_minutes():
    for week in build.WEEKS:
        page = (FOLDER / f"week-{week}.md").read_text(encoding="utf-8")
        rows = re.findall(r"\| (\d\.\d) (.+?) \| ([\w ]+?) \| (\d+) \|", page)
        of = [e for e in EXERCISES.values() if e.number.startswith(f"{week}.")]
        assert rows == [(e.number, e.title, e.kind, str(e.minutes)) for e in of]
        assert f"*{sum(e.minutes for e in of)} minutes of exercises." in page
    teacher = (FOLDER / "teacher.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| (\d\.\d) \|", teacher, re.MULTILINE) == [*EXERCISES]
    assert f"take {sum(e.minutes for e in EXERCISES.values())} minutes" in teacher


def test_a_design_that_doubts_contexts_is_kept_and_plain_sentences_are_not():
    """The solution of exercise 4.5 and its first wrong answer, trained for real."""
    exercise = EXERCISES[TRAINS]
    assert said(exercise, exercise.solution) == ""
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
                with redirect_stdout(io.StringIO()):
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


def test_the_stories_are_what_the_data_show():
    """What 2.4, 3.2, 4.2 and 4.6 tell stands in the outputs of the solved notebooks."""
    told = {
        "2.4": [
            ("55%", "gemma-3-270m, only years before: 0.55"),
            ("59%", "only years before: 0.59"),
        ],
        "3.2": [("42%", "smollm2-135m-instruct: answers share 42%"), ("34%", "share 34%")],
        "4.2": [("0.05", "gemma-3-270m: always 97% has an error of 0.048")],
        "4.5": [("60 strangers", "of 180 contexts are read")],
        "4.6": [("32%", "smollm2-135m-instruct, wording 2 for the original: right 32% and 38%")],
    }
    for number, pairs in told.items():
        path = FOLDER / f"week-{number[0]}-solved.ipynb"
        cells = nbformat.read(path, as_version=4).cells
        [place] = [k for k, c in enumerate(cells) if c.source.startswith(f"## {number} ")]
        printed = "".join(o.text for o in cells[place + 3].outputs)
        for words, shown in pairs:
            assert words in EXERCISES[number].task
            assert shown in printed
    of_gemma = course.data("contexts").query(
        "model == 'gemma-3-270m' and context == 'false' and source != 'same'"
    )
    assert (of_gemma["source"] == "contextual").sum() == 76
    assert len(of_gemma) == 80


def test_what_the_teacher_is_told_of_4_5_and_4_3_is_so():
    teacher = (FOLDER / "teacher.md").read_text(encoding="utf-8")
    solved = (FOLDER / "week-4-solved.ipynb").read_text(encoding="utf-8")
    [kept] = re.findall(r"kept: (\d+ of \d+) contexts", solved)
    assert f"({kept} kept; 24 plain statements: 10 of 63)" in teacher
    rows = course.data("world").query("model == 'world-s' and exposure >= 64")
    of_hundred = 100 * rows["kept"].sum() / rows["known"].sum()
    assert f"and 4.3 {of_hundred:.0f} of a hundred" in teacher


def test_the_plan_of_sessions_has_each_exercise_with_its_minutes():
    teacher = (FOLDER / "teacher.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d[ab] \| (.+) \|$", teacher, re.MULTILINE)
    assert len(rows) == 8
    planned = re.findall(r"(?<!of )(\d\.\d) (\d+)", " ".join(rows).split("## ")[0])
    assert planned == [(e.number, str(e.minutes)) for e in EXERCISES.values()]
    for row in rows:
        texts = re.sub(r"\([^)]*\)|\b\d\.\d\b", "", row)
        assert sum(map(int, re.findall(r"\b\d+\b", texts))) <= 75, row


def test_the_graded_example_quotes_the_table():
    page = (FOLDER / "project.md").read_text(encoding="utf-8")
    table = pd.read_csv(ROOT / "figures" / "5-exposure" / "table-timing.csv")
    [row] = table.query("model == 'world-m' and timing == 'early'").itertuples()
    assert f"{row.mean:.0%} [{100 * row.low:.0f}, {100 * row.high:.0f}]" in page
    assert f"(n = {row.n})" in page
    points = re.findall(r"^\| \*\*\w+\*\* \| (\d) \| [^|0-9]", page, re.MULTILINE)
    assert sum(map(int, points)) == 7


@pytest.mark.parametrize(
    ("part", "n", "keys"),
    [
        ("temperature", 30, ["model", "fact_id"]),
        ("years", 20, ["model", "fact_id", "year"]),
        ("contexts", 4, ["model", "question_id", "context"]),
    ],
)
def test_the_extracts_are_what_the_records_say(part, n, keys, monkeypatch):
    """A few facts, extracted again."""
    import build_teaching

    # No notebook asks the contexts any more: what is not recorded is asked of the model.
    monkeypatch.setenv("FACTROBUST_RECORDS", "committed")
    tables = build_teaching.PARTS[part](n)
    name = {"temperature": "answers"}.get(part, part)
    held = course.data(name)
    both = tables[name].merge(held, on=keys, suffixes=("", "_held"))
    assert len(both) > 0
    for column in tables[name].select_dtypes(float):
        if f"{column}_held" in both:
            ends = both[[column, f"{column}_held"]].replace(np.inf, 99).to_numpy(float)
            assert np.allclose(
                ends[:, 0],
                ends[:, 1],
                rtol=1e-4,
                atol=1e-3,
                equal_nan=True,
            ), column


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
