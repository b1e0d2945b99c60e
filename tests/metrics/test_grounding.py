"""Memory or context, by both rules, on the thesis's examples and on hand-made rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.metrics import grounding
from factrobust.metrics.grounding import SOURCES, mark, preference, published_source, right

# Figure 4: the printed probabilities of the parametric answer's tokens.
FIGURE_4 = [0.94, 4e-05, 0.87, 0.93, 0.06, 0.92, 0.26, 0.04, 0.61, 0.98, 0.72, 0.49, 0.59, 0.90]


def results(rows: list[tuple[str, str, str]], **columns: object) -> pd.DataFrame:
    """Rows of parametric, counterfactual and contextual answers, question q0, q1, ..."""
    table = pd.DataFrame(rows, columns=["parametric", "counterfactual", "contextual"])
    ids = [f"q{i}" for i in range(len(rows))]
    given = {"model": "m", "question_id": ids, "category": "c", "base_id": "b", "object": ids}
    perplexities = {"p0": 1.5, "p1": 4.0, "p2": 3.0, "p3": 1.2, "p4": 1.2}
    return table.assign(**given | perplexities | columns)


def test_perplexity_by_hand() -> None:
    # Two tokens of probability 1/2 and 1/8: 2 to the mean of 1 and 3 bits.
    assert grounding.perplexity(np.log([1 / 2, 1 / 8])) == pytest.approx(4)
    assert grounding.perplexity([0.0]) == 1
    assert np.isnan(grounding.perplexity([]))


def test_figure_4() -> None:
    # Printed are NLL 2.0566 and P2 4.1599; the probabilities are rounded.
    half = np.where(np.array(FIGURE_4) < 0.001, 5e-6, 0.005)
    low, high = (grounding.perplexity(np.log(FIGURE_4 + x)) for x in (half, -half))
    assert low < 4.1599 < high
    assert np.log2([low, high]) == pytest.approx([2.0251, 2.1117], abs=5e-5)
    assert np.log2(grounding.perplexity(np.log(FIGURE_4))) == pytest.approx(2.0664, abs=5e-5)
    row = results([("p", "q", "q")], p2=4.1599, p3=1.0107, p4=1.0107)
    assert preference(row).tolist() == ["contextual"]


@pytest.mark.parametrize(
    ("parametric", "counterfactual", "contextual", "published", "robust"),
    [
        ("June 14, 1928", "965 AD", "965 AD", "contextual", "contextual"),  # table 4
        ("Emperor Hadrian", "Napoleon Bonaparte", "Hadrian, the Roman Emperor", "other",
         "parametric"),  # table 16
        ("Rosario, Argentina", "Kensington, London, England", "London", "other", "contextual"),
        ("320 pages", "480 pages in a standard edition", "480 pages", "contextual", "contextual"),
        ("Randle McMurphy", "Achilles", "Not Achilles", "other", "other"),
        ("1", "1969", "1969", "parametric", "contextual"),  # "1" begins "1969"
        ("15th century", "12", "15", "parametric", "parametric"),
        ("15th century", "12 years", "15 years", "other", "other"),
        ("not known with certainty", "not known", "not known", "parametric", "contextual"),
        ("mathematics", "Mali", "mama", "parametric", "other"),  # "mamatics"
        ("Netherlands", "Nerlands", "nerlands", "parametric", "contextual"),  # "the" inside a word
        ("Paris", "London", "", "parametric", "empty"),
        ("Paris", "London", "the", "parametric", "empty"),
        ("", "London", "London", "parametric", "contextual"),
        ("", "London", "Rome", "parametric", "other"),
        ("Paris", "", "Rome", "contextual", "other"),
        ("12 July 1997", "26 April 121 AD", "July 12, 1997", "other", "parametric"),
        ("St. Louis", "Delft", "St Louis", "other", "parametric"),
        ("Dominica", "Cuba", "Dominican Republic", "parametric", "other"),
    ],
)  # fmt: skip
def test_sources(
    parametric: str, counterfactual: str, contextual: str, published: str, robust: str
) -> None:
    assert published_source(parametric, counterfactual, contextual) == published
    table = results([(parametric, counterfactual, contextual)])
    assert mark(table)["source"].tolist() == [robust]
    assert mark(table, rule="published")["source"].tolist() == [published]


@settings(deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_published_comparison_is_that_of_the_listing(a: str, b: str) -> None:
    x, y = (s.lower().replace("the", "").replace(",", "").strip() for s in (a, b))
    short = min(len(x), len(y))  # both are cut to the shorter one
    assert grounding.published_equal(a, b) == (x[:short] == y[:short])


def test_kinds_of_what_either_rule_calls_other() -> None:
    rows = [
        ("Paris", "London", "London"),
        ("Emperor Hadrian", "Napoleon", "Hadrian, the Roman Emperor"),
        ("Rosario, Argentina", "Kensington, London, England", "London"),
        ("Randle McMurphy", "Achilles", "Not Achilles"),
        ("Dominica", "Cuba", "Dominican Republic"),  # published: parametric
        ("Paris", "London", ""),
    ]
    robust, published = mark(results(rows)), mark(results(rows), rule="published")
    assert robust["kind"].tolist() == [pd.NA, 1, 5, 4, 2, pd.NA]
    assert published["kind"].tolist() == [pd.NA, 1, 5, 4, pd.NA, pd.NA]
    assert robust["kind_rule"].tolist() == [None, "core", "core", "negation", "rest", None]
    assert robust["kind"].dtype == "Int64"


def test_preference() -> None:
    nan = np.nan
    table = results(
        [("a", "b", "c")] * 5,
        p2=[1.1, 3.0, 2.0, nan, 1.1],
        p3=[2.0, 1.5, 2.0, 2.0, 1.5],
        p4=[1.1, 1.5, 2.5, 3.0, nan],
    )
    text = ["parametric", "contextual", "tie", None, "parametric"]
    assert preference(table).tolist() == text
    # The greedy parametric answer of the first row has the lower perplexity: "contextual".
    code = ["contextual", "contextual", "parametric", "parametric", "contextual"]
    assert preference(table, "published").tolist() == code
    assert mark(table, rule="published")["preference"].tolist() == code
    assert mark(table)["preference"].tolist() == text
    assert preference(table.assign(p4=nan), "published").tolist() == [None] * 5


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
        ("1,000,000", ["1 million"], True),
        ("eleven", ["11"], True),
        ("between 1 and 1000", ["500"], False),
        ("1-1000", ["500"], False),
        ("12 years", ["12 months"], False),
        ("", ["Paris"], False),
        ("Paris", ["", "London"], False),
    ],
)
def test_right(text: str, answers: list[str], is_right: bool) -> None:
    assert right(text, answers) is is_right


def test_marks_with_known_answers() -> None:
    rows = [("Holland", "Spain", "Netherlands"), ("Lima", "Holland", "the Netherlands")]
    rows += [("Lima", "Quito", "Cusco")]
    names = [["Netherlands", "Holland"], ["Spain"], []]
    asked = pd.DataFrame({"question_id": ["q0", "q1", "q2"], "base_id": "b", "answers": names})
    marked = mark(results(rows), asked)
    # Holland and the Netherlands are one country for the whole base question
    assert marked["source"].tolist() == ["parametric", "contextual", "other"]
    assert marked["parametric_correct"].tolist() == [True, False, pd.NA]
    assert marked["counterfactual_correct"].tolist() == [False, False, pd.NA]
    assert marked["correct"].tolist() == [True, False, pd.NA]
    assert marked["correct"].dtype == "boolean"
    # If several answers are right, they are no names of one thing
    several = mark(results(rows), asked.assign(right_answers="several"))
    assert several["source"].tolist() == ["other"] * 3
    assert several["kind"].tolist() == [6, 2, 6]
    assert mark(results(rows))["correct"].isna().all()


def test_rows_keep_their_order_index_and_columns() -> None:
    table = results([("Paris", "London", "London"), ("Rome", "Oslo", "Rome")], note="x")
    table.index = pd.Index([7, 7])
    marked = mark(table)
    pd.testing.assert_frame_equal(marked[list(table)], table)
    assert marked["source"].tolist() == ["contextual", "parametric"]
    added = ["source", "kind", "kind_rule", "preference"]
    added += ["parametric_correct", "counterfactual_correct", "correct"]
    assert marked.columns.tolist() == [*table.columns, *added]
    missing = mark(results([("Paris", "London", np.nan)]))  # as read from a CSV
    assert missing["source"].tolist() == ["empty"]
    assert mark(table.head(0))["source"].tolist() == []


def test_a_judge_sees_only_what_rules_cannot_decide() -> None:
    seen = []

    def judge(row) -> int:
        seen.append((row["object"], row["contextual"]))
        return 3

    rows = [("Paris", "London", "London"), ("a", "b", "c"), ("a", "b", "not b"), ("a", "b", "d")]
    marked = mark(results(rows), judge=judge)
    assert seen == [("q1", "c"), ("q3", "d")]
    assert marked["kind"].tolist() == [pd.NA, 3, 4, 3]
    assert marked["kind_rule"].tolist() == [None, "judge", "negation", "judge"]


def test_changes_between_the_rules() -> None:
    rows = [
        ("Paris", "London", "London"),
        ("Oslo", "Rome", "Rome"),
        ("Emperor Hadrian", "Napoleon", "Hadrian, the Roman Emperor"),
        ("Paris", "London", ""),
    ]
    table = grounding.changes(results(rows, p4=[1.2, 1.2, 2.0, np.nan]))
    columns = ["verdict", "published", "robust", "n", "share", "kind_rule", "example"]
    assert table["model"].eq("m").all()
    assert table[columns].to_numpy().tolist() == [
        ["source", "contextual", "contextual", 2, 0.5, "", "q0"],
        ["source", "other", "parametric", 1, 0.25, "core", "q2"],
        ["source", "parametric", "empty", 1, 0.25, "", "q3"],
        ["preference", "contextual", "contextual", 3, 0.75, "", "q0"],
        ["preference", "parametric", "contextual", 1, 0.25, "", "q2"],
    ]


def test_every_source_is_listed() -> None:
    rows = [("a", "b", "a"), ("a", "b", "b"), ("a", "b", "c"), ("a", "b", "")]
    assert tuple(mark(results(rows))["source"]) == SOURCES


def test_bad_input() -> None:
    table = results([("a", "b", "c")])
    with pytest.raises(ValueError, match="no rule 'loose'; choose one of robust, published"):
        mark(table, rule="loose")
    with pytest.raises(ValueError, match="no rule 'loose'"):
        preference(table, "loose")
    with pytest.raises(ValueError, match="no column 'contextual'; they have"):
        mark(table.drop(columns="contextual"))
    with pytest.raises(ValueError, match="no column 'p4'; they have"):
        mark(table.drop(columns="p4"), rule="published")
    with pytest.raises(ValueError, match=r"the p3 of q0 is 0\.7, and a perplexity is at least 1"):
        mark(table.assign(p3=0.7))
    asked = pd.DataFrame({"question_id": ["q9"], "base_id": "b", "answers": [["c"]]})
    with pytest.raises(ValueError, match=r"1 row\(s\), such as q0, belong to no question"):
        mark(table, asked)
