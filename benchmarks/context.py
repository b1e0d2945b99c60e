"""What part 4's answers and perplexities cost, on the same real questions, in one run.

    python benchmarks/context.py          # or `make bench`, some minutes

The straightforward way asks one question at a time: a call of transformers' generate without
context and one with it, each made to go on for 20 tokens, and for each of the five perplexities a
forward pass that makes all logits of prompt and answer. Ours is `context.probe.ask_counterfactual`.
Both end the answers by the same rule and draw the same counterfactuals. Ratios are taken within
rounds. Writes data/benchmarks/4-context.json."""

from __future__ import annotations

from itertools import takewhile
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from measuring.plain import greedy_ids, plain_network
from measuring.report import (
    about,
    in_turns,
    options,
    print_ratios,
    speed_up,
    two_digits,
    write_json,
)

from factrobust import load_model
from factrobust.context import probe
from factrobust.context.facts import load_context_questions
from factrobust.context.metrics import measured, perplexity
from factrobust.context.probe import counterfactuals
from factrobust.endings import ending
from factrobust.models import tokens
from factrobust.models.causal import CausalLM
from factrobust.models.interface import Generation

STRAIGHTFORWARD, OURS = "two generate calls and five passes a question", "ask"
TARGET = 3  # times the throughput of the straightforward way
CLOSE = 1e-3  # perplexities of the two ways, relative
TEXTS = ["parametric", "counterfactual", "contextual"]
NUMBERS = ["p0", "p1", "p2", "p3", "p4"]

Answer = tuple[str, list[int]]  # a text and the token ids that cover it


def forced(model: CausalLM, prompt: str) -> Answer:
    """The greedy answer out of exactly 20 generated tokens, the end token one like any other."""
    nothing = model.body.config.vocab_size  # no token: nothing ends the answer
    ids, made = greedy_ids(model, prompt, probe.MAX_NEW_TOKENS, eos_token_id=nothing)
    kept = [*takewhile(lambda token: token not in model.end_ids, made)]
    text = tokens.continuation(model.tokenizer, ids[-1], kept)
    alone = [[(model.tokenizer.decode([token]), 0.0)] for token in kept]
    text, n = ending(Generation(prompt, text, kept, [0.0] * len(kept), alone))
    return text, kept[:n]


def full_pass(model: CausalLM, prompt: str, answer: list[int]) -> float:
    """Perplexity of an answer by one forward pass that makes the logits of every token."""
    if not answer:
        return float("nan")
    ids = tokens.encode(model.tokenizer, prompt, bos=model.bos) + answer
    given = torch.tensor([ids], device=model.body.device)
    with torch.inference_mode():
        logits = plain_network(model)(input_ids=given).logits
        logprobs = logits[0, :-1].float().log_softmax(dim=-1)
    of_tokens = logprobs.gather(1, given[0, 1:, None])[:, 0]
    return perplexity(of_tokens[-len(answer) :].tolist())


def one_by_one(model: CausalLM, questions: pd.DataFrame) -> pd.DataFrame:
    """Texts and perplexities of each question that has a counterfactual, as `ask_counterfactual`
    gives them."""
    prompts = probe.context_prompts(model, questions)
    answers = [forced(model, prompt) for prompt in prompts]
    drawn = counterfactuals(questions.assign(text=[text for text, _ in answers]))
    rows = []
    for i in np.flatnonzero(drawn >= 0):
        text, ids = answers[i]
        false, false_ids = answers[drawn[i]]
        stated = f"{questions['prefix'].iloc[i]} {false}"
        [behind] = probe.context_prompts(model, questions.iloc[[i]], [stated])
        made, made_ids = forced(model, behind)
        row = (
            text,
            false,
            made,
            full_pass(model, prompts[i], ids),
            full_pass(model, prompts[i], false_ids),
            full_pass(model, behind, ids),
            full_pass(model, behind, false_ids),
            full_pass(model, behind, made_ids),
        )
        rows.append(row)
    return pd.DataFrame(rows, columns=[*TEXTS, *NUMBERS])


def measure(model: CausalLM, questions: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """The ratio of seconds, whether the answers are equal, how far the perplexities are apart."""
    found: dict[str, pd.DataFrame] = {}

    def straightforward() -> None:
        found[STRAIGHTFORWARD] = one_by_one(model, questions)

    def ours_at_once() -> None:
        found[OURS] = measured(probe.ask_counterfactual(model, questions))

    seconds = in_turns({STRAIGHTFORWARD: straightforward, OURS: ours_at_once}, rounds)
    usual, ours = found[STRAIGHTFORWARD], found[OURS]
    equal = usual[TEXTS].to_numpy().tolist() == ours[TEXTS].to_numpy().tolist()
    gap = (ours[NUMBERS] / usual[NUMBERS] - 1).abs().to_numpy() if equal else np.array([np.inf])
    difference = float(np.nanmax(gap))
    return {
        "comparisons": [speed_up(seconds, STRAIGHTFORWARD, OURS, TARGET)],
        "with_counterfactual": len(ours),
        "equal_answers": equal,
        "largest_relative_difference": two_digits(difference),
        "perplexities_agree": difference <= CLOSE,
    }


def main() -> None:
    # bases: base questions, of each of which there are so many objects
    given = options(__doc__, model="gemma-3-270m", bases=3, objects=3, rounds=2)

    model = cast(CausalLM, load_model(given.model))
    every = load_context_questions(limit=given.objects)
    bases = every.drop_duplicates("category")["base_id"][: given.bases]
    questions = every[every["base_id"].isin(bases)].reset_index(drop=True)
    print(f"[bench] {model.name}: {len(questions)} questions without and with context", flush=True)
    found = measure(model, questions, given.rounds)
    print_ratios(found["comparisons"])
    same = "equal" if found["equal_answers"] else "NOT EQUAL"
    print(
        f"\nCheck: answers are {same}; perplexities differ by at most "
        f"{found['largest_relative_difference']:g} of their value"
    )
    told = {"model": about(model), "questions": questions["question_id"].tolist()}
    write_json(given.out / "4-context.json", told | found)


if __name__ == "__main__":
    main()
