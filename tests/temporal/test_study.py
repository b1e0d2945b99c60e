"""What a notebook of part 2 starts with, from the committed records."""

from itertools import combinations

import pytest

from factrobust import schemas, temporal
from factrobust.models.interface import LacksError

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"


def test_time_scores_every_statement_in_every_format(notebook):
    given = {"data": "embedded", "n_correct": 3, "n_incorrect": 3}
    forms = ("question", "chat")
    study = temporal.Study(**notebook(**given), n_facts=24, formats=forms, tuned=True)
    assert [model.name for model in study.models] == [SMOLLM]  # Gemma has no chat template
    assert len(study.facts) == 24
    assert len(study.scores) == 2 * len(study.statements)
    assert set(study.matched["prompt_format"]) == {"question", "chat"}
    assert study.defined["robust"].isin([0.0, 1.0]).all()
    with pytest.raises(LacksError, match=f"^{GEMMA}: no chat template here to compare"):
        temporal.Study(**notebook(models=[GEMMA], n_facts=24, n_fine=6, **given), tuned=True)


def test_the_offices_that_are_named(monkeypatch):
    monkeypatch.setattr(schemas.HolderScores, "validate", lambda scores: scores)  # of no model
    names = ["pope", "us-president"]
    offices = temporal.Successions(offices=names, n_moments=1)
    assert set(offices.terms["chain"]) == set(offices.moments["chain"]) == set(names)
    assert not offices.moments.duplicated(["chain", "term"]).any()


def test_published_years_and_all_subjects_are_asked(monkeypatch, notebook):
    monkeypatch.setattr(temporal.Study, "_scored", lambda self, statements: statements)
    monkeypatch.setattr(schemas.CubeScores, "validate", lambda scores: scores)
    given = {
        "data": "embedded",
        "n_correct": 2,
        "n_incorrect": 3,
        "n_fine": 4,
        "n_others": 2,
    }
    study = temporal.Study(**notebook(models=[], n_facts=40, n_subjects=2, **given))
    assert study.statements["others"].map(len).eq(2).all()
    published = study.as_published
    assert set(published["precision"]) == {"year"}
    assert "others" not in published
    counts = published.groupby(["fact_id", "label"]).size().unstack()
    assert counts[["correct", "incorrect"]].max().tolist() == [2, 6]
    fine = study.dates.loc[study.dates["precision"] == "day", "fact_id"]
    assert set(counts.index) == set(fine)  # the facts that are drawn for months and days
    crossed = study.crossed
    assert set(crossed["label"]) == {"correct", "incorrect"}
    tested = study.statements[study.statements["label"] != "transitional"]
    asked = [crossed[crossed["asked_of"] == place] for place in range(3)]
    assert [len(part) for part in asked] == [len(tested)] * 3
    assert asked[0]["question"].tolist() == tested["question"].tolist()
    questions = [part["question"].to_numpy() for part in asked]
    assert all((one != other).all() for one, other in combinations(questions, 2))
    assert asked[1]["object"].tolist() == tested["object"].tolist()
