"""How many contexts about a fact a grown decoder met."""

from types import SimpleNamespace

import pandas as pd
import pytest

from factrobust.datasets.world import FOLDER
from factrobust.exposure.corpus import corpus, with_exposure


def test_contexts_are_counted_by_hand(counting, world, monkeypatch):
    fact = world.facts.iloc[0]
    wording = world.wordings.set_index(["relation", "wording"]).loc[(fact["relation"], 3)]
    other = next(x for x in world.facts["object"] if x != fact["object"])

    def text(subject, stated, who=""):
        asks = wording["prefix"].replace("{subject}", subject)
        question = who + wording["question"].replace("{subject}", subject)
        before = f"Context: [{asks} {stated}]. " if stated else ""
        return [(f"{before}Q: {question} A: {asks}", False), (f" {fact['object']}\n", True)]

    subject = fact["subject"]
    texts = [
        text(subject, fact["object"]),
        text(subject, other, "An old book asks: "),
        text(subject, other),
        text(subject, ""),
        text("Spare Nobody", other),
        [(f"Klurmic is said to be {other}.", False), ("\n", True)],
    ]
    lesson = SimpleNamespace(texts=texts)
    monkeypatch.setattr(counting, "lessons", lambda *_: [SimpleNamespace(texts=[]), lesson])
    found = counting.counted(world, 7)
    assert found.values.tolist() == [[fact["fact_id"], 7, 3, 2]]


def test_the_committed_counts_are_of_questions_in_part_4s_layout(world, told):
    counts = with_exposure(pd.read_csv(FOLDER / "contexts.csv"))
    assert not (counts["form"] == "statements").any()
    assert (counts["false"] <= counts["contexts"]).all()
    for seed, part in counts.groupby("seed"):
        texts = told if seed == 0 else corpus(world, seed)
        counted = texts.loc[texts["layout"] == "prefix", "fact_id"].value_counts()
        of_facts = counted.reindex(part["fact_id"]).to_numpy()
        assert (part["contexts"] <= of_facts).all()
        assert part["contexts"].sum() / counted.sum() == pytest.approx(0.5, abs=0.02)
