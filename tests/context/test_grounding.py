"""`ground`: by hand on a toy model that reads, on one that knows, and on bad arguments."""

import re
import unicodedata

import pytest

import factrobust
from factrobust.context import grounding
from factrobust.context.grounding import Exchanged, exchange, ground
from factrobust.models.interface import Generation, Model

ASKED = "Capital of F?"
OTHERS = ("Klurmic", "Jufint")  # of the invented world, for a name that no relation has


def prompt(context: str = "") -> str:
    stated = f"Context: [{context}]. " if context else ""
    return f"{stated}Q: {ASKED} A: It is"


def answers(follows: bool) -> dict[str, dict[str, float]]:
    """Of F memory says Mora with probability 0.6. A model that follows says what stands in the context,
    with 0.8; the other one Mora."""
    table = {prompt(): {" Mora": 0.6, " Coba": 0.4}}
    for name in ("Coba", *OTHERS, "Mora"):
        said, left = (f" {name}", " x") if follows else (" Mora", " Coba")
        table[prompt(f"It is {name}")] = {said: 0.8, left: 0.2}
    table |= {f" {name}": {".": 1.0} for name in ("Mora", "Coba", *OTHERS)}
    return table


@pytest.fixture(scope="module")
def reads(toy_model):
    return toy_model(answers(True))


@pytest.fixture(scope="module")
def knows(toy_model):
    return toy_model(answers(False))


def test_an_answer_that_follows_the_exchange(reads):
    found = ground(reads, ASKED, "It is Coba.", prefix="It is")
    assert found.memory == "Mora"
    assert found.answer == "Coba"
    assert found.source == "context"
    assert (found.p0, found.p1, found.p4) == pytest.approx((1 / 0.6, 1 / 0.4, 1 / 0.8), rel=1e-5)
    assert found.why == ""
    assert found.swapped == ()
    found = ground(reads, ASKED, "It is Coba.", prefix="It is", swap=True)
    assert found.source == "context"
    assert found.swapped == OTHERS
    assert factrobust.ground is ground


def test_an_answer_that_stays(knows):
    found = ground(knows, ASKED, "It is Coba", prefix="It is", swap=True)
    assert found.answer == "Mora"
    assert found.source == "memory"
    assert found.why == grounding.NOT_STATED


def test_where_memory_agrees_words_cannot_tell(reads, knows):
    for model, cause in ((reads, "both"), (knows, "memory")):
        found = ground(model, ASKED, "It is Mora", prefix="It is")
        assert found.source == "both"
        assert found.why == grounding.AGREES
        found = ground(model, ASKED, "It is Mora", prefix="It is", swap=True)
        assert found.source == cause
        assert found.why == ""


def test_an_answer_that_one_has_several_contexts_and_a_batch(reads):
    contexts = [["It is Coba."], ["It is Mora"]]
    answer = ["Coba", ""]
    one, two = ground(
        reads,
        [ASKED, ASKED],
        contexts,
        answer=answer,
        prefix="It is",
        swap=True,
    )
    assert one.answer == "Coba"
    assert one.source == "context"
    assert one.p4 == pytest.approx(1 / 0.8, rel=1e-5)
    assert two.source == "none"
    assert two.why == grounding.SILENT


def test_ones_own_prompt(toy_model):
    table = {"Facts: It is Coba\nMine: F?": {" Coba": 1.0}, "Mine: F?": {" Mora": 1.0}}
    model = toy_model(table | {" Coba": {".": 1.0}, " Mora": {".": 1.0}})
    found = ground(model, "F?", "It is Coba", prompt="Facts: {contexts}\nMine: {question}")
    assert found.memory == "Mora"
    assert found.answer == "Coba"


def test_an_endpoint_gets_a_verdict_by_texts(reads, monkeypatch):
    monkeypatch.setattr(reads, "lacks", {"token_ids": "texts only"}, raising=False)
    found = ground(reads, ASKED, "It is Coba", prefix="It is", swap=True)
    assert found.source == "context"
    assert found.p4 != found.p4  # NaN


@pytest.mark.parametrize(
    ("changed", "error", "what"),
    [
        ({"model": "gemma-3-270m"}, TypeError, "load it first"),
        ({"question": " "}, ValueError, "question 0 is empty"),
        ({"contexts": []}, ValueError, "contexts 0 is empty"),
        (
            {"contexts": ["a", "b"], "question": ["x"]},
            ValueError,
            "contexts must be a list with one",
        ),
        ({"answer": ["a", "b"]}, ValueError, "answer must be a list with one"),
        ({"prompt": "{question}"}, ValueError, "prompt needs"),
    ],
)
def test_a_wrong_argument_gives_one_sentence(reads, changed, error, what):
    given = {
        "model": reads,
        "question": ASKED,
        "contexts": "It is Coba",
        "prefix": "It is",
    }
    with pytest.raises(error, match=what):
        ground(**given | changed)


@pytest.mark.parametrize(
    ("context", "answer", "found"),
    [
        ("He came to Lima, and Lima grew", "Lima, in Peru", ("He came to X, and X grew", ["Lima"])),
        ("The limaçon of Lima", "lima", ("The limaçon of X", ["lima"])),
        ("The capital is Quito", "Lima", ("The capital is Quito", None)),
        # In whatever letters and marks it stands there.
        ("Sa\u0303o Tome\u0301.", "São Tomé", ("X.", ["São Tomé"])),
        ("N’Djamena", "N'Djamena", ("X", ["N'Djamena"])),
        ("Lima's sea", "Lima", ("X's sea", ["Lima"])),
        ("1,457 of 11,457", "1457", ("X of 11,457", ["1457"])),
        ("Of 1 in 1457", "1,457", ("Of 1 in X", ["1,457"])),
        ("1 of 2", "1,457", ("1 of 2", None)),
        ("It is C.", "C++", ("It is C.", None)),
        ("-5 and 5", "5", ("-5 and X", ["5"])),
    ],
)
def test_what_is_exchanged(context, answer, found):
    text, names = found
    got = exchange(context, answer, ("X", "Y"))
    expected = Exchanged((text, text.replace("X", "Y")), (names, ["X"], ["Y"]) if names else ())
    assert got == expected


@pytest.mark.parametrize(
    ("answer", "one", "two"),
    [
        ("1969", "1938", "1907"),  # years 31 and 62 before
        ("82", "25", "47"),  # as many digits, each by 3 and 5 on from 1 to 9
        ("June 14, 1928", "September 23, 1897", "December 4, 1866"),  # months, days and years
        ("May", "August", "November"),
        ("1,457", "4,781", "6,913"),
    ],
)
def test_numbers_and_months_are_exchanged_for_their_kind(answer, one, two):
    assert exchange(f"It was {answer}", answer).names == ([answer], [one], [two])


def test_a_small_word_is_no_month():
    found = exchange("He may have gone in May", "May")
    assert found.texts == ("He may have gone in August", "He may have gone in November")
    assert exchange("He may have gone", "May").names == ()


def test_names_are_exchanged_for_others_of_their_relation():
    _, [one], [two] = exchange("The capital of Kenya is Lima", "Lima").names
    capitals = set(grounding.facts.facts_as_questions(grounding.load_facts())["answers"].str[0])
    assert {one, two} <= capitals - {"Lima"}
    names = exchange("Foo Barson founded it", "Foo Barson").names
    assert names == (["Foo Barson"], ["Klurmic Jufint"], ["Zugis Juramar"])


class Copies(Model):
    """Says what its context says, in composed letters, plain apostrophes and digits."""

    def __init__(self):
        lacks = dict.fromkeys(("score", "temper", "token_ids"), "none")
        about = {"prompt_format": "two-shot", "chat": None, "lacks": lacks}
        super().__init__(name="copies", fingerprint="copies", **about)

    def answer(self, job):
        told = [re.search(r"It is (.*?)\]", r["prompt"]) for r in job.requests]
        texts = [unicodedata.normalize("NFC", t[1]) if t else "Lisbon" for t in told]
        texts = [t.replace("’", "'").replace(",", "") for t in texts]
        pairs = zip(job.requests, texts, strict=True)
        yield [*range(len(texts))], [Generation(r["prompt"], f" {t}", [], []) for r, t in pairs]


@pytest.mark.parametrize(
    "name",
    ["São Tomé", "Sa\u0303o Tome\u0301", "N’Djamena", "N'Djamena", "1,457", "1457", "Łódź", "東京"],
)
def test_an_exchange_in_other_letters_than_the_answers(name):
    found = ground(Copies(), ASKED, f"It is {name}.", swap=True)
    assert found.source == "context"
    assert found.why == ""
    assert ground(Copies(), ASKED, f"It is {name}.").source == "context"


@pytest.mark.parametrize(
    ("before", "text"),
    [
        ("\n", " Mora"),
        (" The answer is:", "\n"),
        (" A:", " Mora"),
        (" <think>", "</think>"),
    ],
)
def test_an_answer_that_begins_late(toy_model, before, text):
    """Behind a newline, a label or a thought."""
    rows = {
        prompt(): {before: 1.0},
        before: {text: 1.0},
        text: {" Mora": 1.0},
        " Mora": {".": 1.0},
    }
    rows |= {prompt("It is Coba"): {" Coba": 1.0}, " Coba": {".": 1.0}}
    model = toy_model(rows if text != " Mora" else {**rows, text: {".": 1.0}})
    found = ground(model, ASKED, "It is Coba", prefix="It is")
    assert found.memory == "Mora"
    assert found.answer == "Coba"
    assert found.source == "context"
