"""What notebook 5.1 starts with, from the committed records."""

from factrobust import exposure


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
