"""Export: what notebooks used, in files that depend on the records alone."""

import json
from pathlib import Path

import export_records as exporting
import pandas as pd
import pytest
from export_records import COUNTS, export, main, used_by_notebook

from factrobust.models.records import (
    COLUMNS,
    INDEX,
    NOTEBOOKS,
    Call,
    Records,
    RecordsError,
    key_of,
)

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"
OTHER = "notebooks/other.ipynb"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def keys(calls: list[Call]) -> set[bytes]:
    return {key_of(call) for call in calls}


@pytest.fixture
def exported(path, base):
    """Export to `base` what the notebooks in `used` made when they last ran to their end."""

    def made(used, new=path, again=Path("none"), there=(NOTEBOOK, OTHER)):
        return export(
            base,
            new=new,
            again=again,
            used=used,
            there=there,
        )

    return made


def test_files_hold_what_was_used_readably(base):
    score = "a5fd3b62230aa5ec-float32.score.00.parquet"
    generate = score.replace("score", "generate")
    assert sorted(file.name for file in base.iterdir()) == [generate, score, COUNTS, INDEX]
    table = pd.read_parquet(base / score)
    assert list(table) == [*COLUMNS, NOTEBOOKS]
    assert len(table) == 50
    assert table.prompt.is_monotonic_increasing
    assert table[NOTEBOOKS].value_counts().to_dict() == {NOTEBOOK: 45, f"{NOTEBOOK}\n{OTHER}": 5}
    index = json.loads((base / INDEX).read_text())
    calls = {name: about["calls"] for name, about in index["files"].items()}
    assert calls == {generate: 30, score: 50}


def test_calls_are_counted_where_they_were_made_first(path, base, toy, exported):
    asked = ['{"answer": " Rome", "n": 1}', '{"max_new_tokens": 5, "n": 10}']
    calls = [Call("tiny", "toy", "A town:", parameters) for parameters in asked]
    Records(path).put(calls, [0, 0])
    exported({OTHER: keys(calls) | keys(toy.calls(30, operation="generate")) | keys(toy.calls(5))})
    counts = pd.read_csv(base / COUNTS).set_index(["notebook", "operation"]).drop(columns="model")
    # Five of the first notebook's calls were used by the other one, too: they count once. Two
    # prompts of 7 characters and an answer to score of 5, then 10 samples of 5 tokens at most.
    characters = sum(len(call.prompt) for call in toy.calls(50))
    assert counts.loc[NOTEBOOK, "score"].tolist() == [50, characters, 0]
    assert counts.loc[OTHER, "toy"].tolist() == [2, 7 + 7 + 5, 50]
    assert counts.loc[OTHER].index.tolist() == ["generate", "toy"]


def test_files_depend_on_the_records_alone(base, toy, exported, tmp_path):
    before = contents(base)
    exported({})
    assert contents(base) == before
    # The same calls, stored in another order by another run, and in batches of other sizes.
    second = tmp_path / "second.sqlite"
    records = Records(second)
    for i, call in reversed(list(enumerate(toy.calls(30, operation="generate")))):
        records.put([call], [i])
    records.put(toy.calls(50)[::-1], list(range(50))[::-1])
    for file in base.iterdir():
        file.unlink()
    both = keys(toy.calls(30, operation="generate")) | keys(toy.calls(5))
    exported({NOTEBOOK: keys(toy.calls(50)), OTHER: both}, new=second)
    assert contents(base) == before
    (base / INDEX).write_text('{"schema": 0}')  # answers of another meaning are replaced
    exported({NOTEBOOK: keys(toy.calls(50)), OTHER: both}, new=second)
    assert contents(base) == before


def test_an_interrupted_run_drops_no_committed_answer(path, base, toy, exported):
    """The notebooks that did not come to their end keep what is committed, all of it."""
    before = contents(base)
    path.unlink()  # a fresh clone
    Records(path).put(toy.calls(7, model="new"), [0] * 7)  # of a notebook that was stopped
    exported({})
    assert contents(base) == before
    # One that came to its end with fewer calls gives up the others.
    exported({NOTEBOOK: keys(toy.calls(6))})
    found = Records(None, base).get(toy.calls(7))
    assert found == [0, 1, 2, 3, 4, 5, None]
    assert Records(None, base).get(toy.calls(30, operation="generate")) == list(range(30))
    # And one that is no longer there gives up all that it alone used.
    exported({}, there=[NOTEBOOK])
    assert Records(None, base).get(toy.calls(1, operation="generate")) == [None]


def test_a_committed_answer_stays_unless_the_model_says_another(base, toy, exported, tmp_path):
    again = tmp_path / "again.sqlite"
    calls = toy.calls(4)
    Records(again).put(calls[:3], [[0.5], [1.004], 99])
    # Committed are 0, 1, 2 and 3, which are no lists: all three differ.
    exported({}, again=again)
    assert Records(None, base).get(calls) == [[0.5], [1.004], 99, 3]
    other = tmp_path / "other.sqlite"
    Records(other).put(calls[:2], [[0.5001], [1.5]])
    exported({}, again=other)
    # Within the tolerance the committed one stays, bit for bit.
    assert Records(None, base).get(calls[:2]) == [[0.5], [1.5]]


def test_damaged_records_and_empty_ones_are_refused(path, base, exported):
    next(base.glob("*.score.*")).write_bytes(b"damaged")
    with pytest.raises(RecordsError, match="git checkout"):
        exported({})
    with pytest.raises(RecordsError, match="nothing to export"):
        export(
            path.parent / "other",
            new=path,
            again=Path("none"),
            used={},
            there=[NOTEBOOK],
        )


def test_command_line(path, base, toy, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exporting, "places", lambda: (path, base))
    monkeypatch.setattr(exporting, "asked_again", lambda: tmp_path / "again.sqlite")
    monkeypatch.setattr(exporting, "find_notebooks", lambda root: [NOTEBOOK, OTHER])
    file = path.with_name("used") / f"{NOTEBOOK}.used"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"".join(keys(toy.calls(3))))
    assert used_by_notebook(path.with_name("used")) == {NOTEBOOK: keys(toy.calls(3))}
    main()
    assert capsys.readouterr().out.startswith("2 files, 0.0 MB, in ")
    assert len(pd.read_parquet(next(base.glob("*.score.*")))) == 5  # OTHER uses two more
    path.write_text("nothing of the kind " * 300)
    with pytest.raises(SystemExit, match="not a database"):
        main()
