"""How alike texts are: the cosine of their sentence embeddings, from the records where they hold it.

The records keep a number a group of texts, not the vectors. torch and transformers are imported only
when one is missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from factrobust.metrics.consistency import int_sim
from factrobust.models.base import ModelError
from factrobust.models.encoders import (
    EMBEDDED,
    MAX_TOKENS,
    encoder_fingerprint,
    encoder_folder,
    load_encoder,
    mean_states,
    pooling,
    token_states,
)
from factrobust.models.once import Computed, once
from factrobust.progress import progress_bar
from factrobust.records import Call, Records

CHARACTERS = 4096  # of a batch, padding included
TEXTS = 1024  # embedded before what follows from them is committed


def open_encoder(name: str | Path | None = None, *, records: Records | None = None) -> Encoder:
    """The sentence encoder of that name, loaded when it is first needed.

    None (or "all-MiniLM-L6-v2") is the embedded one; others are folders or hub ids with a revision,
    in sentence-transformers' or transformers' format. With `records`, similarities come from the
    store, and the network is loaded only when one is missing. Raises ModelError as
    `encoder_fingerprint` and `pooling` do.
    """
    return Encoder(None if name == EMBEDDED else name, records)


class Encoder:
    """Texts as vectors of length 1, in float32 on the CPU, and how alike the texts of a group are.

    Attributes:
        name: EMBEDDED, the folder's own name, or the hub id.
        fingerprint: what determines its numbers: hash of the weights or hub revision, and dtype.

    An empty text (nothing but white space) has no direction: its vector is zero.
    """

    def __init__(self, source: str | Path | None, records: Records | None = None) -> None:
        self.name = EMBEDDED if source is None else str(source)
        self.fingerprint = encoder_fingerprint(source)
        if source is not None and Path(source).is_dir():
            self.name = Path(source).name
            # The one thing in a folder that its hash leaves out; a revision covers everything.
            self.fingerprint += "" if pooling(Path(source)) == "mean" else " cls"
        self._source, self._records = source, records

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of the texts, float32 [text, dimension]; each distinct text is computed once."""
        distinct = {text: i for i, text in enumerate(dict.fromkeys(_strings(texts)))}
        with progress_bar(f"{self.name} embed", len(distinct)) as advance:
            vectors = [np.empty((0, self._network[0].config.hidden_size), dtype=np.float32)]
            for start in range(0, len(distinct), TEXTS):
                vectors.append(self._embed(list(distinct)[start : start + TEXTS]))
                advance(len(vectors[-1]))
        whole: np.ndarray = np.concatenate(vectors)[[distinct[text] for text in texts]]
        return whole

    def similarity(self, groups: Sequence[Sequence[str]]) -> np.ndarray:
        """Mean pairwise cosine of each group's texts (`metrics.consistency.int_sim`), in [-1, 1].

        A group has at least two texts; their order and the white space around them do not matter.
        Each distinct text is embedded once, and finished groups are committed batch by batch.
        float64 array of numbers rounded to float32, which is what the vectors are.
        """
        ordered = [sorted(text.strip() for text in _strings(group)) for group in groups]
        if alone := [i for i, group in enumerate(ordered) if len(group) < 2]:
            raise ModelError(
                f"group {alone[0]} has {len(ordered[alone[0]])} text(s), and similarity is between "
                "two or more; leave such groups out"
            )
        settings = json.dumps({"max_tokens": MAX_TOKENS})
        calls = [Call(self.fingerprint, "int_sim", json.dumps(g), settings) for g in ordered]

        def compute(numbers: list[int]) -> Computed:
            vectors: dict[str, np.ndarray] = {}
            waiting: list[int] = []
            new: dict[str, None] = {}
            for i in numbers:
                waiting.append(i)
                new |= dict.fromkeys(text for text in ordered[i] if text and text not in vectors)
                if len(new) >= TEXTS or i == numbers[-1]:
                    if new:
                        vectors.update(zip(new, self._embed(list(new)), strict=True))
                    values = int_sim(
                        [ordered[k] for k in waiting],
                        lambda texts: np.stack([vectors[text] for text in texts]),
                    )
                    yield waiting, values.astype(np.float32).tolist()
                    waiting, new = [], {}

        return np.array(once(self._records, calls, compute, label=f"{self.name} similarity"))

    def _embed(self, texts: list[str]) -> np.ndarray:
        import torch

        from factrobust.models.batches import Batch, in_batches

        network, tokenizer, pooled = self._network

        def run(batch: list[int]) -> Batch:
            chosen = [texts[i] for i in batch]
            if pooled == "cls":
                vectors = token_states(network, tokenizer, chosen)[0][:, 0]
            else:
                vectors = mean_states(network, tokenizer, chosen)
            return batch, list(torch.nn.functional.normalize(vectors).numpy())

        whole = np.zeros((len(texts), network.config.hidden_size), dtype=np.float32)
        spoken = [i for i, text in enumerate(texts) if text.strip()]
        sizes = [len(texts[i]) + 8 for i in spoken]  # characters, and what encloses every text
        for numbers, vectors in in_batches(spoken, sizes, run, budget=CHARACTERS, name=self.name):
            whole[numbers] = vectors
        return whole

    @cached_property
    def _network(self) -> tuple[Any, Any, str]:
        how = "mean" if self._source is None else pooling(encoder_folder(self._source))
        return *load_encoder(self._source), how


def _strings(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise ModelError(f"texts must be a list of strings; put {texts!r} into a list")
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise ModelError(f"a text is {strange[0]!r}, not a string; leave it out or fill it in")
    return list(texts)
