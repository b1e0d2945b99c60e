"""From a name to a model: embedded, a folder, a GGUF file, a hub id with its revision, an endpoint."""

from __future__ import annotations

import difflib
import gc
import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factrobust.models import weights
from factrobust.models.base import Model, ModelError
from factrobust.models.endpoint_address import check_format, is_address, parse_address
from factrobust.models.prompts import FORMATS
from factrobust.models.settings import DTYPES, settings_of

if TYPE_CHECKING:
    from factrobust.models.local import LocalModel
    from factrobust.records import Records

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


@dataclass(frozen=True)
class Source:
    """Where a model's weights are and how it is asked, known before anything is loaded."""

    name: str
    identity: str
    prompt_format: str | None = None
    chat: tuple[str, str] | None = None
    hub: tuple[str, str] | None = None


def load_model(
    name: str,
    *,
    dtype: str | None = None,
    prompt_format: str | None = None,
    records: Records | None = None,
) -> Model:
    """The model of that name, in memory.

    `name` is an embedded model ("gemma-3-270m", "smollm2-135m-instruct"), a folder in transformers'
    format, a .gguf file, or a hub id, with its revision after an @ ("org/model@0123abc"). Folders
    and hub ids may hold encoder-decoder models (T5, BART), which answer as `Seq2SeqLM` says. An
    OpenAI-compatible endpoint is its URL and a model's name there ("http://localhost:8000/v1 llama
    key=MY_KEY"): see `models.endpoint_address`. It is asked as little as weights are loaded.
    `dtype` and `prompt_format` (a key of `prompts.FORMATS`: how the model is asked) override what
    data/models.csv has for the model, see `models.settings`. For a model that is not there they are
    float32, and its chat template if it has one, two-shot if not.
    With `records`, answers come from the store, and the weights are loaded only when one is missing.

    Raises ModelError for a name that is none of these, and for weights that are not the pinned ones.
    """
    if settings := settings_of(name):
        if settings.cannot_load:
            raise ModelError(f"{name} cannot be loaded: {settings.cannot_load}")
        prompt_format = prompt_format or settings.prompt_format
        dtype = dtype or settings.dtype
    dtype = dtype or "float32"
    if dtype not in DTYPES:
        raise ModelError(f"dtype {dtype!r} is unknown; choose one of {', '.join(DTYPES)}")
    if prompt_format is not None and prompt_format not in FORMATS:
        raise ModelError(
            f"prompt format {prompt_format!r} is unknown; choose one of {', '.join(FORMATS)}"
        )
    if is_address(name):
        return _endpoint(name, dtype, prompt_format, records)
    source = _source(name)
    if name not in weights.EMBEDDED:
        chat = _chat(_tokenizer(*_location(source)))
        source = replace(source, chat=chat, prompt_format="chat" if chat else "two-shot")
    if prompt_format is not None:
        if FORMATS[prompt_format].chat and source.chat is None:
            raise ModelError(
                f"{name} has no chat template, so it cannot be asked as {prompt_format!r}"
            )
        source = replace(source, prompt_format=prompt_format)
    if records is None:
        return _load(source, dtype)
    from factrobust.models.recorded import RecordedModel

    return RecordedModel(
        records,
        lambda: _reach(source, dtype),
        name=name,
        fingerprint=_fingerprint(source, dtype),
        prompt_format=source.prompt_format or "two-shot",
        chat=source.chat,
    )


def _endpoint(name: str, dtype: str, prompt_format: str | None, records: Records | None) -> Model:
    address = parse_address(name)
    if dtype != "float32":
        raise ModelError(
            f"{name} computes in its server's own precision, not in {dtype}; leave dtype out"
        )
    prompt_format = prompt_format or address.format
    check_format(address, prompt_format)

    def connect() -> Model:
        from factrobust.models.endpoint_served import open_endpoint

        return open_endpoint(address, prompt_format, records)

    if records is None:
        return connect()
    from factrobust.models.recorded import RecordedModel

    model = RecordedModel(
        records,
        connect,
        name=name,
        fingerprint=address.fingerprint,
        prompt_format=prompt_format,
        chat=address.chat,
    )
    model.lacks = address.lacks
    return model


def _fingerprint(source: Source, dtype: str) -> str:
    return f"{source.identity} {dtype}"


def _source(name: str) -> Source:
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
        commit = _hub_commit(repository, revision or "main")
        return Source(name, f"hub:{repository}@{commit}", hub=(repository, commit))
    near = difflib.get_close_matches(name.lower(), weights.EMBEDDED, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise ModelError(
        f"no model is called {name!r}{hint} Known names: {', '.join(weights.EMBEDDED)}; or give an "
        "existing folder, a .gguf file, or a hub id such as org/model@revision"
    )


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


def _hub_commit(repository: str, revision: str) -> str:
    """The commit that a revision names: as given if it is one, from the hub or its cache if not."""
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
    cached = try_to_load_from_cache(repository, "config.json", revision=revision)
    if isinstance(cached, str):
        return Path(cached).parent.name
    raise ModelError(
        f"{repository}@{revision} is neither reachable on the hub{reason} nor in its local cache; "
        "check the spelling and the network, or give a folder"
    )


def _reach(source: Source, dtype: str) -> Model:
    """The model on the workers of the cluster that FACTROBUST_CLUSTER names, else in memory."""
    if not (address := os.environ.get("FACTROBUST_CLUSTER")):
        return _load(source, dtype)
    from factrobust.models.cluster import ClusterModel

    if source.hub:
        there = "@".join(source.hub)  # the commit: a worker may know the revision as another one
    elif source.name in weights.EMBEDDED:
        there = source.name
    else:
        there = os.fspath(Path(source.name).expanduser().absolute())
    return ClusterModel(
        address,
        name=source.name,
        load_name=there,
        dtype=dtype,
        fingerprint=_fingerprint(source, dtype),
        prompt_format=source.prompt_format or "two-shot",
        chat=source.chat,
    )


def _load(source: Source, dtype: str) -> Model:
    # Imports and weights make a million objects that stay: looking for garbage among them again and
    # again takes a sixth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _network(source, dtype)
    finally:
        if collecting:
            gc.enable()


def _network(source: Source, dtype: str) -> Model:
    import torch

    from factrobust.models.prepacked import prepack

    weights.quiet_transformers()
    where, options = _location(source)
    settings = settings_of(source.name)
    batch = {"tokens_per_batch": settings.tokens_per_batch} if settings else {}
    spread = settings.device_map if settings else "auto"
    device: dict[str, Any] = {"device_map": spread} if torch.cuda.is_available() else {}
    build, network_class = _classes(source, where, options)
    network = network_class.from_pretrained(where, dtype=getattr(torch, dtype), **device, **options)
    model = build(
        network,
        _tokenizer(where, options),
        name=source.name,
        fingerprint=_fingerprint(source, dtype),
        prompt_format=source.prompt_format or "two-shot",
        chat=source.chat,
        **batch,
    )
    prepack(network)  # once its own logits have been checked
    return model


def _classes(source: Source, where: str, options: dict[str, Any]) -> tuple[type[LocalModel], Any]:
    """Our class and transformers' for a model, by what its configuration says; embedded ones are
    decoder-only."""
    if source.name not in weights.EMBEDDED:
        from transformers import AutoConfig

        config = AutoConfig.from_pretrained(where, **options)
        if config.is_encoder_decoder:
            from transformers import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, AutoModelForSeq2SeqLM

            from factrobust.models.seq2seq import Seq2SeqLM

            if type(config) not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
                raise ModelError(
                    f"{source.name} is an encoder-decoder of type {config.model_type!r}, which does "
                    "not answer texts with texts; use one such as T5 or BART"
                )
            return Seq2SeqLM, AutoModelForSeq2SeqLM
    from transformers import AutoModelForCausalLM

    from factrobust.models.causal import CausalLM

    return CausalLM, AutoModelForCausalLM


def _tokenizer(where: str, options: dict[str, Any]) -> Any:
    from transformers import AutoTokenizer, PreTrainedTokenizerFast

    folder = Path(where)
    if (folder / weights.MANIFEST).is_file():
        # A folder of our own making: the tokenizer is tokenizer.json as it stands. from_pretrained
        # would build and copy a large vocabulary several times to find that out (a test compares).
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=os.fspath(folder / "tokenizer.json"), **settings
        )
        template = folder / "chat_template.jinja"
        if template.is_file():
            tokenizer.chat_template = template.read_text(encoding="utf-8")
        return tokenizer
    return AutoTokenizer.from_pretrained(where, **options)


def _location(source: Source) -> tuple[str, dict[str, Any]]:
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


def _chat(tokenizer: Any) -> tuple[str, str] | None:
    """Text before and after the user's message under the tokenizer's chat template."""
    if not tokenizer.chat_template:
        return None
    mark = "USER-MESSAGE"
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": mark}], tokenize=False, add_generation_prompt=True
    )
    before, _, after = text.partition(mark)
    return before, after
