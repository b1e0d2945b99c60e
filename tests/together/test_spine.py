"""What is changed about a question, by hand; and that everything is asked in one prompt."""

import numpy as np
import pandas as pd
import pytest

from factrobust import load_model
from factrobust.datasets.named import load_named
from factrobust.decoding import probe
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


CHAT = {"prompt_format": "instruction", "chat": ("<|user|>", "<|assistant|>")}
# "It is" in 0.6 of the cases, then the name in 0.5, before another word.
TALKS = {
    "<|assistant|>": {"It is": 0.6, "Well": 0.4},
    "It is": {" Nairobi": 0.5, " Mombasa": 0.25, " Kisumu": 0.25},
    " Nairobi": {" city": 0.9, "</s>": 0.1},
}


def test_of_an_answer_in_a_sentence_the_name_is_scored(toy_model):
    asked = table("").head(1)
    said = spine.named(toy_model(TALKS, **CHAT), asked, probe.GRID).iloc[0]
    assert (said["text"], said["right"], said["begin"], said["end"]) == (
        "It is Nairobi city", True, 1, 2,
    )  # fmt: skip
    assert said["logprob"] == pytest.approx(np.log(0.5), abs=1e-5)
    # 2^(1/t) against twice 1 is one half at t = 1. Entropy over ten tokens, seven of them impossible.
    assert said["t_b"] == pytest.approx(1, abs=1e-3)
    entropy = -(0.5 * np.log10(0.5) + 0.5 * np.log10(0.25))
    assert said["entropy"] == pytest.approx(entropy, abs=1e-4)
    kept = np.exp(spine.tempered(toy_model(TALKS, **CHAT), pd.DataFrame([said]), [0.7]))
    odds = 2 ** (1 / 0.7)
    assert kept[0, 0] == pytest.approx(odds / (odds + 2), abs=1e-4)


def test_a_bare_name_is_scored_as_it_stands(toy_model):
    """As in a format in which models answer with the name."""
    model = toy_model({"<|assistant|>": {"Nairobi": 0.7, "Lima": 0.3}}, **CHAT)
    said = spine.named(model, table("").head(1), probe.GRID).iloc[0]
    assert (said["begin"], said["end"]) == (0, 1)
    assert said["logprob"] == pytest.approx(np.log(0.7), abs=1e-5)
    assert said["t_b"] == spine.HIGHEST  # of two it stays the likelier


def test_a_name_whose_tokens_are_not_told_has_no_numbers():
    said = Generation("p", "It is Nairobi", [1, 2], [-1.0, -2.0])
    assert spine.name_tokens(said, ["Nairobi"]) == (-1, -1)


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("The capital of Kenya is Nairobi, of course", ["Nairobi"], "Nairobi"),
        ("Nairobi is the capital", ["Nairobi"], "Nairobi"),
        ("It is Washington, D.C., the seat", ["Washington, D.C."], "Washington, D.C"),
        ("the Kenyan shillings", ["Kenyan shilling"], "Kenyan shillings"),
        ("He is from the United States", ["the United States"], "United States"),
        ("about 1,457 people", ["1457"], "1,457"),
        ("It is hip-hop music", ["hip hop"], "hip-hop"),
        ("It is São Tomé.", ["Sao Tome"], "São Tomé"),
        ("It is Lima", ["Nairobi"], None),
        ("", ["Nairobi"], None),
    ],
)
def test_where_a_name_stands(text, names, found):
    place = spine.name_in(text, names)
    assert (place and text[slice(*place)]) == found


def test_a_token_that_holds_a_sign_and_the_name_counts():
    tops = [[(" It", -0.1)], [(' "Nai', -0.2)], [("robi", -0.3)], [('"', -0.4)]]
    said = Generation("p", ' It "Nairobi"', [1, 2, 3, 4], [-0.1, -0.2, -0.3, -0.4], tops)
    assert spine.name_tokens(said, ["Nairobi"]) == (1, 3)


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
