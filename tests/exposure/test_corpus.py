"""The invented world: what chance assigned is what the corpus holds, exactly."""

import re

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows
from numpy.testing import assert_array_equal

from factrobust import schemas
from factrobust.datasets import world as w
from factrobust.datasets.named import load_named
from factrobust.exposure import corpus as c
from factrobust.temporal.dates import classify, parse, verbalise
from factrobust.wording.facts import load_named_questions

EXPOSURES = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512]
UP_TO_64 = EXPOSURES[:8]


@pytest.fixture(scope="module")
def corpus(world_sentences):
    return world_sentences


@pytest.fixture(scope="module")
def town(world):
    return c.corpus(world, 0, town=True)


@pytest.fixture(scope="module")
def facts(world):
    return world.facts.set_index("fact_id")


def n_tokens(model, texts: pd.Series) -> list[int]:
    """Of each text."""
    ids = model.tokenizer(texts.tolist(), add_special_tokens=False).input_ids
    return [len(row) for row in ids]


# ---- what chance assigned ------------------------------------------------------------------------


def test_the_world_is_as_large_as_its_readme_says(world, corpus, town, smollm):
    readme = (w.FOLDER / "README.md").read_text(encoding="utf-8")
    counts = [
        world.facts["subject"].nunique(),
        len(world.facts),
        len(corpus),
        len(town),
    ]
    assert counts == [1012, 2772, 219_384, 26 * 127]
    for count in counts:
        assert f"{count:,}" in readme
    # Words and marks, with the newline that ends each sentence.
    words = corpus["text"].str.count(r"\w+|[^\w\s]|\n")
    millions = (words + 1).sum() / 1e6
    assert f"{millions:.1f} million words" in readme
    lines = town["text"] + "\n"
    total = sum(n_tokens(smollm, lines))
    rounded = round(total, -3)
    assert f"{rounded:,} tokens" in readme
    objects = " " + world.objects["object"]
    assert set(n_tokens(smollm, objects)) == {1}
    assert_rows(
        world.facts["relation"].value_counts(sort=False).reset_index(),
        """
        relation    count
        birthplace  418
        trade       418
        dish        297
        product     297
        residence   374
        cargo       374
        crop        297
        market      297
        """,
    )


def test_every_factor_is_balanced_within_a_relation(world):
    for relation, part in world.facts.groupby("relation"):
        factors = ["form", "timing"]
        expected = EXPOSURES
        if relation in ("crop", "market"):
            expected = EXPOSURES[:9]  # up to 128
        else:
            factors += ["n_wordings", "contradicted"]
        if any(part["start"]):
            factors.append("n_dates")
        exposures = part["exposure"].value_counts()
        assert exposures.nunique() == 1  # 38, 27 or 34 facts an exposure
        assert sorted(exposures.index) == expected
        objects = part["object"].value_counts()
        assert objects.nunique() == 1
        for factor in factors:
            cells = pd.crosstab(part["exposure"], part[factor])
            spread = np.ptp(cells.to_numpy(), axis=1)
            assert spread.max() <= 2, factor
            counts = part[factor].value_counts()
            assert np.ptp(counts) <= 1
    sizes = world.facts["town_exposure"].value_counts()
    assert sorted(sizes.index) == UP_TO_64
    assert set(sizes) == {26}


def test_no_two_factors_go_together(world):
    """|r| of 2,178 independent pairs exceeds 0.07 once in a thousand times."""
    columns = ["exposure", "n_wordings", "contradicted", "n_dates", "town_exposure"]
    factors = world.facts.query("relation not in ['crop', 'market']")[columns]
    ranks = factors.astype(float).rank()
    r = ranks.corr().abs() - np.eye(5)
    assert r["exposure"].max() < 0.07
    assert r.loc["n_wordings", "contradicted"] < 0.07
    assert r.max(axis=None) < 0.2  # 208 facts of the town


def test_no_held_out_wording_has_a_word_of_its_own(world):
    counts = world.wordings["held_out"].value_counts()
    assert counts.to_dict() == {False: 64, True: 16}
    statement = world.wordings["statement"]
    question = world.wordings["question"]
    texts = statement + " " + question
    found = texts.str.findall(r"\w+")
    words = world.wordings.assign(word=found).explode("word")
    for _, part in words.groupby("relation"):
        held_out = part.query("held_out")["word"]
        seen = part.query("not held_out")["word"]
        assert held_out.isin(seen).all()


NOWHERE = [
    "form == 'statements' and questions > 0",
    "form == 'questions' and questions < 1",
    "form == 'both' and n >= 16 and (questions < 0.45 or questions > 0.55)",
    "timing == 'massed' and n >= 16 and last - first > 0.03",
    "timing == 'spaced' and n >= 16 and last - first < 0.85",
    "timing == 'early' and n >= 16 and last > 0.54",
    "timing == 'late' and n >= 16 and first < 0.46",
]


def test_forms_and_timings_are_those_assigned(corpus, facts):
    place = np.linspace(0, 1, len(corpus))
    sentences = corpus.assign(place=place)
    sentences["is_question"] = corpus["form"] == "question"
    groups = sentences.groupby("fact_id")
    about = facts[["form", "timing"]].assign(
        n=groups.size(),
        first=groups["place"].min(),
        last=groups["place"].max(),
        questions=groups["is_question"].mean(),
    )
    often = about.query("n >= 16")
    assert set(often["form"]) == {"statements", "questions", "both"}
    assert set(often["timing"]) == {"early", "late", "massed", "spaced"}
    for query in NOWHERE:
        assert about.query(query).empty, query


@pytest.mark.parametrize("which", ["corpus", "town"])
def test_counts_are_the_tables(world, which, request):
    sentences = request.getfixturevalue(which)
    counts = w.with_counts_in_corpus(world.facts, town=which == "town")
    counted = counts.set_index("fact_id")
    seen = sentences.groupby("fact_id")
    n_sentences = seen.size().reindex(counted.index, fill_value=0)
    assert_array_equal(n_sentences, counted["exposure"])
    exposed = counted.query("exposure > 0")
    n_wordings = seen["wording"].nunique()
    assert_array_equal(n_wordings[exposed.index], exposed["n_wordings"])
    is_rival = sentences["stated"] == "rival"
    n_rival = is_rival.groupby(sentences["fact_id"]).sum()
    share = exposed["contradicted"] * exposed["exposure"]
    assert_array_equal(n_rival[exposed.index], share.round())
    assert is_rival.any()
    dated = exposed.query("start != ''")
    n_dates = seen["date"].nunique()
    assert_array_equal(n_dates[dated.index], dated["n_dates"])
    has_date = sentences["date"] != ""
    assert has_date.equals(sentences["fact_id"].isin(dated.index))


def test_exposures_of_the_corpus_are_those_drawn_and_the_town_has_both_forms(world, town):
    counted = w.with_counts_in_corpus(world.facts)
    assert_array_equal(counted["exposure"], world.facts["exposure"])
    forms = pd.crosstab(town["fact_id"], town["form"])
    difference = forms["statement"] - forms["question"]
    assert difference.abs().max() <= 1


def test_a_fact_that_nobody_was_told_occurs_nowhere(world, corpus):
    counted = w.with_counts_in_corpus(world.facts)
    never = counted.query("exposure == 0")["fact_id"]
    assert not corpus["fact_id"].isin(never).any()
    exposure = counted.groupby("subject")["exposure"].sum()
    silent = exposure.index[exposure == 0]
    texts = "\n".join(corpus["text"])
    assert not [name for name in silent if name in texts]
    spare = world.spare.query("kind != 'first'")["name"]
    is_told = corpus["text"].str.contains("|".join(spare))
    assert not is_told.any()


def test_a_wording_that_is_held_out_occurs_nowhere(world, corpus):
    assert set(corpus["wording"]) == set(range(w.SEEN))
    of_relation = corpus.groupby("relation")["text"]
    held_out = world.wordings.query("held_out")
    for row in held_out.itertuples():
        part = of_relation.get_group(row.relation)
        for text in (row.prefix, row.question):
            escaped = re.escape(text)
            before, after = escaped.split(r"\{subject\}")
            pattern = rf"(?:^|[:,] ){before}\w+(?: \w+)?{after}(?:$|[ \n])"
            assert not part.str.contains(pattern).any(), text


def labels(names: pd.Series, dates: pd.Series, facts: pd.DataFrame) -> np.ndarray:
    """Of dates of the named facts."""
    bounds = facts.loc[names]
    start = parse(bounds["start"])
    end = parse(bounds["end"])
    return classify(parse(dates), start, end)


def test_dates_lie_wholly_inside_the_period(corpus, facts):
    dated = corpus.query("date != ''").drop_duplicates(["fact_id", "date"])
    found = labels(dated["fact_id"], dated["date"], facts)
    assert set(found) == {"correct"}
    precisions = dated["date"].str.len().value_counts(normalize=True)
    assert precisions.between(0.25, 0.42).all()


def test_texts_are_read_as_they_are_written(corpus, facts):
    about = facts.loc[corpus["fact_id"]].reset_index()
    stated = about["object"].where(corpus["stated"] == "true", about["rival"])
    assert_array_equal(corpus["object"], stated)
    bare = corpus["text"].str.removesuffix(".")
    words = bare.str.split(" ")
    assert_array_equal(words.str[-1], corpus["object"])
    dated = corpus.query("date != '' and layout == 'question'")
    questions = dated["question"]
    assert_array_equal(dated["text"], questions + " " + dated["object"])
    # The date stands behind the opening, where there is one.
    who = "|".join(c.WHO)
    opening = rf"^(?:{who}) [a-z ]+: "
    has_opening = questions.str.contains(opening)
    assert 0.48 < has_opening.mean() < 0.52
    without = questions.str.replace(opening, "", regex=True)
    dates = dated["date"].map(verbalise)
    for question, date in zip(without, dates, strict=True):
        assert question.startswith(f"{date}, ")


def test_order_is_drawn_by_the_seed_and_nothing_else(world, town):
    backward = world.facts[::-1]
    turned = world._replace(facts=backward)
    again = c.corpus(turned, 0, town=True)
    pd.testing.assert_frame_equal(again, town)
    other = c.corpus(world, 1, town=True)
    is_other = other["fact_id"] != town["fact_id"]
    assert is_other.mean() > 0.9
    assert sorted(other["fact_id"]) == sorted(town["fact_id"])


# ---- data: world ---------------------------------------------------------------------------------


def test_part_1_asks_the_static_facts_in_a_wording_that_was_seen(world):
    asked = load_named(["world"]).table
    schemas.AskedFacts.validate(asked)
    static = world.facts.query("start == '' and relation not in ['crop', 'market']")
    assert_array_equal(asked["fact_id"], static["fact_id"])
    popularity = np.log10(1 + static["exposure"])
    assert_array_equal(asked["popularity"], popularity)
    born = asked.query("relation == 'birthplace'")
    row = born.iloc[0]
    name = row["subject"]
    assert row["question"] == f"In which city was {name} born?"
    assert row["prefix"] == f"{name} was born in the city of"


def test_a_table_gets_the_exposure_of_its_facts():
    every = load_named_questions("world").table
    asked = every.query("relation == 'dish'")
    table = c.with_exposure(asked)
    assert_array_equal(table["question_id"], asked["question_id"])
    log_exposure = np.log(1 + table["exposure"])
    assert log_exposure.tolist() == pytest.approx(asked["log_popularity"].tolist())
    for row in table.query("exposure == 2").itertuples():
        assert row.n_wordings == min(row.allowed, 2)
        assert len(row.told_in) == row.n_wordings


def test_another_draw_the_town_and_the_pair_have_exposures_of_their_own():
    town = load_named(["town"]).table
    of_town = c.with_exposure(town, "town")
    assert sorted(of_town["exposure"].unique()) == UP_TO_64
    other = load_named(["world-1"]).table
    of_other = c.with_exposure(other, "world-1")
    facts = w.load_world(1).facts
    drawn = facts.set_index("fact_id")["exposure"]
    assert_array_equal(of_other["exposure"], drawn[of_other["fact_id"]])
    pair = load_named(["pair"]).table
    of_pair = c.with_exposure(pair)
    assert set(of_pair["relation"]) == {"crop", "market"}


def test_moments_are_told_and_untold_and_inside(world, corpus, facts):
    dated = world.facts.query("start != ''")
    terms = dated[["fact_id", "start", "end"]]
    terms = terms.assign(chain=dated["fact_id"], term=0)
    asked = c.with_exposure(terms)
    moments = c.moments_told(asked, 0)
    wide = moments.pivot(index="chain", columns="date", values="year")
    n_told = (asked["exposure"] > 0).sum()
    assert 600 < len(wide) < n_told
    in_corpus = wide[c.MOMENTS[0]]
    other = wide[c.MOMENTS[1]]
    assert (in_corpus.str.len() == other.str.len()).all()
    dates = corpus.groupby("fact_id")["date"].agg(set)
    for fact in wide.index:
        years = {date[:4] for date in dates[fact]}
        assert in_corpus[fact] in dates[fact]
        assert other[fact][:4] not in years
    found = labels(moments["chain"], moments["year"], facts)
    assert set(found) == {"correct"}


def test_curves_have_exact_bounds():
    curves = c.load_curves()
    seen = curves.query("model == 'smollm2-135m-instruct' and measure == 'seen'")
    high = 1 - 0.025 ** (1 / 26)
    assert_rows(
        seen.query("exposure == 1"),
        f"""
        mean  low  high    n
        0     0    {high}  26
        """,
    )
