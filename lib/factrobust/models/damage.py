"""What people do to weights: round them to a few bits, prune them, disturb them.

Changed are the matrices of the linear layers, of experts and their routers: neither embeddings, nor
the head (tied or not), nor norms and biases. The change is computed in float32, whatever the
weights' dtype and device, and is part of the model's fingerprint.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from factrobust.models import k_quants
from factrobust.models.interface import Model, ModelError
from factrobust.models.load import load_model
from factrobust.models.records import open_records

GROUP = 32  # weights of a row that share a scale
# llama.cpp's formats of so many bits, which its own package makes.
LLAMA_CPP: dict[float, str] = {8: "Q8_0", 5: "Q5_0", 4: "Q4_0"}
# Layers that hold [input, output], where others hold [output, input].
CROSSWISE = ("Conv1D", "Llama4TextExperts")
LIMITS = {
    "round": (2, 16),
    "K": (2, 6),
    "prune": (0, 0.99),
    "noise": (0, 10),
}


class Damage(NamedTuple):
    """A way to change weights and its dose: "round" to so many bits (in llama.cpp's format where
    it has one, else to nearest), "K" for its K formats, by its own quantiser (`k_quants`), "prune"
    a share of each matrix, "noise" of so many standard deviations of each matrix, in the draw
    `seed`."""

    way: str
    dose: float
    seed: int = 0

    @property
    def label(self) -> str:
        """As it stands in fingerprints: "round 4", "noise 0.05 draw 1"."""
        label = f"{self.way} {self.dose:g}"
        if self.way == "noise":
            label += f" draw {self.seed}"
        return label


def damaged(name: str, damage: Damage, dtype: str | None = None) -> Model:
    """The model of that name with other weights, which answers from the records where it can.
    ModelError for a way or a dose that there is not, and for an endpoint."""
    low, high = LIMITS.get(damage.way, (1.0, 0.0))
    if not low <= damage.dose <= high:
        ways = []
        for way, (least, most) in LIMITS.items():
            ways.append(f"{way} from {least:g} to {most:g}")
        known = ", ".join(ways)
        raise ModelError(f"weights cannot be changed by {damage.label!r}; give {known}")
    change = (damage.label, partial(apply, damage=damage))
    return load_model(
        name,
        dtype=dtype,
        records=open_records(),
        change=change,
    )


def apply(network: Any, damage: Damage) -> None:
    """Change the matrices of a network in place; ModelError for one whose weights are not there."""
    import torch

    found = matrices(network)
    fault = "" if found else "it has no linear layers"
    for name, weights, _ in found:
        if weights.is_meta or not weights.is_floating_point():
            fault = f"{name} is not in memory as plain numbers"
            break
    if fault:
        raise ModelError(
            f"the weights of {type(network).__name__} cannot be changed by {damage.label!r}: "
            f"{fault}; take a model of float32, bfloat16 or float16 that fits into memory"
        )
    generator = torch.Generator().manual_seed(damage.seed)
    with torch.no_grad():
        for _, weights, crosswise in found:
            every = weights.detach().float().cpu()
            for matrix, place in zip(_each(every), _each(weights), strict=True):
                rows = matrix.T if crosswise else matrix
                changed = _changed(rows, damage, generator)
                place.copy_(changed.T if crosswise else changed)


def matrices(network: Any) -> list[tuple[str, Any, bool]]:
    """Name and weights [output, input] of all that is changed, or [expert, output, input], and
    whether the last two are exchanged; in the order of the network's parameters."""
    import torch
    from transformers.pytorch_utils import Conv1D

    owners = {}
    for module in network.modules():
        kind = type(module).__name__
        is_linear = isinstance(module, torch.nn.Linear | Conv1D)
        if not is_linear and "Router" not in kind and "Expert" not in kind:
            continue
        crosswise = kind in CROSSWISE or getattr(module, "is_transposed", False)
        for name, weights in module.named_parameters(recurse=False):
            if weights.ndim in (2, 3) and "bias" not in name:
                owners[id(weights)] = crosswise
    # Embeddings and the head stay as they are.
    head: Any = getattr(network, "get_output_embeddings", lambda: None)()
    for module in network.modules():
        if module is head or isinstance(module, torch.nn.Embedding):
            for weights in module.parameters():
                owners.pop(id(weights), None)
    found = []
    for name, weights in network.named_parameters():
        if id(weights) in owners:
            found.append((name, weights, owners[id(weights)]))
    return found


def _each(weights: Any) -> list[Any]:
    """The matrices of experts, or the one matrix."""
    return [weights] if weights.ndim == 2 else list(weights)


def _changed(weights: Any, damage: Damage, generator: Any) -> Any:
    import torch

    if damage.way == "noise":
        drawn = torch.randn(weights.shape, generator=generator)
        return weights + drawn * weights.std() * damage.dose
    if damage.way == "prune":
        count = int(damage.dose * weights.numel())
        if not count:
            return weights
        sizes = weights.abs()
        ordered = np.partition(sizes.numpy(), count - 1, axis=None)
        return weights * (sizes > ordered[count - 1])
    if damage.way == "K":
        return torch.from_numpy(k_quants.rounded(weights.numpy(), damage.dose))
    width = weights.shape[1]
    missing = -width % GROUP
    rows = torch.nn.functional.pad(weights, (0, missing))
    return _rounded(rows, damage.dose)[:, :width]


def _rounded(rows: Any, bits: float) -> Any:
    """Weights [output, input], each row in groups of GROUP, in so many bits."""
    import torch

    name = LLAMA_CPP.get(bits)
    if name:
        import gguf

        kind = gguf.GGMLQuantizationType[name]
        packed = gguf.quantize(rows.numpy(), kind)
        return torch.from_numpy(gguf.dequantize(packed, kind))
    # Symmetric: the largest of a group is the largest whole number of so many bits.
    groups = rows.unflatten(1, (-1, GROUP))
    largest = torch.linalg.vector_norm(groups, torch.inf, dim=-1, keepdim=True)
    highest = 2 ** (bits - 1) - 1
    scale = largest.clamp(min=1e-12) / highest
    return groups.div(scale).round_().mul_(scale).flatten(1)
