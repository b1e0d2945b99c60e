"""The question-type classifier, really fine-tuned on a few questions."""

from functools import partial

import pandas as pd
import pytest

from factrobust.datasets.facts import load_question_types
from factrobust.datasets.published import load_published
from factrobust.decoding import classify
from factrobust.models.records import Records, RecordsError
from factrobust.paths import DATA
from factrobust.tables import read_csv

# A higher rate than the paper's: 15 steps in place of its thousand.
FAST = {"learning_rate": 3e-4, "batch_size": 8, "epochs": 3}
type_questions = partial(classify.type_questions, **FAST)
TEST = load_question_types("test")
QUESTIONS = TEST["question"].tolist()
TRAIN = load_question_types("train").groupby("answer_type").head(10)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The records of a training, which can only be replayed, and the types that it found."""
    path = tmp_path_factory.mktemp("records") / "records.sqlite"
    types = type_questions(Records(path), TRAIN, QUESTIONS)
    return Records(path, strict=True), types


def test_learns_types_from_forty_questions(trained):
    records, types = trained
    assert type_questions(records, TRAIN, QUESTIONS).equals(types)
    right = types["answer_type"] == TEST["answer_type"]
    assert right.mean() > 0.75  # the largest type's share is 0.25
    assert types["probability"].between(0.25, 1).all()
    # Surer where it is right: the probability means something.
    sure = types["probability"].groupby(right).mean()
    assert sure[True] > sure[False]


def test_only_empty_types_are_filled(trained):
    records, types = trained
    given = {"question": QUESTIONS[:3], "answer_type": ["", "Numerical", ""]}
    facts = pd.DataFrame(given, index=[7, 8, 9])
    typed = classify.with_types(records, facts, TRAIN, **FAST)
    first, _, third = types["answer_type"][:3]
    assert typed["answer_type"].tolist() == [first, "Numerical", third]
    assert typed["question"].equals(facts["question"])
    assert facts["answer_type"].tolist() == ["", "Numerical", ""]  # not written into


def test_records_are_of_this_training_only(trained):
    records, _ = trained
    assert len(type_questions(records, TRAIN, QUESTIONS[:1] * 2)) == 2
    for train, changed in ((TRAIN, {"epochs": 4}), (TRAIN, {"seed": 1}), (TRAIN[:-1], {})):
        with pytest.raises(RecordsError, match="classify"):
            type_questions(records, train, QUESTIONS[:1], **changed)


def test_a_run_on_trec_stands_beside_the_papers():
    trec = read_csv(DATA / "benchmarks" / "1-decoding-trec.csv").set_index("test")
    paper = load_published("1-decoding-text").set_index("quantity")["value"]
    right = trec["correct"]
    assert right["TREC, DistilBERT (the paper)"] == paper["classifier_accuracy"] * 500
    assert trec["n"].eq(500).all()
    assert right.is_monotonic_increasing
