"""What forms of a model lost, on tables whose numbers are derived by hand."""

import pandas as pd
import pytest
from ruled import CAPITALS, Rule, knows

from factrobust import schemas
from factrobust.models import divergence
from factrobust.models.damage import Damage
from factrobust.tables import TooFewError
from factrobust.together import files


@pytest.mark.parametrize(
    ("form", "called"),
    [
        (Damage("K", 4), "Q4_K"),
        (Damage("round", 8), "Q8_0"),
        (Damage("round", 4), "Q4_0"),
        (Damage("prune", 0.2), "20% pruned"),
    ],
)
def test_forms_are_called_as_people_call_the_files(form, called):
    assert files.file_label(form) == called


def test_each_form_is_asked_what_its_model_knows(monkeypatch):
    """The model knows Kenya and Peru. Asked again it loses nothing, rounded it loses Peru, and the
    adapter that was trained on it Kenya; an adapter of another model is not asked."""
    rules = {"round": knows("Kenya"), "taught": knows("Peru")}

    def numbers(form, base, text, records):
        return pd.DataFrame({"kl": [0.5], "logprob": [-1.0], "same": [False]})

    monkeypatch.setattr(files, "damaged", lambda name, form: Rule(rules[form.way], name))
    monkeypatch.setattr(files, "load_model", lambda name, records: Rule(rules[name], name))
    monkeypatch.setattr(divergence, "compared", numbers)
    countries = ["Kenya", "Peru"]
    known = pd.DataFrame(
        {
            "model": "base",
            "fact_id": countries,
            "question": [f"What is the capital of {country}?" for country in countries],
            "object": [CAPITALS[country] for country in countries],
        }
    )
    for name in {*schemas.AskedFacts.columns} - {*known}:
        known[name] = ""
    known["aliases"] = [[], []]
    lost, about = files.lost_in_forms(
        [Rule(knows("Kenya", "Peru"), "base")],
        known,
        [Damage("round", 4)],
        records=None,
        adapters={"taught": "base", "other": "another"},
    )
    found = {form: {*part.loc[part["lost"] == 1, "fact_id"]} for form, part in lost.groupby("form")}
    assert found == {"asked again": set(), "Q4_0": {"Peru"}, "adapter": {"Kenya"}}
    assert {*lost["model"]} == {*about["model"]} == {"base"}
    assert about[["form", "mean_kl"]].to_numpy().tolist() == [["Q4_0", 0.5], ["adapter", 0.5]]


def lost_by(**forms):
    """Six facts of two relations; of each form which are lost."""
    parts = []
    for form, lost in forms.items():
        part = pd.DataFrame({"model": "m", "form": form, "fact_id": range(6)})
        part["relation"] = ["a", "b"] * 3
        parts.append(part.assign(lost=part["fact_id"].isin(lost).astype(int)))
    return pd.concat(parts, ignore_index=True)


def test_a_number_that_orders_the_files_as_their_losses_do():
    """Losses of 0, 2 and 6 of 6: mean KL has their order, perplexity the opposite one."""
    lost = lost_by(one=[], two=[0, 1], three=range(6))
    numbers = pd.DataFrame(
        {
            "model": "m",
            "form": ["one", "two", "three"],
            "mean_kl": [0.1, 0.2, 0.9],
            "tail_kl": [1, 3, 2],
            "different_top": 0.0,  # it tells no two files apart
            "perplexity": [9, 8, 7],
        }
    )
    found = files.how_many(lost, numbers, n_boot=50).set_index("number")["mean"]
    assert found.to_dict() == pytest.approx(
        {"mean_kl": 1, "tail_kl": 0.5, "different_top": 0, "perplexity": -1}
    )


@pytest.mark.parametrize(
    ("forms", "share"),
    [
        ({"one": [4, 5]}, 1),  # the least likely of each relation
        ({"two": [0, 1]}, 0),
        ({"one": [4, 5], "two": [0, 1], "asked again": [3]}, 0.5),  # pairs are of one form
    ],
)
def test_pairs_are_of_one_form_and_one_relation(forms, share):
    """Fact i has log P -i; all answers have one length."""
    logprob = [-1.0 * i for i in range(6)]
    known = pd.DataFrame({"model": "m", "fact_id": range(6), "logprob": logprob, "t_b": logprob})
    signs = files.which(lost_by(**forms), known.assign(short=-1.0), n_boot=20)
    within = signs[signs["measure"] == "auc_within"].set_index("predictor")["mean"]
    assert within["logprob"] == share
    assert within["short"] == 0.5


def test_forms_of_one_divergence_by_how_likely_a_fact_was():
    """Of two forms one lies between the bounds; e^-1 is 37%, and log P may be rounded above 0."""
    numbers = pd.DataFrame({"model": "m", "form": ["near", "far"], "mean_kl": [0.1, 0.5]})
    logprob = [-2.0, -1.0, -0.5, -0.4, -0.05, 1e-9]
    known = pd.DataFrame({"model": "m", "fact_id": range(6), "logprob": logprob})
    found = files.at_divergence(lost_by(near=[0], far=range(6)), numbers, known, 0.03, 0.25)
    assert {*found["form"]} == {"near"}
    bands = found.set_index("fact_id")["likely before"].tolist()
    assert bands == ["up to 37%"] * 2 + ["37 to 67%"] * 2 + ["above 90%"] * 2
    assert found["lost"].tolist() == [1, 0, 0, 0, 0, 0]
    with pytest.raises(TooFewError, match=r"^No form of these models has a mean KL .* of 1 to 2"):
        files.at_divergence(lost_by(near=[0]), numbers, known, 1, 2)
