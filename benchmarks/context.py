"""What part 4's answers and perplexities cost, on the same real questions, in one run.

    python benchmarks/context.py          # or `make bench`, some minutes

The straightforward way asks one question at a time: a call of transformers' generate without
context and one with it, each made to go on for 20 tokens, and for each of the five perplexities a
forward pass that makes all logits of prompt and answer. Ours is `context.probe.ask`. Both end the
answers by the same rule and draw the same counterfactuals. Ratios are taken within rounds. Writes
data/benchmarks/4-context.json."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from measuring.plain import greedy_ids, plain_network
from measuring.report import in_turns, print_ratios, ratio, two_digits, write_json

from factrobust import load_model
from factrobust.context import probe
from factrobust.context.facts import load_context_questions
from factrobust.context.metrics import measured, perplexity
from factrobust.context.probe import counterfactuals
from factrobust.endings import ending
from factrobust.models import tokens
from factrobust.models.causal import CausalLM
from factrobust.models.interface import Generation
from factrobust.paths import DATA

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
    end = next((i for i, token in enumerate(made) if token in model.end_ids), len(made))
    kept = made[:end]
    text = tokens.continuation(model.tokenizer, ids[-1], kept)
    alone = [[(model.tokenizer.decode([token]), 0.0)] for token in kept]
    text, n = ending(Generation(prompt, text, kept, [0.0] * len(kept), alone))
    return text, kept[:n]


def full_pass(model: CausalLM, prompt: str, answer: list[int]) -> float:
    """Perplexity of an answer by one forward pass that makes the logits of every token."""
    if not answer:
        return float("nan")
    ids = tokens.encode(model.tokenizer, prompt, bos=model.bos) + answer
    with torch.inference_mode():
        given = torch.tensor([ids], device=model.body.device)
        logits = plain_network(model)(input_ids=given).logits
        logprobs = logits[0, :-1].float().log_softmax(dim=-1)
    wanted = torch.tensor(ids[1:], device=logprobs.device)[:, None]
    return perplexity(logprobs.gather(1, wanted)[-len(answer) :, 0].tolist())


def one_by_one(model: CausalLM, questions: pd.DataFrame) -> pd.DataFrame:
    """Texts and perplexities of each question that has a counterfactual, as `ask` gives them."""
    prompts = probe.context_prompts(model, questions)
    answers = [forced(model, prompt) for prompt in prompts]
    drawn = counterfactuals(questions.assign(text=[text for text, _ in answers]))
    rows = []
    for i in np.flatnonzero(drawn >= 0):
        stated = f"{questions['prefix'].iloc[i]} {answers[drawn[i]][0]}"
        with_context = probe.context_prompts(model, questions.iloc[[i]], [stated])[0]
        p, q, made = answers[i], answers[drawn[i]], forced(model, with_context)
        scored = [(prompts[i], p), (prompts[i], q), *((with_context, a) for a in (p, q, made))]
        numbers = [full_pass(model, prompt, ids) for prompt, (_, ids) in scored]
        rows.append((p[0], q[0], made[0], *numbers))
    return pd.DataFrame(rows, columns=[*TEXTS, *NUMBERS])


def measure(model: CausalLM, questions: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """The ratio of seconds, whether the answers are equal, how far the perplexities are apart."""
    found: dict[str, pd.DataFrame] = {}

    def straightforward() -> None:
        found[STRAIGHTFORWARD] = one_by_one(model, questions)

    def ours_at_once() -> None:
        found[OURS] = measured(probe.ask(model, questions))

    seconds = in_turns({STRAIGHTFORWARD: straightforward, OURS: ours_at_once}, rounds)
    usual, ours = found[STRAIGHTFORWARD], found[OURS]
    equal = usual[TEXTS].to_numpy().tolist() == ours[TEXTS].to_numpy().tolist()
    gap = (ours[NUMBERS] / usual[NUMBERS] - 1).abs().to_numpy() if equal else np.array([np.inf])
    difference = float(np.nanmax(gap))
    return {
        "comparisons": [
            ratio(
                STRAIGHTFORWARD, OURS, seconds[STRAIGHTFORWARD] / seconds[OURS], "at least", TARGET
            )
        ],
        "with_counterfactual": len(ours),
        "equal_answers": equal,
        "largest_relative_difference": two_digits(difference),
        "perplexities_agree": difference <= CLOSE,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", default="gemma-3-270m")
    parser.add_argument("--bases", type=int, default=3, help="base questions")
    parser.add_argument("--objects", type=int, default=3, help="of each base question")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--out", type=Path, default=DATA / "benchmarks", help="folder of the result"
    )
    options = parser.parse_args()

    model = cast(CausalLM, load_model(options.model))
    every = load_context_questions(limit=options.objects)
    bases = every.drop_duplicates("category")["base_id"][: options.bases]
    questions = every[every["base_id"].isin(bases)].reset_index(drop=True)
    print(f"[bench] {model.name}: {len(questions)} questions without and with context", flush=True)
    found = measure(model, questions, options.rounds)
    print_ratios(found["comparisons"])
    same = "equal" if found["equal_answers"] else "NOT EQUAL"
    print(
        f"\nCheck: answers are {same}; perplexities differ by at most "
        f"{found['largest_relative_difference']:g} of their value"
    )
    about = {"name": model.name, "fingerprint": model.fingerprint}
    write_json(
        options.out / "4-context.json",
        {"model": about, "questions": questions["question_id"].tolist(), **found},
    )


if __name__ == "__main__":
    main()
