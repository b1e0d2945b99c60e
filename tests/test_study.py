"""What all studies share: parameters, provenance, estimates that draw whole clusters."""

import inspect

import pandas as pd
import pytest

from factrobust import decoding
from factrobust import study as shared
from factrobust.models.records import RecordsError

GEMMA, SMOLLM = "gemma-3-270m", "smollm2-135m-instruct"


def embedded(notebook, **parameters):
    given = {"data": ["embedded"], "n_questions": 30, "n_known": 3, "n_samples": 10}
    return decoding.Study(notebook(**given | parameters))


def test_parameters_are_the_annotated_variables_and_models_are_apart(notebook):
    study = embedded(notebook)
    sizes = {"n_questions": 30, "n_known": 3, "n_samples": 10}
    assert study.parameters == {"seed": 0, "data": ["embedded"]} | sizes
    assert [model.name for model in study.models] == [GEMMA, SMOLLM]
    about = {"parameters": study.parameters, "models": study.models}
    assert study.about == about


def test_means_of_several_columns_leave_out_what_is_missing(notebook):
    study = embedded(notebook, n_boot=50)
    table = study.marked.assign(sure=study.marked["entropy"].where(study.marked["exact_match"]))
    found = study.means(table, ["measure", "model"], ["sure", "exact_match"])
    known = study.known.groupby("model")["fact_id"].nunique()
    assert found["measure"].tolist() == ["exact_match"] * 2 + ["sure"] * 2
    assert found["n"].tolist() == [30, 30, *known]
    study.cluster = ""  # facts that differ by chance alone
    assert "relations" not in study.means(table, ["model"], "exact_match")


def test_a_call_that_is_not_recorded_ends_a_replay(notebook):
    with pytest.raises(RecordsError, match="lack"):
        embedded(notebook, models=[GEMMA], n_questions=1000)


def test_what_a_study_saves_carries_its_provenance(monkeypatch, notebook):
    saved = {}
    monkeypatch.setattr(shared, "save_table", lambda table, name, **about: saved.update(about))
    study = shared.Study(notebook(models=[], seed=1))
    study.save_table(pd.DataFrame({"a": [1]}), "1-decoding/table-x", decimals=5)
    about = {"parameters": {"seed": 1}, "models": []}
    assert saved == about | {"decimals": 5}


def test_tables_are_shown_without_row_numbers_but_with_named_rows():
    table = pd.DataFrame({"a": [1.5]}, index=[7])
    assert "<th>7</th>" not in shared._as_html(table)
    assert "<th>7</th>" in shared._as_html(table.rename_axis("n"))
    assert "<th>x</th>" in shared._as_html(table.set_axis(["x"]))


def test_estimates_have_true_signatures():
    for name in ("means", "statistic", "correlations", "paired", "pairwise"):
        parameters = inspect.signature(getattr(shared.Study, name)).parameters.values()
        assert {one.kind.name for one in parameters} <= {"POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"}


def test_a_row_without_a_cluster_and_a_fact_of_two_are_told(notebook):
    """One would vanish from an interval, the other count twice."""
    study = shared.Study(notebook(models=[], n_boot=9))
    study.cluster = "relation"
    study.facts = pd.DataFrame({"fact_id": ["a", "b", "b"], "relation": ["r", "s", "s"]})
    rows = pd.DataFrame({"fact_id": ["a", "b", "a"], "value": [1.0, 0.0, 0.0]})
    assert study.means(rows, [], "value")[["n", "relations"]].to_numpy().tolist() == [[2, 2]]
    with pytest.raises(ValueError, match="fact_id 'c' is none of the study's facts"):
        study.means(rows.replace({"fact_id": {"a": "c"}}), [], "value")
    study.facts = study.facts.assign(relation=["r", "s", "t"])
    with pytest.raises(ValueError, match="fact_id 'b' has more than one relation"):
        study.means(rows, [], "value")
