"""Memory or context, by both rules, on the thesis's examples and on hand-made rows."""

import numpy as np
import pandas as pd
import pytest

from factrobust.context import metrics


def answered(rows: list[tuple[str, str, str]], **columns: object) -> pd.DataFrame:
    """Rows of parametric, counterfactual and contextual answers, question q0, q1, ..."""
    table = pd.DataFrame(rows, columns=["parametric", "counterfactual", "contextual"])
    ids = [f"q{i}" for i in range(len(rows))]
    given = {"model": "m", "question_id": ids, "base_id": "b", "p3": 1.2, "p4": 1.2}
    return table.assign(**given | columns)


def mark(table: pd.DataFrame, answers: list = (), right_answers: str = "one") -> pd.DataFrame:
    """Marked by our rules, with these accepted answers, or unknown ones."""
    questions = table[["question_id", "base_id"]].assign(right_answers=right_answers)
    questions["answers"] = pd.Series(list(answers) or [[]] * len(table), dtype=object)
    return metrics.mark_sources(table, questions)


def test_perplexity_by_hand() -> None:
    # Tokens of probability 1/2, 1/2 and 1/128: 2 to the mean of 1, 1 and 7 bits.
    assert metrics.perplexity(np.log([1 / 2, 1 / 2, 1 / 128])) == pytest.approx(8)
    assert metrics.perplexity([0.0]) == 1
    assert np.isnan(metrics.perplexity([]))


@pytest.mark.parametrize(
    ("texts", "code", "ours", "kind", "kind_by_code"),
    [
        (("June 14, 1928", "965 AD", "965 AD"), "contextual", "contextual", 5, None),  # table 4
        (
            ("Emperor Hadrian", "Napoleon Bonaparte", "Hadrian, the Roman Emperor"),
            *("other", "parametric", 1, 1),  # table 16
        ),
        (("Randle McMurphy", "Achilles", "Not Achilles"), "other", "other", 4, 4),
        (("1", "1969", "1969"), "parametric", "contextual", 5, None),  # "1" begins "1969"
        (("Dominica", "Cuba", "Dominican Republic"), "parametric", "other", 2, None),
        (("Paris", "London", ""), "parametric", "none", None, None),
        (("(D", "[D", "[D"), "contextual", "same", None, None),
        (("Paris", "Paris.", "Paris"), "parametric", "same", None, None),
    ],
)
def test_sources_and_kinds_by_both_rules(texts, code, ours, kind, kind_by_code) -> None:
    [row] = mark(answered([texts])).to_dict("records")
    assert row["source"] == ours
    assert row["sound"] == (ours not in ("none", "same"))
    [by_code] = metrics.by_code(mark(answered([texts]))).to_dict("records")
    assert by_code["source"] == code
    for found, expected in ((row["kind"], kind), (by_code["kind"], kind_by_code)):
        assert pd.isna(found) if expected is None else found == expected


def test_the_preference_of_the_thesiss_code() -> None:
    table = answered([("a", "b", "c")] * 5, p3=[2.0, 1.5, 2.0, 2.0, 1.5])
    marked = metrics.by_code(mark(table.assign(p4=[1.1, 1.5, 2.5, 3.0, np.nan])))
    # In the first row the parametric answer may have the lower perplexity: it is not asked.
    found = ["contextual", "contextual", "parametric", "parametric", "contextual"]
    assert marked["preference"].tolist() == found


def test_what_is_the_same_is_in_no_share() -> None:
    rows = [("Paris", "London", "London"), ("Paris", "Paris.", "Paris"), ("Paris", "Rome", "Paris")]
    marked = mark(answered(rows))
    table = metrics.counts_by(marked)
    assert table["share"].tolist() == [0.5, 0.5, 0, 0]
    assert table[["total", "n_missing"]].eq([2, 1]).all(axis=None)
    assert metrics.perplexity_table(marked, n_boot=10)["count"].tolist() == [1, 1]
    assert metrics.counts_by(metrics.by_code(marked))["total"].eq(3).all()


def test_what_an_answer_with_a_context_says() -> None:
    rows = answered([("Oslo", "Rome", text) for text in ("Oslo", "Rome.", "Lima")])
    said = metrics.answer_source_label(rows.assign(correct=[True, False, False]))
    assert said.tolist() == ["its memory", "the context", "something else"]


def test_marks_with_known_answers() -> None:
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


def of_sources(sources: str, **columns: object) -> pd.DataFrame:
    letters = {"p": "parametric", "c": "contextual", "o": "other"}
    table = pd.DataFrame({"source": [letters[letter] for letter in sources]})
    ids = [f"q{i}" for i in range(len(sources))]
    return table.assign(model="m", question_id=ids, **columns)


def test_counts_by_source() -> None:
    rows = of_sources("occp", category=list("bbba"))
    table = metrics.counts_by(rows, n_boot=200)
    assert table[["source", "count", "share", "total", "n"]].to_numpy().tolist() == [
        ["parametric", 1, 0.25, 4, 4],
        ["contextual", 2, 0.5, 4, 4],
        ["other", 1, 0.25, 4, 4],
        ["none", 0, 0, 4, 4],
    ]
    # Exact: 0 of 4 has the upper bound that gives no hit in 4 with probability 0.025.
    assert table.loc[3, ["low", "high"]].tolist() == pytest.approx([0, 1 - 0.025**0.25])
    by = metrics.counts_by(rows, ["model", "category"], n_boot=10)
    assert by["category"].tolist() == ["b"] * 4 + ["a"] * 4
    assert by["count"].tolist() == [0, 2, 1, 0, 1, 0, 0, 0]


def test_counts_of_kinds_and_of_other_columns() -> None:
    rows = of_sources("oooo", kind=pd.array([5, 5, None, 2], dtype="Int64"), object=list("xxyy"))
    table = metrics.counts_by(rows, value="kind", n_boot=10)
    assert table["count"].tolist() == [0, 1, 0, 0, 2, 0, 0]
    assert table[["total", "n_missing"]].eq([3, 1]).all(axis=None)
    table = metrics.counts_by(rows, value="object", group="object", n_boot=10)
    # Objects are resampled: both x, one each, both y.
    found = table[["object", "count", "n", "low", "high"]].to_numpy().tolist()
    assert found == [["x", 2, 2, 0, 1], ["y", 2, 2, 0, 1]]


def test_shares_of_printed_counts() -> None:
    counts = pd.DataFrame({"source": ["other", "contextual", "other"], "count": [0, 4, 3]})
    table = metrics.shares(counts.assign(model=list("mmk")))
    assert table[["total", "n", "share"]].values.tolist() == [[4, 4, 0], [4, 4, 1], [3, 3, 1]]
    assert table["low"].tolist() == pytest.approx([0, 0.025**0.25, 0.025 ** (1 / 3)])
    assert table["high"].tolist() == pytest.approx([1 - 0.025**0.25, 1, 1])


def test_perplexities() -> None:
    table = metrics.perplexity_table(of_sources("cpccc", p4=[1.0, 4.0, 3.0, 2.0, np.nan]))
    assert table["source"].tolist() == ["parametric", "contextual"]
    memory, grounded = table.to_dict("records")
    numbers = ["count", "mean", "n", "std", "n_missing", "5%", "25%", "50%", "75%", "95%"]
    found = [grounded[name] for name in numbers]
    assert found == pytest.approx([3, 2, 3, 1, 1, 1.1, 1.5, 2, 2.5, 2.9])
    assert 1 <= grounded["low"] <= 2 <= grounded["high"] <= 3
    assert (memory["count"], memory["mean"]) == (1, 4)
    assert np.isnan([memory["low"], memory["std"]]).all()
