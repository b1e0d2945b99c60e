"""Part 6: one fact shaken in every way, what survives a change of the weights, and a card of a model."""

from factrobust.together.study import Study

__all__ = ["Study"]
