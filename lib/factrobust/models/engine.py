"""A network in memory: run with explicit masks, in batches that fit, on oneDNN's products."""

from __future__ import annotations

import functools
import inspect
import platform
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch
from torch.nn.functional import linear

from factrobust.models.interface import Job, ModelError

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
