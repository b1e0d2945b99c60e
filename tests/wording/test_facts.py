import math

import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.facts import load_facts, load_relations, questions
from factrobust.datasets.published import load_published
from factrobust.tables import FactsError
from factrobust.wording import facts as wordings
from factrobust.wording.facts import load_paraphrases, load_questions, paraphrased, quality_pairs


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "mine.csv"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def facts(write):
    header = "subject,relation,object,aliases,popularity\n"
    return lambda text: load_facts(write(header + text))


def test_embedded_templates_are_as_many_as_the_papers_and_sentences_of_their_own():
    templates = load_paraphrases()
    printed = load_published("3-wording-table-1").set_index("relation")["alternatives"]
    assert templates.groupby("relation").size().to_dict() == printed.to_dict()
    relations = load_relations()
    assert set(templates["relation"]) == set(relations.index[relations["popqa"]])
    assert templates["paraphrase"].str.fullmatch(r"[A-Z{].*\S[?.]").all()
    own = templates["relation"].map(relations["question"])
    assert not templates["paraphrase"].str.casefold().eq(own.str.casefold()).any()
    words = templates["paraphrase"].str.casefold().str.replace(r"\W+", " ", regex=True).str.strip()
    assert not words.duplicated().any()


def test_embedded_facts_are_all_asked():
    facts = load_facts(relations=load_paraphrases()["relation"])
    table, counts, *_ = paraphrased(facts)
    assert tuple(table.columns) == wordings.COLUMNS
    assert table["group_id"].drop_duplicates().tolist() == facts["fact_id"].tolist()
    assert table["question_id"].is_unique
    own = table[table["variant"] == 0]
    assert own["question"].tolist() == questions(facts)["question"].tolist()
    assert own["answers"].str[0].tolist() == facts["object"].tolist()
    alternatives = table.groupby("group_id").size() - 1
    per_relation = load_paraphrases().groupby("relation").size()
    assert alternatives.eq(alternatives.index.str.split("/").str[0].map(per_relation)).all()
    assert not table["question"].str.contains(r"[{}]|\.\.$|\?\?$| $").any()
    assert counts == {"repeated_questions": 0, "no_popularity": len(facts)}  # page views or none


def test_facts_by_hand(facts):
    table = paraphrased(facts("the Netherlands,capital_of,X,Y|Z,2.5\n")).table
    assert table[["question_id", "variant", "question"]].to_numpy().tolist() == [
        ["capital_of/netherlands#0", 0, "The Netherlands is the capital of which country?"],
        ["capital_of/netherlands#1", 1, "The capital of which country is the Netherlands?"],
        [
            "capital_of/netherlands#2",
            2,
            "Can you name the country whose capital city is the Netherlands?",
        ],
        ["capital_of/netherlands#3", 3, "Which country has its capital in the Netherlands?"],
    ]
    assert table["prefix"].eq("The Netherlands is the capital of").all()
    assert table["answers"].tolist() == [["X", "Y", "Z"]] * 4
    # How often words stand in texts is no popularity of a subject.
    assert table[["popularity", "log_popularity"]].isna().all(axis=None)
    # A sentence has one full stop.
    table = paraphrased(facts("Martin Luther King Jr.,father,X,,1\n")).table
    assert "Name the father of Martin Luther King Jr." in table["question"].tolist()
    assert not table["question"].str.contains("..", regex=False).any()


def test_a_relation_without_templates_leaves_one_question(facts):
    wrong = r"^2 of 2 groups have one question only, 'currency/kenya'"
    with pytest.raises(FactsError, match=wrong):
        paraphrased(facts("Kenya,currency,shilling,,\nKenya,continent,Africa,,\n"))


MINE = """group_id,question,answers,relation,popularity
moon,Who first walked on the Moon?,Neil Armstrong|Armstrong,person,1000
sea,Which is the largest ocean?,Pacific|the Pacific|Pacific,place,
moon,Name the first person on the Moon.,Neil Armstrong|Armstrong,person,1000
sea,What is the name of the largest ocean?,Pacific|the Pacific|Pacific,place,
sea,Which is the largest ocean?,Pacific|the Pacific|Pacific,place,
"""


def test_own_questions(write):
    table, counts, *_ = load_questions(write(MINE))
    assert tuple(table.columns) == wordings.COLUMNS
    moon = ["Neil Armstrong", "Armstrong"]
    sea = ["Pacific", "the Pacific"]
    columns = ["question_id", "group_id", "variant", "prefix", "answers"]
    assert table[columns].to_numpy().tolist() == [
        *(["moon#0", "moon", 0, "", moon], ["moon#1", "moon", 1, "", moon]),
        *(["sea#0", "sea", 0, "", sea], ["sea#1", "sea", 1, "", sea]),
    ]
    assert table.loc[0, "question"] == "Who first walked on the Moon?"
    assert table.loc[0, "log_popularity"] == pytest.approx(math.log(1000))
    assert table.loc[2:, ["popularity", "log_popularity"]].isna().all(axis=None)
    assert counts == {"repeated_questions": 1, "no_popularity": 1}
    # Names of your own are kept.
    text = "question_id,group_id,question,answers,prefix\nx,a,One?,1,One is\ny,a,Uno?,1,Uno is\n"
    table = load_questions(write(text)).table
    assert table["question_id"].tolist() == ["x", "y"]
    assert table["prefix"].tolist() == ["One is", "Uno is"]


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
    with pytest.raises(FactsError, match=what):
        load_questions(write(MINE.replace(old, new, 1)))


def groups(relations: dict[str, int]) -> pd.DataFrame:
    """Groups of three questions, so many a relation."""
    names = [f"{relation}/{n}" for relation, count in relations.items() for n in range(count)]
    frame = pd.DataFrame({"group_id": np.repeat(names, 3), "variant": [0, 1, 2] * len(names)})
    return frame.assign(
        relation=frame["group_id"].str.split("/").str[0],
        question=frame["group_id"] + frame["variant"].astype("str"),
        log_popularity=1.0,
    )


def test_a_sample_has_whole_groups_of_every_relation():
    table = groups({"capital": 9, "sport": 4, "color": 1})
    kept = wordings.sample(table, 7)
    assert kept.groupby("group_id").size().eq(3).all()
    per_relation = kept.groupby("relation")["group_id"].nunique()
    assert per_relation.to_dict() == {"capital": 3, "sport": 3, "color": 1}
    assert set(wordings.sample(table, 7, seed=1)["group_id"]) != set(kept["group_id"])
    with pytest.raises(ValueError, match="limit is 0"):
        wordings.sample(table, 0)


def test_describe_counts_as_table_1_does():
    table = wordings.describe(groups({"sport": 4, "capital": 2}))
    assert table.index.tolist() == ["capital", "sport", "all"]
    assert table.loc["sport"].to_dict() == {"questions": 4, "alternatives": 2, "total": 12}
    assert table.loc["all", ["questions", "total"]].tolist() == [6, 18]
    assert pd.isna(table.loc["all", "alternatives"])  # relations differ in it


def test_quality_pairs_of_a_fact_by_hand():
    facts = load_facts(relations=["father", "mother"])
    picked = facts[facts["fact_id"].isin(["father/zeus", "mother/zeus", "father/thor"])]
    table = paraphrased(picked).table
    pairs = quality_pairs(table)
    assert pairs["pair"].value_counts().to_dict() == {
        "paraphrase": 4 + 4 + 5,
        "other relation": 3,
        "other subject": 2,
    }
    own = pairs[pairs["group_id"] == "father/zeus"].set_index("pair")
    assert own["original"].eq("Who was the father of Zeus?").all()
    reworded = table["question_id"].str.match("father/zeus#[1-4]")
    assert own.loc["paraphrase", "question"].tolist() == table.loc[reworded, "question"].tolist()
    assert own.loc["other subject", "question"] == "Who was the father of Thor?"
    # Persons have parents and occupations among the embedded facts, and no capitals.
    questions_of = {"Who was the mother of Zeus?", "What was the occupation of Zeus?"}
    assert own.loc["other relation", "question"] in questions_of


def test_quality_pairs_never_ask_the_same_and_need_no_embedded_fact():
    table = paraphrased(load_facts(relations=load_paraphrases()["relation"].unique())).table
    pairs = quality_pairs(table)
    assert (pairs["original"] != pairs["question"]).all()
    one = pairs[pairs["pair"] != "paraphrase"].groupby(["group_id", "pair"]).size()
    assert one.eq(1).all()
    assert len(one) == 2 * table["group_id"].nunique()
    shuffled = quality_pairs(table.sample(frac=1, random_state=0))
    key = ["group_id", "pair", "question"]
    assert set(map(tuple, shuffled[key].to_numpy())) == set(map(tuple, pairs[key].to_numpy()))
    mine = quality_pairs(groups({"sport": 2, "capital": 1}))
    assert mine["pair"].value_counts().to_dict() == {"paraphrase": 6, "other subject": 2}
    # Capitals, cities, colors and composers share no subject with another relation.
    alone = pairs.loc[pairs["pair"] == "nonsense", "relation"].unique()
    assert sorted(alone) == ["capital", "capital_of", "color", "composer", "country"]


def test_questions_are_the_facts_with_paraphrases_or_your_own(write) -> None:
    table, counts, _ = wordings.load_named_questions()
    templates = wordings.load_paraphrases()
    own = wordings.paraphrased(load_facts(relations=templates["relation"].unique()))
    pd.testing.assert_frame_equal(table, own.table)
    assert counts == own.counts
    path = write("group_id,question,answers\na,Who?,Ann\na,Which person?,Ann\n")
    table, _, _ = wordings.load_named_questions(str(path))
    assert table["relation"].tolist() == ["own", "own"]
    with pytest.raises(ValueError, match="'pop_qa'; known are"):
        wordings.load_named_questions("pop_qa")


def test_the_embedded_questions_of_popqa_are_asked_in_our_wordings():
    table, counts, *_ = wordings.load_named_questions("popqa:data/popqa.csv")
    own = table[table["variant"] == 0].set_index("group_id")
    assert len(own) == 1000
    assert own["relation"].nunique() == 16
    first = own.loc["composer/10207"]  # the first line of the file
    assert first["question"] == "Who was the composer of Easy Living?"
    assert first["answers"] == ["Ralph Rainger", "Ralph Reichenthal"]
    assert first["popularity"] == 1381
    assert first["log_popularity"] == pytest.approx(math.log(1381))
    other = table[table["group_id"] == "composer/10207"].set_index("variant")["question"]
    assert other[1] == "Which composer wrote Easy Living?"
    each = load_paraphrases().groupby("relation").size()
    full = own["relation"].map(each).sum() + len(own)
    assert len(table) == full
    assert counts["repeated_questions"] == 0
