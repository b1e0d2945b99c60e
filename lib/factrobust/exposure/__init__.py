"""Part 5: how often must a model read a fact until it knows it, by each measure of parts 1 to 4?"""

from factrobust.exposure.study import Training

__all__ = ["Training"]
