"""GGUF files: joined and described once, dequantised at each loading.

A file of 4-bit weights is read and dequantised faster than its float32 weights, six times as large,
would be read. So the cache holds the file itself, what transformers makes of its header, and an
index of its weights: no weight is there twice, on disk or in memory."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from factrobust.models import gguf_checks
from factrobust.models.interface import ModelError

FILE = "model.gguf"
INDEX = "tensors.json"
# Numbers dequantised at once, whole blocks of every kind. What a step leaves is then in the
# processor's cache for the next one, and memory for it is not asked from the system each time:
# three times as fast.
CHUNK = 1 << 16
# Experts lie in the file side by side, and transformers reads them only all at once.
UNREADABLE = ("qwen2moe", "qwen3moe", "gpt_oss", "gpt-oss", "minimax-m2")


@dataclass(frozen=True)
class Tensor:
    """A weight of the file. Like safetensors' own, it is read when transformers takes `[...]` of
    it."""

    file: Path
    architecture: str
    config: dict[str, Any]
    stored_name: str
    kind: int  # a number of gguf.GGMLQuantizationType
    shape: Sequence[int]  # outermost first
    offset: int  # of its first byte
    size: int  # in bytes

    def __getitem__(self, _: Any) -> Any:
        import torch
        from gguf import GGMLQuantizationType, dequantize

        kind = GGMLQuantizationType(self.kind)
        weights = np.empty(prod(self.shape), dtype=np.float32)
        bytes_each = self.size / len(weights)
        with open(self.file, "rb") as file:
            file.seek(self.offset)
            for low in range(0, len(weights), CHUNK):
                part = weights[low : low + CHUNK]
                blocks = np.fromfile(
                    file,
                    dtype=np.uint8,
                    count=round(len(part) * bytes_each),
                )
                part[:] = dequantize(blocks[None], kind)[0]
        if self.stored_name == "output.weight":  # a head lies in every file as it is
            return torch.from_numpy(weights.reshape(self.shape))
        processor = _processor(self.architecture, self.config)
        made = processor.process(
            weights.reshape(self.shape),
            self.stored_name,
            tensor_key_mapping={},
        )
        return torch.from_numpy(np.ascontiguousarray(made.weights))


def prepare(parts: Sequence[Path], folder: Path, name: str) -> None:
    """Make a folder of the file of which these are the parts: the file, its configuration and
    tokenizer in transformers' format, and the index of its weights. Raises ModelError for a file
    that says something which transformers' network would leave out (`gguf_checks`)."""
    import gguf
    from transformers import AutoConfig, AutoTokenizer, PreTrainedTokenizerFast

    folder.mkdir()
    with open(folder / FILE, "wb") as whole:
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, whole, 1 << 24)
    gguf_checks.check_form(folder / FILE, name)
    with _header_read_once():
        reader = gguf.GGUFReader(str(folder / FILE))
        gguf_checks.check_whole(reader, name)
        gguf_checks.check_tokenizer(reader, name)
        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=FILE, trust_remote_code=False)
        gguf_checks.complete_tokenizer(tokenizer, reader)
        config = AutoConfig.from_pretrained(folder, gguf_file=FILE, trust_remote_code=False)
        gguf_checks.complete_config(config, reader)
        index, config = _index(reader, config, name)
        gguf_checks.check_settings(reader, config, name)
    config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # Gemma's own class builds its vocabulary anew at each loading, which takes two seconds more.
    PreTrainedTokenizerFast.from_pretrained(folder).save_pretrained(folder)
    (folder / INDEX).write_text(json.dumps(index, indent=0))


@contextmanager
def _header_read_once() -> Iterator[None]:
    """Let gguf give the same reader of a file each time. transformers asks for it three times, and
    each reads a header with all tokens: so the first loading takes half as long."""
    import gguf

    class Reader(gguf.GGUFReader):
        """With a plain array, whose slices cost less than those of a mapped one."""

        @property  # type: ignore[override]
        def data(self) -> np.ndarray:
            return self._plain

        @data.setter
        def data(self, mapped: np.ndarray) -> None:
            self._plain = mapped.view(np.ndarray)

    original = gguf.GGUFReader
    gguf.GGUFReader = cache(Reader)  # type: ignore[misc, assignment]
    try:
        yield
    finally:
        gguf.GGUFReader = original  # type: ignore[misc]


def _index(reader: Any, config: Any, name: str) -> tuple[dict[str, Any], Any]:
    """The architecture of the file with the place of each parameter of the network in it, and the
    network's configuration, to which factors of its rotation were added."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import get_gguf_hf_weights_map

    architecture = reader.fields["general.architecture"].contents()
    if architecture in UNREADABLE:
        raise ModelError(
            f"{name} is of the architecture {architecture}, a mixture of experts, which is not "
            "read from a .gguf file; give the model's folder or hub id"
        )
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config)
    names = get_gguf_hf_weights_map(network, _processor(architecture, config.to_dict()))
    # Weights that the file lacks are named when it is loaded.
    gguf_checks.check_tensors(reader, network, (), name)
    places = {
        names[t.name]: {
            "stored_name": t.name,
            "kind": int(t.tensor_type),
            "shape": t.shape.tolist()[::-1],
            "offset": int(t.data_offset),
            "size": int(t.n_bytes),
        }
        for t in reader.tensors
        if t.name in names  # all but factors of the rotation
    }
    return {"architecture": architecture, "tensors": places}, network.config


def _processor(architecture: str, config: dict[str, Any]) -> Any:
    """What transformers does to the weights of an architecture, as llama.cpp's files change
    some."""
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor

    return TENSOR_PROCESSORS.get(architecture, TensorProcessor)(config=config)


def tensors(folder: Path, config: dict[str, Any]) -> dict[str, Tensor]:
    """The weights in a folder that `prepare` made, by the names of the network's parameters."""
    index = read_index(folder)
    of_file = {"file": folder / FILE, "architecture": index["architecture"], "config": config}
    return {name: Tensor(**of_file, **place) for name, place in index["tensors"].items()}


def read_index(folder: Path) -> dict[str, Any]:
    return json.loads((folder / INDEX).read_text())


def parameter_count(folder: Path) -> int:
    """Number of weights in a folder that `prepare` made."""
    return sum(prod(place["shape"]) for place in read_index(folder)["tensors"].values())


def read_network(auto: Any, folder: Path, **options: Any) -> Any:
    """What `from_pretrained` of one of transformers' Auto classes gives, of a folder that `prepare`
    made."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    weights = tensors(folder, config.to_dict())
    with torch.device("meta"):
        network_class = type(auto.from_config(config))
    return network_class.from_pretrained(
        None,
        config=config,
        state_dict=weights,
        **options,
    )
