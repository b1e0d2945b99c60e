"""The copy meter, on sentences written by hand and on answers whose cause is known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.context import facts, meter
from factrobust.datasets.facts import load_facts, load_relations
from factrobust.datasets.world import load_world

KENYA = {"question_id": "capital/kenya", "object": "Kenya", "answers": ["Nairobi"]}
PERU = {"question_id": "capital/peru", "object": "Peru", "answers": ["Lima", "City of Kings"]}
PAIR = pd.DataFrame([KENYA, PERU]).assign(base_id="capital")
TEMPLATES = {
    ("capital", "question", "last"): "The <capital|blorp> of {subject} is {object}",
    ("capital", "other", "first"): "{object} is the <city|florn> that <rules|zells> {subject}",
}


@pytest.fixture(scope="module")
def templates():
    return meter.load_sentences()


@pytest.fixture(scope="module")
def pool():
    return facts.facts_as_questions(load_facts())


@pytest.fixture
def told():
    return meter.contexts(PAIR[:1], PAIR, TEMPLATES)


def test_every_relation_has_its_sentences(templates):
    relations = load_relations()
    forms = {(words, place) for words in meter.WORDS for place in meter.PLACES}
    for name, relation in relations.iterrows():
        assert {key[1:] for key in templates if key[0] == name} == forms
        plain = meter.written(templates[name, "question", "last"], "{subject}", "it")
        assert plain.casefold() == f"{relation['prefix']} it".casefold()
    world = load_world()
    for name in ("birthplace", "trade", "dish", "product"):
        asked = world.wordings[world.wordings["relation"] == name].set_index("wording")["statement"]
        plain, other = (
            meter.written(templates[name, words, "last"], "{subject}", "{object}")
            for words in meter.WORDS
        )
        assert f"{plain}." == asked[0]
        assert f"{other}." in set(asked)


def test_sentences_have_other_words_and_their_answer_where_it_should_be(templates):
    words = {key[:2]: set() for key in templates}
    for (relation, which, place), text in templates.items():
        real = " ".join(found[1] for found in meter.MARKED.finditer(text))
        assert real
        words[relation, which] |= {*real.lower().split()}
        assert (place == "first") == (text.index("{object}") < text.index("{subject}"))
        assert (place == "last") == text.endswith("{object}")
    for relation in {key[0] for key in templates}:
        # No word of meaning of the question's sentences stands in the others.
        shared = words[relation, "question"] & words[relation, "other"]
        assert not shared - {"the", "of"}, relation


@pytest.mark.parametrize(
    ("template", "form", "sentence"),
    [
        ("The <capital|blorp> of {subject} is {object}", "", "The capital of Kenya is Lima"),
        ("The <capital|blorp> of {subject} is {object}", "nonsense", "The blorp of Kenya is Lima"),
        (
            "The <capital|blorp> of {subject} is {object}",
            "denied",
            "It is not true that the capital of Kenya is Lima",
        ),
        (
            "<Tourists|Blorps> of {subject} see {object}",
            "nonsense denied",
            "It is not true that blorps of Kenya see Lima",
        ),
        ("{object} <rules|zells> {subject}", "denied", "It is not true that Lima rules Kenya"),
    ],
)
def test_a_sentence_is_written(template, form, sentence):
    forms = dict.fromkeys(form.split(), True)
    assert meter.written(template, "Kenya", "Lima", **forms) == sentence


def test_a_name_in_small_letters_begins_a_sentence_with_a_capital():
    text = meter.written("{object} is the <color|blorp> of {subject}", "grass", "green")
    assert text == "Green is the color of grass"


def test_sentences_of_a_fact_by_hand(told):
    texts = told.set_index(["words", "mode", "about"])["sentence"].to_dict()
    assert len(texts) == len(told) == 16
    by_hand = {
        ("question", "asserted", "subject"): "The capital of Kenya is Lima",
        ("question", "asserted", "neighbour"): "The capital of Peru is Lima",
        ("question", "asserted", "nonsense"): "The blorp of Kenya is Lima",
        ("question", "denied", "neighbour"): "It is not true that the capital of Peru is Lima",
        ("question", "true", "subject"): "The capital of Kenya is Nairobi",
        ("question", "filler", "subject"): "Kenya is mentioned here once again",
        ("other", "asserted", "subject"): "Lima is the city that rules Kenya",
        ("other", "denied", "nonsense"): "It is not true that Lima is the florn that zells Kenya",
    }
    assert by_hand.items() <= texts.items()
    stated = told.drop_duplicates("mode").set_index("mode")["names"]
    assert stated["asserted"] == ["Lima", "City of Kings"]
    assert stated["true"] == ["Nairobi"]


def test_a_filler_is_as_long_and_says_no_answer(templates, pool):
    asked = pool.groupby("base_id").head(4)
    told = meter.contexts(asked, pool, templates).merge(asked, on="question_id")
    cell = ["question_id", "words"]
    false = told[(told["mode"] == "asserted") & (told["about"] == "subject")].set_index(cell)
    empty = told[told["mode"] == "filler"].set_index(cell)
    sizes = [table["sentence"].str.split().map(len) for table in (false, empty)]
    assert sizes[0].equals(sizes[1])
    for row in empty.to_dict("records"):
        rest = row["sentence"].lower().replace(row["object"].lower(), "")
        assert not meter.rules.right(rest, [*row["names"], *row["answers"]])


def test_a_lot_draws_the_place(templates, pool):
    told = meter.contexts(pool, pool, templates)
    places = told.groupby(["question_id", "words"])["place"].agg(["nunique", "first"])
    assert places["nunique"].eq(1).all()
    first = places["first"].eq("first").groupby("words").mean()
    assert first.between(0.45, 0.55).all()
    again = meter.contexts(pool[::-1], pool[::-1], templates)
    key = ["question_id", *meter.FACTORS]
    assert again.sort_values(key)["sentence"].tolist() == told.sort_values(key)["sentence"].tolist()
    other = meter.contexts(pool, pool, templates, seed=1)
    assert not told["sentence"].equals(other["sentence"])


def test_what_has_no_sentence_or_no_other_answer_is_left_out():
    unknown = PAIR[:1].assign(question_id="x/kenya", base_id="x")
    told = meter.contexts(pd.concat([PAIR[:1], unknown]), PAIR, TEMPLATES)
    assert set(told["question_id"]) == {"capital/kenya"}
    assert meter.contexts(PAIR[:1], PAIR[:1], TEMPLATES).empty
    with pytest.raises(ValueError, match="write some there for 'x'"):
        meter.contexts(unknown, PAIR, TEMPLATES)


def answers(told, follows):
    """Answers of a model that says what it is told where `follows` holds for the row, else its
    memory."""
    texts = [row["stated"] if follows(row) else "Nairobi" for row in told.to_dict("records")]
    return meter.marked(told.assign(model="m", base_id="capital", text=texts), PAIR)


@pytest.mark.parametrize(
    ("follows", "following", "copying", "reading"),
    [
        (lambda row: True, 1, 1, 0),  # copies whatever stands there
        (lambda row: row["about"] == "subject", 1, 0, 1),  # reads
        (lambda row: False, 0, 0, 0),  # remembers
        (lambda row: row["about"] == "nonsense", 0, 1, -1),
    ],
)
def test_following_is_split(told, follows, following, copying, reading):
    rows = answers(told, follows)
    parts = meter.split(rows)
    assert len(parts) == 4  # two wordings, asserted and denied
    assert (
        parts[["following", "copying", "reading"]].eq([following, copying, reading]).all(axis=None)
    )
    assert rows.loc[rows["mode"] == "true", "right"].tolist() == [1.0, 1.0]


def test_an_answer_follows_by_any_of_its_names(told):
    false = told[(told["mode"] == "asserted") & (told["words"] == "question")]
    rows = meter.marked(false.assign(text="the City of Kings"), PAIR)
    assert rows["followed"].tolist() == [1.0] * 3
    assert rows["right"].tolist() == [0.0] * 3


def test_what_a_change_of_the_sentence_does(told):
    # Follows the question's words, unless they are denied or nonsense.
    def follows(row):
        return (row["words"], row["mode"]) == ("question", "asserted") and row[
            "about"
        ] != "nonsense"

    changed = meter.contrasts(answers(told, follows))
    found = {}
    for name, part in changed.groupby("change", sort=False):
        followed, on = part[["followed", "on"]].to_numpy().T
        found[name] = (len(part), *meter.difference(np.ones((1, len(part))), followed, on))
    assert found == {
        "in other words": (2, -1),
        "the answer first": (2, -1),  # here the other words have it first
        "denied": (2, -1),
        "denied, against other words": (2, 0),
        "about a neighbour": (4, 0),
        "nonsense": (4, -0.5),  # of both wordings
    }
