"""What a notebook of part 3 starts with, from the committed records."""

import numpy as np
import pytest

from factrobust import wording

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"
WORDING = {"data": "embedded", "n_samples": 10, "max_new_tokens": 20}
WORDING |= {"sentence_encoder": "all-MiniLM-L6-v2"}


def test_wording_has_a_row_of_predictors_for_each_model_and_question(notebook):
    study = wording.Study(**notebook(n_facts=32, n_boot=20, **WORDING))
    assert study.questions["group_id"].nunique() == 32
    assert len(study.marked) == 2 * len(study.questions)
    assert len(study.answer_sets) == len(study.sample_sets) == 64
    table = study.predictors
    assert table[["scons", "scons_bare", "cert"]].stack().between(0, 1).all()
    for tokens, total in zip(table["logprobs"], table["logprob_sum"], strict=True):
        assert total == pytest.approx(sum(tokens)) if tokens else np.isnan(total)
    assert table["group_id"].nunique() == 32
    assert study.about.models == [*study.models, study.encoder]
    assert study.formats == {GEMMA: "question-answer", SMOLLM: "chat"}
    assert set(study.responses["prompt_format"]) == {"question-answer", "chat"}
    assert study.originals[["model", "group_id"]].equals(study.answer_sets[["model", "group_id"]])
    assert study.means(study.originals, ["model"], "scons")["relations"].tolist() == [16, 16]
    assert study.means(study.bare_sets, ["relation"], "int_sim")["n"].tolist() == [2] * 16


def test_wording_asks_about_facts_of_the_exposures_that_are_named(notebook):
    given = WORDING | {
        "models": [],
        "data": "world",
        "n_facts": 2000,
        "exposures": [0, 64],
    }
    study = wording.Study(**notebook(**given))
    assert set(study.questions["log_popularity"].round(6)) == {0.0, 4.174387}  # ln 1, ln 65
    assert study.questions["group_id"].nunique() == 2 * 130
    assert study.responses.empty  # without models only the questions are there


def test_wording_asks_the_variants_that_are_named(notebook):
    given = {
        "data": "town",
        "n_facts": 780,
        "max_new_tokens": 5,
        "exposures": [0, 8, 16, 32, 64],
    }
    given |= {"models": ["smollm2-taught"], "sentence_encoder": "all-MiniLM-L6-v2"}
    study = wording.Study(**notebook(**given), prompt_format="question-answer", variants=[8, 9])
    assert study.marked["variant"].value_counts().to_dict() == {8: 130, 9: 130}
