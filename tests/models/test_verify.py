"""What a model says is what its network says alone, row by row, whatever its architecture."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from factrobust.models.engine import Plain
from factrobust.models.extra import OpenELMConfig, OpenELMForCausalLM
from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.records import Records

SMALL = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
    "initializer_range": 0.5,
}
GPT = {
    "vocab_size": 64,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "initializer_range": 0.3,
}
LONGROPE = {
    "rope_type": "longrope",
    "original_max_position_embeddings": 40,
    "rope_theta": 10000.0,
    "short_factor": [1.0] * 4,
    "long_factor": [1.0, 2.0, 5.0, 9.0],
}


OTHER_NAMES = {
    "Bert": (hf.BertLMHeadModel, hf.BertConfig),
    "GPT2": (hf.GPT2LMHeadModel, hf.GPT2Config),
    "Gemma3": (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig),
    "OpenELM": (OpenELMForCausalLM, OpenELMConfig),
}


def made(kind: str, **options: Any) -> Any:
    """A network of random weights, the same each time."""
    names = f"{kind}ForCausalLM", f"{kind}Config"
    network, config = OTHER_NAMES.get(kind) or [getattr(hf, name) for name in names]
    torch.manual_seed(0)
    return network(config(**options)).eval()


def phi3(original: int) -> dict[str, Any]:
    """Its rotation depends on whether the longest row of a batch is longer than this."""
    return SMALL | {
        "max_position_embeddings": 200,
        "original_max_position_embeddings": original,
        "rope_parameters": LONGROPE | {"original_max_position_embeddings": original},
    }


def gpt_neo(window: int) -> dict[str, Any]:
    """It cuts its own masks by places in the batch, in rows longer than this."""
    return {
        "vocab_size": 64,
        "hidden_size": 32,
        "window_size": window,
        "num_layers": 2,
        "num_heads": 4,
        "attention_types": [[["global", "local"], 1]],
        "bos_token_id": 0,
        "eos_token_id": 0,
        "initializer_range": 0.5,
    }


TINY = {"vocab_size": 64, "hidden_size": 32, "initializer_range": 0.5}
MOE = {"num_local_experts": 4}
WINDOW = {"sliding_window": 9}
GEMMA = SMALL | WINDOW | {"head_dim": 8, "query_pre_attn_scalar": 8}
MPT = {
    "vocab_size": 64,
    "d_model": 48,
    "n_layers": 2,
    "n_heads": 6,
    "eos_token_id": 0,
    "initializer_range": 0.4,
}
OPENELM = {
    "vocab_size": 64,
    "model_dim": 32,
    "num_transformer_layers": 3,
    "head_dim": 8,
    "eos_token_id": 0,
    "num_query_heads": [2, 4, 4],
    "num_kv_heads": [1, 1, 2],
    "ffn_multipliers": [0.5, 1.0, 2.0],
    "ffn_dim_divisor": 8,
    "share_input_output_layers": True,
    "initializer_range": 0.5,
}
# In a batch without padding, in a padded one, or one row at a time.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "Llama": ("dense", SMALL),
    "Mistral": ("dense", SMALL | WINDOW),
    "Mixtral": ("dense", SMALL | MOE),
    "Gemma3": ("dense", GEMMA | {"layer_types": ["sliding_attention", "full_attention"]}),
    "Qwen2": ("dense", SMALL | WINDOW | {"use_sliding_window": True, "max_window_layers": 1}),
    "GPT2": ("dense", GPT),
    "OpenELM": ("dense", OPENELM),
    # It caps its attention's scores, which no fast attention does.
    "Gemma2": ("padded", GEMMA),
    # Its bias follows each token's own position.
    "Mpt": ("padded", MPT),
    # Their attention layers do not hand on where the tokens of a batch belong.
    "StableLm": ("padded", SMALL),
    "Nemotron": ("padded", SMALL),
    "GPTJ": ("padded", GPT | {"rotary_dim": 8}),
    "GptOss": ("padded", SMALL | MOE | WINDOW | {"head_dim": 8, "max_position_embeddings": 128}),
    "GPTNeo": ("plain", gpt_neo(9)),
    # It counts places for its bias, and takes no positions.
    "Bloom": ("plain", TINY | {"n_layer": 2, "n_head": 4}),
    # It has states in place of keys.
    "Mamba": ("plain", TINY | {"num_hidden_layers": 2, "state_size": 8}),
    "Phi3": ("plain", phi3(10)),
}


def way(model: Any) -> str:
    if isinstance(model.body, Plain):
        return "plain"
    return "dense" if model.body.dense else "padded"


def predicted(network: Any, ids: list[int], t: float = 1.0) -> torch.Tensor:
    """Log P_t of every token behind each: float64, one row, no mask."""
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([ids])).logits[0].double()
    return torch.log_softmax(logits / t, dim=-1)


def alone(network: Any, ids: list[int], start: int, t: float = 1.0) -> list[float]:
    """Log P_t of the tokens from `start` on, as a given answer is read."""
    every = predicted(network, ids, t)
    return [float(every[i - 1, ids[i]]) for i in range(start, len(ids))]


def grown(network: Any, ids: list[int], start: int, t: float = 1.0) -> list[float]:
    """The same, as an answer is made: token by token."""
    steps = range(start, len(ids))
    return [float(predicted(network, ids[:i], t)[-1, ids[i]]) for i in steps]


PREFIX = "the few shots that all "


def same_as_alone(model: Any, network: Any, ids: Any) -> None:
    # 1. Answers that are given: padded, with a shared prefix, with branches; the prefix is there;
    # its beginning serves; nothing is shared, and rows are longer than a window.
    rng = np.random.default_rng(1)
    starts = ["".join(rng.choice(list("abcdefgh"), n)) for n in (1, 5, 12, 30)]
    prompts = [f"{PREFIX}share {start}" for start in starts for _ in range(3)]
    answers = ["xyz", "x", "xyzABC12"] * 4
    part = [f"{PREFIX}others", f"{PREFIX}other"], ["uvw", "u"]
    lonely = ["q", "rst" * 9, "a" * 50], ["uvw", "u", "vw"]
    for asked, given in ((prompts, answers), (prompts[:3], answers[:3]), part, lonely):
        for prompt, answer, found in zip(asked, given, model.score(asked, given), strict=True):
            expected = alone(network, ids(prompt + answer), len(prompt))
            np.testing.assert_allclose(found, expected, atol=5e-5)
    for prompt, answer, curve in zip(*lonely, model.temper(*lonely, [0.2, 5.0]), strict=True):
        row = ids(prompt + answer)
        expected = [sum(alone(network, row, len(prompt), t)) for t in (0.2, 5.0)]
        np.testing.assert_allclose(curve, expected, atol=1e-3)
    # 2. Answers that are made.
    asked = ["a", "the quick brown fox jumps over", "lazy dogs", "xyz" * 13]
    greedy = model.generate(asked, max_new_tokens=6)
    drawn = model.sample(asked, temperature=2.0, n=4, max_new_tokens=6, seed=3)
    read = grown if way(model) == "plain" else alone
    for prompt, first, samples in zip(asked, greedy, drawn, strict=True):
        for g in (first, *samples):
            row = [*ids(prompt), *g.token_ids]
            expected = read(network, row, len(prompt))
            np.testing.assert_allclose(g.logprobs, expected, atol=5e-5)
            if g is not first:
                expected = read(network, row, len(prompt), 2.0)
                np.testing.assert_allclose(g.tempered_logprobs, expected, atol=5e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_says_what_it_says_alone(kind, lettered, ids, capsys):
    expected, options = KINDS[kind]
    network = made(kind, **options)
    model = lettered(made(kind, **options), kind)
    assert way(model) == expected
    said = capsys.readouterr().err
    assert (f"{kind}: {type(network).__name__} is asked one row at a time" in said) == (
        expected == "plain"
    )
    same_as_alone(model, network, ids)
    assert capsys.readouterr().err == ""  # it is said once


@pytest.mark.parametrize(("kind", "options"), [("Phi3", phi3(40)), ("GPTNeo", gpt_neo(40))])
def test_what_changes_with_the_length_is_found_before_the_first_row_of_that_length(
    kind, options, lettered, ids, capsys
):
    network = made(kind, **options)
    model = lettered(made(kind, **options))
    model.score(["a" * 36], ["bc"])
    assert way(model) != "plain"
    capsys.readouterr()
    same_as_alone(model, network, ids)
    assert way(model) == "plain"
    assert "in rows of 67 tokens" in capsys.readouterr().err


def test_a_window_that_is_understood_costs_one_check(lettered, ids, watch, capsys):
    """Longer rows than the window are compared once, and then go fast."""
    model = lettered(made("Mistral", **SMALL, sliding_window=40))
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
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    network = made("Bert", **TINY, **sizes)
    with pytest.raises(ModelError, match="BertLMHeadModel predicts changes with the tokens behind"):
        lettered(network)


def test_a_network_that_does_not_run_is_refused_in_one_sentence(lettered, tiny_t5):
    def refuse(*_: Any) -> None:
        raise IndexError("no such layer\nand much more")

    for network in (made("Llama", **SMALL), tiny_t5().network):
        network.register_forward_pre_hook(refuse)
        with pytest.raises(
            ModelError, match=r"does not run here .*\(IndexError: no such layer\); t"
        ):
            lettered(network)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_logits_that_are_not_the_heads_are_the_networks_own(kind, lettered, tiny_t5, ids, capsys):
    network = made("Llama", **SMALL) if kind == "decoder" else tiny_t5().network
    before = lettered(network).score(["who"], ["me"])[0]
    network.register_forward_hook(lambda _, __, out: out.__setitem__("logits", out.logits * 0.5))
    model = lettered(network)
    assert way(model) == "plain"
    assert "differ by" in capsys.readouterr().err
    halved = model.score(["who"], ["me"])[0]
    assert np.abs(halved - before).max() > 0.1
    if kind == "decoder":
        np.testing.assert_allclose(halved, alone(network, ids("whome"), 3), atol=2e-5)


# -- numbers that are none -------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_are_an_error(bad, lettered, tmp_path):
    model = lettered(made("Llama", **SMALL, tie_word_embeddings=False))
    with torch.no_grad():
        model.network.model.embed_tokens.weight[model.tokenizer("K").input_ids[0]] = bad
    about = {"name": "tiny", "fingerprint": "tiny", "prompt_format": "prefix", "chat": None}
    recorded = RecordedModel(Records(tmp_path / "records.sqlite"), lambda: model, **about)
    assert np.isfinite(recorded.score(["the"], ["abc"])[0]).all()
    asks = [
        lambda: recorded.generate(["K"]),
        lambda: recorded.sample(["K"], temperature=1.0, n=2),
        lambda: recorded.sample(["K"], temperature=0.0, n=1),
        lambda: recorded.score(["aK"], ["b"]),
        lambda: recorded.temper(["aK"], ["b"], [1.0]),
    ]
    for ask in asks:
        for _ in range(2):  # nothing of it was recorded
            with pytest.raises(
                ModelError, match=r"tiny: the network's logits are not numbers \(NaN"
            ):
                ask()
    with torch.no_grad():
        model.network.model.embed_tokens.weight.fill_(bad)
    with pytest.raises(ModelError, match="logits are not numbers"):
        lettered(model.network)


def test_impossible_tokens_are_no_fault(lettered):
    """Some networks give tokens that must not be said a logit of minus infinity."""
    network = made("Llama", **SMALL)

    def forbid(_: Any, __: Any, out: Any) -> Any:
        out[..., 5] = -torch.inf
        return out

    network.lm_head.register_forward_hook(forbid)
    model = lettered(network)
    assert way(model) == "dense"
    assert np.isneginf(model.score(["the"], [[5]])[0]).all()
    assert np.isfinite(model.generate(["the"])[0].logprobs).all()


def test_weights_without_a_place_are_refused(lettered):
    with torch.device("meta"):
        network = made("Llama", **SMALL)
    with pytest.raises(
        ModelError, match=r"tiny does not fit into this machine's memory: 2\d of its"
    ):
        lettered(network)
