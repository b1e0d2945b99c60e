"""The rules against labels, by hand; and what is said of the labels that are committed."""

import math

import pandas as pd
import pytest

from factrobust.datasets.contexts import LABELS, load_labels
from factrobust.metrics.context import text_source
from factrobust.metrics.labels import agreement, confusion, right_shares, verdicts


def test_agreement_by_hand() -> None:
    # 3 of 4 agree; by chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2 would.
    found = agreement(pd.Series(list("aaab")), pd.Series(list("aabb")))
    assert found.share.mean == 3 / 4
    assert found.share.low == pytest.approx(0.1941, abs=5e-5)  # Clopper and Pearson, 3 of 4
    assert found.kappa == 1 / 2
    assert math.isnan(agreement(pd.Series(["a"]), pd.Series(["a"])).kappa)


@pytest.mark.parametrize(
    ("parametric", "counterfactual", "answer", "source"),
    [
        ("Paris, France", "Rome", "the city of Paris", "other"),  # "city" stands in the way
        ("Paris, France", "Rome", "Paris", "parametric"),
        ("Rosario", "Kensington, London, England", "London", "contextual"),  # table 16
        ("Rosario", "Kensington, London, England", "England, London", "other"),  # not in order
        ("12", "120", "120", "contextual"),  # whole words, unlike the code
        ("15.1", "16", "15.999", "parametric"),  # what follows a full stop goes
        ("1,000", "10", "1000", "parametric"),
        ("the U.N", "Rome", "the", "parametric"),  # no words are a subsequence of any
        ("steel", "stone", "Stone", "contextual"),
    ],
)
def test_the_texts_rule(parametric: str, counterfactual: str, answer: str, source: str) -> None:
    assert text_source(parametric, counterfactual, answer) == source


def test_two_rules_on_four_answers() -> None:
    labels = pd.DataFrame(
        [
            ("Oslo", "Rome", "Rome", "contextual"),
            ("Oslo", "Rome", "Oslo", "parametric"),
            ("Oslo", "Rome", "A: A:", "none"),
            ("tourism", "the tourism", "tourism", "same"),
        ],
        columns=["parametric", "counterfactual", "answer", "label"],
    )

    def equal(p: str, q: str, a: str) -> str:
        return "parametric" if a == p else "contextual" if a == q else "other"

    table = verdicts(labels, {"context": lambda p, q, a: "contextual", "equal": equal})
    assert table["right"].tolist() == [True, False, False, False, True, True, True, False]
    shares = right_shares(table).query("label in ('all', 'same')")
    assert shares["rule"].tolist() == ["context", "equal", "context", "equal"]
    assert shares["share"].tolist() == [1 / 4, 3 / 4, 0, 0]
    assert shares["n"].tolist() == [4, 4, 1, 1]
    counts = confusion(table).reset_index()
    assert counts.columns.tolist() == ["rule", "label", "contextual", "other", "parametric"]
    assert counts.to_numpy().tolist()[4:] == [
        ["equal", "contextual", 1, 0, 0],
        ["equal", "none", 0, 1, 0],
        ["equal", "parametric", 0, 0, 1],
        ["equal", "same", 0, 0, 1],
    ]


def test_the_committed_labels_are_what_their_guide_says() -> None:
    labels = load_labels()
    counts = labels["label"].value_counts()
    assert counts[[*LABELS]].tolist() == [3, 259, 11, 2, 25]
    found = agreement(labels["label"], labels["label_again"])
    assert found.share.mean * 300 == pytest.approx(298)
    assert round(found.kappa, 2) == 0.97


def test_no_rule_is_far_from_always_saying_context() -> None:
    labels = load_labels()
    rules = verdicts(labels).groupby("rule")["right"].sum()
    assert rules.to_dict() == {"code": 249, "text": 245, "ours": 261}
    always = verdicts(labels, {"context": lambda p, q, a: "contextual"})
    assert always["right"].sum() == 259
