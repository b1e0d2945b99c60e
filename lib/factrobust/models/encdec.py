"""Encoder-decoder transformers (T5, Flan-T5, BART): the same four operations.

A prompt is read by the encoder once, however many answers, temperatures and samples it has. As for
decoder-only models, numbers are float32 log-softmax values at the positions that are asked for.

A T5 decoder takes no position ids, so here the nodes of the tree of answers (see `tree`) are rows of
a batch, not columns of one row: each row has its own past and looks at its prompt's keys and values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import DynamicCache, EncoderDecoderCache

from factrobust.models import tokens
from factrobust.models.engine import Batch, Body, LocalModel, Prefilled, by_prompt, in_batches
from factrobust.models.interface import Job, ModelError
from factrobust.models.tree import Rows

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


class Seq2SeqLM(LocalModel):
    """A transformers encoder-decoder model in memory.

    The prompt is what the encoder reads, closed by the tokenizer's special tokens. The answer is the
    decoder's text: tokenised by itself, and predicted from the decoder's start token on. So prompt
    and answer cannot merge, and a separator between them is the answer's own first character (T5's
    tokenizer drops a leading space and knows no newline, so a stop string with one never ends an
    answer of T5). The end token is not counted: `score` of a text is the log-probability that the
    answer begins with it, as for decoder-only models, and `generate` ends before the end token.
    Whoever wants it counted gives token ids that end with it.
    """

    body: EncoderDecoder

    def _wrap(self, network: Any) -> EncoderDecoder:
        return EncoderDecoder(network)

    # -- teacher forcing ---------------------------------------------------------------------------

    def _score(self, job: Job) -> Iterator[Batch]:
        groups = by_prompt(job)
        sources = {g[0]: self._encode(job.requests[g[0]]["prompt"]) for g in groups}
        answers = [tokens.encode_target(self.tokenizer, r["answer"]) for r in job.requests]
        taken = [self._length(len(sources[g[0]]), len(answers[i])) for g in groups for i in g]
        self._check_context(job, taken)
        temperatures = job.settings.get("temperatures")

        def run(batch: list[list[int]]) -> Batch:
            prompts = [sources[g[0]] for g in batch]
            values = self._log_probs(
                prompts, [[answers[i] for i in g] for g in batch], temperatures
            )
            return [i for g in batch for i in g], values

        # Every answer holds a copy of its prompt's keys.
        sizes = [sum(len(sources[g[0]]) + len(answers[i]) for i in g) for g in groups]
        return in_batches(groups, sizes, run, budget=self.tokens_per_batch, name=self.name)

    def _log_probs(
        self,
        prompts: list[list[int]],
        answers: list[list[list[int]]],
        temperatures: Sequence[float] | None,
    ) -> list[np.ndarray]:
        """The result of each answer; `answers` holds a list a prompt."""
        hidden, encoded = self.body.encode(prompts)
        flat = [(row, ids) for row, group in enumerate(answers) for ids in group]
        # All answers to a prompt begin from one place; the rest of a longer one follows itself.
        longer = [(row, ids[:-1]) for row, ids in flat if len(ids) > 1]
        if longer:
            rows, heads = zip(*longer, strict=True)
            hidden = torch.cat([hidden, self.body.follow(encoded, list(rows), list(heads))])
        where: list[int] = []
        after = len(prompts)
        for row, ids in flat:
            where += [row, *range(after, after + len(ids) - 1)]
            after += len(ids) - 1
        return self._values(hidden, where, [ids for _, ids in flat], temperatures)

    # -- generation --------------------------------------------------------------------------------

    def _encode(self, prompt: str) -> list[int]:
        return tokens.encode_source(self.tokenizer, prompt)

    def _last(self, prompt: list[int]) -> int:
        return self.body.begin[-1]

    def _length(self, prompt: int, answer: int) -> int:
        # Each of the two has a context of its own.
        return max(prompt, len(self.body.begin) + answer)

    def _sizes(self, prompts: list[list[int]], answers: list[int]) -> list[int]:
        return [(len(ids) + 1) * n for ids, n in zip(prompts, answers, strict=True)]

    def _prefill(self, prompts: list[list[int]]) -> Prefilled:
        hidden, encoded = self.body.encode(prompts)
        one = (len(prompts), 1)  # the tree's root: the start of an answer
        tree = Tree(encoded, torch.arange(len(prompts))[:, None])
        kv_positions = torch.zeros(one, dtype=torch.long, device=self.body.device)
        return hidden, tree, kv_positions, torch.ones(one, dtype=torch.bool)

    def _compare(self) -> tuple[torch.Tensor, torch.Tensor]:
        body = self.body
        ids = [[1, 2, *self.end_ids[:1]]]
        whole = torch.tensor([[*body.begin, 1, 2]], device=body.device)
        source = torch.tensor(ids, device=body.device)
        own = body.network(input_ids=source, decoder_input_ids=whole).logits[0, -1].float()
        _, encoded = body.encode(ids)
        last = body.follow(encoded, [0], [[1, 2]])[-1:]
        # Some networks scale their last states (T5, not Flan-T5) and say so in settings of their
        # own: whichever scale gives the network's logits is the one.
        gaps = {}
        for body.scale in (1.0, last.shape[1] ** -0.5):
            gaps[body.scale] = (body.logits(last)[0].to(own.device) - own).abs().max().item()
        body.scale = min(gaps, key=gaps.__getitem__)
        return own, body.logits(last)[0]
