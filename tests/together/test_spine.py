"""What is changed about a question, by hand; and that everything is asked in one prompt."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from ruled import Rule

from factrobust import load_model
from factrobust.datasets.named import load_named
from factrobust.decoding import probe
from factrobust.models.interface import FILTERED, Generation, Model
from factrobust.together import spine
from factrobust.together.card import card, question_set


def table(prefix="The capital of {} is"):
    """Three facts, whose answers begin so."""
    facts = frame("""
        fact_id        subject  object   relation  question
        capital/Kenya  Kenya    Nairobi  capital   What is the capital of Kenya?
        capital/Peru   Peru     Lima     capital   What of Peru?
        color/Mars     Mars     Red      color     What colour?
    """)
    facts["prefix"] = facts["subject"].map(prefix.format)
    facts["aliases"] = [[], [], []]
    return facts.assign(
        domain="d",
        source="",
        popularity=np.nan,
        answer_type="",
        popularity_source="",
    )


ASKED = "What is the capital of Kenya?"


def test_wordings_are_frames_around_the_question():
    rows = spine.in_other_words(table().head(1))
    assert rows["form"].tolist() == [1, 2, 3, 4, 5]
    assert rows["question"][1] == f"Please tell me: {ASKED}"
    assert rows["question"][3] == "what is the capital of kenya"


def test_sentences_stand_before_the_question():
    """Answers that they state are of the whole table, whichever facts are asked."""
    pool = table().assign(context=["Kenya lies in Africa.", "", ""])
    rows = spine.behind_sentences(pool.head(1), pool)
    assert_rows(
        rows.sort_values("form"),
        """
        form        sentence
        false       The capital of Kenya is Lima
        irrelevant  The capital of Peru is Lima
        nonsense    The capital of Blorp is Nairobi
        true        The capital of Kenya is Nairobi
        yours       Kenya lies in Africa.
        """,
    )
    for row in rows.itertuples():
        sentence = row.sentence.rstrip(".")
        assert row.question == f"{sentence}. {ASKED}"
    # No other colour could be stated.
    every = spine.behind_sentences(pool, pool)
    assert "color/Mars" not in set(every["fact_id"])


@pytest.mark.parametrize(
    ("subject", "form", "sentence"),
    [
        ("Kenya", "false", f'The answer to "{ASKED}" is Lima'),
        (ASKED, "nonsense", 'The answer to "Blorp" is Nairobi'),  # as in a CSV of one's own
    ],
)
def test_a_question_without_a_beginning_of_its_answer_is_quoted(subject, form, sentence):
    pool = table("")
    pool.loc[0, "subject"] = subject
    rows = spine.behind_sentences(pool.head(1), pool).set_index("form")
    assert rows.loc[form, "sentence"] == sentence


def test_every_embedded_fact_has_a_nonsense_twin():
    """The answer stands behind the nonsense, as behind the subject."""
    every = question_set(None, "gemma-3-270m").table
    rows = spine.behind_sentences(every, every)
    texts = rows.pivot(index="fact_id", columns="form", values="sentence")
    assert len(texts) == len(every)
    for twin, true in zip(texts["nonsense"], texts["true"], strict=True):
        before, end = twin.rsplit("Blorp", 1)
        assert end, before
        assert true.endswith(end)


def test_dated_facts_are_asked_at_the_year_in_their_middle():
    facts = spine.dated_facts(12, 0)
    for row in facts.itertuples():
        first = int(row.start[:4])
        last = int(row.end[:4] or 2020)
        middle = (first + last) // 2
        assert row.question.startswith(f"In {middle}, ")
        assert row.prefix.startswith(f"In {middle}, ")


def test_everything_is_asked_in_the_models_own_prompt():
    """World-s, a grown model of which asking costs little."""
    model = load_model("world-s")
    asked = load_named(["world"], limit=24).table
    changed = spine.in_other_words(asked)
    counts = changed["form"].value_counts()
    assert counts.to_dict() == {1: 24, 2: 24, 3: 24, 8: 24, 9: 24}
    plain = spine.marked_answers(model, asked, (0.5, 1.0, 4.0))
    assert plain["t_b"].notna().any()
    again = spine.marked_answers(model, changed)
    assert again["t_b"].isna().all()  # no temperatures were asked for
    for answers in (plain, again):
        assert (answers["prompt"] == "Q: " + answers["question"] + "\nA:").all()
    assert spine.behind_sentences(asked, asked).empty


FREE = frame("""
    text                             bare   states
    Nairobi                          True   True
    Nairobi is the capital of Kenya  False  True
    The capital of Kenya is Lima     False  False
""")


@pytest.mark.parametrize(("text", "bare", "states"), FREE.to_numpy().tolist())
def test_a_free_answer_may_be_a_sentence_that_states_the_name(text, bare, states):
    model = Rule(lambda question: text)
    asked = table().head(1)
    short = spine.marked_answers(model, asked)
    free = spine.marked_answers(model, asked, free=True)
    assert short["right"].tolist() == [bare]
    assert free["right"].tolist() == [states]


@pytest.mark.parametrize(
    ("form", "prefix", "expected"),
    [
        ("chat", "The capital is", True),
        ("two-shot", "", True),
        ("two-shot", "The capital is", False),
        ("chat-prefix", "The capital is", False),
    ],
)
def test_who_may_answer_in_sentences(form, prefix, expected):
    model = Rule(str, prompt_format=form)
    assert spine.in_sentences(model, pd.DataFrame({"prefix": [prefix]})) == expected


CHAT = {"prompt_format": "instruction", "chat": ("<|user|>", "<|assistant|>")}
# "It is" in 0.6 of the cases, then the name in 0.5, before another word.
TALKS = {
    "<|assistant|>": {"It is": 0.6, "Well": 0.4},
    "It is": {" Nairobi": 0.5, " Mombasa": 0.25, " Kisumu": 0.25},
    " Nairobi": {" city": 0.9, "</s>": 0.1},
}


def test_of_an_answer_in_a_sentence_the_name_is_scored(toy_model):
    """2^(1/t) against twice 1 is one half at t = 1. The entropy is over ten tokens, seven of them
    impossible."""
    model = toy_model(TALKS, **CHAT)
    rows = spine.marked_names(model, table("").head(1), probe.GRID)
    row = rows.iloc[0]
    assert (row["text"], row["right"]) == ("It is Nairobi city", True)
    assert (row["begin"], row["end"]) == (1, 2)
    assert row["logprob"] == pytest.approx(np.log(0.5), abs=1e-5)
    assert row["t_b"] == pytest.approx(1, abs=1e-3)
    entropy = -(0.5 * np.log10(0.5) + 0.5 * np.log10(0.25))
    assert row["entropy"] == pytest.approx(entropy, abs=1e-4)
    kept = np.exp(spine.tempered_names(model, rows, [0.7]))
    odds = 2 ** (1 / 0.7)
    assert kept[0, 0] == pytest.approx(odds / (odds + 2), abs=1e-4)


def test_a_bare_name_is_scored_as_it_stands(toy_model):
    """As in a format in which models answer with the name."""
    model = toy_model({"<|assistant|>": {"Nairobi": 0.7, "Lima": 0.3}}, **CHAT)
    row = spine.marked_names(model, table("").head(1), probe.GRID).iloc[0]
    assert (row["begin"], row["end"]) == (0, 1)
    assert row["logprob"] == pytest.approx(np.log(0.7), abs=1e-5)
    assert row["t_b"] == spine.HIGHEST  # of two it stays the likelier


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
    answer = Generation("p", ' It "Nairobi"', [1, 2, 3, 4], [-0.1] * 4, tops)
    assert spine.name_tokens(answer, ["Nairobi"]) == place


PLACES = frame("""
    text                                        name              found
    The capital of Kenya is Nairobi, of course  Nairobi           Nairobi
    It is Washington, D.C., the seat            Washington, D.C.  Washington, D.C
    the Kenyan shillings                        Kenyan shilling   Kenyan shillings
    He is from the United States                the United States  United States
    about 1,457 people                          1457              1,457
    It is hip-hop music                         hip hop           hip-hop
    It is São Tomé.                             Sao Tome          São Tomé
    It is Lima                                  Nairobi           NaN
""")


def test_where_a_name_stands():
    for row in PLACES.itertuples():
        place = spine.name_in(row.text, [row.name])
        if pd.isna(row.found):
            assert place is None
        else:
            assert row.text[slice(*place)] == row.found
    assert spine.name_in("", ["Nairobi"]) is None


LATE = {  # what a chat model thinks first, and the tokens that lead to the answer
    "<think>": {"\n": 1.0},
    "\n": {"Hm": 1.0},
    "Hm": {"</think>": 1.0},
    "</think>": {"Nairobi": 1.0},
}


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        ("<think>", LATE),
        ("\n", {"\n": {"Nairobi": 1.0}}),
        ("The answer is:", {"The answer is:": {"\n": 1.0}, "\n": {"Nairobi": 1.0}}),
        ("Nairobi", {}),
    ],
)
def test_a_card_knows_an_answer_that_begins_late(toy_model, tmp_path, first, rows):
    """It ends at a special token which no file calls its end."""
    ends = {"Nairobi": {"<eot>": 1.0}, "<eot>": {"model": 1.0}}
    chain = {"<model>": {first: 1.0}} | rows | ends
    model = toy_model(chain, prompt_format="chat", chat=("<user>", "<model>"))
    model.tokenizer.add_special_tokens({"additional_special_tokens": ["<eot>"]})
    data = tmp_path / "mine.csv"
    data.write_text(f"question,answer\n{ASKED},Nairobi\n")
    [fact] = card(model, data, known=1).facts
    assert (fact.answer, fact.known) == ("Nairobi", True)
    assert fact.numbers["logprob"] == pytest.approx(0, abs=1e-5)
    assert {*fact.wordings.values()} == {"Nairobi"}
    assert fact.numbers["wordings"] == 1


class Filtered(Model):
    """Answers from behind an endpoint whose filter lets no question about Peru through."""

    def answer(self, job):
        for row, request in enumerate(job.requests):
            prompt = request["prompt"]
            answer = Generation(prompt, " Nairobi", [], [])
            if "Peru" in prompt:
                answer = Generation(prompt, "", [], [], refused=[FILTERED])
            if job.operation == "sample":
                answer = [answer] * job.settings["n"]
            yield [row], [answer]


def test_a_card_counts_what_a_filter_refused(tmp_path):
    """Peru's question is asked once; each has a relation of its own, so that no sentence is asked."""
    lacks = dict.fromkeys(("score", "temper", "token_ids"), "none")
    about = {"prompt_format": "two-shot", "chat": None, "lacks": lacks}
    model = Filtered(name="filtered", fingerprint="filtered", **about)
    data = tmp_path / "mine.csv"
    data.write_text(f"question,answer,relation\n{ASKED},Nairobi,a\nWhat of Peru?,Lima,b\n")
    made = card(model, data, known=2)
    answers = {fact.accepted[0]: fact.answer for fact in made.facts}
    assert answers == {"Nairobi": "Nairobi", "Lima": ""}
    assert "an endpoint's filter refused 1 prompts, which count as wrong answers" in made.notes
