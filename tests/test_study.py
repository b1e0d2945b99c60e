"""What all studies share: parameters, provenance, estimates that draw whole clusters."""

import ast
import json

import nbformat
import pandas as pd
import pytest

from factrobust import decoding, paths, temporal
from factrobust import study as shared
from factrobust.datasets.facts import load_facts
from factrobust.datasets.world import load_world
from factrobust.models.records import RecordsError
from factrobust.paths import ROOT
from factrobust.provenance import Provenance
from factrobust.reproduce.profiles import declared_parameters, find_notebooks

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"


SIZES = {"n_questions": 30, "n_known": 3, "n_samples": 10}


def embedded(notebook, **parameters):
    return decoding.Study(**notebook(data=["embedded"], **SIZES, **parameters))


def test_parameters_are_what_was_given_and_models_are_apart(notebook):
    others = {"n_formats": 7, "results": ""}
    study = embedded(notebook, types=None, other_parameters=others)
    assert study.parameters == {"seed": 0, "data": ["embedded"], **SIZES, **others}
    assert [model.name for model in study.models] == [GEMMA, SMOLLM]
    assert study.about.parameters == study.parameters
    assert study.about.models == study.models


def test_a_study_names_the_parameter_that_it_lacks(notebook):
    given = notebook(models=[], data="embedded", n_facts=7, n_correct=3, n_incorrect=3)
    study = temporal.Study(**given)
    missing = r"^temporal\.Study was made without n_fine.*n_fine=\.\.\."
    with pytest.raises(ValueError, match=missing):
        _ = study.as_published
    with pytest.raises(TypeError, match="n_fact"):
        temporal.Study(**given, n_fact=7)


STUDIES = ("Study", "Training", "Successions", "KnownContexts", "Passages", "Meter")


def argument_names(notebook):
    """The names that a notebook's first study is given: its arguments, and the keys of dicts among
    them, which may have a name."""
    cells = nbformat.read(notebook, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    nodes = [*ast.walk(ast.parse(code))]
    values = {}
    for node in nodes:
        if isinstance(node, ast.Assign):
            [target, *_] = node.targets
            values[ast.unparse(target)] = node.value
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    [study, *_] = [call for call in calls if ast.unparse(call.func).split(".")[-1] in STUDIES]
    for argument in study.keywords:
        value = values.get(ast.unparse(argument.value), argument.value)
        if isinstance(value, ast.Dict):
            yield from map(ast.literal_eval, value.keys)
        else:
            yield argument.arg


WITHOUT = {
    "notebooks/6-together/6.4-a-card-for-any-model.ipynb",  # compares cards, and has no study
}


@pytest.mark.parametrize("notebook", sorted({*find_notebooks(ROOT)} - WITHOUT))
def test_a_notebooks_study_is_given_all_of_its_parameters(notebook):
    """So that what it saves tells them all."""
    declared = {*declared_parameters(ROOT / notebook)}
    assert declared <= {*argument_names(ROOT / notebook)}


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
    study = embedded(notebook, models=[GEMMA], seed=12345)  # with which nobody sampled
    with pytest.raises(RecordsError, match="lack"):
        study.sampled()


def test_what_a_study_saves_carries_its_provenance(monkeypatch):
    saved = {}
    monkeypatch.setattr(shared, "save_table", lambda table, name, **about: saved.update(about))
    before = len(paths.files_read)
    study = shared.Study(parameters={"seed": 1})
    study.save_table(pd.DataFrame({"a": [1]}), "1-decoding/table-x", decimals=5)
    assert saved == {"provenance": Provenance({"seed": 1}, [], before), "decimals": 5}


def test_what_was_read_for_an_earlier_study_is_no_input(monkeypatch, tmp_path, capsys):
    """As when all cells of a notebook are run twice in one kernel."""
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path))
    table = pd.DataFrame({"a": [1]})
    for _ in range(2):
        study = shared.Study(parameters={"seed": 1})
        load_world()  # whose tables are kept from the first time on
        study.save_table(table, "5-exposure/table-x")
        about = json.loads((tmp_path / "figures/5-exposure/table-x.json").read_text())
        assert "data/world/facts-0.csv" in about["inputs"]
        assert "data/facts.csv" not in about["inputs"]
        load_facts()  # a later cell
    assert "by-hand" not in capsys.readouterr().out


def test_a_row_without_a_cluster_and_a_fact_of_two_are_told():
    """One would vanish from an interval, the other count twice."""
    study = shared.Study(parameters={"n_boot": 9})
    study.cluster = "relation"
    study.facts = pd.DataFrame({"fact_id": ["a", "b", "b"], "relation": ["r", "s", "s"]})
    rows = pd.DataFrame({"fact_id": ["a", "b", "a"], "value": [1.0, 0.0, 0.0]})
    assert study.means(rows, [], "value")[["n", "relations"]].to_numpy().tolist() == [[2, 2]]
    with pytest.raises(ValueError, match="fact_id 'c' is none of the study's facts"):
        study.means(rows.replace({"fact_id": {"a": "c"}}), [], "value")
    study.facts = study.facts.assign(relation=["r", "s", "t"])
    with pytest.raises(ValueError, match="fact_id 'b' has more than one relation"):
        study.means(rows, [], "value")
