"""What decoder-only and encoder-decoder networks in memory have in common."""

from __future__ import annotations

import functools
import inspect
import platform
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import torch
from torch.nn.functional import linear

from factrobust.models import tokens
from factrobust.models.interface import Generation, Job, Model, ModelError
from factrobust.models.tree import EPSILON, Rows, Stream, decode, log_norms, new_streams

Batch = tuple[list[int], list[Any]]  # numbers of the requests done, and their results
Prefilled = tuple[torch.Tensor, Any, torch.Tensor, torch.Tensor]

ATTENTION = {"full_attention", "sliding_attention"}  # what explicit masks can express
HEAD_SLICE = 1 << 15  # rows of a bfloat16 head that are turned into float32 at once
PACKED_ROWS = 64  # the batch that oneDNN plans for; its layout serves any other as well


class Body:
    """The network below its head, fed with explicit masks; and the head, where it is wanted.

    Raises ModelError for a network that these masks do not steer: one without position ids, or with
    attention of another kind than full and sliding.
    """

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
        full = rows.seen[:, None]
        local = full
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
        self.end_ids = _end_ids(network, tokenizer)
        self._check_head()

    def answer(self, job: Job) -> Iterator[Batch]:
        if job.operation not in ("score", "temper"):
            return self._decode(job)
        self._check_ids(job)
        return self._score(job)

    # -- what the two kinds do each in their way ---------------------------------------------------

    @abstractmethod
    def _wrap(self, network: Any) -> Body:
        """The network as it is run here."""

    @abstractmethod
    def _encode(self, prompt: str) -> list[int]:
        """The tokens of a prompt."""

    @abstractmethod
    def _last(self, prompt: list[int]) -> int:
        """The token that an answer to this prompt follows."""

    @abstractmethod
    def _length(self, prompt: int, answer: int) -> int:
        """How much of the context a prompt and an answer of so many tokens take."""

    @abstractmethod
    def _sizes(self, prompts: list[list[int]], answers: list[int]) -> list[int]:
        """Tokens that each prompt costs with so many answers in the making."""

    @abstractmethod
    def _prefill(self, prompts: list[list[int]]) -> Prefilled:
        """Last hidden state of each prompt; their cache; key positions and validity [row, key]."""

    @abstractmethod
    def _score(self, job: Job) -> Iterator[Batch]:
        """Teacher forcing: score and temper."""

    @abstractmethod
    def _compare(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of some short input: the network's own, and ours."""

    # -- teacher forcing ---------------------------------------------------------------------------

    def _values(
        self,
        wanted: torch.Tensor,
        where: list[int],
        answers: list[list[int]],
        temperatures: Sequence[float] | None,
    ) -> list[np.ndarray]:
        """What score or temper says of each answer, from the hidden states that predict its tokens.

        Token k of all answers in turn is predicted by row `where[k]` of `wanted` [place, width]. The
        head is applied once to each place, however many answers go on from there.
        """
        at = torch.tensor(where)
        targets = torch.tensor([token for ids in answers for token in ids])
        values = np.empty((len(targets), len(temperatures or [1])), dtype=np.float32)
        for low in range(0, len(wanted), self.logits_per_batch):
            logits = self.body.logits(wanted[low : low + self.logits_per_batch])
            here = ((at >= low) & (at < low + len(logits))).nonzero()[:, 0]
            values[here] = _tempered(logits, at[here] - low, targets[here], temperatures)
        each = np.split(values, np.cumsum([len(ids) for ids in answers])[:-1])
        return [v.sum(axis=0) if temperatures else v[:, 0] for v in each]

    # -- generation --------------------------------------------------------------------------------

    def _decode(self, job: Job) -> Iterator[Batch]:
        settings, requests = job.settings, job.requests
        n, stop, longest = settings.get("n", 1), settings["stop"], settings["max_new_tokens"]
        groups = by_prompt(job)
        encoded = {g[0]: self._encode(requests[g[0]]["prompt"]) for g in groups}
        self._check_context(job, [self._length(len(ids), longest) for ids in encoded.values()])

        def run(batch: list[list[int]]) -> Batch:
            prompts = [encoded[g[0]] for g in batch]
            streams = [[s for i in g for s in new_streams(requests[i], settings)] for g in batch]
            hidden, cache, kv_positions, seen = self._prefill(prompts)
            decode(
                self.body,
                hidden,
                cache,
                kv_positions,
                seen,
                streams,
                ended=lambda row, ids: self._ended(self._last(prompts[row]), ids, stop),
                max_new_tokens=longest,
                top_k=settings.get("top_k"),
                top_p=settings.get("top_p"),
                chunk=self.logits_per_batch,
            )
            results: list[Any] = []
            for group, ids, row in zip(batch, prompts, streams, strict=True):
                prompt = requests[group[0]]["prompt"]
                made = self._generations(prompt, self._last(ids), row, stop)
                each = [made[k : k + n] for k in range(0, len(made), n)]
                results += each if job.operation == "sample" else made
            return [i for g in batch for i in g], results

        sizes = self._sizes([encoded[g[0]] for g in groups], [len(g) * n for g in groups])
        return in_batches(groups, sizes, run, budget=self.tokens_per_batch, name=self.name)

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

        made = []
        for stream in streams:
            text, n = ending(tuple(stream.ids))
            greedy = stream.alternatives > 0
            top = [
                [(self.tokenizer.decode([i]), p) for i, p in zip(*at, strict=True)]
                for at in stream.top[:n]
            ]
            tempered = [] if greedy else stream.tempered[:n]
            made.append(
                Generation(prompt, text, stream.ids[:n], stream.logprobs[:n], top, tempered)
            )
        return made

    # -- checks ------------------------------------------------------------------------------------

    def _check_context(self, job: Job, lengths: list[int]) -> None:
        """Refuse a prompt that, with its answer, is longer than the network's context."""
        most = getattr(self.body.config, "max_position_embeddings", None)
        if most and lengths and max(lengths) > most:
            # Before anything is computed: some networks go on beyond it, and give nonsense.
            raise ModelError(
                f"{self.name}: a prompt and its answer take {max(lengths)} tokens in "
                f"{job.operation}, more than the model's context of {most}; shorten the prompt"
            )

    def _check_ids(self, job: Job) -> None:
        """Refuse token ids of another model's vocabulary."""
        given = [r["answer"] for r in job.requests if not isinstance(r["answer"], str)]
        size = self.body.config.vocab_size
        if (largest := max(map(max, given), default=0)) >= size:
            raise ModelError(
                f"{self.name}: {largest} is no token id of this model, whose vocabulary holds {size}; "
                "score the ids that this model generated, or give the answers as texts"
            )

    def _check_head(self) -> None:
        """Refuse a network whose own logits are not its head applied to its last hidden states."""
        kind = type(self.body.network).__name__
        try:
            with torch.inference_mode():
                expected, logits = self._compare()
                gap = (logits.to(expected.device) - expected).abs().max() / expected.abs().max()
        except (AssertionError, AttributeError, IndexError, TypeError, ValueError) as error:
            raise ModelError(
                f"{self.name}: {kind} does not run in the parts that are needed here "
                f"({type(error).__name__}: {error}); this architecture is not supported yet"
            ) from error
        if not gap < 0.02:  # bfloat16 rounding stays under this, a missing scale does not
            raise ModelError(
                f"{self.name}: the logits of {kind} differ from its head applied "
                f"to its hidden states (by {gap:.0%}); this architecture is not supported yet"
            )


def by_prompt(job: Job) -> list[list[int]]:
    """Numbers of the requests that ask the same prompt."""
    order = sorted(range(len(job.requests)), key=lambda i: (job.requests[i]["prompt"], i))
    return [list(g) for _, g in groupby(order, key=lambda i: job.requests[i]["prompt"])]


def _tempered(
    logits: torch.Tensor,
    rows: torch.Tensor,
    targets: torch.Tensor,
    temperatures: Sequence[float] | None,
) -> np.ndarray:
    """Float32 log-softmax at `targets` of the `rows` of logits, array [target, temperature]."""
    logits = logits - logits.max(dim=-1, keepdim=True).values
    grid = [max(t, EPSILON) for t in temperatures or [1.0]]
    norms = log_norms(logits, grid).float()[rows]
    scaled = logits[rows, targets][:, None] / torch.tensor(grid, device=logits.device)
    return (scaled - norms).cpu().numpy()


def _end_ids(network: Any, tokenizer: Any) -> list[int]:
    ids = network.generation_config.eos_token_id
    ids = ids if isinstance(ids, list) else [ids]
    return sorted({i for i in [*ids, tokenizer.eos_token_id] if i is not None})


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
        except RuntimeError as error:
            if not _out_of_memory(error):
                raise
            if len(batch) == 1:
                raise ModelError(
                    f"{name}: one prompt alone does not fit into memory; shorten it, ask for fewer "
                    "samples at once, or load the model with a smaller dtype"
                ) from error
            done = None
        if done is not None:
            yield done
            continue
        half = len(batch) // 2
        todo += [batch[half:], batch[:half]]
        if torch.cuda.is_available():  # here, where the failed batch is no longer referred to
            torch.cuda.empty_cache()


def _out_of_memory(error: RuntimeError) -> bool:
    # The CPU's allocator raises a plain RuntimeError.
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def available() -> bool:
    """Whether this torch and processor have the operations."""
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
    vars(layer)["forward"] = functools.partial(_product, packed, layer.bias)
    return _product(packed, layer.bias, x)


def _product(packed: torch.Tensor, bias: Any, x: torch.Tensor) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return product
