"""Changes of weights, by hand on a matrix, and on networks of every kind."""

import pytest
import torch
import transformers as hf

from factrobust.models.damage import GROUP, Damage, apply
from factrobust.models.interface import ModelError

WEIGHTS = torch.zeros(1, GROUP)
WEIGHTS[0, :3] = torch.tensor([0.1, -0.7, 0.34])


def changed(damage):
    """WEIGHTS, changed as those of a linear layer; embedding and bias stay."""
    embedding = torch.nn.Embedding(3, GROUP)
    layer = torch.nn.Linear(GROUP, 1)
    network = torch.nn.Sequential(embedding, layer)
    layer.weight.data.copy_(WEIGHTS)
    kept = [embedding.weight.clone(), layer.bias.clone()]
    apply(network, damage)
    assert torch.equal(embedding.weight, kept[0])
    assert torch.equal(layer.bias, kept[1])
    return layer.weight.detach()


@pytest.mark.parametrize(
    ("damage", "expected", "tolerance"),
    [
        (Damage("prune", 0), [0.1, -0.7, 0.34, 0], 0),
        (Damage("noise", 0), [0.1, -0.7, 0.34, 0], 0),
        (Damage("round", 16), [0.1, -0.7, 0.34, 0], 2e-5),
        # Three bits: -3 to 3 times a third of the largest of the group.
        (Damage("round", 3), [0, -0.7, 0.233333, 0], 1e-6),
        # Q4_0: the largest in size becomes -8 times the scale, others whole numbers of it.
        (Damage("round", 4), [0.0875, -0.7, 0.35, 0], 5e-4),
        (Damage("prune", (GROUP - 2) / GROUP), [0, -0.7, 0.34, 0], 1e-6),
    ],
)
def test_changes_by_hand(damage, expected, tolerance):
    found = changed(damage)
    expected = torch.tensor([expected])
    torch.testing.assert_close(
        found[:, :4],
        expected,
        rtol=0,
        atol=tolerance,
    )


def test_noise_is_that_of_its_draw():
    one = changed(Damage("noise", 0.5, 0))
    assert torch.equal(one, changed(Damage("noise", 0.5, 0)))
    assert not torch.equal(one, changed(Damage("noise", 0.5, 1)))
    deviation = (one - WEIGHTS).std()
    expected = 0.5 * WEIGHTS.std()
    assert float(deviation) == pytest.approx(float(expected), rel=0.4)


# -- which weights, in every kind of network -------------------------------------------------------

SIZES = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
MOE = SIZES | {"num_experts": 4, "moe_intermediate_size": 32}
CONFIGS = {
    "llama": hf.LlamaConfig(**SIZES),
    "tied": hf.LlamaConfig(**SIZES, tie_word_embeddings=True),
    "mixtral": hf.MixtralConfig(**SIZES, num_local_experts=4),
    "qwen2-moe": hf.Qwen2MoeConfig(**MOE),
    "qwen3-moe": hf.Qwen3MoeConfig(**MOE, head_dim=16),
    "gpt-oss": hf.GptOssConfig(**SIZES, head_dim=16, num_local_experts=4),
    "gpt2": hf.GPT2Config(
        vocab_size=64,
        n_embd=64,
        n_layer=2,
        n_head=4,
        n_positions=64,
    ),
    "mpt": hf.MptConfig(
        vocab_size=64,
        d_model=64,
        n_layers=2,
        n_heads=4,
    ),
    "gpt-neox": hf.GPTNeoXConfig(**SIZES),
    "t5": hf.T5Config(
        vocab_size=64,
        d_model=64,
        d_kv=16,
        d_ff=96,
        num_layers=2,
        num_heads=4,
    ),
}
# Parts of the names of all parameters that stay.
STAY = ("embed", "wte", "wpe", "shared.weight", "lm_head", "norm", "ln_", "bias", "sinks")
DAMAGES = [
    Damage("round", 4),
    Damage("prune", 0.3),
    Damage("noise", 0.1, 2),
]


def build(kind):
    """A network of random weights, the same each time."""
    torch.manual_seed(0)
    auto = hf.AutoModelForSeq2SeqLM if kind == "t5" else hf.AutoModelForCausalLM
    return auto.from_config(CONFIGS[kind])


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_matrices_change_and_nothing_else(kind, damage):
    network = build(kind)
    before = dict(build(kind).named_parameters())
    apply(network, damage)
    for name, weights in network.named_parameters():
        stays = any(part in name for part in STAY)
        assert torch.equal(weights, before[name]) == stays, name


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("gpt2", "transformer.h.0.mlp.c_fc.weight"),
        ("gpt-oss", "model.layers.0.mlp.experts.gate_up_proj"),
    ],
)
def test_groups_lie_along_the_input_however_a_layer_holds_its_matrix(kind, name):
    """Of a layer that holds [input, output], the transpose is what a linear layer would hold."""
    network = build(kind)
    weights = network.get_parameter(name).data
    matrix = weights if weights.ndim == 2 else weights[0]
    plain = torch.nn.Linear(*matrix.shape, bias=False)
    plain.weight.data.copy_(matrix.T)
    apply(plain, Damage("round", 4))
    apply(network, Damage("round", 4))
    assert torch.equal(matrix, plain.weight.T)


def test_every_expert_is_a_matrix_of_its_own():
    """One that is a hundred times smaller than the others loses its own share."""
    network = build("mixtral")
    experts = network.model.layers[0].mlp.experts.down_proj
    experts.data[1] *= 0.01
    apply(network, Damage("prune", 0.25))
    for expert in experts:
        share = (expert == 0).float().mean()
        assert float(share) == pytest.approx(0.25, abs=1e-3)


@pytest.mark.parametrize("damage", [*DAMAGES, Damage("round", 3)])
def test_in_bfloat16_the_change_is_that_of_float32_rounded(damage):
    half = build("llama").to(torch.bfloat16)
    single = build("llama")
    single.load_state_dict(half.state_dict())
    apply(half, damage)
    apply(single, damage)
    expected = single.to(torch.bfloat16).state_dict()
    for name, weights in half.state_dict().items():
        assert weights.dtype == torch.bfloat16
        assert torch.equal(weights, expected[name]), name


def test_weights_that_are_not_there_are_refused():
    with torch.device("meta"):
        network = build("llama")
    with pytest.raises(ModelError, match=r"LlamaForCausalLM cannot be changed .* not in memory"):
        apply(network, Damage("prune", 0.3))
    with pytest.raises(ModelError, match="it has no linear layers"):
        apply(torch.nn.Embedding(3, 4), Damage("round", 4))
