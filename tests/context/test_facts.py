"""Part 4's questions: the embedded ones, files of one's own, facts, and their contexts."""

import pandas as pd
import pytest
from frames import assert_rows

from factrobust.context import facts as contexts
from factrobust.context.facts import load_context_questions
from factrobust.datasets.facts import load_facts
from factrobust.datasets.published import load_published
from factrobust.paths import files_read
from factrobust.schemas import ContextResults
from factrobust.tables import FactsError

BASE = """category,question,prefix,right_answers
city,Where is {object}?,{object} is in,one
river,How long is {object}?,The length of {object} is,
city,Who founded {object}?,The founder was,several
"""
OBJECTS = """object,category
Kyoto,city
The Nile,river
Oslo,city
The Rhine,river
"""
# As the thesis writes them; an empty line between.
THESIS = """What country is {city} in? {city} is in

 Who, if anyone, dug {river}? The digger of {river} was
Is {city} old? {city} dates from
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


def test_embedded_questions_are_those_of_table_7(embedded):
    table7 = load_published("4-context-table-7")
    printed = table7.pivot(index="category", columns="quantity", values="value").drop("total")
    found = embedded.groupby("category").agg(
        base_questions=("base_id", "nunique"),
        objects=("object", "nunique"),
        questions=("question_id", "nunique"),
    )
    assert found.to_dict() == printed[[*found]].to_dict()
    assert found["questions"].sum() == len(embedded) == 4760


def test_their_sentences_can_be_completed(embedded):
    for column in ("question", "prefix"):
        texts = embedded[column]
        assert not texts.str.contains(r"[{}]|  ").any()
        assert all(map(str.__contains__, texts, embedded["object"]))
    assert embedded["question"].is_unique
    assert embedded["question"].str.fullmatch(r"[^?]*\?").all()
    # A prefix that ended in a space would put a token boundary inside the answer.
    assert embedded["prefix"].str.contains(r"\w$").all()
    assert set(embedded["right_answers"]) == {"one", "several"}
    assert not any(embedded["answers"])


def test_limits_are_even_and_nested(embedded):
    small = load_context_questions(limit=2)
    large = load_context_questions(limit=4)
    assert small.groupby("base_id").size().eq(2).all()
    assert set(small["question_id"]) < set(large["question_id"])
    assert small["object"].nunique() > 100  # not the same two for every base question
    assert not load_context_questions(limit=2, seed=1).equals(small)
    kept = embedded["question_id"].isin(large["question_id"])
    assert large.equals(embedded[kept].reset_index(drop=True))
    with pytest.raises(ValueError, match=r"^limit is 1; give a whole number from 2 up"):
        load_context_questions(limit=1)


def test_own_files(files):
    table = load_context_questions(*files())
    assert_rows(
        table,
        """
        question_id         question                prefix
        city-01/kyoto       Where is Kyoto?         Kyoto is in
        city-01/oslo        Where is Oslo?          Oslo is in
        river-01/the-nile   How long is The Nile?   The length of The Nile is
        river-01/the-rhine  How long is The Rhine?  The length of The Rhine is
        city-02/kyoto       Who founded Kyoto?      The founder was
        city-02/oslo        Who founded Oslo?       The founder was
        """,
    )
    assert table["right_answers"].tolist() == ["one", "one", "", "", "several", "several"]


def test_the_thesiss_own_files(files, monkeypatch):
    paths = files(THESIS, name="base_questions.txt")
    folder = paths[0].parent
    monkeypatch.setattr(contexts, "ROOT", folder.parent)  # which a path begins in
    table = contexts.load_named_context(f"thesis:{folder.name}")
    assert table.equals(contexts.load_named_context(f"thesis:{folder}"))
    assert set(paths) <= dict(files_read).keys()
    assert_rows(
        table,
        """
        base_id   question                        prefix
        city-01   What country is Kyoto in?       Kyoto is in
        city-01   What country is Oslo in?        Oslo is in
        river-01  Who, if anyone, dug The Nile?   The digger of The Nile was
        river-01  Who, if anyone, dug The Rhine?  The digger of The Rhine was
        city-02   Is Kyoto old?                   Kyoto dates from
        city-02   Is Oslo old?                    Oslo dates from
        """,
    )


@pytest.mark.parametrize("name", ["theses", "thesis:"])
def test_an_unknown_name_of_questions(name):
    with pytest.raises(ValueError, match=f"questions is '{name}'; write 'embedded', 'world', "):
        contexts.load_named_context(name)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("is {object}?", "is it?", "base.csv, line 2: the question .* has no slot"),
        ("{object}?", "{object}", "line 2: the question .* has no question mark"),
        ("{object}?", "{city} {object}?", "line 2: the question .* has braces other"),
        ("{object} is in", "{city} is in", "line 2: the prefix .* has braces other"),
        ("{object} is in", "", "line 2: the prefix cell is empty"),
        ("several", "many", "line 4: the right_answers 'many' is unknown"),
        ("\nriver,", "\nlake,", "line 3: the category 'lake' has 0 objects in .*objects.csv"),
        ("The Rhine,river\n", "", "base.csv, line 3: the category 'river' has 1 objects"),
        ("Oslo,", "kyoto!,", "line 4: category 'city', name 'kyoto' is already in line 2"),
        ("Kyoto,", ",", "line 2: the object cell is empty"),
    ],
)
def test_a_bad_file_gives_one_sentence(files, old, new, what):
    base = BASE.replace(old, new, 1)
    objects = OBJECTS.replace(old, new, 1)
    with pytest.raises(FactsError, match=what) as caught:
        load_context_questions(*files(base, objects))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("{city} in? {city}", "it? It", "base.txt, line 1: the category cell is"),
        ("old?", "old.", "line 4: the question .* has no question mark at its end"),
        ("old?", "on {river}?", "line 4: the question .* has braces other than those of"),
    ],
)
def test_a_bad_line_of_the_thesiss_file(files, old, new, what):
    bad = files(THESIS.replace(old, new, 1), name="base.txt")
    with pytest.raises(FactsError, match=what):
        load_context_questions(*bad)


def test_base_questions_have_names_of_their_own(files):
    text = "base_id,category,question,prefix\n" + "b,city,Where is {object}?,It is in\n" * 2
    path, _ = files(text)
    with pytest.raises(FactsError, match="line 3: base_id 'b' is already in line 2"):
        contexts.read_base_questions(path)


def test_the_thesiss_counts_add_up_but_for_table_13():
    counts = {number: load_published(f"4-context-table-{number}") for number in range(8, 15)}
    source = ["model", "source"]
    by_model = counts[8].groupby(source)["count"].sum()
    assert by_model.groupby("model").sum().eq(4760).all()
    by_category = pd.concat([counts[9], counts[10]])
    assert by_category.groupby(source)["count"].sum().equals(by_model)
    others = counts[13].set_index("model")["count"]
    differ = others != by_model.xs("other", level="source")[others.index]
    assert others.index[differ].tolist() == ["flan-t5-xl", "flan-t5-xxl", "llama-3.1-8B"]
    kinds = counts[14].query("label != ''").groupby("model")["count"].sum()
    assert kinds.to_dict() == others.to_dict()


def facts_about(answers, base="capital"):
    """Questions about the capitals of countries with these accepted answers."""
    names = pd.Series([*answers])
    return pd.DataFrame(
        {
            "question_id": f"{base}/" + names,
            "base_id": base,
            "prefix": f"The {base} of " + names + " is",
            "answers": [*answers.values()],
        }
    )


def test_true_irrelevant_and_false_contexts_by_hand():
    capitals = facts_about({"Kenya": ["Nairobi"], "Peru": ["Lima", "Ciudad de los Reyes"]})
    languages = facts_about({"Kenya": ["Swahili"]}, "language")  # without another answer
    both = pd.concat([capitals, languages])
    assert_rows(
        contexts.known_contexts(both, both),
        """
        question_id    context     sentence                         stated
        capital/Kenya  true        The capital of Kenya is Nairobi  Nairobi
        capital/Kenya  irrelevant  The capital of Peru is Lima      Lima
        capital/Kenya  false       The capital of Kenya is Lima     Lima
        capital/Peru   true        The capital of Peru is Lima      Lima
        capital/Peru   irrelevant  The capital of Kenya is Nairobi  Nairobi
        capital/Peru   false       The capital of Peru is Nairobi   Nairobi
        """,
    )


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
        assert made.loc[made["context"] != "true", "stated"].tolist() == ["Lima"] * 4


def test_facts_are_questions_and_a_draw_depends_on_them_alone():
    pool = contexts.facts_as_questions(load_facts(relations=["capital", "author"]))
    kenya = pool.set_index("question_id").loc["capital/kenya"]
    asked = ["capital", "geography", "Kenya", "What is the capital of Kenya?", ["Nairobi"]]
    assert kenya[["base_id", "category", "object", "question", "answers"]].tolist() == asked
    made = contexts.known_contexts(pool[::9], pool)
    alone = contexts.known_contexts(pool[27::-9], pool.sample(frac=1, random_state=0))
    both = made.merge(alone, on=["question_id", "context"])
    assert len(both) == 12
    assert both["sentence_x"].equals(both["sentence_y"])
    other = contexts.known_contexts(pool[::9], pool, seed=1)
    assert not other["stated"].equals(made["stated"])


STORED = (
    "Num,Category,Base_Question,Thing,Object,Question,question,Prefix,parametric,base_proba,"
    "counterfactual,base_cf_proba,contextual,ctx_proba,ctx_param_proba,ctx_cf_proba,comparison\n"
    "0,person,Who is {person}?,Ada Lovelace,,Q: Who is Ada Lovelace?,x,She is,a poet,1.5,a singer,"
    "2.5,a singer,1.25,3.5,1.25,Contextual\n"
    '1,person,Who is {person}?,Zeus,,Q: Who is Zeus?,x,He is,,nan,"a poet, \nborn",2,a god,1,,1.75,'
    "Parametric\n"
)


@pytest.fixture
def stored(tmp_path):
    path = tmp_path / "llama.csv"
    path.write_text(STORED, encoding="utf-8")
    return path


def test_results_of_elsewhere(stored):
    """Of an empty answer there is no perplexity."""
    table = ContextResults.validate(contexts.read_results(stored))
    assert table.columns.is_unique
    assert "question" not in table
    assert_rows(
        table,
        """
        model  object        question_id                    p0   p1   p2   p3    p4
        llama  Ada Lovelace  Who is {person}?/ada-lovelace  1.5  2.5  3.5  1.25  1.25
        llama  Zeus          Who is {person}?/zeus          NaN  2    NaN  1.75  1
        """,
    )
    again = stored.with_name("again.csv")
    table.to_csv(again, index=False)
    assert contexts.read_results(again).equals(table)


def test_results_in_the_thesiss_older_layout(stored):
    """The model ends the columns' names; two models in a file are a row each."""
    table = contexts.read_results(stored)
    plain = pd.read_csv(stored, dtype=str, keep_default_na=False)
    measured = ["parametric", "counterfactual", "contextual", *plain.filter(regex="_proba$")]
    of_llama = plain[measured].add_suffix("-llama")
    older = plain.drop(columns=measured).join(of_llama)
    path = stored.with_name("older.csv")
    older.to_csv(path, index=False)
    assert contexts.read_results(path).equals(table)
    wide = plain.drop(columns=measured).join([plain[measured].add_suffix("-llama-70b"), of_llama])
    wide.to_csv(path, index=False)
    both = contexts.read_results(path)
    assert both["model"].tolist() == ["llama-70b"] * 2 + ["llama"] * 2
    assert both[2:].reset_index(drop=True).equals(table)
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
def test_a_bad_file_of_results_gives_one_sentence(stored, old, new, what):
    stored.write_text(STORED.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(FactsError, match=what):
        contexts.read_results(stored)
