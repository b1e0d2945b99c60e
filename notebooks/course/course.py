"""What the notebooks of the course call: `check` an exercise, read recorded `data`, compute an `auc`.

An exercise is one file in exercises/. Its first text is the task; sections begin with `# %% NAME`:
stub (what a student gets), check, hints, solution, use (what is done with it afterwards), and at least
twice wrong, answers that the check must refuse. build.py makes the notebooks of these files.
"""

import ast
import re
from functools import cache
from numbers import Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from scipy.stats import rankdata

from factrobust.intervals import TAILS, TWO_SIDED

FOLDER = Path(__file__).resolve().parent
DATA = FOLDER.parents[1] / "data" / "teaching"
GUESSES = "first-guesses.csv"  # of predictions, in the folder of the student's notebook
SECTIONS = ("stub", "check", "hints", "solution", "use", "wrong")
HEADING = re.compile(r"(\d\.\d) (.+) · (implement|predict|find the flaw|design), (\d+) minutes")


class Exercise(NamedTuple):
    """One file of exercises/. `wrong` are answers that look right."""

    number: str
    title: str
    kind: str
    minutes: int
    task: str
    stub: str
    check: str
    hints: list[str]
    solution: str
    use: str
    wrong: list[str]


def read(path: Path) -> Exercise:
    """The exercise of a file; ValueError, which names the file, unless every section is there once and
    `wrong` at least twice."""
    first, *rest = re.split(r"^# %% (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    heading, _, task = str(ast.get_docstring(ast.parse(first))).partition("\n\n")
    found = HEADING.fullmatch(heading)
    names = rest[::2]
    once = sorted({*names}) == sorted(SECTIONS) and len(names) - names.count("wrong") == 5
    if found is None or not once or names.count("wrong") < 2:
        raise ValueError(
            f"{path}: write '1.1 Title · implement, 10 minutes' in the first line, and the sections "
            f"{', '.join(SECTIONS)} once each, wrong at least twice."
        )
    pairs = list(zip(rest[::2], (part.strip() for part in rest[1::2]), strict=True))
    one = dict(pairs)
    hints = re.split(r"\n(?=- )", ast.literal_eval(one["hints"]).strip())
    return Exercise(
        found[1], found[2], found[3], int(found[4]), task.strip(), one["stub"], one["check"],
        [hint.removeprefix("- ") for hint in hints], one["solution"], one["use"],
        [part for name, part in pairs if name == "wrong"],
    )  # fmt: skip


@cache
def exercises() -> dict[str, Exercise]:
    """All exercises by their number, in order."""
    every = map(read, sorted((FOLDER / "exercises").glob("*.py")))
    return {exercise.number: exercise for exercise in every}


def given(found: Any) -> None:
    """For checks: AssertionError if a function still returns the three dots, or nothing."""
    if found is None or found is ...:
        raise AssertionError("Your function returns nothing yet.")


def is_number(found: Any) -> bool:
    """For checks: whether an answer is one number, Python's or NumPy's."""
    return isinstance(found, Real) and not isinstance(found, bool)


def first_guess(number: str, answer: Any, file: Path) -> str:
    """The first answer to a prediction, as it stands in `file`; without one there, this answer is put
    there. So a guess is kept, whatever is tried after it."""
    guesses = {}
    if file.is_file():
        guesses = pd.read_csv(file, dtype=str).set_index("exercise")["guess"].to_dict()
    if number not in guesses:
        guesses[number] = str(sorted(answer) if isinstance(answer, set) else answer)
        table = pd.DataFrame(guesses.items(), columns=["exercise", "guess"])
        table.to_csv(file, index=False, lineterminator="\n")
    return str(guesses[number])


def class_guesses(folder: str | Path) -> pd.DataFrame:
    """The first guesses of a class: a row a student and prediction, of the files of GUESSES in the
    folders (a student each) of `folder`: student, exercise, guess."""
    files = sorted(Path(folder).glob(f"*/{GUESSES}"))
    parts = [pd.read_csv(file, dtype=str).assign(student=file.parent.name) for file in files]
    columns = ["student", "exercise", "guess"]
    return pd.concat(parts)[columns] if parts else pd.DataFrame(columns=columns)


def verdict(number: str, *answers: Any) -> str:
    """One sentence on what is wrong with the answers to an exercise; "" if they are right."""
    names: dict[str, Any] = {"np": np, "pd": pd, "data": data, "given": given}
    names["is_number"] = is_number
    exec(exercises()[number].check, names)
    if any(answer is None or answer is ... for answer in answers):
        return "There is no answer yet: put yours in the place of the three dots."
    try:
        names["check"](*answers)
    except AssertionError as wrong:
        return str(wrong)
    except Exception as error:
        return f"Your code stopped with {type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def check(number: str, *answers: Any) -> bool:
    """Say whether the answers to an exercise are right, and if not, in one sentence what is wrong. Of a
    prediction the first guess is kept in GUESSES, and said."""
    wrong = verdict(number, *answers)
    print(f"{number}: {wrong or 'right.'}")
    [answer, *_] = answers
    if exercises()[number].kind == "predict" and answer is not None and answer is not ...:
        guess = first_guess(number, answer, Path.cwd() / GUESSES)
        print(f"Your first guess, kept in {GUESSES}: {guess}")
    return not wrong


def data(name: str) -> pd.DataFrame:
    """A table of data/teaching/, whose README says what its columns mean."""
    return pd.read_csv(DATA / f"{name}.csv", keep_default_na=name != "wordings")


class Auc(NamedTuple):
    """An AUC with its bounds, and the numbers of right and wrong answers."""

    auc: float
    low: float
    high: float
    n_right: int
    n_wrong: int


def auc(right: ArrayLike, score: ArrayLike) -> Auc:
    """Probability that a right answer has the higher score, [row]; ties count half.

    The 95% bounds are of Hanley and McNeil (Radiology 143, 1982) on the logit scale, with the
    larger of the two variances that the formula gives. For an AUC of 1 or 0 the bound is that of
    min(n_right, n_wrong) successes in as many trials. Answers count as independent; NaN without one
    of either sort.
    """
    score = np.asarray(score, dtype=float)
    is_finite = np.isfinite(score)
    score = score[is_finite]
    y = np.asarray(right, dtype=bool)[is_finite]
    m = int(y.sum())
    n = int((~y).sum())
    if not m or not n:
        return Auc(np.nan, np.nan, np.nan, m, n)
    wins = rankdata(score)[y].sum() - m * (m + 1) / 2
    a = float(wins / (m * n))
    if a in (0, 1):
        least = TAILS[0] ** (1 / min(m, n))
        low, high = (least, 1.0) if a == 1 else (0.0, 1 - least)
        return Auc(a, low, high, m, n)
    of_one = a / (2 - a) - a**2
    of_other = 2 * a**2 / (1 + a) - a**2
    sums = (
        (m - 1) * of_one + (n - 1) * of_other,
        (n - 1) * of_one + (m - 1) * of_other,
    )
    variance = (a * (1 - a) + max(sums)) / (m * n)
    half = TWO_SIDED * np.sqrt(variance) / (a * (1 - a))
    low = float(expit(logit(a) - half))
    high = float(expit(logit(a) + half))
    return Auc(a, low, high, m, n)
