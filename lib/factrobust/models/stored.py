"""How files hold a model's weights, whatever they become in memory."""

import json
import math
from collections import Counter
from pathlib import Path

from factrobust.models.load import EMBEDDED, GROWN, base_of, find_weights

HEADER = 8  # bytes that tell how long a safetensors file's header is
NAMES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16", "F64": "float64"}


def stored_form(name: str) -> str:
    """The form of most numbers in a model's file, such as "float32" or "Q4_K"; "" where it lies on
    the hub, or in files of another kind. Under an adapter it is that of the model below."""
    if name in EMBEDDED:
        return EMBEDDED[name].form
    weights = find_weights(name)
    if weights.hub:
        return ""
    place = Path(weights.name)
    place = place if place.exists() else GROWN / place
    if place.is_file():
        return _commonest(_of_gguf(place))
    if below := base_of(place):
        return stored_form(below)
    counts: Counter[str] = Counter()
    for file in place.glob("*.safetensors"):
        counts += _of_safetensors(file)
    return _commonest(counts)


def _commonest(counts: Counter[str]) -> str:
    return counts.most_common(1)[0][0] if counts else ""


def _of_gguf(file: Path) -> Counter[str]:
    import gguf

    counts: Counter[str] = Counter()
    for tensor in gguf.GGUFReader(str(file)).tensors:
        counts[tensor.tensor_type.name] += int(tensor.n_elements)
    return counts


def _of_safetensors(file: Path) -> Counter[str]:
    counts: Counter[str] = Counter()
    with open(file, "rb") as stream:
        length = int.from_bytes(stream.read(HEADER), "little")
        header = json.loads(stream.read(length))
    for tensor, about in header.items():
        if tensor != "__metadata__":
            kind = about["dtype"]
            counts[NAMES.get(kind, kind)] += math.prod(about["shape"])
    return counts
