"""Token by token what `ask` has as perplexities, on a model whose numbers are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factrobust.probes import context
from factrobust.probes.context_tokens import answer_tokens

PEOPLE = {"Ann": 30, "Bob": 31}
STATED = "Context: [{name} likes {food}]. Q: What does {name} like? A: {name} likes"
# Only the last token counts, so a prompt with context is one token.
TABLE = {
    " Ann likes": {" blue": 0.8, " J": 0.2},
    " blue": {"berries": 0.6, "fish": 0.4},
    "berries": {".": 1.0},
    " Bob likes": {" J": 0.6, " blue": 0.4},
    " J": {".": 1.0},
    ".": {" ": 0.7, "\n": 0.3},
    " ": {"Smith": 1.0},
    "Smith": {"\n": 1.0},
    STATED.format(name="Ann", food="J. Smith"): {" J": 0.9, " blue": 0.1},
    STATED.format(name="Bob", food="blueberries"): {" blue": 0.75, " J": 0.25},
}


@pytest.fixture
def questions() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "question_id": [f"likes/{name.lower()}" for name in PEOPLE],
            "category": "person",
            "base_id": "likes",
            "object": list(PEOPLE),
            "question": [f"What does {name} like?" for name in PEOPLE],
            "prefix": [f"{name} likes" for name in PEOPLE],
        },
        index=list(PEOPLE.values()),
    )


@pytest.fixture(scope="module")
def toy(toy_model: Callable[..., Any]) -> Any:
    return toy_model(TABLE)


def test_tokens_of_both_answers(toy: Any, questions: pd.DataFrame) -> None:
    results = context.ask(toy, questions)
    ann = results.iloc[0]
    assert ann[["parametric", "counterfactual"]].tolist() == ["blueberries", "J. Smith"]
    table = answer_tokens(toy, questions, ann)
    by = {
        key: list(part[["position", "token", "probability"]].itertuples(index=False, name=None))
        for key, part in table.groupby(["answer", "context"], sort=False)
    }
    rest = [(2, ".", 1.0), (3, " ", 0.7), (4, "Smith", 1.0)]
    expected = {
        ("parametric", False): [(1, " blue", 0.8), (2, "berries", 0.6)],
        ("parametric", True): [(1, " blue", 0.1), (2, "berries", 0.6)],
        ("counterfactual", False): [(1, " J", 0.2), *rest],
        ("counterfactual", True): [(1, " J", 0.9), *rest],
    }
    assert list(by) == list(expected)
    for key, rows in expected.items():
        assert [row[:2] for row in by[key]] == [row[:2] for row in rows]
        assert [row[2] for row in by[key]] == pytest.approx([row[2] for row in rows])
    perplexities = [
        2 ** np.mean(-np.log2([p for *_, p in rows])) for rows in by.values()
    ]  # in the order p0, p2, p1, p3
    assert perplexities == pytest.approx(ann[["p0", "p2", "p1", "p3"]].tolist())


def test_answers_that_the_model_does_not_give(toy: Any, questions: pd.DataFrame) -> None:
    ann = context.ask(toy, questions).iloc[0]
    for changed in ({"parametric": "fish"}, {"counterfactual": "Lima"}, {"question_id": "x"}):
        with pytest.raises(ValueError, match="toy does not give the answers of"):
            answer_tokens(toy, questions, pd.Series(ann.to_dict() | changed))
