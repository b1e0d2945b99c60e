"""The methods of part 1 that are compared, ours and the usual ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from factrobust.datasets.facts import accepted_answers
from factrobust.decoding import metrics as part1
from factrobust.decoding import probe
from factrobust.models import tokens
from factrobust.models.causal import CausalLM
from factrobust.models.prompts import FORMATS
from factrobust.text import contains
from measuring.plain import plain_network

SEPARATE, TOGETHER = "100 separate samples", "ten samples a call"
SHARED, UNSTOPPED = "shared prefixes", "shared prefixes, no early stop"
BISECTION = "bisection over temperatures"
EXACT, GREEDY = "exact curve", "one greedy answer"
EXACT_BATCH, GREEDY_BATCH = f"{EXACT}, in a batch", f"{GREEDY}, in a batch"
SCORE, FULL_LOGITS = "score", "full-logits score"
SCORE_SHORT, FULL_LOGITS_SHORT = f"{SCORE}, zero-shot", f"{FULL_LOGITS}, zero-shot"

ONE_BY_ONE = (SEPARATE, TOGETHER, SHARED, UNSTOPPED, BISECTION, EXACT, GREEDY)


@dataclass(frozen=True)
class Settings:
    """How much is measured. The defaults are the paper's procedure and a run of some minutes."""

    temperatures: tuple[float, ...] = probe.TEMPERATURES
    samples: int = probe.SAMPLES  # a temperature
    max_new_tokens: int = probe.MAX_NEW_TOKENS
    questions: int = 5  # one by one
    batch: int = 32  # questions at once
    rounds: int = 3  # of the batches, after one to warm up


def single_methods(
    model: CausalLM, fact: pd.DataFrame, settings: Settings
) -> dict[str, Callable[[], object]]:
    """The methods that ask one question; `SEPARATE` makes one sample a temperature."""
    prompt, grid = probe.prompts(model, fact)[0], settings.temperatures
    stop = FORMATS[model.prompt_format].stop
    works: tuple[Callable[[], object], ...] = (
        lambda: generate_samples(model, prompt, settings, 1),
        lambda: generate_samples(model, prompt, settings, settings.samples),
        lambda: our_samples(model, prompt, settings, grid, stop),
        lambda: our_samples(model, prompt, settings, grid, ()),
        lambda: bisection(model, fact, prompt, settings, stop),
        lambda: exact_scores(model, fact, settings),
        lambda: probe.greedy_answers(
            model, fact, max_new_tokens=settings.max_new_tokens, temperatures=()
        ),
    )
    return dict(zip(ONE_BY_ONE, works, strict=True))


def batch_methods(
    model: CausalLM, facts: pd.DataFrame, settings: Settings
) -> dict[str, Callable[[], object]]:
    """The methods that ask all facts at once. Zero-shot prompts share no examples."""
    pairs, short = (
        score_pairs(model, facts, model.prompt_format),
        score_pairs(model, facts, "zero-shot"),
    )
    return {
        EXACT_BATCH: lambda: exact_scores(model, facts, settings),
        GREEDY_BATCH: lambda: probe.greedy_answers(
            model, facts, max_new_tokens=settings.max_new_tokens, temperatures=()
        ),
        FULL_LOGITS: lambda: full_logits_score(model, *pairs),
        SCORE: lambda: model.score(*pairs),
        FULL_LOGITS_SHORT: lambda: full_logits_score(model, *short),
        SCORE_SHORT: lambda: model.score(*short),
    }


def score_pairs(model: CausalLM, facts: pd.DataFrame, form: str) -> tuple[list[str], list[str]]:
    answer = [FORMATS[form].separator + text for text in facts["object"]]
    return probe.prompts(model, facts, form), answer


def generate_samples(model: CausalLM, prompt: str, settings: Settings, rows: int) -> None:
    """One call of transformers' generate a temperature, which makes `rows` samples of the
    prompt."""
    network, device = plain_network(model), model.body.device
    ids = torch.tensor([tokens.encode(model.tokenizer, prompt, bos=model.bos)], device=device)
    for temperature in settings.temperatures:
        network.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            temperature=temperature,
            top_k=0,
            top_p=1.0,
            max_new_tokens=settings.max_new_tokens,
            num_return_sequences=rows,
            pad_token_id=model.end_ids[0],
        )


def our_samples(
    model: CausalLM,
    prompt: str,
    settings: Settings,
    temperatures: Sequence[float],
    stop: tuple[str, ...],
) -> list[list[str]]:
    """Texts of our sampler's samples, a list a temperature."""
    made = model.sample(
        [prompt] * len(temperatures),
        temperature=temperatures,
        n=settings.samples,
        max_new_tokens=settings.max_new_tokens,
        stop=stop,
    )
    return [[generation.text for generation in group] for group in made]


def bisection(
    model: CausalLM, fact: pd.DataFrame, prompt: str, settings: Settings, stop: tuple[str, ...]
) -> None:
    """Appendix E's search for the breaking temperature."""
    accepted = accepted_answers(fact)[0]

    def broken(temperature: float) -> bool:
        texts = our_samples(model, prompt, settings, [temperature], stop)[0]
        return bool(np.mean([contains(text, accepted) for text in texts]) < part1.THRESHOLD)

    bisect_left(settings.temperatures, True, key=broken)


def exact_scores(model: CausalLM, facts: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """Everything from the question to its FRS."""
    options = {"max_new_tokens": settings.max_new_tokens, "temperatures": settings.temperatures}
    responses = probe.greedy_answers(model, facts, **options)
    breaking = part1.exact_breaking(probe.answer_curves(responses, settings.temperatures))
    return part1.frs_table(part1.mark_greedy(responses), breaking, unbroken=None)


def full_logits_score(
    model: CausalLM, prompts: Sequence[str], given: Sequence[str]
) -> list[np.ndarray]:
    """`Model.score` as it is usually written: all logits of a padded batch, then the ones
    wanted."""
    pairs = [
        tokens.encode_pair(model.tokenizer, prompt, answer, bos=model.bos)
        for prompt, answer in zip(prompts, given, strict=True)
    ]
    ids = torch.nn.utils.rnn.pad_sequence(
        [torch.tensor(sequence) for sequence, _ in pairs], batch_first=True
    ).to(model.body.device)
    lengths = torch.tensor([len(sequence) for sequence, _ in pairs])
    mask = (torch.arange(ids.shape[1])[None] < lengths[:, None]).long().to(model.body.device)
    with torch.inference_mode():
        logits = plain_network(model)(input_ids=ids, attention_mask=mask).logits
        logprobs = logits[:, :-1].log_softmax(dim=-1).gather(2, ids[:, 1:, None])[..., 0]
    rows = logprobs.cpu().numpy()
    return [
        row[start - 1 : len(sequence) - 1]
        for row, (sequence, start) in zip(rows, pairs, strict=True)
    ]
