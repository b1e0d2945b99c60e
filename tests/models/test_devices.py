"""Models on one GPU and on two, without one: labelled tensors (`devices`) give what the CPU gives."""

import copy
import runpy
from pathlib import Path

import numpy as np
import peft
import pytest
import torch
from whole import adapted, assert_alike, everything, on_base, texts

from factrobust.models import adapters, load
from factrobust.models.causal import CausalLM
from factrobust.models.damage import Damage, apply
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.engine import Plain
from factrobust.models.interface import ModelError
from factrobust.paths import ROOT

devices = runpy.run_path(str(Path(__file__).with_name("devices.py")))
standins = runpy.run_path(str(ROOT / "tests" / "standins.py"))
labelled = devices["labelled"]
FIRST = torch.device("cuda:0")
SECOND = torch.device("cuda:1")
DECODER, ENCODER = "meta-llama/Llama-3.1-8B", "google/flan-t5-xl"
# One of each architecture, with the modules of its second half.
NETWORKS = {
    DECODER: ("model.layers.1", "model.norm", "lm_head"),
    "google/gemma-2-2b": ("model.layers.1",),  # its head is the embedding, on the first device
    "EleutherAI/gpt-neox-20b": ("gpt_neox.layers.1", "gpt_neox.final_layer_norm", "embed_out"),
    "ibm-research/mpt-7b-instruct2": ("transformer.blocks.1", "transformer.norm_f"),
    "apple/OpenELM-3B": ("model.layers.1", "model.norm"),
    ENCODER: ("decoder.block.1", "decoder.final_layer_norm", "lm_head"),
    "google/flan-ul2": ("decoder",),
}
PROMPTS = [
    "Q: Where is Rome?\nA:",
    "Q: Who wrote Emma?\nA:",
    "Q: Where is it, and why is it there?\nA:",
]
ANSWERS = [" Rome", " Jane Austen", " here"]
both = pytest.mark.parametrize("name", [DECODER, ENCODER])
on_one_and_two = pytest.mark.parametrize("gpus", [1, 2])


def network_of(name):
    torch.manual_seed(1)
    tied = load.settings_of(name).tied == "yes"
    return standins["kind_of"](name).network(tie_word_embeddings=tied).eval()


def placed(network, name, gpus):
    """The network on one GPU, or with its second half on another."""
    second = dict.fromkeys(NETWORKS[name], "cuda:1") if gpus == 2 else {}
    return devices["spread"](network, {"": "cuda:0"} | second)


def model_of(name, network):
    kind = standins["kind_of"](name).tokenizer or "sentencepiece"
    made = Seq2SeqLM if network.config.is_encoder_decoder else CausalLM
    return made(network, standins["tokenizer"](kind, None), name=name, fingerprint=name)


def answered(model):
    """Of the four operations; answers end early and at different places."""
    return everything(model, PROMPTS, ANSWERS, max_new_tokens=6, stop=["e", " "])


# ---- the labels themselves -------------------------------------------------------------------------


def test_labels_refuse_what_cuda_refuses():
    with labelled():
        here = torch.arange(3, device="cuda:0")
        there = torch.arange(3, device="cuda:1")
        with pytest.raises(RuntimeError, match="on the same device, but found at least two"):
            here + there
        with pytest.raises(RuntimeError, match="on the same device, but found at least two"):
            torch.cat([here, torch.ones(3)])
        with pytest.raises(RuntimeError, match="indices should be either on cpu or"):
            there[here]
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            here.numpy()
        kept = here[torch.tensor([0])].float() + torch.tensor(1)
        assert kept.device == torch.zeros_like(here).device == FIRST
        assert here.to("cuda:1").device == SECOND
        assert here.cpu().numpy().tolist() == [0, 1, 2]


# ---- the four operations ---------------------------------------------------------------------------


@on_one_and_two
@pytest.mark.parametrize("name", NETWORKS)
def test_the_four_operations_are_those_of_the_cpu(name, gpus):
    network = network_of(name)
    expected = answered(model_of(name, copy.deepcopy(network)))
    assert len({*map(len, texts(expected[0]))}) > 1  # some ended before others
    with labelled():
        model = model_of(name, placed(network, name, gpus))
        assert len({weights.device for weights in network.parameters()}) == gpus
        assert not isinstance(model.body, Plain)  # which would be right, and slow
        found = answered(model)
    assert_alike(found, expected, 2e-4)


@both
def test_a_bfloat16_head_on_the_second_gpu(name):
    network = network_of(name).bfloat16()
    plain = model_of(name, copy.deepcopy(network)).score(PROMPTS, ANSWERS)
    with labelled():
        found = model_of(name, placed(network, name, 2)).score(PROMPTS, ANSWERS)
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.05)


# ---- changed weights and adapters ------------------------------------------------------------------


@both
@on_one_and_two
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "damage",
    [
        Damage("round", 4),
        Damage("prune", 0.3),
        Damage("noise", 0.1),
    ],
)
def test_changed_weights_are_those_of_the_cpu(damage, dtype, gpus, name):
    network = network_of(name).to(dtype)
    plain = copy.deepcopy(network)
    apply(plain, damage)
    with labelled():
        there = placed(network, name, gpus)
        apply(there, damage)
    for key, expected in plain.named_parameters():
        assert torch.equal(there.get_parameter(key), expected), key


def save_adapter(name, folder):
    """Save an adapter on a network of that name; what peft says with it."""
    network = network_of(name)
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM")
    if network.config.is_encoder_decoder:
        config = peft.LoraConfig(r=4, target_modules=["q", "wo"], task_type="SEQ_2_SEQ_LM")
    return adapters._log_probabilities(adapted(network, config, folder))


@on_one_and_two
@both
def test_adapters_are_merged_where_the_layers_are(name, gpus, tmp_path):
    expected = save_adapter(name, tmp_path).numpy()
    with labelled():
        whole = adapters.merged(placed(network_of(name), name, gpus), tmp_path)
        found = adapters._log_probabilities(whole).numpy()
    assert found == pytest.approx(expected, abs=1e-3)


# ---- layers that found no place --------------------------------------------------------------------


@pytest.fixture
def base(name, tmp_path, monkeypatch):
    """The folder of a model that is read with its last half on 'meta', as `device_map` leaves what
    does not fit."""
    read = load.read_network

    def halved(*given, **options):
        network, about = read(*given, **options)
        for name, module in [*network.named_modules()]:
            if name.endswith((".1", "block.1")):
                module.to("meta")
        return network, about

    monkeypatch.setattr(load, "read_network", halved)
    network_of(name).save_pretrained(tmp_path / "base")
    tokenizer = standins["tokenizer"](standins["kind_of"](name).tokenizer, None)
    tokenizer.save_pretrained(tmp_path / "base")
    return tmp_path / "base"


FULL = r"does not fit into this machine's memory: \d+ of its"


@both
def test_a_model_that_does_not_fit_is_told_in_one_sentence(name, base):
    with pytest.raises(ModelError, match=FULL):
        load.load_model(str(base))
    change = "round 4", lambda network: apply(network, Damage("round", 4))
    with pytest.raises(ModelError, match=FULL):
        load.load_model(str(base), change=change)


@both
def test_so_is_one_with_an_adapter(name, base, tmp_path):
    folder = tmp_path / "adapter"
    save_adapter(name, folder)
    on_base(folder, str(base))
    with pytest.raises(ModelError, match=FULL):
        load.load_model(str(folder))
