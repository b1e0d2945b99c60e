"""Decoder-only transformers: the four operations of a model. Work that answers share is done once.

Numbers are float32 log-softmax values for weights of any dtype. They are computed only at positions
that are asked for: with a vocabulary of 262k the head costs more than the body.

A batch row is a tree of tokens: a prompt, and its answers or samples as branches. A branch sees the
prompt and its own tokens, but no other branch. Position ids and explicit attention masks make this
exact, and keep padding without effect.
"""

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import ceil
from os.path import commonprefix
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from factrobust.models import tokens, tree
from factrobust.models.engine import (
    Batch,
    Body,
    Keys,
    Plain,
    Rows,
    by_prompt,
    in_batches,
    own_logits,
)
from factrobust.models.extra import MptBody
from factrobust.models.interface import Generation, Job, Model, ModelError
from factrobust.models.tokens import Ids
from factrobust.models.verify import LENGTH, lengths_of, verify, verify_longer

SHORT_PREFIX = 8  # to share fewer tokens saves nothing
BRANCHES = 64  # answers in a row at most, and
LONG = 256  # tokens in it: the mask of a longer row costs too much
KEPT_BYTES = 1 << 28  # of hidden states that a temper job leaves for the next one
CROWDED = 0.8  # a batch shrinks when no more than this share of its rows is in use

Numbers = list[int]  # of requests, rows or places
Answer = tuple[Ids, int]  # token ids of prompt + answer, and the place of the answer's first
Answered = tuple[Ids, list[Ids]]  # token ids of a prompt, and of its answers
Along = tuple[torch.Tensor, Numbers]  # hidden states [place, width], the place of each token
Grouped = tuple[list[Numbers], Numbers]  # rows of numbers, and the tokens of each row
BeforeEnd = Callable[[int, tuple[int, ...]], tuple[str, int]]  # `tokens.Ending.before_end`


class SharedPrefix(NamedTuple):
    """The first tokens of all prompts of a job, and their keys and values (a batch of one)."""

    ids: Sequence[int] = ()
    keys: Any = Keys()


NO_PREFIX = SharedPrefix()


class Pass(NamedTuple):
    """A forward pass: its rows, hidden states [row, q, width], the keys, and their positions
    [row, key]."""

    rows: list["Row"]
    hidden: torch.Tensor
    cache: Keys
    kv_positions: torch.Tensor


class CausalLM(Model):
    """A transformers decoder-only model in memory. One forward pass has at most `tokens_per_batch`
    new tokens. The head is applied at most at `logits_per_batch` positions at once, each of which
    costs a float32 vector over the vocabulary."""

    body: Any  # how the network is asked: a `Body` if that was found right, else `Plain`
    _last_prefix = NO_PREFIX  # of the last job
    # What `_along` found for the last temper job, batch by batch.
    _tempered: Mapping[Any, Along] = MappingProxyType({})

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        tokens_per_batch: int = 2048,
        logits_per_batch: int = 64,
        **description: Any,
    ) -> None:
        """`description` are the arguments of `Model`."""
        super().__init__(**description)
        self.tokenizer = tokenizer
        self.tokens_per_batch = tokens_per_batch
        self.logits_per_batch = logits_per_batch
        self.network = network.eval()
        ends = network.generation_config.eos_token_id
        if not isinstance(ends, list):
            ends = [ends]
        known = {*ends, tokenizer.eos_token_id} - {None}
        self.end_ids: Ids = sorted(known)
        verify(self)
        self.verified = LENGTH  # tokens of a row, up to which the body is known to be right
        self.lengths = lengths_of(self.body.config)

    def answer(self, job: Job) -> Iterator[Batch]:
        if job.operation in ("score", "temper"):
            return self._score(job)
        return self._decode(job)

    def plain(self) -> Plain:
        """The network as it is, asked one row at a time."""
        return Plain(self.network)

    def bodies(self) -> list[Callable[[], Any]]:
        """Builders of the ways to run the network in batches, the fastest first."""
        if self.network.config.model_type == "mpt":
            return [functools.partial(MptBody, self.network)]
        return [functools.partial(Body, self.network, dense=dense) for dense in (True, False)]

    @functools.cached_property
    def bos(self) -> Ids:
        """The special tokens that the tokenizer puts before every text
        (`tokens.before_every_text`)."""
        return tokens.before_every_text(self.tokenizer)

    def _begin(self, prompt: str) -> Ids:
        """Those of them that come before this prompt: a tokenizer's chat template writes its
        own."""
        chat = None if self.listed_chat else self.chat
        return [] if tokens.in_template(self.tokenizer, chat, prompt) else self.bos

    def _score(self, job: Job) -> Iterator[Batch]:
        tempered = job.operation == "temper"
        pairs = self._pairs(job)
        texts = [ids for ids, _ in pairs]
        lengths = [self._length(start, len(ids) - start) for ids, start in pairs]
        self._check(job, lengths, texts)
        prefix = self._shared_prefix(pairs)
        rows, sizes = self._rows_to_score(job, pairs, prefix)

        # The same answers with other temperatures or cuts need the same hidden states.
        earlier: Any = self._tempered if tempered else {}
        found: dict[Any, Along] = {}
        if tempered:
            self._tempered = found

        def run(batch: list[Numbers]) -> Batch:
            answers = [[pairs[i] for i in row] for row in batch]
            same = len(prefix.ids), str(answers)
            hidden, where = earlier.get(same) or self._along(answers, prefix)
            kept = sum(states.nbytes for states, _ in [*found.values()])
            if tempered and kept + hidden.nbytes <= KEPT_BYTES:
                found[same] = hidden, where
            numbers = [i for row in batch for i in row]
            answer_ids = []
            for row in answers:
                answer_ids += [ids[start:] for ids, start in row]
            return numbers, self._values(hidden, where, answer_ids, job.settings)

        return in_batches(rows, sizes, run, budget=self.tokens_per_batch, name=self.name)

    def _pairs(self, job: Job) -> list[Answer]:
        pairs = []
        for request in job.requests:
            prompt = request["prompt"]
            bos = self._begin(prompt)
            pairs.append(tokens.encode_pair(self.tokenizer, prompt, request["answer"], bos=bos))
        return pairs

    def _rows_to_score(self, job: Job, pairs: list[Answer], prefix: SharedPrefix) -> Grouped:
        # Longer rows change last digits, which low temperatures magnify.
        separate = job.operation == "temper"
        return rows_of(pairs, len(prefix.ids), keep_prompts_separate=separate)

    def _along(self, answers: list[list[Answer]], prefix: SharedPrefix) -> Along:
        """Hidden states [place, width] before `answers`' tokens, and the place for each token in
        turn."""
        if isinstance(self.body, Plain):
            every = self._along_plainly(answers)
            return every, list(range(len(every)))
        packed, hidden, *_ = self._forward(answers, prefix)
        # Answers share places, since their first tokens follow the same prompt. The head is applied
        # once to each place.
        number: dict[tuple[int, int], int] = {}
        where = []
        for r, packed_row in enumerate(packed):
            for place in packed_row.predictors:
                where.append(number.setdefault((r, place), len(number)))
        batch_rows = [r for r, _ in number]
        places = [place for _, place in number]
        return hidden[batch_rows, places], where

    def _along_plainly(self, answers: list[list[Answer]]) -> torch.Tensor:
        """Logits [token, vocabulary] before `answers`' tokens, with a pass for each answer."""
        logits = []
        for row in answers:
            for ids, start in row:
                count = len(ids) - start + 1
                logits.append(self.whole(ids[:start], ids[start:], count)[:-1])
        return torch.cat(logits)

    def _values(
        self,
        hidden: torch.Tensor,
        where: Numbers,
        answers: list[Ids],
        settings: Mapping[str, Any],
    ) -> list[np.ndarray]:
        """The result of score or temper for each answer. Row `where[k]` of `hidden` [place, width]
        predicts token k of all answers in turn."""
        at = torch.tensor(where)
        targets = torch.tensor([token for ids in answers for token in ids])
        temperatures = settings.get("temperatures")
        grid = [max(t, tree.EPSILON) for t in temperatures or [1.0]]
        cuts = tree.given_cuts(settings)
        values = np.empty((len(targets), len(grid)), dtype=np.float32)
        for start in range(0, len(hidden), self.logits_per_batch):
            # 1. The logits of some places, minus their maximum.
            end = start + self.logits_per_batch
            logits = self.body.logits(hidden[start:end])
            highest = logits.amax(dim=-1, keepdim=True)
            self.check_numbers(highest)
            logits -= highest
            # 2. The tokens that they predict.
            within = (at >= start) & (at < end)
            predicted = within.nonzero()[:, 0]
            rows = at[predicted] - start
            z = logits[rows, targets[predicted]][:, None]
            # 3. Their log-probabilities at each temperature.
            lowest = tree.floors(logits, grid, cuts) if cuts else None
            norms = tree.log_norms(logits, grid, lowest).float()[rows]
            scaled = z / torch.tensor(grid, device=logits.device) - norms
            if lowest is not None:  # truncation makes the others impossible
                scaled = scaled.masked_fill(z < lowest[rows], -torch.inf)
            values[predicted] = scaled.cpu().numpy()
        ends = np.cumsum([len(ids) for ids in answers])
        by_answer = np.split(values, ends[:-1])
        if temperatures:
            return [each.sum(axis=0) for each in by_answer]
        return [each[:, 0] for each in by_answer]

    def _decode(self, job: Job) -> Iterator[Batch]:
        ending = tokens.Ending(self.tokenizer, self.end_ids, job.settings)
        longest = job.settings["max_new_tokens"]
        groups = by_prompt(job)
        prompts = []
        for first, *_ in groups:
            prompts.append(self._encode(job.requests[first]["prompt"]))
        lengths = [self._length(len(ids), longest) for ids in prompts]
        self._check(job, lengths, prompts)
        prefix = self._shared_prefix([unanswered(ids) for ids in prompts])
        keep_prompts_separate = "temperatures" in job.settings  # as for temper

        def run(batch: list[Numbers]) -> Batch:
            numbers = [i for row in batch for i in row]
            members = [groups[i] for i in numbers]
            asked = [prompts[i] for i in numbers]
            prefilled = self.prefill(asked, prefix, keep_prompts_separate)
            results = self._made(job, members, asked, prefilled, ending)
            return [i for group in members for i in group], results

        # The keys of answers need memory, too. Most answers end early: half of their tokens count.
        rows, sizes = self._together(
            prompts,
            [len(group) * job.settings.get("n", 1) for group in groups],
            longest // 2 + 1,
            prefix,
            keep_prompts_separate,
        )
        return in_batches(rows, sizes, run, budget=self.tokens_per_batch, name=self.name)

    def _made(
        self,
        job: Job,
        groups: list[Numbers],
        prompts: list[Ids],
        prefilled: tuple[torch.Tensor, tree.NextLevel],
        ending: tokens.Ending,
    ) -> list[Any]:
        """The results of the requests (their numbers) in `groups`, one for each prompt."""
        # 1. A stream for each answer.
        settings = job.settings
        streams: list[list[tree.Stream]] = []
        for group in groups:
            streams.append([])
            for i in group:
                streams[-1] += tree.new_streams(job.requests[i], settings)
        # 2. Their tokens.
        last = [[*ids, *self.body.begin][-1] for ids in prompts]  # before an answer
        may_end = functools.cache(ending.may_be_at)

        def ended(row: int, ids: Ids) -> bool:
            return may_end(ids[-1]) and ending.reached(last[row], ids)

        tree.decode(
            *prefilled,
            self.body.logits,
            streams,
            check=self.check_numbers,
            ended=ended,
            settings=settings,
            chunk=self.logits_per_batch,
        )
        # 3. Their texts.
        before_end = functools.cache(ending.before_end)  # many samples are equal
        results: list[Any] = []
        for group, token, row in zip(groups, last, streams, strict=True):
            prompt = job.requests[group[0]]["prompt"]
            answers: list[Any] = [
                self._generation(prompt, token, stream, before_end) for stream in row
            ]
            n = settings.get("n")
            if n:
                answers = [answers[k : k + n] for k in range(0, len(answers), n)]
            results += answers
        return results

    def _generation(
        self, prompt: str, last: int, stream: tree.Stream, before_end: BeforeEnd
    ) -> Generation:
        """The answer of a stream behind a prompt, whose last token is `last`."""
        text, n = before_end(last, tuple(stream.ids))
        top_logprobs = []
        for ids, logprobs in stream.top[:n]:
            names = [self.tokenizer.decode([i]) for i in ids]
            top_logprobs.append(list(zip(names, logprobs, strict=True)))
        curve = []
        if stream.curve[:n]:
            curve = np.sum(stream.curve[:n], axis=0, initial=0.0).tolist()
        return Generation(
            prompt,
            text,
            token_ids=stream.ids[:n],
            logprobs=stream.logprobs[:n],
            top_logprobs=top_logprobs,
            tempered_logprobs=[] if stream.top else stream.tempered[:n],
            curve=curve,
            entropies=stream.entropies[:n],
        )

    def _encode(self, prompt: str) -> Ids:
        return tokens.encode(self.tokenizer, prompt, bos=self._begin(prompt))

    def _length(self, prompt: int, answer: int) -> int:
        """Tokens of the context that a prompt and an answer of these lengths take."""
        return prompt + answer

    def _together(
        self,
        prompts: list[Ids],
        counts: Numbers,
        length: int,
        prefix: SharedPrefix,
        keep_prompts_separate: bool,
    ) -> Grouped:
        """Rows of prompts (their numbers), and the tokens of each row with so many answers to each
        prompt, each of that length."""
        rows, sizes = rows_of(
            [unanswered(ids) for ids in prompts],
            len(prefix.ids),
            keep_prompts_separate=keep_prompts_separate,
        )
        for number, row in enumerate(rows):
            answers = sum(counts[i] for i in row)
            sizes[number] += length * answers
        return rows, sizes

    def check_numbers(self, highest: torch.Tensor) -> None:
        """ModelError where the highest logits of places are no numbers: NaN if one of a place is,
        infinite if one overflowed or none is possible. Single impossible tokens are no fault."""
        if not highest.isfinite().all():
            raise ModelError(
                f"{self.name}: the network's logits are not numbers (NaN or infinite), so that "
                "nothing it says counts; its weights are damaged, or overflow in this dtype: fetch "
                "them anew, or load it in float32"
            )

    def prefill(
        self,
        prompts: list[Ids],
        prefix: SharedPrefix = NO_PREFIX,
        keep_prompts_separate: bool = False,
    ) -> tuple[torch.Tensor, tree.NextLevel]:
        """Last hidden state of each prompt, [prompt, width], and the function for the next
        level."""
        if isinstance(self.body, Plain):
            return self._prefill_plainly(prompts)
        # 1. Prompts that begin with the same tokens are read in one row.
        answers = [unanswered(ids) for ids in prompts]
        shared = len(prefix.ids)
        together, _ = rows_of(
            answers,
            shared,
            keep_prompts_separate=keep_prompts_separate,
        )
        batch = [[answers[i] for i in numbers] for numbers in together]
        rows, hidden, cache, kv_positions = self._forward(batch, prefix)
        # 2. Where each prompt ends, and the tokens that it sees there.
        row_of = [0] * len(prompts)
        place_of = [0] * len(prompts)
        for r, numbers in enumerate(together):
            for i, place in zip(numbers, rows[r].predictors, strict=True):
                row_of[i] = r
                place_of[i] = place
        before = torch.ones(shared, dtype=torch.bool)
        seen = []
        for r, place in zip(row_of, place_of, strict=True):
            every = torch.cat([before, rows[r].links[place]])
            seen.append(every.nonzero()[:, 0])
        # 3. Then each prompt gets a row with the keys of its tokens.
        kept = pad_sequence(seen, batch_first=True)
        row = torch.tensor(row_of)[:, None]
        cache.select(row, kept)
        lengths = [len(prompt) for prompt in prompts]
        next_level = levels(self.body, cache, kv_positions[row, kept], lengths)
        return hidden[row_of, place_of], next_level

    def _prefill_plainly(
        self,
        prompts: list[Ids],
    ) -> tuple[torch.Tensor, tree.NextLevel]:
        """`prefill` with a pass for each node of the tree of answers, of its whole row."""
        nodes: list[tuple[Ids, Ids]] = [(prompt, []) for prompt in prompts]

        def logits() -> torch.Tensor:
            return torch.cat([self.whole(prompt, answer, 1) for prompt, answer in nodes])

        def next_level(parents: Numbers, drawn: Ids) -> torch.Tensor:
            nonlocal nodes
            children = []
            for parent, token in zip(parents, drawn, strict=True):
                prompt, answer = nodes[parent]
                children.append((prompt, [*answer, token]))
            nodes = children
            return logits()

        return logits(), next_level

    def whole(self, prompt: Ids, answer: Ids, count: int) -> torch.Tensor:
        """The network's own float32 logits [count, vocabulary] at the last places of a row: what
        predicts the answer's last tokens, and the token behind them."""
        row = [*prompt, *answer]
        ids = torch.tensor([row], device=self.body.device)
        return own_logits(self.network, count, input_ids=ids)

    def forced(
        self,
        rows: Sequence[Answered],
        shared: int,
    ) -> torch.Tensor:
        """Logits [place, vocabulary] along the answers of the rows (a prompt, and its answers) and
        behind each, in one batch whose rows all begin with `shared` tokens that are read before."""
        prefix = NO_PREFIX
        if shared:
            prefix = self._read(rows[0][0][:shared])
        batch = []
        for prompt, answers in rows:
            # The token behind an answer is of any kind.
            start = len(prompt)
            batch.append([([*prompt, *ids, 0], start) for ids in answers])
        hidden, where = self._along(batch, prefix)
        return self.body.logits(hidden)[where]

    def _shared_prefix(self, answers: list[Answer]) -> SharedPrefix:
        """The first tokens that all answers of a job share, with their keys: the last job's, if its
        prefix covers at least half of this one (jobs share their few-shot examples)."""
        common = 0
        if answers:
            # The token before an answer predicts its first token, so it must be a new one.
            first = min(start for _, start in answers)
            alike = common_length([ids for ids, _ in answers])
            common = min(alike, first - 1)
        if common < SHORT_PREFIX or isinstance(self.body, Plain):
            return NO_PREFIX
        ids = answers[0][0][:common]
        last = self._last_prefix
        shared = common_length([[*last.ids], ids])
        if shared >= max(SHORT_PREFIX, common // 2):
            keys = copy.deepcopy(last.keys)
            keys.crop(shared - len(last.ids))
            return SharedPrefix(ids[:shared], keys)
        self._last_prefix = self._read(ids)
        return self._last_prefix

    @torch.inference_mode()
    def _read(self, ids: Ids) -> SharedPrefix:
        return SharedPrefix(ids, self._forward([[unanswered(ids)]], NO_PREFIX).cache)

    def _forward(
        self,
        batch: list[list[Answer]],
        prefix: SharedPrefix,
    ) -> Pass:
        """Run the answers [row, answer] after their shared prefix."""
        shared = len(prefix.ids)
        cache = copy.deepcopy(prefix.keys)
        cache.batch_repeat_interleave(len(batch))
        rows = [pack_answers(row, shared) for row in batch]
        padded = pad_rows(rows, shared, self.body.device)
        before = torch.arange(shared, device=self.body.device)
        before = before.expand(len(rows), shared)
        kv_positions = torch.cat([before, padded.positions], dim=1)
        hidden = self.body.hidden(padded, cache, kv_positions)
        return Pass(rows, hidden, cache, kv_positions)

    def _check(
        self,
        job: Job,
        lengths: Numbers,
        texts: Iterable[Sequence[int]],
    ) -> None:
        """ModelError for rows of these lengths beyond the network's context, and for ids of another
        vocabulary, in answers or in the tokens of texts."""
        longest = max(lengths, default=0)
        context = getattr(self.body.config, "max_position_embeddings", None)
        if context and longest > context:
            raise ModelError(
                f"{self.name}: a prompt and its answer take {longest} tokens in "
                f"{job.operation}, more than the model's context of {context}; shorten the prompt"
            )
        largest = 0
        for request in job.requests:
            ids = request.get("answer")
            if isinstance(ids, list):
                largest = max(largest, *ids)
        size = self.body.config.vocab_size
        if largest >= size:
            raise ModelError(
                f"{self.name}: {largest} is no token id of this model, whose vocabulary holds "
                f"{size}; score the ids that this model generated, or give the answers as texts"
            )
        largest = max((max(ids, default=0) for ids in texts), default=0)
        rows = len(self.network.get_input_embeddings().weight)
        if largest >= rows:
            raise ModelError(
                f"{self.name}: its tokenizer gives the token {largest} "
                f"({self.tokenizer.decode([largest])!r}), for which its network has no embedding "
                f"(it has {rows}); bring both from one place"
            )
        if any(self.verified <= length < longest for length in self.lengths):
            verify_longer(self, longest)
            self.verified = longest
            self._tempered = MappingProxyType({})  # states of another body may be other numbers


class Row(NamedTuple):
    """The new tokens of a batch row, and their positions."""

    tokens: Ids
    positions: Numbers
    links: torch.Tensor  # [q, q], whether a token sees another
    predictors: Numbers  # for each token of each answer in turn the place that predicts it


def common_length(sequences: list[Ids]) -> int:
    return len(commonprefix(sequences))  # noqa: RUF071 (of lists, not of paths)


def unanswered(prompt: Ids) -> Answer:
    """A prompt without answer: its answer is one token of any kind."""
    return [*prompt, 0], len(prompt)


def pack_answers(answers: list[Answer], shared: int) -> Row:
    """One row for some answers: a tree of their tokens, in which equal beginnings are one branch.

    The first `shared` tokens are in the cache. Example: the prompt 5 6 7 has the answers 8 9 and 1,
    and 5 6 are in the cache. The row has the tokens 7 8 at positions 2 3 with the predictors 0 1 0:
    8 and 1 follow 7, 9 follows 8, and nothing is asked of 9 and 1. A row may hold answers to
    several prompts."""
    new: Ids = []
    positions, parents, predictors = [], [], []
    places: dict[tuple[int, int], int] = {}  # of a token after the place before it
    for ids, start in answers:
        at = -1  # in the cache
        for position in range(shared, len(ids) - 1):
            step = at, ids[position]
            if step not in places:
                places[step] = len(new)
                new.append(ids[position])
                positions.append(position)
                parents.append(at)
            at = places[step]
            if position >= start - 1:
                predictors.append(at)
    # Every token sees itself and its ancestors, which come first in the row.
    links = np.eye(len(new), dtype=bool)
    for place, parent in enumerate(parents):
        if parent >= 0:
            links[place] |= links[parent]
    return Row(new, positions, torch.from_numpy(links), predictors)


def rows_of(
    answers: list[Answer],
    cached: int = 0,
    *,
    keep_prompts_separate: bool = False,
) -> Grouped:
    """Rows of answers (their numbers) that begin with the same tokens, and the tokens of each row.

    Answers are taken in the order of their tokens. One joins the row before if its prompt is there
    already; unless `keep_prompts_separate`, also if a quarter of its tokens after the first
    `cached` ones is. A row has at most BRANCHES answers and LONG tokens, shared ones counted once.
    """
    rows: list[Numbers] = []
    sizes: Numbers = []
    before: Ids = []
    for i in sorted(range(len(answers)), key=lambda i: answers[i][0]):
        ids, start = answers[i]
        alike = common_length([before, ids])
        size = len(ids) - cached
        enough = start
        if not keep_prompts_separate:
            enough = min(start, cached + ceil(size / 4))
        new = len(ids) - alike
        joins = False
        if rows and alike >= enough:
            joins = len(rows[-1]) < BRANCHES and sizes[-1] + new <= LONG
        if joins:
            rows[-1].append(i)
            sizes[-1] += new
        else:
            rows.append([i])
            sizes.append(size)
        before = ids
    return rows, sizes


def pad_rows(rows: list[Row], shared: int, device: Any) -> Rows:
    """Rows of any length as one batch; each sees `shared` tokens before its own."""
    n = len(rows)
    width = max(len(row.tokens) for row in rows)
    ids = torch.zeros(n, width, dtype=torch.long)
    positions = torch.zeros(n, width, dtype=torch.long)
    seen = torch.ones(n, width, shared + width, dtype=torch.bool)
    seen[:, :, shared:] = torch.eye(width)
    used = torch.zeros(n, width, dtype=torch.bool)
    for r, row in enumerate(rows):
        k = len(row.tokens)
        ids[r, :k] = torch.tensor(row.tokens)
        positions[r, :k] = torch.tensor(row.positions)
        seen[r, :k, shared : shared + k] |= row.links
        used[r, :k] = True
    at_rows, at_columns = used.nonzero().T
    return Rows(
        ids.to(device),
        positions.to(device),
        seen.to(device),
        (at_rows, at_columns),
    )


def levels(
    body: Body,
    cache: Any,
    kv_positions: torch.Tensor,
    lengths: Numbers,
) -> tree.NextLevel:
    """Levels of a tree of answers. A row of the batch has the nodes of one prompt."""
    ahead = lengths  # the position of each row's next tokens
    row_of = list(range(len(lengths)))  # each node
    keys = torch.arange(kv_positions.shape[1])
    known = keys[None] < torch.tensor(lengths)[:, None]  # [node, key]

    def next_level(parents: Numbers, drawn: Ids) -> torch.Tensor:
        nonlocal ahead, kv_positions, known, row_of
        # 1. Rows whose answers have all ended leave the batch, in which they would still cost time.
        rows = [row_of[parent] for parent in parents]
        live = sorted(set(rows))
        if len(live) <= CROWDED * len(ahead):
            left = torch.tensor(live)  # without a device: layers may lie on several
            cache.batch_select_indices(left)
            kv_positions = kv_positions[left]
            ahead = [ahead[row] for row in live]
            new_number = {row: number for number, row in enumerate(live)}
            rows = [new_number[row] for row in rows]
        # 2. The children of a row's nodes are its new tokens.
        columns: Numbers = []
        for _, group in groupby(rows):
            columns += range(len(list(group)))
        at = torch.tensor(rows), torch.tensor(columns)
        n = len(ahead)
        width = max(columns) + 1
        ids = torch.zeros(n, width, dtype=torch.long)
        ids[at] = torch.tensor(drawn)
        positions = torch.tensor(ahead)[:, None].expand(n, width)
        # 3. A child sees what its parent saw, and itself.
        earlier = known.shape[1]
        seen = torch.zeros(n, width, earlier + width, dtype=torch.bool)
        seen[:, :, earlier:] = torch.eye(width)
        seen[*at, :earlier] = known[parents]
        known = seen[at]
        row_of = rows
        ahead = [place + 1 for place in ahead]
        # 4. One forward pass for all of them.
        new = Rows(
            ids.to(body.device),
            positions.to(body.device),
            seen.to(body.device),
            at,
        )
        kv_positions = torch.cat([kv_positions, new.positions], dim=1)
        return body.hidden(new, cache, kv_positions)[at]

    return next_level
