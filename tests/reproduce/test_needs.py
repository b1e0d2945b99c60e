"""GPUs, disk and dollars of a plan, by hand."""

import pytest
from frames import frame

from factrobust.models.load import Settings
from factrobust.reproduce import needs
from factrobust.reproduce.needs import Gpus, text, workers_for

URL = "https://api.openai.com/v1 mini"
CALLS = frame(f"""
    part  notebook                 model  calls  characters  written
    1-a   notebooks/1-a/1.1.ipynb  small  10     370         20
    1-a   notebooks/1-a/1.2.ipynb  small  10     370         20
    1-a   notebooks/1-a/1.2.ipynb  large  10     370         20
    1-a   notebooks/1-a/1.2.ipynb  {URL}  5      3.7e6       2e6
    2-b   notebooks/2-b/2.1.ipynb  huge   1      37          2
""")
# 2 bytes a weight: 10, 100 and 400 GB.
SIZES = {"small": 5e9, "large": 50e9, "huge": 200e9}


@pytest.fixture(autouse=True)
def three_models(monkeypatch):
    shape = ("layers", "key_value_heads", "head_size", "width", "vocabulary", "tokens_per_batch")

    def settings(name):
        if name not in SIZES:
            return None
        return Settings(
            model=name,
            dtype="bfloat16",
            device_map="auto",
            prompt_format="two-shot",
            chat_template="no",
            architecture="decoder",
            tied="no",
            parameters=int(SIZES[name]),
            **dict.fromkeys(shape, 1),
        )

    monkeypatch.setattr(needs, "settings_of", settings)


def costs():
    """As many GB as the weights take, and an hour a call; of the endpoint nothing is known."""
    table = CALLS.groupby(["part", "model"], as_index=False)["calls"].sum()
    parameters = table["model"].map(SIZES)
    hours = table["calls"].where(parameters.notna())
    return table.assign(**{"GB memory": 2 * parameters / 1e9, "hours": hours})


def test_a_worker_has_as_many_gpus_as_its_model_needs():
    workers = [workers_for(memory, Gpus(8, 80)) for memory in (0, 79, 81, 141, 161, 650)]
    assert workers == [8, 8, 4, 4, 2, 0]


def test_a_part_needs_what_its_largest_model_needs_and_an_endpoint_takes_dollars():
    """10 calls twice of the small model and 10 of the large one, on two workers of two GPUs. A
    million tokens of prompts, at 3.7 letters each, and two million of answers: 0.15 + 2 x 0.60."""
    lines = text(CALLS, costs(), Gpus(4, 80)).splitlines()
    assert lines[1:3] == [
        "  1-a: 100.0 GB a kernel, WORKERS=2, 15 hours",
        "  2-b: 400.0 GB a kernel, too large for them",
    ]
    assert lines[3].startswith(
        "Together 15 hours, and at least 0.14 more to load 520 GB of weights"
    )
    assert lines[4].startswith(
        f"{URL} takes 5 requests, 1.35 dollars at 0.15 and 0.6 for a million"
    )
