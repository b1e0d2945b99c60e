"""OpenELM against a plain computation of its formulas, its published sizes, and Apple's files;
MPT's bias, which follows each token's own position (both against the network's own logits:
test_verify)."""

import numpy as np
import pytest
import torch
from networks import assert_given_as_alone, build
from safetensors.torch import save_file
from torch.nn.functional import rms_norm, silu

import factrobust
from factrobust.models.extra import MptBody, OpenELMConfig, OpenELMForCausalLM, whole_multiple
from factrobust.models.load import settings_of

# As in Apple's config.json, each layer of another size.
APPLES = """{
    "activation_fn_name": "swish",
    "architectures": ["OpenELMForCausalLM"],
    "bos_token_id": null,
    "auto_map": {"AutoModelForCausalLM": "modeling_openelm.OpenELMForCausalLM"},
    "eos_token_id": 0,
    "ffn_dim_divisor": 16,
    "ffn_multipliers": [0.5, 1.1, 4.0],
    "ffn_with_glu": true,
    "head_dim": 8,
    "max_context_length": 64,
    "model_dim": 48,
    "model_type": "openelm",
    "normalize_qk_projections": true,
    "num_kv_heads": [1, 2, 2],
    "num_query_heads": [4, 6, 8],
    "num_transformer_layers": 3,
    "rope_freq_constant": 100,
    "share_input_output_layers": true,
    "vocab_size": 16
}"""
QUERIES = [4, 6, 8]
KEYS = [1, 2, 2]
WIDTHS = [32, 48, 192]  # 0.5 x 48 = 24 is 32 and 1.1 x 48 = 52.8 is 48 in multiples of 16


def random_weights():
    shapes = {"token_embeddings": (16, 48), "norm": (48,)}
    for i, width in enumerate(WIDTHS):
        queries = 8 * QUERIES[i]
        keys = 8 * KEYS[i]
        layer = f"layers.{i}"
        shapes[f"{layer}.attn_norm"] = (48,)
        shapes[f"{layer}.attn.qkv_proj"] = (queries + 2 * keys, 48)
        shapes[f"{layer}.attn.q_norm"] = (8,)
        shapes[f"{layer}.attn.k_norm"] = (8,)
        shapes[f"{layer}.attn.out_proj"] = (48, queries)
        shapes[f"{layer}.ffn_norm"] = (48,)
        shapes[f"{layer}.ffn.proj_1"] = (2 * width, 48)
        shapes[f"{layer}.ffn.proj_2"] = (48, width)
    torch.manual_seed(0)
    weights = {}
    for name, shape in shapes.items():
        mean = 1.0 if name.endswith("norm") else 0.0
        drawn = mean + 0.4 * torch.randn(shape)
        weights[f"transformer.{name}.weight"] = drawn
    return weights


def plain_logits(weights, ids):
    """The logits [token, vocabulary] as the paper describes them."""

    def weight(name):
        return weights[f"transformer.{name}.weight"]

    def normed(vectors, name):
        return rms_norm(vectors, vectors.shape[-1:], weight(name), 1e-6)

    future = torch.ones(len(ids), len(ids)).triu(1).bool()
    states = weight("token_embeddings")[ids]
    for i in range(3):
        layer = f"layers.{i}"
        # 1. Attention, in which several queries share a key.
        before = normed(states, f"{layer}.attn_norm")
        mixed = before @ weight(f"{layer}.attn.qkv_proj").T
        heads = mixed.view(len(ids), -1, 8)
        parts = [QUERIES[i], KEYS[i], KEYS[i]]
        q, k, v = heads.split(parts, dim=1)
        q = normed(q, f"{layer}.attn.q_norm")
        k = normed(k, f"{layer}.attn.k_norm")
        shared = QUERIES[i] // KEYS[i]
        keys = rotated(k).repeat_interleave(shared, dim=1)
        values = v.repeat_interleave(shared, dim=1)
        scores = torch.einsum("qhw,khw->hqk", rotated(q), keys)
        scores = scores / 8**0.5
        seen = scores.masked_fill(future, -torch.inf)
        shares = seen.softmax(dim=-1)
        attended = torch.einsum("hqk,khw->qhw", shares, values)
        states = states + attended.flatten(1) @ weight(f"{layer}.attn.out_proj").T
        # 2. The other part.
        before = normed(states, f"{layer}.ffn_norm")
        both = before @ weight(f"{layer}.ffn.proj_1").T
        gate, up = both.chunk(2, dim=1)
        product = silu(gate) * up
        states = states + product @ weight(f"{layer}.ffn.proj_2").T
    return normed(states, "norm") @ weight("token_embeddings").T


def rotated(vectors):
    """[token, head, 8]: pairs (i, i + 4) turned by the position times 100 ** (-i / 4)."""
    speeds = 100.0 ** (-torch.arange(4) / 4)
    positions = torch.arange(len(vectors))
    angles = positions[:, None, None] * speeds
    first, second = vectors.chunk(2, dim=-1)
    cos = angles.cos()
    sin = angles.sin()
    turned = [
        first * cos - second * sin,
        first * sin + second * cos,
    ]
    return torch.cat(turned, dim=-1)


@pytest.mark.usefixtures("no_network")
def test_apples_files_give_the_papers_formulas(toy_model, tmp_path):
    """A folder as on the hub, with the toy's tokenizer."""
    (tmp_path / "config.json").write_text(APPLES)
    save_file(random_weights(), tmp_path / "model.safetensors", metadata={"format": "pt"})
    toy_model({" Kenya": {" Nairobi": 1.0}}).tokenizer.save_pretrained(tmp_path)
    model = factrobust.load_model(str(tmp_path))
    prompt = " Kenya Nairobi Kenya"
    answer = [3, 9, 4, 2, 2, 11]
    ids = model.tokenizer(prompt).input_ids
    logits = plain_logits(random_weights(), ids + answer)
    logprobs = logits[-7:-1].log_softmax(dim=-1)
    expected = logprobs[range(6), answer]
    [found] = model.score([prompt], [answer])
    np.testing.assert_allclose(found, expected, atol=2e-5)
    assert min(expected) < -3  # far from uniform, so that a fault would show


@pytest.mark.parametrize(
    ("name", "layers", "width", "head"),
    [("450M", 20, 1536, 64), ("3B", 36, 3072, 128)],
)
def test_the_published_sizes(name, layers, width, head):
    """Attention grows from half the width to the whole of it, the other part from 0.5 to 4
    widths."""
    shares = np.linspace(0.5, 1.0, layers).round(2)
    queries = []
    keys = []
    for share in shares:
        attention = whole_multiple(width * share, 4 * head)
        queries.append(attention // head)
        keys.append(attention // head // 4)
    multipliers = np.linspace(0.5, 4.0, layers)
    config = OpenELMConfig(
        vocab_size=32000,
        model_dim=width,
        num_transformer_layers=layers,
        head_dim=head,
        num_query_heads=queries,
        num_kv_heads=keys,
        ffn_multipliers=multipliers.round(2).tolist(),
        share_input_output_layers=True,
    )
    with torch.device("meta"):
        network = OpenELMForCausalLM(config)
    about = settings_of(f"apple/OpenELM-{name}")
    assert network.num_parameters() == about.parameters
    assert np.mean(keys) == pytest.approx(about.key_value_heads, abs=0.005)


def test_multiples_are_the_nearest_but_up_where_down_would_take_more_than_a_tenth():
    sizes = (1100, 1200, 600, 100)
    assert [whole_multiple(size, 256) for size in sizes] == [1024, 1280, 768, 256]


def test_clipped_states_are_those_of_transformers(lettered, ids):
    network = build(
        "Mpt",
        d_model=48,
        n_heads=6,
        n_layers=2,
        vocab_size=64,
        initializer_range=0.3,
        attn_config={"clip_qkv": 0.5},
    )
    model = lettered(network)
    assert isinstance(model.body, MptBody)
    assert_given_as_alone(model, network, ids, ["abcdefgh" * 4, "xyz"], ["xyz", "a"])
