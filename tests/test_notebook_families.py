"""Notebook 2.5 with what the laptop lacks: a family of three sizes, and each size tuned, too."""

import json

import pandas as pd
import pytest

from factrobust import study
from factrobust.models.interface import Model
from factrobust.paths import ROOT
from factrobust.time import probe

NAMES = [f"google/gemma-2-{size}{end}" for size in ("2b", "9b", "27b") for end in ("", "-it")]


class Named(Model):
    """A model that is only called so."""

    def answer(self, job):
        raise NotImplementedError


def named(name, records):
    return Named(name=name, chat=("<user>", "<model>") if name.endswith(("-it", "-chat")) else None)


def scored(model, statements, *, prompt_format):
    """Tuned models know: the nearer to the middle of the validity, the likelier. Others only drift."""
    table = statements[list(probe.COLUMNS)].assign(model=model.name, prompt_format=prompt_format)
    drift = (table["year"] - 3000) / 100
    table["logprob"] = -table["alpha"].abs() if model.chat else drift
    table["other_logprobs"] = [[-float(year % 7)] for year in table["year"]]
    return table.assign(n_tokens=1)


@pytest.fixture
def saved(monkeypatch):
    monkeypatch.setattr(study, "load_model", named)
    monkeypatch.setattr(probe, "scored", scored)
    kept = {}
    monkeypatch.setattr(study, "save_figure", lambda fig, name, data, **_: kept.update({name: fig}))
    monkeypatch.setattr(study, "save_table", lambda table, name, **_: kept.setdefault(name, table))
    [path] = ROOT.glob("notebooks/2-time/2.5-*.ipynb")
    variables = {"display": lambda *shown: None}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), variables)
        if "parameters" in cell["metadata"].get("tags", []):
            variables |= {"models": NAMES, "n_facts": 150, "n_fine": 12, "n_boot": 20}
    return {name.removeprefix("2-time/"): what for name, what in kept.items()}


def test_sizes_and_tuned_pairs_are_drawn(saved):
    figures = {"figure-07", "figure-07-win-rate", "figure-07-names", "figure-08", "figure-09"}
    figures |= {"figure-07-grown", "figure-09-grown"}
    assert figures == {name for name in saved if name.startswith("figure")}
    rates = saved["table-size"].set_index(["measure", "kind"])["mean"]
    for measure, drifts in (("global robustness", 0), ("global win rate", 0.5)):
        assert rates[measure, "pretrained"].tolist() == pytest.approx([drifts] * 3)
        assert rates[measure, "instruction-tuned"].tolist() == [1] * 3
    [axis] = saved["figure-07"].axes
    fits = {tuple(line.get_ydata().round(9)) for line in axis.lines[-2:]}
    assert (len(axis.lines), fits) == (6 + 2, {(0, 0), (1, 1)})  # a point a model, a line a kind
    shares = saved["table-duels"]
    assert set(zip(shares["first"], shares["second"], strict=True)) == {
        (name, f"{name}-it") for name in NAMES[::2]
    }
    assert (shares["share"] == (shares["outcome"] == "lose")).all()  # the tuned one knows more
    assert pd.notna(saved["table-popularity"]["low"]).sum() > 0
