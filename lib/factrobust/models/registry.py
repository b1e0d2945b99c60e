"""From a name to a model: embedded, a folder, a GGUF file, a hub id with its revision, an endpoint."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from factrobust.models import weights
from factrobust.models.base import Model, ModelError
from factrobust.models.building import (
    build_model,
    chat_template,
    is_encoder_decoder,
    load_tokenizer,
)
from factrobust.models.endpoint import check_format, is_endpoint, read_endpoint
from factrobust.models.prompts import CHATS, FORMATS
from factrobust.models.settings import DTYPES, settings_of
from factrobust.models.sources import Source, find_source, location, tokenizer_location

if TYPE_CHECKING:
    from factrobust.records import Records


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
    from factrobust.models.recorded import RecordedModel

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
