"""The labelled rows are those that data/draw_labels.py draws."""

import importlib

import pandas as pd
import pytest

from factrobust.datasets.published import load_labels
from factrobust.paths import DATA

SHEETS = {"context": {"parametric", "contextual", "same", "other", "none"}}


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DATA))
        return importlib.import_module("draw_labels")


def rows(n: int) -> pd.DataFrame:
    """n rows of two models in each of two relations of domain "a" and one of "b"."""
    made = [
        (model, f"{model}/{relation}/{i}", relation[0], relation)
        for model in ("m1", "m2")
        for relation in ("a-01", "a-02", "b-01")
        for i in range(n)
    ]
    return pd.DataFrame(made, columns=["model", "name", "domain", "relation"])


def test_models_domains_and_relations_are_drawn_evenly(script):
    drawn = script.draw(rows(9), n=16)
    assert drawn.groupby(["model", "relation"]).size().tolist() == [2, 2, 4] * 2
    again = script.draw(rows(9).sample(frac=1, random_state=1), n=16)
    assert again["name"].tolist() == drawn["name"].tolist()
    assert script.draw(rows(9), n=16, seed=1)["name"].tolist() != drawn["name"].tolist()


def test_the_committed_rows_are_drawn_and_labels_are_kept(script, monkeypatch, tmp_path, capsys):
    tables = script.build()
    monkeypatch.setattr(script, "build", lambda: {k: v.copy() for k, v in tables.items()})
    assert script.main(["--check"]) == 0
    assert capsys.readouterr().out.count("is up to date") == len(SHEETS)
    text = (DATA / "labels" / "context.csv").read_text(encoding="utf-8")
    changed = text.replace("Which author wrote", "Who wrote")
    (tmp_path / "context.csv").write_text(changed, encoding="utf-8")
    assert script.main(["--check"], tmp_path) == 1
    assert script.main([], tmp_path) == 0
    ours, mended = (
        pd.read_csv(folder / "context.csv", dtype=str, keep_default_na=False)
        for folder in (DATA / "labels", tmp_path)
    )
    moved = ours["question"].str.startswith("Which author wrote")
    assert moved.any()
    assert ours[~moved].equals(mended[~moved])
    assert set(mended.loc[moved, "label"]) == {""}  # to be labelled anew


@pytest.mark.parametrize("name", SHEETS)
def test_every_row_has_a_label_of_the_guide(name):
    table = load_labels(name)
    assert table["label_id"].is_unique
    for column in ("label", "label_again"):
        assert set(table[column]) == SHEETS[name]
