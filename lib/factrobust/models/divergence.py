"""How far a model's next tokens are from another's on a text, as llama-perplexity counts.

People choose a quantised file by these numbers (`--kl-divergence`): the mean and the 99.9%
quantile of the Kullback-Leibler divergence of its next-token distribution from that of the file
it was made of, the share of places where both have the same likeliest token, and the perplexity.
"""

import json
import tempfile
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from factrobust.models import tokens
from factrobust.models.interface import RecordedModel
from factrobust.models.records import Batches, Call, Records, ask_all
from factrobust.paths import BUILD, DATA, noted

TEXT = DATA / "divergence.txt"
CONTEXT = 512  # tokens that are read at once; llama.cpp's default
OPERATION = "divergence"
TAIL = 0.999
COLUMNS = ["kl", "logprob", "base_logprob", "same"]

Array = NDArray[np.float32]
Piece = tuple[list[int], Array]


def the_text() -> str:
    """The text that is read: prose of this repository, which no model was trained on."""
    return noted(TEXT).read_text("utf-8")


def compared(
    model: RecordedModel, base: RecordedModel, text: str, records: Records
) -> pd.DataFrame:
    """A row a token of the text that counts: kl (nats, of the base's distribution from the
    model's), logprob and base_logprob (of the token), and same (both have the same likeliest
    token).

    The text is cut into pieces of CONTEXT tokens; of each, the tokens of the second half count,
    which have at least half a piece before them. A last piece that is shorter is left out.
    """
    settings = json.dumps({"base": base.fingerprint, "context": CONTEXT}, sort_keys=True)
    call = Call(model.fingerprint, OPERATION, text, settings)

    def compute(_: list[int]) -> Batches:
        its = _log_probabilities(base, text)  # first: one network is in memory at a time
        yield [0], [_compared(_pieces(model, text), its)]

    [columns] = ask_all(records, [call], compute, label=f"{model.name} {OPERATION}")
    return pd.DataFrame(columns)[COLUMNS].astype({"same": bool})


def summary(table: pd.DataFrame) -> dict[str, float]:
    """Of `compared`: mean_kl and tail_kl (nats), different_top (the share without the same
    likeliest token), perplexity (of the model), and tokens, their number."""
    return {
        "mean_kl": float(table["kl"].mean()),
        "tail_kl": float(table["kl"].quantile(TAIL)),
        "different_top": float(1 - table["same"].mean()),
        "perplexity": float(np.exp(-table["logprob"].mean())),
        "tokens": len(table),
    }


def _compared(pieces: Iterator[Piece], base: Array) -> dict[str, list[float]]:
    """The columns of `compared`, of the model's pieces beside the base's log-probabilities
    [place, token id]."""
    found: dict[str, list[float]] = {name: [] for name in COLUMNS}
    places = iter(base)
    for ids, mine in pieces:
        for token, q in zip(ids, mine, strict=True):
            p = next(places)
            found["kl"].append(max(float(np.sum(np.exp(p) * (p - q))), 0.0))
            found["logprob"].append(float(q[token]))
            found["base_logprob"].append(float(p[token]))
            found["same"].append(int(p.argmax() == q.argmax()))
    return found


@lru_cache(maxsize=1)
def _log_probabilities(base: RecordedModel, text: str) -> Array:
    """Those of the base at all places that count, [place, token id], in a file that is gone with
    the process: of a large vocabulary they would fill the memory."""
    BUILD.mkdir(exist_ok=True)
    shape = 0, 0
    with tempfile.TemporaryFile(dir=BUILD) as file:
        for ids, mine in _pieces(base, text):
            mine.tofile(file)
            shape = shape[0] + len(ids), mine.shape[1]
        file.flush()
        return np.memmap(file, dtype=np.float32, mode="r", shape=shape)


def _pieces(model: RecordedModel, text: str) -> Iterator[Piece]:
    """Of each piece the tokens that count, and the log-probabilities [token, token id] there."""
    import torch

    loaded: Any = model.loaded()
    ids = tokens.encode(loaded.tokenizer, text, bos=loaded.bos)
    for start in range(0, len(ids) - CONTEXT + 1, CONTEXT):
        piece = [*loaded.bos, *ids[start + len(loaded.bos) : start + CONTEXT]]
        with torch.inference_mode():
            logits = loaded.whole(piece, [], CONTEXT // 2)[:-1]
            found = torch.log_softmax(logits, dim=-1).cpu().numpy()
        yield piece[-len(found) :], found
