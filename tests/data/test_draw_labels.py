"""The labelled rows are those that data/draw_labels.py draws."""

from copy import deepcopy

import draw_labels as script
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


AS_TEXT = {"dtype": str, "keep_default_na": False}
QUESTION = "What is the capital of Japan?"


def test_the_committed_rows_are_drawn_and_labels_are_kept(monkeypatch, tmp_path, capsys):
    tables = script.build()
    monkeypatch.setattr(script, "build", lambda: deepcopy(tables))
    assert script.main(["--check"]) == 0
    assert capsys.readouterr().out == "up to date\n"
    for name in SHEETS:
        path = DATA / f"labels/{name}.csv"
        text = path.read_text(encoding="utf-8")
        changed = text.replace(QUESTION, "Where?")
        path = tmp_path / path.name
        path.write_text(changed, encoding="utf-8")
    assert script.main(["--check"], tmp_path) == 1
    assert script.main([], tmp_path) == 0
    ours = pd.read_csv(DATA / "labels/wording_answers.csv", **AS_TEXT)
    mended = pd.read_csv(tmp_path / "wording_answers.csv", **AS_TEXT)
    is_changed = ours["question"] == QUESTION
    assert is_changed.any()
    assert ours[~is_changed].equals(mended[~is_changed])
    labels = mended.loc[is_changed, "label"]
    assert labels.eq("").all()  # to be labelled anew


@pytest.mark.parametrize("name", SHEETS)
def test_every_row_has_a_label_of_the_guide(name):
    table = load_labels(name)
    assert table["label_id"].is_unique
    if name != "wording_disputed":
        assert len(table) == (300 if name == "context" else 200)
    for column in ("label", "label_again"):
        labels = set(table[column])
        assert labels - {"unclear"} == SHEETS[name]
