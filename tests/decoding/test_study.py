"""What a notebook of part 1 starts with, from the committed records."""

import numpy as np
import pytest

from factrobust import decoding
from factrobust.decoding.metrics import KEY, exact_breaking, frs_table, mark_samples
from factrobust.decoding.probe import TEMPERATURES
from factrobust.models.interface import LacksError

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"


def asked() -> decoding.Study:
    return decoding.Study(
        models=[GEMMA, SMOLLM],
        data=["embedded"],
        n_questions=900,
        n_known=3,
        n_samples=10,
        n_boot=50,
        seed=0,
    )


@pytest.fixture(scope="module")
def study():
    """Both small models on all 900 facts, of which three a domain are sampled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FACTROBUST_RECORDS", "replay")
        yield asked()


def test_decoding_asks_every_model_every_fact_and_knows_the_exact_matches(study):
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
    study = decoding.Study(**notebook(**given))
    rows = study.measures
    assert len(rows) == 1430
    right = rows["right"] == 1
    same = rows[right & (rows["token_ids"].map(len) == 2)]  # the object and the end of the line
    assert (same["truth"] >= same["logprob"] - 1e-4).all()  # without the end
    assert rows["truth"][right].mean() > rows["truth"][~right].mean()
    of_known = frs_table(study.known, exact_breaking(study.curves()), unbroken=None)
    expected = of_known[of_known["d"] == 1].set_index("fact_id")[["t_b", "frs"]]
    assert rows[right].set_index("fact_id")[["t_b", "frs"]].equals(expected)


def test_one_way_finds_the_breaking_temperatures_of_all_models(study):
    t_b, estimator = study.breaking
    assert estimator == "from $P_t$"
    assert len(t_b) == len(study.known) > len(study.known_sample)
    assert set(t_b["t_b"]) <= {*TEMPERATURES, float("inf")}


def test_where_one_model_gives_no_logits_all_are_sampled(study):
    beyond = asked()
    endpoint, other = beyond.models
    endpoint.lacks = {"temper": "no logits"}
    t_b, estimator = beyond.breaking
    assert estimator == "by samples"
    assert not other.lacks
    sampled = beyond.known_sample[["model", "fact_id"]]
    assert set(t_b[KEY].itertuples(index=False)) == set(sampled.itertuples(index=False))
    # The first temperature at which fewer than half of the samples are right, by hand.
    right = mark_samples(beyond.sampled()).groupby(["model", "fact_id", "temperature"])["correct"]
    low = right.mean().unstack() < 0.5
    by_hand = low.idxmax(axis=1).where(low.any(axis=1), float("inf"))
    assert t_b.set_index(["model", "fact_id"])["t_b"].to_dict() == by_hand.to_dict()


def test_the_length_neutral_t_b_is_where_the_mean_token_has_one_half(study):
    both = study.held
    assert both["tokens"].tolist() == both["logprobs"].map(len).tolist()
    one = both["tokens"] == 1
    assert both.loc[one, "t_b"].tolist() == both.loc[one, "t_b_per_token"].tolist()
    assert (both.loc[~one, "t_b_per_token"] > both.loc[~one, "t_b"]).all()
    for fact in both[~one].head(20).itertuples():
        curve = study.curves().query("model == @fact.model and fact_id == @fact.fact_id")
        at = np.interp(fact.t_b_per_token, curve["temperature"], curve["logprob"] / fact.tokens)
        assert abs(at - np.log(0.5)) < 0.02  # a straight line between the grid's points


def test_both_prompt_formats(study):
    asked = study.facts.sample(300, random_state=0)
    formats = study.in_formats(["two-shot", "prefix"], asked)
    sent = formats.groupby(["model", "format"])["prompt_format"].unique().map(list).to_dict()
    assert sent == {
        (GEMMA, "two-shot"): ["two-shot"],
        (GEMMA, "prefix"): ["prefix"],
        (SMOLLM, "two-shot"): ["two-shot"],
        (SMOLLM, "prefix"): ["chat-prefix"],
    }
    usual = {GEMMA: "two-shot", SMOLLM: "prefix"}
    own = formats[formats["format"] == formats["model"].map(usual)].set_index(KEY)
    known = study.marked.set_index(KEY)["exact_match"]
    assert own["exact_match"].equals(known[own.index])
    t_b = study.exact.set_index(KEY)["t_b"]
    assert own["t_b"][own["exact_match"]].equals(t_b[own.index[own["exact_match"]]])


def test_cuts_are_of_the_sampled_facts_and_raise_the_answer(study):
    at = [0.2, 0.6, 0.7, 1.0, 1.4, 2.0]
    cut = study.cut(at, top_k=50)
    few = study.known_sample
    assert len(cut) == len(few) * len(at)
    plain = study.curves().set_index([*KEY, "temperature"])["logprob"]
    for t in (0.2, 1.0, 2.0):
        both = cut[cut["temperature"] == t].join(plain.rename("plain"), on=[*KEY, "temperature"])
        gain = both["logprob"] - both["plain"]
        assert gain.min() > -1e-4  # the likeliest token is never cut
    assert (gain > 0.1).mean() > 0.9  # at t = 2 the unlikely ones have most of the probability


def test_what_a_cut_leaves_is_known_of_no_model_that_gives_no_logits(study):
    """Gemma knows facts here, but as if behind an endpoint; SmolLM2, which can be tempered, none."""
    beyond = asked()
    beyond.models[0].lacks = {"temper": "no logits"}
    beyond.marked.loc[beyond.marked["model"] == SMOLLM, "exact_match"] = False
    with pytest.raises(LacksError, match=rf"^{GEMMA}, {SMOLLM}: only models that cannot be temp"):
        beyond.cut([1.0], top_k=50)


def test_what_transformers_draws_by_where_nothing_is_set():
    """As 1.1 says of the installed version: greedy; told to sample t = 1 and top-k 50; pipeline t = 0.7."""
    from transformers import GenerationConfig
    from transformers.pipelines.text_generation import TextGenerationPipeline

    usual = GenerationConfig._get_default_generation_params()
    assert {name: usual[name] for name in ("do_sample", "temperature", "top_k", "top_p")} == {
        "do_sample": False,
        "temperature": 1.0,
        "top_k": 50,
        "top_p": 1.0,
    }
    pipeline = TextGenerationPipeline._default_generation_config
    assert pipeline.do_sample
    assert pipeline.temperature == 0.7
    assert pipeline.top_k in (None, 50)
