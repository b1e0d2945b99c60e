"""GPUs, disk and dollars of a plan, by hand."""

import pandas as pd
import pytest

from factrobust.models.load import Settings
from factrobust.reproduce import needs
from factrobust.reproduce.needs import Gpus, dollars, of_parts, text, workers_for

URL = "https://api.openai.com/v1 mini"
CALLS = pd.DataFrame(
    [
        ("1-a", "notebooks/1-a/1.1.ipynb", "small", 10, 370.0, 20.0),
        ("1-a", "notebooks/1-a/1.2.ipynb", "small", 10, 370.0, 20.0),
        ("1-a", "notebooks/1-a/1.2.ipynb", "large", 10, 370.0, 20.0),
        ("1-a", "notebooks/1-a/1.2.ipynb", URL, 5, 3.7e6, 2e6),
        ("2-b", "notebooks/2-b/2.1.ipynb", "huge", 1, 37.0, 2.0),
    ],
    columns=["part", "notebook", "model", "calls", "characters", "written"],
)
# 2 bytes a weight: 10, 100 and 400 GB.
SIZES = {"small": 5e9, "large": 50e9, "huge": 200e9}


@pytest.fixture(autouse=True)
def three_models(monkeypatch):
    def settings(name):
        if name not in SIZES:
            return None
        about = {
            "model": name,
            "dtype": "bfloat16",
            "device_map": "auto",
            "tokens_per_batch": 1,
        }
        about |= {"prompt_format": "two-shot", "chat_template": "no", "architecture": "decoder"}
        about |= dict.fromkeys(("layers", "key_value_heads", "head_size", "width", "vocabulary"), 1)
        return Settings(**about, tied="no", parameters=int(SIZES[name]))

    monkeypatch.setattr(needs, "settings_of", settings)


def cost(calls, model):
    """As many GB as the weights take, and an hour a call."""
    return 2 * model.parameters / 1e9, calls["calls"].sum()


def test_a_worker_has_as_many_gpus_as_its_model_needs():
    eight = Gpus(8, 80)
    assert [workers_for(memory, eight) for memory in (0, 79, 81, 141, 161, 650)] == [
        8,
        8,
        4,
        4,
        2,
        0,
    ]


def test_a_part_needs_what_its_largest_model_needs():
    found = of_parts(CALLS, Gpus(4, 80), cost).to_dict("records")
    # 10 calls twice of the small model and 10 of the large one, on two workers of two GPUs.
    assert found[0] == {"part": "1-a", "GB a kernel": 100, "workers": 2, "hours": 15}
    assert found[1] == {
        "part": "2-b",
        "GB a kernel": 400,
        "workers": 0,
        "hours": float("inf"),
    }


def test_an_endpoint_takes_dollars_for_what_it_reads_and_writes():
    own = CALLS[CALLS["model"] == URL]
    # A million tokens of prompts, at 3.7 letters each, and two million of answers.
    assert dollars(own, 3.7, (0.15, 0.60)) == pytest.approx(0.15 + 2 * 0.60)
    told = text(CALLS, Gpus(4, 80), cost, 3.7).splitlines()
    assert told[1:3] == [
        "  1-a: 100.0 GB a kernel, WORKERS=2, 15 hours",
        "  2-b: 400.0 GB a kernel, too large for them",
    ]
    assert told[3].startswith("Together 15 hours, and at least 0.14 more to load 520 GB of weights")
    assert told[4].startswith(f"{URL} takes 5 requests, 1.35 dollars at 0.15 and 0.6 for a million")
