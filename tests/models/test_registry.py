"""From a name to a model, and the sentence when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factrobust
from factrobust.models.interface import ModelError
from factrobust.models.load import RecordedModel
from factrobust.records import Records


@pytest.mark.usefixtures("no_network")
def test_unknown_options(folder: Path) -> None:
    with pytest.raises(ModelError, match="'int8' is unknown; choose one of float32"):
        factrobust.load_model("gemma-3-270m", dtype="int8")
    with pytest.raises(ModelError, match="'3-shot' is unknown; choose one of two-shot"):
        factrobust.load_model("gemma-3-270m", prompt_format="3-shot")
    for name in ("gemma-3-270m", str(folder)):
        with pytest.raises(ModelError, match="no chat template, so it cannot be asked as 'chat'"):
            factrobust.load_model(name, prompt_format="chat")


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


def test_chat_template_decides_the_format(folder: Path) -> None:
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    model = factrobust.load_model(str(folder))
    assert (model.prompt_format, model.chat) == ("chat", ("<user>", "<assistant>"))


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
