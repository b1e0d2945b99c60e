"""Notebook 2.3 with what the laptop lacks: a family of three sizes, and each size tuned, too."""

import json
import re

import pandas as pd
import pytest

from factrobust import study
from factrobust.models.interface import Model
from factrobust.paths import ROOT
from factrobust.temporal import probe

NAMES = [f"google/gemma-2-{size}{end}" for size in ("2b", "9b", "27b") for end in ("", "-it")]


class Named(Model):
    """A model that is only called so."""

    def answer(self, job):
        raise NotImplementedError


def named(name, records):
    return Named(
        name=name,
        fingerprint=name,
        chat=("<user>", "<model>") if name.endswith(("-it", "-chat")) else None,
    )


def scored(model, statements, prompt_format):
    """Tuned models know: the nearer to the middle of the validity, the likelier. Others only
    drift."""
    columns = [name for name in (*probe.COLUMNS, "asked_of") if name in statements]
    table = statements[columns].assign(model=model.name, prompt_format=prompt_format)
    drift = (table["year"] - 3000) / 100
    table["logprob"] = -table["alpha"].abs() if model.chat else drift
    if "asked_of" in table:  # under wrong subjects there is only noise
        noise = -((table["year"] * 7919) % 13).astype(float)
        table["logprob"] = table["logprob"].where(table["asked_of"] == 0, noise)
    table["other_logprobs"] = [[-float(year % 7)] * 2 for year in table["year"]]
    return table.assign(n_tokens=1)


@pytest.fixture
def saved(monkeypatch):
    monkeypatch.setattr(study, "load_model", named)
    monkeypatch.setattr(probe, "scored", scored)
    kept = {}

    def keep(fig, name, data, **_):
        kept.update({name: fig, f"{name} data": data})

    monkeypatch.setattr(study, "save_figure", keep)
    monkeypatch.setattr(study, "save_table", lambda table, name, **_: kept.setdefault(name, table))
    [path] = ROOT.glob("notebooks/2-time/2.3-*.ipynb")
    variables = {"display": lambda *shown: None}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), variables)
        if "parameters" in cell["metadata"].get("tags", []):
            variables |= {"models": NAMES, "larger": [], "n_facts": 150, "n_fine": 12}
            variables |= {"n_larger": 60, "n_boot": 20}
    return {name.removeprefix("2-time/"): what for name, what in kept.items()}


def test_sizes_and_tuned_pairs_are_drawn(saved):
    figures = {name for name in saved if re.fullmatch(r"figure-\d+", name)}
    assert figures == {f"figure-0{n}" for n in (5, 6, 7, 8, 9)}
    [axis] = saved["figure-07"].axes
    rates = {(round(line.get_ydata()[0], 6), line.get_mfc() == "white") for line in axis.lines}
    # Three drift, and win half of their balanced matches; three know, and are drawn hollow.
    assert len(axis.lines) == 6
    assert rates == {(0.5, False), (1.0, True)}
    shares = saved["figure-09 data"]
    assert set(zip(shares["first"], shares["second"], strict=True)) == {
        (name, f"{name}-it") for name in NAMES[::2]
    }
    lost = shares[shares["outcome"] == "lose"]
    assert lost.loc[lost["metric"] == "robust", "share"].eq(1).all()  # the tuned one knows more
    assert pd.notna(saved["table-popularity"]["low"]).sum() > 0
