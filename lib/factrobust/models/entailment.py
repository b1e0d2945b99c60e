"""Does one text follow from another? Natural language inference, from the records where they hold it.

torch and transformers are imported only where a probability is missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from factrobust.models.base import ModelError
from factrobust.models.encoders import hub_id
from factrobust.models.once import Computed, once
from factrobust.models.weights import loading, sha256
from factrobust.records import Call, Records

FILES = (".safetensors", ".bin", ".json", ".model", ".txt")  # of a folder, by their ending
LABEL = "entailment"
MAX_TOKENS = 512  # of premise and hypothesis; a longer pair is cut
CHARACTERS = 4096  # of a batch, padding included


def open_entailment(name: str | Path, *, records: Records | None = None) -> Entailment:
    """The NLI model of that name, loaded when it is first needed.

    `name` is a folder in transformers' format, or a hub id with its revision, such as
    "microsoft/deberta-xlarge-mnli@<commit>", of a classifier of sequence pairs one of whose labels
    is "entailment". With `records`, probabilities come from the store, and the network is loaded
    only when one is missing. Raises ModelError for a name that is neither.
    """
    return Entailment(name, records)


class Entailment:
    """P(entailment) of pairs of texts, in float32, on a GPU where there is one.

    Attributes:
        name: the folder's own name, or the hub id.
        fingerprint: what determines its numbers: hash of the folder's files or hub revision, and
            dtype.
    """

    def __init__(self, source: str | Path, records: Records | None = None) -> None:
        self._source, self._records = source, records
        if Path(source).is_dir():
            self.name = Path(source).name
            files = sorted(file for file in Path(source).iterdir() if file.suffix in FILES)
            identity = f"sha256:{sha256(files)[:16]}"
        else:
            self.name = str(source)
            identity = "hub:" + "@".join(hub_id(self.name))
        self.fingerprint = f"{identity} float32"

    def probability(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """P(entailment) of each (premise, hypothesis), float64 [pair], in [0, 1].

        Equal pairs are computed once; finished batches are committed. Raises ModelError for what is
        no pair of strings, and, when the network is loaded, for one that is no NLI model.
        """
        asked = [list(pair) for pair in pairs]
        for pair in asked:
            if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise ModelError(f"{pair!r} is no pair of texts; give (premise, hypothesis)")
        settings = json.dumps({"max_tokens": MAX_TOKENS})
        calls = [Call(self.fingerprint, LABEL, json.dumps(pair), settings) for pair in asked]

        def compute(numbers: list[int]) -> Computed:
            from factrobust.models.batches import Batch, in_batches

            loaded = (
                self._network
            )  # before the batches, whose inference mode would mark the weights

            def run(batch: list[int]) -> Batch:
                return batch, self._probabilities(loaded, [asked[i] for i in batch])

            sizes = [sum(map(len, asked[i])) + 8 for i in numbers]
            return in_batches(numbers, sizes, run, budget=CHARACTERS, name=self.name)

        return np.array(once(self._records, calls, compute, label=f"{self.name} {LABEL}"))

    def _probabilities(self, loaded: tuple[Any, Any, int], pairs: list[list[str]]) -> list[float]:
        network, tokenizer, label = loaded
        longest = min(MAX_TOKENS, getattr(network.config, "max_position_embeddings", MAX_TOKENS))
        batch = tokenizer(
            *map(list, zip(*pairs, strict=True)),
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        ).to(network.device)
        values: list[float] = network(**batch).logits.float().softmax(-1)[:, label].tolist()
        return values

    @cached_property
    def _network(self) -> tuple[Any, Any, int]:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        options: dict[str, Any] = {"local_files_only": True}
        where = str(self._source)
        if not Path(self._source).is_dir():
            where, revision = hub_id(self.name)
            options = {"revision": revision}
        with loading():
            network, about = AutoModelForSequenceClassification.from_pretrained(
                where, dtype=torch.float32, output_loading_info=True, **options
            )
        labels = {name.lower(): int(i) for i, name in network.config.id2label.items()}
        if LABEL not in labels:
            raise ModelError(
                f"{self.name} has no label {LABEL!r} but {', '.join(labels)}; give an NLI model, such "
                "as microsoft/deberta-xlarge-mnli@<commit>"
            )
        if missing := sorted(about["missing_keys"]):
            raise ModelError(
                f"{self.name} lacks weights of its classifier ({', '.join(missing)}), which would be "
                "random; give a model that was fine-tuned on NLI"
            )
        tokenizer = AutoTokenizer.from_pretrained(where, **options)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return network.eval().to(device), tokenizer, labels[LABEL]
