"""What part 3's greedy answers and its SCons cost, measured in one run.

    python benchmarks/wording.py          # or `make bench`, some minutes

Answers: the usual way is one call of transformers' generate a question, in the order in which they
come. It stops at a line's end, as ours does, by a look-up of its last token in a table. Ours is
`wording.probe.greedy_responses`. Consistency: equation 1 as it is written, pair by pair, against
`text.int_sim`, on the same vectors; to embed the texts is left out of both. Memory:
the peak of a process that asks a model of canned answers as many questions as the full data set
has. Ratios are taken within rounds. Writes data/benchmarks/3-wording.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import torch
from measuring.plain import greedy_ids
from measuring.report import (
    about,
    in_turns,
    options,
    print_ratios,
    speed_up,
    two_digits,
    write_json,
)
from transformers import StoppingCriteria

from factrobust import load_model
from factrobust.datasets.facts import load_facts
from factrobust.endings import first_sentence
from factrobust.models import tokens
from factrobust.models.causal import CausalLM
from factrobust.text import int_sim
from factrobust.wording import probe
from factrobust.wording.facts import load_paraphrases, paraphrased

FORM = "question-answer"  # the paper's (3.1)
GENERATE, GREEDY = "generate one by one", "greedy"
PAIRS, MATRIX, CLOSED = "pair by pair", "a matrix of cosines a group", "closed form"
FASTER_ANSWERS, FASTER_SCONS, MOST_GIGABYTES = 3, 10, 4  # targets
FULL_SIZE = 118_643  # questions of PopQA-TP
GROUP = 8  # answers to a question: 118,643 of them for 14,267 questions
DIMENSION = 384  # of all-MiniLM-L6-v2
NAMES = 20_000  # distinct texts that answers are drawn from
SHARES = (0.55, 0.25, 0.15, 0.05)  # of the different answers within a group

Vectors = Mapping[str, np.ndarray]


class LineEnd(StoppingCriteria):
    """Stops after a token with a line's end in it: one look-up, no text is decoded meanwhile."""

    def __init__(self, model: CausalLM) -> None:
        size = model.body.config.vocab_size
        known = min(size, len(model.tokenizer))  # some heads are padded beyond the vocabulary
        texts = model.tokenizer.batch_decode([[token] for token in range(known)])
        ends = torch.zeros(size, dtype=torch.bool)
        ends[:known] = torch.tensor(["\n" in text for text in texts])
        self.ends = ends.to(model.body.device)

    def __call__(self, input_ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        return self.ends[input_ids[:, -1]]


def one_by_one(model: CausalLM, questions: pd.DataFrame, stopping: LineEnd) -> list[str]:
    """First sentence of each question's greedy answer, by transformers' generate at batch size
    1."""
    texts = []
    for prompt in probe.prompts(model, questions, FORM):
        ids, made = greedy_ids(model, prompt, probe.MAX_NEW_TOKENS, stopping_criteria=[stopping])
        text = tokens.continuation(model.tokenizer, ids[-1], made)
        stopped = tokens.cut(text, probe.STOP)
        texts.append(first_sentence(text if stopped is None else stopped))
    return texts


def measure_answers(model: CausalLM, questions: pd.DataFrame, rounds: int) -> dict[str, Any]:
    """The ratio of seconds, and how many of the texts are equal."""
    stopping, texts = LineEnd(model), {}

    def usual() -> None:
        texts[GENERATE] = one_by_one(model, questions, stopping)

    def ours() -> None:
        responses = probe.greedy_responses(model, questions, prompt_format=FORM)
        texts[GREEDY] = responses["text"].tolist()

    seconds = in_turns({GENERATE: usual, GREEDY: ours}, rounds)
    equal = np.equal(texts[GENERATE], texts[GREEDY])
    return {
        "comparisons": [speed_up(seconds, GENERATE, GREEDY, FASTER_ANSWERS)],
        "questions": len(questions),
        "equal_texts": int(equal.sum()),
    }


def answer_groups(count: int, seed: int = 0) -> tuple[list[list[str]], dict[str, np.ndarray]]:
    """`count` groups of texts, most of which repeat within a group; and a vector for each text."""
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((NAMES, DIMENSION), dtype=np.float32)
    vectors = {f"Answer {i}": vector for i, vector in enumerate(table)}
    candidates = rng.integers(NAMES, size=(count, len(SHARES)))
    which = rng.choice(len(SHARES), size=(count, GROUP), p=SHARES)
    chosen = np.take_along_axis(candidates, which, axis=1)
    return [[f"Answer {i}" for i in row] for row in chosen.tolist()], vectors


def pair_by_pair(groups: Sequence[Sequence[str]], vectors: Vectors) -> np.ndarray:
    """Equation 1 as it is written: the mean cosine over all pairs i < j of a group."""
    values = []
    for texts in groups:
        pairs = combinations(texts, 2)
        values.append(np.mean([_cosine(vectors[a], vectors[b]) for a, b in pairs]))
    return np.array(values)


def by_matrix(groups: Sequence[Sequence[str]], vectors: Vectors) -> np.ndarray:
    """Equation 1 from the matrix of all cosines of a group: one product in place of the pairs."""
    values = []
    for texts in groups:
        rows = np.stack([vectors[text] for text in texts])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        values.append((rows @ rows.T)[np.triu_indices(len(rows), 1)].mean())
    return np.array(values)


def closed_form(groups: Sequence[Sequence[str]], vectors: Vectors) -> np.ndarray:
    return int_sim(groups, lambda texts: np.stack([vectors[text] for text in texts]))


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def measure_scons(groups: Sequence[Sequence[str]], vectors: Vectors, rounds: int) -> dict[str, Any]:
    """The ratios of seconds, and the largest difference between the values."""
    ways = {PAIRS: pair_by_pair, MATRIX: by_matrix, CLOSED: closed_form}
    seconds = in_turns({name: partial(way, groups, vectors) for name, way in ways.items()}, rounds)
    values = {name: way(groups, vectors) for name, way in ways.items()}
    gap = max(np.abs(values[name] - values[CLOSED]).max() for name in (PAIRS, MATRIX))
    texts = [text for group in groups for text in group]
    return {
        "comparisons": [
            speed_up(seconds, PAIRS, CLOSED, FASTER_SCONS),
            speed_up(seconds, MATRIX, CLOSED),
        ],
        "answers": len(texts),
        "distinct_answers": len(set(texts)),
        "largest_difference": two_digits(gap),
    }


def measure_memory(questions: int) -> dict[str, Any]:
    """Most memory that a process of its own takes to ask so many questions
    (measuring/memory.py)."""
    done = subprocess.run(
        [sys.executable, "-m", "measuring.memory", str(questions)],
        cwd=Path(__file__).parent,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told | {
        "peak_gigabytes": two_digits(told["peak_gigabytes"]),
        "target": f"at most {MOST_GIGABYTES}",
        "reached": told["peak_gigabytes"] <= MOST_GIGABYTES,
    }


def main() -> None:
    given = options(
        __doc__,
        model="gemma-3-270m",
        facts=4,
        groups=100_000 // GROUP,
        rounds=3,
    )

    print(f"[bench] memory of {FULL_SIZE:,} questions", flush=True)
    memory = measure_memory(FULL_SIZE)
    print(f"[bench] {given.groups * GROUP:,} answers' consistency", flush=True)
    scons = measure_scons(*answer_groups(given.groups), 3 * given.rounds)  # short ones
    model = cast(CausalLM, load_model(given.model))
    facts = load_facts(relations=load_paraphrases()["relation"], limit=given.facts)
    questions = paraphrased(facts).table
    print(f"[bench] {model.name}: {len(questions)} questions of {len(facts)} facts", flush=True)
    answers = measure_answers(model, questions, given.rounds)

    compared = answers.pop("comparisons") + scons.pop("comparisons")
    print_ratios(compared)
    print(
        f"\nChecks: {answers['equal_texts']} of {answers['questions']} answers are equal; the ways "
        f"to SCons differ by at most {scons['largest_difference']:g}"
    )
    print(
        f"\nMemory: {memory['questions']:,} questions take {memory['peak_gigabytes']:g} GB beside "
        f"the model; {memory['target']}: {'reached' if memory['reached'] else 'NOT REACHED'}"
    )
    told = {
        "model": about(model),
        "facts": facts["fact_id"].tolist(),
        "comparisons": compared,
        "greedy": answers,
        "scons": scons,
        "memory": memory,
    }
    write_json(given.out / "3-wording.json", told)


if __name__ == "__main__":
    main()
