"""What is changed about a question, by hand; and that everything is asked in one prompt."""

import numpy as np
import pandas as pd
import pytest

from factrobust import load_model
from factrobust.together import spine
from factrobust.together.answers import parameters


def table(prefix="The capital of {} is"):
    rows = [("Kenya", "Nairobi", "capital"), ("Peru", "Lima", "capital"), ("Mars", "Red", "color")]
    facts = pd.DataFrame(rows, columns=["subject", "object", "relation"])
    facts = facts.assign(fact_id=facts["relation"] + "/" + facts["subject"], domain="d", source="")
    facts = facts.assign(
        question=["What is the capital of Kenya?", "What of Peru?", "What colour?"]
    )
    facts["prefix"] = [prefix.format(name) for name in facts["subject"]]
    empty = pd.Series([[] for _ in rows], dtype=object)
    blank = dict.fromkeys(("answer_type", "popularity_source"), "")
    return facts.assign(aliases=empty, popularity=np.nan, **blank)


def test_wordings_are_frames_around_the_question():
    rows = spine.changed(table().head(1), table())
    said = rows[rows["way"] == "wording"].set_index("form")["question"]
    assert len(said) == len(spine.FRAMES) - 1 == 5
    assert said[2] == "Please tell me: What is the capital of Kenya?"
    assert said[4] == "what is the capital of kenya"


def test_contexts_stand_before_the_question():
    rows = spine.changed(table(), table())
    rows = rows.assign(asked=spine.behind(rows)).query("way == 'context'")
    kenya = rows[rows["fact_id"] == "capital/Kenya"].set_index("form")
    assert (
        kenya.loc["false", "asked"] == "The capital of Kenya is Lima. What is the capital of Kenya?"
    )
    assert kenya.loc["true", "asked"].startswith("The capital of Kenya is Nairobi. ")
    assert kenya.loc["irrelevant", "asked"].startswith("The capital of Peru is Lima. ")
    assert "color/Mars" not in set(rows["fact_id"])  # no other colour could be stated


def test_a_question_without_a_beginning_of_its_answer_is_quoted():
    rows = spine.changed(table("").head(1), table("")).query("way == 'context'").set_index("form")
    quoted = 'The answer to "What is the capital of Kenya?" is Lima'
    assert rows.loc["false", "sentence"] == quoted


def test_dated_facts_are_asked_at_the_year_in_their_middle():
    facts = spine.dated_facts(12, 0)
    starts, ends = facts["start"].str[:4].astype(int), facts["end"].str[:4]
    for row, start, end in zip(facts.itertuples(), starts, ends, strict=True):
        middle = (start + int(end or 2020)) // 2
        assert row.question.startswith(f"In {middle}, ")
        assert row.prefix.startswith(f"In {middle}, ")


def test_everything_is_asked_in_the_models_own_prompt():
    """World-s, a grown model of which asking costs little; it knows contexts in part 4's words alone."""
    model = load_model("world-s")
    asked = spine.static_facts("world", 24, 0)
    said = spine.greedy(model, asked, spine.COARSE)
    assert (said["prompt"] == "Q: " + asked["question"] + "\nA:").all()
    assert said["t_b"].notna().any()
    changed = spine.ask(model, spine.changed(asked, asked))
    assert changed.groupby(["way", "form"]).size().loc["wording"].index.tolist() == [1, 2, 3, 8, 9]
    first = changed[(changed["way"] == "wording") & (changed["form"] == 1)]
    assert first["curve"].map(len).tolist() == [len(spine.COARSE)] * 24
    with_context = changed[changed["way"] == "context"]
    assert with_context["right"].dtype == bool or with_context["right"].isin([True, False]).all()


def test_parameters_of_a_notebook_are_read_from_its_file():
    given = parameters("1-decoding/1.1-*")
    assert given["models"] == ["gemma-3-270m", "smollm2-135m-instruct"]
    with pytest.raises(ValueError, match="not enough values"):
        parameters("1-decoding/0.0-*")
