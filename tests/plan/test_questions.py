"""Sizes of data sets: by turns, from the papers' tables, from the embedded data."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from factrobust.plan import questions
from factrobust.plan.questions import Texts, UnknownSize, spread

ALL = 100_000


@pytest.mark.parametrize(
    ("limit", "sizes", "given"),
    [
        (4, [9, 9, 9], [2, 1, 1]),
        (2, [9, 9, 9], [1, 1, 0]),
        (10, [2, 5, 9], [2, 4, 4]),
        (12, [2, 5, 9], [2, 5, 5]),
        (99, [2, 5, 9], [2, 5, 9]),
        (3, [], []),
        (0, [4], [0]),
    ],
)
def test_spread(limit: int, sizes: list[int], given: list[int]) -> None:
    assert spread(limit, sizes) == given


def test_measured() -> None:
    table = pd.DataFrame(
        {"question": ["Who?", "When is"], "prefix": ["", None], "object": ["ab", "abcd"]}
    )
    assert questions.measured(table) == Texts(2, 5.5, 0, 3)


def test_official_data_sets_are_a_domain_each() -> None:
    data = ("squad", "trivia_qa@abc", "hotpot_qa:dev.json")
    assert [t.n for t in questions.decoding_facts(data, ALL)] == [10_570, 11_313, 7_405]
    assert [t.n for t in questions.decoding_facts(data, 900)] == [300, 300, 300]


def test_embedded_facts_by_domain_alone_and_beside_another() -> None:
    found = questions.decoding_facts(("embedded",), ALL)
    assert sum(t.n for t in found) == 1740
    assert [t.n for t in questions.decoding_facts(("embedded",), 901)] == [301, 300, 300]
    assert [t.n for t in questions.decoding_facts(("embedded", "squad"), 8)] == [2, 2, 2, 2]


def test_popqa_has_all_its_questions() -> None:
    assert sum(t.n for t in questions.decoding_facts(("popqa",), ALL)) == 14_267


def test_dates_of_timestress_are_those_of_table_2() -> None:
    found = questions.dated("timestress", 600, ALL, ALL, 0)
    assert found.n == pytest.approx(600 * 3 * (8.83 + 55.59 + 1.74))
    assert questions.dated("timestress", 10, 3, 6, 0).n == pytest.approx(10 * 3 * (3 + 6 + 1.74))


def test_years_that_were_asked_are_not_asked_again() -> None:
    # Of 5 facts, 30 incorrect years where 6 were asked, and none where all were.
    assert questions.dense_years("timestress", 9, 3, 6, 0, 5, 30).n == pytest.approx(5 * 24)
    assert questions.dense_years("timestress", 9, ALL, ALL, 0, 5, ALL).n == 0
    # The embedded facts: the same years again, and those of facts that were not asked before.
    assert questions.dense_years("embedded", 6, 3, 6, 0, 6, 6).n == 0
    years = questions.dated("embedded", 6, 3, 6, 0).n / 3
    assert questions.dense_years("embedded", 1, 3, 6, 0, 6, 6).n == pytest.approx(
        years - questions.dated("embedded", 1, 3, 6, 0).n / 3
    )


def test_paraphrases_of_popqa_tp_are_those_of_table_1() -> None:
    texts, facts = questions.paraphrases("popqa_tp", ALL, 0)
    assert (texts.n, facts) == (118_643, 14_267)


def test_context_questions_are_those_of_table_7() -> None:
    assert questions.context_questions(ALL, 0).n == 4_760
    assert questions.context_questions(2, 0).n == 200
    assert questions.context_facts(54, 0).n == 54


@pytest.mark.parametrize(
    "ask",
    [
        lambda: questions.decoding_facts(("mine",), 9),
        lambda: questions.dated("mine", 9, 3, 6, 0),
        lambda: questions.dense_years("mine", 9, 3, 6, 0, 5, 30),
        lambda: questions.paraphrases("mine", 9, 0),
    ],
)
def test_data_of_unknown_size(ask: Callable[[], object]) -> None:
    with pytest.raises(UnknownSize, match=r"the size of 'mine' is not known here \(only of embedd"):
        ask()
