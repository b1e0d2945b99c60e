"""Encoder-decoder transformers (T5, Flan-T5, BART): the same four operations.

The encoder reads a prompt once for all its answers, temperatures and samples. A T5 decoder takes no
position ids. So the nodes of the tree of answers (see `tree`) are rows of a batch: each row has its
own past, and its prompt's keys and values."""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache, EncoderDecoderCache

from factrobust.models import tokens
from factrobust.models.causal import NO_PREFIX, Along, Answered, CausalLM, Grouped, SharedPrefix
from factrobust.models.engine import (
    Batch,
    Body,
    Plain,
    by_prompt,
    own_logits,
)
from factrobust.models.interface import Job, ModelError
from factrobust.models.tree import NextLevel

ROWS = 64  # answers in one teacher-forced pass; each has a copy of its prompt's keys

Answer = tuple[int, list[int]]  # the number of its prompt, and its token ids


class Encoded(NamedTuple):
    """What the decoder sees: `states` and `mask` [row, source token], and the keys so far."""

    states: torch.Tensor
    mask: torch.Tensor
    past: EncoderDecoderCache

    def rows(self, index: list[int]) -> "Encoded":
        """A copy of the given rows, each any number of times."""
        at = torch.tensor(index)  # without a device: layers may lie on several
        past = copy.deepcopy(self.past)
        past.batch_select_indices(at)
        return Encoded(self.states[at], self.mask[at], past)


class EncoderDecoder(Body):
    """A network's encoder, its decoder without the head, and the head. `begin` is its
    `beginning`."""

    def __init__(self, network: Any) -> None:
        self.network = network
        self.encoder = network.get_encoder()
        self.base = network.get_decoder()
        self.config = network.config.get_text_config(decoder=True)
        self.device = next(network.parameters()).device
        self.kinds = set(getattr(self.config, "layer_types", None) or ())
        self.pad = network.config.pad_token_id or 0
        strange = sorted(self.kinds - {"full_attention"})
        if strange:
            raise ModelError(f"{type(network).__name__} has {' and '.join(strange)}")
        self.begin = beginning(network)
        # T5 scales its last states, Flan-T5 does not, and their settings have no common name for
        # it.
        self.scales = (1.0, self.config.hidden_size**-0.5)
        self.bias = getattr(network, "final_logits_bias", None)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        logits = super().logits(hidden) * self.scale
        return logits if self.bias is None else logits + self.bias.float()

    def encode(self, prompts: list[list[int]]) -> tuple[torch.Tensor, Encoded]:
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

    def follow(self, encoded: Encoded, answers: list[Answer]) -> torch.Tensor:
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

    def _padded(self, sequences: Sequence[list[int]]) -> torch.Tensor:
        rows = [torch.tensor(ids, device=self.device) for ids in sequences]
        return pad_sequence(rows, batch_first=True, padding_value=self.pad)


def beginning(network: Any) -> list[int]:
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
        return [partial(EncoderDecoder, self.network)]

    def _score(self, job: Job) -> Iterator[Batch]:
        groups = by_prompt(job)
        answers = [tokens.encode_target(self.tokenizer, r["answer"]) for r in job.requests]
        items: list[tuple[list[int], list[int]]] = []  # a prompt, and the numbers of its answers
        lengths = []
        sizes = []
        for group in groups:
            source = self._encode(job.requests[group[0]]["prompt"])
            items.append((source, group))
            size = 0
            for i in group:
                count = len(answers[i])
                lengths.append(self._length(len(source), count))
                size += len(source) + count  # every answer holds a copy of its prompt's keys
            sizes.append(size)
        sources = [source for source, _ in items]
        self._check(job, lengths, [*sources, *answers])

        def run(batch: list[tuple[list[int], list[int]]]) -> Batch:
            rows = [(source, [answers[i] for i in group]) for source, group in batch]
            hidden, where = self._behind(rows)
            numbers = [i for _, group in batch for i in group]
            values = self._values(
                hidden,
                where,
                [answers[i] for i in numbers],
                job.settings,
            )
            return numbers, values

        return self._in_batches(items, sizes, run)

    def _behind(self, rows: Sequence[Answered]) -> Along:
        """Hidden states [place, width] before the tokens of each prompt's answers, and the place
        for each token in turn."""
        pairs = []  # the number of its prompt, and an answer
        for row, (_, answers) in enumerate(rows):
            pairs += [(row, ids) for ids in answers]
        sources = [source for source, _ in rows]
        if isinstance(self.body, Plain):
            return self._along_plainly((sources[row], ids) for row, ids in pairs)
        hidden, encoded = self.body.encode(sources)
        # The first token of every answer follows the prompt, the others follow the answer.
        longer = [(row, ids[:-1]) for row, ids in pairs if len(ids) > 1]
        if longer:
            hidden = torch.cat([hidden, self.body.follow(encoded, longer)])
        where: list[int] = []
        after = len(rows)
        for row, ids in pairs:
            end = after + len(ids) - 1
            where += [row, *range(after, end)]
            after = end
        return hidden, where

    def _encode(self, prompt: str) -> list[int]:
        return tokens.encode_source(self.tokenizer, prompt)

    def _length(self, prompt: int, answer: int) -> int:
        return max(prompt, len(self.body.begin) + answer)  # encoder and decoder each have a context

    def _together(
        self,
        prompts: list[list[int]],
        counts: list[int],
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

    def _shared_prefix(self, answers: object) -> SharedPrefix:
        return NO_PREFIX  # the encoder reads each prompt as a whole

    def prefill(
        self,
        prompts: list[list[int]],
        prefix: SharedPrefix = NO_PREFIX,
        keep_prompts_separate: bool = False,
    ) -> tuple[torch.Tensor, NextLevel]:
        if isinstance(self.body, Plain):
            return self._prefill_plainly(prompts)
        body = self.body
        hidden, encoded = body.encode(prompts)

        def next_level(parents: list[int], drawn: list[int]) -> torch.Tensor:
            nonlocal encoded
            if parents != list(range(len(encoded.mask))):  # an answer has ended or branched
                encoded = encoded.rows(parents)
            new = torch.tensor(drawn, device=body.device)
            return body.step(encoded, new[:, None])[:, 0]

        return hidden, next_level

    def whole(self, prompt: list[int], answer: list[int], count: int) -> torch.Tensor:
        device = self.body.device
        read = torch.tensor([prompt], device=device)
        written = torch.tensor([[*self.body.begin, *answer]], device=device)
        return own_logits(
            self.network,
            count,
            input_ids=read,
            decoder_input_ids=written,
        )

    def forced(
        self,
        rows: Sequence[Answered],
        _: int,
    ) -> torch.Tensor:
        # The token behind an answer is of any kind.
        longer = []
        for prompt, answers in rows:
            longer.append((prompt, [[*ids, 0] for ids in answers]))
        hidden, where = self._behind(longer)
        return self.body.logits(hidden)[where]
