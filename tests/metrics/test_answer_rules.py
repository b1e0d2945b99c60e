"""The seven kinds, on the thesis's own examples."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.datasets.facts import load_facts
from factrobust.metrics.answer_rules import (
    KINDS,
    RULES,
    Decision,
    decide,
    judged,
    kinds_table,
    rules_table,
)

# Table 15: kind, parametric, counterfactual, contextual answer, right answers of the question.
TABLE_15 = [
    (1, "Diocletian Himself", "Caracalla, a Roman Emperor", "Diocletian, a Roman Emperor", "one"),
    (1, "Paris, France", "the city of Valladolid, in the state of Yucatan, Mexico",
     "the city of Paris, in the country of France", "one"),
    (2, "5 of the periodic table", "3 of the periodic table", "4 of the periodic table", "one"),
    (3, "12 months", "approximately 100 years", "approximately 70 years", "one"),
    (3, "Lake Titicaca", "the North Sea", "the Pacific Ocean", "one"),
    (4, "Randle McMurphy", "Achilles", "Not Achilles", "several"),
    (4, "her self-portraits and her depiction of Mexican culture",
     "his theories on communism and his critique of capitalism",
     "her artwork and her life story, not for his theories on communism or critique of capitalism",
     "several"),
    (5, "320 pages", "480 pages in a standard edition", "480 pages", "one"),
    (6, "Julius Robert Mayer", "Alfred Wegener", "James Joule", "several"),
    (6, "Nick Carraway", "Liesel Meminger", "Jay Gatsby", "several"),
    (6, "The University of Madras", "The University of Vienna", "the University of Cambridge",
     "several"),
    (7, "January 21, 1924", "March 28, 1941", "March 21, 1924", "one"),
    (7, "Austria", "English-Born American", "American-born English-born Austrian", "one"),
]  # fmt: skip
# Table 16: what the thesis would rather call parametric and contextual.
TABLE_16 = [
    (1, "Emperor Hadrian", "Napoleon Bonaparte", "Hadrian, the Roman Emperor", None),
    (5, "Rosario, Argentina", "Kensington, London, England", "London", None),
]


@pytest.mark.parametrize(("kind", "p", "c", "a", "right"), [*TABLE_15, *TABLE_16])
def test_tables_15_and_16(kind: int, p: str, c: str, a: str, right: str | None) -> None:
    assert decide(p, c, a, right_answers=right).kind == kind


@pytest.mark.parametrize("contextual", ["", " ", "...", "the"])
def test_an_empty_answer_has_no_kind(contextual: str) -> None:
    assert decide("Paris", "London", contextual) == (None, "empty")


@pytest.mark.parametrize("relation", ["capital", "sport"])
def test_different_answers_to_a_question_stay_apart(relation: str) -> None:
    facts = load_facts()
    names = sorted(set(facts.loc[facts["relation"] == relation, "object"]))[:60]
    taken = {
        (a, b)
        for a, b in permutations(names, 2)
        if decide(a, "an answer of another kind", b).kind == 1
    }
    football = {"American football", "football"}  # a limit: only the facts tell these apart
    assert all({a, b} == football for a, b in taken)
    assert len(names) > 5


def test_a_judge_says_2_3_or_6() -> None:
    row = {"question_id": "city-01/rome", "contextual": "the United States"}
    rest, core = Decision(2, "rest"), Decision(1, "core")
    assert judged(lambda r: 3 if "States" in r["contextual"] else 2, row, rest) == (3, "judge")
    assert judged(lambda r: 3, row, core) == core
    for kind in (1, 7, None, "2"):
        with pytest.raises(ValueError, match="of city-01/rome, and not 2, 3 or 6"):
            judged(lambda r, kind=kind: kind, row, rest)


def test_tables_of_kinds_and_rules() -> None:
    kinds, rules = kinds_table(), rules_table()
    assert kinds["kind"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert kinds["label"][4] == KINDS[5].label == "context, phrased otherwise"
    assert rules["order"].tolist() == list(range(1, len(rules) + 1))
    assert rules["rule"].tolist()[::11] == ["same text", "rest"]
    assert rules["rule"].is_unique
    assert {k for kinds in rules["kinds"] for k in kinds.split()} == set("1234567")


# parametric, counterfactual, contextual answer, kind, rule
CASES = [
    ("Bogotá", "Lima", "bogota.", 1, "same text"),
    ("Lima", "Bogotá", "the Bogota", 5, "same text"),
    ("not known with certainty", "not known", "Not known", 5, "same text"),
    ("71", "10.8", "-71", 2, "rest"),  # equal but for the sign
    ("unknown", "Paris", "not specified in the text", 1, "no answer"),
    ("Paris", "unknown", "not specified in the text", 5, "no answer"),
    ("Paris", "London", "unclear", 2, "no answer"),
    ("", "London", "unclear", 1, "no answer"),
    ("Wright", "the architect, Gaudi", "none other than Gaudi", 5, "core"),  # an answer
    ("Wright", "London", "none other than Gaudi", 2, "rest"),
    ("Paris", "London", "Paris, not London", 4, "negation"),
    ("Paris", "London", "Paris rather than London", 4, "negation"),
    ("Paris", "London", "It isn’t London", 4, "negation"),
    ("Paris", "London", "Paris, not Rome", 1, "core"),  # what it negates the context does not say
    ("a cult", "a cult that is not Greek", "cult not Greek", 5, "core"),  # the context's negation
    ("January 21, 1924", "March 28, 1941", "21 January 1924", 1, "date"),
    ("January 21, 1924", "March 28, 1941", "1941", 5, "date"),
    ("January 21, 1924", "March 28, 1941", "March 21, 1924", 7, "date"),
    ("180 AD", "July 13, 1954", "July 13, 180 AD", 7, "date"),
    ("January 21, 1924", "March 28, 1941", "May 3, 1950", 2, "rest"),
    ("1924", "1941", "March 1941", 5, "date"),
    ("January 21, 1924", "January 21, 1941", "January 21", 1, "date"),  # both: parametric first
    ("1", "1969", "1969 AD", 5, "quantity"),
    ("122-128 AD", "1969", "122 AD", 1, "quantity"),
    ("320 pages", "12,110 lines, or about 480 pages", "480 pages", 5, "quantity"),
    ("202 K (-71", "-248", "-71", 1, "quantity"),
    ("12 months", "100 years", "70 years", 3, "quantity"),
    ("12 months", "100 years", "12 years", 7, "quantity"),
    ("12 months", "100 years", "100 months", 7, "quantity"),
    ("12 months", "100 pages", "70 days", 2, "rest"),
    ("5 of the periodic table", "3 of the periodic table", "4", 2, "rest"),
    ("period 5", "3", "5 of the periodic table", 1, "quantity"),
    ("Paris, France", "Valladolid, Mexico", "Paris, Mexico", 7, "names of both"),
    ("Paris", "Lyon, France", "Paris, France", 1, "core"),  # the context's form only
    ("German", "English-born American", "German-born American", 7, "names of both"),
    ("a temperature of 420", "298 Celsius", "a temperature of 298 Celsius", 5, "core"),  # its form
    ("a red rose", "a Dutch tulip", "a Dutch rose", 7, "names of both"),
    ("a fresco", "some paintings by an artist", "some paintings by an artist, born in Rome", 5, "core"),
    ("a fresco", "some paintings", "some drawings, born in Rome", 2, "rest"),
    ("the Louvre", "the permanent collection at the Prado", "the permanent collection at the Louvre",
     1, "core"),
    ("Rosario, Argentina", "London, England", "London", 5, "core"),
    ("Emperor Hadrian", "Napoleon", "Hadrian, the Roman Emperor", 1, "core"),
    ("Warsaw", "Krakow", "the Polish town of Krakow", 5, "core"),
    ("Florence, Italy", "Rome, Italy", "Italy", 1, "core"),  # of both parts, of neither core
    ("a Roman poet", "Rome, Italy", "Rome", 5, "core"),
    ("Niger", "Mali", "Nigeria", 2, "rest"),
    ("United States", "France", "United Kingdom", 2, "rest"),
    ("Lake Geneva", "the Black Sea", "the Baltic Sea", 3, "kind of thing"),
    ("Geneva", "the Black Sea", "the Baltic Sea", 2, "rest"),  # nothing that memory calls it
    ("", "Paris", "Paris", 5, "same text"),
    ("", "Paris", "Rome", 2, "rest"),
    ("Paris", "", "Rome", 2, "rest"),
]  # fmt: skip


@pytest.mark.parametrize(("parametric", "counterfactual", "contextual", "kind", "rule"), CASES)
def test_rules(parametric: str, counterfactual: str, contextual: str, kind: int, rule: str) -> None:
    assert decide(parametric, counterfactual, contextual) == (kind, rule)


def test_every_rule_and_kind_occurs_in_a_test() -> None:
    told = {rule for *_, rule in CASES}
    assert told | {"synonym", "accepted", "one of several"} == {rule.name for rule in RULES}
    assert {kind for *_, kind, _ in CASES} == set(KINDS) - {6}
    for rule in RULES:
        found = {str(kind) for *_, kind, name in CASES if name == rule.name}
        assert found <= set(rule.kinds.split())


def test_what_is_known_of_right_answers() -> None:
    row = ("Julius Mayer", "Alfred Wegener", "James Joule")
    assert decide(*row) == (2, "rest")
    assert decide(*row, right_answers="one") == (2, "rest")
    assert decide(*row, right_answers="several") == (6, "one of several")
    assert decide(*row, accepted=["Mayer", "Joule"]) == (6, "accepted")
    assert decide("A", "A: A", "A: A: A: A: A:", right_answers="several") == (2, "rest")
    # accepted answers settle it
    assert decide(*row, accepted=["Mayer"], right_answers="several") == (2, "rest")


def test_synonyms() -> None:
    names = {"burma": frozenset({"burma"}), "myanmar": frozenset({"burma"})}
    names["laos"] = frozenset({"laos"})
    assert decide("Myanmar", "Laos", "Burma", synonyms=names) == (1, "synonym")
    assert decide("Laos", "Myanmar", "Burma", synonyms=names) == (5, "synonym")
    assert decide("Laos", "Laos", "Burma", synonyms=names) == (2, "rest")
    # the letters of the counterfactual come before another name of the parametric answer
    assert decide("Myanmar", "Burma", "Burma", synonyms=names) == (5, "same text")


@settings(deadline=None)
@given(*[st.text(alphabet="aB1 ,.-'()notK12 May", max_size=25)] * 3)
def test_every_answer_gets_a_kind(parametric: str, counterfactual: str, contextual: str) -> None:
    kind, rule = decide(parametric, counterfactual, contextual)
    assert (kind is None) == (rule == "empty")
    assert kind is None or kind in KINDS
    if kind is not None and parametric == contextual:
        assert kind == 1
