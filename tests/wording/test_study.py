"""What a notebook of part 3 starts with, from the committed records."""

import numpy as np
from numpy.testing import assert_allclose

from factrobust import wording

GEMMA = "gemma-3-270m"
SMOLLM = "smollm2-135m-instruct"


def test_a_row_of_predictors_for_each_model_and_question(notebook):
    asked = notebook(
        data="embedded",
        n_facts=32,
        n_samples=10,
        max_new_tokens=20,
        n_boot=20,
        sentence_encoder="all-MiniLM-L6-v2",
    )
    study = wording.Study(**asked)
    table = study.predictors.set_index(["model", "group_id"])
    assert len(table) == 64
    sums = [sum(tokens) if tokens else np.nan for tokens in table["logprobs"]]
    assert_allclose(table["logprob_sum"], sums)
    for name, sets in (("scons_bare", study.bare_sets), ("cert", study.sample_sets)):
        alike = sets.set_index(["model", "group_id"])["int_sim"].clip(0, 1)
        assert_allclose(table[name], alike[table.index], rtol=0)
    assert study.formats == {GEMMA: "question-answer", SMOLLM: "chat"}
    assert study.about.models == [*study.models, study.encoder]
