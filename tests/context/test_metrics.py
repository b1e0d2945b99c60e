"""Memory or context, by both rules, on the thesis's examples and on hand-made rows."""

import numpy as np
import pandas as pd
import pytest

from factrobust.context import metrics
from factrobust.context.metrics import mark_sources, preference
from factrobust.context.rules import right


def results(rows: list[tuple[str, str, str]], **columns: object) -> pd.DataFrame:
    """Rows of parametric, counterfactual and contextual answers, question q0, q1, ..."""
    table = pd.DataFrame(rows, columns=["parametric", "counterfactual", "contextual"])
    ids = [f"q{i}" for i in range(len(rows))]
    given = {
        "model": "m",
        "question_id": ids,
        "category": "c",
        "base_id": "b",
        "object": ids,
    }
    perplexities = {
        "p0": 1.5,
        "p1": 4.0,
        "p2": 3.0,
        "p3": 1.2,
        "p4": 1.2,
    }
    return table.assign(**given | perplexities | columns)


def asked_about(table: pd.DataFrame, **columns: object) -> pd.DataFrame:
    """The questions of the rows, without known answers."""
    ids = table["question_id"].unique()
    values = {"base_id": "b", "answers": [[]] * len(ids), "right_answers": "one"}
    return pd.DataFrame({"question_id": ids}).assign(**values | columns)


def mark(table: pd.DataFrame, *rule: str, **columns: object) -> pd.DataFrame:
    return mark_sources(table, asked_about(table, **columns), *rule)


def test_perplexity_by_hand() -> None:
    # Tokens of probability 1/2, 1/2 and 1/128: 2 to the mean of 1, 1 and 7 bits.
    assert metrics.perplexity(np.log([1 / 2, 1 / 2, 1 / 128])) == pytest.approx(8)
    assert metrics.perplexity([0.0]) == 1
    assert np.isnan(metrics.perplexity([]))


@pytest.mark.parametrize(
    ("parametric", "counterfactual", "contextual", "published", "robust"),
    [
        ("June 14, 1928", "965 AD", "965 AD", "contextual", "contextual"),  # table 4
        (
            "Emperor Hadrian",
            "Napoleon Bonaparte",
            "Hadrian, the Roman Emperor",
            "other",
            "parametric",
        ),  # table 16
        ("Randle McMurphy", "Achilles", "Not Achilles", "other", "other"),
        ("1", "1969", "1969", "parametric", "contextual"),  # "1" begins "1969"
        ("Paris", "London", "", "parametric", "none"),
        ("(D", "[D", "[D", "contextual", "same"),
        ("Paris", "Paris.", "Paris", "parametric", "same"),
    ],
)
def test_sources(parametric, counterfactual, contextual, published, robust) -> None:
    table = results([(parametric, counterfactual, contextual)])
    marked = mark(table)
    assert marked["source"].tolist() == [robust]
    assert marked["sound"].tolist() == [robust not in ("none", "same")]
    assert mark(table, "published")["source"].tolist() == [published]


def test_what_is_the_same_is_in_no_share() -> None:
    rows = [
        ("Paris", "London", "London"),
        ("Paris", "Paris.", "Paris"),
        ("Paris", "Rome", "Paris"),
    ]
    marked = mark(results(rows))
    assert marked["source"].tolist() == ["contextual", "same", "parametric"]
    assert marked["preference"].tolist() == ["contextual", None, "contextual"]
    for value, shares in (("source", [0.5, 0.5, 0, 0]), ("preference", [0, 1, 0])):
        table = metrics.counts_by(marked, value=value)
        assert table["share"].tolist() == shares
        assert table[["total", "n_missing"]].eq([2, 1]).all(axis=None)
    assert metrics.perplexity_table(marked, n_boot=10)["count"].tolist() == [1, 1]
    assert metrics.counts_by(mark(results(rows), "published"))["total"].eq(3).all()


def test_kinds_of_what_either_rule_calls_other() -> None:
    rows = [
        ("Paris", "London", "London"),
        ("Emperor Hadrian", "Napoleon", "Hadrian, the Roman Emperor"),
        ("Randle McMurphy", "Achilles", "Not Achilles"),
        ("Dominica", "Cuba", "Dominican Republic"),  # published: parametric
        ("Paris", "London", ""),
    ]
    robust = mark(results(rows))
    published = mark(results(rows), "published")
    assert robust["kind"].tolist() == [pd.NA, 1, 4, 2, pd.NA]
    assert published["kind"].tolist() == [pd.NA, 1, 4, pd.NA, pd.NA]
    assert robust["kind"].dtype == "Int64"


def test_what_an_answer_with_a_context_says() -> None:
    rows = results(
        [
            ("Oslo", "Rome", "Oslo"),
            ("Oslo", "Rome", "Rome."),
            ("Oslo", "Rome", "Lima"),
        ]
    )
    rows["correct"] = pd.array([True, False, False], dtype="boolean")
    assert metrics.answer_source_label(rows).tolist() == [
        "its memory",
        "the context",
        "something else",
    ]


def test_preference() -> None:
    nan = np.nan
    table = results([("a", "b", "c")] * 5, p2=[1.1, 3.0, 2.0, nan, 1.1])
    table = table.assign(p3=[2.0, 1.5, 2.0, 2.0, 1.5], p4=[1.1, 1.5, 2.5, 3.0, nan])
    text = ["parametric", "contextual", "tie", None, "parametric"]
    assert preference(table).tolist() == text
    # The greedy parametric answer of the first row has the lower perplexity: "contextual".
    code = ["contextual", "contextual", "parametric", "parametric", "contextual"]
    assert preference(table, "published").tolist() == code
    assert mark(table, "published")["preference"].tolist() == code
    assert mark(table)["preference"].tolist() == text
    with pytest.raises(KeyError, match="loose"):
        preference(table, "loose")


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
    assert right(text, answers) is is_right


def test_marks_with_known_answers() -> None:
    rows = [("Holland", "Spain", "Netherlands"), ("Lima", "Holland", "the Netherlands")]
    rows += [("Lima", "Quito", "Cusco")]
    names = [["Netherlands", "Holland"], ["Spain"], []]
    marked = mark(results(rows), answers=names)
    # Holland and the Netherlands are one country for the whole base question
    columns = ["source", "parametric_correct", "counterfactual_correct", "correct"]
    assert marked[columns].to_numpy().tolist() == [
        ["parametric", True, False, True],
        ["contextual", False, False, False],
        ["other", pd.NA, pd.NA, pd.NA],
    ]
    assert marked["correct"].dtype == "boolean"
    # If several answers are right, they are no names of one thing
    several = mark(results(rows), answers=names, right_answers="several")
    assert several["source"].tolist() == ["other"] * 3
    assert several["kind"].tolist() == [6, 2, 6]
    assert mark(results(rows))["correct"].isna().all()


def marked(sources: list[str], **columns: object) -> pd.DataFrame:
    ids = [f"q{i}" for i in range(len(sources))]
    return pd.DataFrame({"model": "m", "question_id": ids, "source": sources}).assign(**columns)


def test_counts_by_source() -> None:
    rows = marked(["other", "contextual", "contextual", "parametric"], category=list("bbba"))
    table = metrics.counts_by(rows, n_boot=200)
    assert table[["source", "count", "share", "total", "n"]].to_numpy().tolist() == [
        *(["parametric", 1, 0.25, 4, 4], ["contextual", 2, 0.5, 4, 4]),
        *(["other", 1, 0.25, 4, 4], ["none", 0, 0, 4, 4]),
    ]
    assert ((table["low"] <= table["share"]) & (table["share"] <= table["high"])).all()
    # 0 of 4: the upper bound is the share that gives no hit in 4 with probability 0.025.
    assert table.loc[3, ["low", "high"]].tolist() == pytest.approx([0, 1 - 0.025**0.25])
    by = metrics.counts_by(rows, ["model", "category"], n_boot=10)
    assert by["category"].tolist() == ["b"] * 4 + ["a"] * 4
    assert by["count"].tolist() == [0, 2, 1, 0, 1, 0, 0, 0]


def test_counts_of_kinds_leave_out_what_has_none() -> None:
    rows = marked(["other"] * 4, kind=pd.array([5, 5, None, 2], dtype="Int64"))
    table = metrics.counts_by(rows, value="kind", n_boot=10).set_index("kind")
    assert table["count"].to_dict() == {
        1: 0,
        2: 1,
        3: 0,
        4: 0,
        5: 2,
        6: 0,
        7: 0,
    }
    assert table["share"].sum() == pytest.approx(1)
    assert table[["total", "n_missing"]].eq([3, 1]).all(axis=None)
    # Objects and other columns can be counted, too.
    rows = marked(["other"] * 4, object=list("xxyy"), preference=["tie", None, "tie", "tie"])
    table = metrics.counts_by(
        rows,
        value="object",
        group="object",
        n_boot=10,
    )
    # Objects are resampled: both x, one each, both y.
    columns = ["object", "count", "n", "low", "high"]
    assert table[columns].to_numpy().tolist() == [["x", 2, 2, 0, 1], ["y", 2, 2, 0, 1]]
    preferred = metrics.counts_by(rows, value="preference", n_boot=10)
    assert preferred["count"].tolist() == [0, 0, 3]
    assert preferred["n_missing"].tolist() == [1, 1, 1]


def test_shares_of_printed_counts() -> None:
    counts = pd.DataFrame({"source": ["other", "contextual", "other"], "count": [0, 4, 3]})
    table = metrics.shares(counts.assign(model=list("mmk")))
    assert table[["total", "n", "share"]].values.tolist() == [
        [4, 4, 0],
        [4, 4, 1],
        [3, 3, 1],
    ]
    assert table["low"].tolist() == pytest.approx([0, 0.025**0.25, 0.025 ** (1 / 3)])
    assert table["high"].tolist() == pytest.approx([1 - 0.025**0.25, 1, 1])


def test_perplexities() -> None:
    sources = ["contextual", "parametric", "contextual", "contextual", "contextual"]
    rows = marked(sources, p4=[1.0, 4.0, 3.0, 2.0, np.nan])
    table = metrics.perplexity_table(rows, n_boot=100)
    assert table["source"].tolist() == ["parametric", "contextual"]  # in the order of SOURCES
    grounded = table.iloc[1]
    assert grounded[["count", "mean", "n", "std", "n_missing"]].tolist() == [3, 2, 3, 1, 1]
    assert grounded[["5%", "25%", "50%", "75%", "95%"]].tolist() == [1.1, 1.5, 2, 2.5, 2.9]
    assert 1 <= grounded["low"] <= 2 <= grounded["high"] <= 3
    alone = table.iloc[0]
    assert alone[["count", "mean"]].tolist() == [1, 4]
    assert alone[["low", "high", "std"]].isna().all()


def test_p0_below_p1_is_no_theorem() -> None:
    # A greedy first token of probability 0.6, then 0.1 at best: the mean is beaten by 0.4, then 1.
    p0 = (0.6 * 0.1) ** -0.5
    p1 = (0.4 * 1.0) ** -0.5
    rows = pd.DataFrame({"p0": [p0, 1.2, 1.5, np.nan, 1], "p1": [p1, 1.9, 1.5, 2.0, 2]})
    rows["model"] = "m"
    rows = rows.assign(n_tokens_parametric=[2, 1, 1, 0, 1], n_tokens_counterfactual=[2, 1, 1, 1, 2])
    table = metrics.p0_exceptions(rows)
    columns = ["tokens", "n", "exceptions", "share", "n_missing"]
    assert table[columns].to_numpy().tolist() == [["as many", 3, 1, 1 / 3, 0], ["not", 1, 0, 0, 1]]
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx([0.0084, 0.9057], abs=1e-4)
