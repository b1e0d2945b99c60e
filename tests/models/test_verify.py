"""What a model says is what its network says alone, row by row, whatever its architecture."""

import numpy as np
import pytest
import torch
import yaml
from networks import LLAMA, alone, assert_given_as_alone, assert_made_as_alone, build

from factrobust.models.engine import Plain
from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.records import Records

SETTINGS = yaml.safe_load("""
GPT:
    vocab_size: 64
    n_embd: 32
    n_layer: 2
    n_head: 4
    bos_token_id: 0
    eos_token_id: 0
    initializer_range: 0.3
MPT:
    vocab_size: 64
    d_model: 48
    n_layers: 2
    n_heads: 6
    eos_token_id: 0
    initializer_range: 0.4
OpenELM:
    vocab_size: 64
    model_dim: 32
    num_transformer_layers: 3
    head_dim: 8
    eos_token_id: 0
    num_query_heads: [2, 4, 4]
    num_kv_heads: [1, 1, 2]
    ffn_multipliers: [0.5, 1.0, 2.0]
    ffn_dim_divisor: 8
    share_input_output_layers: true
    initializer_range: 0.5
""")
GPT = SETTINGS["GPT"]
TINY = {"vocab_size": 64, "hidden_size": 32, "initializer_range": 0.5}
MOE = {"num_local_experts": 4}
WINDOW = {"sliding_window": 9}
GEMMA = LLAMA | WINDOW | {"head_dim": 8, "query_pre_attn_scalar": 8}


def phi3(original):
    """Its rotation depends on whether the longest row of a batch is longer than this."""
    longrope = {
        "rope_type": "longrope",
        "original_max_position_embeddings": original,
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [1.0, 2.0, 5.0, 9.0],
    }
    return LLAMA | {
        "max_position_embeddings": 200,
        "original_max_position_embeddings": original,
        "rope_parameters": longrope,
    }


def gpt_neo(window):
    """It cuts its own masks by places in the batch, in rows longer than this."""
    return TINY | {
        "window_size": window,
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
        "bos_token_id": 0,
        "eos_token_id": 0,
    }


# In a batch without padding, in a padded one, or one row at a time.
KINDS = {
    "Llama": ("dense", LLAMA),
    "Mistral": ("dense", LLAMA | WINDOW),
    "Mixtral": ("dense", LLAMA | MOE),
    "Gemma3": ("dense", GEMMA | {"layer_types": ["sliding_attention", "full_attention"]}),
    "Qwen2": ("dense", LLAMA | WINDOW | {"use_sliding_window": True, "max_window_layers": 1}),
    "GPT2": ("dense", GPT),
    "OpenELM": ("dense", SETTINGS["OpenELM"]),
    # It caps its attention's scores, which no fast attention does.
    "Gemma2": ("padded", GEMMA),
    # Its bias follows each token's own position.
    "Mpt": ("padded", SETTINGS["MPT"]),
    # Their attention layers do not hand on where the tokens of a batch belong.
    "StableLm": ("padded", LLAMA),
    "Nemotron": ("padded", LLAMA),
    "GPTJ": ("padded", GPT | {"rotary_dim": 8}),
    "GptOss": ("padded", LLAMA | MOE | WINDOW | {"head_dim": 8, "max_position_embeddings": 128}),
    "GPTNeo": ("plain", gpt_neo(9)),
    # It counts places for its bias, and takes no positions.
    "Bloom": ("plain", TINY | {"n_layer": 2, "n_head": 4}),
    # It has states in place of keys.
    "Mamba": ("plain", TINY | {"num_hidden_layers": 2, "state_size": 8}),
    "Phi3": ("plain", phi3(10)),
}
PREFIX = "the few shots that all "
STARTS = ("d", "eagbh", "bhcfadgecabf", "ehgabcdfhgeacbdfabhcegdfhabcde")
SHARED = [f"{PREFIX}share {start}" for start in STARTS for _ in range(3)]
# Prompts and answers, in turn: padded, with a shared prefix, with branches; the prefix is there;
# its beginning serves; nothing is shared, and rows are longer than a window.
GIVEN = [
    (SHARED, ["xyz", "x", "xyzABC12"] * 4),
    (SHARED[:3], ["xyz", "x", "xyzABC12"]),
    ([f"{PREFIX}others", f"{PREFIX}other"], ["uvw", "u"]),
    (["q", "rst" * 9, "a" * 50], ["uvw", "u", "vw"]),
]
BEGUN = ["a", "the quick brown fox jumps over", "lazy dogs", "xyz" * 13]


def way(model):
    if isinstance(model.body, Plain):
        return "plain"
    return "dense" if model.body.dense else "padded"


def assert_says_what_it_says_alone(model, network, ids):
    for prompts, answers in GIVEN:
        assert_given_as_alone(model, network, ids, prompts, answers)
    assert_made_as_alone(model, network, ids, BEGUN)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_says_what_it_says_alone(kind, lettered, ids, capsys):
    expected, settings = KINDS[kind]
    network = build(kind, **settings)
    model = lettered(build(kind, **settings), kind)
    assert way(model) == expected
    slow = f"{kind}: {type(network).__name__} is asked one row at a time"
    assert (slow in capsys.readouterr().err) == (expected == "plain")
    assert_says_what_it_says_alone(model, network, ids)
    assert "one row at a time" not in capsys.readouterr().err  # it is said once


@pytest.mark.parametrize(("kind", "settings"), [("Phi3", phi3(40)), ("GPTNeo", gpt_neo(40))])
def test_what_changes_with_the_length_is_found_before_the_first_row_of_that_length(
    kind, settings, lettered, ids, capsys
):
    network = build(kind, **settings)
    model = lettered(build(kind, **settings))
    model.score(["a" * 36], ["bc"])
    curve = model.temper(["a"], ["bc"], [2.0])
    assert way(model) != "plain"
    capsys.readouterr()
    model.score(["a" * 66], ["b"])
    assert way(model) == "plain"
    assert "in rows of 67 tokens" in capsys.readouterr().err
    # Hidden states that were kept for the same answers are no logits.
    np.testing.assert_allclose(model.temper(["a"], ["bc"], [2.0]), curve, atol=1e-3)
    assert_says_what_it_says_alone(model, network, ids)


def test_a_window_that_is_understood_costs_one_check(lettered, watch, capsys):
    """Longer rows than the window are compared once, and then go fast."""
    model = lettered(build("Mistral", **LLAMA, sliding_window=40))
    counts = []
    for length in (30, 60, 60, 61):
        with watch(model) as work:
            model.score(["a" * length], ["b"])
        counts.append(len(work.body))
    # Of the second five are the check: three rows alone, their common beginning, and their batch.
    assert counts == [2, 5 + 1, 1, 2]
    assert way(model) == "dense"
    assert capsys.readouterr().err == ""


def test_a_network_that_looks_ahead_is_refused(lettered):
    settings = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    network = build("Bert", **TINY, **settings)
    with pytest.raises(ModelError, match="BertLMHeadModel predicts changes with the tokens behind"):
        lettered(network)


def network_of(kind, tiny_t5):
    return build("Llama", **LLAMA) if kind == "decoder" else tiny_t5().network


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_a_network_that_does_not_run_is_refused_in_one_sentence(kind, lettered, tiny_t5):
    def refuse(*_):
        raise IndexError("no such layer\nand much more")

    network = network_of(kind, tiny_t5)
    network.register_forward_pre_hook(refuse)
    with pytest.raises(ModelError, match=r"does not run here .*\(IndexError: no such layer\); t"):
        lettered(network)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_logits_that_are_not_the_heads_are_the_networks_own(kind, lettered, tiny_t5, ids, capsys):
    def halve(_, __, out):
        out["logits"] = out.logits * 0.5

    network = network_of(kind, tiny_t5)
    [before] = lettered(network).score(["who"], ["me"])
    network.register_forward_hook(halve)
    model = lettered(network)
    assert way(model) == "plain"
    assert "differ by" in capsys.readouterr().err
    [halved] = model.score(["who"], ["me"])
    assert np.abs(halved - before).max() > 0.1
    np.testing.assert_allclose(halved, alone(network, ids("who"), ids("me")), atol=2e-5)


# -- numbers that are none -------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_an_error(bad, lettered, ids, tmp_path):
    model = lettered(build("Llama", **LLAMA, tie_word_embeddings=False))
    weights = model.network.model.embed_tokens.weight.detach()
    weights[ids("K")] = bad
    store = Records(tmp_path / "records.sqlite")
    recorded = RecordedModel(store, lambda: model, name="tiny", fingerprint="tiny")
    assert np.isfinite(recorded.score(["the"], ["abc"])[0]).all()
    asks = [
        lambda: recorded.generate(["K"]),
        lambda: recorded.sample(["K"], temperature=1.0, n=2),
        lambda: recorded.sample(["K"], temperature=0.0, n=1),
        lambda: recorded.score(["aK"], ["b"]),
        lambda: recorded.temper(["aK"], ["b"], [1.0]),
    ]
    for ask in asks * 2:  # nothing of it was recorded
        with pytest.raises(ModelError, match=r"tiny: the network's logits are not numbers \(NaN"):
            ask()
    weights.fill_(bad)
    with pytest.raises(ModelError, match="logits are not numbers"):
        lettered(model.network)


def test_impossible_tokens_are_no_fault(lettered):
    """Some networks give tokens that must not be said a logit of minus infinity."""

    def forbid(_, __, out):
        out[..., 5] = -torch.inf
        return out

    network = build("Llama", **LLAMA)
    network.lm_head.register_forward_hook(forbid)
    model = lettered(network)
    assert way(model) == "dense"
    assert np.isneginf(model.score(["the"], [[5]])[0]).all()
    assert np.isfinite(model.generate(["the"])[0].logprobs).all()
