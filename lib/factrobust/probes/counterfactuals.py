"""Which other answer stands in the context of a question?"""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd

from factrobust.metrics.text import normalise
from factrobust.probes.endings import check_rule


def counterfactuals(answers: pd.DataFrame, *, seed: int = 0, rule: str = "robust") -> np.ndarray:
    """For each row, the number of the row whose answer is its counterfactual; -1 if there is none.

    `answers` has base_id, object and text (the parametric answers). Drawn among the rows of the same
    base question, uniformly, so that a frequent answer is drawn more often, as in the thesis.
    `robust` draws answers that are not empty and differ after normalising (`metrics.text`),
    `published` any that is another string.

    A row's draw depends on the seed, its base question and object, and on the rows that it is drawn
    from, not on their order; of a larger table it differs only if an added row is drawn. Raises
    ValueError for an unknown rule.
    """
    check_rule(rule)
    texts, objects = answers["text"].tolist(), answers["object"].tolist()
    same = [normalise(text) for text in texts] if rule == "robust" else texts
    drawn = np.full(len(answers), -1, dtype=np.int64)
    for base_id, rows in answers.groupby("base_id", sort=False).indices.items():
        given = [j for j in rows if texts[j] or rule == "published"]
        for i in rows:
            others = [j for j in given if same[j] != same[i]]
            # The smallest of independent uniform numbers is each one's equally often.
            numbers = (_number(seed, base_id, objects[i], objects[j]) for j in others)
            drawn[i] = min(zip(numbers, others, strict=True), default=(b"", -1))[1]
    return drawn


def _number(*key: object) -> bytes:
    return hashlib.blake2b("\n".join(map(str, key)).encode(), digest_size=8).digest()
