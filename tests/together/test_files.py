"""What forms of a model lost, on tables whose numbers are derived by hand."""

import pandas as pd
import pytest

from factrobust.models.damage import Damage
from factrobust.together import files


def test_forms_are_called_as_people_call_the_files():
    forms = (Damage("K", 4), Damage("round", 8), Damage("round", 4), Damage("prune", 0.2))
    assert [*map(files.called, forms)] == ["Q4_K", "Q8_0", "Q4_0", "20% pruned"]


def lost_by(**forms):
    """Six facts of two relations; of each form which are lost."""
    rows = [
        {"model": "m", "form": form, "fact_id": i, "relation": "ab"[i % 2], "lost": int(i in lost)}
        for form, lost in forms.items()
        for i in range(6)
    ]
    return pd.DataFrame(rows)


def test_a_number_that_orders_the_files_as_their_losses_do():
    """Losses of 0, 2 and 6 of 6: mean KL has their order, perplexity the opposite one."""
    lost = lost_by(one=[], two=[0, 1], three=range(6))
    numbers = pd.DataFrame({"model": "m", "form": ["one", "two", "three"]})
    numbers = numbers.assign(mean_kl=[0.1, 0.2, 0.9], tail_kl=[1, 3, 2], perplexity=[9, 8, 7])
    found = files.how_many(lost, numbers.assign(different_top=0.0), n_boot=50)
    means = found.set_index("number")["mean"]
    assert means["mean_kl"] == pytest.approx(1)
    assert means["perplexity"] == pytest.approx(-1)
    assert means["tail_kl"] == pytest.approx(0.5)
    assert means["different_top"] == 0  # it tells no two files apart


def test_pairs_are_of_one_form_and_one_relation():
    """Fact i has log P -i. Form one loses 4 and 5, the least likely of each relation: both pairs each are
    won. Form two loses 0 and 1, the likeliest: all are lost. Together half."""
    known = pd.DataFrame(
        {"model": "m", "fact_id": range(6), "logprob": [-1.0 * i for i in range(6)]}
    )
    known = known.assign(t_b=known["logprob"], short=-1.0)
    signs = files.which(lost_by(one=[4, 5]), known, n_boot=20)
    within = signs[signs["measure"] == "auc_within"].set_index("predictor")["mean"]
    assert within["logprob"] == 1
    assert within["short"] == 0.5
    both = files.which(lost_by(one=[4, 5], two=[0, 1], again=[]), known, n_boot=20)
    within = both[both["measure"] == "auc_within"].set_index("predictor")["mean"]
    assert within["logprob"] == 0.5
