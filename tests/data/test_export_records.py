"""Export: what notebooks used, in files that depend on the records alone."""

import json
from functools import partial
from pathlib import Path

import export_records as exporting
import pandas as pd
import pytest
from export_records import COUNTS, INDEX, export, main
from frames import assert_rows

from factrobust.models.records import COLUMNS, NOTEBOOKS, Call, Records, RecordsError, key_of

NOTEBOOK = "notebooks/1-decoding/1.1-known-facts.ipynb"
OTHER = "notebooks/other.ipynb"
SCORE = "a5fd3b62230aa5ec-float32.score.00.parquet"
GENERATE = "a5fd3b62230aa5ec-float32.generate.00.parquet"


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def keys(calls: list[Call]) -> set[bytes]:
    return set(map(key_of, calls))


@pytest.fixture
def exported(path, base):
    """Export to `base`; `used` is what notebooks made when they last ran to their end."""
    return partial(
        export,
        base,
        new=path,
        again=Path("none"),
        used={},
        there=[NOTEBOOK, OTHER],
    )


@pytest.fixture
def held(base):
    """The committed answers to calls."""
    return lambda calls: Records(None, base).get(calls)


# What `base` holds, with the answers 0, 1, 2...
scored = pytest.fixture(lambda toy: toy.calls(50))
generated = pytest.fixture(lambda toy: toy.calls(30, operation="generate"))


@pytest.fixture
def used(scored, generated):
    """The calls of both notebooks, of which five are the same."""
    other = generated + scored[:5]
    return {NOTEBOOK: keys(scored), OTHER: keys(other)}


def test_files_hold_what_was_used_readably(base):
    assert sorted(contents(base)) == [GENERATE, SCORE, COUNTS, INDEX]
    table = pd.read_parquet(base / SCORE)
    assert list(table) == [*COLUMNS, NOTEBOOKS]
    assert table["prompt"].is_monotonic_increasing
    users = table[NOTEBOOKS].value_counts()
    assert users.to_dict() == {NOTEBOOK: 45, f"{NOTEBOOK}\n{OTHER}": 5}
    files = json.loads((base / INDEX).read_text())["files"]
    assert files[SCORE]["calls"] == 50
    assert files[GENERATE]["calls"] == 30


def test_calls_are_counted_where_they_were_made_first(
    path, base, scored, generated, used, exported
):
    asked = ['{"answer": " Rome", "n": 1}', '{"max_new_tokens": 5, "n": 10}']
    calls = [Call("tiny", "toy", "A town:", parameters) for parameters in asked]
    Records(path).put(calls, [0, 0])
    exported(used={OTHER: used[OTHER] | keys(calls)})
    # Five of the first notebook's calls were used by the other one, too: they count once. Two
    # prompts of 7 characters and an answer to score of 5, then 10 samples of 5 tokens at most.
    to_score = "".join(call.prompt for call in scored)
    to_generate = "".join(call.prompt for call in generated)
    assert_rows(
        pd.read_csv(base / COUNTS),
        f"""
        notebook    operation  calls  characters   written
        {NOTEBOOK}  score      50     {len(to_score)}     0
        {OTHER}     generate   30     {len(to_generate)}  0
        {OTHER}     toy        2      19           50
        """,
    )


def test_files_depend_on_the_records_alone(base, scored, generated, used, exported, tmp_path):
    before = contents(base)
    exported()
    assert contents(base) == before
    # The same calls, stored in another order by another run, and in batches of other sizes.
    second = tmp_path / "second.sqlite"
    records = Records(second)
    for i in reversed(range(30)):
        records.put([generated[i]], [i])
    scored.reverse()
    records.put(scored, list(range(49, -1, -1)))
    for file in base.iterdir():
        file.unlink()
    exported(used=used, new=second)
    assert contents(base) == before
    (base / INDEX).write_text('{"schema": 0}')  # answers of another meaning are replaced
    exported(used=used, new=second)
    assert contents(base) == before


def test_an_interrupted_run_drops_no_committed_answer(path, base, toy, exported):
    """The notebooks that did not come to their end keep what is committed, all of it."""
    before = contents(base)
    path.unlink()  # a fresh clone
    stopped = toy.calls(7, model="new")  # of a notebook that was
    Records(path).put(stopped, [0] * 7)
    exported()
    assert contents(base) == before


def test_a_notebook_that_came_to_its_end_gives_up_what_it_no_longer_asks(
    scored, generated, exported, held
):
    exported(used={NOTEBOOK: keys(scored[:6])})
    assert held(scored[:7]) == [0, 1, 2, 3, 4, 5, None]
    assert held(generated) == list(range(30))
    # And one that is no longer there gives up all that it alone used.
    exported(there=[NOTEBOOK])
    assert held(generated) == [None] * 30


def test_a_committed_answer_stays_unless_the_model_says_another(scored, exported, held, tmp_path):
    again = tmp_path / "again.sqlite"
    new = [[0.5], [1.004], 99]
    Records(again).put(scored[:3], new)
    # Committed are 0, 1, 2 and 3, which are no lists: all three differ.
    exported(again=again)
    assert held(scored[:4]) == [*new, 3]
    other = tmp_path / "other.sqlite"
    newer = [[0.5001], [1.5]]
    Records(other).put(scored[:2], newer)
    exported(again=other)
    # Within the tolerance the committed one stays, bit for bit.
    assert held(scored[:2]) == [[0.5], [1.5]]


def test_damaged_records_and_empty_ones_are_refused(base, exported):
    (base / SCORE).write_bytes(b"damaged")
    with pytest.raises(RecordsError, match="git checkout"):
        exported()
    (base / INDEX).unlink()
    with pytest.raises(RecordsError, match="nothing to export"):
        exported()


def test_command_line(path, base, scored, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(exporting, "places", lambda: (path, base))
    monkeypatch.setattr(exporting, "asked_again", lambda: tmp_path / "again.sqlite")
    monkeypatch.setattr(exporting, "find_notebooks", lambda root: [NOTEBOOK, OTHER])
    file = path.with_name("used") / f"{NOTEBOOK}.used"
    file.parent.mkdir(parents=True)
    names = keys(scored[:3])
    file.write_bytes(b"".join(names))
    main()
    printed = capsys.readouterr().out
    assert printed.startswith("2 files, 0.0 MB, in ")
    kept = pd.read_parquet(base / SCORE)
    assert len(kept) == 5  # OTHER uses two more
    path.write_text("nothing of the kind " * 300)
    with pytest.raises(SystemExit, match="not a database"):
        main()
