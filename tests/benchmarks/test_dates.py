"""The two ways of scoring dated questions agree on a toy model; nothing here is about time."""

import pandas as pd


def test_both_ways_score_alike_and_ours_keeps_fewer_logits(bench, toy_model):
    model = toy_model({" Kenya?": {" Kenyatta": 0.25, " Moi": 0.75}})
    asked = ["In 1970, who led Kenya?", "In 1990, who led Kenya?"]
    statements = pd.DataFrame({"question": asked, "prefix": "", "object": ["Kenyatta", "Moi"]})
    about = {"precision": "year", "date": "1970", "year": 1970, "alpha": 0.0, "years_off": 0.0}
    statements = statements.assign(fact_id="f", **about)
    found = bench.measure(model, statements.assign(label="correct"), rounds=1)
    assert found["largest_difference"] < 1e-4
    most = found["head_positions_at_once"]
    assert most["scored, question"] < most["one by one, question"]
    assert len(found["comparisons"]) == 2
