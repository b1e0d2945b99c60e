"""The table of models: what a line means, what is wrong with a bad one, and who reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from factrobust.models import load
from factrobust.models.interface import ModelError
from factrobust.models.load import COLUMNS, FILE, Settings, Size, kind, read_settings, settings_of
from factrobust.models.weights import EMBEDDED
from factrobust.records import Records

LINE = "org/model,bfloat16,auto,512,two-shot,yes,decoder,1000,2,1.5,4,10,20,no,"
SIZE = Size(False, 1000, 2, 1.5, 4, 10, 20, False)


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "models.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{LINE}\n")
    monkeypatch.setattr(load, "FILE", path)
    return path


@pytest.mark.usefixtures("table")
def test_a_line_is_found_whatever_the_revision() -> None:
    expected = Settings("org/model", "bfloat16", "auto", 512, "two-shot", "yes", SIZE, "")
    assert settings_of("org/model") == settings_of("org/model@main") == expected
    assert settings_of("org/models") is None


def test_a_size_that_is_not_complete_is_none(table: Path) -> None:
    table.write_text(f"{','.join(COLUMNS)}\n{LINE.replace(',1.5,', ',,')}\n")
    found = settings_of("org/model")
    assert found is not None
    assert (found.size, found.tokens_per_batch) == (None, 512)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("bfloat16", "int8", "line 2: the dtype 'int8' is unknown; write one of float32, bfloat16"),
        ("two-shot", "2-shot", "the prompt_format '2-shot' is unknown; write one of two-shot"),
        (",1000,", ",1k,", "line 2: the parameters '1k' is no whole number above 0; correct it"),
        (",2,1.5,", ",2.5,1.5,", "the layers '2.5' is no whole number"),
        (",512,", ",,", "line 2: tokens_per_batch is empty; write a number such as 2048"),
        ("no,", "no,leave it out, please", "line 2: not 15 cells; put texts with commas in quotes"),
        ("no,", f"no,\n{LINE}", "line 3: org/model has a line already; keep one of the two"),
        (f"\n{LINE}", "", "^$"),
    ],
)
def test_bad_lines(table: Path, old: str, new: str, sentence: str) -> None:
    table.write_text(table.read_text().replace(old, new))
    if sentence == "^$":
        assert read_settings(table) == {}
        return
    with pytest.raises(ModelError, match=sentence):
        settings_of("org/model")


def test_a_table_with_other_columns(table: Path) -> None:
    table.write_text("model,dtype\norg/model,float32\n")
    with pytest.raises(ModelError, match=r"line 1: the columns must be model, dtype, device_map"):
        settings_of("org/model")


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_embedded_models_are_as_their_own_entries_say(name: str) -> None:
    entry, found = EMBEDDED[name], read_settings(FILE)[name]
    assert found.size is not None
    assert found.size.parameters == entry.parameters
    assert found.prompt_format == entry.prompt_format
    assert (found.chat_template == "yes") == (entry.chat is not None)
    assert (found.dtype, found.tokenizer) == ("float32", "")


def test_the_sizes_in_the_table_add_up() -> None:
    """A decoder's embeddings and its attention to keys and values fit into its parameters."""
    for name, found in read_settings(FILE).items():
        size = found.size
        assert size is not None, name
        embeddings = size.vocabulary * size.width * (1 if size.tied else 2)
        keys = 2 * size.layers * size.width * size.key_value_heads * size.head_size
        assert embeddings + keys < size.parameters, name
        # Attention and feed-forward of a layer are between 5 and 30 squares of the width.
        layers = size.layers * (2 if size.encoder_decoder else 1)
        assert 5 < (size.parameters - embeddings) / layers / size.width**2 < 30, name


@pytest.mark.usefixtures("table")
def test_load_model_takes_what_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "_hub_commit", lambda *asked: "0" * 40)
    monkeypatch.setattr(load, "load_tokenizer", lambda where, options: None)
    monkeypatch.setattr(load, "chat_template", lambda tokenizer: ("<user>", "<model>"))
    records = Records(tmp_path / "records.sqlite")
    model = load.load_model("org/model", records=records)
    assert model.fingerprint == f"hub:org/model@{'0' * 40} bfloat16"
    assert model.prompt_format == "two-shot"  # without a line it would be "chat"
    other = load.load_model("org/model", dtype="float32", prompt_format="chat", records=records)
    assert other.fingerprint.endswith(" float32")
    assert other.prompt_format == "chat"
    unlisted = load.load_model("org/other", records=records)
    assert unlisted.fingerprint.endswith(" float32")
    assert unlisted.prompt_format == "chat"


def test_a_chat_format_for_a_tokenizer_without_one(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "_hub_commit", lambda *asked: "0" * 40)
    monkeypatch.setattr(load, "load_tokenizer", lambda where, options: None)
    monkeypatch.setattr(load, "chat_template", lambda tokenizer: None)
    monkeypatch.setattr(load, "is_encoder_decoder", lambda where, options: False)
    records = Records(tmp_path / "records.sqlite")
    assert load.load_model("org/model", records=records).chat is None
    table.write_text(table.read_text().replace(",yes,", ",zephyr,"))
    read_settings.cache_clear()
    model = load.load_model("org/model", records=records)
    assert model.chat == ("<|user|>\n", "</s>\n<|assistant|>\n")
    assert kind(model) == "instruction-tuned"


def test_a_model_with_the_tokenizer_of_another(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.write_text(table.read_text().replace("no,\n", "no,org/other@v2\n"))
    commits = {
        ("org/model", "main", "config.json"): "1" * 40,
        ("org/other", "v2", "tokenizer_config.json"): "2" * 40,
    }
    monkeypatch.setattr(load, "_hub_commit", lambda *asked: commits[asked])
    read = []
    monkeypatch.setattr(load, "load_tokenizer", lambda *where: read.append(where))
    monkeypatch.setattr(load, "chat_template", lambda tokenizer: None)
    monkeypatch.setattr(load, "is_encoder_decoder", lambda *where: read.append(where))
    model = load.load_model("org/model", records=Records(tmp_path / "records.sqlite"))
    assert read == [
        ("org/other", {"revision": "2" * 40}),
        ("org/model", {"revision": "1" * 40}),
    ]
    # Another tokenizer would read other tokens: other records.
    assert model.fingerprint == (
        f"hub:org/model@{'1' * 40} tokenizer org/other@{'2' * 40} bfloat16"
    )
