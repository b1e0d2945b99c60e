"""GPUs where there are none: CPU tensors that carry the label cuda:N, and refuse what CUDA refuses.

Inside `labelled()` every operation of torch looks at the labels of what it gets. Tensors of two devices
are refused as CUDA does it, but for a CPU's number and a CPU's indices; what comes out carries the
label. The numbers are the CPU's own, so that what is computed on labels equals what is computed without.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

CPU = torch.device("cpu")
Tensor = torch.Tensor
INDEXING = (Tensor.__getitem__, Tensor.__setitem__)
NUMPY = (Tensor.numpy, Tensor.__array__)
FACTORIES = {
    torch.tensor,
    torch.arange,
    torch.zeros,
    torch.ones,
    torch.empty,
    torch.full,
    torch.eye,
}
FACTORIES |= {torch.as_tensor, torch.linspace, torch.rand, torch.randn}


def label(tensor: Tensor) -> torch.device:
    return getattr(tensor, "label", CPU)


def labels(values: Any) -> list[torch.device]:
    """Of all tensors in nested lists and dicts, but a CPU's single numbers, which go anywhere."""
    found = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
    return [label(one) for one in found if one.dim() or label(one) != CPU]


def put(values: Any, device: torch.device, given: Any = ()) -> Any:
    """The same values, whose tensors now carry the label; those that were `given` keep theirs."""
    kept = {id(leaf) for leaf in tree_leaves(given)}

    def one(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) and id(leaf) not in kept:
            leaf.label = device
        return leaf

    return tree_map(one, values)


class Labels(TorchFunctionMode):
    """See above."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if function == Tensor.device.__get__:
            return label(args[0]) if args[0].device.type == "cpu" else args[0].device
        if function in (Tensor.is_cuda.__get__, Tensor.is_cpu.__get__):
            return label(args[0]).type == ("cuda" if function == Tensor.is_cuda.__get__ else "cpu")
        if function is Tensor.get_device:
            return label(args[0]).index or 0
        if function in NUMPY and label(args[0]) != CPU:
            raise TypeError(
                f"can't convert {label(args[0])} device type tensor to numpy. Use .cpu()"
            )
        if name in ("to", "cpu", "cuda") and isinstance(args[0], Tensor):
            return self._moved(function, args, kwargs)
        if function is Tensor.__deepcopy__:  # its memo holds tensors of any device
            return put(function(*args), label(args[0]))
        if function == Tensor.data.__set__:
            args[0].label = label(args[1])
        if function in (Tensor.copy_, torch._has_compatible_shallow_copy_type, Tensor.data.__set__):
            return function(*args, **kwargs)
        asked = kwargs.pop("device", None)
        if function in INDEXING:
            return self._indexed(function, args)
        found = {*labels((args, kwargs))}
        if len(found) > 1:
            two = " and ".join(sorted(map(str, found)))
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two: {two} ({name})"
            )
        if asked is not None and torch.device(asked).type == "meta":
            return function(*args, **kwargs, device=asked)
        device = torch.device(asked) if asked is not None else next(iter(found), CPU)
        return put(function(*args, **kwargs), device, (args, kwargs))

    def _moved(self, function: Any, args: Any, kwargs: Any) -> Any:
        tensor, *others = args
        named = [
            x
            for x in (*others, *kwargs.values())
            if isinstance(x, (str, int, torch.device)) and not isinstance(x, bool)
        ]
        named += [label(x) for x in others if isinstance(x, Tensor)]
        device = torch.device(named[0]) if named else label(tensor)
        device = {"cpu": CPU, "cuda": torch.device("cuda:0")}.get(function.__name__, device)
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda:0")
        dtypes = [x for x in (*others, *kwargs.values()) if isinstance(x, torch.dtype)]
        dtypes += [x.dtype for x in others if isinstance(x, Tensor)]
        if device.type == "meta":
            return tensor.to("meta", *dtypes)
        moved = tensor.to(*dtypes) if dtypes else tensor
        if moved is tensor and device != label(tensor):
            moved = tensor.detach().clone() if not tensor.requires_grad else tensor.clone()
        return put(moved, device) if moved is not tensor else tensor

    def _indexed(self, function: Any, args: Any) -> Any:
        tensor, index, *value = args
        here = label(tensor)
        if {*labels(index)} - {CPU, here}:
            raise RuntimeError(
                f"indices should be either on cpu or on the same device as the indexed tensor ({here})"
            )
        if {*labels(value)} - {here}:
            raise RuntimeError(f"Expected all tensors to be on the same device: {here} (setitem)")
        return put(function(*args), here, args)


@contextmanager
def labelled() -> Iterator[None]:
    with Labels():
        yield


def spread(network: Any, devices: Mapping[str, str]) -> Any:
    """The network with the modules of these names (of whole blocks) on these devices, and with the hooks
    by which accelerate brings their inputs there. What is not named is on the first device; weights
    that modules on two devices share are on both, as accelerate has it."""
    first = torch.device(next(iter(devices.values())))
    copies: dict[Any, Any] = {}
    for name, module in [*network.named_modules()]:
        inside = [start for start in devices if name == start or name.startswith(f"{start}.")]
        place = torch.device(devices[max(inside, key=len)]) if inside else first
        for key, weights in [
            *module.named_parameters(recurse=False),
            *module.named_buffers(recurse=False),
        ]:
            own = copies.setdefault(
                (id(weights), place),
                weights if label(weights) in (CPU, place) else copy.deepcopy(weights),
            )
            own.label = place
            setattr(module, key, own)
        hook = AlignDevicesHook(execution_device=place, io_same_device=name == "")
        hook.init_hook = lambda module: module  # which would ask CUDA
        add_hook_to_module(module, hook)
    return network
