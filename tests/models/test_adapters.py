"""Adapters: what peft says without merging, or one sentence."""

import copy
import json
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file

from factrobust.models.interface import ModelError
from factrobust.models.load import find_weights, load_model

SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": None,
    "eos_token_id": 0,
    "initializer_range": 0.4,
}


def llama(*, tied: bool) -> Any:
    torch.manual_seed(0)
    return hf.LlamaForCausalLM(hf.LlamaConfig(**SIZES, tie_word_embeddings=tied))


@pytest.fixture(scope="module")
def bases(letters, tmp_path_factory):
    """Folders of a network whose head is its embedding, and of one with a head of its own."""
    place = tmp_path_factory.mktemp("bases")
    folders = {tied: place / f"tied-{tied}" for tied in (True, False)}
    for tied, folder in folders.items():
        llama(tied=tied).save_pretrained(folder)
        letters.save_pretrained(folder)
    return folders


def lora(target: Any = ("q_proj",), **options: Any) -> Any:
    target = list(target) if isinstance(target, tuple) else target
    return peft.LoraConfig(r=4, target_modules=target, task_type="CAUSAL_LM", **options)


def adapted(base: Path, config: Any, folder: Path, more: int = 0) -> Any:
    """peft's own network with a random adapter, which is saved in a folder."""
    network = hf.AutoModelForCausalLM.from_pretrained(base)
    if more:
        network.resize_token_embeddings(64 + more, mean_resizing=False)
    tuned = peft.get_peft_model(network, config)
    torch.manual_seed(1)
    for weights in tuned.parameters():
        if weights.requires_grad:
            torch.nn.init.normal_(weights, std=0.3)
    tuned.save_pretrained(folder)
    return tuned.eval()


def same(folder: Path, tuned: Any, ids: Any) -> None:
    [got] = load_model(str(folder)).score(["hello wor"], ["ld"])
    row = ids("hello world")
    with torch.no_grad():
        every = torch.log_softmax(tuned(input_ids=torch.tensor([row])).logits[0].double(), dim=-1)
    np.testing.assert_allclose(got, [every[i - 1, row[i]] for i in (9, 10)], atol=2e-5)


KINDS = {
    "queries": lora(),
    "head": lora(("lm_head",)),
    "embedding": lora(("embed_tokens",)),
    "both": lora(("embed_tokens", "lm_head")),
    "all": lora("all-linear"),
    "dora": lora(("embed_tokens", "q_proj"), use_dora=True),
    "scaled": lora(("lm_head",), use_rslora=True),
    "tying": lora(("embed_tokens", "q_proj"), ensure_weight_tying=True),
    "saved head": lora(modules_to_save=["lm_head"]),
    "saved embedding": lora(modules_to_save=["embed_tokens"]),
    "tokens": lora(trainable_token_indices=[3, 4, 5, 8]),
    "ia3": peft.IA3Config(
        target_modules=["k_proj", "down_proj"],
        feedforward_modules=["down_proj"],
        task_type="CAUSAL_LM",
    ),
    "norms": peft.LNTuningConfig(task_type="CAUSAL_LM"),
}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_merged_says_what_peft_says(kind, tied, bases, ids, tmp_path):
    config = copy.deepcopy(KINDS[kind])  # peft writes into it
    tuned = adapted(bases[tied], config, tmp_path / "adapter")
    same(tmp_path / "adapter", tuned, ids)


def test_an_adapter_on_an_adapter(bases, ids, tmp_path, letters):
    inner, outer, middle = (tmp_path / name for name in ("inner", "outer", "middle"))
    adapted(bases[False], lora(), inner).merge_and_unload().save_pretrained(middle)
    letters.save_pretrained(middle)
    tuned = adapted(middle, lora(("v_proj",)), outer)
    file = outer / "adapter_config.json"
    said = json.loads(file.read_text())
    file.write_text(json.dumps(said | {"base_model_name_or_path": str(inner)}))
    same(outer, tuned, ids)
    assert find_weights(str(outer)).identity.count(" on sha256:") == 2


def test_added_tokens_and_the_adapters_own_tokenizer(bases, letters, tmp_path):
    """The network grows to the rows of the adapter's embedding, and its words are read as
    tokens."""
    own = hf.PreTrainedTokenizerFast.from_pretrained(bases[False])
    own.add_tokens(["hello"])
    folder = tmp_path / "adapter"
    config = lora(modules_to_save=["embed_tokens", "lm_head"])
    tuned = adapted(bases[False], config, folder, more=1)
    own.save_pretrained(folder)
    [got] = load_model(str(folder)).score(["hello wor"], ["ld"])
    row = own("hello world", add_special_tokens=False).input_ids
    assert len(row) == 7
    assert row[0] == 64
    with torch.no_grad():
        every = torch.log_softmax(tuned(input_ids=torch.tensor([row])).logits[0].double(), dim=-1)
    np.testing.assert_allclose(got, [every[i - 1, row[i]] for i in (5, 6)], atol=2e-5)
    # Without weights for it, such a token has no meaning.
    adapted(bases[False], lora(), tmp_path / "plain")
    own.save_pretrained(tmp_path / "plain")
    model = load_model(str(tmp_path / "plain"))
    for ask in (lambda: model.score(["hello"], ["a"]), lambda: model.generate(["hello"])):
        with pytest.raises(
            ModelError, match=r"token 64 \('hello'\), for which its network has no emb"
        ):
            ask()


def test_rows_of_a_head_that_were_not_saved_are_refused(bases, tmp_path):
    adapted(bases[False], lora(("embed_tokens",)), tmp_path / "adapter", more=2)
    with pytest.raises(ModelError, match="adds tokens, and its file lacks the head's weights"):
        load_model(str(tmp_path / "adapter"))


@pytest.mark.parametrize("where", ["tokenizer", "file"])
def test_the_adapters_own_chat_template_counts(where, bases, letters, tmp_path):
    folder = tmp_path / "adapter"
    adapted(bases[True], lora(), folder)
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<model>"
    if where == "tokenizer":
        own = hf.PreTrainedTokenizerFast.from_pretrained(bases[True])
        own.chat_template = template
        own.save_pretrained(folder)
    else:
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    model = load_model(str(folder))
    base = load_model(str(bases[True]))
    assert model.prompt_format == "chat"
    assert model.chat == ("<user>", "<model>")
    assert base.prompt_format == "two-shot"
    assert base.chat is None


@pytest.mark.parametrize(
    "config",
    [
        peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
        peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
        peft.PromptEncoderConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
        peft.AdaptionPromptConfig(task_type="CAUSAL_LM", adapter_len=4, adapter_layers=1),
    ],
    ids=lambda config: type(config).__name__,
)
def test_what_changes_no_weights_is_refused(config, bases, tmp_path):
    adapted(bases[True], config, tmp_path / "adapter")
    with pytest.raises(
        ModelError, match=r"does not change weights, and cannot be asked here; merge"
    ):
        load_model(str(tmp_path / "adapter"))


def test_an_adapter_that_works_behind_a_mark_only_is_refused(bases, tmp_path):
    adapted(bases[True], lora(alora_invocation_tokens=[5, 6]), tmp_path / "adapter")
    with pytest.raises(ModelError, match="aLoRA does not support merging"):
        load_model(str(tmp_path / "adapter"))


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("lacks", r"lacks 1 of its weights, such as base_model.*lora_"),
        ("strange", r"holds 1 weights for which its model has no place, such as .*layers\.7\."),
        ("cut", "cannot be read .SafetensorError"),
        ("none", "holds no adapter_model.safetensors"),
        ("null", "does not say which model the adapter is for; write"),
        ("itself", "is on itself"),
        ("broken", "is no JSON of an adapter"),
    ],
)
def test_damaged_adapters_are_refused_in_one_sentence(fault, sentence, bases, tmp_path):
    folder = tmp_path / "adapter"
    adapted(bases[True], lora(), folder)
    weights = folder / "adapter_model.safetensors"
    config = folder / "adapter_config.json"
    held = load_file(weights)
    said = json.loads(config.read_text())
    if fault == "lacks":
        del held[min(held)]
        save_file(held, weights)
    elif fault == "strange":
        name = "base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight"
        save_file(held | {name: torch.ones(4, 32)}, weights)
    elif fault == "cut":
        weights.write_bytes(weights.read_bytes()[:200])
    elif fault == "none":
        weights.unlink()
    elif fault == "broken":
        config.write_text("{")
    else:
        base = None if fault == "null" else str(folder)
        config.write_text(json.dumps(said | {"base_model_name_or_path": base}))
    with pytest.raises(ModelError, match=sentence) as error:
        load_model(str(folder))
    assert "\n" not in str(error.value)
