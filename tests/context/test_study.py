"""What a notebook of part 4 starts with, from the committed records."""

from factrobust import context


def test_results_of_elsewhere_stand_beside(tmp_path, notebook):
    path = tmp_path / "flan.csv"
    header = "category,base_id,object,parametric,counterfactual,contextual,p0,p1,p2,p3\n"
    path.write_text(f"{header}c,Who?,x,(D,[D,[D,1.5,2,2,1\n", encoding="utf-8")
    study = context.Study(**notebook(questions="embedded", n_objects=4, results=str(path)))
    assert study.marked["model"].tolist()[-2:] == ["smollm2-135m-instruct", "flan"]
    assert study.marked["source"].iloc[-1] == "same"
    assert len(study.questions) == 401


def test_known_facts_are_asked_behind_sixteen_sentences(notebook):
    study = context.Meter(**notebook(data="embedded", n_asked=540, n_facts=20))
    assert study.answers.groupby("model").size().eq(20 * 16).all()
    right = study.memory.query("right == 1").set_index(["model", "question_id"])
    asked = study.answers.set_index(["model", "question_id"])
    assert asked.index.isin(right.index).all()
    # The first by lot: fewer are among more.
    more = context.Meter(**notebook(data="embedded", n_asked=540, n_facts=200))
    assert set(study.answers["question_id"]) < set(more.answers["question_id"])
