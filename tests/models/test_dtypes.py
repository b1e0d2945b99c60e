"""Everything that touches weights, in each dtype, on each device: the CPU, a GPU if there is one, and
the meta device, whose weights have no numbers."""

import copy

import numpy as np
import pytest
import torch
import transformers as hf

from factrobust.models.damage import Damage, apply
from factrobust.models.linear import ExactLinear, PackedLinear, available, prepack

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "initializer_range": 0.3,
    "max_position_embeddings": 64,
    "eos_token_id": 0,
    "bos_token_id": None,
}
T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 1,
    "eos_token_id": 0,
    "decoder_start_token_id": 1,
}
NETWORKS = {
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES)),
    "tied": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, tie_word_embeddings=True)),
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**T5)),
}
# How far a log-probability may lie from that of the same weights in float64.
ROUNDING = {torch.float32: 1e-4, torch.float16: 0.05, torch.bfloat16: 0.3}
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
DEVICES = ["cpu", pytest.param("cuda", marks=CUDA)]
PROMPTS = ["abc", "hello world", "x"]
ANSWERS = ["de", "fgh", "ij"]


def network(kind, dtype=torch.float32, device="cpu"):
    torch.manual_seed(0)
    return NETWORKS[kind]().eval().to(device, dtype)


def expected(network, prompt, answer):
    """log P of an answer's tokens, by the float64 network on one row."""
    answer = torch.tensor([answer])
    if network.config.is_encoder_decoder:
        start = torch.tensor([[network.config.decoder_start_token_id]])
        read = {
            "input_ids": torch.tensor([[*prompt, 0]]),
            "decoder_input_ids": torch.cat([start, answer[:, :-1]], dim=1),
        }
        logits = network(**read).logits[0]
    else:
        row = torch.cat([torch.tensor([prompt]), answer], dim=1)
        logits = network(input_ids=row).logits[0, len(prompt) - 1 : -1]
    return logits.log_softmax(dim=-1).gather(1, answer.T)[:, 0].numpy()


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("device", DEVICES)
@torch.no_grad()
def test_numbers_are_float32_and_those_of_the_weights(kind, dtype, device, lettered, ids):
    asked = network(kind, dtype, device)
    exact = copy.deepcopy(asked).to("cpu", torch.float64)
    model = lettered(asked)
    prepack(asked)
    scores = model.score(PROMPTS, ANSWERS)
    for prompt, answer, found in zip(PROMPTS, ANSWERS, scores, strict=True):
        assert found.dtype == np.float32
        assert found == pytest.approx(
            expected(exact, ids(prompt), ids(answer)), abs=ROUNDING[dtype]
        )
    tempered = model.temper(PROMPTS, ANSWERS, [1.0])[:, 0]
    assert tempered == pytest.approx([sum(found) for found in scores], abs=2 * ROUNDING[dtype])
    for greedy in model.generate(PROMPTS, max_new_tokens=3):
        [again] = model.score([greedy.prompt], [greedy.token_ids or [5]])
        if greedy.token_ids:
            assert greedy.logprobs == pytest.approx(again.tolist(), abs=2 * ROUNDING[dtype])


@pytest.mark.skipif(not available(), reason="oneDNN's products are for x86 processors")
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("device", [*DEVICES, "meta"])
def test_float32_on_the_cpu_is_packed_and_nothing_else(dtype, device):
    packed = network("llama", dtype, device)
    prepack(packed)
    found = any(isinstance(layer, PackedLinear) for layer in packed.modules())
    assert found == (dtype == torch.float32 and device == "cpu")


@pytest.mark.parametrize("dtype", ROUNDING)
def test_a_head_of_a_smaller_dtype_is_exact(dtype, lettered):
    model = lettered(network("llama", dtype))
    head = model.network.get_output_embeddings()
    assert isinstance(head, ExactLinear) == (dtype != torch.float32)
    assert head.weight.dtype == dtype


@pytest.mark.parametrize("damage", [Damage("round", 4), Damage("prune", 0.3), Damage("noise", 0.1)])
@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("device", DEVICES)
def test_weights_are_changed_where_they_lie(damage, dtype, device):
    """And as those of float32 would be, but for rounding."""
    changed = network("llama", dtype, device)
    same = copy.deepcopy(changed).to("cpu", torch.float32)
    apply(changed, damage)
    apply(same, damage)
    name = "model.layers.0.mlp.up_proj.weight"
    weights = changed.get_parameter(name).detach()
    assert weights.dtype == dtype
    assert weights.device.type == device
    in_float32 = same.get_parameter(name).detach()
    different = ~torch.isclose(weights.cpu().float(), in_float32, rtol=0.01, atol=1e-3)
    assert different.float().mean() < 0.01
