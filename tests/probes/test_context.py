"""Part 4 from questions to perplexities, on a model whose numbers are known."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factrobust import load_model
from factrobust.datasets.contexts import COLUMNS as QUESTIONS
from factrobust.datasets.contexts import load_context_questions
from factrobust.models.interface import Generation, Job, LacksError, Model
from factrobust.models.load import RecordedModel
from factrobust.probes import context
from factrobust.probes.context_results import COLUMNS
from factrobust.records import Records

OBJECTS = ("Kenya", "Peru", "Chad", "Oman")


def asked_with(country: str, answer: str) -> str:
    return (
        f"Context: [The capital of {country} is {answer}]. Q: What is the capital of {country}? "
        f"A: The capital of {country} is"
    )


# Only the last token counts, so a prompt with context is one token.
TABLE = {
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
    asked_with("Kenya", "Lima"): {" Lima": 0.7, " Nai": 0.3},
    asked_with("Peru", "Nairobi"): {" Lima": 0.75, " Nai": 0.25},
    asked_with("Chad", "Lima"): {":": 0.6, " Lima": 0.4},
    asked_with("Chad", "Nairobi"): {":": 0.6, " Nai": 0.4},
    asked_with("Oman", "Lima"): {" Nai": 0.9, " Lima": 0.1},
    asked_with("Oman", "Nairobi"): {" Nai": 0.9, " Lima": 0.1},
}
NAIROBI, LIMA = ["Nai", "robi"], ["Lima"]


@pytest.fixture
def questions() -> pd.DataFrame:
    rows = [
        {
            "question_id": f"capital/{name.lower()}",
            "category": "geography",
            "base_id": "capital",
            "attribute": "capital",
            "object": name,
            "question": f"What is the capital of {name}?",
            "prefix": f"The capital of {name} is",
            "answers": [],
            "right_answers": "one",
            "popularity": np.nan,
        }
        for name in OBJECTS
    ]
    return pd.DataFrame(rows, index=range(10, 14))[list(QUESTIONS)]  # not 0, 1, ...


@pytest.fixture(scope="module")
def toy(toy_model: Callable[..., Any]) -> Any:
    return toy_model(TABLE)


class Parrot(Model):
    """Answers by a table of prompts; remembers what it was asked."""

    name, fingerprint, prompt_format, chat = "parrot", "parrot", "two-shot", None

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


def test_prompts_are_the_thesis(toy: Any, questions: pd.DataFrame) -> None:
    first = questions[:1]
    plain = "Q: What is the capital of Kenya? A: The capital of Kenya is"
    assert context.context_prompts(toy, first) == [plain]
    stated = ["The capital of Kenya is Lima"]
    assert context.context_prompts(toy, first, stated) == [asked_with("Kenya", "Lima")]
    assert asked_with("Kenya", "Lima") == f"Context: [{stated[0]}]. {plain}"


def test_prompts_of_a_chat_model(questions: pd.DataFrame) -> None:
    chat = Parrot({})
    chat.prompt_format, chat.chat = "chat", ("<user>", "<model>")  # type: ignore[misc]
    made = context.context_prompts(chat, questions[:1], ["It is Lima"])
    assert made == [
        "<user>Context: [It is Lima]. Q: What is the capital of Kenya? A:<model>"
        "The capital of Kenya is"
    ]
    plain = context.context_prompts(chat, questions[:1], prompt_format="prefix")
    assert plain == ["Q: What is the capital of Kenya? A: The capital of Kenya is"]


def test_perplexities_by_hand(toy: Any, questions: pd.DataFrame) -> None:
    made = context.ask(toy, questions).set_index("object")
    kenya, peru = made.loc["Kenya"], made.loc["Peru"]
    assert kenya[["parametric", "counterfactual", "contextual"]].tolist() == [
        *("Nairobi", "Lima", "Lima")
    ]
    # Base 2 or e, it is the inverse of the geometric mean probability.
    expected = [(0.8 * 0.6) ** -0.5, 1 / 0.2, (0.3 * 0.6) ** -0.5, 1 / 0.7, 1 / 0.7]
    np.testing.assert_allclose(kenya[["p0", "p1", "p2", "p3", "p4"]].astype(float), expected, 1e-5)
    assert kenya[["n_tokens_parametric", "n_tokens_counterfactual"]].tolist() == [2, 1]
    assert peru[["parametric", "counterfactual", "contextual"]].tolist() == [
        *("Lima", "Nairobi", "Lima")
    ]
    expected = [1 / 0.9, (0.1 * 0.6) ** -0.5, 1 / 0.75, (0.25 * 0.6) ** -0.5, 1 / 0.75]
    np.testing.assert_allclose(peru[["p0", "p1", "p2", "p3", "p4"]].astype(float), expected, 1e-5)
    # By equation 1: mean of the negative binary logarithms, then 2 to its power.
    nll = -(math.log2(0.8) + math.log2(0.6)) / 2
    assert kenya["p0"] == pytest.approx(2**nll, rel=1e-5)


def test_signals_of_the_first_token(toy: Any, questions: pd.DataFrame) -> None:
    kenya = context.ask(toy, questions).iloc[0]

    def entropy(p: float) -> float:
        return -(p * math.log(p) + (1 - p) * math.log(1 - p))

    assert kenya["first_entropy"] == pytest.approx(entropy(0.8), rel=1e-4)
    assert kenya["first_entropy_context"] == pytest.approx(entropy(0.7), rel=1e-4)
    # (0.8, 0.2) and (0.3, 0.7), with (0.55, 0.45) between them.
    divergence = entropy(0.55) - (entropy(0.8) + entropy(0.3)) / 2
    assert kenya["first_shift"] == pytest.approx(math.sqrt(divergence), rel=1e-4)


def test_empty_answers_are_kept_apart(toy: Any, questions: pd.DataFrame) -> None:
    made = context.ask(toy, questions)
    assert made["question_id"].tolist() == questions["question_id"].tolist()
    assert made.attrs["counts"] == {
        "questions": 4,
        "no_counterfactual": 0,
        "empty_parametric": 2,
        "empty_counterfactual": 0,
        "empty_contextual": 1,
    }
    chad, oman = made.set_index("object").loc["Chad"], made.set_index("object").loc["Oman"]
    # ":" has no letter; Oman's first token ends the line.
    assert chad["parametric"] == chad["contextual"] == oman["parametric"] == ""
    assert chad["n_tokens_parametric"] == 0
    assert np.isnan(chad[["p0", "p2", "p4"]].astype(float)).all()
    assert np.isfinite(chad[["p1", "p3"]].astype(float)).all()
    assert np.isfinite(chad["first_entropy"])
    assert np.isnan(oman["first_entropy"])
    assert oman["contextual"] == "Nairobi"
    assert made["counterfactual"].ne("").all()


def test_columns_and_types(toy: Any, questions: pd.DataFrame) -> None:
    made = context.ask(toy, questions)
    assert tuple(made) == COLUMNS
    assert made["model"].eq("toy").all()
    assert made.dtypes[list(COLUMNS[8:13])].eq("float64").all()
    assert made.dtypes[list(COLUMNS[13:15])].eq("int64").all()
    none = context.ask(toy, questions[:0])
    assert len(none) == 0
    assert none.dtypes.to_dict() == made.dtypes.to_dict()


def test_p0_is_what_generation_told(toy: Any, questions: pd.DataFrame) -> None:
    """And what teacher forcing tells of the same token ids."""
    answers = context.greedy(toy, questions)
    made = context.ask(toy, questions)
    np.testing.assert_array_equal(made["p0"], answers["perplexity"])
    sent = answers["prompt"].tolist()
    stopped = toy.generate(sent[:2], max_new_tokens=20, stop=(".",))
    np.testing.assert_allclose(made["p0"][:2], [math.exp(-np.mean(g.logprobs)) for g in stopped])
    assert answers["token_ids"][:2].tolist() == [g.token_ids for g in stopped]
    forced = toy.score(sent[:2], answers["token_ids"][:2].tolist())
    np.testing.assert_allclose(made["p0"][:2], [math.exp(-v.mean()) for v in forced], rtol=1e-5)


def test_the_counterfactual_token_by_token_has_its_perplexity(
    toy: Any, questions: pd.DataFrame
) -> None:
    """Exactly: otherwise P4 > P3, the published preference, would be rounding."""
    made = context.ask(toy, questions).set_index("object")
    assert made.loc["Kenya", "p4"] == made.loc["Kenya", "p3"]
    assert made.loc["Peru", "p4"] == made.loc["Peru", "p2"]


def test_each_thing_is_asked_once(questions: pd.DataFrame) -> None:
    parrot = Parrot({"The capital of Kenya is": "Nairobi", "The capital of Peru is": "Lima"})
    twice = pd.concat([questions, questions.assign(question_id=lambda t: t["question_id"] + "!")])
    twice["base_id"] = ["capital"] * 4 + ["again"] * 4
    made = context.ask(parrot, twice)
    asked = [[r["prompt"] for r in job.requests] for job in parrot.jobs]
    assert [job.operation for job in parrot.jobs] == ["generate", "generate", "score"]
    assert asked[0] == [f"Q: {q} A: {p}" for q, p in zip(*two(questions), strict=True)]
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


def two(questions: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    return questions["question"], questions["prefix"]


def test_an_initial_is_asked_again(toy_model: Callable[..., Any], questions: pd.DataFrame) -> None:
    """Generation stops at ". ", which does not end every answer."""
    model = toy_model(
        {
            " Kenya is": {" J": 1.0},
            " J": {".": 1.0},
            ".": {" Kenyatta": 1.0},
            " Kenyatta": {"\n": 1.0},
            " Peru is": {" Lima": 0.6, " J": 0.4},
            " Lima": {". ": 1.0},
            ". ": {"A": 1.0},
            "A": {"A": 1.0},
        }
    )
    made = context.greedy(model, questions[:2])
    assert made["text"].tolist() == ["J. Kenyatta", "Lima"]
    assert made["token_ids"].map(len).tolist() == [3, 1]
    assert context.greedy(model, questions[:2], rule="published")["text"].tolist() == ["J", "Lima"]
    # Nothing more can come after as many tokens as there may be.
    assert context.greedy(model, questions[:1], max_new_tokens=2)["text"].tolist() == ["J"]


def test_asked_in_chunks(
    toy: Any, questions: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = context.ask(toy, questions)
    monkeypatch.setattr(context, "CHUNK", 1)
    pd.testing.assert_frame_equal(context.ask(toy, questions), made)


def test_the_order_of_questions_does_not_matter(toy: Any, questions: pd.DataFrame) -> None:
    more = pd.concat([questions, questions.assign(base_id="b", question_id=list("abcd"))])
    made = context.ask(toy, more, seed=5).set_index("question_id")
    turned = context.ask(toy, more[::-1], seed=5).set_index("question_id")
    pd.testing.assert_frame_equal(turned.loc[made.index], made)
    assert context.ask(toy, questions, seed=5).set_index("question_id").index.isin(made.index).all()


def test_equal_answers_are_left_out_and_counted(questions: pd.DataFrame) -> None:
    same = Parrot({"The capital of Oman is": "No idea!"})
    made = context.ask(same, questions)
    assert len(made) == 0
    assert made.attrs["counts"]["no_counterfactual"] == 4
    # As another string it can be drawn, and does by the published rule.
    made = context.ask(same, questions, rule="published")
    assert made.attrs["counts"]["no_counterfactual"] == 0
    assert made["counterfactual"].tolist() == ["No idea!"] * 3 + ["no idea"]


def test_given_contexts(toy: Any, questions: pd.DataFrame) -> None:
    stated = [f"The capital of {name} is Lima" for name in ("Kenya", "Chad", "Oman")]
    made = context.greedy(toy, questions.iloc[[0, 2, 3]], stated)
    assert made["text"].tolist() == ["Lima", "", "Nairobi"]
    assert list(made) == [
        *("model", "question_id", "category", "base_id", "object", "prompt"),
        *("text", "token_ids", "perplexity", "first", "first_entropy"),
    ]
    with pytest.raises(ValueError, match="3 contexts for 4 questions; give one each"):
        context.greedy(toy, questions, stated)


def test_bad_input(toy: Any, questions: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="rule 'thesis' is unknown; choose one of robust"):
        context.ask(toy, questions, rule="thesis")
    with pytest.raises(ValueError, match="prompt format 'two-shot' does not begin the answer"):
        context.ask(toy, questions, prompt_format="two-shot")
    with pytest.raises(ValueError, match="needs a chat template"):
        context.ask(toy, questions, prompt_format="chat-prefix")
    with pytest.raises(ValueError, match=r"1 base question\(s\) .* one object only, such as capit"):
        context.ask(toy, questions[:1])
    with pytest.raises(ValueError, match="the questions have no column prefix; take a table"):
        context.ask(toy, questions.drop(columns="prefix"))
    with pytest.raises(ValueError, match="capital/kenya is there twice"):
        context.ask(toy, questions.iloc[[0, 1, 0]])
    with pytest.raises(ValueError, match=r"answer 0 .* is empty; leave such questions out"):
        toy.score(["Kenya is"], [[]])


def test_recorded_answers_need_no_model(tmp_path: Any, toy: Any, questions: pd.DataFrame) -> None:
    about = {"name": "toy", "fingerprint": "toy", "prompt_format": "prefix", "chat": None}
    store = Records(tmp_path / "records.sqlite")
    first = context.ask(RecordedModel(store, lambda: toy, **about), questions)

    def none() -> Model:
        raise AssertionError("the model was loaded")

    pd.testing.assert_frame_equal(
        context.ask(RecordedModel(store, none, **about), questions), first
    )


def test_nothing_here_imports_torch() -> None:
    code = (
        "import sys, factrobust.probes.context, factrobust.datasets.contexts; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def asked() -> tuple[Model, pd.DataFrame, pd.DataFrame]:
    model = load_model("smollm2-135m-instruct")
    questions = load_context_questions(limit=3, base_limit=1)[:6]
    return model, questions, context.ask(model, questions)


def test_a_real_model_batch_by_batch(asked: tuple[Model, pd.DataFrame, pd.DataFrame]) -> None:
    """Same seed, same counterfactuals and, but for rounding, same numbers, one question at a time."""
    model, questions, together = asked
    model.tokens_per_batch = 1  # type: ignore[attr-defined]
    try:
        alone = context.ask(model, questions[::-1]).iloc[::-1].reset_index(drop=True)
    finally:
        model.tokens_per_batch = 1024  # type: ignore[attr-defined]
    texts, numbers = list(COLUMNS[:8]), list(COLUMNS[8:13])
    pd.testing.assert_frame_equal(alone[texts], together[texts])
    np.testing.assert_allclose(alone[numbers], together[numbers], rtol=1e-3)


def test_a_real_model_is_scored_as_it_generated(
    asked: tuple[Model, pd.DataFrame, pd.DataFrame],
) -> None:
    model, questions, made = asked
    answers = context.greedy(model, questions).set_index("question_id").loc[made["question_id"]]
    said = answers["text"].ne("").to_numpy()
    forced = model.score(
        answers.loc[said, "prompt"].tolist(), answers.loc[said, "token_ids"].tolist()
    )
    again = [math.exp(-v.mean(dtype=float)) for v in forced]
    np.testing.assert_allclose(made.loc[said, "p0"], again, rtol=1e-4)


def test_answers_of_one_source_leave_nothing_to_tell_apart() -> None:

    models: Any = [SimpleNamespace(name="m"), SimpleNamespace(name="k")]
    cases = pd.DataFrame(
        {"model": ["m", "m", "k"], "source": ["parametric", "contextual", "parametric"]}
    )
    context.need_sources(cases, models)
    context.need_sources(cases[:0], [])
    with pytest.raises(
        LacksError, match=r"^m, k: no answers from memory beside answers from the c"
    ):
        context.need_sources(cases[1:], models)
