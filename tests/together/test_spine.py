"""What is changed about a question, by hand; and that everything is asked in one prompt."""

import numpy as np
import pandas as pd
import pytest

from factrobust import load_model
from factrobust.datasets.named import load_named
from factrobust.models.interface import FILTERED, Generation, Model
from factrobust.together import spine
from factrobust.together.card import card


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
    assert len(said) == len(spine.FRAMES) == 5
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
    """World-s, a grown model of which asking costs little."""
    model = load_model("world-s")
    asked = load_named(["world"], limit=24).table
    said = spine.greedy(model, asked, (0.2, 0.5, 1.0, 2.0, 4.0))
    assert (said["prompt"] == "Q: " + asked["question"] + "\nA:").all()
    assert said["t_b"].notna().any()
    changed = spine.changed(asked, asked)
    assert changed["form"].value_counts().to_dict() == dict.fromkeys((1, 2, 3, 8, 9), 24)
    again = spine.greedy(model, changed)
    assert (again["prompt"] == "Q: " + changed["question"] + "\nA:").all()
    assert again["t_b"].isna().all()  # no temperatures were asked for


LATE = {  # what a chat model says first, and the tokens that lead to the answer
    "a newline": {"\n": {"Nairobi": 1.0}},
    "a label": {"The answer is:": {"\n": 1.0}, "\n": {"Nairobi": 1.0}},
    "a thought": {"<think>": {"\n": 1.0}, "\n": {"Hm": 1.0}, "Hm": {"</think>": 1.0}, "</think>": {"Nairobi": 1.0}},
    "nothing": {},
}  # fmt: skip


@pytest.mark.parametrize("kind", LATE)
def test_a_card_knows_an_answer_that_begins_late(toy_model, tmp_path, kind):
    """And one that ends at a special token which no file calls its end."""
    rows = LATE[kind]
    first = next(iter(rows), "Nairobi")
    rows = {"<model>": {first: 1.0}, **rows, "Nairobi": {"<eot>": 1.0}, "<eot>": {"model": 1.0}}
    model = toy_model(rows, prompt_format="chat", chat=("<user>", "<model>"))
    model.tokenizer.add_special_tokens({"additional_special_tokens": ["<eot>"]})
    data = tmp_path / "mine.csv"
    data.write_text("question,answer\nWhat is the capital of Kenya?,Nairobi\n", encoding="utf-8")
    made = card(model, data, known=1)
    [fact] = made.facts
    assert (fact.answer, fact.known) == ("Nairobi", True)
    assert fact.numbers["logprob"] == pytest.approx(0, abs=1e-5)
    assert {*fact.wordings.values()} == {"Nairobi"}
    assert fact.numbers["wordings"] == 1


class Filtered(Model):
    """Answers from behind an endpoint whose filter lets no question about Peru through."""

    def __init__(self):
        lacks = dict.fromkeys(("score", "temper", "token_ids"), "none")
        about = {"prompt_format": "two-shot", "chat": None, "lacks": lacks}
        super().__init__(name="filtered", fingerprint="filtered", **about)

    def answer(self, job):
        said = [
            Generation(r["prompt"], "", [], [], refused=[FILTERED])
            if "Peru" in r["prompt"]
            else Generation(r["prompt"], " Nairobi", [], [])
            for r in job.requests
        ]
        yield (
            [*range(len(said))],
            [[g] * job.settings["n"] for g in said] if "n" in job.settings else said,
        )


def test_a_card_counts_what_a_filter_refused(tmp_path):
    data = tmp_path / "mine.csv"
    rows = "What is the capital of Kenya?,Nairobi\nWhat is the capital of Peru?,Lima\n"
    data.write_text(f"question,answer\n{rows}", encoding="utf-8")
    made = card(Filtered(), data, known=2)
    assert [fact.known for fact in made.facts if "Kenya" in fact.question] == [True]
    assert [fact.answer for fact in made.facts if "Peru" in fact.question] == [""]
    assert any("filter refused" in note for note in made.notes)
