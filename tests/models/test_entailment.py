"""NLI probabilities, recorded: on a tiny classifier with random weights, against its own logits."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factrobust.models import sentences
from factrobust.models.interface import ModelError
from factrobust.models.sentences import Entailment, encoder_folder, open_entailment
from factrobust.records import Call, Records

PAIRS = [
    ("actress", "actress"),
    ("politician", "german politician"),
    ("german politician", "politician"),
    ("Apples are a delicious and nutritious fruit that offers many benefits.", "Apples are good."),
    ("8", ""),
]
MNLI = ("CONTRADICTION", "NEUTRAL", "ENTAILMENT")


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Writes a folder with a classifier of these labels; the weights are always the same."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertModel

    def build(labels: tuple[str, ...] = MNLI, *, head: bool = True) -> Path:
        folder = tmp_path_factory.mktemp("nli") / "tiny-nli"
        torch.manual_seed(0)
        config = BertConfig(
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=64,
            initializer_range=1.0,
            id2label=dict(enumerate(labels)),
            label2id={label: i for i, label in enumerate(labels)},
        )
        kind = BertForSequenceClassification if head else BertModel
        kind(config).save_pretrained(folder)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(encoder_folder() / name, folder)
        return folder

    return build


class Counting(Entailment):
    """Remembers the pairs of each batch; may die at one of them."""

    def __init__(self, *given: Any, fail_at: int | None = None) -> None:
        super().__init__(*given)
        self.batches: list[list[list[str]]] = []
        self.fail_at = fail_at

    def _probabilities(self, loaded: Any, pairs: list[list[str]]) -> list[float]:
        if len(self.batches) == self.fail_at:
            raise KeyboardInterrupt
        self.batches.append(pairs)
        return super()._probabilities(loaded, pairs)


def test_is_the_softmax_of_the_networks_own_logits(classifier: Callable[..., Path]) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = classifier()
    nli = open_entailment(folder)
    made = nli.probability(PAIRS)
    assert nli.name == "tiny-nli"
    assert made.shape == (5,)
    assert made.dtype == np.float64
    network = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    for (premise, hypothesis), probability in zip(PAIRS, made, strict=True):
        with torch.inference_mode():
            batch = tokenizer([premise], [hypothesis], return_tensors="pt")
            logits = network(**batch).logits[0]
        np.testing.assert_allclose(probability, logits.softmax(-1)[2], atol=1e-5)
    assert abs(made[1] - made[2]) > 1e-4  # premise and hypothesis are not the same thing
    assert nli.probability([]).shape == (0,)


def test_batches_change_nothing(
    classifier: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    nli = Counting(classifier())
    together = nli.probability(PAIRS)
    assert len(nli.batches) == 1
    alone = [nli.probability([pair])[0] for pair in PAIRS]
    np.testing.assert_allclose(alone, together, atol=1e-5)
    monkeypatch.setattr(sentences, "CHARACTERS", 60)
    np.testing.assert_allclose(nli.probability(PAIRS[::-1])[::-1], together, atol=1e-5)


def test_label_is_found_by_its_name(classifier: Callable[..., Path]) -> None:
    orders = [MNLI, MNLI[::-1], ("neutral", "entailment", "contradiction")]
    places = [open_entailment(classifier(order)).probability(PAIRS) for order in orders]
    np.testing.assert_allclose(sum(places), 1, atol=1e-5)
    two = classifier(("not_entailment", "entailment"))
    assert open_entailment(two).probability(PAIRS).shape == (5,)


def test_recorded(classifier: Callable[..., Path], tmp_path: Path) -> None:
    folder = classifier()
    records = Records(tmp_path / "records.sqlite")
    first = Counting(folder, records)
    made = first.probability([*PAIRS, PAIRS[0]])
    assert sum(map(len, first.batches)) == 5  # equal pairs once
    assert made[0] == made[5]
    prompt = json.dumps(["politician", "german politician"])
    key = Call(first.fingerprint, "entailment", prompt, '{"max_tokens": 512}')
    assert records.get([key]) == [made[1]]
    again = Counting(folder, records)
    assert again.probability(PAIRS[::-1]).tolist() == made[4::-1].tolist()
    assert again.batches == []
    other = Counting(classifier(MNLI[::-1]), records)
    assert other.fingerprint != first.fingerprint
    other.probability(PAIRS)
    assert sum(map(len, other.batches)) == 5
    code = f"""
import sys, pathlib
from factrobust.models.sentences import open_entailment
from factrobust.records import Records
nli = open_entailment({str(folder)!r}, records=Records(pathlib.Path({str(records.path)!r})))
assert nli.probability({PAIRS!r}).tolist() == {made[:5].tolist()!r}
assert not {{"torch", "transformers"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_interrupted_run_keeps_what_it_had(
    classifier: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentences, "CHARACTERS", 1)  # a pair a batch
    folder, records = classifier(), Records(tmp_path / "records.sqlite")
    with pytest.raises(KeyboardInterrupt):
        Counting(folder, records, fail_at=3).probability(PAIRS)
    again = Counting(folder, records)
    again.probability(PAIRS)
    assert len(again.batches) == 2


def test_long_pairs_are_cut(classifier: Callable[..., Path]) -> None:
    """The network has 64 positions."""
    long = "a politician " * 500
    nli = open_entailment(classifier())
    made = nli.probability([(long, long), ("a politician", long)])
    assert ((made > 0) & (made < 1)).all()


def test_what_is_no_nli_model(classifier: Callable[..., Path]) -> None:
    stars = open_entailment(classifier(("one star", "two stars")))
    with pytest.raises(ModelError, match="no label 'entailment' but one star, two stars; give an"):
        stars.probability(PAIRS)
    headless = open_entailment(classifier(head=False))
    with pytest.raises(ModelError, match=r"lacks weights of its classifier \(classifier\.bias"):
        headless.probability(PAIRS)
    with pytest.raises(ModelError, match="neither a folder nor a hub id with its revision"):
        open_entailment("microsoft/deberta-xlarge-mnli")
    hub = open_entailment("microsoft/deberta-xlarge-mnli@0123abc")
    assert hub.fingerprint == "hub:microsoft/deberta-xlarge-mnli@0123abc float32"


def test_bad_pairs(classifier: Callable[..., Path]) -> None:
    nli = open_entailment(classifier())
    for bad in (("a",), ("a", None), ("a", "b", "c"), "abc"):
        with pytest.raises(ModelError, match="is no pair of texts; give"):
            nli.probability([bad])  # type: ignore[list-item]
