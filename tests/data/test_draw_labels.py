"""The labelled answers are those that data/draw_labels.py draws."""

import importlib

import pandas as pd
import pytest

from factrobust.paths import DATA


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DATA))
        return importlib.import_module("draw_labels")


def answers(n: int) -> pd.DataFrame:
    """n answers of two models to each of two base questions in "a" and of one in "b"."""
    rows = [
        (model, f"{base}/{i}", base[0], base)
        for model in ("m1", "m2")
        for base in ("a-01", "a-02", "b-01")
        for i in range(n)
    ]
    return pd.DataFrame(rows, columns=["model", "question_id", "category", "base_id"])


def test_models_categories_and_base_questions_are_drawn_evenly(script):
    drawn = script.draw(answers(9), n=16)
    assert drawn.groupby(["model", "category"]).size().tolist() == [4, 4, 4, 4]
    assert drawn.groupby(["model", "base_id"]).size().tolist() == [2, 2, 4] * 2
    again = script.draw(answers(9).sample(frac=1, random_state=1), n=16)
    assert again["name"].tolist() == drawn["name"].tolist()
    assert script.draw(answers(9), n=16, seed=1)["name"].tolist() != drawn["name"].tolist()


def test_the_committed_answers_are_drawn_and_labels_are_kept(script, monkeypatch, tmp_path, capsys):
    table = script.build()
    monkeypatch.setattr(script, "build", table.copy)
    committed = DATA / "labels" / "context.csv"
    assert script.main(["--check"]) == 0
    assert capsys.readouterr().out == "up to date\n"
    text = committed.read_text(encoding="utf-8")
    path = tmp_path / "context.csv"
    path.write_text(text.replace("Which author wrote", "Who wrote"), encoding="utf-8")
    assert script.main(["--check"], path) == 1
    assert "Who wrote" in path.read_text(encoding="utf-8")  # --check writes nothing
    assert script.main([], path) == 0
    ours, mended = (pd.read_csv(p, dtype=str, keep_default_na=False) for p in (committed, path))
    changed = ours["question"].str.startswith("Which author wrote")
    assert ours[~changed].equals(mended[~changed])
    assert changed.any()
    assert set(mended.loc[changed, "label"]) == {""}  # to be labelled anew
