"""What a notebook of part 4 starts with, from the committed records."""

from factrobust import context
from factrobust.context import meter


def test_the_thesiss_questions_and_known_contexts_are_marked(notebook):
    study = context.Study(**notebook(questions="embedded", n_objects=4))
    assert len(study.questions) == 400
    assert study.marked["model"].unique().tolist() == ["gemma-3-270m", "smollm2-135m-instruct"]
    assert study.marked["question_id"].isin(study.questions["question_id"]).all()
    # As in 5.4, whose answers are recorded.
    kinds = ["false", "irrelevant"]
    known = context.KnownContexts(
        **notebook(models=["world-s"], data="world", contexts=kinds, n_facts=1430)
    )
    assert known.marked.groupby("context").size().to_dict() == dict.fromkeys(kinds, 1430)


def test_results_of_elsewhere_stand_beside(tmp_path, notebook):
    path = tmp_path / "flan.csv"
    named = "category,base_id,object,parametric,counterfactual,contextual,p0,p1,p2,p3"
    path.write_text(f"{named}\nc,Who?,x,(D,[D,[D,1.5,2,2,1\n", encoding="utf-8")
    study = context.Study(**notebook(questions="embedded", n_objects=4, results=str(path)))
    assert study.marked["model"].tolist()[-2:] == ["smollm2-135m-instruct", "flan"]
    assert study.marked["source"].iloc[-1] == "same"
    assert len(study.questions) == 401


def test_known_facts_are_asked_behind_sixteen_sentences(notebook):
    study = context.Meter(**notebook(data="embedded", n_asked=540, n_facts=200))
    sizes = study.answers.groupby("model").size()
    known = study.memory.groupby("model")["right"].sum()
    assert sizes.to_dict() == (known.clip(upper=200) * 16).to_dict()
    told = study.answers.merge(study.memory, on=["model", "question_id"], suffixes=("", "_memory"))
    assert told["right_memory"].eq(1).all()
    # The first by lot: fewer are among more.
    fewer = context.Meter(**notebook(data="embedded", n_asked=540, n_facts=20))
    assert set(fewer.answers["question_id"]) <= set(study.answers["question_id"])


def test_facts_known_or_not_are_asked_behind_a_false_sentence(notebook):
    study = context.Meter(**notebook(models=["world-s"], data="world", n_asked=480, n_facts=1))
    assert study.grounded["words"].tolist() == ["question"] * 480
    assert study.grounded["known"].sum() == study.memory["right"].sum()
    parts = meter.split(study.answers)
    same = study.grounded.merge(parts[parts["mode"] == "asserted"], on=["question_id", "words"])
    assert len(same) == 1
    assert same["followed"].equals(same["following"])
