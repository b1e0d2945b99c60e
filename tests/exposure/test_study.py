"""What notebook 5.1 starts with, from the committed records."""

from scipy.stats import binomtest

from factrobust import exposure, paths
from factrobust.datasets import world
from factrobust.exposure import study as training
from factrobust.models import grow


def test_a_tiny_model_learns_what_it_is_told_often():
    given = {
        "relation": "birthplace", "width": 64, "layers": 2, "rate": 3e-3, "moments": 5, "seed": 0,
    }  # fmt: skip
    study = exposure.Training({"__annotations__": given} | given)
    loss, known = study.train()
    assert len(study.sentences) == 38_874
    assert loss["read"].iloc[-1] == 1
    assert loss["loss"].iloc[-1] < 0.5 * loss["loss"].iloc[0]
    assert known.groupby("share").size().to_dict() == dict.fromkeys([0.2, 0.4, 0.6, 0.8, 1.0], 418)
    last = known[known["share"] == 1]
    often, never = last[last["exposure"] >= 64], last[last["exposure"] == 0]
    # Processors round otherwise: 148 and 4 on one, 147 and 5 on another. Chance is 38 / 22.
    assert often["right"].mean() > 0.93
    assert binomtest(int(never["right"].sum()), len(never), 1 / 22).pvalue > 0.01


def test_a_training_is_done_anew_for_another_code_or_version(monkeypatch, tmp_path):
    """ "fresh" trains: the first time, and where anything that decides the result is another."""
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    trained, watched = [], grow.watched
    monkeypatch.setattr(grow, "watched", lambda *a, **k: trained.append(1) or watched(*a, **k))
    given = {
        "relation": "birthplace", "width": 32, "layers": 1, "rate": 1e-2, "moments": 2, "seed": 0,
    }  # fmt: skip
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
