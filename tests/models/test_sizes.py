"""The two larger models, where their weights are installed: what transformers and llama.cpp say of
the same file. Elsewhere these tests are skipped; the notebooks' tests have the models' recorded
answers."""

import gc
import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch

from factrobust import load_model
from factrobust.datasets.facts import load_facts, with_questions
from factrobust.models import gguf_files, load
from factrobust.models.prompts import CHATS, FORMATS, render

NAMES = [name for name in load.EMBEDDED if name.startswith("qwen")]
STOP = FORMATS["two-shot"].stop


def installed(name):
    """A parameter that is skipped where a part of the weights is missing."""
    missing = [package for package, _ in load.EMBEDDED[name].parts if find_spec(package) is None]
    why = f"the weights of {name} are not installed: `make sizes` brings them"
    return pytest.param(name, marks=pytest.mark.skipif(bool(missing), reason=why))


@pytest.fixture(scope="module", params=[installed(name) for name in NAMES])
def sized(request):
    yield load_model(request.param)
    gc.collect()  # seven gigabytes


@pytest.fixture(scope="module")
def asked():
    """Ten two-shot prompts, of different relations."""
    every = with_questions(load_facts())
    facts = every.iloc[:: len(every) // 10].head(10)
    assert facts["relation"].nunique() == 10
    return render("two-shot", facts["question"].tolist(), facts["prefix"].tolist())


@pytest.mark.usefixtures("no_network")
def test_answers_are_those_of_transformers_own_generate(sized, asked):
    """One prompt at a time, without padding or a shared beginning."""
    network = sized.body.network
    tokenizer = sized.tokenizer
    ours = sized.generate(asked, max_new_tokens=8, stop=STOP)
    for prompt, answer in zip(asked, ours, strict=True):
        ids = tokenizer(prompt, return_tensors="pt").input_ids
        with torch.inference_mode():
            made = network.generate(
                ids,
                do_sample=False,
                max_new_tokens=8,
                return_dict_in_generate=True,
                output_logits=True,
                repetition_penalty=1.0,
            )
        n = len(answer.token_ids)
        new = made.sequences[0, ids.shape[1] :]
        text, _, _ = tokenizer.decode(new, skip_special_tokens=True).partition("\n")
        assert answer.text == text.rstrip()
        assert answer.token_ids == new[:n].tolist()
        logits = torch.cat([*made.logits])[:n].log_softmax(dim=-1)
        expected = logits[range(n), answer.token_ids]
        np.testing.assert_allclose(answer.logprobs, expected.numpy(), atol=2e-4)


@pytest.mark.usefixtures("no_network")
def test_the_frame_is_what_the_template_gives_token_by_token(sized):
    """And prompts have no token before their first one: the file asks for none."""
    tokenizer = sized.tokenizer
    question = "What is the capital of Kenya?"
    assert load.chat_frame(tokenizer) == sized.chat == CHATS["qwen"]
    [prompt] = render("chat", [question], [""], sized.chat)
    message = [{"role": "user", "content": question}]
    how = {"tokenize": True, "add_generation_prompt": True, "return_dict": False}
    assert sized._encode(prompt) == tokenizer.apply_chat_template(message, **how)
    assert sized._encode("Kenya") == tokenizer("Kenya", add_special_tokens=False).input_ids


@pytest.fixture
def url(sized):
    xllamacpp = pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    folder, _ = load.location(load.find_weights(sized.name))
    about = xllamacpp.CommonParams()
    about.model.path = os.fspath(Path(folder) / gguf_files.FILE)
    about.model_alias = {sized.name}
    about.hostnames = ["127.0.0.1"]
    about.port = 0
    about.n_ctx = 1024
    about.n_parallel = 2
    about.cpuparams.n_threads = about.cpuparams_batch.n_threads = 1
    about.warmup = False
    about.verbosity = 0
    running = xllamacpp.Server(about)
    yield f"{running.listening_address}/v1"
    del running


def test_answers_are_those_of_llama_cpp_on_the_same_file(sized, asked, url):
    """It multiplies with activations of 8 bits, so that near ties may fall otherwise: of 66 answers
    one was another. Of ten at most one may be."""
    about = {
        "url": url,
        "model": sized.name,
        "api": "completions",
        "concurrency": 2,
    }
    theirs = load_model(about).generate(asked, stop=STOP)
    ours = sized.generate(asked, stop=STOP)
    same = [a.text == b.text for a, b in zip(ours, theirs, strict=True)]
    assert sum(same) >= 9
    near = [
        abs(a.logprobs[0] - b.logprobs[0]) for a, b, s in zip(ours, theirs, same, strict=True) if s
    ]
    assert np.median(near) < 0.1
