"""The network of a model as transformers runs it: what the usual ways of doing things start
from."""

from __future__ import annotations

from typing import Any, cast

import torch

from factrobust import load_model
from factrobust.models import tokens
from factrobust.models.causal import CausalLM
from factrobust.models.engine import ATTEND
from factrobust.models.linear import ExactLinear, PackedLinear

_loaded: dict[str, Any] = {}


def plain_network(model: CausalLM) -> Any:
    """Its network without what `models.engine` changes; for a model that it changed, weights are
    loaded again."""
    changed = (ExactLinear, PackedLinear)
    if not any(isinstance(layer, changed) for layer in model.body.network.modules()):
        return model.body.network
    if model.fingerprint not in _loaded:
        network = cast(CausalLM, load_model(model.name)).body.network
        for layer in network.modules():
            if isinstance(layer, changed):  # not used yet, so that its weight is there
                layer.__class__ = torch.nn.Linear
            if getattr(getattr(layer, "config", None), "_attn_implementation", "") == ATTEND:
                layer.config._attn_implementation = "sdpa"
        _loaded[model.fingerprint] = network
    return _loaded[model.fingerprint]


def greedy_ids(
    model: CausalLM, prompt: str, max_new_tokens: int, **options: Any
) -> tuple[list[int], list[int]]:
    """Token ids of a prompt and of its greedy answer, by transformers' generate at batch size 1."""
    ids = tokens.encode(model.tokenizer, prompt, bos=model.bos)
    given = torch.tensor([ids], device=model.body.device)
    made = plain_network(model).generate(
        input_ids=given,
        attention_mask=torch.ones_like(given),
        do_sample=False,
        top_k=None,
        top_p=None,
        max_new_tokens=max_new_tokens,
        pad_token_id=model.end_ids[0],
        **options,
    )
    return ids, made[0, len(ids) :].tolist()
