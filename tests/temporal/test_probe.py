"""Part 2 from statements to verdicts, on models whose probabilities are known."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame

from factrobust import schemas
from factrobust.models.interface import Job, Model
from factrobust.temporal import probe

FACTS = frame("""
    fact_id    subject  relation       object        question                prefix
    head/peru  Peru     head_of_state  Juan Rey Sol  who led Peru?           Peru was led by
    club/ana   Ana      head_of_state  Lima          which club was Ana in?  Ana was in
""")


def dates_of(fact_id: str, *dates: str) -> pd.DataFrame:
    table = pd.DataFrame({"fact_id": fact_id, "precision": "year", "date": dates})
    table["year"] = table["date"].str[:4].astype(int)
    return table.assign(alpha=0.0, years_off=0.0, label="correct")


class YearModel(Model):
    """Tokens are words; the first one's log-probability is that of the year, others' are -0.25."""

    def __init__(self, logprob: Callable[[int], float]) -> None:
        chat = ("<user>", "<model>\n")
        super().__init__(name="by year", fingerprint="by year", chat=chat)
        self.logprob = logprob
        self.asked: list[tuple[str, str]] = []

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        assert job.operation == "score"
        for i, request in reversed(list(enumerate(job.requests))):
            prompt = request["prompt"]
            answer = request["answer"]
            self.asked.append((prompt, answer))
            years = re.findall(r"\b\d{4}\b", prompt)
            words = len(answer.split())
            values = np.full(words, -0.25, dtype=np.float32)
            values[0] = self.logprob(int(years[-1]) if years else 0)
            yield [i], [values]


def test_statements():
    peru = dates_of("head/peru", "2000", "2001")
    ana = dates_of("club/ana", "1992-02", "1992-02-29")
    dates = pd.concat([peru, ana], ignore_index=True)
    made = probe.statements(FACTS, dates)
    assert list(made) == [*dates, "question", "prefix", "object"]
    pd.testing.assert_frame_equal(made[list(dates)], dates)
    assert_rows(
        made,
        """
        question                                      prefix                            object
        In 2000, who led Peru?                        In 2000, Peru was led by          Juan Rey Sol
        In 2001, who led Peru?                        In 2001, Peru was led by          Juan Rey Sol
        In February 1992, which club was Ana in?      In February 1992, Ana was in      Lima
        On February 29, 1992, which club was Ana in?  On February 29, 1992, Ana was in  Lima
        """,
    )


def test_questions_are_the_facts_own_or_those_of_embedded_relations():
    dates = dates_of("head/peru", "2001")
    [braces] = probe.statements(FACTS.assign(question="who ruled {it}?", prefix=""), dates)[
        "question"
    ]
    assert braces == "In 2001, who ruled {it}?"
    assert probe.statements(FACTS.assign(prefix=""), dates)["prefix"].tolist() == [""]
    bare = FACTS.drop(columns=["question", "prefix"])
    [embedded] = probe.statements(bare, dates)["question"]
    assert embedded == "In 2001, who was the head of state of Peru?"
    with pytest.raises(KeyError, match="king"):
        probe.statements(bare.assign(relation="king"), dates)


def test_scores_by_hand():
    """The likeliest year is 2003; -0.5 is for the last words."""
    model = YearModel(lambda year: -abs(year - 2003.0))
    dates = dates_of("head/peru", "1996", "2003", "2008")
    scores = probe.scored_statements(model, probe.statements(FACTS, dates))
    assert set(scores) == set(schemas.Scores.columns)
    assert scores["other_logprobs"].tolist() == [[], [], []]  # nothing else was asked
    assert_rows(
        scores,
        """
        model    prompt_format  year  logprob  n_tokens
        by year  prefix         1996  -7.5     3
        by year  prefix         2003  -0.5     3
        by year  prefix         2008  -5.5     3
        """,
    )


# The template's own line end stands before the answer.
SENT = {
    "prefix": ("In 2001, who led Peru? In 2001, Peru was led by", " Juan Rey Sol"),
    "zero-shot": ("Q: In 2001, who led Peru?\nA:", " Juan Rey Sol"),
    "chat": ("<user>In 2001, who led Peru?<model>\n", "Juan Rey Sol"),
    "chat-prefix": (
        "<user>In 2001, who led Peru?<model>\nIn 2001, Peru was led by",
        " Juan Rey Sol",
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_prompts_are_what_is_sent(name):
    statements = probe.statements(FACTS, dates_of("head/peru", "2001"))
    model = YearModel(lambda year: -1.0)
    scores = probe.scored_statements(model, statements, prompt_format=name)
    assert model.asked == [SENT[name]]
    assert scores["prompt_format"].tolist() == [name]
    with pytest.raises(ValueError, match="'cloze' is unknown; choose one of two-shot"):
        probe.scored_statements(model, statements, prompt_format="cloze")


def test_an_object_in_the_question_is_scored_at_the_end_alone(toy_model):
    """The club is called like the player's town."""
    town = {" Lima": 0.25, " Cusco": 0.75}
    club = {" FC": 0.5, " SC": 0.5}
    model = toy_model({"\nA:": town, " Lima": club, " FC": {" Lima": 1.0}})
    fact = frame("""
        fact_id  object   question                             prefix
        f        Lima FC  which club was Rosa of Lima FC in?  none
    """)
    statements = probe.statements(fact, dates_of("f", "2001", "2002"))
    scores = probe.scored_statements(model, statements, prompt_format="zero-shot")
    assert scores["n_tokens"].tolist() == [2, 2]
    assert scores["logprob"].tolist() == pytest.approx([np.log(0.25 * 0.5)] * 2)


def test_names_are_scored_after_the_question_of_each_subject(toy_model):
    """The right name and two wrong ones, of the fact's own subject and of a wrong one."""
    model = toy_model(
        {
            "Ana in?\nA:": {" Lima": 0.5, " Cusco": 0.125, " Puno": 0.25, " Ica": 0.125},
            "Bo in?\nA:": {" Lima": 0.125, " Cusco": 0.875},
        }
    )
    facts = frame("""
        fact_id  object  question                asked_of  prefix
        f        Lima    which club was Ana in?  0         none
        f        Lima    which club was Bo in?   1         none
    """)
    facts["others"] = [["Cusco", "Puno"], ["Cusco"]]
    asked = probe.statements(facts, dates_of("f", "2001", "2002"))
    scores = probe.scored_statements(model, asked, prompt_format="zero-shot")
    schemas.CubeScores.validate(scores)
    chances = scores.assign(chance=np.exp(scores["logprob"]), question=asked["question"])
    assert_rows(
        chances,
        """
        year  asked_of  question                         chance
        2001  0         In 2001, which club was Ana in?  0.5
        2001  1         In 2001, which club was Bo in?   0.125
        2002  0         In 2002, which club was Ana in?  0.5
        2002  1         In 2002, which club was Bo in?   0.125
        """,
    )
    of_ana, of_bo = scores["other_logprobs"][:2]
    assert np.exp(of_ana).tolist() == pytest.approx([0.125, 0.25])
    assert np.exp(of_bo).tolist() == pytest.approx([0.875])
    alone = probe.scored_statements(model, asked.drop(columns="others"), prompt_format="zero-shot")
    assert alone["logprob"].equals(scores["logprob"])


def test_holders_of_an_office():
    model = YearModel(lambda year: {0: -3.0, 1990: -1.0, 2000: -2.0}[year])  # 0 without a year
    terms = frame("""
        chain  term  holder   question
        k      0     Ann      who ruled?
        k      1     Bob Roy  who ruled?
        k      2     Ann      who ruled?
        z      0     Cid      who?
    """)
    moments = frame("""
        chain  term  year
        k      1     1990
        k      2     2000
    """)
    found = probe.holders(model, terms.assign(prefix=""), moments)
    # A second word costs 0.25.
    assert_rows(
        schemas.HolderScores.validate(found),
        """
        year  term  candidate  true   logprob  prior
        1990  1     0          False  -1       -3
        1990  1     1          True   -1.25    -3.25
        1990  1     2          False  -1       -3
        2000  2     0          True   -2       -3
        2000  2     1          False  -2.25    -3.25
        2000  2     2          True   -2       -3
        """,
    )
    prompts, answers = zip(*model.asked, strict=True)
    assert {*prompts} == {"In 1990, who ruled?", "In 2000, who ruled?", "Who ruled?"}
    assert {*answers} == {" Ann", " Bob Roy"}
