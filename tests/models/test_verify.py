"""What a model says is what its network says alone, row by row, whatever its architecture."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

from factrobust.models.engine import Plain
from factrobust.models.interface import ModelError

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


def llama(**options: Any) -> Any:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**(SMALL | options)))


def phi3(original: int) -> Any:
    rope = LONGROPE | {"original_max_position_embeddings": original}
    more = {"max_position_embeddings": 200, "original_max_position_embeddings": original}
    return hf.Phi3ForCausalLM(hf.Phi3Config(**SMALL, **more, rope_parameters=rope))


def gpt_neo(window: int) -> Any:
    layers = {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]]}
    sizes = {
        "vocab_size": 64,
        "hidden_size": 32,
        "window_size": window,
        "initializer_range": 0.5,
    }
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return hf.GPTNeoForCausalLM(hf.GPTNeoConfig(**sizes, **layers, **ends))


# In a batch without padding, in a padded one, or one row at a time.
KINDS: dict[str, tuple[str, Callable[[], Any]]] = {
    "llama": ("dense", llama),
    "mistral": (
        "dense",
        lambda: hf.MistralForCausalLM(hf.MistralConfig(**SMALL, sliding_window=9)),
    ),
    "mixtral": (
        "dense",
        lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**SMALL, num_local_experts=4)),
    ),
    # Their attention layers do not hand on where the tokens of a batch belong.
    "stablelm": ("padded", lambda: hf.StableLmForCausalLM(hf.StableLmConfig(**SMALL))),
    "nemotron": ("padded", lambda: hf.NemotronForCausalLM(hf.NemotronConfig(**SMALL))),
    "gptj": ("padded", lambda: hf.GPTJForCausalLM(hf.GPTJConfig(**GPT, rotary_dim=8))),
    "gpt-oss": (
        "padded",
        lambda: hf.GptOssForCausalLM(
            hf.GptOssConfig(
                **SMALL,
                head_dim=8,
                num_local_experts=4,
                sliding_window=9,
                max_position_embeddings=128,
            )
        ),
    ),
    # It cuts its own masks by places in the batch.
    "gpt-neo": ("plain", lambda: gpt_neo(9)),
    # It counts places for its bias, and takes no positions.
    "bloom": (
        "plain",
        lambda: hf.BloomForCausalLM(
            hf.BloomConfig(
                vocab_size=64,
                hidden_size=32,
                n_layer=2,
                n_head=4,
                initializer_range=0.5,
            )
        ),
    ),
    # It has states in place of keys.
    "mamba": (
        "plain",
        lambda: hf.MambaForCausalLM(
            hf.MambaConfig(
                vocab_size=64,
                hidden_size=32,
                num_hidden_layers=2,
                state_size=8,
                initializer_range=0.5,
            )
        ),
    ),
    # Its rotation depends on the longest row of a batch.
    "phi3": ("plain", lambda: phi3(10)),
}


def way(model: Any) -> str:
    if isinstance(model.body, Plain):
        return "plain"
    return "dense" if model.body.dense else "padded"


def alone(network: Any, ids: list[int], start: int) -> np.ndarray:
    """Log P of the tokens from `start` on: float64, one row, no mask."""
    every = predicted(network, ids)
    return np.array([float(every[i - 1, ids[i]]) for i in range(start, len(ids))])


def predicted(network: Any, ids: list[int]) -> torch.Tensor:
    with torch.no_grad():
        logits = network(input_ids=torch.tensor([ids])).logits[0].double()
    return torch.log_softmax(logits, dim=-1)


def same_as_alone(model: Any, network: Any, ids: Any) -> None:
    rng = np.random.default_rng(1)
    starts = ["".join(rng.choice(list("abcdefgh"), n)) for n in (1, 5, 12, 30)]
    prompts = [f"the few shots that all share {start}" for start in starts for _ in range(3)]
    answers = ["xyz", "x", "xyzABC12"] * 4
    lonely = ["q", "rst" * 9, "a" * 50], ["uvw", "u", "vw"]
    for asked, given in ((prompts, answers), lonely):
        for prompt, answer, got in zip(asked, given, model.score(asked, given), strict=True):
            expected = alone(network, ids(prompt + answer), len(prompt))
            np.testing.assert_allclose(got, expected, atol=5e-5)
    asked = ["a", "the quick brown fox jumps over", "lazy dogs", "xyz" * 13]
    greedy = model.generate(asked, max_new_tokens=6)
    drawn = model.sample(
        asked,
        temperature=2.0,
        n=4,
        max_new_tokens=6,
        seed=3,
    )
    for prompt, row in zip(
        asked, [[g, *s] for g, s in zip(greedy, drawn, strict=True)], strict=True
    ):
        for g in row:
            known = [*ids(prompt), *g.token_ids]
            steps = range(len(prompt), len(known))
            expected = [float(predicted(network, known[:i])[-1, known[i]]) for i in steps]
            np.testing.assert_allclose(g.logprobs, expected, atol=5e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_architecture_says_what_it_says_alone(kind, lettered, ids, capsys):
    expected, build = KINDS[kind]
    torch.manual_seed(0)
    network = build().eval()
    torch.manual_seed(0)
    model = lettered(build(), kind)
    assert way(model) == expected
    said = capsys.readouterr().err
    assert (f"{kind}: {type(network).__name__} is asked one row at a time" in said) == (
        expected == "plain"
    )
    same_as_alone(model, network, ids)
    assert capsys.readouterr().err == ""  # it is said once


@pytest.mark.parametrize("build", [lambda: phi3(40), lambda: gpt_neo(40)])
def test_what_changes_with_the_length_is_found_before_the_first_row_of_that_length(
    build, lettered, ids, capsys
):
    torch.manual_seed(0)
    network = build().eval()
    torch.manual_seed(0)
    model = lettered(build())
    model.score(["a" * 36], ["bc"])
    assert way(model) != "plain"
    capsys.readouterr()
    same_as_alone(model, network, ids)
    assert way(model) == "plain"
    assert "in rows of 67 tokens" in capsys.readouterr().err


def test_a_window_that_is_understood_costs_one_check(lettered, ids, watch, capsys):
    """Longer rows than the window are compared once, and then go fast."""
    torch.manual_seed(0)
    model = lettered(hf.MistralForCausalLM(hf.MistralConfig(**SMALL, sliding_window=40)))
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
    network = hf.BertLMHeadModel(
        hf.BertConfig(
            vocab_size=64,
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=48,
            initializer_range=0.5,
        )
    )
    with pytest.raises(ModelError, match="BertLMHeadModel predicts changes with the tokens behind"):
        lettered(network)


def test_a_network_that_does_not_run_is_refused_in_one_sentence(lettered, tiny_t5):
    def refuse(*_: Any) -> None:
        raise IndexError("no such layer\nand much more")

    for network in (llama(), tiny_t5().network):
        network.register_forward_pre_hook(refuse)
        with pytest.raises(
            ModelError, match=r"does not run here .*\(IndexError: no such layer\); t"
        ):
            lettered(network)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_logits_that_are_not_the_heads_are_the_networks_own(kind, lettered, tiny_t5, ids, capsys):
    torch.manual_seed(0)
    network = llama() if kind == "decoder" else tiny_t5().network
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
    from factrobust.models.interface import RecordedModel
    from factrobust.models.records import Records

    torch.manual_seed(0)
    model = lettered(llama(tie_word_embeddings=False))
    with torch.no_grad():
        model.network.model.embed_tokens.weight[model.tokenizer("K").input_ids[0]] = bad
    about = {
        "name": "tiny",
        "fingerprint": "tiny",
        "prompt_format": "prefix",
        "chat": None,
    }
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
    network = llama()

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
        network = llama()
    with pytest.raises(
        ModelError, match=r"tiny does not fit into this machine's memory: 2\d of its"
    ):
        lettered(network)
