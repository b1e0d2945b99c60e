"""From a name to where a model's weights are, before anything is loaded."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from factrobust.models import weights
from factrobust.models.base import ModelError
from factrobust.models.settings import settings_of

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Source:
    """Where a model's weights are and how it is asked, known before anything is loaded.

    `hub` and `tokenizer` are a repository and its commit, the latter if it is another one.
    """

    name: str
    identity: str
    prompt_format: str | None = None
    chat: tuple[str, str] | None = None
    hub: tuple[str, str] | None = None
    tokenizer: tuple[str, str] | None = None

    def fingerprint(self, dtype: str) -> str:
        """What a record says of the weights that gave it."""
        return f"{self.identity} {dtype}"


def find_source(name: str) -> Source:
    """Where the weights of that name are; reads the files of a folder once, and may ask the hub.

    Raises ModelError for a name that is nothing that can be loaded.
    """
    if entry := weights.EMBEDDED.get(name):
        return Source(name, f"sha256:{entry.sha256[:16]}", entry.prompt_format, entry.chat)
    path = Path(name).expanduser()
    if path.suffix == ".gguf" and path.is_file():
        return Source(name, f"sha256:{_hash_files([path])[:16]}")
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(
                f"the folder {name} holds no config.json; give a folder written by save_pretrained"
            )
        if not any(file for pattern in _TOKENIZER_FILES for file in path.glob(pattern)):
            # transformers would make up a tokenizer to which every word is unknown.
            raise ModelError(
                f"the folder {name} holds no tokenizer; write it there with the tokenizer's own "
                "save_pretrained"
            )
        files = sorted(p for p in path.iterdir() if p.suffix in _MODEL_FILES)
        return Source(name, f"sha256:{_hash_files(files)[:16]}")
    repository, _, revision = name.partition("@")
    if HUB_ID.fullmatch(repository) and path.suffix != ".gguf":
        commit = _hub_commit(repository, revision or "main", "config.json")
        source = Source(name, f"hub:{repository}@{commit}", hub=(repository, commit))
        settings = settings_of(name)
        return _with_tokenizer(source, settings.tokenizer) if settings else source
    near = difflib.get_close_matches(name.lower(), weights.EMBEDDED, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ModelError(
        f"no model is called {name!r}{hint} Known names: {', '.join(weights.EMBEDDED)}; or give an "
        "existing folder, a .gguf file, or a hub id such as org/model@revision"
    )


def _with_tokenizer(source: Source, name: str) -> Source:
    """The source with the tokenizer of that hub id, if there is one."""
    if not name:
        return source
    repository, _, revision = name.partition("@")
    commit = _hub_commit(repository, revision or "main", "tokenizer_config.json")
    identity = f"{source.identity} tokenizer {repository}@{commit}"
    return replace(source, identity=identity, tokenizer=(repository, commit))


_TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.spm")
_MODEL_FILES = (".safetensors", ".bin", ".json", ".jinja", ".model", ".txt")


def _hash_files(files: list[Path]) -> str:
    """SHA-256 of files, remembered by path, size and time: big weights are read once."""
    stats = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
    key = hashlib.sha256(json.dumps(stats).encode()).hexdigest()[:32]
    known = weights.cache_folder() / "hashes" / key
    if known.is_file():
        return known.read_text()
    digest = weights.sha256(files)
    try:
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(digest)
    except OSError:  # a cache that cannot be written costs time, nothing else
        pass
    return digest


def _hub_commit(repository: str, revision: str, file: str) -> str:
    """The commit that a revision names: as given if it is one, from the hub or its cache (there of
    that file) if not."""
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    from huggingface_hub import constants, try_to_load_from_cache

    try:
        if not constants.HF_HUB_OFFLINE:
            from huggingface_hub import model_info

            return str(model_info(repository, revision=revision, timeout=10).sha)
    except Exception as error:  # network, authorisation, no such model: the cache may still have it
        reason = f" ({type(error).__name__})"
    else:
        reason = " (offline)"
    cached = try_to_load_from_cache(repository, file, revision=revision)
    if isinstance(cached, str):
        return Path(cached).parent.name
    raise ModelError(
        f"{repository}@{revision} is neither reachable on the hub{reason} nor in its local cache; "
        "check the spelling and the network, or give a folder"
    )


def location(source: Source) -> tuple[str, dict[str, Any]]:
    """What to hand to from_pretrained; embedded weights are checked, which takes half a second.

    Only hub models may touch the network.
    """
    # transformers asks the hub about tokenizers even for some local folders: keep it from that.
    if source.hub:
        return source.hub[0], {"revision": source.hub[1]}
    if source.name in weights.EMBEDDED:
        folder = weights.embedded_folder(source.name)
    elif source.name.endswith(".gguf"):
        file = Path(source.name).expanduser()
        folder = weights.gguf_folder(file, _hash_files([file]))
    else:
        folder = Path(source.name).expanduser()
    return os.fspath(folder), {"local_files_only": True}


def tokenizer_location(source: Source) -> tuple[str, dict[str, Any]]:
    """What to hand to a tokenizer's from_pretrained."""
    if source.tokenizer:
        return source.tokenizer[0], {"revision": source.tokenizer[1]}
    return location(source)
