"""Models on one GPU and on two, without one: labelled tensors (`devices`) give what the CPU gives."""

import copy
import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import peft
import pytest
import torch

from factrobust.models import adapters, load
from factrobust.models.causal import CausalLM
from factrobust.models.damage import Damage, apply
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.engine import Plain
from factrobust.models.interface import Model, ModelError
from factrobust.paths import ROOT

HERE = Path(__file__).parent
devices = runpy.run_path(str(HERE / "devices.py"))
standins = runpy.run_path(str(ROOT / "tests" / "standins.py"))
labelled, spread = devices["labelled"], devices["spread"]
ONE = {"": "cuda:0"}
FIRST, SECOND = torch.device("cuda:0"), torch.device("cuda:1")
# One of each architecture, with the module that ends its first half.
NETWORKS = {
    "meta-llama/Llama-3.1-8B": ("model.layers.1", "model.norm", "lm_head"),
    "google/gemma-2-2b": ("model.layers.1",),  # its head is the embedding, on the first device
    "EleutherAI/gpt-neox-20b": ("gpt_neox.layers.1", "gpt_neox.final_layer_norm", "embed_out"),
    "ibm-research/mpt-7b-instruct2": ("transformer.blocks.1", "transformer.norm_f"),
    "apple/OpenELM-3B": ("model.layers.1", "model.norm"),
    "google/flan-t5-xl": ("decoder.block.1", "decoder.final_layer_norm", "lm_head"),
    "google/flan-ul2": ("decoder",),
}
DECODER, ENCODER = "meta-llama/Llama-3.1-8B", "google/flan-t5-xl"
PROMPTS = [
    "Q: Where is Rome?\nA:",
    "Q: Who wrote Emma?\nA:",
    "Q: Where is it, and why is it there?\nA:",
]
ANSWERS = [" Rome", " Jane Austen", " here"]


def network_of(name: str) -> Any:
    torch.manual_seed(1)
    line = load.settings_of(name)
    return standins["kind_of"](name).network(tie_word_embeddings=line.tied == "yes").eval()


def placed(network: Any, on: str, half: tuple[str, ...]) -> Any:
    on_two = {"": "cuda:0"} | dict.fromkeys(half, "cuda:1")
    return spread(network, ONE if on == "one" else on_two)


def model_of(name: str, network: Any) -> Model:
    kind = standins["kind_of"](name).tokenizer or "sentencepiece"
    about = {"name": name, "fingerprint": name, "prompt_format": "two-shot", "chat": None}
    made = Seq2SeqLM if network.config.is_encoder_decoder else CausalLM
    return made(network, standins["tokenizer"](kind, None), **about)


def everything(model: Model) -> dict[str, Any]:
    """Texts and numbers of the four operations; answers end early and at different places."""
    stop = ["e", " "]
    greedy = model.generate(PROMPTS, max_new_tokens=6, stop=stop, temperatures=[0.5, 2.0])
    drawn = model.sample(PROMPTS, temperature=[0.5, 1.0, 2.0], n=4, max_new_tokens=6, stop=stop)
    flat = [sample for samples in drawn for sample in samples]
    numbers = [g.logprobs + g.curve + g.entropies for g in [*greedy, *flat]]
    scores = [*map(np.ndarray.tolist, model.score(PROMPTS, ANSWERS))]
    tempered = model.temper(PROMPTS, ANSWERS, [0.3, 1.0, 3.0], top_p=0.95).tolist()
    return {"texts": [g.text for g in [*greedy, *flat]], "numbers": [*numbers, *scores, *tempered]}


def same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found["texts"] == expected["texts"]
    assert len({*map(len, found["texts"])}) > 1  # some ended before others
    for one, other in zip(found["numbers"], expected["numbers"], strict=True):
        np.testing.assert_allclose(one, other, atol=2e-4)


# ---- the labels themselves -------------------------------------------------------------------------


def test_labels_refuse_what_cuda_refuses():
    with labelled():
        here, there = torch.arange(3, device="cuda:0"), torch.arange(3, device="cuda:1")
        for refused in (
            lambda: here + there,
            lambda: here + torch.ones(3),
            lambda: torch.cat([here, there]),
        ):
            with pytest.raises(RuntimeError, match="on the same device, but found at least two"):
                refused()
        for tensor, index in ((here, there), (torch.arange(3), here)):
            with pytest.raises(RuntimeError, match="indices should be either on cpu or"):
                tensor[index]
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            here.numpy()
        kept = (
            here + torch.tensor(1),
            here[torch.tensor([0])],
            here[None].float(),
            torch.zeros_like(here),
        )
        assert {each.device for each in kept} == {FIRST}
        assert here.to("cuda:1").device == there.device == SECOND
        assert here.cpu().numpy().tolist() == [0, 1, 2]


# ---- the four operations ---------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["one", "two"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_four_operations_are_those_of_the_cpu(name, on):
    network = network_of(name)
    expected = everything(model_of(name, copy.deepcopy(network)))
    with labelled():
        model = model_of(name, placed(network, on, NETWORKS[name]))
        assert {weights.device for weights in network.parameters()} == {
            FIRST,
            SECOND,
        } or on == "one"
        assert not isinstance(model.body, Plain)  # which would be right, and slow
        same(everything(model), expected)


@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_a_bfloat16_head_on_the_second_gpu(name):
    network = network_of(name).bfloat16()
    plain = model_of(name, copy.deepcopy(network)).score(PROMPTS, ANSWERS)
    with labelled():
        model = model_of(name, placed(network, "two", NETWORKS[name]))
        for one, other in zip(model.score(PROMPTS, ANSWERS), plain, strict=True):
            np.testing.assert_allclose(one, other, rtol=0.05)


# ---- changed weights and adapters ------------------------------------------------------------------


@pytest.mark.parametrize("on", ["one", "two"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("damage", [Damage("round", 4), Damage("prune", 0.3), Damage("noise", 0.1)])
def test_changed_weights_are_those_of_the_cpu(damage, dtype, on):
    for name in (DECODER, ENCODER):
        network = network_of(name).to(dtype)
        plain = copy.deepcopy(network)
        apply(plain, damage)
        with labelled():
            there = placed(network, on, NETWORKS[name])
            apply(there, damage)
        found = dict(there.named_parameters())
        for key, expected in plain.named_parameters():
            assert torch.equal(found[key], expected), key


@pytest.fixture
def adapted(tmp_path):
    """A function that saves an adapter on a network of that name, and gives what peft says beside it."""

    def made(name: str) -> tuple[Path, torch.Tensor]:
        network = network_of(name)
        tasks = {True: "SEQ_2_SEQ_LM", False: "CAUSAL_LM"}
        targets = {True: ["q", "wo"], False: ["q_proj", "down_proj"]}
        encodes = network.config.is_encoder_decoder
        config = peft.LoraConfig(r=4, target_modules=targets[encodes], task_type=tasks[encodes])
        tuned = peft.get_peft_model(network, config)
        for weights in tuned.parameters():
            if weights.requires_grad:
                torch.nn.init.normal_(weights, std=0.3)
        tuned.save_pretrained(tmp_path)
        return tmp_path, adapters._log_probabilities(tuned.eval())

    return made


@pytest.mark.parametrize("on", ["one", "two"])
@pytest.mark.parametrize("name", [DECODER, ENCODER])
def test_adapters_are_merged_where_the_layers_are(name, on, adapted):
    folder, expected = adapted(name)
    with labelled():
        whole = adapters.merged(placed(network_of(name), on, NETWORKS[name]), folder)
        assert adapters._log_probabilities(whole).numpy() == pytest.approx(
            expected.numpy(), abs=1e-3
        )


# ---- layers that found no place --------------------------------------------------------------------


@pytest.fixture
def with_offloaded_layers(monkeypatch):
    """Networks are read with their last half on 'meta', as `device_map` leaves what does not fit."""
    read = load.read_network

    def halved(*args: Any, **options: Any) -> Any:
        network, about = read(*args, **options)
        layers = [name for name, _ in network.named_modules() if name.endswith((".1", "block.1"))]
        for name in layers:
            network.get_submodule(name).to("meta")
        return network, about

    monkeypatch.setattr(load, "read_network", halved)


@pytest.mark.usefixtures("with_offloaded_layers")
@pytest.mark.parametrize("name", [DECODER, ENCODER])
@pytest.mark.parametrize("what", ["itself", "an adapter on it", "changed weights"])
def test_what_does_not_fit_is_told_in_one_sentence(name, what, adapted, tmp_path):
    base = tmp_path / "base"
    network_of(name).save_pretrained(base)
    standins["tokenizer"](standins["kind_of"](name).tokenizer, None).save_pretrained(base)
    asked, change = str(base), None
    if what == "an adapter on it":
        folder, _ = adapted(name)
        file = folder / "adapter_config.json"
        said = json.loads(file.read_text())
        file.write_text(json.dumps(said | {"base_model_name_or_path": str(base)}))
        asked = str(folder)
    if what == "changed weights":
        change = "round 4", lambda network: apply(network, Damage("round", 4))
    with pytest.raises(ModelError, match=r"does not fit into this machine's memory: \d+ of its"):
        load.load_model(asked, change=change)
