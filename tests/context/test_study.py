"""What a notebook of part 4 starts with, from the committed records."""

from factrobust import context
from factrobust.context.following import MARGIN

GEMMA, SMOLLM = "gemma-3-270m", "smollm2-135m-instruct"


def test_context_marks_the_thesis_questions_and_known_contexts_the_facts(tmp_path, notebook):
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


def test_context_again_has_other_draws_and_the_raw_prompt(notebook):
    study = context.Study(notebook(n_objects=4, n_draws=2))
    draws = study.again.groupby(["model", "prompt"])["draw"].nunique().to_dict()
    assert draws == {(GEMMA, "own"): 2, (SMOLLM, "own"): 2, (SMOLLM, "raw"): 1}


def test_the_contexts_and_models_that_are_named(notebook):
    named = notebook(models=[], data="world", n_facts=4, contexts=["false"])
    assert context.KnownContexts(named).contexts["context"].tolist() == ["false"] * 4
    # Without models only the questions are there.
    study = context.Study(notebook(models=[], n_objects=2))
    assert len(study.questions) == 200
    assert study.results.empty


def test_the_world_and_its_town(notebook):
    for name, relations in (("world", 4), ("town", 1)):
        asked = context.Study(notebook(models=[], questions=name, n_objects=3)).questions
        assert asked["base_id"].value_counts().tolist() == [3] * relations
        known = context.KnownContexts(notebook(models=[], data=name, n_facts=8))
        assert len(known.contexts) == 3 * len(known.questions) == 24
        assert len(known.pool) == {"world": 1430, "town": 208}[name]
