"""Part 2: does a model know when a fact held, and who held an office when?"""

from factrobust.temporal.study import Study, Successions

__all__ = ["Study", "Successions"]
