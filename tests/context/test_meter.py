"""The copy meter, on sentences written by hand and on answers whose cause is known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.context import facts, meter
from factrobust.datasets.facts import load_facts, load_relations
from factrobust.datasets.world import load_world

KENYA = {
    "question_id": "capital/kenya",
    "base_id": "capital",
    "object": "Kenya",
    "answers": ["Nairobi"],
}
PERU = {
    "question_id": "capital/peru",
    "base_id": "capital",
    "object": "Peru",
    "answers": ["Lima", "City of Kings"],
}
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
    pair = pd.DataFrame([KENYA, PERU])
    return meter.contexts(pair.iloc[:1], pair, TEMPLATES)


def test_every_relation_has_its_sentences(templates):
    relations = load_relations()
    forms = {(words, place) for words in meter.WORDS for place in meter.PLACES}
    for name, relation in relations.iterrows():
        assert {key[1:] for key in templates if key[0] == name} == forms
        plain = meter.written(templates[name, "question", "last"], "{subject}", "it")
        assert plain.casefold() == f"{relation['prefix']} it".casefold()
    world = load_world()
    for name in ("birthplace", "trade", "dish", "product"):
        plain = meter.written(templates[name, "question", "last"], "{subject}", "{object}")
        asked = world.wordings[world.wordings["relation"] == name].set_index("wording")
        assert f"{plain}." == asked.loc[0, "statement"]
        other = meter.written(templates[name, "other", "last"], "{subject}", "{object}")
        assert f"{other}." in set(asked["statement"])


def test_other_words_are_not_the_questions(templates):
    """No word of meaning of the question's sentences stands in the others."""
    for relation in {key[0] for key in templates}:
        words = dict.fromkeys(meter.WORDS, "")
        for (name, which, _), text in templates.items():
            if name == relation:
                real = " ".join(found[1] for found in meter.MARKED.finditer(text))
                assert real, text
                words[which] += f" {real.lower()}"
        shared = set(words["question"].split()) & set(words["other"].split())
        assert not shared - {"the", "of"}, relation


def test_answers_stand_where_they_should(templates):
    for (_, _, place), text in templates.items():
        first = text.index("{object}") < text.index("{subject}")
        assert (place == "first") == first, text
        assert (place == "last") == text.endswith("{object}"), text


@pytest.mark.parametrize(
    ("template", "form", "sentence"),
    [
        ("The <capital|blorp> of {subject} is {object}", {}, "The capital of Kenya is Lima"),
        (
            "The <capital|blorp> of {subject} is {object}",
            {"nonsense": True},
            "The blorp of Kenya is Lima",
        ),
        (
            "The <capital|blorp> of {subject} is {object}",
            {"denied": True},
            "It is not true that the capital of Kenya is Lima",
        ),
        (
            "<Tourists|Blorps> of {subject} see {object}",
            {"nonsense": True, "denied": True},
            "It is not true that blorps of Kenya see Lima",
        ),
        (
            "{object} <rules|zells> {subject}",
            {"denied": True},
            "It is not true that Lima rules Kenya",
        ),
    ],
)
def test_a_sentence_is_written(template, form, sentence):
    assert meter.written(template, "Kenya", "Lima", **form) == sentence


def test_a_name_in_small_letters_begins_a_sentence_with_a_capital():
    assert meter.written("{object} is the <color|blorp> of {subject}", "grass", "green") == (
        "Green is the color of grass"
    )


def test_sentences_of_a_fact_by_hand(told):
    texts = told.set_index(["words", "mode", "about"])["sentence"]
    assert len(texts) == 16
    said = texts["question"]
    assert said["asserted", "subject"] == "The capital of Kenya is Lima"
    assert said["asserted", "neighbour"] == "The capital of Peru is Lima"
    assert said["asserted", "nonsense"] == "The blorp of Kenya is Lima"
    assert said["denied", "neighbour"] == "It is not true that the capital of Peru is Lima"
    assert said["true", "subject"] == "The capital of Kenya is Nairobi"
    assert said["filler", "subject"] == "Kenya is mentioned here once again"
    other = texts["other"]
    assert other["asserted", "subject"] == "Lima is the city that rules Kenya"
    assert other["denied", "nonsense"] == "It is not true that Lima is the florn that zells Kenya"
    stated = told.set_index("mode")["names"]
    assert stated["asserted"].iloc[0] == ["Lima", "City of Kings"]
    assert stated["true"].iloc[0] == ["Nairobi"]


def test_a_filler_is_as_long_and_says_no_answer(templates, pool):
    asked = pool.groupby("base_id").head(4)
    told = meter.contexts(asked, pool, templates)
    cell = ["question_id", "words"]
    false = told[(told["mode"] == "asserted") & (told["about"] == "subject")].set_index(cell)
    empty = told[told["mode"] == "filler"].set_index(cell)
    n = pd.DataFrame({"false": false["sentence"], "empty": empty["sentence"]})
    n = n.map(lambda text: len(text.split()))
    assert (n["false"] == n["empty"]).all()
    answers = asked.set_index("question_id")["answers"]
    for row in empty.reset_index().to_dict("records"):
        known = [*row["names"], *answers[row["question_id"]]]
        subject = asked.set_index("question_id").loc[row["question_id"], "object"]
        rest = row["sentence"].lower().replace(subject.lower(), "")
        assert not meter.rules.right(rest, known)


def test_a_lot_draws_the_place(templates, pool):
    told = meter.contexts(pool, pool, templates)
    places = told.groupby(["question_id", "words"])["place"].agg(["nunique", "first"])
    assert places["nunique"].eq(1).all()
    for words in meter.WORDS:
        first = places.xs(words, level="words")["first"] == "first"
        assert 0.45 < first.mean() < 0.55
    again = meter.contexts(pool.iloc[::-1], pool.iloc[::-1], templates)
    key = ["question_id", *meter.FACTORS]
    assert again.sort_values(key)["sentence"].tolist() == told.sort_values(key)["sentence"].tolist()
    other = meter.contexts(pool, pool, templates, seed=1)
    assert not told["sentence"].equals(other["sentence"])


def test_relations_without_sentences_are_left_out():
    pair = pd.DataFrame([KENYA, PERU])
    unknown = pd.DataFrame([KENYA | {"question_id": "x/kenya", "base_id": "x"}])
    mixed = pd.concat([pair.iloc[:1], unknown])
    told = meter.contexts(mixed, pair, TEMPLATES)
    assert set(told["question_id"]) == {"capital/kenya"}
    with pytest.raises(ValueError, match="write some there for 'x'"):
        meter.contexts(unknown, pair, TEMPLATES)


def answers(told, says):
    """Answers of a model that says what it is told where `says` holds for the row, else its memory."""
    texts = [row["stated"] if says(row) else "Nairobi" for row in told.to_dict("records")]
    given = told.assign(
        model="m",
        base_id="capital",
        text=texts,
    )
    return meter.marked(given, pd.DataFrame([KENYA, PERU]))


@pytest.mark.parametrize(
    ("says", "following", "copying", "reading"),
    [
        (lambda row: True, 1, 1, 0),  # copies whatever stands there
        (lambda row: row["about"] == "subject", 1, 0, 1),  # reads
        (lambda row: False, 0, 0, 0),  # remembers
        (lambda row: row["about"] == "nonsense", 0, 1, -1),
    ],
)
def test_following_is_split(told, says, following, copying, reading):
    rows = answers(told, says)
    parts = meter.split(rows)
    assert len(parts) == 4  # two wordings, asserted and denied
    assert parts["following"].eq(following).all()
    assert parts["copying"].eq(copying).all()
    assert parts["reading"].eq(reading).all()
    true = rows[rows["mode"] == "true"]
    assert true["right"].tolist() == [1.0, 1.0]


def test_an_answer_follows_by_any_of_its_names(told):
    false = told[(told["mode"] == "asserted") & (told["words"] == "question")]
    given = false.assign(
        model="m",
        base_id="capital",
        text="the City of Kings",
    )
    rows = meter.marked(given, pd.DataFrame([KENYA, PERU]))
    assert rows["followed"].tolist() == [1.0] * 3
    assert rows["right"].tolist() == [0.0] * 3


def test_what_a_change_of_the_sentence_does(told):
    # Follows the question's words, unless they are denied or nonsense.
    rows = answers(
        told,
        lambda row: (
            row["words"] == "question" and row["mode"] == "asserted" and row["about"] != "nonsense"
        ),
    )
    changed = meter.contrasts(rows)
    apart = {
        name: meter.difference(
            np.ones((1, len(part))), part["followed"].to_numpy(), part["on"].to_numpy()
        )[0]
        for name, part in changed.groupby("change", sort=False)
    }
    assert apart == {
        "in other words": -1,
        "the answer first": -1,  # here the other words have it first
        "denied": -1,
        "denied, against other words": 0,
        "about a neighbour": 0,
        "nonsense": -0.5,  # of both wordings
    }
    sizes = changed.groupby("change", sort=False).size()
    assert sizes.tolist() == [2, 2, 2, 2, 4, 4]
