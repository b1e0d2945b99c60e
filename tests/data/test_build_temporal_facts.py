"""What data/build_temporal_facts.py makes of its sources, and what it refuses."""

from pathlib import Path

import pandas as pd
import pytest

from factrobust.tables import FactsError
from factrobust.temporal.facts import load_temporal_relations

# ---- a small set of sources ----------------------------------------------------------------------

HEADER = "subject,object,aliases,start,end,source\n"
PERSONS = "name,pantheon_name,birth_year,occupation,page_views_english\n"
ROW = "Ann,Acme,the Acme Company,2001,2009-05-02\n"
PAGE = ",Wikipedia: Ann B.\n"  # how each row of the relation ends
CHECK = "employer,ann,Acme,2001-07-01,2009-05\n"


@pytest.fixture
def sources(temporal_builder, tmp_path, monkeypatch):
    """Sources of one relation: a folder, after the given file has got the given text."""
    relations = load_temporal_relations().loc[["employer"]]
    monkeypatch.setattr(temporal_builder, "load_temporal_relations", lambda: relations)
    (tmp_path / "employer.csv").write_text(HEADER + ROW.replace("\n", PAGE))
    (tmp_path / "checks.csv").write_text("relation,subject,object,start,end\n" + CHECK)
    (tmp_path / "wikidata.csv").write_text("name,id\nAnn,Q1\n")
    (tmp_path / "pantheon.csv").write_text(PERSONS + "Ann,Ann B.,1970,WRITER,1000\n")

    def add(name: str, text: str) -> Path:
        text = text.replace("\n", PAGE) if name == "employer" else text
        path = tmp_path / f"{name}.csv"
        path.write_text(path.read_text() + text)
        return tmp_path

    return add


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("employer", "Bob,Acme,,2001,2009\n", "employer,Bob,Acme: no second date"),
        ("checks", "employer,Bob,Acme,2001,2009\n", "employer,Bob,Acme: no such fact"),
        ("checks", CHECK, r"checks\.csv, line 3: .* is already in line 2"),
        (
            "checks",
            "employer,Bob,Acme,2001,2009-02-30\n",
            r"checks\.csv, line 3: the end '2009-02-30'",
        ),
        ("employer", ROW, r"employer\.csv, line 3: .* is already in line 2"),
        ("employer", "Ann,Acme,,2011,2019\n", r"employer\.csv, line 3: .* is already in line 2"),
        (
            "employer",
            "Bob,Acme,,2009,2001\n",
            r"employer\.csv, line 3: the period from 2009 to 2001 ends",
        ),
        ("employer", "Bob,Acme,,1949,2001\n", r"line 3: the fact does not lie within 1950-2020"),
        ("employer", "Bob,Acme,,2001,2021-01\n", r"line 3: the fact does not lie within 1950-2020"),
        (
            "employer",
            "Bob,Acme,,2001-12-09,2003-12-09\n",
            "line 3: the fact lasts two years or less",
        ),
        (
            "employer",
            "Acme,Ann,bob|acme,2001,2009\n",
            "line 3: the fact has its answer in its question",
        ),
        ("wikidata", "Bob,Q2\n", r"wikidata\.csv, line 3: no fact names 'Bob'"),
        ("wikidata", "Acme,76\n", "line 3: the id '76' is no id of Wikidata"),
        ("wikidata", "Acme,Q1\n", "line 3: id 'Q1' is already in line 2"),
        ("wikidata", "ann,Q2\n", "line 3: name 'ann' is already in line 2"),
        ("pantheon", "Bob,Bob,1970,WRITER,9\n", r"pantheon\.csv, line 3: no fact names 'Bob'"),
        (
            "pantheon",
            "Acme,Acme,1910,WRITER,9\n",
            "line 3: 'Acme' was 91 years old when the first fact",
        ),
        ("pantheon", "Acme,Acme,1987,WRITER,9\n", "line 3: 'Acme' was 14 years old"),
        ("pantheon", "ann,Ann C.,1970,WRITER,9\n", r"line 3: name 'ann' is already in line 2"),
    ],
)
def test_bad_sources_stop_the_build(temporal_builder, sources, name, text, message):
    with pytest.raises(FactsError, match=message):
        temporal_builder.build(sources(name, text))


@pytest.mark.parametrize(
    ("start", "end", "agrees"),
    [
        ("2001-07-01", "2009-05", True),
        ("2001", "2009-05-02", True),
        ("2002", "2009-05-02", False),
        ("2001", "2009-05-03", False),
        ("2001", "2009-06", False),
    ],
)
def test_dates_agree_at_the_coarser_precision(temporal_builder, sources, start, end, agrees):
    folder = sources("employer", "Bob,Acme,,2001,2009-05-02\n")
    sources("checks", f"employer,Bob,Acme,{start},{end}\n")
    if agrees:
        assert len(temporal_builder.build(folder)) == 2
        return
    with pytest.raises(FactsError) as caught:
        temporal_builder.build(folder)
    assert f"employer,Bob,Acme: 2001 to 2009-05-02, but {start} to {end}" in str(caught.value)


def test_terms_are_compared_with_a_second_recollection(temporal_builder, tmp_path):
    rows = [("uk", "Wilson", "1964-10-16", "1970"), ("uk", "Heath", "1970", "1974-03-04")]
    rows += [("uk", "Wilson", "1974-03", ""), ("fr", "Coty", "1954", "1959")]
    terms = pd.DataFrame(rows, columns=["chain", "holder", "start", "end"])
    path = tmp_path / "again.csv"

    def compare(*changes: tuple[str, str]) -> None:
        text = terms.to_csv(index=False)
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
        temporal_builder.compare_terms(terms, path)

    compare(("1964-10-16", "1964"), ("1974-03-04", "1974-03"))
    with pytest.raises(
        FactsError, match=r"again\.csv; mend .*\nuk,Wilson,2: 1974-03 to , but 1974-04"
    ):
        compare(("uk,Wilson,1974-03", "uk,Wilson,1974-04"))
    with pytest.raises(FactsError, match=r"uk,Wilson,2: 1974-03 to , but 1974-03 to 1976"):
        compare(("uk,Wilson,1974-03,", "uk,Wilson,1974-03,1976"))
    with pytest.raises(FactsError, match=r"fr,Coty,1: no second date\nfr,Auriol,1: no such fact"):
        compare(("Coty", "Auriol"))
