"""What a notebook of part 4 starts with, from the committed records."""

from factrobust import context
from factrobust.context import meter

# As in 5.4, whose answers are recorded.
FALSE_OR_NOT = {
    "models": ["world-s"],
    "data": "world",
    "contexts": ["false", "irrelevant"],
    "n_facts": 1430,
}


def test_context_marks_the_thesis_questions_and_known_contexts_the_facts(tmp_path, notebook):
    study = context.Study(**notebook(questions="embedded", n_objects=4))
    assert study.counts["questions"].tolist() == [400, 400]
    assert len(study.marked) == len(study.results)
    path = tmp_path / "flan.csv"
    named = "category,base_id,object,parametric,counterfactual,contextual,p0,p1,p2,p3"
    path.write_text(f"{named}\nc,Who?,x,(D,[D,[D,1.5,2,2,1\n", encoding="utf-8")
    beside = context.Study(
        **notebook(
            questions="embedded",
            n_objects=4,
            results=str(path),
        )
    )
    assert beside.results["model"].tolist()[-2:] == ["smollm2-135m-instruct", "flan"]
    assert beside.marked["source"].iloc[-1] == "same"
    assert beside.counts.equals(study.counts)
    known = context.KnownContexts(**notebook(**FALSE_OR_NOT))
    assert known.marked.groupby(["model", "context"]).size().tolist() == [1430] * 2


def test_known_facts_are_asked_behind_sixteen_sentences(notebook):
    study = context.Meter(
        **notebook(
            data="embedded",
            n_asked=540,
            n_facts=200,
        )
    )
    sizes = study.answers.groupby("model").size()
    known = study.memory.groupby("model")["right"].sum()
    assert sizes.to_dict() == (known.clip(upper=200) * 16).to_dict()
    told = study.answers.merge(study.memory, on=["model", "question_id"], suffixes=("", "_memory"))
    assert told["right_memory"].eq(1).all()
    # The first by lot: fewer are among more.
    fewer = context.Meter(**notebook(data="embedded", n_asked=540, n_facts=20))
    assert set(fewer.answers["question_id"]) <= set(study.answers["question_id"])


def test_facts_known_or_not_are_asked_behind_a_false_sentence(notebook):
    few = notebook(
        models=["world-s"],
        data="world",
        n_asked=480,
        n_facts=1,
    )
    study = context.Meter(**few)
    assert study.grounded["words"].tolist() == ["question"] * 480
    assert study.grounded["known"].sum() == study.memory["right"].sum()
    parts = meter.split(study.answers)
    same = study.grounded.merge(parts[parts["mode"] == "asserted"], on=["question_id", "words"])
    assert len(same) == 1
    assert same["followed"].equals(same["following"])
