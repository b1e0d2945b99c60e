"""An encoder and a decoder: a prompt is encoded once, and its answers grow from what came out.

A T5 decoder takes no position ids, so here the nodes of the tree of answers (see `decode`) are rows
of a batch, not columns of one row: each row has its own past and looks at its prompt's keys and
values, which are computed once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache, EncoderDecoderCache

from factrobust.models.base import ModelError
from factrobust.models.packed import Body, Rows

ROWS = 64  # answers that are teacher-forced at once: each holds a copy of its prompt's keys


class Encoded(NamedTuple):
    """What the decoder looks at: `states` and `mask` [row, source token], and the keys so far."""

    states: torch.Tensor
    mask: torch.Tensor
    past: EncoderDecoderCache

    def rows(self, index: list[int]) -> Encoded:
        """A copy with the given rows, any of them several times."""
        at = torch.tensor(index, device=self.states.device)
        caches: list[Any] = [self.past.self_attention_cache, self.past.cross_attention_cache]
        own, cross = (
            DynamicCache([(layer.keys[at], layer.values[at]) for layer in cache.layers])
            for cache in caches
        )
        return Encoded(self.states[at], self.mask[at], EncoderDecoderCache(own, cross))


@dataclass
class Tree:
    """The nodes of the last level: `node` [prompt, column] is the row of `encoded` that holds it."""

    encoded: Encoded
    node: torch.Tensor

    def batch_select_indices(self, prompts: torch.Tensor) -> None:
        """Go on with these prompts alone: what a cache of keys calls dropping rows."""
        self.node = self.node[prompts.cpu()]


class EncoderDecoder(Body):
    """A network's encoder, its decoder without the head, and the head.

    `begin` are the tokens that every answer follows: the decoder's start token and, where the model
    forces one, its first token (BART's <s>). Raises ModelError for a network without a start token,
    or with attention other than full.
    """

    def __init__(self, network: Any) -> None:
        self.network = network
        self.encoder, self.base = network.get_encoder(), network.get_decoder()
        self.config = network.config.get_text_config(decoder=True)
        self.device = next(network.parameters()).device
        self.kinds = set(getattr(self.config, "layer_types", None) or ())
        self.pad = network.config.pad_token_id or 0
        settings = network.generation_config
        named = (settings, "decoder_start"), (network.config, "decoder_start"), (settings, "bos")
        found = [getattr(place, f"{name}_token_id", None) for place, name in named]
        start = next((token for token in found if token is not None), None)
        if start is None or self.kinds - {"full_attention"}:
            what = "no decoder start token" if start is None else "attention other than full"
            raise ModelError(
                f"{type(network).__name__} has {what}, which cannot be asked here; use a T5 or "
                "BART-like model whose configuration says how its decoder starts"
            )
        forced = getattr(settings, "forced_bos_token_id", None)
        self.begin = [start] if forced is None else [start, forced]
        self.scale, self.bias = 1.0, getattr(network, "final_logits_bias", None)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = super().logits(hidden) * self.scale
        return logits if self.bias is None else logits + self.bias.float()

    def encode(self, prompts: list[list[int]]) -> tuple[torch.Tensor, Encoded]:
        """Read the prompts and begin their answers: hidden states [prompt, width], and the keys."""
        width = max(map(len, prompts))
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids in prompts])
        ids = self._padded(prompts)
        mask = mask.to(self.device)
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        encoded = Encoded(states, mask, EncoderDecoderCache(DynamicCache(), DynamicCache()))
        begin = torch.tensor([self.begin] * len(prompts), device=self.device)
        return self.step(encoded, begin)[:, -1], encoded

    def step(self, encoded: Encoded, ids: torch.Tensor) -> torch.Tensor:
        """Hidden states [row, q, width] of new tokens `ids` [row, q], whose keys are added."""
        hidden: torch.Tensor = self.base(
            input_ids=ids,
            encoder_hidden_states=encoded.states,
            encoder_attention_mask=encoded.mask,
            past_key_values=encoded.past,
            use_cache=True,
        ).last_hidden_state
        return hidden

    def follow(self, encoded: Encoded, rows: list[int], answers: list[list[int]]) -> torch.Tensor:
        """Hidden states [token, width] of all answers' tokens in turn; answer k belongs to rows[k].

        `encoded` is left as it is.
        """
        states = []
        for low in range(0, len(answers), ROWS):
            part = answers[low : low + ROWS]
            hidden = self.step(encoded.rows(rows[low : low + ROWS]), self._padded(part))
            # Padding stands after an answer, where no token of it looks.
            states += [h[: len(ids)] for h, ids in zip(hidden, part, strict=True)]
        return torch.cat(states)

    def hidden(self, rows: Rows, cache: Tree, kv_positions: torch.Tensor) -> torch.Tensor:
        """One level of the tree. As for a decoder-only network, but `cache` is a `Tree`; only the
        latest key that a new token sees matters, which is its parent. Padding has none."""
        seen = rows.seen[:, :, : -rows.ids.shape[1]].cpu()
        row, column = seen.any(dim=2).nonzero(as_tuple=True)
        keys = seen.shape[2]
        latest = (seen[row, column] * torch.arange(keys)).amax(dim=1)
        parents = cache.node[row, latest - (keys - cache.node.shape[1])].tolist()
        if parents != list(range(len(cache.encoded.mask))):  # else nobody ended or branched
            cache.encoded = cache.encoded.rows(parents)
        new = self.step(cache.encoded, rows.ids[row, column][:, None])[:, 0]
        cache.node = torch.zeros(rows.ids.shape, dtype=torch.long)
        cache.node[row, column] = torch.arange(len(row))
        hidden = new.new_zeros(*rows.ids.shape, new.shape[1])
        hidden[row, column] = new
        return hidden

    def _padded(self, sequences: list[list[int]]) -> torch.Tensor:
        width = max(map(len, sequences))
        filled = [[*ids, *[self.pad] * (width - len(ids))] for ids in sequences]
        return torch.tensor(filled, device=self.device)
