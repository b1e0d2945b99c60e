"""The invented world: what chance assigned is what the corpus holds, exactly."""

import re

import numpy as np
import pandas as pd
import pytest

from factrobust import schemas
from factrobust.datasets import world as w
from factrobust.datasets.named import load_named
from factrobust.exposure import corpus as c
from factrobust.temporal.dates import classify, parse, verbalise
from factrobust.wording.facts import load_named_questions


@pytest.fixture(scope="module")
def corpus(told: pd.DataFrame) -> pd.DataFrame:
    return told


@pytest.fixture(scope="module")
def town(world: w.World) -> pd.DataFrame:
    return c.corpus(world, 0, town=True)


# ---- what chance assigned ------------------------------------------------------------------------


def test_the_world_is_as_large_as_its_readme_says(world, corpus, town, smollm):
    assert world.facts["subject"].nunique() == 1012
    assert len(world.facts) == 2772
    counts = world.facts["relation"].value_counts(sort=False).to_dict()
    assert counts == {
        "birthplace": 418,
        "trade": 418,
        "dish": 297,
        "product": 297,
        "residence": 374,
        "cargo": 374,
        "crop": 297,
        "market": 297,
    }
    assert len(corpus) == 219_384
    assert len(town) == 26 * 127
    readme = (w.FOLDER / "README.md").read_text(encoding="utf-8")
    for text in ("1,012", "2,772", "219,384", "3,302", "3.3 million words", "55,000 tokens"):
        assert text in readme
    # Words and marks, with the newline that ends each; and SmolLM2's tokens, an object one of them.
    assert 3.25e6 < corpus["text"].str.count(r"\w+|[^\w\s]|\n").sum() + len(corpus) < 3.35e6
    tokens = smollm.tokenizer([text + "\n" for text in town["text"]], add_special_tokens=False)
    assert 54_500 < sum(map(len, tokens.input_ids)) < 55_500
    objects = smollm.tokenizer([*(" " + world.objects["object"])], add_special_tokens=False)
    assert {*map(len, objects.input_ids)} == {1}


def test_every_factor_is_balanced_within_a_relation_and_independent(world):
    for relation, facts in world.facts.groupby("relation"):
        assert facts["exposure"].value_counts().nunique() == 1  # 38, 27 or 34 facts an exposure
        paired = relation in ("crop", "market")
        assert sorted(facts["exposure"].unique()) == [
            0,
            *(2**k for k in range(8 if paired else 10)),
        ]
        assert facts["object"].value_counts().nunique() == 1
        factors = ["form", "timing", *([] if paired else ["n_wordings", "contradicted"])]
        for factor in (*factors, *(["n_dates"] if any(facts["start"]) else [])):
            cells = pd.crosstab(facts["exposure"], facts[factor])
            assert (cells.max(axis=1) - cells.min(axis=1)).max() <= 2, factor
            assert np.ptp(facts[factor].value_counts()) <= 1
    sizes = world.facts["town_exposure"].dropna().value_counts().to_dict()
    assert sizes == dict.fromkeys([0, 1, 2, 4, 8, 16, 32, 64], 26)
    # No two go together: |r| of 2,178 independent pairs exceeds 0.07 once in a thousand times.
    columns = ["exposure", "n_wordings", "contradicted", "n_dates", "town_exposure"]
    facts = world.facts[~world.facts["relation"].isin(["crop", "market"])]
    ranks = facts[columns].astype(float).rank()
    r = ranks.corr().to_numpy()[np.triu_indices(5, 1)]
    assert np.abs(r[:5]).max() < 0.07  # of those that all facts have
    assert np.nanmax(np.abs(r)) < 0.2  # 208 facts of the town


def test_no_held_out_wording_has_a_word_of_its_own(world):
    for _, part in world.wordings.groupby("relation"):
        words = [
            {*re.findall(r"\w+", " ".join(texts))}
            for texts in part.groupby("held_out")[["statement", "question"]].sum().to_numpy()
        ]
        assert words[1] <= words[0]
    assert world.wordings.groupby("held_out").size().to_dict() == {False: 64, True: 16}


def test_forms_and_timings_are_those_assigned(world, corpus):
    facts = world.facts.set_index("fact_id")
    place = pd.Series(np.linspace(0, 1, len(corpus)), corpus["fact_id"]).groupby(level=0)
    reach = place.agg(["min", "max", "size"]).join(facts[["timing", "form"]])
    often = reach[reach["size"] >= 16]
    width = often["max"] - often["min"]
    assert width[often["timing"] == "massed"].max() < 0.03
    assert width[often["timing"] == "spaced"].min() > 0.85
    assert often.loc[often["timing"] == "early", "max"].max() < 0.54
    assert often.loc[often["timing"] == "late", "min"].min() > 0.46
    share = corpus["form"].eq("question").groupby(corpus["fact_id"]).mean()
    assert share[facts["form"][share.index] == "statements"].max() == 0
    assert share[facts["form"][share.index] == "questions"].min() == 1
    assert share[often.index[often["form"] == "both"]].between(0.45, 0.55).all()


@pytest.mark.parametrize("which", ["corpus", "town"])
def test_counts_are_the_tables(world, which, request):
    sentences = request.getfixturevalue(which)
    facts = w.with_counts_in_corpus(world.facts, town=which == "town").set_index("fact_id")
    seen = sentences.groupby("fact_id")
    exposure = seen.size().reindex(facts.index, fill_value=0)
    assert exposure.equals(facts["exposure"].rename(None).astype(exposure.dtype))
    assert which == "town" or facts["exposure"].equals(world.facts.set_index("fact_id").exposure)
    told = facts[facts["exposure"] > 0]
    assert (seen["wording"].nunique()[told.index] == told["n_wordings"]).all()
    rivals = sentences["stated"].eq("rival").groupby(sentences["fact_id"]).sum()
    by_hand = (told["contradicted"] * told["exposure"]).round()
    assert (rivals[told.index] == by_hand).all()
    assert rivals.sum() > 0
    dated = told[told["start"] != ""]
    assert (seen["date"].nunique()[dated.index] == dated["n_dates"]).all()
    assert (sentences["date"] == "").equals(~sentences["fact_id"].isin(dated.index))
    if which == "town":
        forms = pd.crosstab(sentences["fact_id"], sentences["form"])
        assert (forms["statement"] - forms["question"]).abs().max() <= 1


def test_a_fact_that_nobody_was_told_occurs_nowhere(world, corpus):
    facts = w.with_counts_in_corpus(world.facts)
    wordings = world.wordings.set_index(["relation", "wording"])
    assert not {*corpus["fact_id"]} & {*facts.loc[facts["exposure"] == 0, "fact_id"]}
    silent = facts.groupby("subject")["exposure"].sum()
    texts = "\n".join(corpus["text"])
    assert not [name for name in silent.index[silent == 0] if name in texts]
    for (relation, _), row in wordings[wordings["held_out"]].iterrows():
        part = corpus[corpus["relation"] == relation]
        for text in (row["prefix"], row["question"]):
            before, after = (re.escape(x) for x in text.split("{subject}"))
            pattern = rf"(?:^|[:,] ){before}\w+(?: \w+)?{after}(?:$|[ \n])"
            assert not part["text"].str.contains(pattern, regex=True).any(), text
    assert set(corpus["wording"]) == set(range(w.SEEN))
    spare = "|".join(world.spare.query("kind != 'first'")["name"])
    assert not corpus["text"].str.contains(spare).any()


def test_dates_lie_wholly_inside_the_period(world, corpus):
    dated = corpus[corpus["date"] != ""].drop_duplicates(["fact_id", "date"])
    bounds = world.facts.set_index("fact_id").loc[dated["fact_id"]]
    labels = classify(parse(dated["date"]), parse(bounds["start"]), parse(bounds["end"]))
    assert set(labels) == {"correct"}
    assert dated["date"].str.len().value_counts(normalize=True).between(0.25, 0.42).all()


def test_texts_are_read_as_they_are_written(world, corpus):
    facts = world.facts.set_index("fact_id").loc[corpus["fact_id"]]
    stated = facts["object"].where(corpus["stated"].eq("true").to_numpy(), facts["rival"])
    assert corpus["object"].tolist() == stated.tolist()
    ends = corpus["text"].str.removesuffix(".").str.rsplit(" ", n=1).str[-1]
    assert ends.tolist() == corpus["object"].tolist()
    dated = corpus[corpus["date"].ne("") & corpus["layout"].eq("question")]
    begun = dated["question"].str.contains(f"^(?:{'|'.join(c.WHO)}) [a-z ]+: ")
    assert 0.48 < begun.mean() < 0.52
    one = dated[~begun].iloc[0]
    other = dated[begun].iloc[0]
    assert one["text"] == f"{one['question']} {one['object']}"
    assert one["question"].startswith(f"{verbalise(one['date'])}, ")
    assert other["question"].partition(": ")[2].startswith(f"{verbalise(other['date'])}, ")


def test_order_is_drawn_by_the_seed_and_nothing_else(world, town):
    again = c.corpus(world, 0, town=True)
    pd.testing.assert_frame_equal(again, town)
    turned = world._replace(facts=world.facts[::-1])
    pd.testing.assert_frame_equal(c.corpus(turned, 0, town=True), town)
    other = c.corpus(world, 1, town=True)
    assert (other["fact_id"] != town["fact_id"]).mean() > 0.9
    assert sorted(other["fact_id"]) == sorted(town["fact_id"])


# ---- data: world ---------------------------------------------------------------------------------


def test_part_1_asks_the_static_facts_in_a_wording_that_was_seen(world):
    facts = load_named(["world"]).table
    schemas.AskedFacts.validate(facts)
    paired = world.facts["relation"].isin(["crop", "market"])
    static = world.facts[world.facts["start"].eq("") & ~paired]
    assert facts["fact_id"].tolist() == static["fact_id"].tolist()
    assert facts["popularity"].tolist() == np.log10(1 + static["exposure"]).tolist()
    row = facts.set_index("fact_id").loc["birthplace/" + facts["fact_id"][0].split("/")[1]]
    assert row["question"] == f"In which city was {row['subject']} born?"
    assert row["prefix"] == f"{row['subject']} was born in the city of"
    assert len(load_named(["world"], limit=30).table) == 30


def test_a_table_gets_the_exposure_of_its_facts(world):
    asked = load_named_questions("world").table
    asked = asked[asked["relation"] == "dish"]
    table = c.with_exposure(asked)
    assert table["question_id"].tolist() == asked["question_id"].tolist()
    assert np.log(1 + table["exposure"]).tolist() == pytest.approx(asked["log_popularity"].tolist())
    for row in table[table["exposure"] == 2].head(30).to_dict("records"):
        assert len(row["told_in"]) == row["n_wordings"] == min(row["allowed"], 2)
    town = c.with_exposure(load_named(["town"]).table, "town")
    assert set(town["exposure"]) == {0, 1, 2, 4, 8, 16, 32, 64}
    other = c.with_exposure(load_named(["world-1"]).table, "world-1").set_index("fact_id")
    assert other["exposure"].equals(
        w.load_world(1).facts.set_index("fact_id")["exposure"][other.index]
    )
    assert set(c.with_exposure(load_named(["pair"]).table)["relation"]) == {"crop", "market"}


def test_moments_are_told_and_untold_and_inside(world, corpus):
    facts = c.with_exposure(world.facts[world.facts["start"] != ""][["fact_id", "start", "end"]])
    facts = facts.assign(chain=facts["fact_id"], term=0)
    moments = c.moments_told(facts, 0).pivot(
        index="chain",
        columns="date",
        values="year",
    )
    told, other = (moments[kind] for kind in c.MOMENTS)
    assert 600 < len(moments) < (facts["exposure"] > 0).sum()
    dates = corpus[corpus["date"] != ""].groupby("fact_id")["date"].agg(set)
    assert all(date in dates[fact] for fact, date in told.items())
    assert not any(date[:4] in {x[:4] for x in dates[fact]} for fact, date in other.items())
    assert (told.str.len() == other.str.len()).all()
    bounds = facts.set_index("fact_id").loc[moments.index]
    for named in (told, other):
        parsed = classify(parse(named), parse(bounds["start"]), parse(bounds["end"]))
        assert set(parsed) == {"correct"}


def test_curves_have_exact_bounds():
    row = c.load_curves().query("model == 'smollm2-135m-instruct' and measure == 'seen'").iloc[1]
    assert row["exposure"] == 1
    assert row["mean"] == 0
    assert row["n"] == 26
    assert row["low"] == 0
    assert row["high"] == pytest.approx(1 - 0.025 ** (1 / 26))


# ---- the tables ----------------------------------------------------------------------------------
