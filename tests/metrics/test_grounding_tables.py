"""Counts by source, kind, perplexity and degeneracy, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import grounding_tables as tables


def marked(sources: list[str], **columns: object) -> pd.DataFrame:
    ids = [f"q{i}" for i in range(len(sources))]
    return pd.DataFrame({"model": "m", "question_id": ids, "source": sources}).assign(**columns)


def test_counts_by_source() -> None:
    rows = marked(["other", "contextual", "contextual", "parametric"], category=list("bbba"))
    table = tables.counts_by(rows, n_boot=200)
    assert table["source"].tolist() == ["parametric", "contextual", "other", "empty"]
    assert table["count"].tolist() == [1, 2, 1, 0]
    assert table["share"].tolist() == [0.25, 0.5, 0.25, 0]
    assert table["total"].tolist() == table["n"].tolist() == [4] * 4
    assert (table["low"] <= table["share"]).all()
    assert (table["high"] >= table["share"]).all()
    # 0 of 4: the upper bound is the share that gives no hit in 4 with probability 0.025.
    assert table.loc[3, ["low", "high"]].tolist() == pytest.approx([0, 1 - 0.025**0.25])
    by = tables.counts_by(rows, ["model", "category"], n_boot=10)
    assert by["category"].tolist() == ["b"] * 4 + ["a"] * 4
    assert by["count"].tolist() == [0, 2, 1, 0, 1, 0, 0, 0]


def test_counts_of_kinds_leave_out_what_has_none() -> None:
    rows = marked(["other"] * 4, kind=pd.array([5, 5, None, 2], dtype="Int64"))
    table = tables.counts_by(rows, value="kind", n_boot=10)
    assert table["kind"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert table["count"].tolist() == [0, 1, 0, 0, 2, 0, 0]
    assert table["share"].sum() == pytest.approx(1)
    assert table["total"].eq(3).all()
    assert table["n_missing"].eq(1).all()


def test_counts_of_objects_and_other_columns() -> None:
    rows = marked(
        ["other"] * 4, object=["x", "x", "y", "y"], preference=["tie", None, "tie", "tie"]
    )
    table = tables.counts_by(rows, value="object", group="object", n_boot=10)
    assert table["object"].tolist() == ["x", "y"]
    assert table["count"].tolist() == [2, 2]
    assert table["n"].tolist() == [2, 2]  # objects are resampled: both x, one each, both y
    assert table[["low", "high"]].to_numpy().tolist() == [[0, 1], [0, 1]]
    preferred = tables.counts_by(rows, value="preference", group=None, n_boot=10)
    assert preferred["count"].tolist() == [0, 0, 3]
    assert preferred["n_missing"].tolist() == [1, 1, 1]


def test_shares_of_printed_counts() -> None:
    counts = pd.DataFrame(
        {"model": ["m", "m", "k"], "source": ["other", "contextual", "other"], "count": [0, 4, 3]}
    )
    table = tables.shares(counts)
    assert table["total"].tolist() == table["n"].tolist() == [4, 4, 3]
    assert table["share"].tolist() == [0, 1, 1]
    assert table["low"].tolist() == pytest.approx([0, 0.025**0.25, 0.025 ** (1 / 3)])
    assert table["high"].tolist() == pytest.approx([1 - 0.025**0.25, 1, 1])


def test_perplexities() -> None:
    sources = ["contextual", "parametric", "contextual", "contextual", "contextual"]
    rows = marked(sources, p4=[1.0, 4.0, 3.0, 2.0, np.nan])
    table = tables.perplexity_table(rows, n_boot=100)
    assert table["source"].tolist() == ["parametric", "contextual"]  # in the order of SOURCES
    context = table.iloc[1]
    assert context[["count", "mean", "n", "std", "n_missing"]].tolist() == [3, 2, 3, 1, 1]
    assert context[["25%", "50%", "75%"]].tolist() == [1.5, 2, 2.5]
    assert 1 <= context["low"] <= 2 <= context["high"] <= 3
    alone = table.iloc[0]
    assert alone[["count", "mean"]].tolist() == [1, 4]
    assert alone[["low", "high", "std"]].isna().all()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        (" ...", "empty"),
        ("the", "empty"),
        (None, "empty"),
        (float("nan"), "empty"),
        ("d", "option"),
        ("D.", "option"),
        ("(D", "option"),
        ("[D]])]))))))))))))", "option"),
        ("[4", "option"),
        ("(iv)", "option"),
        ("b)", "option"),
        ("A: Jazz B: Rock", "marks"),
        ("called: A: a", "marks"),
        ("Zn: 30", None),
        ("at 10:30", None),
        ("iv", "short"),
        ("no", "short"),
        ("U.S.", "short"),
        ("Au", "short"),
        ("5", None),
        ("79", None),
        ("(Paris)", None),
        ("(c) Paris", None),
        ("Lima", None),
    ],
)
def test_degeneracy(text: object, why: str | None) -> None:
    assert tables.degeneracy(text) == why


def test_degenerate_counts() -> None:
    rows = pd.DataFrame(
        {
            "model": ["m", "m", "n"],
            "parametric": ["[D", "", "Paris"],
            "counterfactual": ["no", "Rome", "Oslo"],
            "contextual": ["Rome A: Lima", "Rome", "Oslo"],
        }
    )
    table = tables.degenerate_counts(rows).set_index(["model", "answer"])
    columns = ["empty", "option", "marks", "short", "degenerate", "n", "share"]
    assert table.loc[("m", "parametric"), columns].tolist() == [1, 1, 0, 0, 2, 2, 1]
    assert table.loc[("m", "counterfactual"), columns].tolist() == [0, 0, 0, 1, 1, 2, 0.5]
    assert table.loc[("n", "parametric"), columns].tolist() == [0, 0, 0, 0, 0, 1, 0]
    assert table.loc[("m", "contextual"), columns].tolist() == [0, 0, 1, 0, 1, 2, 0.5]
    assert len(table) == 6


def test_p0_below_p1_is_no_theorem() -> None:
    # A greedy first token of probability 0.6, then 0.1 at best: the mean is beaten by 0.4, then 1.
    p0, p1 = (0.6 * 0.1) ** -0.5, (0.4 * 1.0) ** -0.5
    rows = pd.DataFrame(
        {
            "model": "m",
            "p0": [p0, 1.2, 1.5, np.nan],
            "p1": [p1, 1.9, 1.5, 2.0],
            "n_tokens_parametric": [2, 1, 1, 0],
            "n_tokens_counterfactual": [2, 1, 1, 1],
        }
    )
    table = tables.p0_exceptions(rows)
    columns = ["tokens", "n", "exceptions", "share", "n_missing"]
    assert table[columns].to_numpy().tolist() == [["more", 1, 1, 1, 1], ["one each", 2, 0, 0, 0]]
    unknown = tables.p0_exceptions(rows[["model", "p0", "p1"]])
    assert unknown[columns].to_numpy().tolist() == [["unknown", 3, 1, 1 / 3, 1]]
    # Numbers of tokens that a file does not tell.
    untold = rows.assign(n_tokens_parametric=pd.array([pd.NA] * 4, dtype="Int64"))
    pd.testing.assert_frame_equal(tables.p0_exceptions(untold), unknown)
