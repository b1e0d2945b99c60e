"""What both kinds of model refuse: other vocabularies, and networks that they cannot take apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from factrobust.models.causal import CausalLM
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.interface import ModelError


def test_ids_of_another_vocabulary(toy_model: Callable[..., Any]) -> None:
    toy = toy_model({" a": {" b": 1.0}}, name="mine")
    assert toy.score([" a"], [[15]])[0].shape == (1,)  # the vocabulary holds 16
    for ask in (toy.score, lambda p, a: toy.temper(p, a, [1.0])):
        with pytest.raises(ModelError, match="mine: 16 is no token id of this model, whose vocab"):
            ask([" a", " a", " a"], [" b", [3], [2, 16, 4]])


def test_a_network_that_does_not_run_as_it_is_asked_to(toy_model: Callable[..., Any]) -> None:
    toy = toy_model({" a": {" b": 0.5, " c": 0.5}})
    network = toy.body.network

    def refuse(*_: Any) -> None:
        raise IndexError("no such layer")

    network.register_forward_pre_hook(refuse)
    with pytest.raises(ModelError, match=r"x: LlamaForCausalLM does not run .*IndexError: no such"):
        CausalLM(
            network, toy.tokenizer, name="x", fingerprint="x", prompt_format="prefix", chat=None
        )


def test_logits_that_are_not_the_heads(tiny_t5: Callable[..., Any]) -> None:
    model = tiny_t5()
    network, whole = model.body.network, model.body.network.forward

    def halved(**inputs: Any) -> Any:
        out = whole(**inputs)
        out.logits = out.logits / 2
        return out

    network.forward = halved
    with pytest.raises(
        ModelError, match=r"y: the logits of T5ForCond.* differ from its head .*100%"
    ):
        Seq2SeqLM(
            network, model.tokenizer, name="y", fingerprint="y", prompt_format="prefix", chat=None
        )
