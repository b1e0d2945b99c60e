"""Greedy answers, scores and curves a second of models of several sizes, and llama.cpp beside them.

    python benchmarks/sizes.py          # or `make bench`, some minutes

Each operation is given as a share of what the cores can do at most: the arithmetic of the linear
layers (attention left out), over that of one large product of matrices in the same time. llama.cpp
answers the same questions from the same file, by its server, with as many threads; it multiplies
with activations of 8 bits. Models that are not installed are left out. Writes
data/benchmarks/sizes.json."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring.llama import served
from measuring.meter import Meter
from measuring.report import (
    in_turns,
    options,
    print_ratios,
    ratio,
    two_digits,
    write_json,
)

from factrobust import load_model
from factrobust.datasets import facts
from factrobust.decoding.probe import GRID
from factrobust.models import gguf_files, load
from factrobust.models.interface import Model, ModelError
from factrobust.models.linear import prepack
from factrobust.models.prompts import FORMATS, render

MODELS = ("gemma-3-270m", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
FORMAT = "two-shot"
AT_ONCE = 4  # requests to llama.cpp
AHEAD = 1.0  # of llama.cpp, at least
SHARE = 0.75  # of the cores' peak, at least


def peak(rounds: int = 5) -> float:
    """Floating point operations a second of the fastest large product that torch has here."""
    x = torch.randn(2048, 2048)
    plain = torch.nn.Linear(2048, 2048, bias=False)
    packed = torch.nn.Sequential(torch.nn.Linear(2048, 2048, bias=False))
    prepack(packed)
    with torch.inference_mode():
        seconds = in_turns({"packed": lambda: packed(x), "plain": lambda: plain(x)}, rounds)
    return 2 * 2048**3 / min(found.min() for found in seconds.values())


def works(model: Model, prompts: list[str], answers: list[str]) -> dict[str, Callable[[], Any]]:
    """Each operation on all questions."""
    stop = FORMATS[FORMAT].stop

    def curves() -> None:
        # A job with other answers in between, or hidden states of the last one would be used again.
        model.temper(prompts[:1], answers[1:2], GRID)
        model.temper(prompts, answers, GRID)

    return {
        "answers": lambda: model.generate(prompts, stop=stop),
        "scores": lambda: model.score(prompts, answers),
        "curves": curves,
    }


def measure(name: str, asked: Any, rounds: int, most: float) -> list[dict[str, Any]]:
    """A row an operation of a model."""
    model: Any = load_model(name)
    prompts = render(FORMAT, asked["question"].tolist(), asked["prefix"].tolist())
    jobs = works(model, prompts, (" " + asked["object"]).tolist())
    folder, _ = load.location(load.find_weights(name))
    file = Path(folder) / gguf_files.FILE
    meter = Meter(model.body.network)
    head = model.body.network.get_output_embeddings()
    per_position = 2 * head.out_features * head.in_features
    body = load.parameter_count(name) - embedding_weights(model.body.network)
    costs = {}
    with served(file, name, threads=torch.get_num_threads(), at_once=AT_ONCE) as url:
        endpoint = {
            "url": url,
            "model": name,
            "api": "completions",
            "concurrency": AT_ONCE,
        }
        jobs["llama.cpp"] = works(load_model(endpoint), prompts, [])["answers"]
        for work in ("answers", "scores", "curves"):
            jobs[work]()  # packs the weights
            costs[work] = meter.cost(jobs[work])
        seconds = in_turns(jobs, rounds)
    rows = []
    for work, (_, tokens, positions) in costs.items():
        arithmetic = 2 * body * tokens + per_position * positions
        share = arithmetic / seconds[work] / most
        found = ratio(f"{name}, {work}", "the cores' peak", share, "at least", SHARE)
        rows.append(found | {"a_second": two_digits(len(prompts) / np.median(seconds[work]))})
    ahead = seconds["llama.cpp"] / seconds["answers"]
    rows.append(ratio(f"llama.cpp, {name}", "ours", ahead, "at least", AHEAD))
    rows[-1]["a_second"] = two_digits(len(prompts) / np.median(seconds["llama.cpp"]))
    return rows


def embedding_weights(network: Any) -> int:
    """Weights of the embedding, and of the head where it has its own: the body has the others."""
    embedding = network.get_input_embeddings()
    count = embedding.num_embeddings * embedding.embedding_dim
    if not network.config.tie_word_embeddings:
        head = network.get_output_embeddings()
        count += head.out_features * head.in_features
    return count


def main() -> None:
    given = options(__doc__, questions=66, rounds=3)

    every = facts.with_questions(facts.load_facts())
    step = len(every) // given.questions
    asked = every.iloc[::step].head(given.questions)
    most = peak()
    rows = []
    print(f"[bench] {most / 1e9:.0f} GFLOP/s at most", flush=True)
    for name in MODELS:
        try:
            rows += measure(name, asked, given.rounds, most)
        except ModelError as error:  # not installed
            print(f"[bench] left out: {error}", flush=True)
    print_ratios(rows)
    told = {
        "questions": len(asked),
        "rounds": given.rounds,
        "gigaflops_at_most": two_digits(most / 1e9),
        "comparisons": rows,
    }
    write_json(given.out / "sizes.json", told)


if __name__ == "__main__":
    main()
