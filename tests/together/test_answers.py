"""Recorded questions and answers, as one table."""

import pytest

import factrobust
from factrobust.models.records import read_index
from factrobust.paths import DATA
from factrobust.together.answers import SHOWN, calls


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


def test_every_recorded_call_is_there_with_what_was_said():
    """Of changed weights, samples and the invented world, too, which `answers` leaves out."""
    table = calls()
    files = read_index(DATA / "records")["files"].values()
    assert len(table) == sum(about["calls"] for about in files)
    assert {"gemma-3-270m round 4", "world-m"} <= {*table["model"]}
    samples = table.loc[table["operation"] == "sample", "said"]
    assert isinstance(samples.iloc[0], list)
    assert isinstance(samples.iloc[0][0], str)
    said = table[table["prompt"].str.endswith("Q: What is the capital of Kenya?\nA:")]
    greedy = said[(said["operation"] == "generate") & (said["model"] == "gemma-3-270m")]
    assert {text.strip() for text in greedy["said"]} == {"Nairobi"}
