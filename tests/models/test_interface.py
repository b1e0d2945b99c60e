"""Bad input to the four operations: one sentence each, before anything is computed."""

import numpy as np
import pandas as pd
import pytest
from filelock import FileLock, Timeout

from factrobust.models import interface
from factrobust.models.interface import Generation, LacksError, Model, ModelError

TABLE = {" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}}
toy = pytest.fixture(lambda toy_model: toy_model(TABLE), scope="module")


def generating(prompts, **settings):
    return lambda model: model.generate(prompts, **settings)


def sampling(temperature=1, n=1, **cuts):
    return lambda model: model.sample(["a"], temperature=temperature, n=n, **cuts)


def scoring(prompts, answers):
    return lambda model: model.score(prompts, answers)


def tempering(*temperatures, **cuts):
    return lambda model: model.temper(["a"], ["b"], temperatures, **cuts)


BAD = [
    ("put the one prompt into a list", generating("a Kenya")),
    ("prompt 1 is '', not a text", generating(["a Kenya", ""])),
    ("prompt 0 is nan, not a text", generating([float("nan")])),
    ("prompt 1 holds half a sign", generating(["a", "\ud83d"])),
    ("max_new_tokens must be at least 1, not 0", generating(["a"], max_new_tokens=0)),
    ("stop string is empty", generating(["a"], stop=[".", ""])),
    ("n must be at least 1", sampling(n=0)),
    ("temperature -0.5 is out of range", sampling(-0.5)),
    ("temperature nan is out of range", sampling(np.nan)),
    ("2 temperatures for 1 prompts", sampling([1, 2])),
    ("top_k must be at least 1", sampling(top_k=0)),
    (r"top_p must lie in \(0, 1\]", sampling(top_p=0)),
    (r"top_p must lie in \(0, 1\]", sampling(top_p=1.1)),
    (r"min_p must lie in \(0, 1\]", tempering(1, min_p=0)),
    ("answer 1 .prompt 'b'. is empty", scoring(["a", "b"], ["c", " "])),
    ("answer 1 .prompt 'b'. is empty; leave such", scoring(["a", "b"], [[3], []])),
    ("one answer for each of 2 prompts", scoring(["a", "b"], ["c"])),
    ("one answer for each of 1 prompts", scoring(["a"], "c")),
    ("temperature -1.0 is out of range", tempering(1, -1)),
    ("temperatures is empty", tempering()),
]


@pytest.mark.parametrize(("sentence", "call"), BAD)
def test_bad_input(toy, sentence, call):
    with pytest.raises(ModelError, match=sentence):
        call(toy)


def test_nothing_asked_nothing_answered(toy):
    curves = toy.temper([], [], [0.5, 1.0])
    assert curves.shape == (0, 2)
    assert toy.generate([]) == []
    assert toy.sample([], temperature=1.0, n=3) == []
    assert toy.score([], []) == []


def test_columns_of_a_table_are_prompts_too(toy):
    prompts = ["a Kenya", "b Kenya"]
    temperatures = [0.5, 2.0]
    facts = pd.DataFrame(
        {"prompt": prompts, "t": temperatures},
        index=[7, 3],
    )
    listed = toy.sample(
        prompts,
        temperature=temperatures,
        n=4,
    )
    found = toy.sample(
        facts["prompt"],
        temperature=facts["t"],
        n=4,
    )
    assert found == listed
    answers = pd.Series([" Nairobi", " Mombasa"])
    scores = toy.score(facts["prompt"], answers)
    np.testing.assert_allclose(np.exp(scores), [[0.8], [0.2]], rtol=1e-6)


def test_the_example_of_temper(toy, toy_model):
    [curve] = toy.temper(
        ["The capital of Kenya"],
        [" Nairobi"],
        [1, 2],
    )
    assert np.exp(curve) == pytest.approx([0.8, 2 / 3])
    # The lowest temperature is 1e-4, where a gap of 1e-4 nats is one: odds of e to 1.
    p = 1 / (1 + np.exp(-1e-4))
    near = toy_model({"?": {" a": p, " b": 1 - p}})
    [curve] = near.temper(["why?"], [" a"], [0, 1e-5, 1e-4])
    chances = np.exp(curve)
    odds = chances / (1 - chances)
    assert odds == pytest.approx([np.e] * 3, rel=3e-3)


def test_requests_and_settings_are_plain_numbers(toy, monkeypatch):
    """They are written as JSON into the records' keys."""
    jobs = []
    monkeypatch.setattr(toy, "_run", jobs.append)
    toy.sample(
        ["a"],
        temperature=np.float32(1),
        n=np.int64(2),
        seed=np.int32(3),
        top_k=np.int64(4),
    )
    kinds = (list, tuple, np.array, pd.Series)
    toy.score(["a"] * 4, [kind([1, 2]) for kind in kinds])
    sampled, scored = jobs
    [request] = sampled.requests
    values = [*sampled.settings.values(), *request.values()]
    for request in scored.requests:
        assert request["answer"] == [1, 2]
        values += request["answer"]
    plain = {int, float, str, list, type(None)}
    assert {*map(type, values)} <= plain


class Canned(Model):
    """Says yes to each prompt, one batch each, with so many alternatives."""

    def __init__(self, *alternatives, text=" yes"):
        super().__init__(name="canned", fingerprint="canned")
        self.alternatives = alternatives
        self.text = text
        self.prompts = []
        self.closed = False

    def answer(self, job):
        try:
            for i, n in enumerate(self.alternatives):
                prompt = job.requests[i]["prompt"]
                self.prompts.append(prompt)
                alternatives = [(" yes", -1.0)] * n
                top = [alternatives] if n else []
                answer = Generation(prompt, self.text, [], [], top)
                yield [i], [answer]
        finally:
            self.closed = True


def test_too_few_alternatives_are_told_at_the_first_answer():
    model = Canned(5, 10, 10)
    with pytest.raises(ModelError, match=r"canned tells .* 5 likeliest .* where 10 are needed"):
        model.generate(["a", "b", "c"], alternatives=10)
    assert model.prompts == ["a"]
    assert model.closed  # although the error's traceback still holds its frame
    with pytest.raises(ModelError, match="of 0 likeliest tokens a position where 1 are needed"):
        Canned(0).generate(["a"], alternatives=1)
    # One answer with enough is enough: a server that tells texts merges those that read alike.
    some_less = Canned(10, 9, 10)
    assert some_less.generate(["a", "b", "c"], alternatives=10)
    none_needed = Canned(0)
    assert none_needed.generate(["a"])
    ended_at_once = Canned(0, text="")
    assert ended_at_once.generate(["a"], alternatives=10)


def test_what_a_model_lacks_is_said_before_it_is_asked():
    model = Canned(10)
    model.require("generate", "temper", "token_ids")
    model.lacks = {"temper": "no logits here", "token_ids": "no ids here"}
    model.require("generate", "score")
    with pytest.raises(LacksError, match=r"^canned: no ids here$"):
        model.require("generate", "token_ids")
    with pytest.raises(ModelError, match=r"^canned: no logits here$"):
        model.temper(["a"], ["b"], [1.0])
    with pytest.raises(ModelError, match=r"^canned: no ids here$"):
        model.score(["a", "b"], ["text", [3]])
    assert model.prompts == []


@pytest.fixture
def new_process():
    """As in a new process, no turn was waited for."""
    interface.wait_for_turn.cache_clear()
    yield
    interface.wait_for_turn.cache_clear()


@pytest.mark.usefixtures("new_process")
def test_in_jupyterlab_nobody_waits(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path / "none"))
    assert interface.wait_for_turn() is None


@pytest.mark.usefixtures("new_process")
def test_of_the_runners_notebooks_one_loads_models_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(interface, "BUILD", tmp_path / "build")
    monkeypatch.setenv("FACTROBUST_OUT", str(tmp_path))
    lock = interface.wait_for_turn()
    assert interface.wait_for_turn() is lock  # a second model of the notebook
    with pytest.raises(Timeout):
        FileLock(tmp_path / "build" / "models.lock").acquire(timeout=0)
    lock.release()
