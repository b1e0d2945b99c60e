"""Numbers of llama-perplexity, by hand and on a model whose probabilities are known."""

import numpy as np
import pandas as pd
import pytest

from factrobust.models import divergence
from factrobust.models.interface import RecordedModel
from factrobust.models.records import Records

LOG = np.log


def test_one_token_by_hand():
    """p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2): KL = 1/2 log 2 + 0 + 1/4 log 1/2."""
    p = np.float32([[0.5, 0.25, 0.25]])
    q = np.float32([[0.25, 0.25, 0.5]])
    piece = [2], LOG(q)
    pieces = iter([piece])
    found = divergence._compared(pieces, LOG(p))
    assert found["kl"] == pytest.approx([0.25 * LOG(2)])
    assert found["logprob"] == pytest.approx([LOG(0.5)])
    assert found["base_logprob"] == pytest.approx([LOG(0.25)])
    assert found["same"] == [0]


def test_the_summary_by_hand():
    table = pd.DataFrame(
        {
            "kl": [0.0, 1.0, 0.0, 3.0],
            "logprob": LOG(0.5),
            "same": [True, True, True, False],
        }
    )
    found = divergence.summary(table)
    assert found["mean_kl"] == 1.0
    place = 0.999 * 3  # between 1.0, at place 2, and 3.0, at place 3
    tail = 1 + 2 * (place - 2)
    assert found["tail_kl"] == pytest.approx(tail)
    assert found["different_top"] == 0.25
    assert found["perplexity"] == pytest.approx(2)
    assert found["tokens"] == 4


def test_the_second_half_of_each_piece_counts_and_the_answers_are_recorded(
    toy_model, tmp_path, monkeypatch
):
    """After "a" the base says b or c, half each; the other b in three of four. After b and c both say
    a. A text of a b a b ...: half of what counts is a, where nothing differs."""
    monkeypatch.setattr(divergence, "CONTEXT", 8)
    store = Records(tmp_path / "records.sqlite")

    def model(name, chance):
        def load():
            table = {
                "a": {"b": chance, "c": 1 - chance},
                "b": {"a": 1.0},
                "c": {"a": 1.0},
            }
            return toy_model(table)

        return RecordedModel(store, load, name=name, fingerprint=name)

    base = model("base", 0.5)
    text = "ab" * 10  # two pieces of 8, and a rest that is left out
    found = divergence.compared(model("other", 0.75), base, text, store)
    # Tokens 5, 6 and 7 of each: b, a, b.
    kl = (LOG(2 / 3) + LOG(2)) / 2
    logprob = LOG(3 / 4)
    kls = [kl, 0, kl] * 2
    logprobs = [logprob, 0, logprob] * 2
    assert [*found["kl"]] == pytest.approx(kls, abs=1e-6)
    assert [*found["logprob"]] == pytest.approx(logprobs, abs=1e-6)
    without_a_rest = divergence.compared(model("other", 0.75), base, "ab" * 8, store)
    assert len(without_a_rest) == 6
    unloadable = model("other", None)
    again = divergence.compared(unloadable, base, text, store)
    assert again.equals(found)
    itself = divergence.compared(base, base, text, store)
    assert [*itself["kl"]] == [0] * 6
