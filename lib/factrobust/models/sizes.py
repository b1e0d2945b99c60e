"""What is known of a model without loading it: how many parameters, pretrained or tuned."""

from __future__ import annotations

import json
import math
from pathlib import Path

from factrobust.models.base import Model, ModelError
from factrobust.models.settings import settings_of
from factrobust.models.weights import EMBEDDED


def parameter_count(name: str) -> int:
    """Number of weights of a model by the name it is loaded by; an embedding that is also the head
    counts once.

    Read from data/models.csv or the headers of safetensors or GGUF files; for another hub id the hub
    is asked. Raises
    ModelError where none of these says it.
    """
    if name in EMBEDDED:
        return EMBEDDED[name].parameters
    if (known := settings_of(name)) and known.size:
        return known.size.parameters
    path = Path(name).expanduser()
    if path.suffix == ".gguf" and path.is_file():
        from gguf import GGUFReader

        return sum(int(tensor.n_elements) for tensor in GGUFReader(path).tensors)
    if files := sorted(path.glob("*.safetensors")):
        return sum(_in_header(file) for file in files)
    try:
        from huggingface_hub import get_safetensors_metadata

        repository, _, revision = name.partition("@")
        counted = get_safetensors_metadata(repository, revision=revision or None).parameter_count
    except (
        Exception
    ) as error:  # network, authorisation, no safetensors: all mean that we cannot say
        raise ModelError(
            f"the number of parameters of {name!r} cannot be found ({type(error).__name__}); give a "
            "folder with .safetensors files, a .gguf file, or a hub id that can be reached"
        ) from error
    return sum(counted.values())


def kind(model: Model) -> str:
    """ "instruction-tuned" for a model with a chat template, "pretrained" for one without."""
    return "instruction-tuned" if model.chat else "pretrained"


def _in_header(file: Path) -> int:
    """Elements of all tensors of a safetensors file: 8 bytes of length, then JSON, then the data."""
    with file.open("rb") as opened:
        header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
    return sum(math.prod(t["shape"]) for name, t in header.items() if name != "__metadata__")
