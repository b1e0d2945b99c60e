"""Part 4: does an answer come from memory or from the context, and which context wins?"""

from factrobust.context.study import KnownContexts, Meter, Passages, Study

__all__ = ["KnownContexts", "Meter", "Passages", "Study"]
