"""What data/build_temporal_facts.py makes of its sources, and what it refuses."""

import io

import pandas as pd
import pytest
from frames import frame

from factrobust.tables import FactsError
from factrobust.temporal.facts import load_temporal_relations

# A small set of sources, of one relation.
SOURCES = {
    "employer": (
        "subject,object,aliases,start,end,source\n"
        "Ann,Acme,the Acme Company,2001,2009-05-02,Wikipedia: Ann B.\n"
    ),
    "checks": "relation,subject,object,start,end\nemployer,ann,Acme,2001-07-01,2009-05\n",
    "wikidata": "name,id\nAnn,Q1\n",
    "pantheon": (
        "name,pantheon_name,birth_year,occupation,page_views_english\nAnn,Ann B.,1970,WRITER,1000\n"
    ),
}


@pytest.fixture
def build(temporal_builder, tmp_path, monkeypatch):
    """Build from the sources, after each named file has got one more line."""
    relations = load_temporal_relations().loc[["employer"]]
    monkeypatch.setattr(temporal_builder, "load_temporal_relations", lambda: relations)

    def build_with(**lines: str):
        for name, text in SOURCES.items():
            end = ",Wikipedia: Ann B." if name == "employer" else ""
            more = f"{lines[name]}{end}\n" if name in lines else ""
            (tmp_path / f"{name}.csv").write_text(text + more)
        return temporal_builder.build(tmp_path)

    return build_with


BAD = frame(r"""
    source    third line                               says
    employer  Bob,Acme,,2001,2009                      employer,Bob,Acme: no second date
    checks    employer,Bob,Acme,2001,2009              employer,Bob,Acme: no such fact
    checks    employer,ann,Acme,2001-07-01,2009-05     checks\.csv, line 3: .* is already in line 2
    checks    employer,Bob,Acme,2001,2009-02-30        checks\.csv, line 3: the end '2009-02-30'
    employer  Ann,Acme,the Acme Company,2001,2009-05   employer\.csv, line 3: .* is already in line 2
    employer  Ann,Acme,,2011,2019                      employer\.csv, line 3: .* is already in line 2
    employer  Bob,Acme,,2009,2001                      employer\.csv, line 3: the period from 2009 to 2001 ends
    employer  Bob,Acme,,1949,2001                      line 3: the fact does not lie within 1950-2020
    employer  Bob,Acme,,2001,2021-01                   line 3: the fact does not lie within 1950-2020
    employer  Bob,Acme,,2001-12-09,2003-12-09          line 3: the fact lasts two years or less
    employer  Acme,Ann,bob|acme,2001,2009              line 3: the fact has its answer in its question
    wikidata  Bob,Q2                                   wikidata\.csv, line 3: no fact names 'Bob'
    wikidata  Acme,76                                  line 3: the id '76' is no id of Wikidata
    wikidata  Acme,Q1                                  line 3: id 'Q1' is already in line 2
    wikidata  ann,Q2                                   line 3: name 'ann' is already in line 2
    pantheon  Bob,Bob,1970,WRITER,9                    pantheon\.csv, line 3: no fact names 'Bob'
    pantheon  Acme,Acme,1910,WRITER,9                  line 3: 'Acme' was 91 years old when the first fact
    pantheon  Acme,Acme,1987,WRITER,9                  line 3: 'Acme' was 14 years old
    pantheon  ann,Ann C.,1970,WRITER,9                 line 3: name 'ann' is already in line 2
""")


@pytest.mark.parametrize(("source", "line", "says"), BAD.to_numpy().tolist())
def test_bad_sources_stop_the_build(build, source, line, says):
    with pytest.raises(FactsError, match=says):
        build(**{source: line})


AGREE = frame("""
    start       end         agrees
    2001-07-01  2009-05     True
    2001        2009-05-02  True
    2002        2009-05-02  False
    2001        2009-05-03  False
    2001        2009-06     False
""")


@pytest.mark.parametrize(("start", "end", "agrees"), AGREE.to_numpy().tolist())
def test_dates_agree_at_the_coarser_precision(build, start, end, agrees):
    fact = "Bob,Acme,,2001,2009-05-02"
    check = f"employer,Bob,Acme,{start},{end}"
    if agrees:
        assert len(build(employer=fact, checks=check)) == 2
        return
    says = f"employer,Bob,Acme: 2001 to 2009-05-02, but {start} to {end}"
    with pytest.raises(FactsError, match=says):
        build(employer=fact, checks=check)


TERMS = """chain,holder,start,end
uk,Wilson,1964-10-16,1970
uk,Heath,1970,1974-03-04
uk,Wilson,1974-03,
fr,Coty,1954,1959
"""
CHANGES = frame(r"""
    here                there                   says
    uk,Wilson,1974-03,  uk,Wilson,1974-04,      again\.csv; mend .*\nuk,Wilson,2: 1974-03 to , but 1974-04
    uk,Wilson,1974-03,  uk,Wilson,1974-03,1976  uk,Wilson,2: 1974-03 to , but 1974-03 to 1976
    Coty                Auriol                  fr,Coty,1: no second date\nfr,Auriol,1: no such fact
""")


@pytest.fixture
def compare(temporal_builder, tmp_path):
    """Compare the terms with those of another text."""
    path = tmp_path / "again.csv"

    def compare_with(text: str) -> None:
        path.write_text(text)
        terms = pd.read_csv(io.StringIO(TERMS), dtype=str, keep_default_na=False)
        temporal_builder.compare_terms(terms, path)

    return compare_with


def test_terms_that_were_recalled_less_precisely_agree(compare):
    less = TERMS.replace("1964-10-16", "1964").replace("1974-03-04", "1974-03")
    assert less != TERMS
    compare(less)


@pytest.mark.parametrize(("here", "there", "says"), CHANGES.to_numpy().tolist())
def test_terms_that_were_recalled_otherwise(compare, here, there, says):
    with pytest.raises(FactsError, match=says):
        compare(TERMS.replace(here, there))
