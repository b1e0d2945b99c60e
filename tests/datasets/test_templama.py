import json

import pytest

from factrobust.datasets.dates import sample_dates
from factrobust.datasets.templama import RELATIONS, load_templama
from factrobust.datasets.temporal import COLUMNS, load_temporal_relations
from factrobust.tables import FactsError


def row(query: str, year: int, *answers: str | dict, relation: str = "P54") -> dict:
    given = [a if isinstance(a, dict) else {"name": a, "wikidata_id": f"Q-{a}"} for a in answers]
    return {
        "query": query,
        "answer": given,
        "date": str(year),
        "id": f"Q1_{relation}_{year}",
        "relation": relation,
    }


def plays(years: dict[int, str]) -> list[dict]:
    """A player's rows; each letter is a club."""
    return [row("Ann plays for _X_.", year, *clubs) for year, clubs in years.items()]


@pytest.fixture
def load(tmp_path):
    def load_rows(rows: list[dict], **options):
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(json.dumps(row) for row in rows) + "\n", encoding="utf-8")
        return load_templama(path, **options)

    return load_rows


# Years 2010 and 2020, the edges of the data, come from another player.
EDGES = [row("Bob plays for _X_.", year, "Z") for year in (2010, 2020)]


def periods(facts) -> list[tuple[str, str, str]]:
    return list(facts[["object", "start", "end"]].itertuples(index=False, name=None))


def test_consecutive_years_make_a_period(load):
    facts = load(EDGES + plays({2011: "A", 2012: "A", 2013: "A", 2014: "AB", 2015: "B", 2016: "B"}))
    assert tuple(facts.columns) == COLUMNS
    assert periods(facts) == [("A", "2011", "2014"), ("B", "2014", "2016")]
    assert facts.loc[0, ["fact_id", "subject", "relation"]].tolist() == [
        *("member_of_sports_team/ann/a", "Ann", "member_of_sports_team"),
    ]
    assert facts["source"].tolist() == ["TempLAMA"] * 2
    assert facts["popularity"].isna().all()
    assert facts.attrs == {"dropped": {"open": 2, "short": 0, "other": 0}, "years": (2010, 2020)}


def test_rows_may_stand_in_any_order(load):
    rows = EDGES + plays({2011: "A", 2012: "A", 2013: "A"})
    assert periods(load(rows[::-1])) == periods(load(rows)) == [("A", "2011", "2013")]


def test_a_gap_makes_two_periods(load):
    years = dict.fromkeys([2011, 2012, 2013, 2016, 2017, 2018, 2019], "A")
    facts = load(EDGES + plays(years))
    assert periods(facts) == [("A", "2011", "2013"), ("A", "2016", "2019")]
    assert list(facts["fact_id"]) == [
        "member_of_sports_team/ann/a/2011",
        "member_of_sports_team/ann/a/2016",
    ]
    dates = sample_dates(facts)
    first = dates[(dates["fact_id"] == facts.loc[0, "fact_id"]) & (dates["precision"] == "year")]
    assert not first["year"].isin(range(2016, 2020)).any()  # neither correct nor incorrect


@pytest.mark.parametrize(
    ("years", "dropped"),
    [
        ({2010: "A", 2011: "A", 2012: "A"}, {"open": 1, "short": 0, "other": 0}),
        ({2018: "A", 2019: "A", 2020: "A"}, {"open": 1, "short": 0, "other": 0}),
        ({2012: "A", 2013: "A"}, {"open": 0, "short": 1, "other": 0}),
        # A sound period falls with an open or short one, whose dates would count as incorrect.
        ({2010: "A", 2013: "A", 2014: "A", 2015: "A"}, {"open": 1, "short": 0, "other": 1}),
        ({2011: "A", 2013: "A", 2014: "A", 2015: "A"}, {"open": 0, "short": 1, "other": 1}),
    ],
)
def test_what_is_open_or_short_is_left_out_and_counted(load, years, dropped):
    sound = [row("Carl plays for _X_.", year, "B") for year in (2016, 2017, 2018)]
    facts = load(EDGES + sound + plays(years))
    assert periods(facts) == [("B", "2016", "2018")]
    assert facts.attrs["dropped"] == dropped | {"open": 2 + dropped["open"]}  # with the edges' own


def test_all_edges_leave_an_empty_table(load):
    facts = load(EDGES)
    assert tuple(facts.columns) == COLUMNS
    assert len(facts) == 0
    assert len(sample_dates(facts)) == 0


def test_every_relation_is_read(load):
    subjects = []
    rows = []
    for number, (relation, (_, wording)) in enumerate(RELATIONS.items()):
        subjects.append(f"Subject {number} (the _Y_).")
        query = wording.replace("{subject}", subjects[-1])
        rows += [row(query, year, "A", relation=relation) for year in range(2011, 2015)]
    facts = load([*EDGES, *rows])
    assert facts["subject"].tolist() == subjects
    assert facts["relation"].tolist() == [name for name, _ in RELATIONS.values()]
    assert set(facts["relation"]) & set(load_temporal_relations().index) == {
        *("employer", "position_held", "member_of_sports_team", "head_of_government"),
    }


def test_relations_of_your_own(load):
    own = {"P26": ("spouse", "{subject} is married to _X_.")}
    rows = [row("Cleo is married to _X_.", y, "Tony", relation="P26") for y in range(2011, 2015)]
    facts = load([*EDGES, *rows], relations=own)
    assert facts["fact_id"].tolist() == ["spouse/cleo/tony"]


def test_aliases_and_ids(load):
    listed = {"name": ["Reds FC", "the Reds"], "original_name": ["Reds"], "wikidata_id": "Q5"}
    renamed = {"name": "New Reds", "wikidata_id": "Q5"}
    rows = [
        row("Ann plays for _X_.", y, renamed if y == 2014 else listed) for y in range(2011, 2015)
    ]
    facts = load(EDGES + rows)
    assert facts.loc[0, "object"] == "Reds"
    assert facts.loc[0, "aliases"] == ["Reds FC", "the Reds"]
    assert periods(facts) == [("Reds", "2011", "2014")]  # one id, though the name changes
    plain = [row("Ann plays for _X_.", y, {"name": "Reds"}) for y in range(2011, 2015)]
    assert periods(load(EDGES + plain)) == [("Reds", "2011", "2014")]
    single = [r | {"answer": r["answer"][0]} for r in plain]
    assert periods(load(EDGES + single)) == [("Reds", "2011", "2014")]


def test_a_folder_is_read_as_one(tmp_path):
    for name, rows in (
        ("train.json", EDGES),
        ("test.jsonl", plays(dict.fromkeys(range(2011, 2014), "A"))),
    ):
        text = "\n".join(json.dumps(row) for row in rows)
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "README.md").write_text("not data")
    facts = load_templama(tmp_path)
    assert periods(facts) == [("A", "2011", "2013")]
    assert facts.attrs["years"] == (2010, 2020)


GOOD = json.dumps(EDGES[0])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "{",
            r"line 2, column 2: not JSON \(Expecting .*; fetch the file anew, or mend the line\.$",
        ),
        ("[1]", r"line 2: no JSON object; write {\.\.\.} in each line\.$"),
        ("{}", r"line 2: the row has no 'query'; it needs query, answer, date, relation\.$"),
        (json.dumps({"query": "", "answer": [], "date": ""}), r"line 2: the row has no 'relation'"),
        (
            GOOD.replace("2010", "May"),
            r"line 2: the date 'May' is no year; write one such as 2010\.$",
        ),
        (
            GOOD.replace("P54", "P999"),
            r"line 2: the relation 'P999' has no wording; pass relations={",
        ),
        (GOOD.replace("plays", "runs"), r"line 2: the query 'Bob runs for _X_.' does not read"),
        (
            GOOD.replace('"name"', '"nom"'),
            r"line 2: an answer has no name; mend or remove the line",
        ),
        (GOOD.replace('"answer": [{', '"answer": ["Z", {'), r"line 2: an answer has no name"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{GOOD}\n{line}\n", encoding="utf-8")
    with pytest.raises(FactsError, match=message):
        load_templama(path)


def test_bad_files_are_named(tmp_path):
    with pytest.raises(FactsError, match=r"nowhere cannot be read .*check the path"):
        load_templama(tmp_path / "nowhere")
    with pytest.raises(FactsError, match=r"has no rows; give a file of TempLAMA's JSON lines"):
        load_templama(tmp_path)
    (tmp_path / "latin.json").write_bytes(GOOD.replace("Bob", "Zo\xeb").encode("latin-1"))
    with pytest.raises(FactsError, match=r"latin\.json, line 1: the text is not UTF-8; fetch"):
        load_templama(tmp_path)
