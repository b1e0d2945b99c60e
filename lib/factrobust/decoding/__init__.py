"""Part 1: does a known fact survive the temperature at which a model is sampled?"""

from factrobust.decoding.study import Study

__all__ = ["Study"]
