"""Changes of weights, by hand on a matrix, and on a grown model."""

import pytest
import torch
import transformers as hf

from factrobust.models.damage import GROUP, Damage, apply
from factrobust.models.interface import ModelError

WEIGHTS = torch.tensor([[0.1, -0.7, 0.34, 0.0] + [0.0] * (GROUP - 4)])


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = torch.nn.Embedding(3, GROUP)
        self.layer = torch.nn.Linear(GROUP, 1)
        with torch.no_grad():
            self.layer.weight.copy_(WEIGHTS)


def changed(*damage):
    network = Network()
    kept = network.embed_tokens.weight.clone(), network.layer.bias.clone()
    apply(network, Damage(*damage))
    assert torch.equal(network.embed_tokens.weight, kept[0])
    assert torch.equal(network.layer.bias, kept[1])
    return network.layer.weight.detach()


def test_a_dose_of_zero_changes_nothing():
    assert torch.equal(changed("prune", 0), WEIGHTS)
    assert torch.equal(changed("noise", 0), WEIGHTS)
    assert changed("round", 16) == pytest.approx(WEIGHTS, abs=2e-5)


def test_rounding_by_hand():
    """Three bits: -3 to 3 times a third of the largest of the group."""
    step = 0.7 / 3
    assert changed("round", 3)[0, :4].tolist() == pytest.approx([0, -3 * step, step, 0])


def test_four_bits_are_those_of_llama_cpp():
    """Q4_0: the largest in size becomes -8 times the scale, others whole numbers from -8 to 7 of it."""
    step = 0.7 / 8
    found = changed("round", 4)[0, :4].tolist()
    assert found == pytest.approx([step, -8 * step, 4 * step, 0], abs=5e-4)


def test_pruning_takes_the_smallest():
    found = changed("prune", (GROUP - 2) / GROUP)
    assert found[0, :4].tolist() == pytest.approx([0, -0.7, 0.34, 0])


def test_noise_is_that_of_its_draw():
    one, again, other = (changed("noise", 0.5, seed) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    apart = float((one - WEIGHTS).std()), 0.5 * float(WEIGHTS.std())
    assert apart[0] == pytest.approx(apart[1], rel=0.4)


# -- which weights, in every kind of network -------------------------------------------------------

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
MOE = {"num_experts": 4, "moe_intermediate_size": 32}
T5 = {
    "vocab_size": 64,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 2,
    "num_heads": 4,
}
NETWORKS = {
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES)),
    "tied": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, tie_word_embeddings=True)),
    "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**SIZES, num_local_experts=4)),
    "qwen2-moe": lambda: hf.Qwen2MoeForCausalLM(hf.Qwen2MoeConfig(**SIZES, **MOE)),
    "qwen3-moe": lambda: hf.Qwen3MoeForCausalLM(hf.Qwen3MoeConfig(**SIZES, **MOE, head_dim=16)),
    "gpt-oss": lambda: hf.GptOssForCausalLM(
        hf.GptOssConfig(**SIZES, head_dim=16, num_local_experts=4)
    ),
    "gpt2": lambda: hf.GPT2LMHeadModel(
        hf.GPT2Config(
            vocab_size=64,
            n_embd=64,
            n_layer=2,
            n_head=4,
            n_positions=64,
        )
    ),
    "mpt": lambda: hf.MptForCausalLM(
        hf.MptConfig(
            vocab_size=64,
            d_model=64,
            n_layers=2,
            n_heads=4,
        )
    ),
    "gpt-neox": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**SIZES)),
    "t5": lambda: hf.T5ForConditionalGeneration(hf.T5Config(**T5)),
}
# Parts of the names of all parameters that stay.
STAY = ("embed", "wte", "wpe", "shared.weight", "lm_head", "norm", "ln_", "bias", "sinks")


@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("damage", [Damage("round", 4), Damage("prune", 0.3), Damage("noise", 0.1)])
def test_matrices_change_and_nothing_else(kind, damage):
    torch.manual_seed(0)
    network = NETWORKS[kind]()
    before = {name: weights.detach().clone() for name, weights in network.named_parameters()}
    apply(network, damage)
    changed = {
        name for name, now in network.named_parameters() if not torch.equal(now, before[name])
    }
    assert changed == {name for name in before if not any(part in name for part in STAY)}
    if kind in ("mixtral", "gpt-oss"):
        assert "model.layers.0.mlp.experts.down_proj" in changed


@pytest.mark.parametrize("kind", ["gpt2", "gpt-oss"])
def test_groups_lie_along_the_input_however_a_layer_holds_its_matrix(kind):
    """Of a layer that holds [input, output], the transpose is what a linear layer would hold."""
    network = NETWORKS[kind]()
    name = {"gpt2": "transformer.h.0.mlp.c_fc.weight"}.get(
        kind, "model.layers.0.mlp.experts.gate_up_proj"
    )
    weights = dict(network.named_parameters())[name]
    before = weights.detach().clone()
    plain = torch.nn.Linear(64, weights.shape[-1], bias=False)
    first = before if kind == "gpt2" else before[0]
    with torch.no_grad():
        plain.weight.copy_(first.T)
    for one in (plain, network):
        apply(one, Damage("round", 4))
    now = weights if kind == "gpt2" else weights[0]
    assert torch.equal(now, plain.weight.T)


def test_every_expert_is_a_matrix_of_its_own():
    """One that is a hundred times smaller than the others loses its own share."""
    network = NETWORKS["mixtral"]()
    experts = network.model.layers[0].mlp.experts.down_proj
    with torch.no_grad():
        experts[1] *= 0.01
    apply(network, Damage("prune", 0.25))
    assert [float((one == 0).float().mean()) for one in experts] == pytest.approx(
        [0.25] * 4, abs=1e-3
    )


@pytest.mark.parametrize(
    "damage",
    [
        Damage("round", 4),
        Damage("round", 3),
        Damage("prune", 0.3),
        Damage("noise", 0.1, 2),
    ],
)
def test_in_bfloat16_the_change_is_that_of_float32_rounded(damage):
    torch.manual_seed(0)
    half = NETWORKS["llama"]().to(torch.bfloat16)
    single = NETWORKS["llama"]()
    single.load_state_dict(half.state_dict())
    for network in (half, single):
        apply(network, damage)
    for (name, a), (_, b) in zip(half.named_parameters(), single.named_parameters(), strict=True):
        assert a.dtype == torch.bfloat16
        assert torch.equal(a, b.to(torch.bfloat16)), name


def test_weights_that_are_not_there_are_refused():
    with torch.device("meta"):
        network = NETWORKS["llama"]()
    for damage in (Damage("round", 4), Damage("prune", 0.3), Damage("noise", 0.1)):
        with pytest.raises(
            ModelError, match=r"LlamaForCausalLM cannot be changed .* not in memory"
        ):
            apply(network, damage)
    with pytest.raises(ModelError, match="it has no linear layers"):
        apply(torch.nn.Embedding(3, 4), Damage("round", 4))
