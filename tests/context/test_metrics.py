"""Memory or context, by both rules, on the thesis's examples and on hand-made rows."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from numpy.testing import assert_allclose

from factrobust.context import metrics


def answered(rows):
    """Rows of parametric, counterfactual and contextual answers, question q0, q1, ..."""
    table = pd.DataFrame(rows, columns=[*metrics.ANSWERS])
    ids = [f"q{i}" for i in range(len(rows))]
    return table.assign(model="m", question_id=ids, base_id="b", p3=1.2, p4=1.2)


def mark(table, answers=None, right_answers="one"):
    """Marked by our rules, with these accepted answers, or unknown ones."""
    questions = table[["question_id", "base_id"]].assign(right_answers=right_answers)
    questions["answers"] = pd.Series(answers or [[]] * len(table), dtype=object)
    return metrics.mark_sources(table, questions)


def test_perplexity_by_hand():
    # Tokens of probability 1/2, 1/2 and 1/128: 2 to the mean of 1, 1 and 7 bits.
    assert metrics.perplexity(np.log([1 / 2, 1 / 2, 1 / 128])) == pytest.approx(8)
    assert metrics.perplexity([0.0]) == 1
    assert np.isnan(metrics.perplexity([]))


# Tables 4 and 16, and answers that begin one another: "1" begins "1969".
TEXTS = [
    ("June 14, 1928", "965 AD", "965 AD"),
    ("Emperor Hadrian", "Napoleon Bonaparte", "Hadrian, the Roman Emperor"),
    ("Randle McMurphy", "Achilles", "Not Achilles"),
    ("1", "1969", "1969"),
    ("Dominica", "Cuba", "Dominican Republic"),
    ("Paris", "London", ""),
    ("(D", "[D", "[D"),
    ("Paris", "Paris.", "Paris"),
]


def test_sources_and_kinds_by_both_rules():
    marked = mark(answered(TEXTS))
    assert_rows(
        marked.astype({"kind": float}),
        """
        source      kind  sound
        contextual  5     True
        parametric  1     True
        other       4     True
        contextual  5     True
        other       2     True
        none        NaN   False
        same        NaN   False
        same        NaN   False
        """,
    )
    assert_rows(
        metrics.by_code(marked).astype({"kind": float}),
        """
        source      kind
        contextual  NaN
        other       1
        other       4
        parametric  NaN
        parametric  NaN
        parametric  NaN
        contextual  NaN
        parametric  NaN
        """,
    )


def test_the_preference_of_the_thesiss_code():
    perplexities = frame("""
        p3   p4   preference
        2.0  1.1  contextual
        1.5  1.5  contextual
        2.0  2.5  parametric
        2.0  3.0  parametric
        1.5  NaN  contextual
    """)
    marked = mark(answered([("a", "b", "c")] * 5))
    by_code = metrics.by_code(marked.assign(**perplexities[["p3", "p4"]]))
    # In the first row the parametric answer may have the lower perplexity: it is not asked.
    assert by_code["preference"].tolist() == perplexities["preference"].tolist()


def test_what_is_the_same_is_in_no_share():
    rows = [("Paris", "London", "London"), ("Paris", "Paris.", "Paris"), ("Paris", "Rome", "Paris")]
    marked = mark(answered(rows))
    assert_rows(
        metrics.counts_by(marked),
        """
        source      share  total  n_missing
        parametric  0.5    2      1
        contextual  0.5    2      1
        other       0      2      1
        none        0      2      1
        """,
    )
    assert metrics.perplexity_table(marked, n_boot=10)["count"].tolist() == [1, 1]
    assert metrics.counts_by(metrics.by_code(marked))["total"].eq(3).all()


def test_what_an_answer_with_a_context_says():
    rows = answered([("Oslo", "Rome", text) for text in ("Oslo", "Rome.", "Lima")])
    labels = metrics.answer_source_label(rows.assign(correct=[True, False, False]))
    assert labels.tolist() == ["its memory", "the context", "something else"]


def test_marks_with_known_answers():
    rows = [("Holland", "Spain", "Netherlands"), ("Lima", "Holland", "the Netherlands")]
    table = answered([*rows, ("Lima", "Quito", "Cusco")])
    names = [["Netherlands", "Holland"], ["Spain"], []]
    # Holland and the Netherlands are one country for the whole base question.
    marked = mark(table, names)
    assert marked[["source", "parametric_correct", "correct"]].to_numpy().tolist() == [
        ["parametric", True, True],
        ["contextual", False, False],
        ["other", pd.NA, pd.NA],
    ]
    # If several answers are right, they are no names of one thing.
    several = mark(table, names, "several")
    assert several["source"].tolist() == ["other"] * 3
    assert several["kind"].tolist() == [6, 2, 6]


def of_sources(letters, **columns):
    """Answers from memory (p), the context (c), or neither (o)."""
    names = {"p": "parametric", "c": "contextual", "o": "other"}
    table = pd.DataFrame({"source": [*letters]}).replace(names)
    ids = [f"q{i}" for i in table.index]
    return table.assign(model="m", question_id=ids, **columns)


def test_counts_by_source():
    rows = of_sources("occp", category=[*"bbba"])
    # Exact: 0 of 4 has the upper bound that gives no hit in 4 with probability 0.025.
    none_of_4 = 1 - 0.025**0.25
    table = metrics.counts_by(rows)
    assert_rows(
        table,
        """
        source      count  share  total  n
        parametric  1      0.25   4      4
        contextual  2      0.5    4      4
        other       1      0.25   4      4
        none        0      0      4      4
        """,
    )
    assert_allclose(table.loc[3, ["low", "high"]].astype(float), [0, none_of_4])
    by = metrics.counts_by(rows, ["model", "category"])
    assert by["category"].tolist() == [*"bbbbaaaa"]
    assert by["count"].tolist() == [0, 2, 1, 0, 1, 0, 0, 0]


def test_rows_without_a_category_are_a_part_of_their_own_and_come_last():
    rows = of_sources("opc", category=[None, "b", "b"])
    table = metrics.counts_by(rows, ["category"])
    assert table["category"].isna().tolist() == [False] * 4 + [True] * 4
    assert table["count"].tolist() == [1, 1, 0, 0, 0, 0, 1, 0]


def test_counts_of_kinds_and_of_other_columns():
    rows = of_sources("oooo", kind=pd.array([5, 5, None, 2], dtype="Int64"), object=[*"xxyy"])
    table = metrics.counts_by(rows, value="kind")
    assert table["count"].tolist() == [0, 1, 0, 0, 2, 0, 0]
    assert table["total"].eq(3).all()
    assert table["n_missing"].eq(1).all()
    # Objects are resampled: both x, one each, both y.
    assert_rows(
        metrics.counts_by(rows, value="object", group="object", n_boot=10),
        """
        object  count  n  low  high
        x       2      2  0    1
        y       2      2  0    1
        """,
    )


def test_shares_of_printed_counts():
    counts = frame("""
        model  source      count
        m      other       0
        m      contextual  4
        k      other       3
    """)
    table = metrics.with_shares(counts)
    assert_rows(
        table,
        """
        total  n  share
        4      4  0
        4      4  1
        3      3  1
        """,
    )
    assert_allclose(table["low"], [0, 0.025**0.25, 0.025 ** (1 / 3)])
    assert_allclose(table["high"], [1 - 0.025**0.25, 1, 1])


def test_perplexities():
    rows = of_sources("cpccc", p4=[1.0, 4.0, 3.0, 2.0, np.nan])
    table = metrics.perplexity_table(rows)
    assert_rows(
        table,
        """
        source      count  mean  n  std  n_missing  5%   25%  50%  75%  95%
        parametric  1      4     1  NaN  0          4    4    4    4    4
        contextual  3      2     3  1    1          1.1  1.5  2    2.5  2.9
        """,
    )
    memory, grounded = table.to_dict("records")
    assert 1 <= grounded["low"] <= 2 <= grounded["high"] <= 3
    assert np.isnan(memory["low"])
