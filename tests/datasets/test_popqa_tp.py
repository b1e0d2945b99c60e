import csv
import json
import math

import pandas as pd
import pytest

from factrobust.datasets.popqa_tp import HUB, load_popqa_tp
from factrobust.datasets.wordings import COLUMNS
from factrobust.tables import FactsError

HEADER = ["paraphrase", "template_id", "prop", "possible_answers", "id"]
BODO = json.dumps(["Norge", "Norvège", "Norge"], ensure_ascii=False)
ROWS = [
    ["In what country is Bodø?", 0, "country", BODO, 21],
    ["What country is Bodø in?", 1, "country", BODO, 21],
    ["In what country is Bodø?", 2, "country", BODO, 21],  # the original again
    ["Where was Ann born?", 1, "place of birth", '["Paris"]', 22],
    ["In what city was Ann born?", 0, "place of birth", '["Paris"]', 22],
]


@pytest.fixture
def write(tmp_path):
    def write(rows, *, garbled=False):
        if garbled:
            rows = [[str(cell).encode().decode("mac_roman") for cell in row] for row in rows]
        path = tmp_path / "popQA_template_paraphrases.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([HEADER, *rows])
        return path

    return write


FACTS = pd.DataFrame(
    {
        "fact_id": ["country/21", "place_of_birth/22"],
        "prefix": ["Bodø is a city in", "Ann was born in the city of"],
        "popularity": [100.0, 0.0],
        "log_popularity": [math.log(100), math.nan],
    }
)


def test_questions(write):
    table = load_popqa_tp(write(ROWS), facts=FACTS)
    assert tuple(table.columns) == COLUMNS
    assert table["question_id"].tolist() == [
        *("country/21#0", "country/21#1"),
        *("place_of_birth/22#0", "place_of_birth/22#1"),
    ]
    assert table["question"].tolist() == [ROWS[0][0], ROWS[1][0], ROWS[4][0], ROWS[3][0]]
    assert table["answers"].tolist() == [["Norge", "Norvège"]] * 2 + [["Paris"]] * 2
    assert table["prefix"].tolist()[1:3] == FACTS["prefix"].tolist()
    assert table["popularity"].tolist() == [100, 100, 0, 0]
    assert table["log_popularity"].isna().tolist() == [False, False, True, True]
    assert table.attrs["counts"] == {
        "garbled_questions": 0,
        "garbled_answers": 0,
        "repeated_answers": 1,
        "empty_answers": 0,
        "not_in_facts": 0,
        "repeated_questions": 1,
        "no_popularity": 1,
    }


def test_garbled_letters_are_mended(write):
    whole = load_popqa_tp(write(ROWS), facts=FACTS)
    table = load_popqa_tp(write(ROWS, garbled=True), facts=FACTS)
    assert table.attrs["counts"]["garbled_questions"] == 3
    assert table.attrs["counts"]["garbled_answers"] == 1
    pd.testing.assert_frame_equal(table, whole)


def test_as_published_keeps_garbled_and_repeated(write):
    table = load_popqa_tp(write(ROWS, garbled=True), facts=FACTS, as_published=True)
    assert table["question"].tolist()[:3] == [
        "In what country is Bod√∏?",
        "What country is Bod√∏ in?",
        "In what country is Bod√∏?",
    ]
    assert table.loc[0, "answers"] == ["Norge", "Norv√®ge"]
    assert table["variant"].tolist() == [0, 1, 2, 0, 1]
    mended = load_popqa_tp(write(ROWS, garbled=True), facts=FACTS)
    assert table.attrs == mended.attrs


def test_without_facts_nothing_is_known_of_subjects(write):
    table = load_popqa_tp(write(ROWS))
    assert table["prefix"].eq("").all()
    assert table[["popularity", "log_popularity"]].isna().all(axis=None)
    assert table.attrs["counts"]["no_popularity"] == 2


def test_facts_choose_the_groups(write):
    table = load_popqa_tp(write(ROWS), facts=FACTS[1:])
    assert table["group_id"].unique().tolist() == ["place_of_birth/22"]
    assert table.attrs["counts"]["not_in_facts"] == 1
    assert table.attrs["counts"]["repeated_answers"] == 0
    others = FACTS.assign(fact_id=["capital/kenya", "capital/china"])
    with pytest.raises(FactsError, match=r"has none of the facts, such as 'capital/kenya'; pass"):
        load_popqa_tp(write(ROWS), facts=others)


def test_a_parquet_copy_reads_the_same(write, tmp_path):
    path = write(ROWS, garbled=True)
    pd.read_csv(path).to_parquet(tmp_path / "0000.parquet")
    table = load_popqa_tp(tmp_path / "0000.parquet", facts=FACTS)
    pd.testing.assert_frame_equal(table, load_popqa_tp(path, facts=FACTS))


@pytest.mark.parametrize(
    ("at", "new", "what"),
    [
        (
            (1, 3),
            '["Norge", "Nor',
            r"line 3: the possible_answers '\[\"Norge\", \"Nor' is no whole",
        ),
        (
            (1, 3),
            '["Norge"]',
            r"line 3: the possible_answers differ from those of the first row with",
        ),
        ((1, 1), "one", r"line 3: the template_id 'one' is no number from 0 up"),
        ((1, 1), 2, r"line 4: the id '21' already has a question with the template_id '2'"),
        ((4, 1), 7, r"line 5: the id '22' has no original question \(template_id 0\)"),
        ((1, 2), "county", r"line 3: the prop 'county' is none of PopQA's 16"),
        ((1, 0), " ", r"line 3: the paraphrase is empty"),
    ],
)
def test_a_bad_row_gives_one_sentence(write, at, new, what):
    rows = [list(row) for row in ROWS]
    rows[at[0]][at[1]] = new
    with pytest.raises(FactsError, match=rf"paraphrases\.csv, {what}"):
        load_popqa_tp(write(rows))


def test_a_group_of_one_is_refused(write):
    with pytest.raises(
        FactsError, match=r"1 of 2 groups have one question only, 'country/21' first"
    ):
        load_popqa_tp(write([ROWS[0], ROWS[2], *ROWS[3:]]))


def test_wrong_number_of_columns(write):
    with pytest.raises(FactsError, match=r"line 3: the row has 4 cells and the header 5"):
        load_popqa_tp(write([ROWS[0], ROWS[1][:4]]))


def test_the_cached_copy(write, hub_cache):
    commit = "f960401" + 33 * "0"
    file = write(ROWS)
    assert load_popqa_tp(file).attrs["source"] == f"{HUB}, {file.name}"
    later = hub_cache(HUB, 40 * "1", "popQA_template_paraphrases.csv", b"another", ref="main")
    hub_cache(HUB, commit, later.name, file.read_bytes())
    table = load_popqa_tp()
    assert len(table) == 4
    assert table.attrs["source"] == f"{HUB}@{commit}"  # not what main is now
    later.unlink()
    later.parent.rmdir()
    with pytest.raises(
        ConnectionError, match=f"at v2 from the hub .* its cache holds only {commit}"
    ):
        load_popqa_tp(revision="v2")
