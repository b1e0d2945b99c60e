"""Encoder-decoder transformers (T5, Flan-T5, BART): the same four operations.

The encoder reads a prompt once for all its answers, temperatures and samples. A T5 decoder takes no
position ids. So the nodes of the tree of answers (see `tree`) are rows of a batch: each row has its
own past, and its prompt's keys and values."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache

from factrobust.models import tokens
from factrobust.models.causal import (
    NO_PREFIX,
    Along,
    Answer,
    CausalLM,
    Grouped,
    Numbers,
    SharedPrefix,
)
from factrobust.models.engine import (
    Asked,
    Plain,
    by_prompt,
    own_logits,
)
from factrobust.models.interface import Job, ModelError
from factrobust.models.tokens import Ids
from factrobust.models.tree import NextLevel

ROWS = 64  # answers in one teacher-forced pass; each has a copy of its prompt's keys

Target = tuple[int, Ids]  # the number of its prompt, and an answer's token ids


class Encoded(NamedTuple):
    """What the decoder sees: `states` and `mask` [row, source token], and the keys so far."""

    states: torch.Tensor
    mask: torch.Tensor
    past: EncoderDecoderCache

    def rows(self, index: Numbers) -> "Encoded":
        """A copy of the given rows, each any number of times."""
        at = torch.tensor(index)  # without a device: layers may lie on several
        past = copy.deepcopy(self.past)
        past.batch_select_indices(at)
        return Encoded(self.states[at], self.mask[at], past)


class EncoderDecoder(Asked):
    """A network's encoder, its decoder without the head, and the head; with `scaled` its logits are
    divided by the root of the width. `begin` is its `beginning`."""

    def __init__(self, network: Any, *, scaled: bool) -> None:
        super().__init__(network)
        self.scaled = scaled
        self.encoder = network.get_encoder()
        self.base = network.get_decoder()
        self.pad = network.config.pad_token_id or 0
        kinds = getattr(self.config, "layer_types", None) or ()
        strange = sorted({*kinds} - {"full_attention"})
        if strange:
            raise ModelError(f"{type(network).__name__} has {' and '.join(strange)}")
        self.begin = beginning(network)
        self.bias = getattr(network, "final_logits_bias", None)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = super().logits(hidden)
        if self.scaled:
            logits = logits * self.config.hidden_size**-0.5
        return logits if self.bias is None else logits + self.bias.float()

    def encode(self, prompts: list[Ids]) -> tuple[torch.Tensor, Encoded]:
        """Read prompts and begin their answers: hidden states [prompt, width], and the keys."""
        ids = self._padded(prompts)
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        places = torch.arange(ids.shape[1], device=self.device)
        mask = (places < lengths[:, None]).long()
        states = self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
        past = EncoderDecoderCache(DynamicCache(), DynamicCache())
        encoded = Encoded(states, mask, past)
        begin = torch.tensor([self.begin] * len(prompts), device=self.device)
        hidden = self.step(encoded, begin)
        return hidden[:, -1], encoded

    def step(self, encoded: Encoded, ids: torch.Tensor) -> torch.Tensor:
        """Hidden states [row, q, width] of new tokens `ids` [row, q]. Their keys are added."""
        return self.base(
            input_ids=ids,
            encoder_hidden_states=encoded.states,
            encoder_attention_mask=encoded.mask,
            past_key_values=encoded.past,
            use_cache=True,
        ).last_hidden_state

    def follow(self, encoded: Encoded, answers: list[Target]) -> torch.Tensor:
        """Hidden states [token, width] of all answers' tokens in turn; `encoded` does not
        change."""
        states = []
        for start in range(0, len(answers), ROWS):
            some = answers[start : start + ROWS]
            rows = [row for row, _ in some]
            ids = [answer for _, answer in some]
            hidden = self.step(encoded.rows(rows), self._padded(ids))
            # Padding stands after an answer, and no token of the answer sees it.
            for row, answer in enumerate(ids):
                states.append(hidden[row, : len(answer)])
        return torch.cat(states)

    def _padded(self, sequences: Sequence[Ids]) -> torch.Tensor:
        rows = [torch.tensor(ids, device=self.device) for ids in sequences]
        return pad_sequence(rows, batch_first=True, padding_value=self.pad)


def beginning(network: Any) -> Ids:
    """The decoder's start token, and the first token if the model forces one (BART's <s>);
    ModelError if no start is known."""
    generation = network.generation_config
    named = [
        getattr(generation, "decoder_start_token_id", None),
        getattr(network.config, "decoder_start_token_id", None),
        getattr(generation, "bos_token_id", None),
    ]
    known = [token for token in named if token is not None]
    if not known:
        raise ModelError(
            f"{type(network).__name__} has no decoder start token, which cannot be asked here; use "
            "a T5 or BART-like model whose configuration says how its decoder starts"
        )
    forced = getattr(generation, "forced_bos_token_id", None)
    return known[:1] if forced is None else [known[0], forced]


class Seq2SeqLM(CausalLM):
    """A transformers encoder-decoder model in memory.

    The encoder reads the prompt with the tokenizer's special tokens. The answer is the decoder's
    text, tokenised separately: a separator is its first character. (T5's tokenizer drops a leading
    space and has no newline: a stop string with a newline never ends an answer of T5.) The end
    token does not count, as for decoder-only models, unless token ids end with it."""

    def plain(self) -> Plain:
        return Plain(self.network, beginning(self.network))

    def bodies(self) -> list[Callable[[], Any]]:
        # T5 scales its last states, Flan-T5 does not, and their settings have no common name for
        # it.
        return [partial(EncoderDecoder, self.network, scaled=scaled) for scaled in (False, True)]

    def _pairs(self, job: Job) -> list[Answer]:
        sources = {prompt: self._encode(prompt) for prompt in {r["prompt"] for r in job.requests}}
        pairs = []
        for request in job.requests:
            source = sources[request["prompt"]]
            target = tokens.encode_target(self.tokenizer, request["answer"])
            pairs.append(([*source, *target], len(source)))
        return pairs

    def _rows_to_score(self, job: Job, pairs: list[Answer], prefix: SharedPrefix) -> Grouped:
        """A row has the answers to one prompt, each with a copy of the prompt's keys."""
        rows = by_prompt(job)
        return rows, [sum(len(pairs[i][0]) for i in row) for row in rows]

    def _along(self, answers: list[list[Answer]], prefix: SharedPrefix) -> Along:
        if isinstance(self.body, Plain):
            return super()._along(answers, prefix)
        targets = []  # the number of its prompt, and an answer
        for number, row in enumerate(answers):
            targets += [(number, ids[start:]) for ids, start in row]
        hidden, encoded = self.body.encode([ids[:start] for (ids, start), *_ in answers])
        # The first token of every answer follows the prompt, the others follow the answer.
        longer = [(number, ids[:-1]) for number, ids in targets if len(ids) > 1]
        if longer:
            hidden = torch.cat([hidden, self.body.follow(encoded, longer)])
        where: Numbers = []
        after = len(answers)
        for number, ids in targets:
            end = after + len(ids) - 1
            where += [number, *range(after, end)]
            after = end
        return hidden, where

    def _encode(self, prompt: str) -> Ids:
        return tokens.encode_source(self.tokenizer, prompt)

    def _length(self, prompt: int, answer: int) -> int:
        return max(prompt, len(self.body.begin) + answer)  # encoder and decoder each have a context

    def _together(
        self,
        prompts: list[Ids],
        counts: Numbers,
        length: int,
        prefix: SharedPrefix,
        keep_prompts_separate: bool,
    ) -> Grouped:
        rows = [[i] for i in range(len(prompts))]
        sizes = []
        for ids, n in zip(prompts, counts, strict=True):
            each = len(ids) + length
            sizes.append(each * n)
        return rows, sizes

    def _read(self, ids: Ids) -> SharedPrefix:
        return NO_PREFIX  # the encoder reads each prompt as a whole

    def prefill(
        self,
        prompts: list[Ids],
        prefix: SharedPrefix = NO_PREFIX,
        keep_prompts_separate: bool = False,
    ) -> tuple[torch.Tensor, NextLevel]:
        if isinstance(self.body, Plain):
            return self._prefill_plainly(prompts)
        body = self.body
        hidden, encoded = body.encode(prompts)

        def next_level(parents: Numbers, drawn: Ids) -> torch.Tensor:
            nonlocal encoded
            if parents != list(range(len(encoded.mask))):  # an answer has ended or branched
                encoded = encoded.rows(parents)
            new = torch.tensor(drawn, device=body.device)
            return body.step(encoded, new[:, None])[:, 0]

        return hidden, next_level

    def whole(self, prompt: Ids, answer: Ids, count: int) -> torch.Tensor:
        device = self.body.device
        read = torch.tensor([prompt], device=device)
        written = torch.tensor([[*self.body.begin, *answer]], device=device)
        return own_logits(
            self.network,
            count,
            input_ids=read,
            decoder_input_ids=written,
        )
