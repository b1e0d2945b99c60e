import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from factrobust.context import facts as contexts
from factrobust.context.facts import (
    COLUMNS,
    PASSAGES,
    load_context_questions,
    rivals,
)
from factrobust.context.rules import right
from factrobust.datasets.facts import load_facts, load_relations
from factrobust.datasets.published import load_published
from factrobust.paths import files_read
from factrobust.schemas import ContextResults
from factrobust.tables import FactsError

BASE = """category,question,prefix
city,Where is {object}?,{object} is in
river,How long is {object}?,The length of {object} is
city,Who founded {object}?,The founder was
"""
OBJECTS = """object,category,popularity
Kyoto,city,4.5
The Nile,river,
Oslo,city,5
The Rhine,river,3
"""
# As the thesis writes them; an empty line between.
THESIS = """What country is {city} in? {city} is in

 Who, if anyone, dug {river}? The digger of {river} was
Is {city} old? {city} dates from
"""
OWN = """category,question,prefix,right_answers
city,Where is {object}?,{object} is in,one
city,What is {object} known for?,{object} is known for,several
river,How long is {object}?,{object} has a length of,
"""


@pytest.fixture
def files(tmp_path):
    def write(base=BASE, objects=OBJECTS, name="base.csv"):
        paths = tmp_path / name, tmp_path / "objects.csv"
        for path, text in zip(paths, (base, objects), strict=True):
            path.write_text(text, encoding="utf-8")
        return paths

    return write


@pytest.fixture(scope="module")
def embedded():
    return load_context_questions()


def test_embedded_questions_are_table_7s(embedded):
    assert tuple(embedded) == COLUMNS
    assert embedded["question_id"].is_unique
    assert embedded["question"].is_unique
    assert embedded["answers"].map(len).eq(0).all()
    assert set(embedded["right_answers"]) == {"one", "several"}
    published = load_published("4-context-table-7")
    wide = published.pivot(
        index="category",
        columns="quantity",
        values="value",
    )
    table = contexts.describe(embedded)
    assert table.index.tolist() == published["category"].drop_duplicates().tolist()
    for column in ("base_questions", "objects", "questions"):
        assert table[column].to_dict() == wide[column].to_dict()
    assert table.loc["total", "questions"] == 4760
    assert table.loc["person", "example"] == (
        "On what date was Ada Lovelace born? Ada Lovelace was born on ..."
    )
    # Their sentences can be completed.
    for column in ("question", "prefix"):
        assert not embedded[column].str.contains(r"[{}]|  ").any()
    assert embedded["question"].str.endswith("?").all()
    assert embedded["question"].str.count(r"\?").eq(1).all()
    # A prefix that ended in a space would put a token boundary inside the answer.
    assert embedded["prefix"].str.contains(r"\w$").all()
    named = zip(embedded["object"], embedded["question"], embedded["prefix"], strict=True)
    assert all(name in question and name in prefix for name, question, prefix in named)


def test_limits_are_even_and_nested(embedded):
    small = load_context_questions(limit=2)
    large = load_context_questions(limit=4)
    assert small.groupby("base_id").size().eq(2).all()
    assert len(large) == 400
    assert set(small["question_id"]) < set(large["question_id"])
    assert small["object"].nunique() > 100  # not the same two for every base question
    other = load_context_questions(limit=2, seed=1)
    assert set(other["question_id"]) != set(small["question_id"])
    order = embedded["question_id"].tolist()
    assert large["question_id"].tolist() == [q for q in order if q in set(large["question_id"])]
    pd.testing.assert_frame_equal(load_context_questions(limit=70), embedded)
    with pytest.raises(ValueError, match=r"^limit is 1; give a whole number from 2 up"):
        load_context_questions(limit=1)


def test_own_files(files):
    table = load_context_questions(*files())
    assert table["question_id"].tolist() == [
        *("city-01/kyoto", "city-01/oslo", "river-01/the-nile", "river-01/the-rhine"),
        *("city-02/kyoto", "city-02/oslo"),
    ]
    assert table.loc[2, "question"] == "How long is The Nile?"
    assert table.loc[3, "prefix"] == "The length of The Rhine is"
    assert table.loc[4, "prefix"] == "The founder was"  # no slot is needed there
    assert table["attribute"].eq("").all()
    np.testing.assert_array_equal(table["popularity"], [4.5, 5, np.nan, 3, 4.5, 5])
    named = BASE.replace("category,", "base_id,attribute,category,").splitlines()
    named[1:] = [f"b{n},a{n},{line}" for n, line in enumerate(named[1:])]
    table = load_context_questions(*files("\n".join(named)))
    assert table["base_id"].unique().tolist() == ["b0", "b1", "b2"]
    assert table.loc[0, ["question_id", "attribute"]].tolist() == ["b0/kyoto", "a0"]


def test_the_thesis_own_files(files, monkeypatch):
    paths = files(THESIS, name="base_questions.txt")
    monkeypatch.setattr(contexts, "ROOT", paths[0].parents[1])  # which a path begins in
    table = contexts.load_named_context(f"thesis:{paths[0].parent.name}")
    pd.testing.assert_frame_equal(table, contexts.load_named_context(f"thesis:{paths[0].parent}"))
    assert set(paths) <= dict(files_read).keys()
    assert tuple(table) == COLUMNS
    assert table["base_id"].tolist() == ["city-01"] * 2 + ["river-01"] * 2 + ["city-02"] * 2
    assert table.loc[[0, 3], ["question", "prefix"]].to_numpy().tolist() == [
        ["What country is Kyoto in?", "Kyoto is in"],
        ["Who, if anyone, dug The Rhine?", "The digger of The Rhine was"],
    ]


@pytest.mark.parametrize(
    ("changed", "old", "new", "what"),
    [
        ("base", "is {object}?", "is it?", r"base.csv, line 2: the question .* has no slot"),
        ("base", "{object}?", "{object}", "line 2: the question .* has no question mark"),
        ("base", "{object}?", "{city} {object}?", "line 2: the question .* has braces other"),
        ("base", "{object} is in", "{city} is in", "line 2: the prefix .* has braces other"),
        ("base", "{object} is in", "", "line 2: the prefix cell is empty"),
        (
            "base",
            "\nriver,",
            "\nlake,",
            r"line 3: the category 'lake' has 0 objects in .*objects.csv",
        ),
        ("objects", "The Rhine,river,3\n", "", r"base.csv, line 3: the category 'river' has 1 obj"),
        (
            "objects",
            "Oslo,",
            "kyoto!,",
            r"line 4: category 'city', name 'kyoto' is already in line 2",
        ),
        ("objects", "4.5", "often", "line 2: the popularity 'often' is not a number of 0 or more"),
        ("objects", "Kyoto,", ",", "line 2: the object cell is empty"),
        ("thesis", "{city} in? {city}", "it? It", r"base.txt, line 1: the category cell is"),
        ("thesis", "old?", "old.", "line 4: the question .* has no question mark at its end"),
        ("thesis", "old?", "on {river}?", "line 4: the question .* has braces other than those of"),
        ("thesis", "{city} dates from", "", "line 4: the prefix cell is empty"),
    ],
)
def test_bad_files_give_one_sentence(files, changed, old, new, what):
    texts = {"base": BASE, "objects": OBJECTS, "thesis": THESIS}
    assert old in texts[changed]
    texts[changed] = texts[changed].replace(old, new, 1)
    thesis = changed == "thesis"
    base = texts["thesis" if thesis else "base"]
    with pytest.raises(FactsError, match=what) as caught:
        load_context_questions(*files(base, texts["objects"], "base.txt" if thesis else "base.csv"))
    assert "\n" not in str(caught.value)


def test_facts_are_questions_whose_truth_is_known():
    facts = load_facts(relations=["capital", "author"])
    table = contexts.facts_as_questions(facts)
    assert tuple(table) == (*COLUMNS, "answer_type")
    kenya = table.set_index("question_id").loc["capital/kenya"]
    columns = ["base_id", "attribute", "category", "object", "question", "answers"]
    asked = "What is the capital of Kenya?"
    assert kenya[columns].tolist() == [*["capital"] * 2, "geography", "Kenya", asked, ["Nairobi"]]
    assert kenya["popularity"] > 0
    counts = contexts.describe(table)["questions"].to_dict()
    assert counts == facts.groupby("domain").size().to_dict() | {"total": len(facts)}


def test_own_base_questions_say_how_many_answers_are_right(files):
    base = contexts.read_base_questions(files(OWN)[0])
    assert tuple(base) == tuple(contexts.BASE_SCHEMA.columns)
    assert base["base_id"].tolist() == ["city-01", "city-02", "river-01"]
    assert base["right_answers"].to_dict() == {2: "one", 3: "several", 4: ""}  # by line
    with pytest.raises(FactsError, match="line 3: the right_answers 'many' is unknown"):
        contexts.read_base_questions(files(OWN.replace("several", "many"))[0])
    text = "base_id,category,question,prefix\n" + "b,city,Where is {object}?,It is in\n" * 2
    with pytest.raises(FactsError, match="line 3: base_id 'b' is already in line 2"):
        contexts.read_base_questions(files(text)[0])


# -- the thesis's own numbers ----------------------------------------------------------------------


def counted(number: int) -> pd.DataFrame:
    return load_published(f"4-context-table-{number}")


def test_sources_add_up_to_all_questions():
    by_model = counted(8).set_index(["model", "source"])["count"]
    assert by_model.groupby("model").sum().eq(4760).all()
    by_category = pd.concat([counted(9), counted(10)])
    sums = by_category.groupby(["model", "source"])["count"].sum()
    assert sums.sort_index().equals(by_model.sort_index())
    sizes = load_published("4-context-table-7").query("quantity == 'questions'")
    per = by_category.groupby(["category", "model"])["count"].sum().unstack()
    for category, size in zip(sizes["category"][:-1], sizes["value"][:-1], strict=True):
        assert per.loc[category].eq(size).all()
    assert by_category["check"].eq("ok").all()


def test_tables_that_contradict_each_other_say_so():
    others = counted(13).set_index("model")
    printed = counted(8).query("source == 'other'").set_index("model")["count"]
    differ = others["count"] != printed.loc[others.index]
    assert others.index[differ].tolist() == ["flan-t5-xl", "flan-t5-xxl", "llama-3.1-8B"]
    assert (others["check"] != "ok").equals(differ.rename("check"))
    kinds = counted(14).query("label != ''").groupby("model")["count"].sum()
    assert kinds.to_dict() == others["count"].to_dict()
    # The groups of the perplexity tables are not the answers' sources.
    for number in (11, 12):
        rows = counted(number).query("statistic == 'count'")
        assert rows.groupby("model")["value"].sum().eq(4760).all()
        assert rows["note"].str.contains("not the source").all()


def facts_about(answers, base="capital", popularity=None):
    """Questions about the capitals of countries with these accepted answers."""
    rows = [
        (f"{base}/{name}", base, "geography", f"The {base} of {name} is", accepted)
        for name, accepted in answers.items()
    ]
    table = pd.DataFrame(rows, columns=["question_id", "base_id", "category", "prefix", "answers"])
    return table.assign(popularity=popularity or 1.0)


CAPITALS = facts_about({"Kenya": ["Nairobi"], "Peru": ["Lima", "Ciudad de los Reyes"]})


def test_true_irrelevant_and_false_contexts_by_hand():
    languages = facts_about({"Kenya": ["Swahili"], "Peru": ["Spanish"]}, "language")
    made = contexts.known_contexts(CAPITALS, pd.concat([CAPITALS, languages]))
    assert made.columns.tolist() == ["question_id", "context", "sentence", "stated"]
    assert made.to_numpy().tolist() == [
        ["capital/Kenya", "true", "The capital of Kenya is Nairobi", "Nairobi"],
        ["capital/Kenya", "irrelevant", "The capital of Peru is Lima", "Lima"],
        ["capital/Kenya", "false", "The capital of Kenya is Lima", "Lima"],
        ["capital/Peru", "true", "The capital of Peru is Lima", "Lima"],
        ["capital/Peru", "irrelevant", "The capital of Kenya is Nairobi", "Nairobi"],
        ["capital/Peru", "false", "The capital of Peru is Nairobi", "Nairobi"],
    ]


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        (["Naples"], ["the naples"]),  # the same but for case and articles
        (["Burma"], ["Myanmar", "Burma"]),  # mine is another name of the other
        (["Myanmar", "Burma"], ["Burma"]),  # the other is another name of mine
        (["1,000"], ["1000"]),
        (["Washington"], ["Washington, D.C."]),  # the other one states mine
    ],
)
def test_an_answer_that_would_be_right_is_never_stated(mine, other):
    questions = facts_about({"a": mine, "b": other, "c": ["Lima"]})
    for seed in range(20):
        made = contexts.known_contexts(questions[:2], questions, seed=seed)
        assert (made["stated"][made["context"] != "true"] == "Lima").all()
    assert rivals(questions[:2], questions) == [["Lima"], ["Lima"]]


def test_a_draw_depends_on_the_facts_only():
    pool = contexts.facts_as_questions(load_facts(relations=["capital", "author"]))
    made = contexts.known_contexts(pool[::9], pool)
    alone = contexts.known_contexts(pool[27::-9], pool.sample(frac=1, random_state=0))
    both = made.merge(alone, on=["question_id", "context"], suffixes=("", "_alone"))
    assert len(both) == 12
    assert both["sentence"].equals(both["sentence_alone"].rename("sentence"))
    again = contexts.known_contexts(pool[::9], pool, seed=1)
    assert not again["stated"].equals(made["stated"])


def test_rivals_are_the_nearest_in_popularity():
    names = {
        "a": ["A1"],
        "b": ["B1"],
        "c": ["C1"],
        "d": ["D1"],
        "e": ["B1"],
        "f": ["F1"],
    }
    pool = facts_about(names, popularity=[5.0, 5.1, 4.8, 7.0, 5.2, 1.0])
    assert rivals(pool[:1], pool[::-1]) == [["B1", "C1", "D1", "F1"]]  # B1 once
    assert rivals(pool[3:4], pool) == [["B1", "A1", "C1", "F1"]]


@pytest.fixture(scope="module")
def pool():
    return contexts.facts_as_questions(load_facts())


@pytest.fixture(scope="module")
def told(pool):
    asked = pool[pool["question_id"].isin(load_facts(limit=33)["fact_id"])]
    return contexts.passages(asked, pool).merge(pool, on="question_id")


def test_passages_are_what_their_kind_says(told):
    plain = []  # whether it is said in the question's words
    assert told["context"].value_counts().to_dict() == dict.fromkeys(PASSAGES, 33)
    assert (
        (told["sentence"].str.count(r"\. ") + 1).between(3, 12).all()
    )  # 10, and some names have one
    for row in told.to_dict("records"):
        own = f"{row['prefix']} {row['stated']}"
        kind = row["context"]
        text = row["sentence"]
        if kind in ("true", "false"):
            assert right(row["stated"], row["answers"]) == (kind == "true")
            plain.append(own in text)
        elif kind in ("negated", "missing"):
            assert row["stated"] == ""
            assert ("It is not true that" in text) == (kind == "negated")
            denied = text.replace("It is not true that ", "not ").lower()
            assert denied.count(row["prefix"].lower()) == (kind == "negated")
    assert binom.cdf(sum(plain), len(plain), 0.5) == pytest.approx(0.5, abs=0.4999)
    assert set(contexts.paraphrases()) == set(load_relations().index)


def test_every_slot_is_exchanged_for_another_of_its_kind(told, pool):
    of_relation = pool.groupby("base_id")["answers"].agg(lambda lists: {x[0] for x in lists})
    for row in told.to_dict("records"):
        texts = [row["sentence"], row["swap_1"], row["swap_2"]]
        assert len(row["slots"]) > 0
        assert len(set(texts)) == 3
        for slot in row["slots"]:
            names = [names[0] for names in slot]
            assert len(set(names)) == 3
            assert set(names[1:]) <= of_relation[row["base_id"]]
            assert not any(right(name, row["answers"]) for name in names[1:])
            pairs = zip(names, texts, strict=True)
            assert all(name.lower() in text.lower() for name, text in pairs)


def test_a_placebo_exchanges_an_answer_that_is_in_no_slot(told, pool):
    relations = dict(zip(pool["object"], pool["base_id"], strict=True))
    assert relations
    some = told[told["placebo"] != ""]
    assert len(some) > 0.9 * len(told)
    for row in some.to_dict("records"):
        before = row["sentence"].split(". ")
        after = row["placebo"].split(". ")
        assert row["placebo"] != row["sentence"]
        # One stretch of words is another, and what stands in the slots is still there.
        for slot in row["slots"]:
            assert slot[0][0].lower() in row["placebo"].lower()
        if len(before) == len(after):
            apart = [one for one, two in zip(before, after, strict=True) if one != two]
            assert len(apart) == 1
            assert not right(apart[0], row["answers"])


def test_a_passage_of_slots_alone_has_no_placebo():
    alike = facts_about({name: [f"{name}city"] for name in ("Kenya", "Peru", "Chad", "Oman")})
    alike = alike.assign(object=["Kenya", "Peru", "Chad", "Oman"], category="geography")
    made = contexts.passages(alike[:1], alike)
    assert made["placebo"].eq("").all()
    assert made["slots"].map(len).gt(0).all()


STORED = (
    "Num,Category,Base_Question,Thing,Object,Question,question,Prefix,parametric,base_proba,"
    "counterfactual,base_cf_proba,contextual,ctx_proba,ctx_param_proba,ctx_cf_proba,comparison\n"
    "0,person,Who is {person}?,Ada Lovelace,,Q: Who is Ada Lovelace?,x,She is,a poet,1.5,a singer,"
    "2.5,a singer,1.25,3.5,1.25,Contextual\n"
    '1,person,Who is {person}?,Zeus,,Q: Who is Zeus?,x,He is,,nan,"a poet, \nborn",2,a god,1,,1.75,'
    "Parametric\n"
)


def test_results_of_elsewhere(tmp_path):
    path = tmp_path / "llama.csv"
    path.write_text(STORED, encoding="utf-8")
    table = ContextResults.validate(contexts.read_results(path))
    assert table.columns.is_unique
    assert "question" not in table
    assert table[["model", "object", "question_id"]].to_numpy().tolist() == [
        ["llama", "Ada Lovelace", "Who is {person}?/ada-lovelace"],
        ["llama", "Zeus", "Who is {person}?/zeus"],
    ]
    assert table.loc[0, ["p0", "p1", "p2", "p3", "p4"]].tolist() == [1.5, 2.5, 3.5, 1.25, 1.25]
    assert table.loc[1, ["p0", "p2"]].isna().all()  # of an empty answer
    again = tmp_path / "again.csv"
    table.to_csv(again, index=False)
    assert contexts.read_results(again).equals(table)


def test_results_in_the_thesiss_older_layout(tmp_path):
    """The model ends the columns' names; two models in a file are a row each."""
    plain = tmp_path / "llama.csv"
    path = tmp_path / "older.csv"
    plain.write_text(STORED, encoding="utf-8")
    table = contexts.read_results(plain)
    names = (
        "parametric",
        "base_proba",
        "counterfactual",
        "base_cf_proba",
        "contextual",
        "ctx_proba",
    )
    header, *rows = STORED.splitlines(keepends=True)
    older = ",".join(
        f"{name}-llama" if name in (*names, "ctx_param_proba", "ctx_cf_proba") else name
        for name in header.split(",")
    )
    path.write_text("".join([older, *rows]), encoding="utf-8")
    assert contexts.read_results(path).equals(table)
    wide = pd.read_csv(path, dtype=str, keep_default_na=False)
    wide = wide.rename(columns=lambda name: name.replace("-llama", "-llama-70b")).join(
        wide[[name for name in wide if name.endswith("-llama")]]
    )
    wide.to_csv(path, index=False)
    both = contexts.read_results(path)
    assert both["model"].tolist() == ["llama-70b"] * 2 + ["llama"] * 2
    assert both[both["model"] == "llama"].reset_index(drop=True).equals(table)
    wide.rename(columns={"ctx_cf_proba-llama": "lost"}).to_csv(path, index=False)
    with pytest.raises(FactsError, match=r"older.csv: these columns are missing: p3; add them"):
        contexts.read_results(path)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("base_cf_proba,", "cf,", r"llama.csv: these columns are missing: p1; add them, by"),
        ("2.5,", ",", "line 2: the perplexity p1 of .* is '', and not a number from 1 up"),
        ("3.5,", "often,", r"line 2: the perplexity p2 of the answer 'a poet' is 'often'"),
        ("a god,1,", "a god,0.9,", "line 3: the perplexity p4 of the answer 'a god' is '0.9'"),
    ],
)
def test_a_bad_file_of_results_gives_one_sentence(tmp_path, old, new, what):
    path = tmp_path / "llama.csv"
    path.write_text(STORED.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=what):
        contexts.read_results(path)


def test_questions_by_name():
    questions = contexts.load_named_context("embedded", limit=2)
    assert len(questions) == 200
    theirs = contexts.load_named_context("thesis", limit=2)
    assert theirs["base_id"].nunique() == 9
    assert set(theirs["question_id"]) <= set(questions["question_id"])  # the same objects
    for name in ("theses", "thesis:"):
        wrong = f"questions is '{name}'; write 'embedded', 'thesis', 'world', 'world-1', "
        with pytest.raises(ValueError, match=wrong):
            contexts.load_named_context(name)
