"""The seven kinds, on the thesis's own examples."""

from __future__ import annotations

from itertools import permutations

import pytest

from factrobust.datasets.facts import load_facts
from factrobust.metrics.others import KINDS, decide, judged, kinds_table, rules_table

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
    (1, "Emperor Hadrian", "Napoleon Bonaparte", "Hadrian, the Roman Emperor"),
    (5, "Rosario, Argentina", "Kensington, London, England", "London"),
]


@pytest.mark.parametrize(("kind", "parametric", "counterfactual", "contextual", "right"), TABLE_15)
def test_table_15(
    kind: int, parametric: str, counterfactual: str, contextual: str, right: str
) -> None:
    assert decide(parametric, counterfactual, contextual, right_answers=right).kind == kind


@pytest.mark.parametrize(("kind", "parametric", "counterfactual", "contextual"), TABLE_16)
def test_table_16(kind: int, parametric: str, counterfactual: str, contextual: str) -> None:
    assert decide(parametric, counterfactual, contextual).kind == kind


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
    assert judged(lambda r: 3 if "States" in r["contextual"] else 2, row) == 3
    for verdict in (1, 7, None, "2"):
        with pytest.raises(
            ValueError, match=r"of city-01/rome; it must return 2 \(plainly wrong\)"
        ):
            judged(lambda r, verdict=verdict: verdict, row)


def test_tables_of_kinds_and_rules() -> None:
    kinds, rules = kinds_table(), rules_table()
    assert kinds["kind"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert kinds["label"][4] == KINDS[5].label == "context, phrased otherwise"
    assert rules["order"].tolist() == list(range(1, len(rules) + 1))
    assert rules["rule"].tolist()[::11] == ["same text", "rest"]
    assert rules["rule"].is_unique
    assert {k for kinds in rules["kinds"] for k in kinds.split()} == set("1234567")
