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
    eighths = np.arange(1, 9) / 8
    assert known["share"].unique() == pytest.approx(eighths, abs=0.01)  # of whole steps
    last = known.query("share == 1")
    # Counts differ by a few facts between processors, which round otherwise.
    never = last.query("exposure == 0")["right"]
    chance = binomtest(int(never.sum()), len(never), 1 / 22)
    assert chance.pvalue > 0.001
    often = last.query("exposure >= 128").groupby("timing")["right"].mean()
    assert (often[["late", "spaced"]] > 0.9).all()
    assert (often[["early", "massed"]] < 0.8).all()
    # Of the fact that is followed one sentence stands in each sixteenth; moments are whole steps.
    shares = followed["share"].to_numpy()
    assert shares == pytest.approx(eighths, abs=0.01)
    assert followed["sentences"].tolist() == [3, 4, 6, 8, 11, 12, 14, 16]
    assert followed["says"].iloc[-1] == "Brussels"
    assert followed["P"].between(0, 1).all()


def test_the_followed_fact_is_told_as_often_as_the_reader_says():
    as_drawn = training_of()
    more = training_of(exposure=40)
    others = []
    for study, n_told in ((as_drawn, 16), (more, 40)):
        is_followed = study.sentences["fact_id"] == GIVEN["follow"]
        assert is_followed.sum() == n_told
        others.append(study.sentences.loc[~is_followed, "text"].tolist())
    assert others[0] == others[1]  # in the same order
    [counted] = more.facts.query(f"fact_id == '{GIVEN['follow']}'")["exposure"]
    assert counted == 40
    drawn = world.load_world().facts["exposure"]
    assert more.world.facts["exposure"].equals(drawn)
    with pytest.raises(ValueError, match=r"no dish of the invented world: give .* such as dish/"):
        training_of(relation="dish")
    with pytest.raises(ValueError, match="exposure is -1"):
        training_of(exposure=-1)


def test_a_training_is_done_once_and_anew_where_what_decides_it_is_another(monkeypatch, tmp_path):
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    trained = []
    watched = grow.watched

    def counted(plan, *arguments, **options):
        trained.append(plan)
        return watched(plan, *arguments, **options)

    monkeypatch.setattr(grow, "watched", counted)
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
