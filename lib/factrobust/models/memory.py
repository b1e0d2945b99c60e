"""Which models are in this process's memory: one at a time, or several small ones.

A notebook asks one model after the other. Eighteen of the papers' models together would need 564
GB, so the one that was not asked for longest is let go before another is loaded. If it is asked
again, it is loaded again.
"""

import ctypes
import gc
import os
import sys
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from factrobust.models.interface import Model, RecordedModel

# Bytes of weights that may be in memory at once, where one model alone has fewer: both embedded
# models.
TOGETHER = 2e9

# Who asks which model, the latest last. A model is freed with the last one who asks it.
holding: "WeakKeyDictionary[RecordedModel, Model]" = WeakKeyDictionary()


def model_of(asking: "RecordedModel") -> "Model | None":
    """The model in memory that stands behind one, which counts as the latest from now on. Two
    studies of a notebook that ask the same model share it."""
    model = holding.pop(asking, None)
    if model is None and asking.weight_bytes:
        what = asking.name, asking.fingerprint
        model = next((m for a, m in holding.items() if (a.name, a.fingerprint) == what), None)
    if model is not None:
        holding[asking] = model
    return model


def make_room(size: float) -> None:
    """Let models go, the longest unused first, until weights of so many bytes fit into TOGETHER
    beside the others. What is not in this process's memory, such as an endpoint, stays."""
    let_go = False
    while size and (
        weighty := {id(model): a.weight_bytes for a, model in holding.items() if a.weight_bytes}
    ):
        if size + sum(weighty.values()) <= TOGETHER:
            break
        oldest = next(iter(weighty))
        for asking in [a for a, model in holding.items() if id(model) == oldest]:
            del holding[asking]
        let_go = True
    if let_go:
        _give_back()


def _give_back() -> None:
    """Free what was let go: a network is a circle of objects, and allocators keep what they had."""
    gc.collect()
    if torch := sys.modules.get("torch"):
        give_back()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def give_back() -> None:
    """Return free memory to the system. Batches differ in size, so that most of what glibc's malloc
    keeps for the next one does not fit: without this a notebook of many jobs grows to three times
    its need."""
    if os.name != "posix":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:  # only glibc has it
        trim(0)
