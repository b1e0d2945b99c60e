"""From the files of a model to the model in memory: its network, tokenizer and chat template."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factrobust.models import weights
from factrobust.models.base import ModelError
from factrobust.models.settings import settings_of
from factrobust.models.sources import Source, location, tokenizer_location

if TYPE_CHECKING:
    from factrobust.models.local import LocalModel


def build_model(source: Source, dtype: str) -> LocalModel:
    """The model in memory, its weights on the GPUs if there are any.

    Raises ModelError for an architecture that cannot be probed here.
    """
    with weights.loading():
        return _build(source, dtype)


def _build(source: Source, dtype: str) -> LocalModel:
    import torch

    from factrobust.models.prepacked import prepack

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


def is_encoder_decoder(where: str, options: dict[str, Any]) -> bool:
    """What the configuration at a `location` says."""
    return bool(_configuration(where, options).is_encoder_decoder)


def _configuration(where: str, options: dict[str, Any]) -> Any:
    from transformers import AutoConfig

    from factrobust.models import openelm

    openelm.register()
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
