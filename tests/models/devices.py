"""GPUs where there are none: CPU tensors that carry the label cuda:N, and refuse what CUDA refuses.

Inside `labelled()` every operation of torch looks at the labels of what it gets. Tensors of two devices
are refused as CUDA does it, but for a CPU's number and a CPU's indices; what comes out carries the
label. The numbers are the CPU's own, so that what is computed on labels equals what is computed without.
"""

import copy

import torch
from accelerate.hooks import AlignDevicesHook, add_hook_to_module
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves, tree_map

CPU = torch.device("cpu")
FIRST = torch.device("cuda:0")
Tensor = torch.Tensor


def label(tensor):
    return getattr(tensor, "label", CPU)


def labels(values):
    """Of all tensors in nested lists and dicts, but a CPU's single numbers, which go anywhere."""
    found = set()
    for leaf in tree_leaves(values):
        if not isinstance(leaf, Tensor):
            continue
        if leaf.dim() or label(leaf) != CPU:
            found.add(label(leaf))
    return found


def put(values, device, given=()):
    """The same values, whose tensors now carry the label; those that were `given` keep theirs."""
    kept = {id(leaf) for leaf in tree_leaves(given)}

    def one(leaf):
        if isinstance(leaf, Tensor) and id(leaf) not in kept:
            leaf.label = device
        return leaf

    return tree_map(one, values)


# What tensors are asked of their place. Weights without numbers are on "meta", and have no label.
ASKED = {
    Tensor.device.__get__: lambda x: x.device if x.is_meta else label(x),
    Tensor.is_cuda.__get__: lambda x: label(x).type == "cuda",
    Tensor.is_cpu.__get__: lambda x: label(x).type == "cpu",
    Tensor.get_device: lambda x: label(x).index or 0,
}
INDEXING = (Tensor.__getitem__, Tensor.__setitem__)
NUMPY = (Tensor.numpy, Tensor.__array__)
MOVES = ("to", "cpu", "cuda")
SET_DATA = Tensor.data.__set__
OF_ANY_DEVICE = (Tensor.copy_, torch._has_compatible_shallow_copy_type, SET_DATA)


class Labels(TorchFunctionMode):
    """See above."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if function in ASKED:
            return ASKED[function](args[0])
        if function in NUMPY and label(args[0]) != CPU:
            there = label(args[0])
            raise TypeError(f"can't convert {there} device type tensor to numpy. Use .cpu()")
        if name in MOVES and isinstance(args[0], Tensor):
            tensor, *asked = *args, *kwargs.values()
            return moved(name, tensor, asked)
        if function is Tensor.__deepcopy__:  # its memo holds tensors of any device
            return put(function(*args), label(args[0]))
        if function == SET_DATA:
            args[0].label = label(args[1])
        if function in OF_ANY_DEVICE:
            return function(*args, **kwargs)
        if function in INDEXING:
            return indexed(function, *args)
        return computed(function, args, kwargs)


def moved(name, tensor, asked):
    """`tensor.to(*asked)`, `tensor.cpu()` or `tensor.cuda()`."""
    device = label(tensor)
    dtypes = []
    for one in asked:
        if isinstance(one, Tensor):
            device = label(one)
            dtypes.append(one.dtype)
        elif isinstance(one, torch.dtype):
            dtypes.append(one)
        elif isinstance(one, str | int | torch.device) and not isinstance(one, bool):
            device = torch.device(one)
    if name == "cpu":
        device = CPU
    if name == "cuda" or device == torch.device("cuda"):
        device = FIRST
    if device.type == "meta":
        return tensor.to("meta", *dtypes)
    changed = tensor.to(*dtypes) if dtypes else tensor
    if changed is tensor:
        if device == label(tensor):
            return tensor
        source = tensor if tensor.requires_grad else tensor.detach()
        changed = source.clone()
    return put(changed, device)


def indexed(function, tensor, index, *value):
    here = label(tensor)
    if labels(index) - {CPU, here}:
        raise RuntimeError(
            f"indices should be either on cpu or on the same device as the indexed tensor ({here})"
        )
    if labels(value) - {here}:
        raise RuntimeError(f"Expected all tensors to be on the same device: {here} (setitem)")
    return put(function(tensor, index, *value), here, (tensor, index, value))


def computed(function, args, kwargs):
    """On the one device of all that is given, or on the one that is asked for."""
    asked = kwargs.pop("device", None)
    found = labels((args, kwargs))
    if len(found) > 1:
        two = " and ".join(sorted(map(str, found)))
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two: "
            f"{two} ({function.__name__})"
        )
    device = next(iter(found), CPU)
    if asked is not None:
        device = torch.device(asked)
    if device.type == "meta":
        return function(*args, **kwargs, device="meta")
    return put(function(*args, **kwargs), device, (args, kwargs))


def labelled():
    """For a block in which tensors carry labels."""
    return Labels()


def spread(network, devices):
    """The network with the modules of these names (of whole blocks) on these devices, and with the hooks
    by which accelerate brings their inputs there. What is not named is on the first device; weights
    that modules on two devices share are on both, as accelerate has it."""
    first = next(iter(devices.values()))
    copies = {}
    for name, module in [*network.named_modules()]:
        place = torch.device(first)
        for start in sorted(devices, key=len):  # the innermost last
            if f"{name}.".startswith(f"{start}."):
                place = torch.device(devices[start])
        weights = [
            *module.named_parameters(recurse=False),
            *module.named_buffers(recurse=False),
        ]
        for key, weight in weights:
            shared = id(weight), place
            if shared not in copies:
                free = label(weight) in (CPU, place)
                copies[shared] = weight if free else copy.deepcopy(weight)
            placed = copies[shared]
            placed.label = place
            setattr(module, key, placed)
        hook = AlignDevicesHook(execution_device=place, io_same_device=name == "")
        hook.init_hook = lambda module: module  # which would ask CUDA
        add_hook_to_module(module, hook)
    return network
