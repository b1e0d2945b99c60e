"""Similarity of texts by the embedded encoder: against its own vectors, pair by pair."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.models import sentences
from factrobust.models.interface import ModelError
from factrobust.models.sentences import Encoder, encoder_folder, load_encoder, open_encoder
from factrobust.records import Call, Records

TEXTS = [
    "guitarist",
    "samurai",
    "film director",
    "director",
    "a well-known director of films about samurai, and a guitarist in his youth",
    "Cotonou",
    "bamako",
    "8",
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return open_encoder()


@pytest.fixture(scope="module")
def vectors(encoder: Encoder) -> dict[str, np.ndarray]:
    return dict(zip(TEXTS, encoder.embed(TEXTS).astype(float), strict=True))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an encoder of another dimension, 16, and random weights."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("encoders") / "tiny"
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(intermediate_size=16, **sizes)).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(encoder_folder() / name, folder)
    return folder


def pair_by_pair(texts: list[str], vectors: dict[str, np.ndarray]) -> float:
    cosines = []
    for a, b in itertools.combinations(texts, 2):
        if a and b:
            u, v = vectors[a], vectors[b]
            cosines.append(u @ v / np.linalg.norm(u) / np.linalg.norm(v))
        else:
            cosines.append(float(a == b))
    return float(np.mean(cosines))


def forbid(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no network is loaded and none is run."""

    def loads(*_: Any) -> Any:
        raise AssertionError("a network was loaded")

    monkeypatch.setattr(sentences, "load_encoder", loads)
    monkeypatch.setattr(Encoder, "_embed", loads)


class Counting(Encoder):
    """Remembers the texts of each batch; may die at one of them."""

    def __init__(self, *given: Any, fail_at: int | None = None) -> None:
        super().__init__(*given)
        self.batches: list[list[str]] = []
        self.fail_at = fail_at

    def _embed(self, texts: list[str]) -> np.ndarray:
        if len(self.batches) == self.fail_at:
            raise KeyboardInterrupt
        self.batches.append(texts)
        return super()._embed(texts)


def test_vectors_are_unit_means_of_the_states(encoder: Encoder) -> None:
    import torch

    assert encoder.name == "all-MiniLM-L6-v2"
    assert encoder.fingerprint == "sha256:a81fd457f2af94d8 float32"
    made = encoder.embed(TEXTS)
    assert made.shape == (8, 384)
    assert made.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    network, tokenizer = load_encoder()
    for text, vector in zip(TEXTS, made, strict=True):
        with torch.inference_mode():
            states = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        mean = states.mean(0).double().numpy()
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-6)


def test_batches_change_nothing(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    together = encoder.embed(TEXTS)
    np.testing.assert_allclose([encoder.embed([t])[0] for t in TEXTS], together, atol=1e-6)
    np.testing.assert_allclose(encoder.embed(TEXTS[::-1])[::-1], together, atol=1e-6)
    monkeypatch.setattr(sentences, "TEXTS", 3)
    monkeypatch.setattr(sentences, "CHARACTERS", 40)
    np.testing.assert_allclose(encoder.embed(TEXTS), together, atol=1e-6)


def test_each_distinct_text_is_embedded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(None)
    made = counting.embed(["b", "a", "b", "a ", ""])
    assert counting.batches == [["b", "a", "a ", ""]]
    np.testing.assert_array_equal(made[0], made[2])
    assert not made[4].any()  # an empty text has no direction
    assert counting.embed([]).shape == (0, 384)
    counting.batches.clear()
    counting.similarity([["b", "a"], ["a", "b", "c", ""], ["c", " a"], ["b", "a"]])
    assert sorted(itertools.chain(*counting.batches)) == ["a", "b", "c"]
    counting.batches.clear()
    monkeypatch.setattr(sentences, "TEXTS", 2)
    counting.similarity([["a", "b"], ["b", "c", "d"], ["d", "a", "e"]])
    assert counting.batches == [["a", "b"], ["c", "d"], ["e"]]


def test_known_values(encoder: Encoder, vectors: dict[str, np.ndarray]) -> None:
    groups = [
        ["guitarist"] * 4,
        ["samurai"] * 10,
        ["", " ", "\n"],
        ["", "guitarist"],
        ["samurai", "", "samurai", "8"],
    ]
    made = encoder.similarity(groups)
    assert made.dtype == np.float64
    assert made[:3].tolist() == [1, 1, 1]
    cosine = vectors["samurai"] @ vectors["8"]
    np.testing.assert_allclose(made[3:], [0, (1 + 2 * cosine) / 6], atol=1e-6)
    assert encoder.similarity([]).shape == (0,)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.lists(st.sampled_from([*TEXTS, ""]), min_size=2, max_size=12), max_size=4))
def test_closed_form_equals_pair_by_pair(
    encoder: Encoder, vectors: dict[str, np.ndarray], groups: list[list[str]]
) -> None:
    made = encoder.similarity(groups)
    np.testing.assert_allclose(made, [pair_by_pair(g, vectors) for g in groups], atol=1e-6)
    assert ((made >= -1 - 1e-6) & (made <= 1 + 1e-6)).all()


def test_order_and_white_space_do_not_matter(encoder: Encoder, tmp_path: Path) -> None:
    records = Records(tmp_path / "records.sqlite")
    first, second = Counting(None, records), Counting(None, records)
    made = first.similarity([TEXTS, TEXTS[:3]])
    other = [f" {text}\n" for text in TEXTS[::-1]]
    assert second.similarity([TEXTS[2::-1], other]).tolist() == made[::-1].tolist()
    assert second.batches == []  # the same key
    np.testing.assert_allclose(encoder.similarity([other, TEXTS[:3]]), made, atol=1e-6)


def test_what_the_records_hold_is_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [TEXTS, TEXTS[:2], ["8", "8", ""], TEXTS[:2]]
    records = Records(tmp_path / "records.sqlite")
    made = Encoder(None, records).similarity(groups)
    key = Call(
        "sha256:a81fd457f2af94d8 float32", "int_sim", '["guitarist", "samurai"]',
        '{"max_tokens": 128}',
    )  # fmt: skip
    assert records.get([key]) == [made[1]]
    # More texts: only theirs are embedded, and only the missing group's.
    counting = Counting(None, records)
    more = counting.similarity([*groups, ["8", "Benin"]])
    assert counting.batches == [["8", "Benin"]]
    assert more[:4].tolist() == made.tolist()
    forbid(monkeypatch)
    warm = open_encoder(records=Records(tmp_path / "records.sqlite"))
    assert warm.similarity(groups[::-1]).tolist() == made[::-1].tolist()
    with pytest.raises(AssertionError, match="a network was loaded"):
        warm.similarity([["8", "not yet"]])


def test_an_interrupted_run_keeps_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentences, "TEXTS", 2)
    groups = [TEXTS[:2], TEXTS[2:4], TEXTS[4:6], TEXTS[6:8]]
    records = Records(tmp_path / "records.sqlite")
    with pytest.raises(KeyboardInterrupt):
        Counting(None, records, fail_at=2).similarity(groups)
    again = Counting(None, records)
    made = again.similarity(groups)
    assert [sorted(batch) for batch in again.batches] == [sorted(g) for g in groups[2:]]
    np.testing.assert_allclose(made, Encoder(None).similarity(groups), atol=1e-6)


def test_another_encoder_is_another_key(tiny: Path, tmp_path: Path) -> None:
    """Records hold similarities, not vectors: a second encoder cannot meet the first one's."""
    records = Records(tmp_path / "records.sqlite")
    groups = [TEXTS, TEXTS[:2]]
    large = open_encoder(records=records).similarity(groups)
    other = Counting(tiny, records)
    small = other.similarity(groups)
    assert other.name == "tiny"
    assert len(other.batches) == 1
    assert other.embed(TEXTS).shape == (8, 16)
    assert (np.abs(small - large) > 1e-3).all()
    assert open_encoder(records=records).similarity(groups).tolist() == large.tolist()
    assert open_encoder(tiny, records=records).similarity(groups).tolist() == small.tolist()


def test_first_tokens_state_where_the_folder_says_so(tiny: Path, tmp_path: Path) -> None:
    import torch

    folder = tmp_path / "first"
    shutil.copytree(tiny, folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    first, mean = open_encoder(folder), open_encoder(tiny)
    assert first.fingerprint == f"{mean.fingerprint} cls"
    network, tokenizer = load_encoder(folder)
    with torch.inference_mode():
        state = network(**tokenizer("samurai", return_tensors="pt")).last_hidden_state[0, 0]
    np.testing.assert_allclose(first.embed(["samurai"])[0], state / state.norm(), atol=1e-6)
    assert np.abs(first.embed(["samurai"]) - mean.embed(["samurai"])).max() > 1e-3


def test_embedded_by_name(tmp_path: Path) -> None:
    assert open_encoder("all-MiniLM-L6-v2").fingerprint == open_encoder().fingerprint
    with pytest.raises(ModelError, match="neither a folder nor a hub id with its revision"):
        open_encoder("all-mpnet-base-v2")
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        open_encoder(tmp_path)


def test_bad_groups(encoder: Encoder) -> None:
    with pytest.raises(ModelError, match=r"group 1 has 1 text\(s\)"):
        encoder.similarity([["a", "b"], ["a"]])
    with pytest.raises(ModelError, match="group 0 has 0"):
        encoder.similarity([[]])
    with pytest.raises(ModelError, match="put 'Paris' into a list"):
        encoder.similarity(["Paris"])
    with pytest.raises(ModelError, match="a text is None, not a string"):
        encoder.embed(["a", None])  # type: ignore[list-item]


def test_neither_import_nor_replay_needs_torch(tmp_path: Path) -> None:
    store = tmp_path / "records.sqlite"
    made = open_encoder(records=Records(store)).similarity([TEXTS])
    code = f"""
import sys, pathlib
from factrobust.models.sentences import open_encoder
from factrobust.records import Records
encoder = open_encoder(records=Records(pathlib.Path({str(store)!r})))
assert encoder.similarity([{TEXTS!r}]).tolist() == {made.tolist()!r}
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
