"""Real models, loaded once a session, and independent ways to compute what they should say."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import T5Config, T5ForConditionalGeneration

from factrobust.models.causal import CausalLM
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.prompts import render

os.environ.setdefault("TQDM_DISABLE", "1")

LONG = "Which large city on the river Seine, known for the Eiffel Tower, is the capital of France "
QUESTIONS = [
    ("What is the capital of Kenya?", "The capital of Kenya is"),
    ("Who wrote the play Hamlet?", "The author of Hamlet is"),
    ("In which year did the Second World War end?", "The Second World War ended in"),
    ("What is the chemical symbol of gold?", "The chemical symbol of gold is"),
    (f"{LONG}and the seat of its government?", "The capital of France is"),
    ("What colour is the sky?", "The colour of the sky is"),
    ("Who painted Guernica?", "The painter of Guernica is"),
    ("What is the currency of Japan?", "The currency of Japan is"),
    ("Which continent is Brazil in?", "Brazil is in"),
    ("What is the atomic number of oxygen?", "The atomic number of oxygen is"),
]


@pytest.fixture(scope="session")
def ask():
    """The first n questions as a model's own prompts."""

    def prompts(model: CausalLM, n: int = len(QUESTIONS)) -> list[str]:
        return render(model.prompt_format, *zip(*QUESTIONS[:n], strict=True), model.chat)

    return prompts


@pytest.fixture(scope="session")
def reference():
    """Log P_t of the tokens of `ids` from `start` on, [token], or of each t, [t, token]: the
    network's own logits, in float64."""

    def logprobs(model: CausalLM, ids: list[int], start: int, t: Any = 1.0) -> np.ndarray:
        asked = {"input_ids": torch.tensor([ids]), "logits_to_keep": len(ids) - start + 1}
        with torch.no_grad():
            logits = model.body.network(**asked).logits[0, :-1].double()
        tempered = logits / torch.tensor(t, dtype=torch.float64)[..., None, None]
        every = torch.log_softmax(tempered, dim=-1)
        return every[..., torch.arange(len(logits)), torch.tensor(ids[start:]).long()].numpy()

    return logprobs


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

    def build(network: Any, name: str = "tiny", **options: Any) -> CausalLM:
        kind = Seq2SeqLM if network.config.is_encoder_decoder else CausalLM
        about = {"fingerprint": "tiny", "prompt_format": "prefix", "chat": None}
        return kind(network, letters, name=name, **(about | options))

    return build


@pytest.fixture(scope="session")
def tiny_t5(letters, lettered):
    """Builder of a random T5 behind that tokenizer; options go to Seq2SeqLM.

    Chosen so that greedy answers to the prompts of the tests differ and some of them end.
    """

    def build(**options: Any) -> Seq2SeqLM:
        torch.manual_seed(2)
        config = T5Config(
            vocab_size=64,
            d_model=32,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            pad_token_id=1,
            eos_token_id=0,
            decoder_start_token_id=1,
            initializer_factor=1.5,
        )
        network = T5ForConditionalGeneration(config)
        with torch.no_grad():
            network.shared.weight[0] = 1.2 * network.shared.weight[letters("C").input_ids[0]]
        return lettered(network, **options)

    return build


class Work:
    """What went through a network: the shape [row, token] of each forward pass of its body, and
    the number of rows its head was applied to each time."""

    def __init__(self) -> None:
        self.body: list[tuple[int, int]] = []
        self.head: list[int] = []

    @property
    def tokens(self) -> int:
        return sum(rows * width for rows, width in self.body)


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def saved(model: CausalLM, folder: Path) -> Path:
    """The folder, after the model was written there as save_pretrained does."""
    model.body.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(toy_model, tmp_path):
    return saved(toy_model({" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}}), tmp_path / "toy")


@pytest.fixture
def encoder_decoder(tiny_t5, tmp_path):
    return saved(tiny_t5(), tmp_path / "my-t5")


@pytest.fixture(scope="session")
def watch():

    @contextmanager
    def watching(model: CausalLM) -> Iterator[Work]:
        work = Work()

        def on_body(_: Any, __: Any, kwargs: dict[str, Any], ___: Any) -> None:
            work.body.append(tuple(kwargs["input_ids"].shape))

        def on_head(_: Any, inputs: tuple[torch.Tensor], __: Any) -> None:
            work.head.append(inputs[0].shape[0])

        hooks = [
            model.body.base.register_forward_hook(on_body, with_kwargs=True),
            model.body.network.get_output_embeddings().register_forward_hook(on_head),
        ]
        try:
            yield work
        finally:
            for hook in hooks:
                hook.remove()

    return watching
