"""Answers from the store: the model is asked for what is missing, and for nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factrobust.models.interface import Job, Model
from factrobust.models.load import RecordedModel
from factrobust.records import Records

TABLE = {"?": {" a": 0.5, " b": 0.3, " c": 0.2}, " a": {".": 0.7, "!": 0.3}}


class Asked:
    """A toy behind a store; remembers what was loaded and which requests were computed."""

    def __init__(self, toy: Any, store: Path) -> None:
        self.loads, self.requests = 0, []
        self.toy, self.answer = toy, toy.answer
        toy.answer = self._answer
        self.store = store

    def _answer(self, job: Job) -> Iterator[Any]:
        self.requests += job.requests
        return self.answer(job)  # type: ignore[no-any-return]

    def _load(self) -> Model:
        self.loads += 1
        return self.toy  # type: ignore[no-any-return]

    def model(self, **changes: Any) -> RecordedModel:
        """A model as a new process would have it."""
        about = {"name": "toy", "fingerprint": "toy", "prompt_format": "prefix", "chat": None}
        return RecordedModel(Records(self.store), self._load, **(about | changes))


@pytest.fixture
def asked(toy_model: Callable[..., Any], tmp_path: Path) -> Asked:
    return Asked(toy_model(TABLE, tokens_per_batch=12), tmp_path / "records.sqlite")


def everything(model: Model) -> list[Any]:
    prompts = ["why?", "who?", "why?"]
    return [
        model.generate(prompts, stop=["!"]),
        model.sample(prompts, temperature=[0.5, 1.0, 2.0], n=3, seed=1),
        model.score(prompts, [" a.", " b", " a!"]),
        model.temper(prompts, [" a.", " b", " a!"], [0.3, 1.0, 1.7]),
    ]


def same(left: list[Any], right: list[Any]) -> None:
    assert left[:2] == right[:2]  # generations, float by float
    for a, b in zip([*left[2], left[3]], [*right[2], right[3]], strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_array_equal(a, b)


def test_replayed_equals_computed_to_the_last_bit(asked: Asked) -> None:
    computed = everything(asked.model())
    assert asked.loads == 1
    same(computed, everything(asked.toy))
    asked.requests.clear()
    same(everything(asked.model()), computed)
    assert asked.loads == 1
    assert asked.requests == []


def test_only_what_is_missing_is_computed(asked: Asked) -> None:
    asked.model().generate(["why?", "who?"])
    asked.requests.clear()
    made = asked.model().generate(["when?", "who?", "why?", "how?"])
    assert [r["prompt"] for r in asked.requests] == ["when?", "how?"]
    assert made == asked.toy.generate(["when?", "who?", "why?", "how?"])


def test_equal_requests_are_asked_once(asked: Asked) -> None:
    made = asked.model().generate(["why?"] * 5 + ["who?"])
    assert [r["prompt"] for r in asked.requests] == ["why?", "who?"]
    assert made[:5] == [made[0]] * 5


@pytest.mark.parametrize(
    "change", [{"seed": 2}, {"n": 4}, {"temperature": 1.1}, {"top_k": 2}, {"stop": ["."]}]
)
def test_what_determines_a_sample_is_its_key(asked: Asked, change: dict[str, Any]) -> None:
    usual = {"temperature": 1.0, "n": 3, "seed": 1}
    asked.model().sample(["why?"], **usual)
    asked.requests.clear()
    asked.model().sample(["why?"], **usual)
    assert asked.requests == []
    asked.model().sample(["why?"], **(usual | change))
    assert len(asked.requests) == 1


def test_answers_of_token_ids(asked: Asked) -> None:
    """The same ids are the same call, however they come; a text that reads like them is another."""
    [g] = asked.toy.generate(["why?"], stop=["!"])
    scored, text = asked.toy.score(["why?"] * 2, [g.token_ids, str(g.token_ids)])
    np.testing.assert_allclose(scored, g.logprobs, atol=1e-6)
    [computed] = asked.model().score(["why?"], [g.token_ids])
    curve = asked.model().temper(["why?"], [g.token_ids], [0.5, 1.0])
    asked.requests.clear()
    for same in (g.token_ids, tuple(g.token_ids), np.array(g.token_ids)):
        np.testing.assert_array_equal(asked.model().score(["why?"], [same])[0], computed)
        np.testing.assert_array_equal(asked.model().temper(["why?"], [same], [0.5, 1.0]), curve)
    assert asked.requests == []
    [other] = asked.model().score(["why?"], [str(g.token_ids)])
    np.testing.assert_array_equal(other, text)
    assert len(asked.requests) == 1


def test_encoder_decoder_models_are_recorded_alike(
    tiny_t5: Callable[..., Any], tmp_path: Path
) -> None:
    t5 = Asked(tiny_t5(), tmp_path / "records.sqlite")
    computed = everything(t5.model())
    same(computed, everything(t5.model()))
    assert t5.loads == 1


def test_another_fingerprint_is_another_model(asked: Asked) -> None:
    asked.model().generate(["why?"])
    asked.model(fingerprint="toy bfloat16").generate(["why?"])
    assert len(asked.requests) == 2


def test_each_batch_is_committed_as_it_ends(asked: Asked) -> None:
    """A run that dies in the middle loses the batch in work, no more."""
    prompts = [f"{'x' * i}?" for i in range(8)]
    job = Job("score", [{"prompt": p, "answer": " a."} for p in prompts])
    batches = asked.model().answer(job)
    done = [i for _ in range(2) for i in next(batches)[0]]  # and never asked for the third
    assert 2 <= len(done) < 8
    asked.requests.clear()
    asked.model().score(prompts, [" a."] * 8)
    left = {r["prompt"] for r in asked.requests}
    assert left == {p for i, p in enumerate(prompts) if i not in done}


def test_replay_never_imports_torch(asked: Asked) -> None:
    asked.model().generate(["why?"])
    asked.model().temper(["why?"], [" a"], [0.5])
    code = f"""
import sys, pathlib, factrobust
from factrobust.records import Records
from factrobust.models.load import RecordedModel
from factrobust.models import load, prompts
from factrobust.probes import decoding
model = RecordedModel(Records(pathlib.Path({str(asked.store)!r})), None, name="toy",
                      fingerprint="toy", prompt_format="prefix", chat=None)
assert model.generate(["why?"])[0].text == " a."
assert model.temper(["why?"], [" a"], [0.5]).shape == (1, 1)
loaded = factrobust.load_model("gemma-3-270m", records=Records(None))
assert loaded.fingerprint.startswith("sha256:a5fd3b62230aa5ec")
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
