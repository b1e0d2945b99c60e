"""What a notebook of part 1 starts with, from the committed records."""

import pytest

from factrobust import decoding
from factrobust.decoding.metrics import KEY, mark_samples
from factrobust.models.interface import LacksError

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"


@pytest.fixture
def study(notebook):
    """Both small models on all 900 facts, of which three a domain are sampled."""
    return decoding.Study(
        **notebook(data=["embedded"], n_questions=900, n_known=3, n_samples=10, n_boot=50)
    )


def test_where_one_model_gives_no_logits_all_are_sampled(study):
    """The first temperature at which fewer than half of the samples are right, by hand."""
    endpoint, other = study.models
    endpoint.lacks = {"temper": "no logits"}
    t_b, estimator = study.breaking
    assert estimator == "by samples"
    assert not other.lacks
    samples = study.sampled()
    assert len(samples) == len(study.known_sample) * 10 * 10
    right = mark_samples(samples).groupby([*KEY, "temperature"])["correct"].mean().unstack()
    low = right < 0.5
    by_hand = low.idxmax(axis=1).where(low.any(axis=1), float("inf"))
    assert t_b.set_index(KEY)["t_b"].to_dict() == by_hand.to_dict()
    assert set(by_hand.index) == set(study.known_sample.set_index(KEY).index)


def test_both_prompt_formats(study):
    """A model's own format stands for one that begins the answer as it does."""
    facts = study.facts.sample(300, random_state=0)
    formats = study.in_formats(["two-shot", "prefix"], facts)
    sent = formats.groupby(["model", "format"])["prompt_format"].agg(set).to_dict()
    assert sent == {
        (GEMMA, "two-shot"): {"two-shot"},
        (GEMMA, "prefix"): {"prefix"},
        (SMOLLM, "two-shot"): {"two-shot"},
        (SMOLLM, "prefix"): {"chat-prefix"},
    }


def test_what_a_cut_leaves_is_known_of_no_model_that_gives_no_logits(study):
    """Gemma knows facts here, but as if behind an endpoint; SmolLM2, which can be tempered, none."""
    study.models[0].lacks = {"temper": "no logits"}
    study.marked.loc[study.marked["model"] == SMOLLM, "exact_match"] = False
    with pytest.raises(LacksError, match=rf"^{GEMMA}, {SMOLLM}: only models that cannot be temp"):
        study.cut([1.0], top_k=50)


def test_what_transformers_draws_by_where_nothing_is_set():
    """As 1.1 says of the installed version: greedy; told to sample t = 1 and top-k 50; pipeline t = 0.7."""
    from transformers import GenerationConfig
    from transformers.pipelines.text_generation import TextGenerationPipeline

    usual = GenerationConfig._get_default_generation_params()
    expected = {"do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0}
    assert expected.items() <= usual.items()
    pipeline = TextGenerationPipeline._default_generation_config
    assert pipeline.do_sample
    assert pipeline.temperature == 0.7
    assert pipeline.top_k in (None, 50)
