"""Four kinds of factual robustness of language models, measured on the same facts."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "answers", "card", "flips", "ground", "load_model"]
WHERE = {
    "answers": "factrobust.together.answers",
    "card": "factrobust.together.card",
    "flips": "factrobust.together.flips",
    "ground": "factrobust.context.grounding",
    "load_model": "factrobust.models.load",
}

if TYPE_CHECKING:
    from factrobust.context.grounding import ground
    from factrobust.models.load import load_model
    from factrobust.together.answers import answers
    from factrobust.together.card import card
    from factrobust.together.flips import flips


def __getattr__(name: str) -> Any:
    # Lazy, so that a notebook that only reads tables pays neither for torch nor for the registry.
    if name in WHERE:
        return getattr(import_module(WHERE[name]), name)
    raise AttributeError(f"module 'factrobust' has no attribute {name!r}")
