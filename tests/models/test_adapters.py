"""Adapters: what peft says without merging, or one sentence."""

import os

import numpy as np
import peft
import pytest
import torch
import transformers as hf
from networks import LLAMA, build
from safetensors.torch import load_file, save_file
from whole import adapted, assert_one_sentence, on_base, saved

from factrobust.models.interface import ModelError
from factrobust.models.load import find_weights, load_model
from factrobust.models.prompts import CHATS
from factrobust.models.records import Records

WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
SMOLLM = "smollm2-135m-instruct"  # which is asked by "smollm2" of CHATS


@pytest.fixture(scope="module")
def bases(lettered, tmp_path_factory):
    """Folders of a network whose head is its embedding (True), and of one with a head of its
    own."""
    folders = {}
    for tied in (True, False):
        network = build("Llama", **LLAMA, tie_word_embeddings=tied)
        folders[tied] = saved(lettered(network), tmp_path_factory.mktemp("base"))
    return folders


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "adapter"


def lora(*layers, **options):
    target = list(layers) or ["q_proj"]
    return peft.LoraConfig(r=4, target_modules=target, task_type="CAUSAL_LM", **options)


def tuned_on(base, config, folder, more=0):
    """What peft says on a base with so many more tokens; the adapter is saved in the folder."""
    network = hf.AutoModelForCausalLM.from_pretrained(base)
    if more:
        network.resize_token_embeddings(64 + more, mean_resizing=False)
    return adapted(network, config, folder)


def assert_same(folder, tuned, row):
    """The loaded model gives "ld" after "hello wor", the tokens `row`, what peft's network does."""
    [found] = load_model(str(folder)).score(["hello wor"], ["ld"])
    with torch.no_grad():
        logits = tuned(input_ids=torch.tensor([row])).logits[0].double()
    logprobs = torch.log_softmax(logits, dim=-1)
    expected = [logprobs[-3, row[-2]], logprobs[-2, row[-1]]]
    np.testing.assert_allclose(found, expected, atol=2e-5)


KINDS = {
    "queries": lora(),
    "head": lora("lm_head"),
    "embedding": lora("embed_tokens"),
    "both": lora("embed_tokens", "lm_head"),
    "all": peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM"),
    "dora": lora("embed_tokens", "q_proj", use_dora=True),
    "scaled": lora("lm_head", use_rslora=True),
    "tying": lora("embed_tokens", "q_proj", ensure_weight_tying=True),
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
def test_merged_says_what_peft_says(kind, tied, bases, ids, folder):
    tuned = tuned_on(bases[tied], KINDS[kind], folder)
    assert_same(folder, tuned, ids("hello world"))


def test_an_adapter_on_an_adapter(bases, ids, tmp_path, folder, letters):
    inner = tmp_path / "inner"
    whole = tmp_path / "whole"
    tuned_on(bases[False], lora(), inner).merge_and_unload().save_pretrained(whole)
    letters.save_pretrained(whole)
    tuned = tuned_on(whole, lora("v_proj"), folder)
    on_base(folder, str(inner))
    assert_same(folder, tuned, ids("hello world"))
    assert find_weights(str(folder)).identity.count(" on sha256:") == 2


def test_added_tokens_and_the_adapters_own_tokenizer(bases, folder):
    """The network grows to the rows of the adapter's embedding, and its words are read as
    tokens."""
    longer = hf.PreTrainedTokenizerFast.from_pretrained(bases[False])
    longer.add_tokens(["hello"])  # token 64
    config = lora(modules_to_save=["embed_tokens", "lm_head"])
    tuned = tuned_on(bases[False], config, folder, more=1)
    longer.save_pretrained(folder)
    row = longer("hello world", add_special_tokens=False).input_ids
    assert row[0] == 64
    assert_same(folder, tuned, row)


def test_weights_that_are_no_numbers(bases, folder):
    """torch's attention makes numbers of a query that is NaN."""
    tuned_on(bases[False], lora(), folder)
    held = load_file(folder / WEIGHTS)
    next(iter(held.values()))[0, 0] = float("nan")
    save_file(held, folder / WEIGHTS)
    with pytest.raises(ModelError, match=r"weights that are not numbers .* of model\.layers\.0\."):
        load_model(str(folder))


def test_the_model_below_that_is_not_there(bases, folder):
    tuned_on(bases[False], lora(), folder)
    on_base(folder, "/nowhere/else")
    with pytest.raises(ModelError, match=r"the model below the adapter in .*: no model is called"):
        load_model(str(folder))


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("where", ["tokenizer", "file"])
def test_the_adapters_own_chat_template_counts(where, listed, bases, folder):
    """Also over that of a base that has a line in data/models.csv."""
    tuned_on(bases[True], lora(), folder)
    base = SMOLLM if listed else str(bases[True])
    on_base(folder, base)
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<model>"
    if where == "tokenizer":
        tokenizer = hf.PreTrainedTokenizerFast.from_pretrained(bases[True])
        tokenizer.chat_template = template
        tokenizer.save_pretrained(folder)
    else:
        (folder / "chat_template.jinja").write_text(template)
    # The template is read before any weights are.
    model = load_model(str(folder), records=Records(None))
    assert model.prompt_format == "chat"
    assert model.chat == ("<user>", "<model>")
    assert not model.listed_chat
    assert load_model(base, records=Records(None)).chat == (CHATS["smollm2"] if listed else None)


VIRTUAL = {"task_type": "CAUSAL_LM", "num_virtual_tokens": 4}
NO_WEIGHTS = "does not change weights, and cannot be asked here; merge"


@pytest.mark.parametrize(
    ("config", "more", "sentence"),
    [
        (peft.PromptTuningConfig(**VIRTUAL), 0, NO_WEIGHTS),
        (peft.PrefixTuningConfig(**VIRTUAL), 0, NO_WEIGHTS),
        (peft.PromptEncoderConfig(**VIRTUAL), 0, NO_WEIGHTS),
        (
            peft.AdaptionPromptConfig(task_type="CAUSAL_LM", adapter_len=4, adapter_layers=1),
            0,
            NO_WEIGHTS,
        ),
        # It works behind a mark only.
        (lora(alora_invocation_tokens=[5, 6]), 0, "aLoRA does not support merging"),
        # New rows of the head would be random.
        (lora("embed_tokens"), 2, "adds tokens, and its file lacks the head's weights"),
    ],
)
def test_kinds_that_are_refused(config, more, sentence, bases, folder):
    tuned_on(bases[more == 0], config, folder, more)
    with pytest.raises(ModelError, match=sentence):
        load_model(str(folder))


def with_weights(folder, change):
    held = load_file(folder / WEIGHTS)
    change(held)
    save_file(held, folder / WEIGHTS)


STRANGE = {"base_model.model.model.layers.7.self_attn.q_proj.lora_A.weight": torch.ones(4, 32)}


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (
            lambda folder: with_weights(folder, lambda held: held.pop(min(held))),
            r"lacks 1 of its weights, such as base_model.*lora_",
        ),
        (
            lambda folder: with_weights(folder, lambda held: held.update(STRANGE)),
            r"holds 1 weights for which its model has no place, such as .*layers\.7\.",
        ),
        (
            lambda folder: os.truncate(folder / WEIGHTS, 200),
            "cannot be read .SafetensorError",
        ),
        (
            lambda folder: (folder / WEIGHTS).unlink(),
            "holds no adapter_model.safetensors",
        ),
        (
            lambda folder: on_base(folder, None),
            "does not say which model the adapter is for; write",
        ),
        (
            lambda folder: on_base(folder, str(folder)),
            "is on itself",
        ),
        (
            lambda folder: (folder / CONFIG).write_text("{"),
            "is no JSON of an adapter",
        ),
    ],
)
def test_damaged_adapters_are_refused_in_one_sentence(damage, sentence, bases, folder):
    tuned_on(bases[True], lora(), folder)
    damage(folder)
    assert_one_sentence(sentence, load_model, str(folder))
