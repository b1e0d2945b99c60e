import pandas as pd
import pytest

from factrobust.datasets.contexts import (
    BASE_COLUMNS,
    TRAITS,
    load_base_question_traits,
    read_base_questions,
    read_thesis_base_questions,
)
from factrobust.tables import FactsError

OWN = """category,question,prefix,right_answers
city,Where is {object}?,{object} is in,one
city,What is {object} known for?,{object} is known for,several
river,How long is {object}?,{object} has a length of,
"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="base.csv"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_every_embedded_base_question_has_traits():
    base = pd.read_csv(TRAITS.parent / "base_questions.csv")
    traits = load_base_question_traits()
    assert traits.index.tolist() == base["base_id"].tolist()
    assert traits["attribute"].tolist() == base["attribute"].tolist()
    assert set(traits["right_answers"]) == {"one", "several"}
    assert traits.loc["building-01", ["answer_kind", "unit"]].tolist() == ["number", "m"]


def test_own_base_questions_say_how_many_answers_are_right(write):
    base = read_base_questions(write(OWN))
    assert tuple(base) == BASE_COLUMNS
    assert base["base_id"].tolist() == ["city-01", "city-02", "river-01"]
    assert base["right_answers"].tolist() == ["one", "several", ""]
    assert base.index.tolist() == [2, 3, 4]  # lines
    with pytest.raises(FactsError, match="line 3: the right_answers 'many' is unknown; write one"):
        read_base_questions(write(OWN.replace("several", "many")))


def test_base_ids_are_unique(write):
    text = "base_id,category,question,prefix\n" + "b,city,Where is {object}?,It is in\n" * 2
    with pytest.raises(FactsError, match="line 3: base_id 'b' is already in line 2"):
        read_base_questions(write(text))


def test_a_line_of_the_thesis(write):
    base = read_thesis_base_questions(write("\n Is {city} old? {city} is \n", "base.txt"))
    assert base.loc[2, ["category", "base_id", "question", "prefix"]].tolist() == [
        *("city", "city-01", "Is {object} old?", "{object} is")
    ]
