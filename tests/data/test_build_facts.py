"""How data/build_facts.py compares its sources."""

import pandas as pd
import pytest

from factrobust.paths import DATA
from factrobust.tables import FactsError

NOTHING = pd.DataFrame({"check": [], "subject": [], "reason": []})


def test_a_disagreement_stops_the_build_unless_it_is_resolved(facts_builder):
    checks = facts_builder.Checks(NOTHING)
    assert checks.agree("capital:x", "Brazil", ["Brasília"], ["brasilia"])
    assert not checks.agree("capital:x", "Kenya", ["Nairobi"], ["Mombasa"])
    with pytest.raises(FactsError, match=r"capital:x,Kenya: ours Nairobi, theirs Mombasa"):
        checks.finish()
    row = {"check": ["capital:x"], "subject": ["Kenya"], "reason": ["theirs is wrong"]}
    checks = facts_builder.Checks(pd.DataFrame(row))
    with pytest.raises(FactsError, match=r"stale: capital:x,Kenya"):
        checks.finish()
    assert not checks.agree("capital:x", "Kenya", ["Nairobi"], ["Mombasa"])
    checks.finish()
    resolved = pd.read_csv(DATA / "sources" / "resolved.csv", keep_default_na=False)
    assert (resolved["reason"].str.len() > 10).all()


@pytest.mark.parametrize(("subject", "answer", "aliases", "leaky"), [
    ("Singapore", "Singapore", "", True),
    ("São Tomé", "x", "sao tome", True),
    ("Mexico", "Mexico City", "", False),  # part of the answer only
    ("Chinatown", "China", "", False),  # part of a word only
])  # fmt: skip
def test_leaks(facts_builder, subject, answer, aliases, leaky):
    relation = pd.Series({"question": "Where is {subject}?", "prefix": "It is"})
    row = facts_builder.Row(subject=subject, object=answer, aliases=aliases)
    assert facts_builder.leaks(row, relation) is leaky


def test_popularity_leaves_out_the_article_and_combines_words(facts_builder):
    from wordfreq import zipf_frequency

    assert facts_builder.popularity("the Netherlands") == zipf_frequency("netherlands", "en")
    assert facts_builder.popularity("the Western Wall") < zipf_frequency("wall", "en")


def test_landmarks_lie_in_the_country_of_their_city(facts_builder):
    checks = facts_builder.Checks(NOTHING)
    facts = [
        ("country", "Agra", "India"), ("capital_of", "Paris", "France"),
        ("landmark_city", "the Taj Mahal", "Agra"), ("landmark_city", "the Louvre", "Paris"),
        ("landmark_country", "the Taj Mahal", "India"), ("landmark_country", "the Louvre", "Italy"),
    ]  # fmt: skip
    names = ("relation", "subject", "object", "aliases")
    facts_builder.compare_landmarks(
        [dict(zip(names, (*f, ""), strict=True)) for f in facts], checks
    )
    assert checks.open == ["landmark_country:landmark_city,the Louvre: ours Italy, theirs France"]
