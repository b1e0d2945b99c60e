import pytest

from factrobust.datasets.facts import ANSWER_TYPES, DOMAINS, load_relations
from factrobust.tables import FactsError

HEADER = "relation,question,prefix,answer_type\n"


def test_embedded_relations():
    table = load_relations()
    assert table.index.is_unique
    assert set(table["answer_type"]) == set(ANSWER_TYPES)
    assert set(table["domain"]) == set(DOMAINS)
    assert table["popqa"].sum() == 16
    assert table["question"].str.endswith("?").all()
    # A prefix that ended in a space would put a token boundary inside the answer.
    assert not table["prefix"].str.endswith((" ", ".", ":")).any()
    assert table.loc["capital", "prefix"] == "The capital of {subject} is"


def test_own_relation_joins_and_rewords(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        HEADER + "river,Which river flows through {subject}?,The river of {subject} is,Location\n"
        "capital,Name the capital of {subject}?,{subject} has the capital,Location\n"
    )
    table = load_relations(path)
    assert len(table) == len(load_relations()) + 1
    assert table.loc["river", "domain"] == "own"
    assert not table.loc["river", "popqa"]
    assert table.loc["capital", "question"] == "Name the capital of {subject}?"


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("river,Which river?,The river of {subject} is,Location", "question 'Which river\\?' must"),
        ("river,{subject} or {subject}?,{subject} is,Location", "must hold {subject} exactly once"),
        ("river,{subject}?,{subject} {x},Location", "prefix .* no other braces"),
        ("The River,{subject}?,{subject} is,Location", "'The River' is no short name; write"),
        ("river,{subject}?,{subject} is,Place", "'Place' is unknown; choose one of Entity"),
        (
            "river,{subject}?,{subject} is,Entity\nriver,{subject}?,{subject} is,Entity",
            "already in",
        ),
    ],
)
def test_bad_relation_gives_one_sentence(tmp_path, row, what):
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEADER}{row}\n")
    line = 3 if "\n" in row else 2
    with pytest.raises(FactsError, match=f"^{path}, line {line}: .*{what}"):
        load_relations(path)
