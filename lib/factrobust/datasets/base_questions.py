"""Part 4's base questions: a question and the beginning of its answer, with a slot for an object."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pandera.pandas as pa

from factrobust.datasets.tables import FactsError, check_table, check_unique, filled, read_table
from factrobust.paths import DATA

TRAITS = DATA / "context" / "base_question_traits.csv"
SLOT = re.compile(r"\{([^{}]*)\}")

_NO_OTHER_BRACES = pa.Check(
    lambda cells: ~cells.str.replace("{object}", "").str.contains("[{}]"),
    error="has braces other than those of {object}; remove them",
)
_SLOT = pa.Check(
    lambda cells: cells.str.contains("{object}", regex=False),
    error="has no slot; write {object} where the name of an object shall stand",
)
_MARK = pa.Check(
    lambda cells: cells.str.endswith("?"), error="has no question mark at its end; write one"
)
_SCHEMA = pa.DataFrameSchema(
    {
        "category": pa.Column(str, filled("name the category whose objects are asked about")),
        "question": pa.Column(str, [_SLOT, _MARK, _NO_OTHER_BRACES]),
        "prefix": pa.Column(
            str,
            [
                filled("write the beginning of a sentence that the answer completes"),
                _NO_OTHER_BRACES,
            ],
        ),
        "base_id": pa.Column(
            str, filled("write a short unique name, or drop the column"), required=False
        ),
        "right_answers": pa.Column(
            str,
            pa.Check(
                lambda cells: cells.isin(["", "one", "several"]),
                error="is unknown; write one or several, or leave it empty",
            ),
            required=False,
        ),
    }
)
COLUMNS = ("category", "base_id", "attribute", "question", "prefix", "right_answers")


def read_base_questions(path: Path) -> pd.DataFrame:
    """Return a CSV of base questions with the columns `COLUMNS`, indexed by line.

    base_id ("city-01") is made up where the file has no such column, attribute and right_answers
    ("one", or "several" where more than one answer is right) are left empty. Raises FactsError with
    file, line and remedy.
    """
    base = read_table(
        path,
        required=("category", "question", "prefix"),
        optional=("base_id", "attribute", "right_answers"),
    )
    check_table(base, _SCHEMA, path)
    base = _completed(base)
    check_unique(base, ["base_id"], path)
    return base


def _completed(base: pd.DataFrame) -> pd.DataFrame:
    numbers = (base.groupby("category").cumcount() + 1).map("{:02d}".format)
    made: dict[str, str | pd.Series] = {
        "base_id": base["category"] + "-" + numbers,
        "attribute": "",
        "right_answers": "",
    }
    return base.assign(**{k: v for k, v in made.items() if k not in base})[list(COLUMNS)]


def read_thesis_base_questions(path: Path) -> pd.DataFrame:
    """Return the thesis's base_questions.txt in the same form: "What ... {city}? {city} ..." a line.

    Raises FactsError with file, line and remedy.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise FactsError(
            f"{path} cannot be read ({error}); check the path and that it is UTF-8 text."
        ) from error
    rows = {
        n: _parsed(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()
    }
    if not rows:
        raise FactsError(f"{path} is empty; write a base question a line.")
    base = pd.DataFrame.from_dict(rows, orient="index", columns=["category", "question", "prefix"])
    return _completed(base)


def load_base_question_traits() -> pd.DataFrame:
    """Return what the answers to the embedded base questions are like, indexed by base_id.

    Columns: attribute, answer_kind ("date", "person", "number", ...), unit (of a number, else
    empty), right_answers ("one", or "several" where more than one answer is right).
    """
    frame = read_table(
        TRAITS,
        required=("base_id", "attribute", "answer_kind", "unit", "right_answers"),
        optional=(),
    )
    return frame.set_index("base_id")


def _parsed(line: str, where: str) -> tuple[str, str, str]:
    """Category, question and prefix of a line of base_questions.txt."""
    categories = list(dict.fromkeys(SLOT.findall(line)))
    if not categories:
        raise FactsError(
            f"{where}: the base question has no slot; write its category in braces, such as "
            "{city}, where an object shall stand."
        )
    if len(categories) > 1:
        raise FactsError(
            f"{where}: the base question has slots of {len(categories)} categories, "
            f"{', '.join(categories)}; a line asks about one."
        )
    question, mark, prefix = line.partition("?")
    if not mark:
        raise FactsError(
            f"{where}: the base question has no question mark; write one between the question and "
            "the answer prefix."
        )
    if not prefix.strip():
        raise FactsError(
            f"{where}: no answer prefix follows the question mark; write the beginning of a "
            "sentence that the answer completes."
        )
    question, prefix = (SLOT.sub("{object}", part).strip() for part in (question, prefix))
    return categories[0], f"{question}?", prefix
