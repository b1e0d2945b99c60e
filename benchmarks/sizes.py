"""Greedy answers, scores and curves a second of models of several sizes, and llama.cpp beside them.

    python benchmarks/sizes.py          # or `make bench`, some minutes

Each operation is given as a share of what the cores can do at most: the arithmetic of the linear
layers (attention left out), over that of one large product of matrices in the same time. llama.cpp
answers the same questions from the same file, by its server; it multiplies with activations of 8
bits. Both use all cores. Models that are not installed are left out. Writes
data/benchmarks/sizes.json."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from measuring.meter import Meter
from measuring.report import Works, in_turns, options, ratio, report, rounded

from factrobust import load_model
from factrobust.datasets import facts
from factrobust.decoding.probe import GRID
from factrobust.models import gguf_files, llama_cpp, load
from factrobust.models.interface import ModelError
from factrobust.models.linear import prepack
from factrobust.models.prompts import FORMATS, render

MODELS = ("gemma-3-270m", "qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
FORMAT = "two-shot"
AHEAD = 1.0  # of llama.cpp, at least
SHARE = 0.75  # of the cores' peak, at least


def peak() -> float:
    """Floating point operations a second of the fastest large product that torch has here."""
    x = torch.randn(2048, 2048)
    plain = torch.nn.Linear(2048, 2048, bias=False)
    packed = torch.nn.Sequential(torch.nn.Linear(2048, 2048, bias=False))
    prepack(packed)
    with torch.inference_mode():
        seconds = in_turns({"packed": lambda: packed(x), "plain": lambda: plain(x)}, rounds=5)
    return 2 * 2048**3 / seconds.to_numpy().min()


def measure(name: str, asked: pd.DataFrame, rounds: int, most: float) -> list[dict[str, Any]]:
    """A row an operation of a model."""
    model: Any = load_model(name)
    network = model.body.network
    n_body = network.base_model.num_parameters(exclude_embeddings=True)
    n_head = network.get_output_embeddings().weight.numel()
    folder, _ = load.location(load.find_weights(name))
    file = Path(folder) / gguf_files.FILE
    server: Any = llama_cpp.served(f"{llama_cpp.START}{file}")
    prompts = render(FORMAT, asked["question"].tolist(), asked["prefix"].tolist())
    answers = (" " + asked["object"]).tolist()

    def curves() -> None:
        # A job with other answers in between, or hidden states of the last one would be used again.
        model.temper(prompts[:1], answers[1:2], GRID)
        model.temper(prompts, answers, GRID)

    works: Works = {
        "answers": partial(model.generate, prompts, stop=FORMATS[FORMAT].stop),
        "scores": partial(model.score, prompts, answers),
        "curves": curves,
    }
    # 1. What each operation has to compute.
    meter = Meter(network)
    operations = {}
    for work, asks in works.items():
        asks()  # packs the weights
        cost = meter.cost(asks)
        operations[work] = 2 * (n_body * cost["tokens"] + n_head * cost["head_positions"])
    # 2. How long it takes.
    llama = server.load()  # without its records
    by_llama = partial(llama.generate, prompts, stop=FORMATS[FORMAT].stop)
    seconds = in_turns({**works, "llama.cpp": by_llama}, rounds)
    rows = []
    for work, count in operations.items():
        share = count / seconds[work] / most
        rows.append(ratio(f"{name}, {work}", "the cores' peak", share, "at least", SHARE))
    ahead = seconds["llama.cpp"] / seconds["answers"]
    rows.append(ratio(f"llama.cpp, {name}", "ours", ahead, "at least", AHEAD))
    for row, median in zip(rows, seconds.median(), strict=True):
        row["a_second"] = rounded(len(prompts) / median)
    return rows


def main() -> None:
    given = options(__doc__, questions=66, rounds=3)
    every = facts.with_questions(facts.load_facts())
    step = len(every) // given.questions
    asked = every.iloc[::step].head(given.questions)
    torch.set_num_threads(os.cpu_count() or 1)  # as many as llama.cpp has
    most = peak()
    rows = []
    for name in MODELS:
        try:
            rows += measure(name, asked, given.rounds, most)
        except ModelError as error:  # not installed
            print(f"left out: {error}")
    report(
        given,
        "sizes",
        rows,
        questions=len(asked),
        rounds=given.rounds,
        gigaflops_at_most=rounded(most / 1e9),
    )


if __name__ == "__main__":
    main()
