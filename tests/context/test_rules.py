"""The rules that tell an answer's source: on the thesis's own examples, by hand, and on labels."""

from itertools import permutations

import pytest

from factrobust.context import rules as answer_rules
from factrobust.context.rules import agree, decide, named
from factrobust.datasets.facts import load_facts
from factrobust.datasets.published import load_labels
from factrobust.intervals import agreement

# Table 15: kind, parametric, counterfactual, contextual answer, right answers of the question.
TABLE_15 = [
    (1, "Diocletian Himself", "Caracalla, a Roman Emperor", "Diocletian, a Roman Emperor", "one"),
    (
        1,
        "Paris, France",
        "the city of Valladolid, in the state of Yucatan, Mexico",
        "the city of Paris, in the country of France",
        "one",
    ),
    (2, "5 of the periodic table", "3 of the periodic table", "4 of the periodic table", "one"),
    (3, "12 months", "approximately 100 years", "approximately 70 years", "one"),
    (4, "Randle McMurphy", "Achilles", "Not Achilles", "several"),
    (
        4,
        "her self-portraits and her depiction of Mexican culture",
        "his theories on communism and his critique of capitalism",
        "her artwork and her life story, not for his theories on communism or critique of capitalism",
        "several",
    ),
    (5, "320 pages", "480 pages in a standard edition", "480 pages", "one"),
    (6, "Julius Robert Mayer", "Alfred Wegener", "James Joule", "several"),
    (6, "Nick Carraway", "Liesel Meminger", "Jay Gatsby", "several"),
    (
        6,
        "The University of Madras",
        "The University of Vienna",
        "the University of Cambridge",
        "several",
    ),
    (7, "January 21, 1924", "March 28, 1941", "March 21, 1924", "one"),
    (7, "Austria", "English-Born American", "American-born English-born Austrian", "one"),
]
# Table 16: what the thesis would rather call parametric and contextual.
TABLE_16 = [
    (1, "Emperor Hadrian", "Napoleon Bonaparte", "Hadrian, the Roman Emperor", None),
    (5, "Rosario, Argentina", "Kensington, London, England", "London", None),
]


@pytest.mark.parametrize(("kind", "p", "c", "a", "right"), [*TABLE_15, *TABLE_16])
def test_tables_15_and_16(kind: int, p: str, c: str, a: str, right: str | None) -> None:
    assert decide(p, c, a, right_answers=right).kind == kind


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("(D", "[D", True),
        ("[D", "d", True),
        ("“Guernica”", "the guernica.", True),
        ("Bogotá", "bogota", True),
        ("the city of Paris", "Paris", True),
        ("10.5 degrees Celsius", "10.5 degrees", True),
        ("July 12, 1997", "12 July 1997", True),
        ("1,000", "1000", True),
        ("a temperature of 100 degrees Celsius", "100 degrees Celsius", True),
        ("J. R. R. Tolkien", "J.R.R. Tolkien", True),
        ("approximately 231.02222222222222", "approximately 231.022222222222", True),
        ("approximately 1.25 centimeters", "approximately 1.25 meters", False),
        ("Paris", "Paris, France", False),  # says more
        ("(D", "(C", False),
        ("-71", "71", False),
        ("Niger", "Nigeria", False),
        ("12 months", "12 years", False),
    ],
)
def test_same_answers(one: str, other: str, same: bool) -> None:
    assert answer_rules.same_answer(one, other) is answer_rules.same_answer(other, one) is same
    assert (decide(one, other, one).source == "same") is same


AGREE = """Emperor Hadrian = Hadrian, the Roman Emperor
London = Kensington, London, England
Austria = the Austrian people
480 pages = 480 pages in a standard edition
a temperature of 420 = 420 degrees Celsius
January 21, 1924 = 1924
21st of Jan 1924 = January 21, 1924
2.5 million = 2.5
7-8 minutes = 8 minutes"""
APART = """1 = 1969
12 months = 12 years
January 21, 1924 = March 21, 1924
Korea = North Korea
Elizabeth I = Elizabeth II
United States = United Kingdom
Roman = Romania
the = a"""


@pytest.mark.parametrize("pair", [*AGREE.splitlines(), *APART.splitlines(), " = Paris"])
def test_agreement_of_answers(pair: str) -> None:
    a, b = map(named, pair.split(" = "))
    assert agree(a, b) is agree(b, a) is (pair in AGREE.splitlines())


@pytest.mark.parametrize("relation", ["capital", "sport"])
def test_different_answers_to_a_question_stay_apart(relation: str) -> None:
    facts = load_facts()
    names = sorted(set(facts.loc[facts["relation"] == relation, "object"]))[:60]
    taken = {(a, b) for a, b in permutations(names, 2) if agree(named(a), named(b))}
    football = {"American football", "football"}  # a limit: only the facts tell these apart
    assert all({a, b} == football for a, b in taken)
    assert len(names) > 5


# parametric, counterfactual, answer, source, kind
CASES = [
    ("Bogotá", "Lima", "bogota.", "parametric", 1),  # the same text
    ("not known with certainty", "not known", "Not known", "contextual", 5),
    ("71", "10.8", "-71", "other", 2),  # equal but for the sign
    ("unknown", "Paris", "not specified", "parametric", 1),  # neither answers
    ("Paris", "London", "unclear", "other", 2),
    ("Paris", "London", "Paris, not London", "other", 4),
    ("Paris", "London", "It isn’t London", "other", 4),
    ("Paris", "London", "Paris, not Rome", "parametric", 1),
    ("a cult", "a cult that is not Greek", "cult not Greek", "contextual", 5),
    ("January 21, 1924", "March 28, 1941", "March 21, 1924", "other", 7),  # numbers of both
    ("Paris, France", "Valladolid, Mexico", "Paris, Mexico", "other", 7),  # words of both
    ("Paris", "Lyon, France", "Paris, France", "parametric", 1),  # the context's form
    ("12 months", "100 years", "70 years", "other", 3),  # the context's unit
    ("Niger", "Mali", "Nigeria", "other", 2),
    ("", "Paris", "Paris", "contextual", 5),
    ("Paris", "London", "", "none", None),
    ("Paris", "London", "A: A: A", "none", None),
    ("Paris", "paris", "London", "same", None),
    # A sea where a lake is asked for: to know that takes more than words.
    ("Lake Titicaca", "the North Sea", "the Pacific Ocean", "other", 2),
]


@pytest.mark.parametrize(("p", "c", "a", "source", "kind"), CASES)
def test_rules(p: str, c: str, a: str, source: str, kind: int | None) -> None:
    assert decide(p, c, a) == (source, kind)


@pytest.mark.parametrize(
    ("accepted", "right_answers", "kind"),
    [
        ([], "one", 2),
        ([], "several", 6),
        (["James Joule"], None, 6),
        (["Mayer"], "several", 2),  # accepted answers settle it
    ],
)
def test_what_is_known_of_right_answers(accepted, right_answers, kind) -> None:
    row = ("Julius Mayer", "Alfred Wegener", "James Joule")
    assert decide(*row, accepted=accepted, right_answers=right_answers).kind == kind


HALF = "Cairo Airport Giza (Cairo Airport Giza)"  # of its words are repeated
DEGENERATE = {
    "empty": ["", " ...", "the"],
    "option": ["d", "(D", "[D]])]))))))))))))", "(iv)", "b)", "D."],
    None: ["D", "Zn: 30", "at 10:30", HALF, "U.S.", "5", "(c) Paris"],  # "D" is deuterium
    "marks": ["A: Jazz B: Rock"],
    "repeats": ["Roman-style Roman-style Roman-style"],
}


@pytest.mark.parametrize(
    ("text", "why"), [(text, why) for why, texts in DEGENERATE.items() for text in texts]
)
def test_degeneracy(text: str, why: str | None) -> None:
    assert answer_rules.degeneracy(text) == why


@pytest.mark.parametrize(
    ("parametric", "counterfactual", "answer", "code"),
    [
        ("Paris, France", "Rome", "the city of Paris", "other"),  # "city" is in the way
        ("Paris, France", "Rome", "Paris", "parametric"),
        ("Rosario", "Kensington, London, England", "London", "other"),  # table 16
        ("12", "120", "120", "parametric"),  # "12" begins "120"
        ("1,000", "10", "1000", "parametric"),
        ("the U.N", "Rome", "the", "parametric"),  # an empty text begins any
        ("Netherlands", "Nerlands", "nerlands", "parametric"),  # "the" in a word
    ],
)
def test_the_thesiss_code(parametric, counterfactual, answer, code) -> None:
    assert answer_rules.published_source(parametric, counterfactual, answer) == code


@pytest.mark.parametrize(
    ("text", "answers", "is_right"),
    [
        ("the city of Paris, France", ["Paris"], True),
        ("Nigeria", ["Niger"], False),
        ("not Paris", ["Paris"], False),
        ("not London, but Paris", ["Paris"], True),
        ("Paris, not London", ["London"], False),
        ("To Have and Have Not", ["To Have and Have Not"], True),
        ("21 January 1924", ["January 21, 1924"], True),
        ("1924", ["January 21, 1924"], False),  # less precise
        ("January 21, 1924", ["1924"], True),
        ("1,000,000", ["1000000"], True),
        ("between 1 and 1000", ["500"], False),
        ("1-1000", ["500"], False),
        ("12 years", ["12 months"], False),
        ("", ["Paris"], False),
        ("Paris", ["", "London"], False),
    ],
)
def test_right(text: str, answers: list[str], is_right: bool) -> None:
    assert answer_rules.right(text, answers) is is_right


TWO = [(["Lima", "the city of Lima"], ["Oslo"], ["Rome"]), (["Bonn"], ["Bern"], ["Baku"])]


@pytest.mark.parametrize(
    ("memory", "answer", "swapped", "source"),
    [
        ("Nairobi", "Lima", ["Oslo", "Rome"], "context"),
        ("Lima", "Lima", ["Oslo", "Rome"], "both"),
        ("Nairobi", "Bonn", ["Bern", "Baku"], "context"),  # of a sentence about somebody else
        ("Nairobi", "Lima", ["Bern", "Rome"], "slots"),
        ("Lima", "Lima", ["Bern", "Rome"], "slots"),
        ("Nairobi", "Lima", ["Oslo", "Lima"], "half"),
        ("Nairobi", "Lima", ["Quito", "Baku"], "half"),
        ("Nairobi", "Nairobi", ["Nairobi"] * 2, "memory"),
        ("Lima", "Lima", ["Lima"] * 2, "memory"),
        ("Bonn", "Kisumu", ["Kisumu"] * 2, "moved"),  # neither memory says it nor a slot
        ("Nairobi", "Nairobi", ["Oslo", "Nairobi"], "moved"),  # no slot held the first answer
        ("Nairobi", "Lima", ["Quito", "Kisumu"], "moved"),
        ("Nairobi", "not Lima", ["not Oslo", "not Rome"], "moved"),  # it denies what stands there
        ("Nairobi", "", ["Oslo", "Rome"], "none"),
    ],
)
def test_what_follows_the_exchange(memory, answer, swapped, source) -> None:
    assert answer_rules.swap_source(memory, answer, swapped, TWO) == source


def test_without_a_slot_nothing_follows() -> None:
    assert answer_rules.swap_source("Bonn", "Bonn", ["Bonn"] * 2, []) == "memory"
    assert answer_rules.swap_source("Bonn", "Lima", ["Lima"] * 2, []) == "moved"


def test_the_two_readings_of_the_labels() -> None:
    labels = load_labels("context")
    counts = labels["label"].value_counts()
    assert counts.to_dict() == {
        "contextual": 259,
        "none": 25,
        "same": 11,
        "parametric": 3,
        "other": 2,
    }
    found = agreement(labels["label"], labels["label_again"])
    assert found.share * 300 == pytest.approx(298)
    assert round(found.kappa, 2) == 0.97
