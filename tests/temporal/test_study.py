"""What a notebook of part 2 starts with, from the committed records."""

import pandas as pd
import pytest

from factrobust import schemas, temporal
from factrobust.models.interface import LacksError

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"


def test_every_statement_is_scored_in_every_format_by_models_that_have_both(notebook):
    given = notebook(
        data="embedded",
        n_facts=24,
        n_correct=3,
        n_incorrect=3,
        formats=["question", "chat"],
        tuned=True,
    )
    study = temporal.Study(**given)
    [model] = study.models  # Gemma has no chat template
    assert model.name == SMOLLM
    assert len(study.facts) == 24
    assert len(study.scores) == 2 * len(study.statements)
    assert set(study.matched["prompt_format"]) == {"question", "chat"}
    assert study.defined["robust"].isin([0.0, 1.0]).all()
    given["models"] = [GEMMA]
    with pytest.raises(LacksError, match=f"^{GEMMA}: no chat template here to compare"):
        temporal.Study(**given)


def test_the_offices_that_are_named(monkeypatch):
    monkeypatch.setattr(schemas.HolderScores, "validate", lambda scores: scores)  # of no model
    names = ["pope", "us-president"]
    study = temporal.Successions(offices=names, n_moments=1)
    assert set(study.terms["chain"]) == set(names)
    assert set(study.moments["chain"]) == set(names)
    is_again = study.moments.duplicated(["chain", "term"])
    assert not is_again.any()


@pytest.fixture
def study(monkeypatch, notebook):
    """One that scores nothing: what it would ask stands in the place of scores."""
    monkeypatch.setattr(temporal.Study, "_scored", lambda self, statements: statements)
    monkeypatch.setattr(schemas.CubeScores, "validate", lambda scores: scores)
    given = notebook(
        models=[],
        data="embedded",
        n_facts=40,
        n_fine=4,
        n_correct=2,
        n_incorrect=3,
        n_others=2,
        n_subjects=2,
    )
    return temporal.Study(**given)


def test_years_as_published_of_the_facts_that_are_drawn_for_months_and_days(study):
    n_others = study.statements["others"].map(len)
    assert n_others.eq(2).all()
    published = study.as_published
    assert set(published["precision"]) == {"year"}
    assert "others" not in published
    counts = pd.crosstab(published["fact_id"], published["label"])
    assert counts["correct"].max() == 2
    assert counts["incorrect"].max() == 6
    fine = study.dates[study.dates["precision"] == "day"]
    assert set(counts.index) == set(fine["fact_id"])


def test_all_subjects_are_asked_of_the_same_object_at_dates_that_play_matches(study):
    is_tested = study.statements["label"] != "transitional"
    tested = study.statements[is_tested]
    questions = []
    for _, part in study.crossed.groupby("asked_of"):
        assert part["object"].tolist() == tested["object"].tolist()
        assert part["date"].tolist() == tested["date"].tolist()
        questions.append(part["question"].to_numpy())
    of_fact, first, second = questions
    assert of_fact.tolist() == tested["question"].tolist()
    assert (of_fact != first).all()
    assert (of_fact != second).all()
    assert (first != second).all()
