"""Passages, on all facts: what each kind says, and what the exchanges change."""

import pandas as pd
import pytest
from scipy.stats import binom

from factrobust.context import passages as made_of
from factrobust.context.facts import facts_as_questions
from factrobust.context.passages import PASSAGES, passages
from factrobust.context.rules import right
from factrobust.datasets.facts import load_facts, load_relations
from factrobust.tables import TooFewError


@pytest.fixture(scope="module")
def pool():
    return facts_as_questions(load_facts())


@pytest.fixture(scope="module")
def asked_passages(pool):
    asked = pool[pool["question_id"].isin(load_facts(limit=33)["fact_id"])]
    return passages(asked, pool).merge(pool, on="question_id")


def test_passages_are_what_their_kind_says(asked_passages):
    assert asked_passages["context"].value_counts().to_dict() == dict.fromkeys(PASSAGES, 33)
    n_sentences = asked_passages["sentence"].str.count(r"\. ") + 1
    assert n_sentences.between(3, 12).all()  # 10, and some names have one
    in_its_words = []
    for row in asked_passages.to_dict("records"):
        kind = row["context"]
        text = row["sentence"]
        assert ("It is not true that" in text) == (kind == "negated")
        if kind in ("true", "false"):
            assert right(row["counterfactual"], row["answers"]) == (kind == "true")
            plain = f"{row['prefix']} {row['counterfactual']}"
            in_its_words.append(plain in text)
        else:
            assert row["counterfactual"] == ""
            assert text.lower().count(row["prefix"].lower()) == (kind == "negated")
    # Half of them are in the question's words.
    chance = binom.cdf(sum(in_its_words), len(in_its_words), 0.5)
    assert 0.0001 < chance < 0.9999
    assert set(made_of.paraphrases()) == set(load_relations().index)


def test_every_slot_is_exchanged_for_another_of_its_kind(asked_passages, pool):
    of_relation = pool["answers"].str[0].groupby(pool["base_id"]).agg(set)
    for row in asked_passages.to_dict("records"):
        texts = [row["sentence"], row["swap_1"], row["swap_2"]]
        assert len(set(texts)) == 3
        assert len(row["slots"]) > 0
        for slot in row["slots"]:
            names = [spellings[0] for spellings in slot]
            assert len(set(names)) == 3
            for name, text in zip(names, texts, strict=True):
                assert name.lower() in text.lower()
            for name in names[1:]:
                assert name in of_relation[row["base_id"]]
                assert not right(name, row["answers"])


def test_a_placebo_exchanges_an_answer_that_is_in_no_slot(asked_passages):
    some = asked_passages[asked_passages["placebo"] != ""]
    assert len(some) > 0.9 * len(asked_passages)
    for row in some.to_dict("records"):
        before = row["sentence"].split(". ")
        after = row["placebo"].split(". ")
        assert before != after
        for slot in row["slots"]:
            assert slot[0][0].lower() in row["placebo"].lower()
        if len(before) == len(after):
            [one] = set(before) - set(after)
            assert not right(one, row["answers"])


def capitals(*countries):
    alike = pd.DataFrame({"object": countries})
    alike["question_id"] = alike["object"]
    alike["question"] = "What is the capital of " + alike["object"] + "?"
    alike["prefix"] = "The capital of " + alike["object"] + " is"
    alike["answers"] = [[f"{name}city"] for name in alike["object"]]
    return alike.assign(base_id="capital", category="geography")


@pytest.mark.parametrize("n", [1, 2])
def test_too_few_facts_of_a_relation_are_said(n):
    alike = capitals("Kenya", "Peru")[:n]
    with pytest.raises(TooFewError, match="for the passage of 'What is the capital of Kenya"):
        passages(alike[:1], alike)


def test_a_passage_of_slots_alone_has_no_placebo():
    alike = capitals("Kenya", "Peru", "Chad", "Oman")
    made = passages(alike[:1], alike)
    assert made["placebo"].eq("").all()
    assert made["slots"].map(len).gt(0).all()
    # Four facts: an exchange takes answers of other slots where there are no more.
    assert "Kenyacity" not in made.set_index("context").loc["false", "swap_1"]
