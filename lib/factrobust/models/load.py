"""From a name to a model: embedded, a folder, a GGUF file, a hub id with its revision, an endpoint."""

from __future__ import annotations

import csv
import difflib
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from factrobust.models import weights
from factrobust.models.endpoint import check_format, is_endpoint, read_endpoint
from factrobust.models.interface import Generation, Job, Model, ModelError
from factrobust.models.prompts import CHATS, FORMATS
from factrobust.paths import DATA
from factrobust.records import Call, Records

if TYPE_CHECKING:
    from factrobust.models.engine import LocalModel


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
    key=MY_KEY"): see `models.endpoint`. It is asked as little as weights are loaded.
    `dtype` and `prompt_format` (a key of `prompts.FORMATS`: how the model is asked) override what
    data/models.csv has for the model, see `models.settings`. For a model that is not there they are
    float32, and its chat template if it has one, else the bare question for an encoder-decoder and
    two-shot for others.
    With `records`, answers come from the store, and the weights are loaded only when one is missing.

    Raises ModelError for a name that is none of these, and for weights that are not the pinned ones.
    """
    if settings := settings_of(name):
        prompt_format = prompt_format or settings.prompt_format
        dtype = dtype or settings.dtype
    dtype = dtype or "float32"
    if dtype not in DTYPES:
        raise ModelError(f"dtype {dtype!r} is unknown; choose one of {', '.join(DTYPES)}")
    if prompt_format is not None and prompt_format not in FORMATS:
        raise ModelError(
            f"prompt format {prompt_format!r} is unknown; choose one of {', '.join(FORMATS)}"
        )
    if is_endpoint(name):
        return _endpoint(name, dtype, prompt_format, records)
    source = find_source(name)
    if name not in weights.EMBEDDED:
        chat = chat_template(load_tokenizer(*tokenizer_location(source)))
        if settings and not chat:
            chat = CHATS.get(settings.chat_template)
        source = replace(source, chat=chat, prompt_format=_own_format(source, chat))
    if prompt_format is not None:
        if FORMATS[prompt_format].chat and source.chat is None:
            raise ModelError(
                f"{name} has no chat template, so it cannot be asked as {prompt_format!r}"
            )
        source = replace(source, prompt_format=prompt_format)
    if records is None:
        return build_model(source, dtype)
    return RecordedModel(
        records,
        lambda: _reach(source, dtype),
        name=name,
        fingerprint=source.fingerprint(dtype),
        prompt_format=source.prompt_format or "two-shot",
        chat=source.chat,
    )


def _own_format(source: Source, chat: tuple[str, str] | None) -> str:
    if chat:
        return "chat"
    return "question" if is_encoder_decoder(*location(source)) else "two-shot"


def _endpoint(name: str, dtype: str, prompt_format: str | None, records: Records | None) -> Model:
    address = read_endpoint(name)
    if dtype != "float32":
        raise ModelError(
            f"{name} computes in its server's own precision, not in {dtype}; leave dtype out"
        )
    prompt_format = prompt_format or address.format
    check_format(address, prompt_format)

    def connect() -> Model:
        from factrobust.models.endpoint import open_endpoint

        return open_endpoint(address, prompt_format, records)

    if records is None:
        return connect()
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


def _reach(source: Source, dtype: str) -> Model:
    """The model on the workers of the cluster that FACTROBUST_CLUSTER names, else in memory."""
    if not (address := os.environ.get("FACTROBUST_CLUSTER")):
        return build_model(source, dtype)
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
        fingerprint=source.fingerprint(dtype),
        prompt_format=source.prompt_format or "two-shot",
        chat=source.chat,
    )


FILE = DATA / "models.csv"
DTYPES = ("float32", "bfloat16", "float16")
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential", "cpu")
COLUMNS = (
    *("model", "dtype", "device_map", "tokens_per_batch", "prompt_format", "chat_template"),
    *("architecture", "parameters", "layers", "key_value_heads", "head_size", "width"),
    *("vocabulary", "tied", "tokenizer"),
)
WORDS = {
    "dtype": DTYPES,
    "device_map": DEVICE_MAPS,
    "prompt_format": tuple(FORMATS),
    "chat_template": ("yes", "no", *CHATS),
    "architecture": ("decoder", "encoder-decoder", ""),
    "tied": ("yes", "no", ""),
}
NUMBERS = ("parameters", "layers", "key_value_heads", "head_size", "width", "vocabulary")


@dataclass(frozen=True)
class Size:
    """What a model's cost follows from."""

    encoder_decoder: bool
    parameters: int
    layers: int
    key_value_heads: float
    head_size: int
    width: int
    vocabulary: int
    tied: bool


@dataclass(frozen=True)
class Settings:
    """A line of the table; `size` is None unless all of it is known."""

    model: str
    dtype: str
    device_map: str
    tokens_per_batch: int
    prompt_format: str
    chat_template: str
    size: Size | None
    tokenizer: str


def settings_of(name: str) -> Settings | None:
    """The line of a model, whatever revision its name has after an @; None where there is none.

    Raises ModelError with line and remedy for a table that is not as described.
    """
    return read_settings(FILE).get(name.partition("@")[0])


@cache
def read_settings(path: Path) -> dict[str, Settings]:
    """All lines, by model."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ModelError(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}")
        found: dict[str, Settings] = {}
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            settings = _settings(row, where)
            if settings.model in found:
                raise ModelError(
                    f"{where}: {settings.model} has a line already; keep one of the two"
                )
            found[settings.model] = settings
    return found


def _settings(row: dict[str, str], where: str) -> Settings:
    if None in row or None in row.values():
        raise ModelError(f"{where}: not {len(COLUMNS)} cells; put texts with commas in quotes")
    for column, words in WORDS.items():
        if row[column] not in words:
            raise ModelError(
                f"{where}: the {column} {row[column]!r} is unknown; write one of "
                f"{', '.join(word or 'nothing' for word in words)}"
            )
    number = {name: _number(row, name, where) for name in (*NUMBERS, "tokens_per_batch")}
    if not (batch := number.pop("tokens_per_batch")):
        raise ModelError(f"{where}: tokens_per_batch is empty; write a number such as 2048")
    whole = {name: int(value) for name, value in number.items() if name != "key_value_heads"}
    size = Size(
        encoder_decoder=row["architecture"] == "encoder-decoder",
        key_value_heads=number["key_value_heads"],
        tied=row["tied"] == "yes",
        **whole,
    )
    known = all(number.values()) and row["architecture"] and row["tied"]
    return Settings(
        model=row["model"],
        dtype=row["dtype"],
        device_map=row["device_map"],
        tokens_per_batch=int(batch),
        prompt_format=row["prompt_format"],
        chat_template=row["chat_template"],
        size=size if known else None,
        tokenizer=row["tokenizer"],
    )


def _number(row: dict[str, str], column: str, where: str) -> float:
    """A number above 0; 0 for an empty cell."""
    try:
        value = float(row[column] or 0)
    except ValueError:
        value = -1.0
    if value < 0 or (value != int(value) and column != "key_value_heads"):
        raise ModelError(
            f"{where}: the {column} {row[column]!r} is no whole number above 0; correct it"
        )
    return value


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


def build_model(source: Source, dtype: str) -> LocalModel:
    """The model in memory, its weights on the GPUs if there are any.

    Raises ModelError for an architecture that cannot be probed here.
    """
    with weights.loading():
        return _build(source, dtype)


def _build(source: Source, dtype: str) -> LocalModel:
    import torch

    from factrobust.models.engine import prepack

    where, options = location(source)
    settings = settings_of(source.name)
    batch = {"tokens_per_batch": settings.tokens_per_batch} if settings else {}
    spread = settings.device_map if settings else "auto"
    device: dict[str, Any] = {"device_map": spread} if torch.cuda.is_available() else {}
    build, network_class = _classes(source, where, options)
    network, loaded = network_class.from_pretrained(
        where, dtype=getattr(torch, dtype), output_loading_info=True, **device, **options
    )
    if missing := sorted(loaded["missing_keys"]):  # transformers fills them with random numbers
        raise ModelError(
            f"the files of {source.name} lack {len(missing)} of its weights, such as {missing[0]}; "
            "fetch them anew, or save the whole model"
        )
    model = build(
        network,
        load_tokenizer(*tokenizer_location(source)),
        name=source.name,
        fingerprint=source.fingerprint(dtype),
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
        config = _configuration(where, options)
        if config.is_encoder_decoder:
            from transformers import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING, AutoModelForSeq2SeqLM

            from factrobust.models.encdec import Seq2SeqLM

            if type(config) not in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
                raise ModelError(
                    f"{source.name} is an encoder-decoder of type {config.model_type!r}, which does "
                    "not answer texts with texts; use one such as T5 or BART"
                )
            return Seq2SeqLM, AutoModelForSeq2SeqLM
    from transformers import AutoModelForCausalLM

    from factrobust.models.causal import CausalLM

    return CausalLM, AutoModelForCausalLM


def is_encoder_decoder(where: str, options: dict[str, Any]) -> bool:
    """What the configuration at a `location` says."""
    return bool(_configuration(where, options).is_encoder_decoder)


def _configuration(where: str, options: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    from factrobust.models import extra

    extra.register()
    return AutoConfig.from_pretrained(where, **options)


def load_tokenizer(where: str, options: dict[str, Any]) -> Any:
    """The tokenizer at a `tokenizer_location`."""
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


def chat_template(tokenizer: Any) -> tuple[str, str] | None:
    """Text before and after the user's message under the tokenizer's chat template."""
    if not tokenizer.chat_template:
        return None
    mark = "USER-MESSAGE"
    text = tokenizer.apply_chat_template(
        [{"role": "user", "content": mark}], tokenize=False, add_generation_prompt=True
    )
    before, _, after = text.partition(mark)
    return before, after


class RecordedModel(Model):
    """Answers from the store; what is missing is computed, and committed batch by batch.

    The weights are loaded at the first missing answer and never before, so a run that finds
    everything in the records needs neither them nor torch.
    """

    def __init__(
        self,
        records: Records,
        load: Callable[[], Model],
        *,
        name: str,
        fingerprint: str,
        prompt_format: str,
        chat: tuple[str, str] | None,
    ) -> None:
        self.name, self.fingerprint = name, fingerprint
        self.prompt_format, self.chat = prompt_format, chat
        self._records, self._load = records, load
        self._loaded: Model | None = None

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        calls = [self._call(job, request) for request in job.requests]
        known = self._records.get(calls)
        hits = [i for i, value in enumerate(known) if value is not None]
        if hits:
            yield hits, [_from_record(job, i, known[i]) for i in hits]
        # Equal requests are one call: asked once, answered everywhere.
        missing: dict[Call, list[int]] = {}
        for i, value in enumerate(known):
            if value is None:
                missing.setdefault(calls[i], []).append(i)
        if not missing:
            return
        if self._loaded is None:
            self._loaded = self._load()
        todo = [positions[0] for positions in missing.values()]
        for indices, values in self._loaded.answer(job.subset(todo)):
            done = [calls[todo[i]] for i in indices]
            self._records.put(done, [_to_record(v) for v in values])
            everywhere = [
                (i, v) for call, v in zip(done, values, strict=True) for i in missing[call]
            ]
            yield [i for i, _ in everywhere], [v for _, v in everywhere]

    def _call(self, job: Job, request: dict[str, Any]) -> Call:
        parameters = {k: v for k, v in request.items() if k != "prompt"} | job.settings
        return Call(
            self.fingerprint,
            job.operation,
            request["prompt"],
            json.dumps(parameters, sort_keys=True),
        )


def _to_record(value: Any) -> Any:
    if isinstance(value, Generation):
        return value.to_record()
    return [v.to_record() if isinstance(v, Generation) else v for v in value]


def _from_record(job: Job, index: int, value: Any) -> Any:
    prompt = job.requests[index]["prompt"]
    if job.operation == "generate":
        return Generation.from_record(prompt, value)
    if job.operation == "sample":
        return [Generation.from_record(prompt, v) for v in value]
    return np.array(value, dtype=np.float32)


def parameter_count(name: str) -> int:
    """Number of weights of a model by the name it is loaded by; an embedding that is also the head
    counts once.

    Read from data/models.csv or the headers of safetensors or GGUF files; for another hub id the hub
    is asked. Raises
    ModelError where none of these says it.
    """
    if name in weights.EMBEDDED:
        return weights.EMBEDDED[name].parameters
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
