"""OpenELM against a plain computation of its formulas, its published sizes, and Apple's files;
MPT's bias, which follows each token's own position (both against the network's own logits:
test_verify)."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn.functional import rms_norm, silu
from transformers import DynamicCache, MptConfig, MptForCausalLM

import factrobust
from factrobust.models.causal import pack_answers, pad_rows, unanswered
from factrobust.models.extra import MptBody, OpenELMConfig, OpenELMForCausalLM, whole_multiple
from factrobust.models.load import settings_of

# As in Apple's config.json, each layer of another size.
CONFIG: dict[str, Any] = {
    "activation_fn_name": "swish",
    "architectures": ["OpenELMForCausalLM"],
    "bos_token_id": None,
    "auto_map": {"AutoModelForCausalLM": "modeling_openelm.OpenELMForCausalLM"},
    "eos_token_id": 0,
    "ffn_dim_divisor": 16,
    "ffn_multipliers": [0.5, 1.1, 4.0],
    "ffn_with_glu": True,
    "head_dim": 8,
    "max_context_length": 64,
    "model_dim": 48,
    "model_type": "openelm",
    "normalize_qk_projections": True,
    "num_kv_heads": [1, 2, 2],
    "num_query_heads": [4, 6, 8],
    "num_transformer_layers": 3,
    "rope_freq_constant": 100,
    "share_input_output_layers": True,
    "vocab_size": 16,
}
WIDTHS = [32, 48, 192]  # 0.5 x 48 = 24 is 32 and 1.1 x 48 = 52.8 is 48 in multiples of 16


def random_weights() -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(0)

    def about(mean: float, *shape: int) -> torch.Tensor:
        return mean + 0.4 * torch.randn(shape, generator=draw)

    weights = {"token_embeddings": about(0, 16, 48), "norm": about(1, 48)}
    for i, width in enumerate(WIDTHS):
        queries = CONFIG["num_query_heads"][i]
        keys = CONFIG["num_kv_heads"][i]
        layer = {
            "attn_norm": about(1, 48),
            "attn.qkv_proj": about(0, (queries + 2 * keys) * 8, 48),
            "attn.q_norm": about(1, 8),
            "attn.k_norm": about(1, 8),
            "attn.out_proj": about(0, 48, queries * 8),
            "ffn_norm": about(1, 48),
            "ffn.proj_1": about(0, 2 * width, 48),
            "ffn.proj_2": about(0, 48, width),
        }
        weights |= {f"layers.{i}.{name}": w for name, w in layer.items()}
    return {f"transformer.{name}.weight": w for name, w in weights.items()}


def plain_logits(weights: dict[str, torch.Tensor], ids: list[int]) -> torch.Tensor:
    """The logits [token, vocabulary] as the paper describes them, one head and token at a time."""
    embeddings = weights["transformer.token_embeddings.weight"]
    states = embeddings[ids]
    for i in range(3):
        start = f"transformer.layers.{i}."
        w = {name[len(start) : -len(".weight")]: weights[name] for name in weights if start in name}
        queries = CONFIG["num_query_heads"][i]
        keys = CONFIG["num_kv_heads"][i]
        heads = rms_norm(states, [48], w["attn_norm"], 1e-6) @ w["attn.qkv_proj"].T
        heads = heads.view(len(ids), -1, 8)
        attended = torch.zeros(len(ids), queries, 8)
        for h in range(queries):
            shared = queries + h * keys // queries
            q = rotated(rms_norm(heads[:, h], [8], w["attn.q_norm"], 1e-6))
            k = rotated(rms_norm(heads[:, shared], [8], w["attn.k_norm"], 1e-6))
            for t in range(len(ids)):
                seen = (k[: t + 1] @ q[t] / 8**0.5).softmax(dim=0)
                attended[t, h] = seen @ heads[: t + 1, shared + keys]
        states = states + attended.flatten(1) @ w["attn.out_proj"].T
        gate, up = (rms_norm(states, [48], w["ffn_norm"], 1e-6) @ w["ffn.proj_1"].T).chunk(2, 1)
        states = states + (silu(gate) * up) @ w["ffn.proj_2"].T
    return rms_norm(states, [48], weights["transformer.norm.weight"], 1e-6) @ embeddings.T


def rotated(vectors: torch.Tensor) -> torch.Tensor:
    """[token, 8]: pairs (i, i + 4) turned by the position times 100 ** (-i / 4)."""
    angles = torch.arange(len(vectors))[:, None] * 100.0 ** (-torch.arange(4) / 4)
    turn = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.complex(vectors[:, :4], vectors[:, 4:]) * turn
    return torch.cat([pairs.real, pairs.imag], dim=1)


@pytest.fixture
def apple(toy_model, tmp_path):
    """A folder as on the hub, with the toy's tokenizer."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    save_file(random_weights(), tmp_path / "model.safetensors", metadata={"format": "pt"})
    toy_model({" Kenya": {" Nairobi": 1.0}}).tokenizer.save_pretrained(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("no_network")
def test_apples_files_give_the_papers_formulas(apple):
    model: Any = factrobust.load_model(str(apple))
    prompt = " Kenya Nairobi Kenya"
    answer = [3, 9, 4, 2, 2, 11]
    ids = model.tokenizer(prompt).input_ids + answer
    expected = plain_logits(random_weights(), ids).log_softmax(dim=-1)
    start = len(ids) - len(answer)
    wanted = [expected[start + k - 1, token].item() for k, token in enumerate(answer)]
    np.testing.assert_allclose(model.score([prompt], [answer])[0], wanted, atol=2e-5)
    assert min(wanted) < -3  # far from uniform, so that a fault would show


@pytest.mark.parametrize(
    ("name", "layers", "width", "head"), [("450M", 20, 1536, 64), ("3B", 36, 3072, 128)]
)
def test_the_published_sizes(name, layers, width, head):
    """Attention grows from half the width to the whole of it, the other part from 0.5 to 4
    widths."""
    shares = np.linspace(0.5, 1.0, layers).round(2)
    heads = [whole_multiple(width * share, 4 * head) // head for share in shares]
    config = OpenELMConfig(
        vocab_size=32000,
        model_dim=width,
        num_transformer_layers=layers,
        head_dim=head,
        num_query_heads=heads,
        num_kv_heads=[n // 4 for n in heads],
        ffn_multipliers=np.linspace(0.5, 4.0, layers).round(2).tolist(),
        share_input_output_layers=True,
    )
    with torch.device("meta"):
        network = OpenELMForCausalLM(config)
    about = settings_of(f"apple/OpenELM-{name}")
    assert network.num_parameters() == about.parameters
    assert np.mean(config.num_kv_heads) == pytest.approx(about.key_value_heads, abs=0.005)
    # To the nearest, but up where down would take more than a tenth.
    assert [whole_multiple(v, 256) for v in (1100, 1200, 600, 100)] == [1024, 1280, 768, 256]


def mpt(**options: Any) -> MptForCausalLM:
    torch.manual_seed(0)
    sizes = {
        "d_model": 48,
        "n_heads": 6,
        "n_layers": 2,
        "vocab_size": 64,
    }
    return MptForCausalLM(MptConfig(**sizes, initializer_range=0.3, **options)).eval()


def last_states(model: MptForCausalLM, ids: list[int], start: int) -> torch.Tensor:
    """Of the last token, which stands as if the sequence began at `start`."""
    rows = pad_rows([pack_answers([unanswered([0] * start + ids)], start)], 0, "cpu")
    return MptBody(model).hidden(rows, DynamicCache(), rows.positions)[0, -1]


@torch.inference_mode()
def test_clipped_states_are_those_of_transformers(lettered):
    model = mpt(attn_config={"clip_qkv": 0.5})
    ids = torch.randint(0, 64, (1, 30))
    expected = model.transformer(ids).last_hidden_state[0, -1]
    torch.testing.assert_close(last_states(model, ids[0].tolist(), 0), expected)
    assert isinstance(lettered(model).body, MptBody)
