"""Export: what notebooks used, in files that depend on the records alone."""

import json
from pathlib import Path

import export_records as exporting
import pandas as pd
import pytest
from export_records import COUNTS, export, main, restore

from factrobust.models.records import COLUMNS, INDEX, Call, Records, RecordsError

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"
OTHER = "notebooks/other.ipynb"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_files_hold_what_was_used_readably(base):
    score = "a5fd3b62230aa5ec-float32.score.00.parquet"
    generate = score.replace("score", "generate")
    assert sorted(file.name for file in base.iterdir()) == [generate, score, COUNTS, INDEX]
    table = pd.read_parquet(base / score)
    assert (list(table), len(table)) == (list(COLUMNS), 50)
    assert table.prompt.is_monotonic_increasing
    index = json.loads((base / INDEX).read_text())
    assert index["notebooks"] == [NOTEBOOK, OTHER]
    calls = {name: about["calls"] for name, about in index["files"].items()}
    assert calls == {generate: 30, score: 50}


def test_calls_are_counted_where_they_were_made_first(path, base, toy, monkeypatch):
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", OTHER)
    asked = ['{"answer": " Rome", "n": 1}', '{"max_new_tokens": 5, "n": 10}']
    calls = [Call("tiny", "toy", "A town:", parameters) for parameters in asked]
    Records(path).put(calls, [0, 0])
    export(path, base)
    counts = pd.read_csv(base / COUNTS).set_index(["notebook", "operation"]).drop(columns="model")
    # Five of the first notebook's calls were used by the other one, too: they count once. Two
    # prompts of 7 characters and an answer to score of 5, then 10 samples of 5 tokens at most.
    characters = sum(len(call.prompt) for call in toy.calls(50))
    assert counts.loc[NOTEBOOK, "score"].tolist() == [50, characters, 0]
    assert counts.loc[OTHER, "toy"].tolist() == [2, 7 + 7 + 5, 50]
    assert counts.loc[OTHER].index.tolist() == ["generate", "toy"]


def test_files_depend_on_the_records_alone(path, base, toy, monkeypatch):
    before = contents(base)
    export(path, base)
    assert contents(base) == before
    # The same calls, stored in another order by another run, and in batches of other sizes.
    second = path.with_name("second.sqlite")
    records = Records(second)
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", OTHER)
    for i, call in reversed(list(enumerate(toy.calls(30, operation="generate")))):
        records.put([call], [i])
    records.put(toy.calls(5), list(range(5)))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    records.get(toy.calls(5))
    records.put(toy.calls(50)[::-1], list(range(50))[::-1])
    export(second, base)
    assert contents(base) == before
    # Damaged or outdated files are replaced.
    next(base.glob("*.score.*")).write_bytes(b"damaged")
    (base / INDEX).write_text('{"schema": 0}')
    export(path, base)
    assert contents(base) == before


def test_a_restored_store_needs_no_model_and_exports_the_same(base, toy, tmp_path, monkeypatch):
    before, second = contents(base), tmp_path / "second.sqlite"
    Records(second).put(toy.calls(1, operation="other"), ["kept"])
    assert restore(second, base) == 80
    records = Records(second)
    assert records.get(toy.calls(1, operation="other")) == ["kept"]
    with pytest.raises(RecordsError, match="nothing to export"):  # until notebooks use them
        export(second, base)
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    assert records.get(toy.calls(50)) == list(range(50))
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", OTHER)
    assert records.get(toy.calls(30, operation="generate")) == list(range(30))
    records.get(toy.calls(5))
    export(second, base)
    assert contents(base) == before


def test_large_files_are_split(path, base, toy, monkeypatch):
    before = contents(base)
    monkeypatch.setattr(exporting, "CHUNK_BYTES", 300)
    files = export(path, base)
    assert len(files) > 4
    assert sorted(files) == sorted(base.glob("*.parquet"))
    assert Records(None, base, strict=True).get(toy.calls(50)) == list(range(50))
    monkeypatch.undo()
    export(path, base)
    assert contents(base) == before  # the parts that are no longer needed are gone


def test_models_whose_names_look_alike_share_no_file(path, toy, monkeypatch):
    monkeypatch.setenv("FACTROBUST_NOTEBOOK", NOTEBOOK)
    names = ["hub:a/b@1 float32", "hub:a-b@1 float32"]
    for name in names:
        Records(path).put(toy.calls(2, model=name), [name, name])
    folder = path.parent / "committed"
    found = sorted(file.name for file in export(path, folder))
    assert found == [f"hub-a-b-1-float32.score.0{i}.parquet" for i in (0, 1)]
    for name in names:
        assert Records(None, folder).get(toy.calls(2, model=name)) == [name, name]


def test_a_notebook_that_was_not_run_is_not_dropped(path, base, toy):
    before = contents(base)
    records = Records(path)
    records.forget_use(NOTEBOOK)
    with pytest.raises(RecordsError, match=rf"drop the records of {NOTEBOOK}.*or delete"):
        export(path, base)
    assert contents(base) == before
    (base / INDEX).unlink()
    export(path, base)
    assert Records(None, base).get(toy.calls(6)) == [0, 1, 2, 3, 4, None]
    assert records.get(toy.calls(50)) == list(range(50))  # forgetting a use deletes no result
    with pytest.raises(RecordsError, match="nothing to export"):
        export(path.with_name("none.sqlite"), base)


def test_command_line(path, base, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exporting, "places", lambda: (path, tmp_path / "written"))
    main()
    assert capsys.readouterr().out.startswith("2 files, 0.0 MB, in ")
    assert contents(tmp_path / "written") == contents(base)
    path.write_text("nothing of the kind " * 300)
    with pytest.raises(SystemExit, match="not a database"):
        main()
