"""Encoder-decoder transformers (T5, Flan-T5, BART): the same four operations.

A prompt is read by the encoder once, however many answers, temperatures and samples it has. As for
decoder-only models, numbers are float32 log-softmax values at the positions that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch

from factrobust.models import tokens
from factrobust.models.base import Job
from factrobust.models.batches import Batch, in_batches
from factrobust.models.encoder_decoder import EncoderDecoder, Tree
from factrobust.models.local import LocalModel, Prefilled, by_prompt


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
