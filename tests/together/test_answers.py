"""Recorded questions and answers, as one table; tests/test_command.py has all of them written."""

import pytest

import factrobust
from factrobust.together.answers import SHOWN


def test_every_answer_of_part_1_comes_with_its_verdict():
    table = factrobust.answers("decoding", ["smollm2-135m-instruct"])
    assert tuple(table)[: len(SHOWN)] == SHOWN
    assert len(table) == 900  # n_questions of 1.1
    assert table["correct"].sum() == 274  # n of a table in notebooks/results.md
    code = table.set_index("fact_id").loc["calling_code/united-states"]
    assert code["accepted"] == ["+1", "1", "001"]
    assert (code["text"].strip(), bool(code["correct"])) == ("1234", False)
    assert code["prompt"].endswith("The international calling code of the United States is")


def test_an_unknown_part_is_one_sentence():
    with pytest.raises(ValueError, match="part is 'heat'; give one of decoding, time"):
        factrobust.answers("heat")
    with pytest.raises(ValueError, match=r"no notebook of these parts asked \['world-x'\]"):
        factrobust.answers(models=["world-x"])
