"""The names that a notebook's parameter `data` may hold."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets.facts import load_facts, load_question_types, questions
from factrobust.datasets.named import load_named, load_named_types
from factrobust.datasets.official import SETS
from factrobust.paths import ROOT
from factrobust.tables import FactsError
from factrobust.time import facts as temporal
from factrobust.time.dates import COLUMNS as DATES
from factrobust.time.dates import sample_dates, thinned
from factrobust.time.facts import load_named_temporal
from factrobust.wording import facts as wordings
from factrobust.wording.facts import load_named_questions

DATA = Path(__file__).parent / "data"
SQUAD = f"squad:{DATA / 'squad-dev.json'}"
TRIVIA = f"trivia_qa:{DATA / 'trivia_qa-unfiltered-dev.json'}"
HOTPOT = f"hotpot_qa:{DATA / 'hotpot_qa-dev.json'}"


def test_the_embedded_facts_are_those_of_load_facts() -> None:
    table, counts, _ = load_named(limit=50, seed=3)
    pd.testing.assert_frame_equal(table, questions(load_facts(limit=50, seed=3)))
    assert counts == {"embedded": {"long_answers": 0, "kept": 1740}}


def test_several_sets_over_which_a_limit_is_spread() -> None:
    table, counts, _ = load_named([SQUAD, TRIVIA, HOTPOT])
    assert tuple(table.columns) == tuple(schemas.AskedFacts.columns)
    assert table["domain"].tolist() == ["SQuAD"] * 2 + ["TriviaQA"] * 2 + ["HotpotQA"] * 3
    assert counts[TRIVIA]["questions"] == 3
    assert counts[TRIVIA]["long_answers"] == 1
    three = load_named([SQUAD, TRIVIA, HOTPOT], limit=3, seed=1).table
    assert three["domain"].tolist() == ["SQuAD", "TriviaQA", "HotpotQA"]


def test_a_csv_of_your_own_and_long_answers(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "subject,relation,object\nBhutan,capital,a town of no name\n"  # five words
        "Utopia,capital,a town of no name here\n"
    )
    table, counts, _ = load_named([str(path)])
    assert table["question"].tolist() == ["What is the capital of Bhutan?"]
    assert counts == {str(path): {"long_answers": 1, "kept": 1}}


def test_a_revision(hub_cache) -> None:
    row = {"id": "1", "title": "A", "question": "Q?", "answers": {"text": ["a"]}}
    hub_cache("rajpurkar/squad", "0" * 40, "plain_text/validation-0.parquet", pd.DataFrame([row]))
    table = load_named([f"squad@{'0' * 40}"]).table
    assert table["source"].tolist() == [f"rajpurkar/squad@{'0' * 40}"]
    with pytest.raises(ConnectionError, match=SETS["squad"].hub.replace("@", " at ")):
        load_named(["squad"])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["sqaud"], "no data set is called 'sqaud'; known are embedded, world, town, squad,"),
        (["popqa@"], "no data set is called 'popqa@'; known are"),
        (["facts.tsv"], r"no data set is called 'facts\.tsv'; known are embedded"),
        ([], "no data set is named; give embedded, an official"),
        ([SQUAD, f"squad:{DATA}/../data/squad-dev.json"], "two facts of squad:.* are called squad/a1"),
    ],
)  # fmt: skip
def test_names_that_are_not_known(names: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load_named(names)


def test_a_path_begins_in_the_repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    name = (DATA / "squad-dev.json").relative_to(ROOT)
    assert len(load_named([f"squad:{name}"]).table) == 2
    assert len(load_named_temporal("data/temporal_facts.csv").table) == 281


# ---- part 2 --------------------------------------------------------------------------------------

YEARS = {"n_correct": 2, "n_incorrect": 3}


@pytest.fixture
def reds(tmp_path: Path) -> Path:
    """A folder of TimeStress's form: Ann and Bob were Reds from 2000 to 2010."""
    labels = {y: "Correct" if y < 2010 else "Incorrect" for y in range(2001, 2021) if y != 2010}
    rows = [("Ann", None, "whose was Ann? Reds", "No context")]
    for who in ("Ann", "Bob"):
        rows += [(who, f"{y}", f"In {y}, whose was {who}? Reds", x) for y, x in labels.items()]
    table = pd.DataFrame(rows, columns=["SubjectLabel", "Time", "Statement", "IsCorrect"])
    table = table.assign(SubjectID=table["SubjectLabel"], RelationID="1", ObjectID="1", FactPop="1")
    table = table.assign(RelationLabel="member of", ObjectLabel="Reds")
    (tmp_path / "timestress").mkdir()
    path = tmp_path / "timestress" / "train.parquet"
    table.assign(StartDate="2000", EndDate="2010").to_parquet(path)
    return path.parent


def test_the_embedded_temporal_facts_are_those_of_their_loader() -> None:
    facts, counts, dates = load_named_temporal(limit=6, seed=2, **YEARS)
    own = temporal.sample(temporal.load_temporal_facts(), 6, seed=2)
    pd.testing.assert_frame_equal(facts, own)
    thin = thinned(sample_dates(own, seed=2), **YEARS).reset_index(drop=True)
    pd.testing.assert_frame_equal(dates, thin)
    assert counts == {}
    every, _, some = load_named_temporal(n_fine=6, seed=2, **YEARS)
    assert len(every) == 281
    fine = some["fact_id"].isin(own["fact_id"])
    pd.testing.assert_frame_equal(some[fine].reset_index(drop=True), dates)
    assert set(some.loc[~fine, "precision"]) == {"year"}


def test_timestress_brings_its_dates(reds: Path) -> None:
    facts, counts, dates = load_named_temporal(f"timestress:{reds}", sampling="published")
    assert facts["fact_id"].tolist() == ["member_of/ann/reds", "member_of/bob/reds"]
    assert facts["question"].tolist() == ["whose was Ann?", "whose was Bob?"]
    assert facts["prefix"].tolist() == ["", ""]
    assert tuple(dates.columns) == DATES
    assert len(dates) == 38
    assert counts == {"no context": 1, "discarded": 0, "before year 1": 0}


def test_the_papers_relations_of_timestress(reds: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = reds / "train.parquet"
    rows = pd.read_parquet(path)
    other = rows.assign(RelationLabel="spouse", RelationID="2")
    known = rows.assign(FactPop=np.where(rows["SubjectLabel"] == "Bob", "9", "1"))
    pd.concat([known, other]).to_parquet(path)
    assert len(load_named_temporal(f"timestress:{reds}").table) == 4
    both = load_named_temporal(f"timestress_paper:{reds}", sampling="published")
    assert both.table["fact_id"].tolist() == ["member_of/ann/reds", "member_of/bob/reds"]
    monkeypatch.setattr(temporal, "PAPER_FACTS", 1)
    one = load_named_temporal(f"timestress_paper:{reds}", sampling="published")
    assert one.table["fact_id"].tolist() == ["member_of/bob/reds"]  # the more popular one
    assert len(one.dates) == 19
    assert set(temporal.PAPER_RELATIONS) == set(temporal.load_temporal_relations().index)


def test_timestress_is_sampled_and_thinned(reds: Path) -> None:
    name = f"timestress:{reds}"
    facts, _, dates = load_named_temporal(name, sampling="published", limit=1, **YEARS)
    assert len(facts) == 1
    assert dates["fact_id"].unique().tolist() == facts["fact_id"].tolist()
    # The middles of 2 parts of 2001 to 2009, and of 3 parts of 2011 to 2020.
    assert dates["year"].tolist() == [2003, 2007, 2012, 2016, 2019]
    assert dates.index.tolist() == [0, 1, 2, 3, 4]
    # It has no date before 2001, so no side is balanced.
    assert load_named_temporal(name, limit=1, **YEARS).dates["year"].tolist() == [2003, 2007]


def test_temporal_facts_of_your_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("subject,relation,object,start,end\nAnn,employer,the Reds,2000,2010\n")
    facts, _, dates = load_named_temporal(str(path), **YEARS)
    assert facts["fact_id"].tolist() == ["employer/ann/reds"]
    assert dates["label"].value_counts()["correct"] == 6  # two years, at three precisions
    with pytest.raises(ValueError, match="'timestres'; known are emb"):
        load_named_temporal("timestres")


# ---- part 3 --------------------------------------------------------------------------------------


def test_questions_are_the_facts_with_paraphrases_or_your_own(tmp_path: Path) -> None:
    table, counts, _ = load_named_questions()
    templates = wordings.load_paraphrases()
    own = wordings.paraphrased(load_facts(relations=templates["relation"].unique()))
    pd.testing.assert_frame_equal(table, own.table)
    assert counts == own.counts
    path = tmp_path / "mine.csv"
    path.write_text("group_id,question,answers\na,Who?,Ann\na,Which person?,Ann\n")
    table = load_named_questions(str(path)).table
    assert table["relation"].tolist() == ["own", "own"]
    with pytest.raises(ValueError, match="'popqa'; known are"):
        load_named_questions("popqa")


def test_typed_questions_are_ours_or_trec() -> None:
    train, test = load_named_types()
    assert (len(train), len(test)) == (403, 100)
    pd.testing.assert_frame_equal(test, load_question_types("test"))
    train, test = load_named_types(f"trec:{DATA}")
    assert (len(train), test["answer_type"].tolist()) == (7, ["Location", "Numerical"])
    assert set(train["relation"]) == {""}  # none of the facts table's


@pytest.mark.parametrize("name", ["trec", "trec:", "terc:folder", "questions.csv"])
def test_typed_questions_that_are_not_known(name: str) -> None:
    with pytest.raises(ValueError, match=rf"no typed questions are called '{name}'; give embedded"):
        load_named_types(name)
    with pytest.raises(FactsError, match=r"train_5500\.label cannot be read as TREC"):
        load_named_types("trec:nowhere")
