"""A network in memory, run with explicit masks, in batches that fit, by oneDNN's matrix products."""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import platform
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from threading import Lock
from typing import Any, NamedTuple

import torch
from torch.nn.functional import linear, scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from factrobust.models.interface import Job, ModelError

Places = tuple[torch.Tensor, torch.Tensor]  # rows, and columns
Batch = tuple[list[int], list[Any]]  # numbers of the requests done, and their results

ATTENTION = {"full_attention", "sliding_attention"}  # what explicit masks can express
ATTEND = "factrobust"  # the name of `attend` in transformers
HEAD_SLICE = 1 << 15  # rows of a bfloat16 head that become float32 at once
LANES = 2  # batches at once, since small products and Python leave threads idle
FEW = 4  # batches; with fewer, one lane would mostly wait for the other
PACKING = Lock()
PACKED_ROWS = 64  # the batch size that oneDNN plans for; its layout serves other sizes as well


class Rows(NamedTuple):
    """New tokens of each row: `ids` [row, q], `positions` [row, q] and `seen` [row, q, kv].

    `seen` says which keys a new token sees: those of earlier calls, then the q new ones. Padding sees
    only itself, so that its states are numbers, and no token sees it. `at` are the rows and the
    columns of the tokens without padding.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    seen: torch.Tensor
    at: Places


class Body:
    """The network below its head, run with explicit masks; and its head. With `dense` the tokens of
    all rows go through the layers as one row (on the CPU). ModelError for a network that masks cannot
    control: one without position ids, or with other attention than full and sliding."""

    begin: Sequence[int] = ()  # the tokens of a decoder before every answer
    scale: float = 1.0
    scales: Sequence[float] = (1.0,)  # that the head may need on the hidden states
    dense = False

    def __init__(self, network: Any, *, dense: bool = True) -> None:
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
        own_attention(network)
        exact_head(network)
        # Whether tokens can run without padding: see `hidden`.
        on_cpu = self.device.type == "cpu"
        self.dense = dense and on_cpu and self.config._attn_implementation == "sdpa"
        self.attach()

    def attach(self) -> None:
        """Let the network attend as this body needs it."""
        if self.dense:
            set_attention(self.network, "sdpa", ATTEND)

    def hidden(self, rows: Rows, cache: Any, kv_positions: torch.Tensor) -> torch.Tensor:
        """Last hidden states [row, q, width]; the new keys and values are added to `cache`. On the
        CPU the tokens of all rows go through the layers as one row without padding. Only `attend`
        puts them into their rows. The states of padding are then 0."""
        masks, shape = self._masks(rows, kv_positions), rows.ids.shape
        packed = self.dense and len(rows.at[0]) < rows.ids.numel()
        cache.at, cache.shape = rows.at if packed else None, shape
        states: torch.Tensor = self.base(
            input_ids=rows.ids[rows.at][None] if packed else rows.ids,
            position_ids=rows.positions[rows.at][None] if packed else rows.positions,
            attention_mask=masks,
            past_key_values=cache,
            use_cache=True,
            **({"at": rows.at} if packed else {}),
        ).last_hidden_state
        return spread(states[0], rows.at, shape) if packed else states

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Float32 logits [n, vocabulary] of hidden states [n, width]."""
        logits: torch.Tensor = self.network.get_output_embeddings()(hidden).float()
        if scale := getattr(self.config, "logit_scale", None):
            logits = logits * scale
        if scaling := getattr(self.config, "logits_scaling", None):
            logits = logits / scaling
        if cap := getattr(self.config, "final_logit_softcapping", None):
            logits = torch.tanh(logits / cap) * cap
        return logits

    def _masks(self, rows: Rows, kv_positions: torch.Tensor) -> Any:
        """The network's attention mask, or one for each kind of layer."""
        full = local = rows.seen[:, None]
        window = getattr(self.config, "sliding_window", None)
        if window and getattr(self.config, "use_sliding_window", True):
            near = rows.positions[:, :, None] - kv_positions[:, None, :] < window
            local = (rows.seen & near)[:, None]
        if self.config._attn_implementation == "eager":  # which adds masks to its scores
            dtype = self.network.dtype
            full, local = ((~mask).to(dtype) * torch.finfo(dtype).min for mask in (full, local))
        if len(self.kinds) > 1:
            return {"full_attention": full, "sliding_attention": local}
        return full if self.kinds == {"full_attention"} else local


class Plain:
    """A network that is asked by its own forward passes of one row. Its logits stand for hidden
    states."""

    def __init__(self, network: Any, begin: Sequence[int] = ()) -> None:
        self.network, self.begin = network, begin
        self.config = network.config.get_text_config(decoder=True)
        self.device = next(network.parameters()).device
        own_attention(network)
        exact_head(network)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden.clone()  # callers change it in place


def check_in_memory(network: Any, name: str) -> None:
    """ModelError for a network some of whose weights have found no place in memory."""
    away = [key for key, weight in network.named_parameters() if weight.is_meta]
    if away:
        raise ModelError(
            f"{name} does not fit into this machine's memory: {len(away)} of its weights, such as "
            f"{away[0]}, were left out; take a smaller model or dtype, or more or larger GPUs"
        )


def own_logits(network: Any, count: int, **inputs: torch.Tensor) -> torch.Tensor:
    """Float32 logits [count, vocabulary] at the last places of one row, by the network's own forward
    pass without masks, positions or cache."""
    takes = inspect.signature(network.forward).parameters
    few = {"logits_to_keep": count} if "logits_to_keep" in takes else {}
    logits: torch.Tensor = network(**inputs, **few).logits[0, -count:].float()
    return logits


def set_attention(network: Any, old: str, new: str) -> None:
    """Let modules that attend by the function `old` do it by `new`."""
    for module in network.modules():
        config = getattr(module, "config", None)
        if config is not None and getattr(config, "_attn_implementation", None) == old:
            config._attn_implementation = new


def own_attention(network: Any) -> None:
    """Let the network attend as transformers does, not by `attend`."""
    set_attention(network, ATTEND, "sdpa")


def exact_head(network: Any) -> None:
    """Let a head of a smaller dtype give float32 logits. A bfloat16 logit of 20 is a multiple of 0.125:
    different answers would tie."""
    head = network.get_output_embeddings()
    if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
        vars(head)["forward"] = functools.partial(_exact_product, head)


def _exact_product(head: torch.nn.Linear, hidden: torch.Tensor) -> torch.Tensor:
    exact = hidden.to(head.weight.device).float()
    slices = head.weight.split(HEAD_SLICE)
    logits = torch.cat([linear(exact, w.float()) for w in slices], dim=-1)
    return logits if head.bias is None else logits + head.bias.float()


class Keys(DynamicCache):
    """Keys and values of rows. New ones without padding (see `Body.hidden`) are put at their places
    `at` in rows of the `shape` [row, q]."""

    at: Places | None = None
    shape: Sequence[int] = ()

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer_idx: int, *args: Any, **kw: Any
    ) -> Any:
        if self.at:
            key, value = (
                spread(each[0].transpose(0, 1), self.at, self.shape).transpose(1, 2)
                for each in (key, value)
            )
        return super().update(key, value, layer_idx, *args, **kw)

    def select(self, rows: torch.Tensor, places: torch.Tensor) -> None:
        """Replace the rows by the keys at `places` [new row, key] of the old `rows` [new row, 1]."""
        for layer in self.layers:
            layer.keys = layer.keys[rows, :, places].transpose(1, 2)
            layer.values = layer.values[rows, :, places].transpose(1, 2)


def spread(tokens: torch.Tensor, at: Places, shape: Sequence[int]) -> torch.Tensor:
    """Values of tokens [token, ...] at their places in rows of the `shape` [row, q]; 0 elsewhere."""
    rows = tokens.new_zeros(*shape, *tokens.shape[1:])
    rows[at] = tokens
    return rows


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    at: Places | None = None,
    **other: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention by torch, with queries [1, head, token, width] of the tokens at the
    places `at` of the mask's rows [row, 1, q, kv], or of all. Heads that share keys are computed as one
    head with more queries: no keys are copied."""
    if attention_mask is None:
        return sdpa_attention_forward(module, query, key, value, None, scaling=scaling, **other)
    rows, _, width, _ = attention_mask.shape
    if at:
        query = spread(query[0].transpose(0, 1), at, (rows, width)).transpose(1, 2)
    shared = query.shape[1] // key.shape[1]
    seen = scaled_dot_product_attention(
        query.reshape(rows, key.shape[1], shared * width, -1),
        key,
        value,
        attn_mask=attention_mask.repeat(1, 1, shared, 1),
        scale=scaling,
    )
    states = seen.reshape(rows, -1, width, seen.shape[-1]).transpose(1, 2)
    return states[at][None] if at else states, None


AttentionInterface.register(ATTEND, attend)
AttentionMaskInterface.register(ATTEND, sdpa_mask)


def by_prompt(job: Job) -> list[list[int]]:
    """Groups of requests (their numbers) with the same prompt."""
    order = sorted(range(len(job.requests)), key=lambda i: (job.requests[i]["prompt"], i))
    return [list(g) for _, g in groupby(order, key=lambda i: job.requests[i]["prompt"])]


def in_batches(
    items: list[Any], sizes: list[int], run: Callable[[list[Any]], Batch], *, budget: int, name: str
) -> Iterator[Batch]:
    """Run items in batches of similar size, longest first, and yield the result of each batch.

    A batch is padded to its largest item and has at most `budget` tokens (`sizes`: tokens of each
    item). One that does not fit into memory is halved, and so is an item that is a list; ModelError if
    an item alone does not fit. On a CPU, LANES batches run at once, each with its share of the threads.
    """
    batches: list[list[Any]] = []
    for i in sorted(range(len(items)), key=lambda i: sizes[i]):
        if batches and (len(batches[-1]) + 1) * sizes[i] <= budget:
            batches[-1].append(items[i])
        else:
            batches.append([items[i]])

    @torch.inference_mode()  # here, since a generator would leave it on in its caller
    def attempt(batch: list[Any]) -> Batch | None:
        try:
            return run(batch)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            if len(batch) > 1 or (isinstance(batch[0], list) and len(batch[0]) > 1):
                return None
            raise ModelError(
                f"{name}: one prompt alone does not fit into memory; shorten it, ask for fewer "
                "samples at once, or load the model with a smaller dtype"
            ) from error

    threads, gpu = torch.get_num_threads(), torch.cuda.is_available()
    lanes = 1 if gpu or len(batches) < FEW else min(LANES, threads)
    todo, running = deque(batches[::-1]), deque[tuple[list[Any], Callable[[], Batch | None]]]()
    share = functools.partial(torch.set_num_threads, threads // lanes)
    waiting = 2 * lanes if lanes > 1 else 1

    with ThreadPoolExecutor(lanes, initializer=share) as pool:
        try:
            while todo or running:
                while todo and len(running) < waiting:
                    batch = todo.popleft()
                    # A single lane is this thread: a new one would have to start torch's threads.
                    alone = functools.partial(attempt, batch)
                    running.append((batch, pool.submit(alone).result if lanes > 1 else alone))
                batch, result = running.popleft()
                if done := result():
                    yield done
                    continue
                whole = batch if len(batch) > 1 else batch[0]
                halves = whole[: len(whole) // 2], whole[len(whole) // 2 :]
                todo.extendleft(reversed(halves if len(batch) > 1 else [[half] for half in halves]))
                if gpu:  # here, where nothing holds the failed batch
                    torch.cuda.empty_cache()
        finally:
            torch.set_num_threads(threads)
            give_back()


def out_of_memory(error: Exception) -> bool:
    """Whether an error says so. On a CPU no OutOfMemoryError is raised."""
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)


def give_back() -> None:
    """Return free memory to the system. Batches differ in size, so that most of what glibc's malloc keeps
    for the next one does not fit: without this a notebook of many jobs grows to three times its need."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim:  # only glibc has it
        trim(0)


def available() -> bool:
    """Whether this torch and processor have oneDNN's products (see `prepack`)."""
    # torch's own compiler uses this one, which is not documented (torch's version is pinned).
    found = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    x86 = platform.machine() in ("x86_64", "AMD64")
    return found and x86 and torch.backends.mkldnn.is_available()


def prepack(network: torch.nn.Module) -> None:
    """Let each float32 `Linear` of a network on the CPU pack its weight for oneDNN at its first use.

    torch's float32 products on the CPU are MKL's, which on many processors (all of AMD's) does not use
    the AVX-512 units. oneDNN does, with weights in its own layout: 2.5 times the speed for a layer, 3 to
    4 times for the head (two cores, 8 to 64 rows), for inference only. A weight that nothing else uses
    (the embedding may) keeps only its shape and dtype, so that memory does not grow.
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
    """The first use of a layer: pack its weight, which later uses find."""
    with PACKING:
        if vars(layer)["forward"].func is _first:  # else another thread has packed it
            weight = layer.weight.detach()
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)
            if not keep:
                layer.weight = torch.nn.Parameter(weight.to("meta"), requires_grad=False)
            vars(layer)["forward"] = functools.partial(
                torch.ops.mkldnn._linear_pointwise,
                W=packed, B=layer.bias, attr="none", scalars=[], algorithm="",
            )  # fmt: skip
    product: torch.Tensor = vars(layer)["forward"](x)
    return product
