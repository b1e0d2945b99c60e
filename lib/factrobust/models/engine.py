"""A network in memory, run with explicit masks, in batches that fit."""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from factrobust.models.interface import Job, ModelError
from factrobust.models.linear import ExactLinear
from factrobust.models.memory import give_back

Places = tuple[torch.Tensor, torch.Tensor]  # rows, and columns
Batch = tuple[list[int], list[Any]]  # numbers of the requests done, and their results
Result = Callable[[], Batch | None]  # waits for a batch; None if it has to be halved

ATTENTION = {"full_attention", "sliding_attention"}  # what explicit masks can express
ATTEND = "factrobust"  # the name of `attend` in transformers
SDPA = "sdpa"  # of its own attention by torch
LANES = 2  # batches at once, since small products and Python leave threads idle
FEW = 4  # batches; with fewer, one lane would mostly wait for the other


class Rows(NamedTuple):
    """New tokens of each row: `ids` [row, q], `positions` [row, q] and `seen` [row, q, kv].

    `seen` says which keys a new token sees: those of earlier calls, then the q new ones. Padding
    sees only itself, so that its states are numbers, and no token sees it. `at` are the rows and
    the columns of the tokens without padding."""

    ids: torch.Tensor
    positions: torch.Tensor
    seen: torch.Tensor
    at: Places


class Asked:
    """A network, and the logits of its hidden states."""

    begin: Sequence[int] = ()  # the tokens of a decoder before every answer
    dense = False

    def __init__(self, network: Any) -> None:
        self.network = network
        self.config = network.config.get_text_config(decoder=True)
        self.device = next(network.parameters()).device

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


class Plain(Asked):
    """A network that is asked by its own forward passes of one row. Its logits stand for hidden
    states."""

    def __init__(self, network: Any, begin: Sequence[int] = ()) -> None:
        super().__init__(network)
        self.begin = begin
        set_attention(network, SDPA)
        exact_head(network)

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return hidden.clone()  # callers change it in place


class Body(Asked):
    """The network below its head, run with explicit masks. With `dense` the tokens of all rows go
    through the layers as one row (on the CPU). ModelError for a network that masks cannot control:
    one without position ids, or with other attention than full and sliding."""

    def __init__(self, network: Any, *, dense: bool = True) -> None:
        super().__init__(network)
        self.base = network.base_model
        self.kinds = set(getattr(self.config, "layer_types", None) or ())
        strange = sorted(self.kinds - ATTENTION)
        if "position_ids" not in inspect.signature(self.base.forward).parameters:
            strange.append("no position ids")
        if strange:
            raise ModelError(
                f"{type(network).__name__} has {' and '.join(strange)}, which cannot be batched "
                "exactly here; use a model with full or sliding attention and position ids"
            )
        # Whether tokens can run without padding: see `hidden`.
        on_cpu = self.device.type == "cpu"
        self.dense = dense and on_cpu and self.config._attn_implementation == SDPA
        if self.dense:
            set_attention(network, ATTEND)

    def hidden(self, rows: Rows, cache: Any, kv_positions: torch.Tensor) -> torch.Tensor:
        """Last hidden states [row, q, width]; the new keys and values are added to `cache`. On the
        CPU the tokens of all rows go through the layers as one row without padding. Only `attend`
        puts them into their rows. The states of padding are then 0."""
        is_padded = len(rows.at[0]) < rows.ids.numel()
        at = rows.at if self.dense and is_padded else None
        cache.at = at
        cache.shape = rows.ids.shape
        ids = rows.ids
        positions = rows.positions
        places = {}
        if at:
            ids = ids[at][None]
            positions = positions[at][None]
            places["at"] = at
        states = self.base(
            input_ids=ids,
            position_ids=positions,
            attention_mask=self._masks(rows, kv_positions),
            past_key_values=cache,
            use_cache=True,
            **places,
        ).last_hidden_state
        return spread(states[0], at, cache.shape) if at else states

    def _masks(self, rows: Rows, kv_positions: torch.Tensor) -> Any:
        """The network's attention mask, or one for each kind of layer."""
        full = rows.seen[:, None]
        local = full
        window = getattr(self.config, "sliding_window", None)
        if window and getattr(self.config, "use_sliding_window", True):
            distance = rows.positions[:, :, None] - kv_positions[:, None, :]
            local = (rows.seen & (distance < window))[:, None]
        if self.config._attn_implementation == "eager":
            full = self._added(full)
            local = self._added(local)
        if len(self.kinds) > 1:
            return {"full_attention": full, "sliding_attention": local}
        return full if self.kinds == {"full_attention"} else local

    def _added(self, mask: torch.Tensor) -> torch.Tensor:
        """A mask that is added to an eager network's scores: the lowest number where nothing is
        seen."""
        dtype = self.network.dtype
        return (~mask).to(dtype) * torch.finfo(dtype).min


def check_in_memory(network: Any, name: str) -> None:
    """ModelError for a network some of whose weights have found no place in memory."""
    away = [key for key, weight in network.named_parameters() if weight.is_meta]
    if away:
        raise ModelError(
            f"{name} does not fit into this machine's memory: {len(away)} of its weights, such as "
            f"{away[0]}, were left out; take a smaller model or dtype, or more or larger GPUs"
        )


def check_finite(network: Any, name: str) -> None:
    """ModelError for a network with weights that are no finite numbers. Its logits need not show
    them: torch's attention passes over NaN."""
    for key, weight in network.named_parameters():
        if weight.is_floating_point() and not weight.isfinite().all():
            raise ModelError(
                f"{name} holds weights that are not numbers (NaN or infinite), such as one of "
                f"{key}; they are damaged, or overflow in this dtype: fetch them anew, or load it "
                "in float32"
            )


def own_logits(network: Any, count: int, **inputs: torch.Tensor) -> torch.Tensor:
    """Float32 logits [count, vocabulary] at the last places of one row, by the network's own
    forward pass without masks, positions or cache."""
    options: dict[str, Any] = {}
    if "logits_to_keep" in inspect.signature(network.forward).parameters:
        options["logits_to_keep"] = count
    return network(**inputs, **options).logits[0, -count:].float()


def set_attention(network: Any, name: str) -> None:
    """Let modules that attend by SDPA or by ATTEND do it by the one of that name."""
    for module in network.modules():
        config: Any = getattr(module, "config", None)
        if getattr(config, "_attn_implementation", None) in (SDPA, ATTEND):
            config._attn_implementation = name


def exact_head(network: Any) -> None:
    """Let a head of a smaller dtype give float32 logits. A bfloat16 logit of 20 is a multiple of
    0.125: different answers would tie."""
    head = network.get_output_embeddings()
    if type(head) is torch.nn.Linear and head.weight.dtype != torch.float32:
        network.set_output_embeddings(ExactLinear(head))


class Keys(DynamicCache):
    """Keys and values of rows. New ones without padding (see `Body.hidden`) are put at their places
    `at` in rows of the `shape` [row, q]."""

    at: Places | None = None
    shape: Sequence[int] = ()

    def update(
        self,
        key: torch.Tensor,
        value: torch.Tensor,
        layer_idx: int,
        *args: Any,
        **kw: Any,
    ) -> Any:
        if self.at:
            key = in_rows(key, self.at, self.shape)
            value = in_rows(value, self.at, self.shape)
        return super().update(key, value, layer_idx, *args, **kw)

    def select(self, rows: torch.Tensor, places: torch.Tensor) -> None:
        """Replace the rows by the keys at `places` [new row, key] of the old `rows` [new row,
        1]."""
        for layer in self.layers:
            layer.keys = layer.keys[rows, :, places].transpose(1, 2)
            layer.values = layer.values[rows, :, places].transpose(1, 2)


def in_rows(heads: torch.Tensor, at: Places, shape: Sequence[int]) -> torch.Tensor:
    """What the heads have of tokens [1, head, token, width], in their rows: [row, head, q,
    width]."""
    return spread(heads[0].transpose(0, 1), at, shape).transpose(1, 2)


def spread(tokens: torch.Tensor, at: Places, shape: Sequence[int]) -> torch.Tensor:
    """Values of tokens [token, ...] at their places in rows of the `shape` [row, q]; 0
    elsewhere."""
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
    places `at` of the mask's rows [row, 1, q, kv], or of all. Heads that share keys are computed as
    one head with more queries: no keys are copied."""
    if attention_mask is None:
        return sdpa_attention_forward(module, query, key, value, None, scaling=scaling, **other)
    rows, _, width, _ = attention_mask.shape
    if at:
        query = in_rows(query, at, (rows, width))
    sharing = query.shape[1] // key.shape[1]  # heads
    seen = scaled_dot_product_attention(
        query.reshape(rows, key.shape[1], sharing * width, -1),
        key,
        value,
        attn_mask=attention_mask.repeat(1, 1, sharing, 1),
        scale=scaling,
    )
    by_head = seen.reshape(rows, -1, width, seen.shape[-1])
    states = by_head.transpose(1, 2)
    return states[at][None] if at else states, None


AttentionInterface.register(ATTEND, attend)
AttentionMaskInterface.register(ATTEND, sdpa_mask)


def by_prompt(job: Job) -> list[list[int]]:
    """Groups of requests (their numbers) with the same prompt, in the order of prompts."""
    groups: dict[str, list[int]] = {}
    for i, request in enumerate(job.requests):
        groups.setdefault(request["prompt"], []).append(i)
    return [groups[prompt] for prompt in sorted(groups)]


def in_batches(
    items: list[Any],
    sizes: list[int],
    run: Callable[[list[Any]], Batch],
    *,
    budget: int,
    name: str,
) -> Iterator[Batch]:
    """Run items in batches of similar size, longest first, and yield the result of each batch.

    A batch is padded to its largest item and has at most `budget` tokens (`sizes`: tokens of each
    item). One that does not fit into memory is halved, and so is an item that is a list; ModelError
    if an item alone does not fit. On a CPU, LANES batches run at once, each with its share of the
    threads."""
    shortest_first = _batches(items, sizes, budget)
    todo = deque(reversed(shortest_first))
    threads = torch.get_num_threads()
    gpu = torch.cuda.is_available()
    lanes = 1 if gpu or len(todo) < FEW else min(LANES, threads)
    ahead = 1 if lanes == 1 else 2 * lanes  # batches that are begun
    share = functools.partial(torch.set_num_threads, threads // lanes)
    at_work: deque[tuple[list[Any], Result]] = deque()

    with ThreadPoolExecutor(lanes, initializer=share) as pool:
        try:
            while todo or at_work:
                while todo and len(at_work) < ahead:
                    batch = todo.popleft()
                    # A single lane is this thread: a new one would have to start torch's threads.
                    result: Result = functools.partial(_attempt, run, batch, name)
                    if lanes > 1:
                        result = pool.submit(_attempt, run, batch, name).result
                    at_work.append((batch, result))
                batch, result = at_work.popleft()
                done = result()
                if done:
                    yield done
                    continue
                todo.extendleft(reversed(_halves(batch)))
                if gpu:  # here, where nothing holds the failed batch
                    torch.cuda.empty_cache()
        finally:
            torch.set_num_threads(threads)
            give_back()


@torch.inference_mode()  # not in `in_batches`: a generator would leave it on in its caller
def _attempt(run: Callable[[list[Any]], Batch], batch: list[Any], name: str) -> Batch | None:
    """The result of a batch; None for one that does not fit into memory and can be halved."""
    try:
        return run(batch)
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        first = batch[0]
        is_divisible = isinstance(first, list) and len(first) > 1
        if len(batch) > 1 or is_divisible:
            return None
        raise ModelError(
            f"{name}: one prompt alone does not fit into memory; shorten it, ask for fewer samples "
            "at once, or load the model with a smaller dtype"
        ) from error


def _batches(items: list[Any], sizes: list[int], budget: int) -> list[list[Any]]:
    """Items in batches, the shortest first, of at most `budget` tokens with their padding."""
    batches: list[list[Any]] = []
    for i in sorted(range(len(items)), key=lambda i: sizes[i]):
        rows = len(batches[-1]) + 1 if batches else 1
        if batches and rows * sizes[i] <= budget:
            batches[-1].append(items[i])
        else:
            batches.append([items[i]])
    return batches


def _halves(batch: list[Any]) -> list[list[Any]]:
    """Two batches of half of the items, or of half of the only item, which is a list."""
    if len(batch) > 1:
        middle = len(batch) // 2
        return [batch[:middle], batch[middle:]]
    [item] = batch
    middle = len(item) // 2
    return [[item[:middle]], [item[middle:]]]


def out_of_memory(error: Exception) -> bool:
    """Whether an error says so. On a CPU no OutOfMemoryError is raised."""
    return isinstance(error, torch.OutOfMemoryError) or "allocate memory" in str(error)
