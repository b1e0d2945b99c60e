"""What profiles name, on stand-ins in a cache of the hub: each loads offline, and says what its own network says."""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch

from factrobust.context import facts as contexts
from factrobust.datasets import official
from factrobust.models import load
from factrobust.models.interface import ModelError
from factrobust.paths import ROOT
from factrobust.temporal import facts as dated
from factrobust.wording import facts as wordings

standins = runpy.run_path(str(Path(__file__).parent / "standins.py"))
# One of each architecture and dtype; the others differ by their name alone.
SOME = [
    "apple/OpenELM-450M-Instruct",
    "apple/OpenELM-3B",
    "google/gemma-2-2b-it",
    "google/flan-ul2",
    "bigscience/mt0-xxl",
    "EleutherAI/gpt-neox-20b",
    "ibm-research/mpt-7b-instruct2",
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Llama-3.1-70B",
    "mistralai/Mistral-Nemo-Base-2407",
    "Qwen/Qwen2.5-3B-Instruct",
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("hub")


@pytest.fixture
def hub(cache, tmp_path, monkeypatch):
    """A function that writes stand-ins into a cache, which is all that there is of the hub."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    table = tmp_path / "models.csv"
    table.write_text(standins["smaller"](load.FILE))
    monkeypatch.setattr(load, "FILE", table)
    return lambda *names: [standins["write_model"](cache, name) for name in names]


def test_every_name_in_a_profile_has_a_stand_in():
    names = standins["named"]()
    assert len(names) > 30
    for name in names:
        assert "Llama-2" in name or standins["kind_of"](name)
    assert {*SOME} <= {*names}


@torch.no_grad()
@pytest.mark.parametrize("name", SOME)
def test_a_stand_in_loads_as_from_the_hub_and_says_what_its_network_says(hub, name):
    hub(name, *(["NousResearch/Llama-2-7b-hf"] if "OpenELM" in name else []))
    model = load.load_model(name)
    line = load.settings_of(name)
    assert model.fingerprint.startswith(f"hub:{name}@{standins['commit_of'](name)}")
    assert model.network.dtype == getattr(torch, line.dtype)
    assert (model.chat is not None) == (line.chat_template != "no")
    prompts = ["Q: What is the capital of Kenya?\nA:", "Q: Who wrote Emma?\nA:"]
    answers = model.generate(prompts, max_new_tokens=4)
    for prompt, answer in zip(prompts, answers, strict=True):
        ids = answer.token_ids
        logits = model.whole(model._encode(prompt), ids, len(ids) + 1)[:-1]
        every_token = logits.log_softmax(dim=-1)
        expected = every_token[range(len(ids)), ids].numpy()
        scored = model.score([prompt], [ids])[0]
        tempered = model.temper([prompt], [ids], [1.0])[0, 0]
        rough = 0.05 if line.dtype == "bfloat16" else 1e-4
        np.testing.assert_allclose(answer.logprobs, expected, atol=rough)
        np.testing.assert_allclose(scored, expected, atol=rough)
        assert tempered == pytest.approx(scored.sum(), abs=rough)


@pytest.mark.usefixtures("hub")
def test_data_sets_load_as_from_the_hub(cache):
    standins["write_data"](cache)
    loaders = wordings.LOADERS | dated.LOADERS | official.LOADERS
    sizes = {}
    for name in ("squad", "trivia_qa", "hotpot_qa", "popqa_tp", "timestress_paper"):
        loaded = official.load_official(name, loaders=loaders)
        sizes[name] = len(loaded.table)
    assert sizes["squad"] == standins["ROWS"]
    assert sizes["hotpot_qa"] == standins["ROWS"] / 2
    assert sizes["popqa_tp"] > 3 * standins["ROWS"]
    assert loaded.table.groupby("relation").size().to_dict() == dict.fromkeys(
        dated.PAPER_RELATIONS, 12
    )
    assert {*loaded.dates["precision"]} == {"year", "month", "day"}


def test_the_thesis_files_are_read(tmp_path):
    standins["write_thesis"](tmp_path / "thesis")
    table = contexts.load_named_context(f"thesis:{tmp_path / 'thesis'}", limit=2)
    assert table.groupby("base_id").size().eq(2).all()
    assert table["base_id"].nunique() > 90


FACTS = {
    "What is the capital of Kenya?": "Nairobi",
    "What is the capital of Peru?": "Lima",
    "What is the capital of Cuba?": "Havana",
    "What is the capital of Italy?": "Rome",
}
PROMPT = "Q: Who wrote Emma?\nA: Jane Austen\n\nQ: What is the capital of Kenya?\nA:"


def test_a_profile_is_run_on_as_few_questions_as_smoke_asks():
    few = standins["few_questions"](ROOT, "paper")["notebooks"]
    known = few["1-decoding/1.1-known-facts.ipynb"]
    assert known["data"] == ["squad", "trivia_qa", "hotpot_qa"]
    assert len(known["models"]) == 5
    numbers = ("n_questions", "n_known", "n_samples", "n_boot")
    assert [known[name] for name in numbers] == [24, 12, 4, 50]
    memory = few["4-context/4.2-memory-or-context.ipynb"]
    assert memory["larger"][0] == "meta-llama/Llama-3.1-8B-Instruct"  # the profile's own
    assert memory["n_objects_larger"] == 2
    formats = few["2-time/2.3-formats-size-popularity-tuning.ipynb"]
    assert formats["n_formats"] == 6
    # Of part 5 the profile says nothing.
    forgetting = few["5-exposure/5.2-dose-response-and-forgetting.ipynb"]
    assert forgetting["models"] == ["world-s", "world-s-1"]


def test_the_server_knows_facts_and_loses_them_to_heat():
    """Of 1,000 draws at 1 half are lost, and of these one in four is right by lot; at 2 all are lost."""
    answer_of = standins["answer_to"]
    assert answer_of(PROMPT, "greedy", 0, FACTS) == "Nairobi"
    for temperature, share in ((1, 0.5 + 0.5 / 4), (2, 1 / 4)):
        texts = [answer_of(PROMPT, draw, temperature, FACTS) for draw in range(1000)]
        assert np.mean([text == "Nairobi" for text in texts]) == pytest.approx(share, abs=0.05)
        assert set(texts) == set(FACTS.values())
    unknown = {answer_of(f"Q: Who wrote novel {k}?\nA:", "greedy", 0, FACTS) for k in range(50)}
    assert unknown == set(FACTS.values())


def test_the_server_knows_what_the_data_sets_ask():
    facts = standins["known_facts"]()
    asked = standins["squad"](standins["asked_facts"]())
    answers = dict(zip(asked["question"], asked["answers"], strict=True))
    assert len(facts) == 36  # three quarters of 48
    for question, answer in facts.items():
        assert answer in answers[question]["text"]


def test_an_endpoint_is_asked_by_what_it_takes(monkeypatch):
    """With every option that the operations have: nothing that is sent is refused."""
    monkeypatch.setenv("STANDIN_KEY", "sk-1")
    with standins["strict_server"](FACTS) as url:
        about = {
            "url": url,
            "model": "gpt-4o-mini",
            "key_env": "STANDIN_KEY",
            "server": "openai",
        }
        model = load.load_model(about)
        [answer] = model.generate([PROMPT], stop=["1", "2", "3", "4", "5", "\n"])
        assert answer.text == "Nairobi"
        assert answer.logprobs == pytest.approx([-0.1, -0.3])
        samples = model.sample(
            [PROMPT],
            temperature=1.9,
            n=30,
            seed=3,
        )[0]
        assert {sample.text for sample in samples} == set(FACTS.values())
        with pytest.raises(ModelError, match=r"argument supplied: min_p.*say which `server`"):
            load.load_model(about | {"server": "vllm", "retries": 0}).generate([PROMPT])
