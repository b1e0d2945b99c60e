"""A model's whole work and its files: what tests compare, save and serve."""

import copy
import json
import os

import numpy as np
import pytest
import torch

from factrobust.models.interface import ModelError


def texts(made):
    return [answer.text for answer in made]


def everything(model, prompts, answers, **decoding):
    """Answers and samples, and the numbers of all four operations as lists."""
    temperatures = [(0.5, 1.0, 2.0)[i % 3] for i in range(len(prompts))]
    made = model.generate(prompts, temperatures=[0.5, 2.0], **decoding)
    drawn = model.sample(prompts, temperature=temperatures, n=4, seed=1, **decoding)
    for samples in drawn:
        made += samples
    scores = model.score(prompts, answers)
    curves = model.temper(prompts, answers, [0.3, 1.0, 3.0], top_p=0.95)
    given = [*scores, *curves]
    assert {array.dtype.name for array in given} == {"float32"}
    numbers = [answer.logprobs + answer.curve + answer.entropies for answer in made]
    numbers += [array.tolist() for array in given]
    return made, numbers


def assert_alike(found, expected, atol):
    """Whether two results of `everything` have equal texts, and numbers that are near."""
    assert texts(found[0]) == texts(expected[0])
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


def assert_one_sentence(sentence, call, *given, **options):
    """Whether a call raises a ModelError of one line that matches; the line."""
    with pytest.raises(ModelError, match=sentence) as caught:
        call(*given, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def saved(model, folder):
    """The folder, after the model was written there as save_pretrained does."""
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def adapted(network, config, folder):
    """peft's own network with a random adapter, which is saved in the folder."""
    import peft  # which takes seconds, and few tests need it

    tuned = peft.get_peft_model(network, copy.deepcopy(config))  # into which peft writes
    torch.manual_seed(1)
    for weights in tuned.parameters():
        if weights.requires_grad:
            torch.nn.init.normal_(weights, std=0.3)
    tuned.save_pretrained(folder)
    return tuned.eval()


def on_base(folder, base):
    """Name another model that the adapter in the folder is for."""
    file = folder / "adapter_config.json"
    config = json.loads(file.read_text())
    config["base_model_name_or_path"] = base
    file.write_text(json.dumps(config))


def llama_server(file, name, *, context, parallel):
    """llama.cpp's own server of a GGUF file, with one thread. It ends with this object."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    about = xllamacpp.CommonParams()
    about.model.path = os.fspath(file)
    about.model_alias = {name}
    about.hostnames = ["127.0.0.1"]
    about.port = 0
    about.n_ctx = context
    about.n_parallel = parallel
    about.cpuparams.n_threads = 1  # more wait for each other
    about.cpuparams_batch.n_threads = 1
    about.warmup = False
    about.verbosity = 0
    return xllamacpp.Server(about)
