"""data/models.csv: how each model is loaded and asked, and how large it is; one model a line.

Columns: model (the name it is loaded by, without a revision), dtype, device_map (on a GPU),
tokens_per_batch (new tokens of one forward pass at most), prompt_format (a key of
`prompts.FORMATS`), chat_template (yes: its tokenizer's; no; or a key of `prompts.CHATS`). What
follows is for `factrobust.plan`, and may be empty where it is not known: architecture (decoder or encoder-decoder), parameters (an
embedding that is also the head counts once), layers (of the decoder), key_value_heads (a mean where
layers differ), head_size, width, vocabulary, tied (whether the embedding is also the head).
tokenizer is the hub id of its tokenizer, with a revision after an @ if you like, where the model
has none of its own; else empty.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from factrobust.models.base import ModelError
from factrobust.models.prompts import CHATS, FORMATS
from factrobust.paths import DATA

FILE = DATA / "models.csv"
DTYPES = ("float32", "bfloat16", "float16")
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential", "cpu")
COLUMNS = (
    *("model", "dtype", "device_map", "tokens_per_batch", "prompt_format", "chat_template"),
    *("architecture", "parameters", "layers", "key_value_heads", "head_size", "width"),
    *("vocabulary", "tied", "tokenizer"),
)
WORDS = {
    "dtype": DTYPES,
    "device_map": DEVICE_MAPS,
    "prompt_format": tuple(FORMATS),
    "chat_template": ("yes", "no", *CHATS),
    "architecture": ("decoder", "encoder-decoder", ""),
    "tied": ("yes", "no", ""),
}
NUMBERS = ("parameters", "layers", "key_value_heads", "head_size", "width", "vocabulary")


@dataclass(frozen=True)
class Size:
    """What a model's cost follows from."""

    encoder_decoder: bool
    parameters: int
    layers: int
    key_value_heads: float
    head_size: int
    width: int
    vocabulary: int
    tied: bool


@dataclass(frozen=True)
class Settings:
    """A line of the table; `size` is None unless all of it is known."""

    model: str
    dtype: str
    device_map: str
    tokens_per_batch: int
    prompt_format: str
    chat_template: str
    size: Size | None
    tokenizer: str


def settings_of(name: str) -> Settings | None:
    """The line of a model, whatever revision its name has after an @; None where there is none.

    Raises ModelError with line and remedy for a table that is not as described.
    """
    return read_settings(FILE).get(name.partition("@")[0])


@cache
def read_settings(path: Path) -> dict[str, Settings]:
    """All lines, by model."""
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != COLUMNS:
            raise ModelError(f"{path}, line 1: the columns must be {', '.join(COLUMNS)}")
        found: dict[str, Settings] = {}
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            settings = _settings(row, where)
            if settings.model in found:
                raise ModelError(
                    f"{where}: {settings.model} has a line already; keep one of the two"
                )
            found[settings.model] = settings
    return found


def _settings(row: dict[str, str], where: str) -> Settings:
    if None in row or None in row.values():
        raise ModelError(f"{where}: not {len(COLUMNS)} cells; put texts with commas in quotes")
    for column, words in WORDS.items():
        if row[column] not in words:
            raise ModelError(
                f"{where}: the {column} {row[column]!r} is unknown; write one of "
                f"{', '.join(word or 'nothing' for word in words)}"
            )
    number = {name: _number(row, name, where) for name in (*NUMBERS, "tokens_per_batch")}
    if not (batch := number.pop("tokens_per_batch")):
        raise ModelError(f"{where}: tokens_per_batch is empty; write a number such as 2048")
    whole = {name: int(value) for name, value in number.items() if name != "key_value_heads"}
    size = Size(
        encoder_decoder=row["architecture"] == "encoder-decoder",
        key_value_heads=number["key_value_heads"],
        tied=row["tied"] == "yes",
        **whole,
    )
    known = all(number.values()) and row["architecture"] and row["tied"]
    return Settings(
        model=row["model"],
        dtype=row["dtype"],
        device_map=row["device_map"],
        tokens_per_batch=int(batch),
        prompt_format=row["prompt_format"],
        chat_template=row["chat_template"],
        size=size if known else None,
        tokenizer=row["tokenizer"],
    )


def _number(row: dict[str, str], column: str, where: str) -> float:
    """A number above 0; 0 for an empty cell."""
    try:
        value = float(row[column] or 0)
    except ValueError:
        value = -1.0
    if value < 0 or (value != int(value) and column != "key_value_heads"):
        raise ModelError(
            f"{where}: the {column} {row[column]!r} is no whole number above 0; correct it"
        )
    return value
