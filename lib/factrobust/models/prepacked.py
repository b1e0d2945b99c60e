"""Linear layers on x86 processors, with their weights in oneDNN's own layout.

torch hands float32 products on the CPU to MKL, which on many processors (all of AMD's) leaves their
AVX-512 units idle. oneDNN uses them, and needs the weights in a layout of its own, made once. The
numbers are float32 on both ways and differ in the last digits. Measured on two cores: 2.5 times the
speed of MKL for a layer of the body, 3 to 4 times for the head at 8 to 64 rows.
"""

from __future__ import annotations

import functools
import platform
from typing import Any

import torch

ROWS = 64  # the batch that oneDNN plans for; its layout serves any other as well


def available() -> bool:
    """Whether this torch and processor have the operations."""
    # What torch's own compiler uses; not documented, so ask (torch's version is pinned).
    found = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    x86 = platform.machine() in ("x86_64", "AMD64")
    return found and x86 and torch.backends.mkldnn.is_available()


def prepack(network: torch.nn.Module) -> None:
    """Let each float32 `Linear` of a network on the CPU bring its weight into the layout at its
    first use: loading takes no longer, and what is never used is never packed.

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
    packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), ROWS)
    if not keep:
        layer.weight = torch.nn.Parameter(layer.weight.detach().to("meta"), requires_grad=False)
    vars(layer)["forward"] = functools.partial(_product, packed, layer.bias)
    return _product(packed, layer.bias, x)


def _product(packed: torch.Tensor, bias: Any, x: torch.Tensor) -> torch.Tensor:
    product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
    return product
