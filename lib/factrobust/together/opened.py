"""A model by the name that a person types for a card or a comparison, and the prompt it is asked in.

A name is that of data/models.csv, a folder, a .gguf file, a hub id, or "URL NAME" of a server.
"llama.cpp:FILE.gguf" asks llama.cpp's own server of that file (`models.llama_cpp`).
"NAME#FORMAT" asks in another prompt format, "NAME~round4" with other weights (`models.damage`).
"""

import copy
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd

from factrobust import load_model
from factrobust.models import llama_cpp
from factrobust.models.damage import Damage, damaged
from factrobust.models.endpoint import check_reached, named_endpoint
from factrobust.models.interface import Model, ModelError, RecordedModel
from factrobust.models.prompts import FORMATS
from factrobust.models.records import RecordsError, open_records
from factrobust.models.stored import stored_form
from factrobust.tables import FactsError

CHANGED = re.compile(r"(.+)~([A-Za-z]+) ?(\d*\.?\d+)", re.DOTALL)


class NameParts(NamedTuple):
    """What a name says."""

    text: str  # the model itself
    change: Damage | None  # of its weights
    prompt_format: str  # "" where none is chosen


def read_name(name: str) -> NameParts:
    """What a name says. A file or folder of exactly this name is itself, whatever signs are in it.
    ModelError for a format or a change that is none."""
    if not name.strip():
        raise ModelError("no model is named; give a name, a folder, a .gguf file or 'URL NAME'")
    text, prompt_format = name, ""
    change = None
    head, _, last = text.rpartition("#")
    if head and last in FORMATS and not exists(text):
        text, prompt_format = head, last
    if not exists(text) and (found := CHANGED.fullmatch(text)):
        text, change = found[1], Damage(found[2], float(found[3]))
    if re.search("#|(?<!^)~", text) and not exists(text):
        raise ModelError(
            f"{name!r} is no name of a model; write NAME, NAME~round 4 or NAME#FORMAT (of "
            f"{', '.join(FORMATS)})"
        )
    return NameParts(text, change, prompt_format)


def exists(name: str) -> bool:
    """Whether there is a file or folder of that name."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, RuntimeError, ValueError):  # too long, no home, a NUL
        return False


def is_address(name: str) -> bool:
    """Whether a name is "URL NAME" of a server."""
    return name.startswith(("http://", "https://"))


def short_name(name: str) -> str:
    """A model's name without the folders above it: a page names no place on a machine. A name of
    the hub, "org/model", is no folder, and stays."""
    if is_address(name):
        return name.partition(" ")[2] or name
    served = llama_cpp.START if name.startswith(llama_cpp.START) else ""
    path = name.removeprefix(served)
    is_place = path.startswith(("/", ".", "~")) or exists(re.split("~|, once more", path)[0])
    return served + (Path(path).name if is_place and "/" in path else path)


def chosen_format(name: Any) -> str:
    """The prompt format that was chosen on purpose with a name, or ""."""
    return read_name(name).prompt_format if isinstance(name, str) and not is_address(name) else ""


def open_model(name: Any, dtype: str | None = None) -> Model:
    """The model of a name, or of an endpoint's mapping; a model stays as it is. Weights are loaded
    once they are needed, in their usual form unless a `dtype` is given. ModelError, one sentence,
    for what cannot be had."""
    if isinstance(name, Model):
        return name
    if isinstance(name, str) and is_address(name):
        name = named_endpoint(name)
    if isinstance(name, Mapping):
        served = cast(RecordedModel, load_model(name, dtype=dtype, records=open_records()))
        served.load = partial(_reached, name, served.load)
        return served
    named = read_name(name)
    place = Path(named.text).expanduser() if exists(named.text) else None
    if place and place.is_dir() and not any(place.iterdir()):
        raise ModelError(f"the folder {named.text} is empty; give one that holds a model")
    model = _loaded(named, dtype)
    model.prompt_format = named.prompt_format or model.prompt_format
    model.name = name
    return model


def _reached(endpoint: Mapping[str, Any], load: Callable[[], Model]) -> Model:
    """The model of an endpoint, whose server is looked for before its first question."""
    check_reached(endpoint)
    return load()


def _loaded(named: NameParts, dtype: str | None) -> Model:
    try:
        if named.text.startswith(llama_cpp.START):
            return llama_cpp.served(named.text)
        if named.change:
            return damaged(named.text, named.change, dtype)
        return load_model(named.text, dtype=dtype, records=open_records())
    except (ModelError, FactsError, RecordsError):  # one sentence already
        raise
    except Exception as error:  # of transformers, safetensors, jinja, ...
        why = f"{type(error).__name__}: {error}".splitlines()[0][:160]
        raise ModelError(f"{named.text} holds no model ({why}); give another folder") from error


def format_for_facts(model: Model, facts: pd.DataFrame, chosen: str = "") -> str:
    """The prompt format in which a model is asked facts: the chosen one, or else its own, in place of
    which stands "instruction" (with a chat template) or "two-shot" where its own begins the answer and
    the facts have no such beginnings, or is a bare chat. ModelError for a chosen one that cannot be."""
    form = FORMATS[chosen or model.prompt_format]
    lacks_beginnings = form.prefix and bool((facts["prefix"] == "").any())
    if not chosen:
        if model.prompt_format == "chat" or lacks_beginnings:
            return "instruction" if model.chat else "two-shot"
        return model.prompt_format
    if form.chat and not model.chat:
        raise ModelError(
            f"{model.name} has no chat template and cannot be asked in {chosen}; choose one format "
            "for all with NAME#FORMAT, such as #two-shot"
        )
    if lacks_beginnings:
        raise ModelError(
            f"the format {chosen} begins the answers, and these facts have no such beginnings; "
            f"choose another one, such as #{'instruction' if form.chat else 'two-shot'}"
        )
    return chosen


def rounded_model(
    name: Any, bits: int, prompt_format: str, dtype: str | None = None
) -> Model | None:
    """The model of a name with its weights rounded to so many bits, asked in that format; None where
    its weights cannot be had, or were changed already."""
    if not isinstance(name, str) or is_address(name) or name.startswith(llama_cpp.START):
        return None
    named = read_name(name)
    if named.change:
        return None
    return in_format(open_model(f"{named.text}~round {bits}", dtype), prompt_format)


def alike(model: Model, first: Model) -> Model:
    """The model, sent the same tokens as the first where both have the same chat template. One that is
    listed may have learned with tokens before its template, which a folder of the same weights is not
    sent by itself. A server (0 bytes here) puts its tokens before a text by itself."""
    same = model.chat == first.chat and FORMATS[model.prompt_format].chat and model.weight_bytes
    return model.as_listed(first.listed_chat) if same else model


def stored_as(name: Any) -> str:
    """How the file of a model's name holds most of its weights; "" where nobody can tell."""
    if not isinstance(name, str) or is_address(name):
        return ""
    return stored_form(read_name(name).text.removeprefix(llama_cpp.START))


def in_format(model: Model, prompt_format: str) -> Model:
    """The model, asked in that prompt format; the given one keeps its own."""
    if model.prompt_format == prompt_format:
        return model
    other = copy.copy(model)
    other.prompt_format = prompt_format
    return other
