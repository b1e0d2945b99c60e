"""A network in memory, decoder-only or encoder-decoder, asked batch by batch."""

from __future__ import annotations

import functools
import inspect
import platform
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.functional import linear

from factrobust.models import tokens
from factrobust.models.interface import Generation, Job, Model, ModelError
from factrobust.models.tree import EPSILON, Grow, Stream, decode, log_norms, new_streams

Batch = tuple[list[int], list[Any]]  # numbers of the requests done, and their results

ATTENTION = {"full_attention", "sliding_attention"}  # what explicit masks can express
HEAD_SLICE = 1 << 15  # rows of a bfloat16 head that are turned into float32 at once
PACKED_ROWS = 64  # the batch that oneDNN plans for; its layout serves any other as well


class Rows(NamedTuple):
    """New tokens for each row: `ids` [row, q], `positions` [row, q] and `seen` [row, q, kv].

    `seen` is true where a new token may look, over all keys so far (those of earlier calls first,
    then the q new ones). Padding sees itself alone, so that it yields numbers and reaches nobody.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    seen: torch.Tensor


class Body:
    """The network below its head, fed with explicit masks; and the head, where it is wanted.

    Raises ModelError for a network that these masks do not steer: one without position ids, or with
    attention of another kind than full and sliding. `begin` are the tokens that a decoder says before
    every answer; `scales` are factors of the hidden states that the head may expect.
    """

    begin: Sequence[int] = ()
    scale: float = 1.0
    scales: Sequence[float] = (1.0,)

    def __init__(self, network: Any) -> None:
        self.network = network
        self.base = network.base_model
        self.config = network.config.get_text_config()
        self.device = next(network.parameters()).device
        self.kinds = set(getattr(self.config, "layer_types", None) or ())
        strange = sorted(self.kinds - ATTENTION)
        if "position_ids" not in inspect.signature(self.base.forward).parameters:
            strange.append("no position ids")
        if strange:
            raise ModelError(
                f"{type(network).__name__} has {' and '.join(strange)}, which cannot be batched "
                "exactly here; use a model with full or sliding attention and position ids"
            )

    def hidden(self, rows: Rows, cache: Any, kv_positions: torch.Tensor) -> torch.Tensor:
        """Last hidden states [row, q, width]; the new keys and values are added to `cache`."""
        return self.base(
            input_ids=rows.ids,
            position_ids=rows.positions,
            attention_mask=self._masks(rows, kv_positions),
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, vocabulary] of hidden states [n, width]."""
        head = self.network.get_output_embeddings()
        if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
            # A bfloat16 logit of 20 is rounded to a multiple of 0.125: unequal answers would tie.
            exact = hidden.to(head.weight.device).float()
            slices = head.weight.split(HEAD_SLICE)
            logits = torch.cat([linear(exact, w.float()) for w in slices], dim=-1)
            if head.bias is not None:
                logits += head.bias.float()
        else:
            logits = head(hidden).float()
        if scale := getattr(self.config, "logit_scale", None):
            logits = logits * scale
        if scaling := getattr(self.config, "logits_scaling", None):
            logits = logits / scaling
        if cap := getattr(self.config, "final_logit_softcapping", None):
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _masks(self, rows: Rows, kv_positions: torch.Tensor) -> Any:
        """What the network takes as its attention mask: one, or one for each kind of layer."""
        full = local = rows.seen[:, None]
        window = getattr(self.config, "sliding_window", None)
        if window and getattr(self.config, "use_sliding_window", True):
            near = rows.positions[:, :, None] - kv_positions[:, None, :] < window
            local = (rows.seen & near)[:, None]
        if self.config._attn_implementation == "eager":  # adds masks, where sdpa selects by them
            dtype = self.network.dtype
            full, local = ((~mask).to(dtype) * torch.finfo(dtype).min for mask in (full, local))
        if len(self.kinds) > 1:
            return {"full_attention": full, "sliding_attention": local}
        return full if self.kinds == {"full_attention"} else local


class LocalModel(Model):
    """A transformers network in memory, asked batch by batch.

    `tokens_per_batch` bounds the new tokens of one forward pass, `logits_per_batch` the positions at
    which the head is applied at once (each costs a float32 vector over the vocabulary). A batch that
    does not fit into memory is halved until it does.
    """

    def __init__(
        self,
        network: Any,
        tokenizer: Any,
        *,
        name: str,
        fingerprint: str,
        prompt_format: str,
        chat: tuple[str, str] | None,
        tokens_per_batch: int = 2048,
        logits_per_batch: int = 64,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.prompt_format, self.chat = prompt_format, chat
        self.tokenizer = tokenizer
        self.tokens_per_batch, self.logits_per_batch = tokens_per_batch, logits_per_batch
        self.body = self._wrap(network.eval())
        ends = network.generation_config.eos_token_id
        ends = [*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id]
        self.end_ids: list[int] = sorted({i for i in ends if i is not None})
        self._check_head()

    def answer(self, job: Job) -> Iterator[Batch]:
        return self._score(job) if job.operation in ("score", "temper") else self._decode(job)

    # -- what the two kinds do each in their way ---------------------------------------------------

    @abstractmethod
    def _wrap(self, network: Any) -> Body:
        """The network as it is run here."""

    @abstractmethod
    def _encode(self, prompt: str) -> list[int]:
        """The tokens of a prompt."""

    @abstractmethod
    def _length(self, prompt: int, answer: int) -> int:
        """How much of the context a prompt and an answer of so many tokens take."""

    @abstractmethod
    def _sizes(self, prompts: list[list[int]], answers: list[int]) -> list[int]:
        """Tokens that each prompt costs with so many answers in the making."""

    @abstractmethod
    def _prefill(self, prompts: list[list[int]]) -> tuple[torch.Tensor, Grow]:
        """Last hidden state of each prompt, and how its answers grow from there."""

    @abstractmethod
    def _score(self, job: Job) -> Iterator[Batch]:
        """Teacher forcing: score and temper."""

    @abstractmethod
    def _whole(self, prompt: list[int], answer: list[int]) -> torch.Tensor:
        """The network's own logits after an answer, [vocabulary]."""

    # -- teacher forcing ---------------------------------------------------------------------------

    def _values(
        self,
        hidden: torch.Tensor,
        where: list[int],
        answers: list[list[int]],
        temperatures: Sequence[float] | None,
    ) -> list[np.ndarray]:
        """What score or temper says of each answer, from the hidden states that predict its tokens.

        Token k of all answers in turn is predicted by row `where[k]` of `hidden` [place, width]. The
        head is applied once to each place, however many answers go on from there; the log-softmax is
        float32.
        """
        at = torch.tensor(where)
        targets = torch.tensor([token for ids in answers for token in ids])
        grid = [max(t, EPSILON) for t in temperatures or [1.0]]
        values = np.empty((len(targets), len(grid)), dtype=np.float32)
        for low in range(0, len(hidden), self.logits_per_batch):
            logits = self.body.logits(hidden[low : low + self.logits_per_batch])
            here = ((at >= low) & (at < low + len(logits))).nonzero()[:, 0]
            logits -= logits.amax(dim=-1, keepdim=True)
            rows = at[here] - low
            norms = log_norms(logits, grid).float()[rows]
            scaled = logits[rows, targets[here]][:, None] / torch.tensor(grid, device=logits.device)
            values[here] = (scaled - norms).cpu().numpy()
        each = np.split(values, np.cumsum([len(ids) for ids in answers])[:-1])
        return [v.sum(axis=0) if temperatures else v[:, 0] for v in each]

    # -- generation --------------------------------------------------------------------------------

    def _decode(self, job: Job) -> Iterator[Batch]:
        settings, requests = job.settings, job.requests
        n, stop, longest = settings.get("n", 1), settings["stop"], settings["max_new_tokens"]
        groups = by_prompt(job)
        prompts = [self._encode(requests[group[0]]["prompt"]) for group in groups]
        self._check(job, [self._length(len(ids), longest) for ids in prompts])

        def run(batch: list[tuple[list[int], list[int]]]) -> Batch:
            streams = [
                [s for i in group for s in new_streams(requests[i], settings)] for group, _ in batch
            ]
            last = [[*ids, *self.body.begin][-1] for _, ids in batch]  # what an answer follows
            decode(
                *self._prefill([ids for _, ids in batch]),
                self.body.logits,
                streams,
                ended=lambda row, ids: self._ended(last[row], ids, stop),
                max_new_tokens=longest,
                top_k=settings.get("top_k"),
                top_p=settings.get("top_p"),
                chunk=self.logits_per_batch,
            )
            results: list[Any] = []
            for (group, _), token, row in zip(batch, last, streams, strict=True):
                answers = self._generations(requests[group[0]]["prompt"], token, row, stop)
                samples = [answers[k : k + n] for k in range(0, len(answers), n)]
                results += samples if job.operation == "sample" else answers
            return [i for group, _ in batch for i in group], results

        sizes = self._sizes(prompts, [len(group) * n for group in groups])
        items = list(zip(groups, prompts, strict=True))
        return in_batches(items, sizes, run, budget=self.tokens_per_batch, name=self.name)

    def _ended(self, last: int, ids: list[int], stop: Sequence[str]) -> bool:
        if ids[-1] in self.end_ids:
            return True
        text = tokens.continuation(self.tokenizer, last, ids) if stop else ""
        return tokens.cut(text, stop) is not None

    def _generations(
        self, prompt: str, last: int, streams: list[Stream], stop: Sequence[str]
    ) -> list[Generation]:
        """What the streams of one prompt (`last`: the token before) say, up to a stop or end."""

        @functools.cache  # many samples are equal
        def ending(ids: tuple[int, ...]) -> tuple[str, int]:
            ids = ids[:-1] if ids[-1] in self.end_ids else ids
            text = tokens.continuation(self.tokenizer, last, ids)
            short = tokens.cut(text, stop)
            if short is None:
                return text, len(ids)
            return short, tokens.covering(self.tokenizer, last, ids, short)

        generations = []
        for s in streams:
            text, n = ending(tuple(s.ids))
            top = [
                [(self.tokenizer.decode([i]), p) for i, p in zip(*at, strict=True)]
                for at in s.top[:n]
            ]
            tempered = [] if s.alternatives else s.tempered[:n]
            generations.append(Generation(prompt, text, s.ids[:n], s.logprobs[:n], top, tempered))
        return generations

    # -- checks ------------------------------------------------------------------------------------

    def _check(self, job: Job, lengths: list[int]) -> None:
        """Refuse what is longer than the network's context, and token ids of another vocabulary.

        Before anything is computed: some networks go on beyond their context, and give nonsense.
        """
        most = getattr(self.body.config, "max_position_embeddings", None)
        if most and lengths and max(lengths) > most:
            raise ModelError(
                f"{self.name}: a prompt and its answer take {max(lengths)} tokens in "
                f"{job.operation}, more than the model's context of {most}; shorten the prompt"
            )
        ids = [r["answer"] for r in job.requests if isinstance(r.get("answer"), list)]
        size = self.body.config.vocab_size
        if (largest := max(map(max, ids), default=0)) >= size:
            raise ModelError(
                f"{self.name}: {largest} is no token id of this model, whose vocabulary holds {size}; "
                "score the ids that this model generated, or give the answers as texts"
            )

    def _check_head(self) -> None:
        """Refuse a network whose own logits are not its head applied to its last hidden states."""
        kind = type(self.body.network).__name__
        prompt, answer = [1, 2, *self.end_ids[:1]], [1, 2]

        def gap(scale: float) -> float:
            self.body.scale = scale
            logits = self.body.logits(hidden)[0].to(expected.device)
            return float((logits - expected).abs().max() / expected.abs().max())

        try:
            with torch.inference_mode():
                expected = self._whole(prompt, answer).float()
                hidden, grow = self._prefill([prompt])
                for token in answer:
                    hidden = grow([0], [token])
                gaps = {gap(scale): scale for scale in self.body.scales}
        except (AssertionError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise ModelError(
                f"{self.name}: {kind} does not run in the parts that are needed here "
                f"({type(error).__name__}: {error}); this architecture is not supported yet"
            ) from error
        least = min(gaps)
        self.body.scale = gaps[least]
        if not least < 0.02:  # bfloat16 rounding stays under this, a missing scale does not
            raise ModelError(
                f"{self.name}: the logits of {kind} differ from its head applied "
                f"to its hidden states (by {least:.0%}); this architecture is not supported yet"
            )


def by_prompt(job: Job) -> list[list[int]]:
    """Numbers of the requests that ask the same prompt."""
    order = sorted(range(len(job.requests)), key=lambda i: (job.requests[i]["prompt"], i))
    return [list(g) for _, g in groupby(order, key=lambda i: job.requests[i]["prompt"])]


def in_batches(
    items: list[Any],
    sizes: list[int],
    run: Callable[[list[Any]], Batch],
    *,
    budget: int,
    name: str,
) -> Iterator[Batch]:
    """Run items in batches of like size, shortest first, and yield what each batch gives.

    A batch is padded to its largest item and holds at most `budget` tokens (`sizes`: tokens of each
    item); one that does not fit into memory is halved. Raises ModelError if one item alone does not;
    `name` is the model's, for the message.
    """
    batches: list[list[int]] = []
    for i in sorted(range(len(items)), key=lambda i: sizes[i]):
        if batches and (len(batches[-1]) + 1) * sizes[i] <= budget:
            batches[-1].append(i)
        else:
            batches.append([i])
    todo = batches[::-1]
    while todo:
        batch = todo.pop()
        try:
            # Around this call only: a generator would leave the mode on in its caller.
            with torch.inference_mode():
                done = run([items[i] for i in batch])
        except RuntimeError as error:  # the CPU's allocator raises no OutOfMemoryError
            if not (isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)):
                raise
            if len(batch) == 1:
                raise ModelError(
                    f"{name}: one prompt alone does not fit into memory; shorten it, ask for fewer "
                    "samples at once, or load the model with a smaller dtype"
                ) from error
        else:
            yield done
            continue
        half = len(batch) // 2
        todo += [batch[half:], batch[:half]]
        if torch.cuda.is_available():  # here, where the failed batch is no longer referred to
            torch.cuda.empty_cache()


def available() -> bool:
    """Whether this torch and processor have oneDNN's products (see `prepack`)."""
    # What torch's own compiler uses; not documented, so ask (torch's version is pinned).
    found = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    x86 = platform.machine() in ("x86_64", "AMD64")
    return found and x86 and torch.backends.mkldnn.is_available()


def prepack(network: torch.nn.Module) -> None:
    """Let each float32 `Linear` of a network on the CPU bring its weight into oneDNN's own layout at
    its first use: loading takes no longer, and what is never used is never packed.

    torch hands float32 products on the CPU to MKL, which on many processors (all of AMD's) leaves
    their AVX-512 units idle. oneDNN uses them, and needs that layout. The numbers are float32 on
    both ways and differ in the last digits. Measured on two cores: 2.5 times the speed of MKL for a
    layer of the body, 3 to 4 times for the head at 8 to 64 rows.
    For inference only: no gradients flow. Of a weight that nothing else uses (the embedding may)
    only shape and dtype stay, so that memory does not grow.
    """
    if not available():
        return
    layers = [m for m in network.modules() if type(m) is torch.nn.Linear]
    others = (m for m in network.modules() if type(m) is not torch.nn.Linear)
    used = {id(p) for m in others for p in m.parameters(recurse=False)}
    for layer in layers:
        if layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32:
            # An attribute of the module hides its class's method, and hooks still run.
            vars(layer)["forward"] = functools.partial(_first, layer, id(layer.weight) in used)


def _first(layer: torch.nn.Linear, keep: bool, x: torch.Tensor) -> torch.Tensor:
    """The first use of a layer: pack its weight, and go this way from now on."""
    packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), PACKED_ROWS)
    if not keep:
        layer.weight = torch.nn.Parameter(layer.weight.detach().to("meta"), requires_grad=False)
    forward: Callable[[torch.Tensor], torch.Tensor] = functools.partial(
        torch.ops.mkldnn._linear_pointwise,
        W=packed, B=layer.bias, attr="none", scalars=[], algorithm="",
    )  # fmt: skip
    vars(layer)["forward"] = forward
    return forward(x)
