"""The labelled rows are those that data/draw_labels.py draws."""

import importlib

import pandas as pd
import pytest

from factrobust.datasets.published import load_labels
from factrobust.paths import DATA

SHEETS = {
    "context": {"parametric", "contextual", "same", "other", "none"},
    "wording_answers": {"right", "wrong"},
    "wording_pairs": {"same", "different"},
    "wording_disputed": {"right", "wrong"},
}


script = pytest.fixture(lambda: importlib.import_module("draw_labels"), scope="module")


def rows(n: int) -> pd.DataFrame:
    """n rows of two models in each of two relations of domain "a" and one of "b"."""
    made = [
        (model, f"{model}/{relation}/{i}", relation[0], relation)
        for model in ("m1", "m2")
        for relation in ("a-01", "a-02", "b-01")
        for i in range(n)
    ]
    return pd.DataFrame(made, columns=["model", "name", "domain", "relation"])


def test_the_committed_rows_are_drawn_and_labels_are_kept(script, monkeypatch, tmp_path, capsys):
    tables = script.build()
    monkeypatch.setattr(script, "build", lambda: {k: v.copy() for k, v in tables.items()})
    assert script.main(["--check"]) == 0
    assert capsys.readouterr().out == "up to date\n"
    for name in SHEETS:
        text = (DATA / "labels" / f"{name}.csv").read_text(encoding="utf-8")
        changed = text.replace("What is the capital of Japan?", "Where?")
        (tmp_path / f"{name}.csv").write_text(changed, encoding="utf-8")
    assert script.main(["--check"], tmp_path) == 1
    assert script.main([], tmp_path) == 0
    ours, mended = (
        pd.read_csv(folder / "wording_answers.csv", dtype=str, keep_default_na=False)
        for folder in (DATA / "labels", tmp_path)
    )
    moved = ours["question"] == "What is the capital of Japan?"
    assert moved.any()
    assert ours[~moved].equals(mended[~moved])
    assert set(mended.loc[moved, "label"]) == {""}  # to be labelled anew


@pytest.mark.parametrize("name", SHEETS)
def test_every_row_has_a_label_of_the_guide(name):
    table = load_labels(name)
    assert table["label_id"].is_unique
    drawn = {"context": 300, "wording_disputed": len(table)}.get(name, 200)
    assert len(table) == drawn
    for column in ("label", "label_again"):
        assert set(table[column]) - {"unclear"} == SHEETS[name]
