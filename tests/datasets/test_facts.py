import re
import unicodedata

import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust.datasets import facts as fact_tables
from factrobust.datasets.facts import (
    DOMAINS,
    accepted_answers,
    load_facts,
    load_relations,
    with_questions,
)
from factrobust.tables import ANSWER_TYPES, FactsError


@pytest.fixture(scope="module")
def facts() -> pd.DataFrame:
    return load_facts()


def test_the_embedded_facts_are_as_many_and_as_even_as_is_promised(facts):
    assert tuple(facts.columns) == fact_tables.COLUMNS
    assert facts["popularity"].between(0, 8).all()
    assert (facts[["subject", "object", "source", "popularity_source"]] != "").all().all()
    assert not any(fact.object in fact.aliases for fact in facts.itertuples())
    assert facts["fact_id"].str.fullmatch(r"[a-z_]+/[a-z0-9-]+").all()
    numerical = facts.loc[facts["answer_type"] == "Numerical", "object"]
    assert numerical.str.fullmatch(r"\+?\d+").all()
    assert len(facts) >= 1000
    assert {*facts["domain"]} == {*DOMAINS}
    assert facts["answer_type"].value_counts().reindex(ANSWER_TYPES).min() >= 150
    sizes = facts["relation"].value_counts()
    assert sizes.reindex(load_relations().query("popqa").index).min() >= 25
    assert sizes.max() <= 90


def words(text: str) -> str:
    """Small letters without accents, between blanks."""
    letters = unicodedata.normalize("NFKD", text.casefold())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " " + " ".join(re.findall(r"[^\W_]+", bare.replace("'", ""))) + " "


def test_no_question_holds_its_answer(facts):
    asked = with_questions(facts)
    for fact, accepted in zip(asked.itertuples(), accepted_answers(asked), strict=True):
        text = words(f"{fact.question} {fact.prefix}")
        assert not any(words(name) in text for name in accepted), fact.fact_id


def test_facts_known_by_hand(facts):
    known = frame("""
        fact_id                      answer            also
        capital/kenya                Nairobi           -
        capital/united-states        Washington, D.C.  Washington
        capital/ukraine              Kyiv              Kiev
        capital_of/canberra          Australia         -
        country/chicago              United States     the United States
        continent/brazil             South America     -
        currency/japan               yen               Japanese yen
        calling_code/germany         +49               49
        atomic_number/oxygen         8                 -
        chemical_symbol/gold         Au                -
        count/days-in-a-week         7                 seven
        director/jaws                Steven Spielberg  Spielberg
        author/war-and-peace         Leo Tolstoy       Tolstoy
        event_year/battle-of-hastings  1066            -
        mother/elizabeth-i-of-england  Anne Boleyn     -
    """)
    for row in known.merge(facts, on="fact_id", how="left").itertuples():
        assert row.object == row.answer
        assert row.also == "-" or row.also in row.aliases


def test_disputed_capitals_and_two_shot_examples_are_left_out(facts):
    capitals = facts.loc[facts["relation"] == "capital", "subject"]
    assert not capitals.isin(["South Africa", "Bolivia", "Israel", "Sri Lanka", "Singapore"]).any()
    assert not facts["subject"].str.contains("Mona Lisa|Red Planet").any()


def test_own_file_needs_three_columns(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "\ufeffsubject,relation,object,note,aliases,popularity\n"
        " the Comoros ,capital,Moroni,a note,Moroni city| Moroni ||Mroni,12345\n"
        '"Symphony\nNo. 5",composer,Beethoven,,,\n',
        encoding="utf-8",
    )
    mine = load_facts(path)
    expected = """
        fact_id                 answer_type  domain     note    popularity
        capital/comoros         Location     geography  a note  12345
        composer/symphony-no-5  Human        arts       -       NaN
    """
    assert_rows(mine.replace({"note": {"": "-"}}), expected)
    assert mine["subject"].tolist() == ["the Comoros", "Symphony\nNo. 5"]
    assert accepted_answers(mine) == [["Moroni", "Moroni city", "Mroni"], ["Beethoven"]]
    path.write_text("subject,relation,object\nMali,capital,Bamako\n")
    mine = load_facts(path)
    assert mine.loc[0, ["aliases", "source"]].tolist() == [[], ""]
    assert mine["popularity"].isna().all()


RELATION_HEADER = "relation,question,prefix,answer_type,domain,popqa\n"
HEADER = "fact_id,subject,relation,object,aliases,answer_type,domain,popularity\n"
GOOD = "a/1,Kenya,capital,Nairobi,,Location,geography,4\n"
TWICE = "subject,relation,object,object\nK,capital,N,N\n"
# Of several bad lines the first is named, as an editor counts them.
SEVERAL = 'subject,relation,object\n"two\nlines",capital,x\nMali,capital,\n,capital,y\n'


def changed(old: str, new: str, before: str = "") -> str:
    return HEADER + before + GOOD.replace(old, new)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("subject,relation\nKenya,capital\n", "line 1: .*'object' is missing.* add it to the"),
        ("subject,relation,objct\nKenya,capital,x\n", "line 1: .*'object'.*rename 'objct'"),
        ("subject,relation,object,alias\nK,capital,N,x\n", "line 1: .*rename 'alias'"),
        (TWICE, "line 1: .*occurs twice.*rename"),
        (HEADER + GOOD + "\n" + GOOD, "line 4: .*'Kenya' is already in line 2.*delete one"),
        (changed("Kenya", "Mali", GOOD), "line 3: .*'a/1' is already.*delete one"),
        (changed("Kenya", "KENYA", GOOD), "line 3: .*already in line 2.*aliases"),
        (changed(",4", ",high"), "line 2: .*popularity 'high' is not a.*write one"),
        (changed(",4", ",-1"), "line 2: .*popularity '-1' is not a.*leave it empty"),
        (changed("Nairobi", " "), "line 2: .*object cell is empty.*write the answer"),
        (SEVERAL, "line 4: .*object cell is empty.*write the answer"),
        (changed("capital", "captial"), "line 2: .*'captial' is unknown.*choose one"),
        (changed("Location", "Place"), "line 2: .*'Place' is unknown.*Entity, Human"),
        (changed("Nairobi", "Nairobi, city"), "line 2: .*9 cells.*double quotes"),
        (changed("Nairobi", '"Nairobi'), "line 2: .*not a CSV row.*close the double"),
        (HEADER, ".*no rows.*add at least one row"),
        ("", r".*is empty.*write a header \(subject,relation,object\)"),
        (changed("Nairobi", "SÃ£o TomÃ©"), "line 2: .*holds damaged letters.*type it anew"),
        (changed("Nairobi,", 'Nairobi,"[""a"", b"'), "line 2: .*looks like a list.*join the names"),
    ],
)
def test_bad_file_gives_one_sentence(tmp_path, text, fault):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FactsError, match=rf"^{path}(, )?{fault}[^\n]*\.$"):
        load_facts(path)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("river,Which river?,The river of {subject} is,Location", "question 'Which river\\?' must"),
        ("river,{subject}?,{subject} {x},Location", "prefix .* no other braces"),
        ("The River,{subject}?,{subject} is,Location", "'The River' is no short name; write"),
        ("river,{subject}?,{subject} is,Place", "'Place' is unknown; choose one of Entity"),
        ("sea,{subject}?,{subject} is,Entity\nsea,{subject}?,{subject} is,Entity", "already in"),
    ],
)
def test_bad_relation_gives_one_sentence(tmp_path, row, what):
    path = tmp_path / "mine.csv"
    rows = row.replace("\n", ",arts,false\n")
    path.write_text(f"{RELATION_HEADER}{rows},arts,false\n")
    with pytest.raises(FactsError, match=f"^{path}, line {2 + row.count(chr(10))}: .*{what}"):
        fact_tables.read_relations(path)


def test_embedded_questions() -> None:
    """No type is given away by two openings alone, and every type has questions left when relations
    are held out."""
    train = fact_tables.load_question_types("train")
    test = fact_tables.load_question_types("test")
    assert len(train) == 403
    assert test["answer_type"].value_counts().tolist() == [25] * 4
    asked = pd.concat([train, test], ignore_index=True)
    assert sorted(asked["answer_type"].value_counts()) == [125, 126, 126, 126]
    opening = asked["question"].str.split().str[0]
    assert pd.crosstab(opening, asked["answer_type"]).loc[["What", "Which"]].min().min() >= 4
    named = asked[asked["relation"] != ""]
    types = load_relations().loc[named["relation"], "answer_type"]
    assert (types.array == named["answer_type"]).all()
    left = asked.loc[asked["relation"] == "", "answer_type"].value_counts()
    assert left.sum() == 334
    assert left.min() >= 45
    assert not asked["question"].str.casefold().duplicated().any()
