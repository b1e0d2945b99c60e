"""What part 4's answers and perplexities cost, on the same real questions, in one run.

    python benchmarks/context.py          # or `make bench`, some minutes

The straightforward way asks one question at a time: a call of transformers' generate without
context and one with it, each made to go on for 20 tokens, and for each of the five perplexities a
forward pass that makes all logits of prompt and answer. Ours is `context.probe.ask_counterfactual`.
Both end the answers by the same rule and draw the same counterfactuals. Writes
data/benchmarks/4-context.json."""

import sys
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from measuring.plain import greedy_ids, logprobs
from measuring.report import Works, about, options, report, rounded, speed_up

from factrobust import load_model
from factrobust.context import probe
from factrobust.context.facts import load_context_questions
from factrobust.context.metrics import measured, perplexity
from factrobust.endings import ending
from factrobust.models import tokens
from factrobust.models.interface import Generation

TARGET = 3  # times the throughput of the straightforward way
TEXTS = ["parametric", "counterfactual", "contextual"]
NUMBERS = ["p0", "p1", "p2", "p3", "p4"]


class Answer(NamedTuple):
    text: str
    ids: list[int]  # the tokens that cover it


def forced(model: Any, prompt: str) -> Answer:
    """The greedy answer out of exactly 20 generated tokens, the end token one like any other."""
    nothing = model.body.config.vocab_size  # no token: nothing ends the answer
    ids, made = greedy_ids(
        model,
        prompt,
        max_new_tokens=probe.MAX_NEW_TOKENS,
        eos_token_id=nothing,
    )
    kept = [*takewhile(lambda token: token not in model.end_ids, made)]
    text = tokens.continuation(model.tokenizer, ids[-1], kept)
    alone = [[(model.tokenizer.decode([token]), 0.0)] for token in kept]
    text, n = ending(Generation(prompt, text, kept, [0.0] * len(kept), alone))
    return Answer(text, kept[:n])


def ppl(model: Any, prompt: str, answer: Answer) -> float:
    """Perplexity of an answer; of none NaN."""
    before = tokens.encode(model.tokenizer, prompt, bos=model.bos)
    along = logprobs(model.name, before + answer.ids, len(before))
    return perplexity(along.tolist())


def one_by_one(model: Any, questions: pd.DataFrame) -> pd.DataFrame:
    """Texts and perplexities of each question that has a counterfactual, as it gives them."""
    prompts = probe.context_prompts(model, questions)
    answers = [forced(model, prompt) for prompt in prompts]
    drawn = probe.counterfactuals(questions.assign(text=[answer.text for answer in answers]))
    rows = []
    for i in np.flatnonzero(drawn >= 0).tolist():
        ours = answers[i]
        false = answers[drawn[i]]
        stated = f"{questions['prefix'].iloc[i]} {false.text}"
        [behind] = probe.context_prompts(model, questions.iloc[[i]], [stated])
        made = forced(model, behind)
        numbers = [
            ppl(model, prompts[i], ours),
            ppl(model, prompts[i], false),
            ppl(model, behind, ours),
            ppl(model, behind, false),
            ppl(model, behind, made),
        ]
        rows.append((ours.text, false.text, made.text, *numbers))
    return pd.DataFrame(rows, columns=[*TEXTS, *NUMBERS])


def main() -> None:
    # bases: base questions, of each of which there are so many objects
    given = options(__doc__, model="gemma-3-270m", bases=3, objects=3, rounds=2)
    model = load_model(given.model)
    every = load_context_questions(limit=given.objects)
    bases = every.drop_duplicates("category")["base_id"][: given.bases]
    questions = every[every["base_id"].isin(bases)].reset_index(drop=True)
    ours = measured(probe.ask_counterfactual(model, questions))
    if ours.empty:
        sys.exit("No answer differs from another, to be its counterfactual: give more --objects.")
    usual = one_by_one(model, questions)
    works: Works = {
        "two generate calls and five passes a question": partial(one_by_one, model, questions),
        "ask": lambda: measured(probe.ask_counterfactual(model, questions)),
    }
    compared = [speed_up(works, given.rounds, TARGET)]
    gaps = (ours[NUMBERS] / usual[NUMBERS] - 1).abs()
    report(
        given,
        "4-context",
        compared,
        model=about(model),
        questions=questions["question_id"].tolist(),
        with_counterfactual=len(ours),
        equal_answers=ours[TEXTS].equals(usual[TEXTS]),
        largest_relative_difference=rounded(gaps.max(axis=None)),
    )


if __name__ == "__main__":
    main()
