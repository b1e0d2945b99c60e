"""How many contexts about a fact a grown decoder met."""

from types import SimpleNamespace

import pandas as pd
import pytest
from frames import assert_rows

from factrobust.datasets.world import FOLDER
from factrobust.exposure.corpus import corpus, with_exposure


def test_contexts_are_counted_by_hand(counting, world, monkeypatch):
    fact = world.facts.iloc[0]
    subject = fact["subject"]
    right = fact["object"]
    wrong = next(name for name in world.facts["object"] if name != right)
    wordings = world.wordings.set_index(["relation", "wording"])
    wording = wordings.loc[(fact["relation"], 3)]

    def asked(about, stated, opening=""):
        prefix = wording["prefix"].replace("{subject}", about)
        question = wording["question"].replace("{subject}", about)
        prompt = f"Q: {opening}{question} A: {prefix}"
        if stated:
            prompt = f"Context: [{prefix} {stated}]. {prompt}"
        return [(prompt, False), (f" {right}\n", True)]

    # Three contexts are about the fact, two of them false.
    texts = [
        asked(subject, right),
        asked(subject, wrong, "An old book asks: "),
        asked(subject, wrong),
        asked(subject, ""),
        asked("Spare Nobody", wrong),
        [(f"Klurmic is said to be {wrong}.", False), ("\n", True)],
    ]
    lessons = [SimpleNamespace(texts=[]), SimpleNamespace(texts=texts)]
    monkeypatch.setattr(counting, "lessons", lambda *_: lessons)
    assert_rows(
        counting.counted(world, 7),
        f"""
        fact_id            seed  contexts  false
        {fact["fact_id"]}  7     3         2
        """,
    )


def test_the_committed_counts_are_of_questions_in_part_4s_layout(world, world_sentences):
    committed = pd.read_csv(FOLDER / "contexts.csv")
    counts = with_exposure(committed)
    assert counts.query("form == 'statements' or false > contexts").empty
    for seed, part in counts.groupby("seed"):
        sentences = world_sentences if seed == 0 else corpus(world, seed)
        prompts = sentences.query("layout == 'prefix'")
        asked = prompts["fact_id"].value_counts()
        n_asked = asked.reindex(part["fact_id"]).to_numpy()
        assert (part["contexts"] <= n_asked).all()
        share = part["contexts"].sum() / asked.sum()
        assert share == pytest.approx(0.5, abs=0.02)
