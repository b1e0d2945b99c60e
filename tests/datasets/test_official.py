"""The papers' own sets: PopQA, PopQA-TP, TimeStress and TREC, in files of their formats."""

import math
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from frames import assert_rows, frame

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


@pytest.mark.parametrize(("name", "delimiter"), [("rows.csv", ","), ("rows.tsv", "\t")])
def test_rows_are_read_and_placed(tmp_path, name, delimiter):
    path = tmp_path / name
    text = 'id,text,note\r\n1,"one\nmore",x\r\n2,NA,\r\n\r\n'
    path.write_bytes(text.replace(",", delimiter).encode("utf-8-sig"))
    rows = read_rows(path, {"text": None, "id": None})
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
        ("a.json", b"{}", r"\(KeyError: 0\)"),
        ("a.json", b"5", r"\(TypeError: "),
        ("a.parquet", b"PAR1 and no more", r"\(ArrowInvalid"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, name, content, sentence):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(FactsError, match=sentence), official.as_facts_errors(path, "X"):
        read_json(path)[0]


# Those of its 17 columns that are read, and one that is not.
POPQA = frame("""
    id  subj         prop            s_pop  question                obj    s_uri  possible_answers
    11  Nils O'Hara  occupation      250    What did Nils do?       baker  x      ["baker", "bread maker", "baker"]
    12  Lillevåg     place of birth  0      Where was L born?       Bodø   x      ["Bodø", "Bodo", ""]
    13  NA           country         NaN    In what country is NA?  NO     x      ["NO", "Norvège\u200f", "NO"]
""")


def write(path, table):
    table.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return path


def test_popqa(tmp_path):
    """log 250 is 5.521461."""
    facts, counts, _ = load("popqa", write(tmp_path / "test.tsv", POPQA))
    assert tuple(facts.columns) == (*schemas.AskedFacts.columns, "log_popularity")
    expected = """
        fact_id            subject      object  answer_type  popularity  log_popularity
        occupation/11      Nils O'Hara  baker   Entity       250         5.521460918
        place_of_birth/12  Lillevåg     Bodø    Location     0           NaN
        country/13         NA           NO      Location     NaN         NaN
    """
    assert_rows(facts, expected)
    assert facts["question"].equals(POPQA["question"])
    assert facts["aliases"].tolist() == [["bread maker"], ["Bodo"], ["Norvège"]]
    assert facts["prefix"][0] == "The occupation of Nils O'Hara was"
    assert facts["source"][0] == "akariasai/PopQA, test.tsv"
    assert counts == {"no_popularity": 2}
    parquet = tmp_path / "copy.parquet"
    POPQA.to_parquet(parquet)
    for copy in (write(tmp_path / "copy.csv", POPQA), parquet):
        same = load("popqa", copy).table
        pd.testing.assert_frame_equal(same.assign(source=""), facts.assign(source=""))


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("possible_answers", '["golf", "go', r" .* popqa \(JSONDecodeError: Unterminated string"),
        ("s_pop", "many", r" cannot be read as popqa \(ValueError: .* string .many. at"),
        ("prop", "spouse", r", line 3: the prop 'spouse' is none of PopQA's 16"),
        ("subj", "", r", line 3: the subj cell is empty; remove the row"),
        ("id", 11, r", line 3: id '11' is already in line 2"),
    ],
)
def test_a_bad_row_of_popqa(tmp_path, column, cell, fault):
    rows = POPQA.astype(object)
    rows.loc[1, column] = cell
    with pytest.raises(FactsError, match=rf"test\.tsv{fault}"):
        load("popqa", write(tmp_path / "test.tsv", rows))


NAME = SETS["popqa_tp"].files
# The third asks the original again.
TP = frame("""
    paraphrase                  template_id  prop            id  possible_answers
    In what country is Bodø?    0            country         21  ["Norge", "Norvège", "Norge"]
    What country is Bodø in?    1            country         21  ["Norge", "Norvège", "Norge"]
    In what country is Bodø?    2            country         21  ["Norge", "Norvège", "Norge"]
    Where was Ann born?         1            place of birth  22  ["Paris"]
    In what city was Ann born?  0            place of birth  22  ["Paris"]
""")
BESIDE = frame("""
    id  subj  prop            s_pop  question                    obj    possible_answers
    21  Bodø  country         100    In what country is Bodø?    Norge  ["Norge"]
    22  Ann   place of birth  0      In what city was Ann born?  Paris  ["Paris"]
""")


def test_popqa_tp_with_popqa_beside_it(tmp_path):
    beside = write(tmp_path / "popQA.tsv", BESIDE)
    path = write(tmp_path / NAME, TP)
    table, counts, _ = load("popqa_tp", path)
    schemas.Questions.validate(table)
    expected = """
        question_id          question                    popularity  log_popularity
        country/21#0         In what country is Bodø?    100         4.605170186
        country/21#1         What country is Bodø in?    100         4.605170186
        place_of_birth/22#0  In what city was Ann born?  0           NaN
        place_of_birth/22#1  Where was Ann born?         0           NaN
    """
    assert_rows(table, expected)
    assert math.log(100) == pytest.approx(4.605170186)
    assert table["answers"].tolist() == [["Norge", "Norvège"]] * 2 + [["Paris"]] * 2
    assert table["prefix"].tolist()[1:3] == ["Bodø is a city in", "Ann was born in the city of"]
    assert counts == {
        "not_in_facts": 0,
        "garbled_questions": 0,
        "repeated_questions": 1,
        "no_popularity": 1,
    }
    assert {path, beside} <= dict(files_read).keys()
    garbled = TP.map(lambda cell: str(cell).encode().decode("mac_roman"))
    again, counts, _ = load("popqa_tp", write(tmp_path / NAME, garbled))
    assert counts["garbled_questions"] == 3
    pd.testing.assert_frame_equal(again, table)


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("possible_answers", '["Norge"]', r"3: the possible_answers .* differs from that of the"),
        ("template_id", 2, r"4: prop 'country', id '21', template_id '2' is already in line 3"),
    ],
)
def test_a_bad_row_of_popqa_tp(tmp_path, column, cell, fault):
    rows = TP.copy()
    rows.loc[1, column] = cell
    with pytest.raises(FactsError, match=rf"paraphrases\.csv, line {fault}"):
        load("popqa_tp", write(tmp_path / NAME, rows))


def test_the_hubs_popqa_tp_takes_the_hubs_popqa(tmp_path, hub_cache):
    repo = "ibm-research/popqa-tp"
    content = write(tmp_path / NAME, TP).read_bytes()
    hub_cache(repo, OTHER, NAME, b"another", ref="main")  # what main is now
    hub_cache(repo, "f960401" + 33 * "0", NAME, content, ref="f960401")  # as it was fetched
    with pytest.raises(ConnectionError, match="akariasai/PopQA"):
        load("popqa_tp")
    popqa = write(tmp_path / "popQA.tsv", BESIDE).read_bytes()
    hub_cache(*SETS["popqa"].hub.split("@"), "test.tsv", popqa)
    assert load("popqa_tp").table["popularity"].tolist() == [100, 100, 0, 0]
    assert {*load("popqa").table["source"]} == {SETS["popqa"].hub}


GARBLED = frame("""
    garbled              whole
    Leona Deti√®ge       Leona Detiège
    √ûorsteinn Bachmann  Þorsteinn Bachmann
    Ivica Brziƒá         Ivica Brzić
    Leipzig‚ÄìDresden    Leipzig–Dresden
    \uf8ffüèà                 🏈
    –ú–æ—Å–∫–≤–∞         Москва
    Bra»ôov              Brașov
    Hu·∫ø                Huế
""")
RIGHT = "Beyoncé|L’État|«États»|São Paulo|CAFÉ™|√2|Paris–Évreux|Århus|北京|Deti\ufffdge|Oslo"


def test_garbled_letters_are_mended_and_right_ones_stay():
    assert GARBLED["garbled"].map(wordings._mended).tolist() == GARBLED["whole"].tolist()
    for right in RIGHT.split("|"):
        assert wordings._mended(right) == right


def test_trec():
    """Byte 0xF0 is a space; 0x85 does not end a line."""
    expected = """
        question                                        answer_type
        When did the lighthouse of Alexandria fall ?    Numerical
        Who sang at the opening of the Café de Flore ?  Human
        Which city has a sister city called Kyoto ?     Location
        What animal barks ?                             Entity
        What is a dhow ?                                Description
        What does NATO stand for ?                      Abbreviation
        Which band@ played at Live Aid ?                Human
    """
    table = load_trec(FILES / "train_5500.label")
    shown = table.replace("\x85", "@", regex=True)
    assert shown.values.tolist() == frame(expected).values.tolist()


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
