"""Models as transformers runs them: what the usual ways of doing things start from."""

from functools import cache
from typing import Any

import torch
import transformers

from factrobust.models import load, tokens


@cache
def plain_network(name: str) -> Any:
    """A decoder in float32, without what `models.engine` changes."""
    where, how = load.location(load.find_weights(name))
    network, _ = load.read_network(transformers.AutoModelForCausalLM, where, "float32", **how)
    return network


def generated(model: Any, prompt: str, **options: Any) -> tuple[list[int], list[int]]:
    """Token ids of a prompt and of its (first) answer, by transformers' generate."""
    ids = tokens.encode(model.tokenizer, prompt, bos=model.bos)
    given = torch.tensor([ids])
    made = plain_network(model.name).generate(
        input_ids=given,
        attention_mask=torch.ones_like(given),
        pad_token_id=model.end_ids[0],
        **options,
    )
    return ids, made[0, len(ids) :].tolist()


def greedy_ids(model: Any, prompt: str, **options: Any) -> tuple[list[int], list[int]]:
    return generated(model, prompt, do_sample=False, top_k=None, top_p=None, **options)


def logprobs(name: str, ids: list[int], start: int) -> torch.Tensor:
    """log P of each token from a place on, by one forward pass that makes all logits."""
    given = torch.tensor([ids])
    with torch.inference_mode():
        logits = plain_network(name)(input_ids=given).logits
    of_all = logits[0, :-1].log_softmax(dim=-1)
    return of_all.gather(1, given[0, 1:, None])[start - 1 :, 0]
