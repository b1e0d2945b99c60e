"""Part 4 from questions to perplexities, on a model whose numbers are known."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from factrobust.context import probe
from factrobust.context.facts import CONTEXTS, known_contexts
from factrobust.context.metrics import ANSWERS, PERPLEXITIES, measured
from factrobust.context.probe import counterfactuals
from factrobust.models import prompts
from factrobust.models.interface import Generation, Job, Model
from factrobust.schemas import ContextResults

OBJECTS = ("Kenya", "Peru", "Chad", "Oman")


def asked_with(country: str, answer: str, about: str = "") -> str:
    """The prompt that asks for a capital, in a context that names that of `about`, or the same."""
    stated = f"The capital of {about or country} is {answer}"
    asked = f"Q: What is the capital of {country}? A: The capital of {country} is"
    return f"Context: [{stated}]. {asked}"


# Only the last token counts, so a prompt with context is one token.
PLAIN = {
    " Kenya is": {" Nai": 0.8, " Lima": 0.2},
    " Nai": {"robi": 0.6, "vasha": 0.4},
    "robi": {".": 1.0},
    " Peru is": {" Lima": 0.9, " Nai": 0.1},
    " Lima": {".": 1.0},
    ".": {" It": 1.0},
    " It": {" is": 1.0},
    " Chad is": {":": 0.6, " Lima": 0.3, " Nai": 0.1},
    ":": {"\n": 1.0},
    " Oman is": {"\n": 0.8, " Lima": 0.1, " Nai": 0.1},
}
TABLE = PLAIN | {
    asked_with("Kenya", "Lima"): {" Lima": 0.7, " Nai": 0.3},
    asked_with("Peru", "Nairobi"): {" Lima": 0.75, " Nai": 0.25},
    asked_with("Chad", "Lima"): {":": 0.6, " Lima": 0.4},
    asked_with("Chad", "Nairobi"): {":": 0.6, " Nai": 0.4},
    asked_with("Oman", "Lima"): {" Nai": 0.9, " Lima": 0.1},
    asked_with("Oman", "Nairobi"): {" Nai": 0.9, " Lima": 0.1},
}


@pytest.fixture
def questions():
    names = pd.Series(OBJECTS, index=range(10, 14))  # not 0, 1, ...
    return pd.DataFrame({"object": names}).assign(
        question_id="capital/" + names.str.lower(),
        category="geography",
        base_id="capital",
        question="What is the capital of " + names + "?",
        prefix="The capital of " + names + " is",
        answers=[[] for _ in OBJECTS],
    )


@pytest.fixture(scope="module")
def toy(toy_model):
    return toy_model(TABLE)


class Parrot(Model):
    """Answers by a table of prompts; remembers what it was asked."""

    name = "parrot"
    fingerprint = "parrot"
    prompt_format = "two-shot"
    chat = None

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.jobs: list[Job] = []

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        self.jobs.append(job)
        for i, request in reversed(list(enumerate(job.requests))):
            prompt = request["prompt"]
            if job.operation == "score":
                yield [i], [np.full(len(request["answer"]), -2.0, dtype=np.float32)]
                continue
            text = self.answers.get(prompt.rpartition("A: ")[2], "no idea")
            tokens = text.split()
            top = [[(f" {token}", -1.0), ("?", -3.0)] for token in tokens]
            ids = [sum(map(ord, token)) for token in tokens]
            yield [i], [Generation(prompt, f" {text}", ids, [-1.0] * len(ids), top)]


def test_prompts_are_the_thesis(toy, questions):
    first = questions[:1]
    stated = "The capital of Kenya is Lima"
    plain = "Q: What is the capital of Kenya? A: The capital of Kenya is"
    assert probe.context_prompts(toy, first) == [plain]
    assert probe.context_prompts(toy, first, [stated]) == [f"Context: [{stated}]. {plain}"]
    chat = Parrot({})
    chat.prompt_format = "chat"
    chat.chat = ("<user>", "<model>")
    assert probe.context_prompts(chat, first, ["It is Lima"]) == [
        "<user>Context: [It is Lima]. Q: What is the capital of Kenya? A:<model>"
        "The capital of Kenya is"
    ]


def test_perplexities_by_hand(toy, questions):
    """The inverse of the geometric mean probability of the tokens."""
    rows = measured(probe.ask(toy, questions)).set_index("object")
    kenya = [(0.8 * 0.6) ** -0.5, 1 / 0.2, (0.3 * 0.6) ** -0.5, 1 / 0.7, 1 / 0.7]
    peru = [1 / 0.9, (0.1 * 0.6) ** -0.5, 1 / 0.75, (0.25 * 0.6) ** -0.5, 1 / 0.75]
    expected = {
        "Kenya": (["Nairobi", "Lima", "Lima"], kenya),
        "Peru": (["Lima", "Nairobi", "Lima"], peru),
    }
    for name, (texts, perplexities) in expected.items():
        row = rows.loc[name]
        assert row[list(ANSWERS)].tolist() == texts
        assert row[list(PERPLEXITIES)].tolist() == pytest.approx(perplexities, rel=1e-5)
        # Exactly what the same tokens had before: else P4 > P3, the code's preference, is rounding.
        assert row["p4"] == row["p3" if name == "Kenya" else "p2"]
    tokens = ["n_tokens_parametric", "n_tokens_counterfactual"]
    assert rows.loc[["Kenya", "Peru"], tokens].to_numpy().tolist() == [[2, 1], [1, 2]]


def test_empty_answers_are_kept_apart(toy, questions):
    results = ContextResults.validate(measured(probe.ask(toy, questions)))
    assert results["question_id"].tolist() == questions["question_id"].tolist()
    chad, oman = results[2:].to_dict("records")
    # ":" has no letter; Oman's first token ends the line.
    assert chad["parametric"] == chad["contextual"] == oman["parametric"] == ""
    assert chad["n_tokens_parametric"] == 0
    assert np.isnan([chad[name] for name in PERPLEXITIES]).tolist() == [True, False] * 2 + [True]
    assert oman["contextual"] == "Nairobi"


def test_each_thing_is_asked_once(questions):
    parrot = Parrot({"The capital of Kenya is": "Nairobi", "The capital of Peru is": "Lima"})
    twice = pd.concat([questions, questions.assign(question_id=lambda t: t["question_id"] + "!")])
    twice["base_id"] = ["capital"] * 4 + ["again"] * 4
    made = measured(probe.ask(parrot, twice))
    asked = [[r["prompt"] for r in job.requests] for job in parrot.jobs]
    assert [job.operation for job in parrot.jobs] == ["generate", "generate", "score"]
    assert asked[0] == [f"Q: {q} A: {p}" for q, p in questions[["question", "prefix"]].to_numpy()]
    assert all(len(prompts) == len(set(prompts)) for prompts in asked[:2])
    assert parrot.jobs[0].settings == {"max_new_tokens": 20, "stop": ["\n", ". "]}
    # Without context q is scored, with it p and q, unless the answer is one of them: all are.
    scored = [(r["prompt"], tuple(r["answer"])) for r in parrot.jobs[2].requests]
    assert len(scored) == len(set(scored))
    assert len(made) == 8
    # The parrot does not look at the context, so every answer is parametric and P4 = P2.
    assert made["contextual"].tolist() == made["parametric"].tolist()
    np.testing.assert_allclose(made[["p0", "p2", "p4"]], math.e)
    np.testing.assert_allclose(made[["p1", "p3"]], math.e**2)


def test_an_initial_is_asked_again(toy_model, questions):
    """Generation stops at ". ", which does not end every answer."""
    certain = {
        " Kenya is": " J",
        " J": ".",
        ".": " Kenyatta",
        " Kenyatta": "\n",
        " Lima": ". ",
    }
    certain |= {
        ". ": "A",
        "A": "A",
        " Chad is": " Nai",
        " Nai": ".\n",
    }
    table = {token: {following: 1.0} for token, following in certain.items()}
    model = toy_model(table | {" Peru is": {" Lima": 0.6, " J": 0.4}})
    made = probe.greedy(model, questions[:3])
    assert made["text"].tolist() == ["J. Kenyatta", "Lima", "Nai"]
    assert made["token_ids"].map(len).tolist() == [3, 1, 1]
    assert made["tokens"].tolist() == [[" J", ".", " Kenyatta"], [" Lima"], [" Nai"]]


def test_asked_in_chunks_and_in_any_order(toy, questions, monkeypatch):
    more = pd.concat([questions, questions.assign(base_id="b", question_id=list("abcd"))])
    results = probe.ask(toy, more, seed=5).set_index("question_id")
    monkeypatch.setattr(prompts, "CHUNK", 1)
    turned = probe.ask(toy, more[::-1], seed=5).set_index("question_id")
    pd.testing.assert_frame_equal(turned.loc[results.index], results)


def test_known_contexts_by_hand(toy_model, questions):
    """The model knows Kenya's capital, believes what is said of Kenya, and repeats what is said of
    Peru."""
    toy = toy_model(
        PLAIN
        | {
            " Peru is": {"\n": 1.0},
            asked_with("Kenya", "Nairobi"): {" Nai": 0.9, " Lima": 0.1},
            asked_with("Kenya", "Lima", about="Peru"): {" Nai": 0.6, " Lima": 0.4},
            asked_with("Kenya", "Lima"): {" Lima": 0.7, " Nai": 0.3},
            asked_with("Peru", "Lima"): {" Lima": 1.0},
            asked_with("Peru", "Nairobi", about="Kenya"): {" Nai": 1.0},
            asked_with("Peru", "Nairobi"): {"\n": 1.0},
        }
    )
    questions = questions[:2].assign(answers=[["Nairobi"], ["Lima", "Ciudad de los Reyes"]])
    made = measured(probe.ask_known(toy, questions, known_contexts(questions, questions)))
    assert made[["object", "context", *ANSWERS]].to_numpy().tolist() == [
        ["Kenya", CONTEXTS[0], "Nairobi", "Nairobi", "Nairobi"],
        ["Kenya", CONTEXTS[1], "Nairobi", "Lima", "Nairobi"],
        ["Kenya", CONTEXTS[2], "Nairobi", "Lima", "Lima"],
        ["Peru", CONTEXTS[0], "", "Lima", "Lima"],
        ["Peru", CONTEXTS[1], "", "Nairobi", "Nairobi"],
        ["Peru", CONTEXTS[2], "", "Nairobi", ""],
    ]
    kenya = made[:3].set_index("context")
    peru = made[3:]
    # The answer from memory, " Nai" "robi", and the one that the context states, both ways.
    memory = (0.8 * 0.6) ** -0.5
    with_context = [(0.9 * 0.6) ** -0.5, (0.6 * 0.6) ** -0.5, (0.3 * 0.6) ** -0.5]
    expected = {
        "p0": [memory] * 3,
        "p1": [memory, 1 / 0.2, 1 / 0.2],
        "p2": with_context,
        "p3": [with_context[0], 1 / 0.4, 1 / 0.7],
        "p4": [*with_context[:2], 1 / 0.7],
    }
    np.testing.assert_allclose(kenya[[*expected]].T, [*expected.values()], rtol=1e-5)
    # Exactly what generation told, where the answer given is one of the two.
    assert kenya.loc["true", ["p2", "p3"]].eq(kenya.loc["true", "p4"]).all()
    assert kenya.loc["false", "p3"] == kenya.loc["false", "p4"]
    assert peru[["p0", "p2"]].isna().all(axis=None)


def test_tokens_of_both_answers(toy, questions):
    kenya = probe.ask(toy, questions).iloc[0]
    table = probe.answer_tokens(toy, questions, kenya)
    expected = [
        ("parametric", False, 1, " Nai", 0.8),
        ("parametric", False, 2, "robi", 0.6),
        ("parametric", True, 1, " Nai", 0.3),
        ("parametric", True, 2, "robi", 0.6),
        ("counterfactual", False, 1, " Lima", 0.2),
        ("counterfactual", True, 1, " Lima", 0.7),
    ]
    assert [tuple(row[:4]) for row in table.to_numpy()] == [row[:4] for row in expected]
    assert table["probability"].tolist() == pytest.approx([row[4] for row in expected])


def answered(*texts: str, base: str = "b") -> pd.DataFrame:
    """Answers to one base question about objects 0, 1, ..."""
    names = [str(i) for i in range(len(texts))]
    return pd.DataFrame({"base_id": base, "object": names, "text": list(texts)})


def test_a_counterfactual_is_never_an_equal_answer_nor_an_empty_one():
    for seed in range(20):
        drawn = counterfactuals(answered("", "Paris", "the paris", "Rome", "Oslo"), seed=seed)
        allowed = [{1, 2, 3, 4}, {3, 4}, {3, 4}, {1, 2, 4}, {1, 2, 3}]
        assert all(row in rows for row, rows in zip(drawn, allowed, strict=True))
    for texts in (["Oslo", "Oslo"], ["Oslo", ""], []):
        assert set(counterfactuals(answered(*texts))) <= {-1, 0}


def test_other_base_questions_do_not_matter():
    one = answered("Oslo", "Rome", "Paris")
    both = pd.concat([answered("1", "2", base="c"), one], ignore_index=True)
    assert (counterfactuals(both)[2:] - 2).tolist() == counterfactuals(one).tolist()


def test_uniform_over_questions():
    rows = answered("Oslo", "Rome", "Rome", "Rome", "Paris")
    draws = np.array([counterfactuals(rows, seed=seed)[0] for seed in range(2000)])
    # Rome stands there three times of four.
    low, high = binom.interval(1 - 1e-4, len(draws), 0.25)
    for row in (1, 2, 3, 4):
        assert low <= (draws == row).sum() <= high


def test_passages_are_asked_four_times(questions):
    """Without a passage, with it, with its slots exchanged, and with another answer exchanged; what is said
    twice is scored once, and a passage without a placebo is asked once."""
    parrot = Parrot({"The capital of Kenya is": "Nairobi"})
    told = {"question_id": ["capital/kenya"] * 2, "context": ["true", "false"]}
    told |= {"sentence": ["a", "b"], "swap_1": ["a1", "b1"], "swap_2": ["a2", "b2"]}
    slots: list[list] = [[], []]
    made = probe.swapped(
        parrot, questions, pd.DataFrame(told | {"placebo": ["a3", ""], "slots": slots})
    )
    sent = [request["prompt"] for job in parrot.jobs for request in job.requests]
    assert len(sent) == len(set(sent)) == 1 + 6 + 1  # nothing scored: memory says the same
    columns = ["parametric", "contextual", "text_1", "text_2", "text_placebo"]
    assert made[columns].eq("Nairobi").all(axis=None)
    assert made["placebo"].tolist() == ["a3", ""]
    assert made["logprobs_p1"].tolist() == made["logprobs_p0"].tolist() == [[-1.0]] * 2
