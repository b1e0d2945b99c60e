"""Number of parameters, from headers alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factrobust.models import weights
from factrobust.models.causal import CausalLM
from factrobust.models.interface import ModelError
from factrobust.models.load import kind, parameter_count


def test_embedded_models(real: CausalLM) -> None:
    count = sum(p.numel() for p in real.body.network.parameters())
    assert parameter_count(real.name) == count
    assert parameter_count(str(weights.embedded_folder(real.name))) == count


def test_kind(gemma: CausalLM, smollm: CausalLM) -> None:
    assert kind(gemma) == "pretrained"
    assert kind(smollm) == "instruction-tuned"


def test_a_folder(toy_model: Callable[..., Any], tmp_path: Path) -> None:
    toy = toy_model({" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}})
    toy.body.network.save_pretrained(tmp_path)
    assert parameter_count(str(tmp_path)) == sum(p.numel() for p in toy.body.network.parameters())


def test_no_weights_to_look_at(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the number of parameters of .* cannot be found"):
        parameter_count(str(tmp_path))
