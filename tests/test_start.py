"""The start of each part, from the committed records: what it returns, and what it says of itself."""

import pandas as pd
import pytest

from factrobust import context, exposure, paths, schemas, time, wording
from factrobust import decoding as room
from factrobust import study as study_module
from factrobust.context.following import MARGIN
from factrobust.datasets import world
from factrobust.decoding.metrics import exact_breaking, frs_table, mark_samples
from factrobust.decoding.probe import TEMPERATURES
from factrobust.exposure import study as training
from factrobust.models import grow
from factrobust.models.interface import LacksError
from factrobust.models.records import RecordsError

GEMMA, SMOLLM = "gemma-3-270m", "smollm2-135m-instruct"


@pytest.fixture(autouse=True)
def _replay(monkeypatch):
    monkeypatch.setenv("FACTROBUST_RECORDS", "replay")


def notebook(**parameters):
    """A notebook's variables: annotated parameters, and others."""
    parameters = {"models": [GEMMA, SMOLLM], "seed": 0} | parameters
    return parameters | {"__annotations__": dict.fromkeys(parameters), "columns": ["not one"]}


def decoding(**parameters):
    given = {"data": ["embedded"], "n_questions": 30, "n_known": 3, "n_samples": 10}
    return room.Study(notebook(**given | parameters))


def test_parameters_are_the_annotated_variables_and_models_are_apart():
    study = decoding()
    sizes = {"n_questions": 30, "n_known": 3, "n_samples": 10}
    assert study.parameters == {"seed": 0, "data": ["embedded"]} | sizes
    assert [model.name for model in study.models] == [GEMMA, SMOLLM]
    about = {"parameters": study.parameters, "models": study.models, "inputs": study.inputs}
    assert study.about == about


def test_decoding_asks_every_model_every_fact_and_knows_the_exact_matches():
    study = decoding(n_questions=900, n_boot=50)
    assert len(study.facts) == 900
    assert study.marked.groupby("model").size().to_dict() == {GEMMA: 900, SMOLLM: 900}
    assert study.known["exact_match"].all()
    assert len(study.known) == study.marked["exact_match"].sum() > 0
    few = study.known_sample
    assert few.groupby(["model", "domain"]).size().max() == 3
    samples = study.sampled()
    assert len(samples) == len(few) * 10 * 10
    asked = samples[["model", "fact_id"]].drop_duplicates().to_numpy().tolist()
    assert sorted(asked) == sorted(few[["model", "fact_id"]].to_numpy().tolist())
    # Means draw whole relations, and find them.
    answers = study.marked[["model", "fact_id", "exact_match"]]
    found = study.means(answers, ["model"], "exact_match")
    assert found["relations"].tolist() == [study.facts["relation"].nunique()] * 2
    assert found.equals(study.means(study.marked, ["model"], "exact_match"))


def test_means_of_several_columns_leave_out_what_is_missing():
    study = decoding(n_boot=50)
    table = study.marked.assign(sure=study.marked["entropy"].where(study.marked["exact_match"]))
    found = study.means(table, ["measure", "model"], ["sure", "exact_match"])
    known = study.known.groupby("model")["fact_id"].nunique()
    assert found["measure"].tolist() == ["exact_match"] * 2 + ["sure"] * 2
    assert found["n"].tolist() == [30, 30, *known]
    study.cluster = ""  # facts that differ by chance alone
    assert "relations" not in study.means(table, ["model"], "exact_match")


def test_measures_of_every_fact_known_or_not():
    given = {"models": ["world-m"], "data": ["world"], "n_questions": 1430}
    study = room.Study(notebook(**given))
    rows = study.measures
    assert len(rows) == 1430
    right = rows["right"] == 1
    same = rows[right & (rows["token_ids"].map(len) == 2)]  # the object and the end of the line
    assert (same["truth"] >= same["logprob"] - 1e-4).all()  # without the end
    assert rows["truth"][right].mean() > rows["truth"][~right].mean()
    of_known = frs_table(study.known, exact_breaking(study.curves()), unbroken=None)
    expected = of_known[of_known["d"] == 1].set_index("fact_id")[["t_b", "frs"]]
    assert rows[right].set_index("fact_id")[["t_b", "frs"]].equals(expected)


def test_one_way_finds_the_breaking_temperatures_of_all_models():
    study = decoding(n_questions=900)
    t_b, estimator = study.breaking
    assert estimator == "from $P_t$"
    assert len(t_b) == len(study.known) > len(study.known_sample)
    assert set(t_b["t_b"]) <= {*TEMPERATURES, float("inf")}
    beyond = decoding(n_questions=900)
    endpoint, other = beyond.models
    endpoint.lacks = {"temper": "no logits"}  # one of the two, and both are sampled
    t_b, estimator = beyond.breaking
    assert estimator == "by samples"
    assert not other.lacks
    found, few = (
        set(zip(t["model"], t["fact_id"], strict=True)) for t in (t_b, beyond.known_sample)
    )
    assert found == few
    # The first temperature at which fewer than half of the samples are right, by hand.
    right = mark_samples(beyond.sampled()).groupby(["model", "fact_id", "temperature"])["correct"]
    low = right.mean().unstack() < 0.5
    by_hand = low.idxmax(axis=1).where(low.any(axis=1), float("inf"))
    assert t_b.set_index(["model", "fact_id"])["t_b"].to_dict() == by_hand.to_dict()


def test_a_call_that_is_not_recorded_ends_a_replay():
    with pytest.raises(RecordsError, match="lack"):
        decoding(models=[GEMMA], n_questions=1000)


def test_time_scores_every_statement_in_every_format():
    given = {"data": "embedded", "n_correct": 3, "n_incorrect": 3, "n_formats": 24}
    forms = ("question", "chat")
    study = time.Study(notebook(**given), limit="n_formats", formats=forms, tuned=True)
    assert [model.name for model in study.models] == [SMOLLM]  # Gemma has no chat template
    assert len(study.facts) == 24
    assert len(study.scores) == 2 * len(study.statements)
    assert set(study.matched["prompt_format"]) == {"question", "chat"}
    assert study.defined["robust"].isin([0.0, 1.0]).all()
    with pytest.raises(LacksError, match="no chat template"):
        time.Study(notebook(models=[GEMMA], n_facts=24, n_fine=6, **given), tuned=True)


WORDING = {"data": "embedded", "n_samples": 10, "max_new_tokens": 20}
WORDING |= {"sentence_encoder": "all-MiniLM-L6-v2"}


def test_wording_has_a_row_of_predictors_for_each_model_and_question():
    study = wording.Study(notebook(n_facts=32, n_boot=20, **WORDING))
    assert study.questions["group_id"].nunique() == 32
    assert len(study.marked) == 2 * len(study.questions)
    assert len(study.answer_sets) == len(study.sample_sets) == 64
    assert study.groups["log_popularity"].notna().all()
    assert study.about["models"] == [*study.models, study.encoder]
    assert study.formats == {GEMMA: "question-answer", SMOLLM: "chat"}
    assert set(study.responses["prompt_format"]) == {"question-answer", "chat"}
    assert study.originals[["model", "group_id"]].equals(study.answer_sets[["model", "group_id"]])
    assert study.means(study.originals, ["model"], "scons")["relations"].tolist() == [16, 16]
    assert study.means(study.bare_sets, ["relation"], "int_sim")["n"].tolist() == [2] * 16


def test_wording_asks_about_facts_of_the_exposures_that_are_named():
    given = WORDING | {"models": [], "data": "world", "n_facts": 2000, "exposures": [0, 64]}
    study = wording.Study(notebook(**given))
    assert set(study.questions["log_popularity"].round(6)) == {0.0, 4.174387}  # ln 1, ln 65
    assert study.questions["group_id"].nunique() == 2 * 130


def test_wording_asks_the_variants_that_are_named():
    given = {"data": "town", "n_facts": 780, "max_new_tokens": 5, "exposures": [0, 8, 16, 32, 64]}
    given |= {"models": ["smollm2-taught"], "sentence_encoder": "all-MiniLM-L6-v2"}
    study = wording.Study(notebook(**given), prompt_format="question-answer", variants=[0, 8, 9])
    assert study.marked["variant"].value_counts().to_dict() == {0: 130, 8: 130, 9: 130}


def test_wording_asks_a_tuned_model_as_the_paper_asks_others():
    asked = notebook(models=[SMOLLM], n_facts=16, **WORDING)
    study = wording.Study(asked, prompt_format="question-answer")
    assert study.formats == {SMOLLM: "question-answer"}
    assert study.responses["prompt"].str.startswith("Question:").all()
    assert len(study.answer_sets) == 16


def test_context_marks_the_thesis_questions_and_known_contexts_the_facts(tmp_path):
    study = context.Study(notebook(n_objects=4))
    assert study.counts["questions"].tolist() == [400, 400]
    assert len(study.marked) == len(study.results)
    path = tmp_path / "flan.csv"
    named = "category,base_id,object,parametric,counterfactual,contextual,p0,p1,p2,p3"
    path.write_text(f"{named}\nc,Who?,x,(D,[D,[D,1.5,2,2,1\n", encoding="utf-8")
    beside = context.Study(notebook(n_objects=4, results=str(path)))
    assert beside.results["model"].tolist()[-2:] == ["smollm2-135m-instruct", "flan"]
    assert beside.marked["source"].iloc[-1] == "same"
    assert beside.counts.equals(study.counts)
    known = context.KnownContexts(notebook(n_facts=80, n_asked=240, n_contexts=2))
    assert known.marked.groupby(["model", "context"]).size().tolist() == [80] * 6
    sure = known.known[known.known["margin"] >= MARGIN]
    assert sure.groupby("model").size().tolist() == [96, 93]
    assert len(known.varied) == 2 * len(sure)
    assert known.varied[["p0", "p1", "p2", "p3", "p4", "popularity"]].notna().all(axis=None)
    assert known.varied["parametric_correct"].all()
    assert not known.varied["counterfactual_correct"].any()


def test_context_again_has_other_draws_and_the_raw_prompt():
    study = context.Study(notebook(n_objects=4, n_draws=2))
    draws = study.again.groupby(["model", "prompt"])["draw"].nunique().to_dict()
    assert draws == {(GEMMA, "own"): 2, (SMOLLM, "own"): 2, (SMOLLM, "raw"): 1}


def test_without_models_only_the_questions_are_there():
    given = {"seed": 0, "n_objects": 2}
    study = context.Study(given | {"__annotations__": given})
    assert len(study.questions) == 200
    assert study.results.empty
    given = {"seed": 0, "data": "embedded", "n_facts": 16, "sentence_encoder": "all-MiniLM-L6-v2"}
    assert wording.Study(given | {"__annotations__": given}).responses.empty
    sizes = {"n_correct": 3, "n_incorrect": 6, "n_facts": 7, "n_fine": 2}
    given = {"seed": 0, "data": "embedded"} | sizes
    study = time.Study(given | {"__annotations__": given})
    assert study.scores.empty
    facts = study.dates.groupby("precision")["fact_id"].nunique().to_dict()
    assert facts == {"year": 7, "month": 2, "day": 2}  # two of the seven


def test_the_offices_that_are_named(monkeypatch):
    monkeypatch.setattr(schemas.HolderScores, "validate", lambda scores: scores)  # of no model
    given = {"seed": 0, "n_moments": 1, "offices": ["pope", "us-president"]}
    offices = time.Successions(given | {"__annotations__": given})
    assert set(offices.terms["chain"]) == set(offices.moments["chain"]) == set(given["offices"])
    assert not offices.moments.duplicated(["chain", "term"]).any()


def test_a_tiny_model_learns_what_it_is_told_often():
    given = {
        "relation": "birthplace",
        "width": 64,
        "layers": 2,
        "rate": 3e-3,
        "moments": 5,
        "seed": 0,
    }
    study = exposure.Training({"__annotations__": given} | given)
    loss, known = study.train()
    assert len(study.sentences) == 38_874
    assert loss["read"].iloc[-1] == 1
    assert loss["loss"].iloc[-1] < 0.5 * loss["loss"].iloc[0]
    assert known.groupby("share").size().to_dict() == dict.fromkeys([0.2, 0.4, 0.6, 0.8, 1.0], 418)
    last = known[known["share"] == 1]
    often, never = last[last["exposure"] >= 64], last[last["exposure"] == 0]
    assert (often["right"].sum(), never["right"].sum()) == (148, 4)


def test_a_training_is_done_anew_for_another_code_or_version(monkeypatch, tmp_path):
    """ "fresh" trains: the first time, and where anything that decides the result is another."""
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    trained, watched = [], grow.watched
    monkeypatch.setattr(grow, "watched", lambda *a, **k: trained.append(1) or watched(*a, **k))
    given = {
        "relation": "birthplace",
        "width": 32,
        "layers": 1,
        "rate": 1e-2,
        "moments": 2,
        "seed": 0,
    }
    study = exposure.Training({"__annotations__": given} | given)
    study.sentences = study.sentences.iloc[:1000]
    loss, known = study.train()
    assert loss["loss"].iloc[-1] < loss["loss"].iloc[0]
    assert known["share"].nunique() == 2
    again, same = study.train()
    assert len(trained) == 1
    assert known.equals(same)
    assert again.equals(loss)
    monkeypatch.setattr(training, "version", lambda package: "0")
    study.train()
    monkeypatch.setattr(world, "FILES", world.FILES[1:])  # as if one of them were another
    study.train()
    assert len(trained) == 3


def test_time_scores_published_years_and_a_grid(monkeypatch):
    asked = {}

    def scored(self, statements, formats=("question",)):
        asked[len(asked)] = statements
        return statements

    monkeypatch.setattr(time.Study, "_scored", scored)
    given = {"data": "embedded", "n_correct": 2, "n_incorrect": 3, "n_fine": 4, "n_decoded": 5}
    study = time.Study(notebook(models=[], n_facts=281, n_others=2, **given))
    assert study.statements["others"].map(len).eq(2).all()
    published = study.as_published
    assert set(published["precision"]) == {"year"}
    counts = published.groupby(["fact_id", "label"]).size().unstack()
    assert counts[["correct", "incorrect"]].max().tolist() == [2, 6]
    fine = study.dates.loc[study.dates["precision"] == "day", "fact_id"]
    assert set(counts.index) == set(fine)  # the facts that are drawn for months and days
    grid = study.scores_on_grid
    assert grid.groupby("fact_id").size().tolist() == [24] * 5
    assert grid["others"].map(len).eq(2).all()


def test_what_a_study_saves_carries_its_provenance(monkeypatch):
    saved = {}
    monkeypatch.setattr(
        study_module, "save_table", lambda table, name, **about: saved.update(about)
    )
    study = study_module.Study(notebook(models=[], seed=1))
    study.inputs = ["facts.csv"]
    study.save_table(pd.DataFrame({"a": [1]}), "1-decoding/table-x", decimals=5)
    about = {"parameters": {"seed": 1}, "models": [], "inputs": ["facts.csv"]}
    assert saved == about | {"decimals": 5}


def test_tables_are_shown_without_row_numbers_but_with_named_rows():
    table = pd.DataFrame({"a": [1.5]}, index=[7])
    assert "<th>7</th>" not in study_module._as_html(table)
    assert "<th>7</th>" in study_module._as_html(table.rename_axis("n"))
    assert "<th>x</th>" in study_module._as_html(table.set_axis(["x"]))


def test_the_kinds_of_contexts_that_are_named():
    named = notebook(models=[], data="world", n_facts=4, contexts=["false"])
    assert context.KnownContexts(named).contexts["context"].tolist() == ["false"] * 4


def test_the_world_in_its_century_and_its_contexts(monkeypatch):
    dates = {"n_fine": 2, "n_correct": 2, "n_incorrect": 2, "n_decoded": 3}
    study = time.Study(notebook(models=[], data="world", n_facts=6, **dates))
    monkeypatch.setattr(study, "_scored", lambda statements: statements)
    assert study.scores_on_grid["year"].agg(["min", "max", "size"]).tolist() == [1900, 1999, 3 * 34]
    for name, relations in (("world", 4), ("town", 1)):
        asked = context.Study(notebook(models=[], questions=name, n_objects=3)).questions
        assert asked["base_id"].value_counts().tolist() == [3] * relations
        known = context.KnownContexts(notebook(models=[], data=name, n_facts=8))
        assert len(known.contexts) == 3 * len(known.questions) == 24
        assert len(known.pool) == {"world": 1430, "town": 208}[name]
