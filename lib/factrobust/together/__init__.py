"""Part 6: one fact shaken in every way, and a card of a model (`factrobust.card`, `factrobust.flips`)."""

from factrobust.together.study import Study

__all__ = ["Study"]
