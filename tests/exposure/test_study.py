"""What notebook 5.1 starts with, from the committed records."""

import numpy as np
import pytest
from scipy.stats import binomtest

from factrobust import exposure, paths
from factrobust.datasets import world
from factrobust.exposure import study as training
from factrobust.models import grow

GIVEN = {
    "relation": "birthplace",
    "follow": "birthplace/feban-zibumar",
    "exposure": 16,
    "width": 64,
    "layers": 2,
    "rate": 3e-3,
    "moments": 8,
    "seed": 0,
}


def training_of(**changed):
    return exposure.Training(**GIVEN | changed)


def test_a_tiny_model_learns_what_it_is_told_often(monkeypatch):
    """By the record of 5.1's own training."""
    monkeypatch.setenv("FACTROBUST_RECORDS", "replay")
    study = training_of()
    known, followed = study.train()
    assert len(study.sentences) == 38_874  # 38 facts of each exposure: 38 (1 + 2 + ... + 512)
    eighths = pytest.approx(np.arange(1, 9) / 8, abs=0.01)  # of whole steps
    assert [*known["share"].unique()] == eighths
    last = known[known["share"] == 1]
    often = last[last["exposure"] >= 128]
    never = last[last["exposure"] == 0]
    # Counts differ by a few facts between processors, which round otherwise.
    assert binomtest(int(never["right"].sum()), len(never), 1 / 22).pvalue > 0.001
    known_at_end = often.groupby("timing")["right"].mean()
    assert (known_at_end[["late", "spaced"]] > 0.9).all()
    assert (known_at_end[["early", "massed"]] < 0.8).all()
    # Of the fact that is followed one sentence stands in each sixteenth; moments are whole steps.
    assert followed["share"].tolist() == eighths
    assert followed["sentences"].tolist() == [3, 4, 6, 8, 11, 12, 14, 16]
    assert followed["says"].iloc[-1] == "Brussels"
    assert followed["P"].between(0, 1).all()


def test_the_followed_fact_is_told_as_often_as_the_reader_says():
    as_drawn = training_of()
    more = training_of(exposure=40)
    assert len(more.sentences) - len(as_drawn.sentences) == 40 - 16
    told = [study.sentences["fact_id"] == GIVEN["follow"] for study in (as_drawn, more)]
    assert [x.sum() for x in told] == [16, 40]
    others = [s.sentences[~x]["text"].tolist() for s, x in zip((as_drawn, more), told, strict=True)]
    assert others[0] == others[1]  # in the same order
    counted = more.facts.set_index("fact_id")["exposure"]
    assert counted[GIVEN["follow"]] == 40
    assert (more.world.facts["exposure"] == world.load_world().facts["exposure"]).all()
    with pytest.raises(ValueError, match=r"no dish of the invented world: give .* such as dish/"):
        training_of(relation="dish")
    with pytest.raises(ValueError, match="exposure is -1"):
        training_of(exposure=-1)


def test_a_training_is_done_once_and_anew_where_what_decides_it_is_another(monkeypatch, tmp_path):
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    trained = []
    watched = grow.watched
    monkeypatch.setattr(grow, "watched", lambda *a, **k: trained.append(1) or watched(*a, **k))
    study = training_of(width=32, layers=1, rate=1e-2, moments=2)
    study.sentences = study.sentences.iloc[:600]
    known, followed = study.train()
    assert known["share"].nunique() == len(followed) == 2
    again, same = study.train()
    assert len(trained) == 1
    assert again.equals(known)
    assert same.equals(followed)
    # The key of its record holds the code's version and the world's files.
    asked = world.loaded().table
    keys = {study._call(asked)}
    monkeypatch.setattr(training, "TRAINING", 99)
    keys.add(study._call(asked))
    some = world.files()[1:]  # as if one of them were another
    monkeypatch.setattr(world, "files", lambda *_: some)
    keys.add(study._call(asked))
    assert len(keys) == 3
