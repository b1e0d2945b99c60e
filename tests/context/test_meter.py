"""The copy meter, on sentences written by hand and on answers whose cause is known."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust.context import facts, meter
from factrobust.datasets.facts import load_facts, load_relations
from factrobust.datasets.world import load_world

KENYA = {"question_id": "capital/kenya", "object": "Kenya", "answers": ["Nairobi"]}
PERU = {"question_id": "capital/peru", "object": "Peru", "answers": ["Lima", "City of Kings"]}
PAIR = pd.DataFrame([KENYA, PERU]).assign(base_id="capital")
PLAIN = "The <capital|blorp> of {subject} is {object}"
OTHER = "{object} is the <city|florn> that <rules|zells> {subject}"
TEMPLATES = {("capital", "question", "last"): PLAIN, ("capital", "other", "first"): OTHER}


@pytest.fixture(scope="module")
def templates():
    return meter.load_sentences()


@pytest.fixture(scope="module")
def pool():
    return facts.facts_as_questions(load_facts())


@pytest.fixture
def sentences():
    return meter.contexts(PAIR[:1], PAIR, TEMPLATES)


def test_every_relation_has_its_sentences(templates):
    forms = {(words, place) for words in meter.WORDS for place in meter.PLACES}
    for name, prefix in load_relations()["prefix"].items():
        assert {key[1:] for key in templates if key[0] == name} == forms
        plain = meter.written(templates[name, "question", "last"], "{subject}", "it")
        assert plain.casefold() == f"{prefix} it".casefold()


def test_the_worlds_sentences_are_its_own(templates):
    statements = load_world().wordings.groupby("relation")["statement"].agg(list)
    for name in ("birthplace", "trade", "dish", "product"):
        for words in meter.WORDS:
            text = meter.written(templates[name, words, "last"], "{subject}", "{object}")
            assert f"{text}." in statements[name]
            assert (f"{text}." == statements[name][0]) == (words == "question")


def test_sentences_have_other_words_and_their_answer_where_it_should_be(templates):
    words = {}
    for (relation, which, place), text in templates.items():
        marked = meter.MARKED.findall(text)
        assert marked
        real = " ".join(word for word, _ in marked)
        words.setdefault((relation, which), set()).update(real.lower().split())
        assert (place == "first") == (text.index("{object}") < text.index("{subject}"))
        assert (place == "last") == text.endswith("{object}")
    for relation, _ in words:
        # No word of meaning of the question's sentences stands in the others.
        shared = words[relation, "question"] & words[relation, "other"]
        assert not shared - {"the", "of"}, relation


WRITTEN = """
    nonsense  denied  template                                      sentence
    False     False   The <capital|blorp> of {subject} is {object}  The capital of Kenya is Lima
    True      False   The <capital|blorp> of {subject} is {object}  The blorp of Kenya is Lima
    False     True    The <capital|blorp> of {subject} is {object}  It is not true that the capital of Kenya is Lima
    True      True    <Tourists|Blorps> of {subject} see {object}   It is not true that blorps of Kenya see Lima
    False     True    {object} <rules|zells> {subject}              It is not true that Lima rules Kenya
"""


def test_a_sentence_is_written():
    for nonsense, denied, template, sentence in frame(WRITTEN).itertuples(index=False):
        made = meter.written(template, "Kenya", "Lima", nonsense=nonsense, denied=denied)
        assert made == sentence
    # A name in small letters begins a sentence with a capital.
    assert meter.written(OTHER, "grass", "green") == "Green is the city that rules grass"


def test_sentences_of_a_fact_by_hand(sentences):
    texts = sentences.set_index(["words", "mode", "about"])["sentence"]
    by_hand = frame("""
        words     mode      about      sentence
        question  asserted  subject    The capital of Kenya is Lima
        question  asserted  neighbour  The capital of Peru is Lima
        question  asserted  nonsense   The blorp of Kenya is Lima
        question  denied    neighbour  It is not true that the capital of Peru is Lima
        question  true      subject    The capital of Kenya is Nairobi
        question  filler    subject    Kenya is mentioned here once again
        other     asserted  subject    Lima is the city that rules Kenya
        other     denied    nonsense   It is not true that Lima is the florn that zells Kenya
    """).set_index(["words", "mode", "about"])["sentence"]
    assert len(sentences) == 16
    assert texts[by_hand.index].equals(by_hand)
    stated = sentences.drop_duplicates("mode").set_index("mode")["names"]
    assert stated["asserted"] == ["Lima", "City of Kings"]
    assert stated["true"] == ["Nairobi"]


def test_a_filler_is_as_long_and_says_no_answer(templates, pool):
    asked = pool.groupby("base_id").head(4)
    sentences = meter.contexts(asked, pool, templates).merge(asked, on="question_id")
    false = sentences.query("mode == 'asserted' and about == 'subject'")
    empty = sentences[sentences["mode"] == "filler"]
    lengths = [table["sentence"].str.split().map(len).tolist() for table in (false, empty)]
    assert lengths[0] == lengths[1]
    for row in empty.to_dict("records"):
        rest = row["sentence"].lower().replace(row["object"].lower(), "")
        assert not meter.rules.right(rest, [*row["names"], *row["answers"]])


def test_a_lot_draws_the_place(templates, pool):
    sentences = meter.contexts(pool, pool, templates)
    places = sentences.groupby(["question_id", "words"])["place"].agg(["nunique", "first"])
    assert places["nunique"].eq(1).all()
    first = places["first"].eq("first").groupby("words").mean()
    assert first.between(0.45, 0.55).all()
    # Whatever the order of the questions.
    again = meter.contexts(pool[::-1], pool[::-1], templates)
    key = ["question_id", *meter.FACTORS]
    tables = [table.sort_values(key, ignore_index=True) for table in (sentences, again)]
    assert tables[0].equals(tables[1])
    other = meter.contexts(pool, pool, templates, seed=1)
    assert not sentences["place"].equals(other["place"])
    assert not sentences["stated"].equals(other["stated"])


def test_what_has_no_sentence_or_no_other_answer_is_left_out():
    unknown = PAIR[:1].assign(question_id="x/kenya", base_id="x")
    sentences = meter.contexts(pd.concat([PAIR[:1], unknown]), PAIR, TEMPLATES)
    assert set(sentences["question_id"]) == {"capital/kenya"}
    assert meter.contexts(PAIR[:1], PAIR[:1], TEMPLATES).empty
    with pytest.raises(ValueError, match="write some there for 'x'"):
        meter.contexts(unknown, PAIR, TEMPLATES)


def answers(sentences, follows):
    """Answers of a model that says what it is told where `follows` [row], else its memory."""
    texts = sentences["stated"].where(follows, "Nairobi")
    return meter.marked(sentences.assign(model="m", base_id="capital", text=texts), PAIR)


@pytest.mark.parametrize(
    ("followed", "following", "copying", "reading"),
    [
        ("subject neighbour nonsense", 1, 1, 0),  # copies whatever stands there
        ("subject", 1, 0, 1),  # reads
        ("", 0, 0, 0),  # remembers
        ("nonsense", 0, 1, -1),
    ],
)
def test_following_is_split(sentences, followed, following, copying, reading):
    rows = answers(sentences, sentences["about"].isin(followed.split()))
    parts = meter.following_parts(rows)[["following", "copying", "reading"]]
    # Two wordings, asserted and denied.
    assert parts.to_numpy().tolist() == [[following, copying, reading]] * 4
    assert rows.loc[rows["mode"] == "true", "right"].tolist() == [1, 1]


def test_an_answer_follows_by_any_of_its_names(sentences):
    false = sentences.query("mode == 'asserted' and words == 'question'")
    rows = meter.marked(false.assign(text="the City of Kings"), PAIR)
    assert rows["followed"].tolist() == [1.0] * 3
    assert rows["right"].tolist() == [0.0] * 3


def test_a_model_that_knows_whom_a_sentence_is_about(sentences):
    changed = meter.contrasts(answers(sentences, sentences["about"] != "neighbour"))
    part = changed[changed["change"] == "about a neighbour"]
    difference = meter.difference(np.ones((1, 4)), *part[["followed", "on"]].to_numpy().T)
    assert difference.tolist() == [-1]


def test_what_a_change_of_the_sentence_does(sentences):
    """Follows the question's words, unless they are denied or nonsense. Here the other words have
    the answer first; nonsense is of both wordings."""
    follows = sentences.eval("words == 'question' and mode == 'asserted' and about != 'nonsense'")
    changed = meter.contrasts(answers(sentences, follows))
    found = []
    for change, part in changed.groupby("change", sort=False):
        n = len(part)
        [difference] = meter.difference(np.ones((1, n)), *part[["followed", "on"]].to_numpy().T)
        found.append((change, n, difference))
    assert_rows(
        pd.DataFrame(found, columns=["change", "n", "difference"]),
        """
        change                       n  difference
        in other words               2  -1
        the answer first             2  -1
        denied                       2  -1
        denied, against other words  2  0
        about a neighbour            4  0
        nonsense                     4  -0.5
        """,
    )
