"""Linear layers that multiply faster or more exactly than torch's own."""

import platform
from threading import Lock

import torch
from torch.nn.functional import linear

PACKING = Lock()
PACKED_ROWS = 64  # the batch size that oneDNN plans for; its layout serves other sizes as well
HEAD_SLICE = 1 << 15  # rows of a bfloat16 head that become float32 at once


class _LinearOf(torch.nn.Linear):
    """A layer with the weight and the bias of another one."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        torch.nn.Module.__init__(self)  # Linear's own would make a new weight
        self.in_features = layer.in_features
        self.out_features = layer.out_features
        self.weight = layer.weight
        self.bias = layer.bias


class ExactLinear(_LinearOf):
    """A layer of a smaller dtype that gives float32 products."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        exact = x.to(self.weight.device).float()
        slices = self.weight.split(HEAD_SLICE)
        products = torch.cat([linear(exact, rows.float()) for rows in slices], dim=-1)
        return products if self.bias is None else products + self.bias.float()


class PackedLinear(_LinearOf):
    """A float32 layer on the CPU that packs its weight for oneDNN at its first use.

    torch's float32 products on the CPU are MKL's, which on many processors (all of AMD's) does not
    use the AVX-512 units. oneDNN does, with weights in its own layout: 2.5 times the speed for a
    layer, 3 to 4 times for the head (two cores, 8 to 64 rows), for inference only. Unless it
    `keeps` its weight, since something else uses it, too, only the weight's shape and dtype stay:
    memory does not grow."""

    def __init__(self, layer: torch.nn.Linear, *, keeps: bool) -> None:
        super().__init__(layer)
        self.keeps = keeps
        self.packed: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.packed is None:
            self._pack()
        return torch.ops.mkldnn._linear_pointwise(
            x,
            W=self.packed,
            B=self.bias,
            attr="none",
            scalars=[],
            algorithm="",
        )

    def _pack(self) -> None:
        with PACKING:
            if self.packed is not None:  # by another thread
                return
            weight = self.weight.detach()
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, PACKED_ROWS)
            if not self.keeps:
                self.weight = torch.nn.Parameter(weight.to("meta"), requires_grad=False)
            self.packed = packed


def available() -> bool:
    """Whether this torch and processor have oneDNN's products (see `PackedLinear`)."""
    # torch's own compiler uses this one, which is not documented (torch's version is pinned).
    found = hasattr(torch.ops.mkldnn, "_linear_pointwise")
    x86 = platform.machine() in ("x86_64", "AMD64")
    return found and x86 and torch.backends.mkldnn.is_available()


def prepack(network: torch.nn.Module) -> None:
    """Put a `PackedLinear` in place of each float32 `Linear` inside a network on the CPU."""
    if not available():
        return
    used: set[int] = set()  # weights that something else than a Linear has
    for module in network.modules():
        if type(module) is not torch.nn.Linear:
            used |= {id(weight) for weight in module.parameters(recurse=False)}
    packed: dict[torch.nn.Module, PackedLinear] = {}  # a layer may stand in several places
    for parent in list(network.modules()):
        for name, layer in list(parent._modules.items()):  # with repeated ones
            if type(layer) is not torch.nn.Linear:
                continue
            if layer.weight.device.type != "cpu" or layer.weight.dtype != torch.float32:
                continue
            if layer not in packed:
                packed[layer] = PackedLinear(layer, keeps=id(layer.weight) in used)
            setattr(parent, name, packed[layer])
