"""Notebook 2.3 with what the laptop lacks: a family of three sizes, and each size tuned, too."""

import re

import nbformat
import pytest

from factrobust import study
from factrobust.models.interface import Model
from factrobust.paths import ROOT
from factrobust.temporal import probe

NAMES = [f"google/gemma-2-{size}{end}" for size in ("2b", "9b", "27b") for end in ("", "-it")]


PARAMETERS = {
    "models": NAMES,
    "larger": [],
    "n_facts": 150,
    "n_fine": 12,
    "n_larger": 60,
    "n_boot": 20,
}


class Named(Model):
    """A model that is only called so."""

    def answer(self, job):
        raise NotImplementedError


def named(name, records):
    chat = ("<user>", "<model>") if name.endswith("-it") else None
    return Named(name=name, fingerprint=name, chat=chat)


def scored(model, statements, prompt_format):
    """Tuned models know: the nearer to the middle of the validity, the likelier. Others only
    drift."""
    columns = [name for name in (*probe.COLUMNS, "asked_of") if name in statements]
    table = statements[columns].assign(model=model.name, prompt_format=prompt_format, n_tokens=1)
    year = table["year"]
    table["logprob"] = -table["alpha"].abs() if model.chat else (year - 3000) / 100
    if "asked_of" in table:  # under wrong subjects there is only noise
        noise = -1.0 * (year * 7919 % 13)
        table["logprob"] = table["logprob"].where(table["asked_of"] == 0, noise)
    table["other_logprobs"] = [[-float(one % 7)] * 2 for one in year]
    return table


@pytest.fixture
def saved(monkeypatch):
    monkeypatch.setattr(study, "load_model", named)
    monkeypatch.setattr(probe, "scored_statements", scored)
    kept = {}

    def keep(fig, name, data, **_):
        kept.update({name: fig, f"{name} data": data})

    monkeypatch.setattr(study, "save_figure", keep)
    monkeypatch.setattr(study, "save_table", lambda table, name, **_: kept.setdefault(name, table))
    [path] = ROOT.glob("notebooks/2-time/2.3-*.ipynb")
    variables = {"display": lambda *shown: None}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, variables)
        if "parameters" in cell.metadata.get("tags", []):
            variables |= PARAMETERS
    return {name.removeprefix("2-time/"): what for name, what in kept.items()}


def test_sizes_and_tuned_pairs_are_drawn(saved):
    figures = [name for name in saved if re.fullmatch(r"figure-\d+", name)]
    assert sorted(figures) == ["figure-05", "figure-06", "figure-07", "figure-08", "figure-09"]
    [axis] = saved["figure-07"].axes
    rates = {(round(line.get_ydata()[0], 6), line.get_mfc() == "white") for line in axis.lines}
    # Three drift, and win half of their balanced matches; three know, and are drawn hollow.
    assert len(axis.lines) == 6
    assert rates == {(0.5, False), (1.0, True)}
    shares = saved["figure-09 data"]
    assert sorted({*shares["first"], *shares["second"]}) == sorted(NAMES)
    assert (shares["second"] == shares["first"] + "-it").all()
    lost = shares.query("outcome == 'lose' and metric == 'robust'")["share"]
    assert len(lost)
    assert (lost == 1).all()  # the tuned one knows more
    assert saved["table-popularity"]["low"].notna().any()
