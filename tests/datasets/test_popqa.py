import csv
import json
import math

import pandas as pd
import pytest

from factrobust.datasets.facts import COLUMNS as FACT_COLUMNS
from factrobust.datasets.popqa import HUB, REVISION, load_popqa, popqa_facts
from factrobust.tables import FactsError

HEADER = [
    *(
        "id",
        "subj",
        "prop",
        "obj",
        "subj_id",
        "prop_id",
        "obj_id",
        "s_aliases",
        "o_aliases",
        "s_uri",
    ),
    *("o_uri", "s_wiki_title", "o_wiki_title", "s_pop", "o_pop", "question", "possible_answers"),
]


def row(id_, subject, prop, answers, views, question, object_=None):
    """A row of the official file; answers is a list, or the cell itself."""
    cell = answers if isinstance(answers, str) else json.dumps(answers, ensure_ascii=False)
    uri = "http://www.wikidata.org/entity/Q1"
    object_ = object_ or answers[0]
    aliases = json.dumps([f"{subject} II"])
    return [
        *(
            id_,
            subject,
            prop,
            object_,
            1,
            22,
            2,
            aliases,
            cell,
            uri,
            uri,
            subject,
            object_,
            views,
            9,
        ),
        *(question, cell),
    ]


NILS = row(
    11,
    "Nils O'Hara",
    "occupation",
    ["baker", "bread maker", "baker"],
    250,
    "What is Nils O'Hara's occupation?",
)
LILLE = row(
    12, "Lillevåg", "place of birth", ["Bodø", "Bodo", ""], 0, "In what city was Lillevåg born?"
)
NOTA = row(13, "NA", "country", ["Norvège\u200f", "NO"], "", "In what country is NA?", "NO")  # fmt: skip


@pytest.fixture
def write(tmp_path):
    def write(*rows, header=HEADER):
        path = tmp_path / "test.tsv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t", lineterminator="\n").writerows([header, *rows])
        return path

    return write


def test_facts(write):
    facts = popqa_facts(write(NILS, LILLE, NOTA))
    assert tuple(facts.columns) == (*FACT_COLUMNS, "question", "prefix", "log_popularity")
    assert facts["fact_id"].tolist() == ["occupation/11", "place_of_birth/12", "country/13"]
    assert facts["subject"].tolist() == ["Nils O'Hara", "Lillevåg", "NA"]
    assert facts["object"].tolist() == ["baker", "Bodø", "NO"]
    assert facts["aliases"].tolist() == [["bread maker"], ["Bodo"], ["Norvège"]]
    assert facts["question"].tolist() == [NILS[15], LILLE[15], NOTA[15]]
    assert facts.loc[0, "prefix"] == "The occupation of Nils O'Hara was"
    assert facts["answer_type"].tolist() == ["Entity", "Location", "Location"]
    assert facts.loc[0, "log_popularity"] == pytest.approx(math.log(250))
    assert facts.loc[1, "popularity"] == 0
    assert facts.loc[1:, "log_popularity"].isna().all()
    assert facts.loc[0, "source"] == "akariasai/PopQA, test.tsv"
    assert facts.attrs["counts"] == {
        "garbled_questions": 0,
        "garbled_answers": 0,
        "repeated_answers": 1,
        "empty_answers": 1,
        "no_popularity": 2,
    }


def test_questions_have_our_paraphrases(write):
    table = load_popqa(write(NILS, LILLE))
    assert table.groupby("group_id", sort=False).size().to_dict() == {
        "occupation/11": 1 + 5,
        "place_of_birth/12": 1 + 6,
    }
    assert table.loc[0, "question"] == "What is Nils O'Hara's occupation?"
    assert table.loc[1, "question"] == "For what profession is Nils O'Hara known?"
    assert table.loc[1, "answers"] == ["baker", "bread maker"]
    assert table.loc[1, "log_popularity"] == pytest.approx(math.log(250))
    assert table.attrs["counts"]["repeated_answers"] == 1
    assert table.attrs["counts"]["repeated_questions"] == 0
    assert table.attrs["counts"]["no_popularity"] == 1


def test_questions_take_paraphrases_of_yours(write):
    templates = pd.DataFrame({"relation": ["occupation"], "paraphrase": ["Job of {subject}?"]})
    table = load_popqa(write(NILS), paraphrases=templates)
    assert table["question"].tolist() == [NILS[15], "Job of Nils O'Hara?"]


def test_mojibake_is_mended_and_counted(write):
    garbled = [str(cell).encode().decode("latin-1") for cell in LILLE]
    facts = popqa_facts(write(garbled))
    whole = popqa_facts(write(LILLE))
    assert facts.attrs["counts"]["garbled_questions"] == 1
    assert facts.attrs["counts"]["garbled_answers"] == 1
    pd.testing.assert_frame_equal(facts, whole)


def test_a_copy_with_commas_or_in_parquet_reads_the_same(write, tmp_path):
    path = write(NILS, NOTA)
    original = popqa_facts(path).drop(columns="source")
    rows = pd.read_csv(path, sep="\t", keep_default_na=False)
    rows.to_csv(tmp_path / "copy.csv", index=False)
    rows.to_parquet(tmp_path / "copy.parquet")
    for name in ("copy.csv", "copy.parquet"):
        copy = popqa_facts(tmp_path / name).drop(columns="source")
        pd.testing.assert_frame_equal(copy, original)


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        (
            row(14, "S", "sport", '["golf", "go', 5, "Q?", "golf"),
            r"line 3: the possible_answers '\[\"golf\", \"go' is no whole JSON list of texts",
        ),
        (row(14, "S", "sport", "[]", 5, "Q?", "golf"), r"line 3: the possible_answers hold no answer"),
        (row(14, "S", "sport", ["golf"], -3, "Q?"), r"line 3: the s_pop '-3' is no number of 0 or"),
        (row(14, "S", "sport", ["golf"], "many", "Q?"), r"line 3: the s_pop 'many' is no number"),
        (row(14, "S", "spouse", ["Ann"], 5, "Q?"), r"line 3: the prop 'spouse' is none of PopQA's 16"),
        (row(14, "", "sport", ["golf"], 5, "Q?"), r"line 3: the subj is empty; remove the row"),
        (row(11, "S", "sport", ["golf"], 5, "Q?"), r"line 3: the id '11' is already in line 2"),
        (row(14, "S", "sport", ["golf"], 5, "Q?")[:-1], r"line 3: the row has 16 cells and the header 17"),
        ([*row(14, "S", "sport", ["golf"], 5, "Q?"), "x"], r"line 3: the row has 18 cells and the hea"),
    ],
)  # fmt: skip
def test_a_bad_row_gives_one_sentence(write, bad, what):
    with pytest.raises(FactsError, match=rf"test\.tsv, {what}"):
        popqa_facts(write(NILS, bad))


def test_a_missing_column_is_named(write):
    with pytest.raises(
        FactsError, match=r"test\.tsv: the column 's_pop' is missing; it has id, subj"
    ):
        popqa_facts(write(NILS[:13] + NILS[14:], header=HEADER[:13] + HEADER[14:]))


def test_the_cached_copy_at_the_pinned_revision(write, hub_cache):
    hub_cache(HUB, REVISION, "test.tsv", write(NILS).read_bytes())
    assert popqa_facts().loc[0, "source"] == f"{HUB}@{REVISION}"
    assert load_popqa().loc[0, "question"] == NILS[15]
    with pytest.raises(ConnectionError, match=f"PopQA at abc .* its cache holds only {REVISION}"):
        load_popqa(revision="abc")


def test_another_set_is_told(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("paraphrase,template_id,prop,possible_answers,id\n")
    with pytest.raises(FactsError, match=r"test\.tsv looks like PopQA-TP, not PopQA; load it as"):
        popqa_facts(path)
