"""What a notebook of part 3 starts with, from the committed records."""

import numpy as np
import pytest

from factrobust import wording

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"
ENCODER = {"sentence_encoder": "all-MiniLM-L6-v2"}
EXPOSURES = [0, 8, 16, 32, 64]


def test_a_row_of_predictors_for_each_model_and_question(notebook):
    how = {"data": "embedded", "n_facts": 32, "n_samples": 10, "max_new_tokens": 20}
    study = wording.Study(**notebook(n_boot=20, **how, **ENCODER))
    assert len(study.marked) == 2 * len(study.questions)
    assert len(study.answer_sets) == len(study.sample_sets) == 64
    table = study.predictors
    assert table["group_id"].nunique() == 32
    assert table[["scons", "scons_bare", "cert"]].stack().between(0, 1).all()
    sums = [sum(tokens) if tokens else np.nan for tokens in table["logprobs"]]
    assert table["logprob_sum"].tolist() == pytest.approx(sums, nan_ok=True)
    key = ["model", "group_id"]
    for name, sets in (("scons_bare", study.bare_sets), ("cert", study.sample_sets)):
        alike = sets.set_index(key)["int_sim"].clip(0, 1)
        assert (table.set_index(key)[name] - alike).abs().max() == 0
    assert study.formats == {GEMMA: "question-answer", SMOLLM: "chat"}
    assert set(study.responses["prompt_format"]) == {"question-answer", "chat"}
    assert study.about.models == [*study.models, study.encoder]
    assert study.means(study.originals, ["model"], "scons")["relations"].tolist() == [
        16,
        16,
    ]


def test_facts_of_the_exposures_that_are_named(notebook):
    how = {
        "models": [],
        "data": "world",
        "n_facts": 2000,
        "exposures": [0, 64],
    }
    study = wording.Study(**notebook(**how, **ENCODER))
    assert set(study.questions["log_popularity"].round(6)) == {0.0, 4.174387}  # ln 1, ln 65
    assert study.questions["group_id"].nunique() == 2 * 130
    assert study.responses.empty  # without models only the questions are there


def test_the_variants_that_are_named(notebook):
    how = {
        "models": ["smollm2-taught"],
        "data": "town",
        "n_facts": 780,
        "max_new_tokens": 5,
    }
    asked = notebook(**how, **ENCODER, exposures=EXPOSURES)
    study = wording.Study(
        **asked,
        prompt_format="question-answer",
        variants=[8, 9],
    )
    assert study.marked["variant"].value_counts().to_dict() == {
        8: 130,
        9: 130,
    }
