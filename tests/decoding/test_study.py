"""What a notebook of part 1 starts with, from the committed records."""

from factrobust import decoding
from factrobust.decoding.metrics import exact_breaking, frs_table, mark_samples
from factrobust.decoding.probe import TEMPERATURES

GEMMA, SMOLLM = "gemma-3-270m", "smollm2-135m-instruct"


def embedded(notebook, **parameters):
    given = {"data": ["embedded"], "n_questions": 30, "n_known": 3, "n_samples": 10}
    return decoding.Study(notebook(**given | parameters))


def test_decoding_asks_every_model_every_fact_and_knows_the_exact_matches(notebook):
    study = embedded(notebook, n_questions=900, n_boot=50)
    assert len(study.facts) == 900
    assert study.marked.groupby("model").size().to_dict() == {GEMMA: 900, SMOLLM: 900}
    assert study.known["exact_match"].all()
    assert len(study.known) == study.marked["exact_match"].sum() > 0
    few = study.known_sample
    assert few.groupby(["model", "domain"]).size().max() == 3
    samples = study.sampled()
    assert len(samples) == len(few) * 10 * 10
    asked = samples[["model", "fact_id"]].drop_duplicates().to_numpy().tolist()
    assert sorted(asked) == sorted(few[["model", "fact_id"]].to_numpy().tolist())
    # Means draw whole relations, and find them.
    answers = study.marked[["model", "fact_id", "exact_match"]]
    found = study.means(answers, ["model"], "exact_match")
    assert found["relations"].tolist() == [study.facts["relation"].nunique()] * 2
    assert found.equals(study.means(study.marked, ["model"], "exact_match"))


def test_measures_of_every_fact_known_or_not(notebook):
    given = {"models": ["world-m"], "data": ["world"], "n_questions": 1430}
    study = decoding.Study(notebook(**given))
    rows = study.measures
    assert len(rows) == 1430
    right = rows["right"] == 1
    same = rows[right & (rows["token_ids"].map(len) == 2)]  # the object and the end of the line
    assert (same["truth"] >= same["logprob"] - 1e-4).all()  # without the end
    assert rows["truth"][right].mean() > rows["truth"][~right].mean()
    of_known = frs_table(study.known, exact_breaking(study.curves()), unbroken=None)
    expected = of_known[of_known["d"] == 1].set_index("fact_id")[["t_b", "frs"]]
    assert rows[right].set_index("fact_id")[["t_b", "frs"]].equals(expected)


def test_one_way_finds_the_breaking_temperatures_of_all_models(notebook):
    study = embedded(notebook, n_questions=900)
    t_b, estimator = study.breaking
    assert estimator == "from $P_t$"
    assert len(t_b) == len(study.known) > len(study.known_sample)
    assert set(t_b["t_b"]) <= {*TEMPERATURES, float("inf")}
    beyond = embedded(notebook, n_questions=900)
    endpoint, other = beyond.models
    endpoint.lacks = {"temper": "no logits"}  # one of the two, and both are sampled
    t_b, estimator = beyond.breaking
    assert estimator == "by samples"
    assert not other.lacks
    found, few = (
        set(zip(t["model"], t["fact_id"], strict=True)) for t in (t_b, beyond.known_sample)
    )
    assert found == few
    # The first temperature at which fewer than half of the samples are right, by hand.
    right = mark_samples(beyond.sampled()).groupby(["model", "fact_id", "temperature"])["correct"]
    low = right.mean().unstack() < 0.5
    by_hand = low.idxmax(axis=1).where(low.any(axis=1), float("inf"))
    assert t_b.set_index(["model", "fact_id"])["t_b"].to_dict() == by_hand.to_dict()
