"""Results that were computed elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factrobust.probes.context import read_results
from factrobust.probes.context_results import COLUMNS
from factrobust.tables import FactsError

# Two lines as the thesis's program writes them; the second answer is empty.
THESIS = (
    "Num,Category,Base_Question,Thing,Question,Prefix,parametric,base_proba,counterfactual,"
    "base_cf_proba,contextual,ctx_proba,ctx_param_proba,ctx_cf_proba,comparison,preference,\n"
    "0,person,Who is {person}?,Ada Lovelace,Q: Who is Ada Lovelace?,She is,a poet,1.5,a singer,"
    "2.5,a singer,1.25,3.5,1.25,Contextual,Contextual,\n"
    '1,person,Who is {person}?,Zeus,Q: Who is Zeus?,He is,,nan,"a poet, \nborn",2,a god,1,,1.75,'
    "Parametric,Contextual,\n"
)
OURS = "category,base_id,object,parametric,counterfactual,contextual,p0,p1,p2,p3\n"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str, name: str = "llama.csv") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_the_thesis_own_columns(write: Write) -> None:
    table = read_results(write(THESIS))
    assert tuple(table)[: len(COLUMNS)] == COLUMNS
    assert list(table)[len(COLUMNS) :] == ["question", "prefix"]
    assert table["model"].tolist() == ["llama", "llama"]
    assert table.loc[0, "question_id"] == "Who is {person}?/ada-lovelace"
    assert table.loc[0, ["p0", "p1", "p2", "p3", "p4"]].tolist() == [1.5, 2.5, 3.5, 1.25, 1.25]
    zeus = table.loc[1]
    assert zeus[["category", "base_id", "object", "parametric"]].tolist() == [
        *("person", "Who is {person}?", "Zeus", "")
    ]
    np.testing.assert_array_equal(
        zeus[["p0", "p1", "p2", "p3", "p4"]].astype(float), [np.nan, 2, np.nan, 1.75, 1]
    )
    assert table["n_tokens_parametric"].isna().all()
    assert table["first_shift"].isna().all()
    assert table.attrs["counts"] == {
        "questions": 2,
        "empty_parametric": 1,
        "empty_counterfactual": 0,
        "empty_contextual": 0,
    }
    assert read_results(write(THESIS), model="Llama 8B")["model"].unique().tolist() == ["Llama 8B"]


def test_the_column_that_the_listing_leaves_empty(write: Write) -> None:
    """It names a column Thing and fills Object; the stored files have it the other way round."""
    text = THESIS.replace(",Thing,", ",Object,")
    assert read_results(write(text))["object"].tolist() == ["Ada Lovelace", "Zeus"]
    lines = text.replace("Num,", "Thing,", 1).replace("\n0,", "\n,").replace("\n1,", "\n,")
    assert read_results(write(lines))["object"].tolist() == ["Ada Lovelace", "Zeus"]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_our_own_table_comes_back(tmp_path: Path, form: str) -> None:
    row = ["m", "b/x", "c", "b", "x", "Oslo", "Rome", "", 1.5, 2.0, 3.0, 4.5, np.nan, 1, 2]
    other = ["n", "b/y", "c", "b", "y", "", "Oslo", "Rome", np.nan, 2.0, np.nan, 1.0, 7.0, 0, 1]
    table = pd.DataFrame(
        [[*row, 0.1, 0.2, 0.3], [*other, np.nan, 0.5, np.nan]], columns=list(COLUMNS)
    ).assign(correct=[True, False])
    path = tmp_path / f"results.{form}"
    table.to_csv(path, index=False) if form == "csv" else table.to_parquet(path)
    back = read_results(path)
    kinds = {name: back[name].dtype for name in ("n_tokens_parametric", "n_tokens_counterfactual")}
    expected = table.astype(kinds)
    if form == "csv":
        expected["correct"] = ["True", "False"]
    pd.testing.assert_frame_equal(back, expected)


def test_an_answer_without_letters_may_lack_its_perplexity(write: Write) -> None:
    assert np.isnan(read_results(write(OURS + "c,b,x,:,Rome,Rome,,1,,1\n")).loc[0, "p2"])


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (
            "base_cf_proba,",
            "cf,",
            r"llama.csv: these columns are missing: p1 \(base_cf_proba\); add",
        ),
        ("counterfactual,", "other,", r"these columns are missing: counterfactual; add them, by"),
        ("2.5,", "nan,", r"line 2: the perplexity p1 of the counterfactual answer 'a singer' is n"),
        ("2.5,", ",", "line 2: the perplexity p1 of .* is missing, and not a number from 1 up"),
        ("3.5,", "often,", r"line 2: the perplexity p2 of the parametric answer 'a poet' is often"),
        ("a god,1,", "a god,0.9,", "line 3: the perplexity p4 of the contextual answer 'a god' is"),
    ],
)
def test_a_bad_file_gives_one_sentence(write: Write, old: str, new: str, what: str) -> None:
    with pytest.raises(FactsError, match=what) as caught:
        read_results(write(THESIS.replace(old, new, 1)))
    assert "\n" not in str(caught.value)


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "results.parquet"
    with pytest.raises(FactsError, match=r"results.parquet cannot be read"):
        read_results(path)
    frame = pd.DataFrame([["c", "b", "x", "Oslo", None, "Rome", 1.0, None, None, 1.0]])
    frame.columns = pd.Index(OURS.strip().split(","))
    frame.to_parquet(path)
    with pytest.raises(FactsError, match=r"row 1: the perplexity p2 .* 'Oslo' is missing,"):
        read_results(path)
