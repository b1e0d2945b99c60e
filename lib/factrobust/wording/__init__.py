"""Part 3: does a model answer the same, and rightly, when a question is put in other words?"""

from factrobust.wording.study import Study

__all__ = ["Study"]
