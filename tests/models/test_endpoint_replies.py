"""Both shapes of log-probabilities that servers send, and replies that hold no answer."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from factrobust.models.endpoint import (
    Choice,
    ReplyError,
    Token,
    choices,
    covering,
    decode_reply,
    echoes,
    generation,
    read_reply,
    scores,
)

# The same two tokens as completions of OpenAI and vLLM tell them, and as chats and llama.cpp do.
LISTS = {
    "tokens": [" Nai", "robi"],
    "token_logprobs": [-0.25, -0.5],
    "top_logprobs": [{" Mom": -3.0, " Nai": -0.25}, {"robi": -0.5, "r": -1.5}],
    "text_offset": [9, 13],
}
CONTENT = {
    "content": [
        {
            "token": " Nai",
            "bytes": [32, 78, 97, 105],
            "logprob": -0.25,
            "top_logprobs": [
                {"token": " Nai", "bytes": None, "logprob": -0.25},
                {"token": " Mom", "bytes": None, "logprob": -3.0},
            ],
        },
        {
            "token": "robi",
            "bytes": None,
            "logprob": -0.5,
            "top_logprobs": [
                {"token": "r", "logprob": -1.5},
                {"token": "robi", "logprob": -0.5},
            ],
        },
    ]
}


def only(choice: dict[str, Any]) -> Choice:
    [made] = choices({"choices": [choice]})
    return made


@pytest.mark.parametrize("logprobs", [LISTS, CONTENT], ids=["lists", "content"])
@pytest.mark.parametrize("place", ["text", "message"])
def test_both_shapes_give_the_same_generation(logprobs: Any, place: str) -> None:
    said = {"text": " Nairobi"} if place == "text" else {"message": {"content": " Nairobi"}}
    made = generation("Kenya:", only(said | {"logprobs": logprobs}), [], greedy=True)
    assert (made.prompt, made.text, made.token_ids) == ("Kenya:", " Nairobi", [])
    assert made.logprobs == [-0.25, -0.5]
    assert made.top_logprobs == [[(" Nai", -0.25), (" Mom", -3.0)], [("robi", -0.5), ("r", -1.5)]]


def test_ten_alternatives_are_kept_best_first() -> None:
    told = {str(k): -float(k) for k in range(12, 0, -1)}
    lists = {"tokens": ["1"], "token_logprobs": [-1.0], "top_logprobs": [told]}
    [top] = generation("p", only({"text": "1", "logprobs": lists}), [], greedy=True).top_logprobs
    assert top == [(str(k), -float(k)) for k in range(1, 11)]


def test_the_answer_ends_before_a_stop_string() -> None:
    """The end token of llama.cpp has no bytes; tokens behind the answer are dropped."""
    content = [
        {"token": t, "bytes": list(t.encode()), "logprob": -float(i), "top_logprobs": []}
        for i, t in enumerate([" Nai", "robi", ".", "\n", ""])
    ]
    choice = only({"text": " Nairobi.\n", "logprobs": {"content": content}})
    made = generation("p", choice, ["\n", "."], greedy=True)
    assert (made.text, made.logprobs) == (" Nairobi", [0.0, -1.0])
    whole = generation("p", choice, [], greedy=True)
    assert (whole.text, whole.logprobs) == (" Nairobi.\n", [0.0, -1.0, -2.0, -3.0])
    assert whole.top_logprobs == []  # none were told


def test_an_answer_that_ended_at_once() -> None:
    content = [{"token": "", "bytes": [], "logprob": -0.1, "top_logprobs": []}]
    made = generation("p", only({"text": "", "logprobs": {"content": content}}), [], greedy=True)
    assert (made.text, made.logprobs, made.top_logprobs) == ("", [], [])


def test_without_logprobs_there_are_none() -> None:
    for logprobs in (None, {}, {"content": None}, {"tokens": None}):
        made = generation("p", only({"text": " yes", "logprobs": logprobs}), [], greedy=True)
        assert (made.text, made.logprobs, made.top_logprobs) == (" yes", [], [])


def test_samples_carry_no_logprobs() -> None:
    made = generation("p", only({"text": " Nairobi", "logprobs": LISTS}), ["obi"], greedy=False)
    assert (made.text, made.logprobs, made.tempered_logprobs) == (" Nair", [], [])


def tokens(*texts: str | bytes, logprobs: Any = None) -> list[Token]:
    values = logprobs or [-float(i) for i in range(len(texts))]
    return [
        Token(t if isinstance(t, bytes) else t.encode(), p, [])
        for t, p in zip(texts, values, strict=True)
    ]


@pytest.mark.parametrize(
    ("told", "text", "n"),
    [
        ((" Nai", "robi", " is"), " Nairobi", 2),
        ((" Nai", "robi", " is"), " Nair", 2),
        ((" Nai", "robi", " is"), " Nai", 1),
        ((" Nai", "robi"), "", 0),
        ((" Nai", "robi", " is"), "Nairobi", 2),  # a chat without its first space
        (("S", b"\xc3", b"\xa3", "o", " Paulo"), "São", 4),  # a letter in two tokens
        (("S", "\ufffd", "\ufffd", "o", " Paulo"), "São", 5),  # told as replacement characters: all
    ],
)
def test_tokens_that_cover_a_text(told: tuple[str, ...], text: str, n: int) -> None:
    assert covering(tokens(*told), text) == n


def test_choices_come_in_order() -> None:
    given = [{"index": 1, "text": "b"}, {"index": 2, "text": "c"}, {"index": 0, "text": "a"}]
    assert [c.text for c in choices({"choices": given})] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b'{"choices": [{"text": " Na', r"is no JSON \(Unterminated string .*column 23.*begins '{"),
        (b"<html>Welcome</html>", "is no JSON .* begins '<html>Welcome"),
        (b"[1]", r"is JSON of another kind \(list\)"),
        (b"{}", "holds no choices"),
        (b'{"choices": []}', "holds no choices"),
        (b'{"choices": [3]}', "holds a choice that is no object"),
        (b'{"error": {"message": "out of memory"}}', "holds an error: out of memory"),
        (
            b'{"choices": [{"text": null, "finish_reason": "x"}]}',
            r"holds no text \(it ended with 'x",
        ),
        (b'{"choices": [{"message": {"content": null}}]}', "holds no text"),
        (
            b'{"choices": [{"message": {"content": "", "reasoning_content": "Hm"}}]}',
            "ends before the answer, in the model's reasoning",
        ),
        (
            b'{"choices": [{"text": "a", "logprobs": {"tokens": ["a"], "token_logprobs": []}}]}',
            r"log-probabilities in no known shape \(ValueError",
        ),
        (
            b'{"choices": [{"text": "a", "logprobs": {"content": [{"token": "a"}]}}]}',
            r"no known shape \(KeyError: 'logprob'",
        ),
        (
            b'{"choices": [{"text": "a", "logprobs": {"content": [{"token": "a", "logprob": 2}]}}]}',
            "2.0 is no log-probability",
        ),
    ],
)
def test_replies_that_hold_no_answer(body: bytes, fault: str) -> None:
    with pytest.raises(ReplyError, match=fault):
        choices(decode_reply(body))


def test_a_refusal_is_the_answer() -> None:
    assert only({"message": {"content": None, "refusal": "I cannot."}}).text == "I cannot."


def test_a_greedy_token_without_its_logprob() -> None:
    lists = {"tokens": ["a"], "token_logprobs": [None]}
    with pytest.raises(ReplyError, match="a token without its log-probability"):
        generation("p", only({"text": "a", "logprobs": lists}), [], greedy=True)


@pytest.mark.parametrize(
    ("usage", "used"),
    [({"total_tokens": 12}, 12), (None, None), ({}, None), ({"total_tokens": "?"}, None)],
)
def test_tokens_as_the_server_counts_them(usage: Any, used: int | None) -> None:
    reply = {"choices": [{"text": "ü"}], "usage": usage}
    assert read_reply(json.dumps(reply).encode()) == ([Choice("ü", None)], used)


# -- given answers: prompt "The capital", answer " Nairobi" -----------------------------------------

ECHO = ("The", " cap", "ital", " Nai", "robi")
VALUES = [None, -1.0, -2.0, -3.0, -4.0]


@pytest.mark.parametrize(
    ("told", "values", "text", "expected"),
    [
        ((*ECHO, "."), [*VALUES, -9.0], "The capital Nairobi.", [-3, -4]),
        (ECHO, VALUES, "The capital Nairobi", [-3, -4]),  # nothing new
        ((*ECHO, ""), [*VALUES, -9.0], "The capital Nairobi", [-3, -4]),  # the end of the text
        ((*ECHO, "</s>"), [*VALUES, -9.0], "The capital Nairobi", [-3, -4]),
        (("<s>", *ECHO, "."), [None, -5.0, *VALUES[1:], -9.0], "The capital Nairobi.", [-3, -4]),
        # A token that straddles prompt and answer belongs to the answer (appendix D).
        (
            ("The", " capital N", "airobi", "."),
            [None, -1, -2, -9],
            "The capital Nairobi.",
            [-1, -2],
        ),
        # The prompt's letters may be told badly: only the answer's tokens are compared.
        (("\ufffd", "\ufffd", " Nairobi", "."), [None, -1, -2, -9], "The capital Nairobi.", [-2]),
    ],
)
def test_scores_of_an_echoed_answer(
    told: tuple[str, ...], values: list[Any], text: str, expected: list[float]
) -> None:
    choice = Choice(text, tokens(*told, logprobs=values))
    assert echoes(choice, "The capital", " Nairobi")
    made = scores(choice, "The capital", " Nairobi")
    assert made.dtype == np.float32
    assert made.tolist() == expected


def test_the_new_token_is_not_taken_for_the_answers_last() -> None:
    """ "ha ha ha": the third "ha" is new, and its score is not the answer's."""
    choice = Choice("ha ha ha", tokens("ha", " ha", " ha", logprobs=[None, -1.0, -7.0]))
    assert scores(choice, "ha", " ha").tolist() == [-1.0]


def test_scores_that_cannot_be_told_apart() -> None:
    for told in (("The", " cap", "ital", " Nai", "\ufffd"), ("The capital Nairobi",)):
        choice = Choice("The capital Nairobi", tokens(*told, logprobs=[None, *VALUES][: len(told)]))
        with pytest.raises(ReplyError, match="' Nairobi' in tokens that do not add up to it"):
            scores(choice, "The capital", " Nairobi")


def test_a_server_that_does_not_echo() -> None:
    assert not echoes(Choice(".", tokens(".")), "The capital", " Nairobi")
    assert not echoes(Choice("The capital Nairobi.", tokens(".")), "The capital", " Nairobi")
    assert not echoes(Choice("The capital Nairobi.", None), "The capital", " Nairobi")
