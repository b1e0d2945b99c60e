"""What part 3's greedy answers cost, on the same real questions, in one run.

    python benchmarks/wording.py          # or `make bench`, some minutes

The usual way is one call of transformers' generate a question, in the order in which they come. It
stops at a line's end, as ours does, which is `wording.probe.greedy_responses`. Writes
data/benchmarks/3-wording.json."""

from functools import partial
from typing import Any

import pandas as pd
from measuring.plain import greedy_ids
from measuring.report import Works, about, options, report, speed_up
from transformers import StopStringCriteria

from factrobust import load_model
from factrobust.datasets.facts import load_facts
from factrobust.endings import first_sentence
from factrobust.models import tokens
from factrobust.wording import probe
from factrobust.wording.facts import load_paraphrases, paraphrased

FORM = "question-answer"  # the paper's (3.1)
TARGET = 3  # times the throughput of the usual way


def one_by_one(model: Any, questions: pd.DataFrame, stopping: StopStringCriteria) -> list[str]:
    """First sentence of each question's greedy answer, by generate at batch size 1."""
    texts = []
    for prompt in probe.prompts(model, questions, FORM):
        ids, made = greedy_ids(
            model,
            prompt,
            max_new_tokens=probe.MAX_NEW_TOKENS,
            stopping_criteria=[stopping],
        )
        text = tokens.continuation(model.tokenizer, ids[-1], made)
        stopped = tokens.cut(text, probe.STOP)
        texts.append(first_sentence(text if stopped is None else stopped))
    return texts


def main() -> None:
    given = options(__doc__, model="gemma-3-270m", facts=4, rounds=3)
    model: Any = load_model(given.model)
    facts = load_facts(relations=load_paraphrases()["relation"], limit=given.facts)
    questions = paraphrased(facts).table
    stopping = StopStringCriteria(model.tokenizer, ["\n"])  # looks all tokens up, once
    usual = partial(one_by_one, model, questions, stopping)
    ours = partial(probe.greedy_responses, model, questions, prompt_format=FORM)
    works: Works = {"generate one by one": usual, "greedy": ours}
    compared = [speed_up(works, given.rounds, TARGET)]
    report(
        given,
        "3-wording",
        compared,
        model=about(model),
        facts=facts["fact_id"].tolist(),
        questions=len(questions),
        equal_texts=int((ours()["text"] == usual()).sum()),
    )


if __name__ == "__main__":
    main()
