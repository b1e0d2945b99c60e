"""Four kinds of factual robustness of language models, measured on the same facts."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "ground", "load_model"]

if TYPE_CHECKING:
    from factrobust.grounding import ground
    from factrobust.models.load import load_model


def __getattr__(name: str) -> Any:
    # Lazy, so that a notebook that only reads tables pays neither for torch nor for the registry.
    if name == "load_model":
        from factrobust.models.load import load_model

        return load_model
    if name == "ground":
        from factrobust.grounding import ground

        return ground
    raise AttributeError(f"module 'factrobust' has no attribute {name!r}")
