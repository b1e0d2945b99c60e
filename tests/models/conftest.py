"""Real models, loaded once a session, and independent ways to compute what they should say."""

import os
import socket
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from networks import T5, build
from tokenizers.processors import TemplateProcessing
from whole import saved

from factrobust.models.causal import CausalLM
from factrobust.models.encdec import Seq2SeqLM

os.environ.setdefault("TQDM_DISABLE", "1")


@pytest.fixture(scope="session")
def letters(toy_model):
    """A tokenizer of 64 tokens: a letter is a token, and "</s>" (0) ends every text; 1 is
    special."""
    alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ 12345678"
    tokenizer = toy_model({letter: {letter: 1.0} for letter in alphabet}).tokenizer
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 0)]
    )
    return tokenizer


@pytest.fixture(scope="session")
def ids(letters):
    """The tokens of a text, a letter each, without the end."""
    return lambda text: letters(text, add_special_tokens=False).input_ids


@pytest.fixture(scope="session")
def lettered(letters):
    """Builder of a model from a network of 64 tokens, behind that tokenizer."""

    def made(network, name="tiny"):
        kind = Seq2SeqLM if network.config.is_encoder_decoder else CausalLM
        return kind(network, letters, name=name, fingerprint="tiny")

    return made


@pytest.fixture(scope="session")
def tiny_t5(ids, lettered):
    """Builder of a random T5 behind that tokenizer, chosen so that greedy answers to the prompts of
    the tests differ and some of them end."""

    def made():
        network = build("T5", seed=2, **T5 | {"d_ff": 64}, initializer_factor=1.5)
        embeddings = network.shared.weight.detach()
        embeddings[0] = 1.2 * embeddings[ids("C")[0]]
        return lettered(network)

    return made


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def folder(toy_model, tmp_path):
    return saved(toy_model({" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}}), tmp_path / "toy")


@pytest.fixture
def encoder_decoder(tiny_t5, tmp_path):
    return saved(tiny_t5(), tmp_path / "my-t5")


@pytest.fixture(scope="session")
def watch():
    """What goes through a model's network in a block: `body`, the shape [row, token] of each pass
    below its head; `head`, to how many rows its head was applied each time; and `encoder`, how many
    prompts were read each time."""

    @contextmanager
    def watching(model):
        work = SimpleNamespace(body=[], head=[], encoder=[])

        def on_body(module, inputs, named, outputs):
            work.body.append(tuple(named["input_ids"].shape))

        def on_encoder(module, inputs, named, outputs):
            work.encoder.append(len(named["input_ids"]))

        def on_head(module, inputs, outputs):
            [hidden] = inputs
            work.head.append(len(hidden))

        head = model.network.get_output_embeddings()
        hooks = [
            model.body.base.register_forward_hook(on_body, with_kwargs=True),
            head.register_forward_hook(on_head),
        ]
        if model.network.config.is_encoder_decoder:
            encoder = model.body.encoder
            hooks.append(encoder.register_forward_hook(on_encoder, with_kwargs=True))
        yield work
        for hook in hooks:
            hook.remove()

    return watching
