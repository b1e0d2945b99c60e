import re
import unicodedata

import pandas as pd
import pytest
from frames import frame

from factrobust.datasets import facts as fact_tables
from factrobust.datasets.facts import DOMAINS, answers, load_facts, load_relations, questions
from factrobust.tables import ANSWER_TYPES, FactsError


@pytest.fixture(scope="module")
def facts() -> pd.DataFrame:
    return load_facts()


def test_columns_and_types(facts):
    assert tuple(facts.columns) == fact_tables.COLUMNS
    assert facts.notna().all().all()
    assert facts["popularity"].dtype == float
    assert facts["popularity"].between(0, 8).all()
    assert (facts[["subject", "object", "source", "popularity_source"]] != "").all().all()
    assert facts["aliases"].map(lambda value: isinstance(value, list)).all()
    assert all(fact.object not in fact.aliases for fact in facts.itertuples())
    assert all(alias == alias.strip() != "" for aliases in facts["aliases"] for alias in aliases)
    assert all(re.fullmatch(r"[a-z_]+/[a-z0-9-]+", name) for name in facts["fact_id"])
    numerical = facts.loc[facts["answer_type"] == "Numerical", "object"]
    assert numerical.str.fullmatch(r"\+?\d+").all()
    # Counts that are promised.
    assert len(facts) >= 1000
    assert set(facts["domain"]) == set(DOMAINS)
    assert facts["answer_type"].value_counts().reindex(ANSWER_TYPES).min() >= 150
    sizes = facts["relation"].value_counts()
    assert sizes.reindex(load_relations().query("popqa").index).min() >= 25
    assert sizes.max() <= 90


def words(text: str) -> str:
    text = unicodedata.normalize("NFKD", text.casefold())
    text = "".join(c for c in text if not unicodedata.combining(c)).replace("'", "")
    return " " + " ".join(re.findall(r"[^\W_]+", text)) + " "


def test_no_question_holds_its_answer(facts):
    asked = questions(facts)
    leaks = [
        fact.fact_id
        for fact, accepted in zip(asked.itertuples(), answers(asked), strict=True)
        if any(words(name) in words(f"{fact.question} {fact.prefix}") for name in accepted)
    ]
    assert leaks == []


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
    columns = ["fact_id", "subject", "answer_type", "domain", "note"]
    assert mine[columns].to_numpy().tolist() == [
        ["capital/comoros", "the Comoros", "Location", "geography", "a note"],
        ["composer/symphony-no-5", "Symphony\nNo. 5", "Human", "arts", ""],
    ]
    assert answers(mine) == [["Moroni", "Moroni city", "Mroni"], ["Beethoven"]]
    assert mine["popularity"].fillna(-1).tolist() == [12345, -1]
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
    ("text", "where", "what", "remedy"),
    [
        ("subject,relation\nKenya,capital\n", "line 1", "'object' is missing", "add it to the"),
        ("subject,relation,objct\nKenya,capital,x\n", "line 1", "'object'", "rename 'objct'"),
        ("subject,relation,object,alias\nK,capital,N,x\n", "line 1", "'aliases'", "rename 'alias'"),
        (TWICE, "line 1", "occurs twice", "rename"),
        (HEADER + GOOD + "\n" + GOOD, "line 4", "'Kenya' is already in line 2", "delete one"),
        (changed("Kenya", "Mali", GOOD), "line 3", "'a/1' is already", "delete one"),
        (changed("Kenya", "KENYA", GOOD), "line 3", "already in line 2", "aliases"),
        (changed(",4", ",high"), "line 2", "popularity 'high' is not a", "write one"),
        (changed(",4", ",-1"), "line 2", "popularity '-1' is not a", "leave it empty"),
        (changed("Nairobi", " "), "line 2", "object cell is empty", "write the answer"),
        (SEVERAL, "line 4", "object cell is empty", "write the answer"),
        (changed("capital", "captial"), "line 2", "'captial' is unknown", "choose one"),
        (changed("Location", "Place"), "line 2", "'Place' is unknown", "Entity, Human"),
        (changed("Nairobi", "Nairobi, city"), "line 2", "9 cells", "double quotes"),
        (changed("Nairobi", '"Nairobi'), "line 2", "not a CSV row", "close the double"),
        (HEADER, "", "no rows", "add at least one row"),
        ("", "", "is empty", r"write a header \(subject,relation,object\)"),
        (
            "subject,relation\nK,capital\n",
            "line 1",
            "'object' is missing",
            "there are subject, relation",
        ),
        (changed("Nairobi", "SÃ£o TomÃ©"), "line 2", "holds damaged letters", "type it anew"),
        (changed("Nairobi", "\u200b"), "line 2", "object cell is empty", "write the answer"),
        (changed("Nairobi", "Nai\0robi"), "line 2", "there is a NUL character", "save it anew"),
        (
            changed("Nairobi,", 'Nairobi,"[""a"", b"'),
            "line 2",
            "looks like a list",
            "join the names",
        ),
    ],
)
def test_bad_file_gives_one_sentence(tmp_path, text, where, what, remedy):
    path = tmp_path / "mine.csv"
    path.write_text(text, encoding="utf-8")
    place = f"{path}, {where}:" if where else f"{path}"
    with pytest.raises(FactsError, match=rf"^{place}.*{what}.*{remedy}.*\.$") as caught:
        load_facts(path)
    assert "\n" not in str(caught.value)


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
    train, test = map(fact_tables.load_question_types, ("train", "test"))
    asked = pd.concat([train, test], ignore_index=True)
    assert asked["answer_type"].value_counts().to_dict() == {
        "Entity": 126,
        "Human": 126,
        "Location": 125,
        "Numerical": 126,
    }
    # No type is given away by these two openings alone.
    opening = asked["question"].str.split().str[0]
    assert pd.crosstab(opening, asked["answer_type"]).loc[["What", "Which"]].min().min() >= 4
    # Named relations are those of the facts table.
    named = asked[asked["relation"] != ""]
    relations = load_relations()
    assert (relations.loc[named["relation"], "answer_type"].array == named["answer_type"]).all()
    # Every type has questions left when relations are held out.
    left = asked.loc[asked["relation"] == "", "answer_type"].value_counts()
    assert left.sum() == 334
    assert left.min() >= 45
    assert len(train) == 403
    assert len(test) == 100
    assert test["answer_type"].value_counts().eq(25).all()
    every = asked["question"]
    assert not every.str.casefold().duplicated().any()
    assert every.str.endswith(("?", ".")).all()
