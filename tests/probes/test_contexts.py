"""True, irrelevant and false contexts: what they state, and what is never drawn."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.contexts import facts_as_questions
from factrobust.datasets.facts import load_facts
from factrobust.metrics.grounding import right
from factrobust.models.interface import LacksError
from factrobust.probes.context_results import COLUMNS
from factrobust.probes.contexts import KINDS, ask_known, known_contexts, need_right


def table(answers: dict[str, list[str]], base: str = "capital") -> pd.DataFrame:
    """Questions about the capitals of countries with these accepted answers."""
    rows = [
        (f"{base}/{name}", base, f"The {base} of {name} is", accepted)
        for name, accepted in answers.items()
    ]
    return pd.DataFrame(rows, columns=["question_id", "base_id", "prefix", "answers"])


CAPITALS = table({"Kenya": ["Nairobi"], "Peru": ["Lima", "Ciudad de los Reyes"]})


def test_contexts_by_hand() -> None:
    made = known_contexts(CAPITALS)
    assert made.columns.tolist() == ["question_id", *KINDS, "other", "stated"]
    assert made.iloc[0].to_dict() == {
        "question_id": "capital/Kenya",
        "true": "The capital of Kenya is Nairobi",
        "irrelevant": "The capital of Peru is Lima",
        "false": "The capital of Kenya is Lima",
        "other": "capital/Peru",
        "stated": ["Lima", "Ciudad de los Reyes"],
    }
    assert made.iloc[1][["false", "other"]].tolist() == [
        "The capital of Peru is Nairobi",
        "capital/Kenya",
    ]


def test_other_facts_come_from_the_pool_of_the_same_relation() -> None:
    pool = pd.concat([CAPITALS, table({"Kenya": ["Swahili"], "Peru": ["Spanish"]}, "language")])
    made = known_contexts(CAPITALS.iloc[:1], pool)
    assert made["other"].tolist() == ["capital/Peru"]


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        (["Naples"], ["the naples"]),  # the same but for case and articles
        (["Burma"], ["Myanmar", "Burma"]),  # mine is another name of the other
        (["Myanmar", "Burma"], ["Burma"]),  # the other is another name of mine
        (["1,000"], ["1000"]),
        (["Washington"], ["Washington, D.C."]),  # the other one states mine
    ],
)
def test_an_answer_that_would_be_right_is_never_drawn(mine: list[str], other: list[str]) -> None:
    questions = table({"a": mine, "b": other, "c": ["Lima"]})
    for seed in range(20):
        drawn = known_contexts(questions, seed=seed).set_index("question_id")["other"]
        assert drawn["capital/a"] == "capital/c"
        assert drawn["capital/b"] == "capital/c"
    with pytest.raises(ValueError, match="to capital/a there is no other fact of 'capital' with"):
        known_contexts(questions.iloc[:2])


def test_every_other_fact_is_drawn_equally_often() -> None:
    questions = table({name: [f"City{name}"] for name in "abcde"})
    drawn = Counter(
        known_contexts(questions.iloc[:1], questions, seed=seed)["other"].item()
        for seed in range(2000)
    )
    assert set(drawn) == {f"capital/{name}" for name in "bcde"}
    assert all(abs(n - 500) < 80 for n in drawn.values())  # four standard deviations


def test_a_draw_depends_on_the_facts_only() -> None:
    pool = facts_as_questions(load_facts(relations=["capital", "author"]))
    asked = pool[pool["question_id"].isin(load_facts(limit=120)["fact_id"])]
    made = known_contexts(asked, pool).set_index("question_id")
    shuffled = pool.sample(frac=1, random_state=0)
    alone = known_contexts(asked.iloc[::-1].iloc[:4], shuffled).set_index("question_id")
    assert len(alone) == 4
    assert alone.equals(made.loc[alone.index])
    assert not known_contexts(asked, pool, seed=1)["other"].equals(made["other"])


def test_the_embedded_facts_have_contexts() -> None:
    facts = facts_as_questions(load_facts())
    asked = facts[facts["question_id"].isin(load_facts(limit=99)["fact_id"])]
    made = known_contexts(asked, facts).merge(facts, on="question_id", validate="one_to_one")
    assert len(made) == 99
    for row in made.to_dict("records"):
        assert right(row["true"], row["answers"])
        assert not right(row["stated"][0], row["answers"])
        assert row["false"].startswith(row["prefix"])
        assert row["other"] != row["question_id"]
        assert row["other"].startswith(f"{row['base_id']}/")


def test_questions_without_a_known_answer_are_refused() -> None:
    unknown = table({"Kenya": [], "Peru": ["Lima"]})
    with pytest.raises(
        ValueError, match="answer to capital/Kenya is not known, and a true context"
    ):
        known_contexts(unknown)
    with pytest.raises(ValueError, match="capital/Kenya is not known"):
        known_contexts(CAPITALS, unknown)
    with pytest.raises(ValueError, match="have no column prefix, answers; take those of"):
        known_contexts(CAPITALS[["question_id", "base_id"]])


def asked_with(about: str, answer: str, country: str) -> str:
    return (
        f"Context: [The capital of {about} is {answer}]. Q: Where? A: The capital of {country} is"
    )


def test_asking_by_hand(toy_model: Callable[..., Any]) -> None:
    # The model knows Kenya's capital, believes what is said of Kenya, and repeats what is said of
    # Peru; only the last token counts, so a prompt with context is one token.
    toy = toy_model(
        {
            " Kenya is": {" Nai": 0.8, " Lima": 0.2},
            " Nai": {"robi": 0.75, "vasha": 0.25},
            "robi": {".": 1.0},
            " Peru is": {"\n": 1.0},
            " Lima": {".": 1.0},
            ".": {" It": 1.0},
            " It": {" is": 1.0},
            asked_with("Kenya", "Nairobi", "Kenya"): {" Nai": 0.9, " Lima": 0.1},
            asked_with("Peru", "Lima", "Kenya"): {" Nai": 0.6, " Lima": 0.4},
            asked_with("Kenya", "Lima", "Kenya"): {" Lima": 0.7, " Nai": 0.3},
            asked_with("Peru", "Lima", "Peru"): {" Lima": 1.0},
            asked_with("Kenya", "Nairobi", "Peru"): {" Nai": 1.0},
            asked_with("Peru", "Nairobi", "Peru"): {"\n": 1.0},
        }
    )
    questions = CAPITALS.assign(category="geography", object=["Kenya", "Peru"], question="Where?")
    questions.index = [7, 5]
    made = ask_known(toy, questions)
    assert tuple(made) == (*COLUMNS, "context")
    assert made["context"].tolist() == [kind for kind in KINDS for _ in range(2)]
    assert made["object"].tolist() == ["Kenya", "Peru"] * 3
    assert made["parametric"].tolist() == ["Nairobi", ""] * 3
    kenya, peru = (made[made["object"] == name].set_index("context") for name in ("Kenya", "Peru"))
    assert kenya["counterfactual"].tolist() == ["Nairobi", "Lima", "Lima"]
    assert peru["counterfactual"].tolist() == ["Lima", "Nairobi", "Nairobi"]
    assert kenya["contextual"].tolist() == ["Nairobi", "Nairobi", "Lima"]
    assert peru["contextual"].tolist() == ["Lima", "Nairobi", ""]
    np.testing.assert_allclose(kenya["p0"], (0.8 * 0.75) ** -0.5, rtol=1e-5)
    expected = [(0.9 * 0.75) ** -0.5, (0.6 * 0.75) ** -0.5, 1 / 0.7]
    np.testing.assert_allclose(kenya["p4"], expected, rtol=1e-5)
    assert kenya["n_tokens_parametric"].tolist() == [2, 2, 2]
    assert made[["p1", "p2", "p3", "n_tokens_counterfactual"]].isna().all(axis=None)
    entropy = -(0.7 * math.log(0.7) + 0.3 * math.log(0.3))
    assert kenya.loc["false", "first_entropy_context"] == pytest.approx(entropy, rel=1e-4)
    # (0.8, 0.2) and (0.3, 0.7): the divergence from the middle (0.55, 0.45)
    middle = sum(p / 2 * math.log(p / 0.55) for p in (0.8, 0.3))
    middle += sum(p / 2 * math.log(p / 0.45) for p in (0.2, 0.7))
    assert kenya.loc["false", "first_shift"] == pytest.approx(math.sqrt(middle), rel=1e-4)
    assert made.attrs["counts"] == {
        "questions": 2,
        "empty_parametric": 3,
        "empty_counterfactual": 0,
        "empty_contextual": 1,
    }


def test_models_that_are_never_right_are_named() -> None:
    models: Any = [SimpleNamespace(name="m")]
    marked = pd.DataFrame({"correct": [False, True], "parametric_correct": [False, False]})
    need_right(marked, models)
    need_right(marked[:1], [])
    with pytest.raises(LacksError, match=r"^m: no answer is right, with a context or without one"):
        need_right(marked[:1], models)
