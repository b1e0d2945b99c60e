"""Peak memory of greedy answers to as many questions as asked for, by a model of canned answers.

    python -m measuring.memory 118643     # in benchmarks/; prints JSON, in GB of 10^9 bytes

A process of its own, because a peak never falls again, and a small one: torch is not imported, so
what is measured comes on top of a model.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import count
from math import ceil
from pathlib import Path

import pandas as pd

from factrobust.models.interface import Generation, Job, Model
from factrobust.wording.facts import load_paraphrases, paraphrased
from factrobust.wording.probe import greedy_responses

ALTERNATIVES = 10  # a token, as models give them


class Canned(Model):
    """Answers of full length, each another text with tokens and numbers of its own."""

    name = fingerprint = "canned"
    prompt_format, chat = "question-answer", None

    def __init__(self) -> None:
        self._number = count()

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Generation]]]:
        for i, request in enumerate(job.requests):
            number = next(self._number)
            ids = list(range(number, number + job.settings["max_new_tokens"]))
            top = [
                [(f" word{token}-{k}", -k - 1 / (token + 1)) for k in range(ALTERNATIVES)]
                for token in ids
            ]
            text = "".join(at[0][0] for at in top)
            yield [i], [Generation(request["prompt"], text, ids, [at[0][1] for at in top], top)]


def synthetic_questions(n: int) -> pd.DataFrame:
    """`n` questions of made-up facts, spread over the relations that have paraphrases."""
    templates = load_paraphrases()
    wordings = templates.groupby("relation", sort=False).size() + 1
    # After each round over the relations, as many questions as there are wordings.
    names = list(wordings.index) * ceil(n / wordings.sum())
    facts = pd.DataFrame({"relation": names, "popularity": 3.0})
    number = facts.index.astype("str")
    facts = facts.assign(
        fact_id=facts["relation"] + "/" + number,
        subject="Somebody or Something " + number,
        object="The Answer " + number,
        aliases=pd.Series([[f"Answer {i}", f"The {i}th Answer"] for i in number], dtype=object),
    )
    return paraphrased(facts).table.head(n)


def peak_bytes() -> int:
    """Most memory that this process ever had, in bytes."""
    status = Path("/proc/self/status")
    if status.is_file():  # what getrusage says on Linux begins at the parent's peak
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    questions = synthetic_questions(int(sys.argv[1]))
    answers = greedy_responses(Canned(), questions)
    told = {"questions": len(questions), "distinct_answers": answers["text"].nunique()}
    print(json.dumps(told | {"peak_gigabytes": peak_bytes() / 1e9}))


if __name__ == "__main__":
    main()
