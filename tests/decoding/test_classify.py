"""The question-type classifier, really fine-tuned on a few questions."""

from typing import Any

import pandas as pd
import pytest

from factrobust.datasets.facts import load_question_types
from factrobust.datasets.published import load_published
from factrobust.decoding.classify import type_questions, with_types
from factrobust.models.records import Records, RecordsError
from factrobust.paths import DATA
from factrobust.tables import read_csv

# A higher rate than the paper's: 15 steps in place of its thousand.
FAST: dict[str, Any] = {"learning_rate": 3e-4, "batch_size": 8, "epochs": 3}
TEST = load_question_types("test")
TRAIN = load_question_types("train").groupby("answer_type").head(10)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("records") / "records.sqlite"
    type_questions(Records(path), TRAIN, TEST["question"].tolist(), **FAST)
    return path


def test_learns_types_from_forty_questions(store):
    typed = type_questions(Records(store, strict=True), TRAIN, TEST["question"].tolist(), **FAST)
    right = typed["answer_type"] == TEST["answer_type"]
    assert right.mean() > 0.75  # the largest type's share is 0.25
    assert typed["probability"].between(0.25, 1).all()
    # Surer where it is right: the probability means something.
    assert typed["probability"][right].mean() > typed["probability"][~right].mean()


def test_only_empty_types_are_filled(store):
    questions = TEST["question"].tolist()[:3]
    given = {"question": questions, "answer_type": ["", "Numerical", ""]}
    facts = pd.DataFrame(given, index=[7, 8, 9])
    expected = type_questions(Records(store), TRAIN, questions, **FAST)["answer_type"].tolist()
    typed = with_types(Records(store, strict=True), facts, TRAIN, **FAST)
    assert typed["answer_type"].tolist() == [expected[0], "Numerical", expected[2]]
    assert "" not in expected
    assert typed[["question"]].equals(facts[["question"]])
    assert facts["answer_type"].tolist() == ["", "Numerical", ""]  # not written into


def test_records_are_of_this_training_only(store):
    records = Records(store, strict=True)
    question = TEST["question"].tolist()[:1]
    assert len(type_questions(records, TRAIN, question * 2, **FAST)) == 2
    for train, change in ((TRAIN, {"epochs": 4}), (TRAIN, {"seed": 1}), (TRAIN.iloc[:-1], {})):
        with pytest.raises(RecordsError, match="classify"):
            type_questions(records, train, question, **FAST | change)


def test_a_run_on_trec_stands_beside_the_papers():
    trec = read_csv(DATA / "benchmarks" / "1-decoding-trec.csv").set_index("test")
    paper = load_published("1-decoding-text").set_index("quantity")["value"]["classifier_accuracy"]
    assert trec.loc["TREC, DistilBERT (the paper)", "correct"] == paper * 500
    assert (trec["n"] == 500).all()
    assert trec["correct"].is_monotonic_increasing
