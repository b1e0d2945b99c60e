"""Questions in other words: of facts, of PopQA, of your own; and pairs that are no paraphrases."""

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows
from numpy.testing import assert_allclose

from factrobust.datasets.facts import load_facts, load_relations
from factrobust.datasets.published import load_published
from factrobust.tables import FactsError
from factrobust.wording import facts as wordings


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.csv"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def paraphrased(write):
    """The questions of the facts in the lines of a CSV."""
    header = "subject,relation,object,aliases,popularity\n"
    return lambda lines: wordings.paraphrased(load_facts(write(header + lines))).table


@pytest.fixture(scope="module")
def embedded():
    return wordings.load_questions().table


def test_embedded_templates_are_as_many_as_the_papers_and_sentences_of_their_own():
    templates = wordings.load_paraphrases()
    printed = load_published("3-wording-table-1").set_index("relation")["alternatives"]
    assert templates.groupby("relation").size().to_dict() == printed.to_dict()
    texts = templates["paraphrase"]
    assert texts.str.fullmatch(r"[A-Z{].*\S[?.]").all()
    plain = load_relations().loc[printed.index, "question"]
    words = pd.concat([texts, plain]).str.casefold().str.findall(r"\w+").str.join(" ")
    assert words.is_unique


def test_embedded_facts_are_all_asked_in_all_wordings(embedded):
    facts = load_facts(relations=wordings.load_paraphrases()["relation"])
    originals = embedded[embedded["variant"] == 0]
    assert originals["group_id"].tolist() == facts["fact_id"].tolist()
    assert originals["answers"].str[0].tolist() == facts["object"].tolist()
    assert embedded["question_id"].is_unique
    assert not embedded["question"].str.contains(r"[{}]|\.\.$|\?\?$| $").any()
    assert embedded["log_popularity"].isna().all()  # page views or none
    # Table 1 of the notebooks; the relations differ in their alternatives.
    table = wordings.describe(embedded).astype(float)
    assert_rows(
        table.loc[["director", "all"]],
        """
        questions  alternatives  total
        55         10            605
        879        NaN           6413
        """,
    )


def test_facts_by_hand(paraphrased):
    table = paraphrased("the Netherlands,capital_of,X,Y|Z,2.5")
    assert_rows(
        table,
        """
        question_id               variant  question
        capital_of/netherlands#0  0        The Netherlands is the capital of which country?
        capital_of/netherlands#1  1        The capital of which country is the Netherlands?
        capital_of/netherlands#2  2        Can you name the country whose capital city is the Netherlands?
        capital_of/netherlands#3  3        Which country has its capital in the Netherlands?
        """,
    )
    assert table["prefix"].eq("The Netherlands is the capital of").all()
    assert table["answers"].tolist() == [["X", "Y", "Z"]] * 4
    assert table["popularity"].isna().all()  # how often words stand in texts is none
    table = paraphrased("Martin Luther King Jr.,father,X,,1")
    assert "Name the father of Martin Luther King Jr." in table["question"].tolist()
    wrong = r"^2 of 2 groups have one question only, 'currency/kenya'"
    with pytest.raises(FactsError, match=wrong):
        paraphrased("Kenya,currency,shilling,,\nKenya,continent,Africa,,")


MINE = """group_id,question,answers,relation,popularity
moon,Who first walked on the Moon?,Neil Armstrong|Armstrong,person,1000
sea,Which is the largest ocean?,Pacific|the Pacific|Pacific,place,
moon,Name the first person on the Moon.,Neil Armstrong|Armstrong,person,1000
sea,What is the name of the largest ocean?,Pacific|the Pacific|Pacific,place,
sea,Which is the largest ocean?,Pacific|the Pacific|Pacific,place,
"""


def test_own_questions(write):
    table, counts, *_ = wordings.load_questions(write(MINE))
    assert counts == {"repeated_questions": 1, "no_popularity": 1}
    assert_rows(
        table.assign(answers=table["answers"].str.join("|")),
        """
        question_id  answers                   popularity
        moon#0       Neil Armstrong|Armstrong  1000
        moon#1       Neil Armstrong|Armstrong  1000
        sea#0        Pacific|the Pacific       NaN
        sea#1        Pacific|the Pacific       NaN
        """,
    )
    assert_allclose(table["log_popularity"], [np.log(1000)] * 2 + [np.nan] * 2)


def test_own_names_and_prefixes_are_kept(write):
    """Without relations all are of one."""
    text = "question_id,group_id,question,answers,prefix\nx,a,One?,1,One is\ny,a,Uno?,1,Uno is\n"
    table, *_ = wordings.load_named_questions(str(write(text)))
    assert_rows(
        table,
        """
        question_id  prefix  relation
        x            One is  own
        y            Uno is  own
        """,
    )
    with pytest.raises(ValueError, match="'pop_qa'; known are"):
        wordings.load_named_questions("pop_qa")


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("Pacific|the Pacific|Pacific", "| |", r"line 3: the answers '\| \|' is no answer; write"),
        (",place,\nmoon", ",place,often\nmoon", r"line 3: the popularity 'often' is not a number"),
        ("person,1000\nsea", "thing,1000\nsea", r"line 4: the relation 'person' differs from that"),
        ("Neil Armstrong|", "Buzz|", r"line 4: the answers 'Neil Armstrong\|Armstrong' differs"),
        ("moon,Name", "sun,Name", r"^2 of 3 groups have one question only, 'moon' first: give e"),
        ("Name the first person on the Moon.", "Who first walked on the Moon?", r"^1 of 2 groups"),
    ],
)
def test_a_bad_table_gives_one_sentence(write, old, new, what):
    path = write(MINE.replace(old, new, 1))
    with pytest.raises(FactsError, match=what):
        wordings.load_questions(path)


def test_a_sample_has_whole_groups_of_every_relation(embedded):
    kept = wordings.sample_groups(embedded, 32)
    assert kept.groupby("relation")["group_id"].nunique().eq(2).all()
    groups = set(kept["group_id"])
    whole = embedded["group_id"].isin(groups)
    assert kept.equals(embedded[whole].reset_index(drop=True))
    assert set(wordings.sample_groups(embedded, 32, seed=1)["group_id"]) != groups
    # A smaller sample is a part of a larger one: notebooks ask some in further ways.
    assert wordings.sample_groups(kept, 16).equals(wordings.sample_groups(embedded, 16))
    with pytest.raises(ValueError, match="limit is 0"):
        wordings.sample_groups(embedded, 0)


def test_quality_pairs_of_a_fact_by_hand():
    facts = load_facts(relations=["father", "mother"])
    picked = facts[facts["fact_id"].isin(["father/zeus", "mother/zeus", "father/thor"])]
    table = wordings.paraphrased(picked).table
    pairs = wordings.quality_pairs(table)
    sizes = {"paraphrase": 4 + 4 + 5, "other relation": 3, "other subject": 2}
    assert pairs["pair"].value_counts().to_dict() == sizes
    of_zeus = pairs[pairs["group_id"] == "father/zeus"].set_index("pair")
    assert of_zeus["original"].eq("Who was the father of Zeus?").all()
    reworded = table["question_id"].str.match("father/zeus#[1-4]")
    questions = of_zeus["question"]
    assert questions["paraphrase"].tolist() == table.loc[reworded, "question"].tolist()
    assert questions["other subject"] == "Who was the father of Thor?"
    # Persons have parents and occupations among the embedded facts, and no capitals.
    others = {"Who was the mother of Zeus?", "What was the occupation of Zeus?"}
    assert questions["other relation"] in others


def test_quality_pairs_never_ask_the_same(embedded):
    pairs = wordings.quality_pairs(embedded)
    assert (pairs["original"] != pairs["question"]).all()
    one = pairs[pairs["pair"] != "paraphrase"].groupby(["group_id", "pair"]).size()
    assert one.tolist() == [1] * 2 * 879
    # Capitals, cities, colors and composers share no subject with another relation.
    alone = pairs.loc[pairs["pair"] == "nonsense", "relation"].unique()
    assert sorted(alone) == ["capital", "capital_of", "color", "composer", "country"]
    mine = embedded.assign(group_id="my " + embedded["group_id"])  # no embedded facts
    assert set(wordings.quality_pairs(mine)["pair"]) == {"paraphrase", "other subject"}


def test_the_embedded_questions_of_popqa_are_asked_in_our_wordings():
    table, counts, *_ = wordings.load_named_questions("popqa:data/popqa.csv")
    originals = table[table["variant"] == 0].set_index("group_id")
    assert len(originals) == 1000
    paraphrases = originals.merge(wordings.load_paraphrases(), on="relation")
    assert len(table) == 1000 + len(paraphrases)
    assert counts["repeated_questions"] == 0
    first = originals.loc["composer/10207"]  # the first line of the file
    assert first["question"] == "Who was the composer of Easy Living?"
    assert first["answers"] == ["Ralph Rainger", "Ralph Reichenthal"]
    assert first["log_popularity"] == pytest.approx(np.log(1381))
    assert "Which composer wrote Easy Living?" in table["question"].tolist()
