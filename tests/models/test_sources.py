"""Where a name's weights are, and the sentence when it has none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from factrobust.models.interface import ModelError
from factrobust.models.load import find_source


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
        find_source(name)


def test_folder_without_config(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"holds no config.json; give a folder written by save_p"):
        find_source(str(tmp_path))


@pytest.mark.usefixtures("no_network")
def test_folder_without_tokenizer(encoder_decoder: Path) -> None:
    for file in encoder_decoder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(
        ModelError, match=r"my-t5 holds no tokenizer; write it there with the token"
    ):
        find_source(str(encoder_decoder))


def test_hub_id_offline(tmp_path: Path) -> None:
    code = """
import sys, time, factrobust
start = time.monotonic()
try:
    factrobust.load_model("no-such-org/no-such-model@v1")
except factrobust.models.interface.ModelError as error:
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
