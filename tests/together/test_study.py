"""A study of part 6, with a grown model of which asking costs little."""

from factrobust import paths
from factrobust.models.damage import Damage
from factrobust.together import Study, metrics

GIVEN = {
    "models": ["world-s"], "data": "world", "n_questions": 60, "n_dated": 0, "n_known": 12,
    "n_prompts": 0, "n_damaged": 8, "sentence_encoder": "all-MiniLM-L6-v2", "seed": 0, "n_boot": 10,
}  # fmt: skip


def test_everything_is_of_the_same_known_facts(monkeypatch, tmp_path):
    monkeypatch.setenv("FACTROBUST_RECORDS", "fresh")
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    study = Study(**GIVEN)
    names = set(study.known["fact_id"])
    assert len(names) == 12
    assert study.known["right"].all()
    assert set(study.changed["fact_id"]) == set(study.samples["fact_id"]) == names
    assert study.measures[["model", "fact_id"]].duplicated().sum() == 0
    assert study.measures["wordings"].between(0, 1).all()
    assert study.years.empty  # nothing there held for a time
    assert len(study.answers) == 60 + 12 * 5
    rows = study.failures([Damage("noise", 0)])
    holds = rows.groupby("failure")["holds"].agg(["mean", "size"])
    assert holds.loc["weights"].tolist() == [1, 8]  # noise of nothing changes nothing
    assert holds.loc["words", "size"] == holds.loc["heat", "size"] == 12
    words = rows[rows["failure"] == "words"]
    assert (words["holds"] == (words["wordings"] == 1)).all()
    few = set(rows.loc[rows["failure"] == "weights", "fact_id"])
    assert few == set(metrics.most_shared(study.known, 8)["fact_id"])
    worse = study.after([Damage("round", 2)])
    assert worse["right"].mean() < 1
    assert worse["way"].tolist() == ["round"] * 8
