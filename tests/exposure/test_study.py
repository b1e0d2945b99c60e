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
    # Counts differ by a few facts between processors, which round otherwise.
    never = known.query("share == 1 and exposure == 0")
    n_right = int(never["right"].sum())
    chance = binomtest(n_right, len(never), 1 / 22)
    assert chance.pvalue > 0.001
    often = known.query("share == 1 and exposure >= 128")
    shares = often.groupby("timing")["right"].mean()
    assert shares[["late", "spaced"]].min() > 0.9
    assert shares[["early", "massed"]].max() < 0.8
    # Of the fact that is followed one sentence stands in each sixteenth; moments are whole steps.
    assert followed["share"].to_numpy() == pytest.approx(eighths, abs=0.01)
    assert followed["sentences"].tolist() == [3, 4, 6, 8, 11, 12, 14, 16]
    assert followed["says"].iloc[-1] == "Brussels"
    assert followed["P"].between(0, 1).all()


def test_the_followed_fact_is_told_as_often_as_the_reader_says():
    others = []
    for n_told in (16, 40):
        study = training_of(exposure=n_told)
        is_followed = study.sentences["fact_id"] == GIVEN["follow"]
        assert is_followed.sum() == n_told
        others.append(study.sentences.loc[~is_followed, "text"].tolist())
    as_drawn, beside_more = others
    assert as_drawn == beside_more  # in the same order
    counted = study.facts.set_index("fact_id")["exposure"]
    assert counted[GIVEN["follow"]] == 40
    drawn = world.load_world().facts["exposure"]
    assert study.world.facts["exposure"].equals(drawn)
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
    first = study._call(asked)
    monkeypatch.setattr(training, "TRAINING", 99)
    second = study._call(asked)
    some = world.files()[1:]  # as if one of them were another
    monkeypatch.setattr(world, "files", lambda *_: some)
    third = study._call(asked)
    assert len({first, second, third}) == 3
