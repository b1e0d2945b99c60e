"""Adapters (LoRA and its kin) on a model: merged into its weights, or refused.

What counts is what peft says without merging: a merged network is compared with it.
"""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from factrobust.models.interface import ModelError
from factrobust.models.verify import gap_of, logprobs_of, rounding_of

HEADS = ("lm_head", "embed_out")
EMBEDDINGS = ("embed_tokens", "wte", "word_embeddings", "shared", *HEADS)
TOKENS = 12  # of the row with which a merged network is compared
MERGED = 4  # times the rounding of a dtype: merged weights are rounded once more


def merged(network: Any, folder: Path) -> Any:
    """The network with the adapter of a folder in its weights. ModelError for an adapter that is no
    change of weights, that lacks some, or that is another model's."""
    from peft import PeftConfig, PeftModel
    from peft.mapping import PEFT_TYPE_TO_TUNER_MAPPING
    from peft.utils import load_peft_weights

    config = PeftConfig.from_pretrained(str(folder))
    kind = str(getattr(config.peft_type, "value", config.peft_type))
    tuner = PEFT_TYPE_TO_TUNER_MAPPING.get(config.peft_type)
    if config.is_prompt_learning or not hasattr(tuner, "merge_and_unload"):
        raise ModelError(
            f"the adapter in {folder} ({kind}) does not change weights, and cannot be asked here; "
            "merge it into a model of its own, or give one that can be merged, such as LoRA"
        )
    if not any(folder.glob("adapter_model.*")):
        raise ModelError(f"{folder} holds no adapter_model.safetensors; fetch the adapter anew")
    held = load_peft_weights(str(folder), device="cpu")
    _resize(network, held, folder)
    tuned = PeftModel.from_pretrained(network, folder)
    _check_names(tuned, held, folder)
    expected = _log_probabilities(tuned.eval())
    _untie(tuned)
    whole = tuned.merge_and_unload()
    found = _log_probabilities(whole)
    gap = gap_of(found, expected)
    if not gap <= MERGED * rounding_of(whole.dtype):
        raise ModelError(
            f"the adapter in {folder} ({kind}), merged into its model, says something else than "
            f"beside it (by {gap:.2g} of the largest log-probability); such adapters cannot be "
            "asked here"
        )
    return whole


def _resize(network: Any, held: dict[str, torch.Tensor], folder: Path) -> None:
    """Give a network as many tokens as the adapter's own embedding has, if that is in its file.
    ModelError where the head's new rows are not: they would be random."""
    resized = set()
    for name, weights in held.items():
        if not name.endswith(".weight"):
            continue
        path = name.removesuffix(".weight").removesuffix(".base_layer")
        *_, layer = path.split(".")
        size = len(network.get_input_embeddings().weight)
        if layer in EMBEDDINGS and len(weights) != size:
            network.resize_token_embeddings(len(weights), mean_resizing=False)
            resized.add(layer)
    head = network.get_output_embeddings()
    embedding = network.get_input_embeddings()
    is_separate = head is not None and head.weight is not embedding.weight
    is_saved = any(_names_one_of(HEADS, name) for name in held)
    if resized and is_separate and not is_saved:
        raise ModelError(
            f"the adapter in {folder} adds tokens, and its file lacks the head's weights for them; "
            "save it with save_embedding_layers=True"
        )


def _check_names(tuned: Any, held: dict[str, torch.Tensor], folder: Path) -> None:
    from peft import get_peft_model_state_dict

    wanted = {*get_peft_model_state_dict(tuned, save_embedding_layers=False)}
    lacking = sorted(wanted - held.keys())
    if lacking:
        raise ModelError(
            f"the adapter in {folder} lacks {len(lacking)} of its weights, such as {lacking[0]}; "
            "fetch it anew, or save the whole adapter"
        )
    unknown = sorted(held.keys() - wanted)
    strange = [name for name in unknown if not _names_one_of(EMBEDDINGS, name)]
    if strange:
        raise ModelError(
            f"the adapter in {folder} holds {len(strange)} weights for which its model has no "
            f"place, such as {strange[0]}; it was made for another model"
        )


def _names_one_of(layers: tuple[str, ...], name: str) -> bool:
    return any(layer in name for layer in layers)


def _untie(tuned: Any) -> None:
    """Give each layer that an adapter changes weights of its own: those of a tied head are also the
    embedding's, and the adapter changes only one of the two."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    users: dict[int, set[str]] = {}
    for name, weights in tuned.named_parameters(remove_duplicate=False):
        users.setdefault(id(weights), set()).add(name)
    layers = [module for module in tuned.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        base = layer.get_base_layer()
        for name, weights in list(base.named_parameters(recurse=False)):
            if len(users[id(weights)]) > 1:
                copied = nn.Parameter(weights.detach().clone(), requires_grad=False)
                setattr(base, name, copied)
                tuned.get_base_model().config.tie_word_embeddings = False


@torch.no_grad()
def _log_probabilities(network: Any) -> torch.Tensor:
    """Log-probabilities after the tokens of a short row."""
    config = network.config.get_text_config(decoder=True)
    ids = torch.arange(3, 3 + TOKENS, device=network.device)[None] % config.vocab_size
    more = {"decoder_input_ids": ids} if network.config.is_encoder_decoder else {}
    logits = network(input_ids=ids, **more).logits[0]
    return logprobs_of(logits).cpu()
