"""`ground`: by hand on a toy model that reads, on one that knows, and on bad arguments."""

import re
import unicodedata

import numpy as np
import pytest
from frames import frame

import factrobust
from factrobust.context import grounding
from factrobust.context.grounding import exchange, ground
from factrobust.models.interface import Generation, Model

ASKED = "Capital of F?"
OTHERS = ("Klurmic", "Jufint")  # of the invented world, for a name that no relation has


def prompt(context=""):
    stated = f"Context: [{context}]. " if context else ""
    return f"{stated}Q: {ASKED} A: It is"


def answers(follows):
    """Of F memory says Mora with probability 0.6. A model that follows says what stands in the context,
    with 0.8; the other one Mora."""
    table = {prompt(): {" Mora": 0.6, " Coba": 0.4}}
    for name in ("Coba", *OTHERS, "Mora"):
        likely, rest = (f" {name}", " x") if follows else (" Mora", " Coba")
        table[prompt(f"It is {name}")] = {likely: 0.8, rest: 0.2}
        table[f" {name}"] = {".": 1.0}
    return table


@pytest.fixture(scope="module")
def models(toy_model):
    return {"reads": toy_model(answers(True)), "knows": toy_model(answers(False))}


@pytest.mark.parametrize(
    ("model", "context", "given", "answer", "plain", "swapped"),
    [
        ("reads", "It is Coba.", None, "Coba", ("context", ""), ("context", "")),
        ("reads", ["It is Coba."], "Coba", "Coba", ("context", ""), ("context", "")),
        ("knows", "It is Coba", None, "Mora", ("memory", ""), ("memory", grounding.NOT_STATED)),
        ("reads", "It is Mora", None, "Mora", ("both", grounding.AGREES), ("both", "")),
        ("knows", "It is Mora", None, "Mora", ("both", grounding.AGREES), ("memory", "")),
        ("reads", "It is Mora", "", "", ("none", grounding.SILENT), ("none", grounding.SILENT)),
    ],
)
def test_where_an_answer_comes_from(models, model, context, given, answer, plain, swapped):
    found = ground(models[model], ASKED, context, given, prefix="It is")
    assert found[:4] == ("Mora", answer, *plain)
    assert found.swapped == ()
    if answer:
        assert found.p4 == pytest.approx(1 / 0.8, rel=1e-5)
    exchanged = ground(models[model], ASKED, context, given, prefix="It is", swap=True)
    assert exchanged[:4] == ("Mora", answer, *swapped)
    if swapped[0] == "context":
        assert exchanged.swapped == OTHERS


def test_ones_own_prompt(toy_model):
    table = {"Facts: It is Coba\nMine: F?": {" Coba": 1.0}, "Mine: F?": {" Mora": 1.0}}
    model = toy_model(table | {" Coba": {".": 1.0}, " Mora": {".": 1.0}})
    prompt = "Facts: {contexts}\nMine: {question}"
    found = factrobust.ground(model, "F?", "It is Coba", prompt=prompt)
    assert found[:2] == ("Mora", "Coba")


def test_an_endpoint_gets_a_verdict_by_texts(models, monkeypatch):
    monkeypatch.setattr(models["reads"], "lacks", {"token_ids": "texts only"}, raising=False)
    found = ground(models["reads"], ASKED, "It is Coba", "Coba", prefix="It is", swap=True)
    assert found.source == "context"
    assert np.isnan(found.p4)


@pytest.mark.parametrize(
    ("changed", "error", "what"),
    [
        ({"model": "gemma-3-270m"}, TypeError, "load it first"),
        ({"question": " "}, ValueError, "question is empty"),
        ({"contexts": []}, ValueError, "contexts is empty"),
        ({"prompt": "{question}"}, ValueError, "prompt needs"),
    ],
)
def test_a_wrong_argument_gives_one_sentence(models, changed, error, what):
    given = {"model": models["reads"], "question": ASKED, "contexts": "It is Coba"}
    with pytest.raises(error, match=what):
        ground(**given | changed)


# In whatever letters and marks it stands there; a small word is no month.
EXCHANGED = """
    name       answer         context                        text
    Lima       Lima, in Peru  He came to Lima, and Lima grew  He came to X, and X grew
    lima       lima           The limaçon of Lima             The limaçon of X
    São Tomé   São Tomé       Sa\u0303o Tome\u0301.           X.
    N'Djamena  N'Djamena      N’Djamena                       X
    Lima       Lima           Lima's sea                      X's sea
    1457       1457           1,457 of 11,457                 X of 11,457
    1,457      1,457          Of 1 in 1457                    Of 1 in X
    5          5              -5 and 5                        -5 and X
    May        May            He may go in May                He may go in X
    -          Lima           The capital is Quito            The capital is Quito
    -          1,457          1 of 2                          1 of 2
    -          C++            It is C.                        It is C.
"""


def test_what_is_exchanged(monkeypatch):
    monkeypatch.setattr(grounding, "_alike", lambda text, context: ["X", "Y"])
    for name, answer, context, text in frame(EXCHANGED).itertuples(index=False):
        found = exchange(context, answer)
        assert found.texts == (text, text.replace("X", "Y"))
        names = () if name == "-" else ([name], ["X"], ["Y"])
        assert found.names == names


# Years 31 and 62 before; as many digits: 8 + 2 and 8 + 4, modulo 9, and so on; months, days and
# years; a name of no relation.
ALIKE = """
    answer         one                 two
    1969           1938                1907
    82             25                  47
    June 14, 1928  September 23, 1897  December 4, 1866
    May            August              November
    1,457          4,781               6,913
    Foo Barson     Klurmic Jufint      Zugis Juramar
"""


def test_an_answer_is_exchanged_for_others_of_its_kind():
    for answer, one, two in frame(ALIKE).itertuples(index=False):
        assert exchange(f"It was {answer}", answer).names == ([answer], [one], [two])


def test_names_are_exchanged_for_others_of_their_relation():
    _, [one], [two] = exchange("The capital of Kenya is Lima", "Lima").names
    facts = grounding.load_facts()
    capitals = set(facts.loc[facts["relation"] == "capital", "object"])
    assert len({one, two, "Lima"}) == 3
    assert {one, two} <= capitals


class Copies(Model):
    """Says what its context says, in composed letters, plain apostrophes and digits."""

    def __init__(self):
        lacks = dict.fromkeys(("score", "temper", "token_ids"), "none")
        about = {"prompt_format": "two-shot", "chat": None, "lacks": lacks}
        super().__init__(name="copies", fingerprint="copies", **about)

    def answer(self, job):
        for i, request in enumerate(job.requests):
            stated = re.search(r"It is (.*?)\]", request["prompt"])
            text = unicodedata.normalize("NFC", stated[1]) if stated else "Lisbon"
            text = text.replace("’", "'").replace(",", "")
            yield [i], [Generation(request["prompt"], f" {text}", [], [])]


@pytest.mark.parametrize(
    "name",
    ["São Tomé", "Sa\u0303o Tome\u0301", "N’Djamena", "N'Djamena", "1,457", "1457", "Łódź", "東京"],
)
def test_an_exchange_in_other_letters_than_the_answers(name):
    for swap in (True, False):
        found = ground(Copies(), ASKED, f"It is {name}.", swap=swap)
        assert (found.source, found.why) == ("context", "")


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
        prompt("It is Coba"): {" Coba": 1.0},
        " Coba": {".": 1.0},
    }
    found = ground(toy_model(rows), ASKED, "It is Coba", prefix="It is")
    assert found[:3] == ("Mora", "Coba", "context")
