"""What is changed about a question, by hand; and that everything is asked in one prompt."""

import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factrobust import load_model
from factrobust.datasets.named import load_named
from factrobust.decoding import probe
from factrobust.models.interface import FILTERED, Generation, Model
from factrobust.together import spine
from factrobust.together.card import card, questions

Rule = runpy.run_path(str(Path(__file__).with_name("ruled.py")))["Rule"]


def table(prefix="The capital of {} is"):
    facts = pd.DataFrame(
        [
            ("Kenya", "Nairobi", "capital", "What is the capital of Kenya?"),
            ("Peru", "Lima", "capital", "What of Peru?"),
            ("Mars", "Red", "color", "What colour?"),
        ],
        columns=["subject", "object", "relation", "question"],
    )
    facts = facts.assign(
        fact_id=facts["relation"] + "/" + facts["subject"],
        domain="d",
        source="",
    )
    facts["prefix"] = [prefix.format(name) for name in facts["subject"]]
    facts["aliases"] = [[], [], []]
    return facts.assign(
        popularity=np.nan,
        answer_type="",
        popularity_source="",
    )


def test_wordings_are_frames_around_the_question():
    said = spine.in_other_words(table().head(1)).set_index("form")["question"]
    assert said.index.tolist() == [1, 2, 3, 4, 5]
    assert said[2] == "Please tell me: What is the capital of Kenya?"
    assert said[4] == "what is the capital of kenya"


ASKED = "What is the capital of Kenya?"


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ("true", "The capital of Kenya is Nairobi"),
        ("false", "The capital of Kenya is Lima"),
        ("irrelevant", "The capital of Peru is Lima"),
        ("nonsense", "The capital of Blorp is Nairobi"),
        ("yours", "Kenya lies in Africa."),
    ],
)
def test_sentences_stand_before_the_question(form, sentence):
    """Answers that they state are of the whole table, whichever facts are asked."""
    own = table().assign(context=["Kenya lies in Africa.", "", ""])
    rows = spine.behind_sentences(own.head(1), own).set_index("form")
    assert rows.loc[form, "sentence"] == sentence
    assert rows.loc[form, "question"] == f"{sentence.rstrip('.')}. {ASKED}"
    assert len(rows) == 5


def test_no_other_colour_could_be_stated():
    assert "color/Mars" not in set(spine.behind_sentences(table(), table())["fact_id"])


def test_a_question_without_a_beginning_of_its_answer_is_quoted():
    rows = spine.behind_sentences(table("").head(1), table("")).set_index("form")
    assert rows.loc["false", "sentence"] == f'The answer to "{ASKED}" is Lima'
    own = table("").assign(subject=table()["question"])  # as in a CSV of one's own
    rows = spine.behind_sentences(own.head(1), own).set_index("form")
    assert rows.loc["nonsense", "sentence"] == 'The answer to "Blorp" is Nairobi'


def test_every_embedded_fact_has_a_nonsense_twin():
    every = questions(None, "gemma-3-270m").table
    rows = spine.behind_sentences(every, every)
    texts = rows.pivot(
        index="fact_id",
        columns="form",
        values="sentence",
    )
    assert len(texts) == len(every)
    assert texts["nonsense"].str.contains("Blorp").all()
    assert (texts["nonsense"].str.partition("Blorp")[2] != "").all()  # the answer stands behind it
    twin_of = texts["nonsense"].str.split("Blorp").str[-1]
    assert all(true.endswith(end) for true, end in zip(texts["true"], twin_of, strict=True))


def test_dated_facts_are_asked_at_the_year_in_their_middle():
    facts = spine.dated_facts(12, 0)
    for row in facts.itertuples():
        middle = (int(row.start[:4]) + int(row.end[:4] or 2020)) // 2
        assert row.question.startswith(f"In {middle}, ")
        assert row.prefix.startswith(f"In {middle}, ")


def test_everything_is_asked_in_the_models_own_prompt():
    """World-s, a grown model of which asking costs little."""
    model = load_model("world-s")
    asked = load_named(["world"], limit=24).table
    said = spine.greedy(model, asked, (0.2, 0.5, 1.0, 2.0, 4.0))
    assert (said["prompt"] == "Q: " + asked["question"] + "\nA:").all()
    assert said["t_b"].notna().any()
    changed = spine.in_other_words(asked)
    assert changed["form"].value_counts().to_dict() == dict.fromkeys((1, 2, 3, 8, 9), 24)
    again = spine.greedy(model, changed)
    assert (again["prompt"] == "Q: " + changed["question"] + "\nA:").all()
    assert again["t_b"].isna().all()  # no temperatures were asked for
    assert spine.behind_sentences(asked, asked).empty


@pytest.mark.parametrize(
    ("text", "bare", "states"),
    [
        ("Nairobi", True, True),
        ("Nairobi is the capital of Kenya", False, True),
        ("The capital of Kenya is Lima", False, False),
    ],
)
def test_a_free_answer_may_be_a_sentence_that_states_the_name(text, bare, states):
    model, asked = Rule(lambda question: text), table().head(1)
    assert spine.greedy(model, asked)["right"].tolist() == [bare]
    assert spine.greedy(model, asked, free=True)["right"].tolist() == [states]


CHAT = {"prompt_format": "instruction", "chat": ("<|user|>", "<|assistant|>")}
# "It is" in 0.6 of the cases, then the name in 0.5, before another word.
TALKS = {
    "<|assistant|>": {"It is": 0.6, "Well": 0.4},
    "It is": {" Nairobi": 0.5, " Mombasa": 0.25, " Kisumu": 0.25},
    " Nairobi": {" city": 0.9, "</s>": 0.1},
}


def test_of_an_answer_in_a_sentence_the_name_is_scored(toy_model):
    model = toy_model(TALKS, **CHAT)
    said = spine.named(model, table("").head(1), probe.GRID)
    row = said.iloc[0]
    assert (row["text"], row["right"]) == ("It is Nairobi city", True)
    assert (row["begin"], row["end"]) == (1, 2)
    assert row["logprob"] == pytest.approx(np.log(0.5), abs=1e-5)
    # 2^(1/t) against twice 1 is one half at t = 1. Entropy over ten tokens, seven of them impossible.
    assert row["t_b"] == pytest.approx(1, abs=1e-3)
    entropy = -(0.5 * np.log10(0.5) + 0.5 * np.log10(0.25))
    assert row["entropy"] == pytest.approx(entropy, abs=1e-4)
    kept = np.exp(spine.tempered(model, said, [0.7]))
    odds = 2 ** (1 / 0.7)
    assert kept[0, 0] == pytest.approx(odds / (odds + 2), abs=1e-4)


def test_a_bare_name_is_scored_as_it_stands(toy_model):
    """As in a format in which models answer with the name."""
    model = toy_model({"<|assistant|>": {"Nairobi": 0.7, "Lima": 0.3}}, **CHAT)
    said = spine.named(model, table("").head(1), probe.GRID).iloc[0]
    assert (said["begin"], said["end"]) == (0, 1)
    assert said["logprob"] == pytest.approx(np.log(0.7), abs=1e-5)
    assert said["t_b"] == spine.HIGHEST  # of two it stays the likelier


@pytest.mark.parametrize(
    ("tokens", "place"),
    [
        ([' It "', "Nai", "robi", '"'], (1, 3)),
        ([" It", ' "Nai', "robi", '"'], (1, 3)),  # one holds a sign and the name
        ([], (-1, -1)),  # they are not told
    ],
)
def test_which_tokens_are_the_name(tokens, place):
    tops = [[(token, -0.1)] for token in tokens]
    said = Generation("p", ' It "Nairobi"', [1, 2, 3, 4], [-0.1] * 4, tops)
    assert spine.name_tokens(said, ["Nairobi"]) == place


@pytest.mark.parametrize(
    ("text", "names", "found"),
    [
        ("The capital of Kenya is Nairobi, of course", ["Nairobi"], "Nairobi"),
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


LATE = {  # what a chat model says first, and the tokens that lead to the answer
    "a newline": {"\n": {"Nairobi": 1.0}},
    "a label": {"The answer is:": {"\n": 1.0}, "\n": {"Nairobi": 1.0}},
    "a thought": {
        "<think>": {"\n": 1.0},
        "\n": {"Hm": 1.0},
        "Hm": {"</think>": 1.0},
        "</think>": {"Nairobi": 1.0},
    },
    "nothing": {},
}


@pytest.mark.parametrize("kind", LATE)
def test_a_card_knows_an_answer_that_begins_late(toy_model, tmp_path, kind):
    """And one that ends at a special token which no file calls its end."""
    rows = LATE[kind]
    first = next(iter(rows), "Nairobi")
    rows = {
        "<model>": {first: 1.0},
        **rows,
        "Nairobi": {"<eot>": 1.0},
        "<eot>": {"model": 1.0},
    }
    model = toy_model(rows, prompt_format="chat", chat=("<user>", "<model>"))
    model.tokenizer.add_special_tokens({"additional_special_tokens": ["<eot>"]})
    data = tmp_path / "mine.csv"
    data.write_text("question,answer\nWhat is the capital of Kenya?,Nairobi\n", encoding="utf-8")
    [fact] = card(model, data, known=1).facts
    assert (fact.answer, fact.known) == ("Nairobi", True)
    assert fact.numbers["logprob"] == pytest.approx(0, abs=1e-5)
    assert {*fact.wordings.values()} == {"Nairobi"}
    assert fact.numbers["wordings"] == 1


class Filtered(Model):
    """Answers from behind an endpoint whose filter lets no question about Peru through."""

    def answer(self, job):
        for row, request in enumerate(job.requests):
            if "Peru" in request["prompt"]:
                said = Generation(request["prompt"], "", [], [], refused=[FILTERED])
            else:
                said = Generation(request["prompt"], " Nairobi", [], [])
            yield [row], [[said] * job.settings["n"] if job.operation == "sample" else said]


def test_a_card_counts_what_a_filter_refused(tmp_path):
    """Peru's question is asked once; each has a relation of its own, so that no sentence is asked."""
    lacks = dict.fromkeys(("score", "temper", "token_ids"), "none")
    about = {"prompt_format": "two-shot", "chat": None, "lacks": lacks}
    rows = "What is the capital of Kenya?,Nairobi,a\nWhat is the capital of Peru?,Lima,b\n"
    data = tmp_path / "mine.csv"
    data.write_text(f"question,answer,relation\n{rows}", encoding="utf-8")
    made = card(
        Filtered(
            name="filtered",
            fingerprint="filtered",
            **about,
        ),
        data,
        known=2,
    )
    assert {fact.accepted[0]: fact.answer for fact in made.facts} == {
        "Nairobi": "Nairobi",
        "Lima": "",
    }
    assert "an endpoint's filter refused 1 prompts, which count as wrong answers" in made.notes
