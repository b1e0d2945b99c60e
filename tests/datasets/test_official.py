"""The papers' own sets: PopQA, PopQA-TP, TimeStress and TREC, in files of their formats."""

import csv
import json
import math
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets import official
from factrobust.datasets.closed_book import read_json
from factrobust.datasets.official import SETS, fetch, load_trec, read_rows
from factrobust.paths import files_read
from factrobust.tables import FactsError
from factrobust.temporal import facts as dated
from factrobust.wording import facts as wordings

load = partial(official.load_official, loaders=wordings.LOADERS | dated.LOADERS | official.LOADERS)
FILES = Path(__file__).parent / "data"  # of the official names and formats, written for this

# ---- files of a set: found on the hub, in its cache or at a path, and read -------------------------

COMMIT = "0" * 40
OTHER = "1" * 40
FRAME = pd.DataFrame({"id": [1]})
CHECKS = {"text": None, "id": None}


def test_offline_a_branch_is_the_commit_that_it_was(hub_cache):
    file = hub_cache("some/set", COMMIT, "rows.parquet", FRAME, ref="main")
    hub_cache("some/set", OTHER, "rows.parquet", FRAME)
    for revision in ("main", COMMIT):
        assert fetch("some/set", revision, "*.parquet") == ([file], COMMIT)
    with pytest.raises(ConnectionError, match=r"at 1111112 from the hub .*: go online once, or"):
        fetch("some/set", "1111112", "*.parquet")


def test_a_file_in_parts_is_read_whole_or_not_at_all(hub_cache):
    second = hub_cache("some/set", COMMIT, "a/train-00001-of-00002.parquet", FRAME)
    with pytest.raises(ConnectionError, match=r"has all of a/train-\*\.parquet of some/set at 0"):
        fetch("some/set", COMMIT, "a/train-*.parquet")
    first = hub_cache("some/set", COMMIT, "a/train-00000-of-00002.parquet", FRAME)
    assert fetch("some/set", COMMIT, "a/train-*.parquet") == ([first, second], COMMIT)


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_rows_are_read_and_placed(tmp_path, delimiter):
    path = tmp_path / ("rows.csv" if delimiter == "," else "rows.tsv")
    lines = ["id,text,note", '1,"one\nmore",x', "2,NA,", "", ""]
    path.write_bytes("\r\n".join(lines).replace(",", delimiter).encode("utf-8-sig"))
    rows = read_rows(path, CHECKS)
    assert rows.index.name == "line"
    assert rows.to_dict("index") == {
        2: {"text": "one\nmore", "id": "1"},
        4: {"text": "NA", "id": "2"},  # a text, not a missing value
    }


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.json", b'{"a": "\xe9"}', r"a\.json cannot be read as X \(UnicodeDecodeError"),
        ("a.json", b'{"a": "cut', r"\(JSONDecodeError: Unterminated string .*line 1 column 7"),
        ("a.json", b"[]", r"\(IndexError: .*\); give the set's own file, with answers, unpacked"),
        ("a.json", None, r"\(FileNotFoundError"),
        ("a.parquet", b"PAR1 and no more", r"\(ArrowInvalid"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, name, content, sentence):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FactsError, match=sentence), official.reading(path, "X"):
        read_json(path)[0]


HEADER = [
    *("id", "subj", "prop", "obj", "subj_id", "prop_id", "obj_id", "s_aliases", "o_aliases"),
    *("s_uri", "o_uri", "s_wiki_title", "o_wiki_title", "s_pop", "o_pop"),
    *("question", "possible_answers"),
]


def popqa_row(id_, subject, prop, answers, views, question):
    """A row of the official file, without what is not read; the first answer is its object."""
    row = dict.fromkeys(HEADER, "x") | {
        "id": id_,
        "subj": subject,
        "prop": prop,
        "s_pop": views,
    }
    cell = json.dumps(answers, ensure_ascii=False)
    row |= {"obj": answers[0], "question": question, "possible_answers": cell}
    return [*row.values()]


NILS = popqa_row(
    11, "Nils O'Hara", "occupation", ["baker", "bread maker", "baker"], 250, "What did Nils do?"
)
LILLE = popqa_row(12, "Lillevåg", "place of birth", ["Bodø", "Bodo", ""], 0, "Where was L born?")
NOTA = popqa_row(13, "NA", "country", ["NO", "Norvège\u200f", "NO"], "", "In what country is NA?")


@pytest.fixture
def write(tmp_path):
    def write(name, header, *rows):
        path = tmp_path / name
        with path.open("w", encoding="utf-8", newline="") as file:
            delimiter = "\t" if path.suffix == ".tsv" else ","
            csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
        return path

    return write


def test_popqa(write, tmp_path):
    path = write("test.tsv", HEADER, NILS, LILLE, NOTA)
    facts, counts, _ = load("popqa", path)
    assert tuple(facts.columns) == (*schemas.AskedFacts.columns, "log_popularity")
    columns = ["fact_id", "subject", "object", "aliases", "answer_type", "question", "popularity"]
    assert facts[columns].fillna(-1).to_numpy().tolist() == [
        ["occupation/11", "Nils O'Hara", "baker", ["bread maker"], "Entity", NILS[15], 250],
        ["place_of_birth/12", "Lillevåg", "Bodø", ["Bodo"], "Location", LILLE[15], 0],
        ["country/13", "NA", "NO", ["Norvège"], "Location", NOTA[15], -1],
    ]
    assert facts.loc[0, "prefix"] == "The occupation of Nils O'Hara was"
    assert facts["log_popularity"].fillna(-1).tolist() == pytest.approx([math.log(250), -1, -1])
    assert facts.loc[0, "source"] == "akariasai/PopQA, test.tsv"
    assert counts == {"no_popularity": 2}
    pd.read_csv(path, sep="\t", keep_default_na=False).to_parquet(tmp_path / "copy.parquet")
    for copy in (write("copy.csv", HEADER, NILS, LILLE, NOTA), tmp_path / "copy.parquet"):
        same = load("popqa", copy).table
        pd.testing.assert_frame_equal(same.assign(source=""), facts.assign(source=""))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"possible_answers": '["golf", "go'}, r" .* popqa \(JSONDecodeError: Unterminated string"),
        ({"s_pop": "many"}, r" cannot be read as popqa \(ValueError: .* string .many. at"),
        ({"prop": "spouse"}, r", line 3: the prop 'spouse' is none of PopQA's 16"),
        ({"subj": ""}, r", line 3: the subj cell is empty; remove the row"),
        ({"id": 11}, r", line 3: id '11' is already in line 2"),
    ],
)
def test_a_bad_row_of_popqa(write, change, what):
    bad = dict(zip(HEADER, popqa_row(14, "S", "sport", ["golf"], 5, "Q?"), strict=True)) | change
    with pytest.raises(FactsError, match=rf"test\.tsv{what}"):
        load("popqa", write("test.tsv", HEADER, NILS, [*bad.values()]))


TP_HEADER = ["paraphrase", "template_id", "prop", "possible_answers", "id"]
NAME = SETS["popqa_tp"].files
BODO = json.dumps(["Norge", "Norvège", "Norge"], ensure_ascii=False)
TP_ROWS = [
    ["In what country is Bodø?", 0, "country", BODO, 21],
    ["What country is Bodø in?", 1, "country", BODO, 21],
    ["In what country is Bodø?", 2, "country", BODO, 21],  # the original again
    ["Where was Ann born?", 1, "place of birth", '["Paris"]', 22],
    ["In what city was Ann born?", 0, "place of birth", '["Paris"]', 22],
]
BESIDE = [
    popqa_row(21, "Bodø", "country", ["Norge"], 100, "In what country is Bodø?"),
    popqa_row(22, "Ann", "place of birth", ["Paris"], 0, "In what city was Ann born?"),
]


def test_popqa_tp_with_popqa_beside_it(write):
    beside = write("popQA.tsv", HEADER, *BESIDE)
    path = write(NAME, TP_HEADER, *TP_ROWS)
    table, counts, _ = load("popqa_tp", path)
    schemas.Questions.validate(table)
    assert table[["question_id", "question", "answers", "popularity"]].to_numpy().tolist() == [
        ["country/21#0", TP_ROWS[0][0], ["Norge", "Norvège"], 100],
        ["country/21#1", TP_ROWS[1][0], ["Norge", "Norvège"], 100],
        ["place_of_birth/22#0", TP_ROWS[4][0], ["Paris"], 0],
        ["place_of_birth/22#1", TP_ROWS[3][0], ["Paris"], 0],
    ]
    assert table["prefix"].tolist()[1:3] == ["Bodø is a city in", "Ann was born in the city of"]
    logs = [math.log(100)] * 2 + [math.nan] * 2
    assert table["log_popularity"].tolist() == pytest.approx(logs, nan_ok=True)
    expected = {"not_in_facts": 0, "garbled_questions": 0, "repeated_questions": 1}
    assert counts == expected | {"no_popularity": 1}
    assert {path, beside} <= dict(files_read).keys()
    garbled = [[str(cell).encode().decode("mac_roman") for cell in row] for row in TP_ROWS]
    again, counts, _ = load("popqa_tp", write(NAME, TP_HEADER, *garbled))
    assert counts["garbled_questions"] == 3
    pd.testing.assert_frame_equal(again, table)


@pytest.mark.parametrize(
    ("at", "new", "what"),
    [
        ((1, 3), '["Norge"]', r"line 3: the possible_answers .* differs from that of the first"),
        ((1, 1), 2, r"line 4: prop 'country', id '21', template_id '2' is already in line 3"),
    ],
)
def test_a_bad_row_of_popqa_tp(write, at, new, what):
    rows = [list(row) for row in TP_ROWS]
    rows[at[0]][at[1]] = new
    with pytest.raises(FactsError, match=rf"paraphrases\.csv, {what}"):
        load("popqa_tp", write(NAME, TP_HEADER, *rows))


def test_the_hubs_popqa_tp_takes_the_hubs_popqa(write, hub_cache):
    commit = "f960401" + 33 * "0"
    hub_cache("ibm-research/popqa-tp", 40 * "1", NAME, b"another", ref="main")  # what main is now
    content = write(NAME, TP_HEADER, *TP_ROWS).read_bytes()
    hub_cache("ibm-research/popqa-tp", commit, NAME, content, ref="f960401")  # as it was fetched
    with pytest.raises(ConnectionError, match="akariasai/PopQA"):
        load("popqa_tp")
    popqa = write("popQA.tsv", HEADER, *BESIDE).read_bytes()
    hub_cache(*SETS["popqa"].hub.split("@"), "test.tsv", popqa)
    table, _, _ = load("popqa_tp")
    assert table["popularity"].tolist() == [100, 100, 0, 0]
    assert load("popqa").table["source"].unique().tolist() == [SETS["popqa"].hub]


@pytest.mark.parametrize(
    ("garbled", "whole"),
    [
        ("Leona Deti√®ge", "Leona Detiège"),
        ("√ûorsteinn Bachmann", "Þorsteinn Bachmann"),
        ("Ivica Brziƒá", "Ivica Brzić"),
        ("Leipzig‚ÄìDresden", "Leipzig–Dresden"),
        ("\uf8ffüèà", "🏈"),
        ("–ú–æ—Å–∫–≤–∞", "Москва"),
        ("Bra»ôov", "Brașov"),
        ("Hu·∫ø", "Huế"),
        *((right, right) for right in ("Beyoncé", "L’État", "«États»", "São Paulo", "CAFÉ™", "√2")),
        *((right, right) for right in ("Paris–Évreux", "Århus", "北京", "Deti\ufffdge", "Oslo")),
    ],
)
def test_garbled_letters_are_mended_and_right_ones_stay(garbled, whole):
    assert wordings._mended(garbled) == whole


def test_trec():
    table = load_trec(FILES / "train_5500.label")
    assert table.to_numpy().tolist() == [
        ["When did the lighthouse of Alexandria fall ?", "Numerical"],
        ["Who sang at the opening of the Café de Flore ?", "Human"],
        ["Which city has a sister city called Kyoto ?", "Location"],  # byte 0xF0 is a space
        ["What animal barks ?", "Entity"],
        ["What is a dhow ?", "Description"],
        ["What does NATO stand for ?", "Abbreviation"],
        ["Which band\x85 played at Live Aid ?", "Human"],  # 0x85 does not end a line
    ]


@pytest.mark.parametrize("line", ["", "ANIMAL:x What barks ?", "HUM:ind", "HUM Who ?"])
def test_a_malformed_line_of_trec(tmp_path, line):
    file = tmp_path / "train_5500.label"
    file.write_text(f"HUM:ind Who ?\n{line}\nLOC:city Where ?\n", encoding="latin-1")
    with pytest.raises(FactsError, match=r"train_5500\.label, line 2: .* is not as 'HUM:ind Who"):
        load_trec(file)


@pytest.mark.parametrize("name", SETS)
def test_a_file_of_another_set_is_told(name, tmp_path):
    odd = tmp_path / ("odd.csv" if name in ("popqa", "popqa_tp", "timestress") else "odd.json")
    odd.write_text('{"a": 1}')
    with pytest.raises(FactsError, match=r"odd\."):
        load(name, odd)
    with pytest.raises(FactsError, match=r"nowhere\.\w+ cannot be read"):
        load(name, odd.with_stem("nowhere"))
