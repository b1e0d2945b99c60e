"""What notebooks ask: by hand, and as the records of a laptop run held it."""

from __future__ import annotations

from typing import Any

import pytest

from factrobust.plan.demands import (
    CHARACTERS_A_TOKEN,
    Asked,
    Demand,
    asked_model,
    demands,
    merged,
)
from factrobust.plan.questions import UnknownSize

ALL = 100_000
PRETRAINED = Asked("gemma-3-270m", "two-shot", False)
TUNED = Asked("smollm2-135m-instruct", "chat-prefix", True)
MODELS = {"models": ["gemma-3-270m", "smollm2-135m-instruct"], "seed": 0}
DECODING = MODELS | {"n_questions": 900, "n_known": 25, "n_samples": 10}
TIME = MODELS | {"n_facts": 72, "n_correct": 3, "n_incorrect": 6, "n_formats": 24}
TIME |= {"n_dense": 24, "n_years": 30, "n_dtype": 12}
WORDING = MODELS | {"n_facts": 192, "n_samples": 10, "max_new_tokens": 20}
CONTEXT = MODELS | {"n_objects": 2, "n_facts": 54}


def part(
    numbers: str, values: dict[str, Any], model: Asked, known: float = 0.4
) -> dict[str, float]:
    """Calls by operation of several notebooks together."""
    asked: list[Demand] = []
    for number in numbers.split():
        found = demands(f"notebooks/some-part/{number}-name.ipynb", values, model, known)
        assert found is not None
        asked += found
    counts: dict[str, float] = {}
    for demand in merged(asked):
        counts[demand.operation] = counts.get(demand.operation, 0) + demand.calls
    return counts


def test_known_facts_are_sampled_by_data_set_and_tempered_all() -> None:
    values = DECODING | {"data": ["squad", "hotpot_qa"], "n_questions": ALL, "n_known": 4000}
    found = part("1.1 1.2 1.3 1.4 1.5 1.6", values, PRETRAINED, known=0.5)
    # Of SQuAD's 10,570 half are known, and 4,000 of them sampled at ten temperatures; of
    # HotpotQA's 7,405 half are 3,702 (round goes to the even neighbour).
    assert found == {"generate": 17_975, "sample": (4000 + 3702) * 10, "temper": 8_988}
    assert part("1.1", values, PRETRAINED) == {"generate": 17_975}
    assert part("1.5", values, PRETRAINED, known=0.2) == {"generate": 17_975, "temper": 3_595}


# What the records of a run of the laptop profile held: exactly so many.
@pytest.mark.parametrize(
    ("numbers", "values", "model", "held"),
    [
        ("1.1 1.2 1.3 1.4 1.6", DECODING, PRETRAINED, {"generate": 900, "sample": 750}),
        ("2.2 2.3", TIME, PRETRAINED, {"score": 2361}),
        ("2.4", TIME, TUNED, {"score": 1572}),
        ("2.5", TIME, TUNED, {"score": 1572}),
        ("2.2 2.3 2.4 2.5 2.6 2.7", TIME, PRETRAINED, {"score": 3695 + 393}),
        ("2.2 2.3 2.4 2.5 2.6 2.7", TIME, TUNED, {"score": 4481}),
        ("3.2", WORDING, TUNED, {"generate": 1404}),
        ("3.2 3.3 3.4", WORDING, PRETRAINED, {"generate": 1404, "sample": 192}),
    ],
)
def test_a_run_held_as_many(
    numbers: str, values: dict[str, Any], model: Asked, held: dict[str, int]
) -> None:
    found = part(numbers, values, model)
    assert {operation: found[operation] for operation in held} == held


def test_pretrained_models_have_no_second_format() -> None:
    assert part("2.4", TIME, PRETRAINED) == {}


def test_a_question_in_context_is_asked_twice_and_scored_twice() -> None:
    assert part("4.2 4.3 4.4", CONTEXT, PRETRAINED) == {"generate": 400, "score": 400}
    assert part("4.6", CONTEXT, TUNED) == {"generate": 54 * 4}
    assert part("4.2 4.5 4.6", CONTEXT, TUNED) == {"generate": 400 + 54 * 4, "score": 400}


def test_equal_questions_are_asked_once_and_others_again() -> None:
    few, many = WORDING | {"n_facts": 16}, WORDING
    values = [(few, "3.2"), (many, "3.2"), (few, "3.3")]
    asked = [d for v, n in values for d in demands(f"{n}-name.ipynb", v, PRETRAINED, 0.4) or ()]
    assert [(d.operation, d.calls) for d in merged(asked)] == [("generate", 1404), ("sample", 16)]
    other = demands("3.2-name.ipynb", WORDING | {"seed": 1}, PRETRAINED, 0.4) or []
    assert len(merged([*asked, *other])) == 3


def test_tokens_of_a_question_as_it_is() -> None:
    values = TIME | {"data": "timestress"}
    found = demands("2.2-win-rate.ipynb", values, PRETRAINED, 0.4)
    assert found is not None
    [asked] = found
    # 78 characters of a question, nothing around it, and an answer of 12 after a space.
    assert (asked.prompt, asked.shared) == (78 / CHARACTERS_A_TOKEN, 0)
    assert asked.answer == 13 / CHARACTERS_A_TOKEN
    assert asked.tokens == pytest.approx(asked.calls * 91 / CHARACTERS_A_TOKEN)


def test_tokens_of_examples_and_samples() -> None:
    values = DECODING | {"data": ["squad"]}
    found = demands("1.2-temperature.ipynb", values, PRETRAINED, 0.4)
    assert found is not None
    generate, sample = found
    # Two examples ("Q: ", "\nA: ", an empty line) of 40 + 4 and 26 + 17 characters, then "Q: ".
    examples = (3 + 40 + 4 + 4 + 2) + (3 + 26 + 4 + 17 + 2)
    assert generate.shared * CHARACTERS_A_TOKEN == pytest.approx(examples + 3)
    assert generate.prompt * CHARACTERS_A_TOKEN == pytest.approx(examples + 3 + 60 + 3)
    assert sample.tokens == pytest.approx(sample.calls * (sample.prompt + 10 * 5))


def test_how_models_are_asked() -> None:
    assert asked_model("gemma-3-270m") == PRETRAINED
    assert asked_model("smollm2-135m-instruct") == TUNED
    assert asked_model("org/unknown") == Asked("org/unknown", "two-shot", False)
    endpoint = asked_model("http://localhost:8000/v1 llama format=chat")
    assert (endpoint.prompt_format, endpoint.chat) == ("chat", True)
    assert not asked_model("http://localhost:8000/v1 llama api=completions").chat


def test_what_an_endpoint_cannot_do_is_not_planned() -> None:
    chat = asked_model("http://localhost:8000/v1 llama")
    assert part("1.1 1.2 1.3 1.4", DECODING, chat) == {"generate": 900, "sample": 750}
    assert part("1.5 1.6", DECODING, chat) == {}
    assert part("2.2 2.3 2.4", TIME, chat) == {}
    assert part("4.2 4.3", CONTEXT, chat) == {}
    echoing = asked_model("http://localhost:8000/v1 llama api=completions")
    assert part("2.2 2.3", TIME, echoing) == {"score": 2361}


def test_what_is_not_known_here() -> None:
    assert demands("notebooks/9-more/9.1-new.ipynb", MODELS, PRETRAINED, 0.4) is None
    with pytest.raises(UnknownSize, match="'mine'"):
        demands("3.2-name.ipynb", WORDING | {"data": "mine"}, PRETRAINED, 0.4)
