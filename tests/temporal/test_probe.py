"""Part 2 from statements to verdicts, on models whose probabilities are known."""

import math
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

WORDING = {
    "head": {"question": "who led {}?", "prefix": "{} was led by"},
    "club": {"question": "which club was {} in?", "prefix": "{} was in"},
}


def worded(facts: pd.DataFrame) -> pd.DataFrame:
    pairs = [*zip(facts["relation"], facts["subject"], strict=True)]
    texts = {c: [WORDING[r][c].format(s) for r, s in pairs] for c in ("question", "prefix")}
    return facts.assign(**texts)


class YearModel(Model):
    """Tokens are words; the first one's log-probability is that of the year, others' are -0.25."""

    name = "by year"
    fingerprint = "by year"
    prompt_format = "prefix"
    chat = ("<user>", "<model>\n")

    def __init__(self, logprob: Callable[[int], float]) -> None:
        self.logprob = logprob
        self.asked: list[tuple[str, str]] = []

    def answer(self, job: Job) -> Iterator[tuple[list[int], list[Any]]]:
        assert job.operation == "score"
        for i, request in reversed(list(enumerate(job.requests))):
            prompt = request["prompt"]
            answer = request["answer"]
            self.asked.append((prompt, answer))
            year = int([0, *re.findall(r"\b\d{4}\b", prompt)][-1])
            words = len(answer.split())
            values = np.full(words, -0.25, dtype=np.float32)
            values[0] = self.logprob(year)
            yield [i], [values]


@pytest.fixture
def facts():
    return worded(
        frame("""
            fact_id    subject  relation  object        start       end
            head/peru  Peru     head      Juan Rey Sol  2000        2004
            club/ana   Ana      club      Lima          1990-03-05  1999-07
        """)
    )


def by_hand(years: range = range(1996, 2009), fact_id: str = "head/peru") -> pd.DataFrame:
    """Years around the first fact, valid from some day of 2000 to some day of 2004."""
    off = [min(y - 2000, 0) + max(y - 2004, 0) for y in years]
    inner = ["correct" if 2000 < y < 2004 else "transitional" for y in years]
    labels = [s if o == 0 else "incorrect" for o, s in zip(off, inner, strict=True)]
    table = pd.DataFrame({"fact_id": fact_id, "precision": "year", "year": list(years)})
    table.insert(2, "date", table["year"].astype(str))
    table["alpha"] = (table["year"] - 2002) / 5
    table["years_off"] = np.array(off, float)
    return table.assign(label=labels)


def test_statements(facts):
    dated = {"precision": ["month", "day"], "date": ["1992-02", "1992-02-29"]}
    ana = by_hand(range(1, 3), "club/ana").assign(**dated)
    dates = pd.concat([by_hand(range(2000, 2002)), ana])
    made = probe.statements(facts, dates)
    assert list(made) == [*dates, "question", "prefix", "object"]
    assert made[["question", "prefix", "object"]].to_numpy().tolist() == [
        ["In 2000, who led Peru?", "In 2000, Peru was led by", "Juan Rey Sol"],
        ["In 2001, who led Peru?", "In 2001, Peru was led by", "Juan Rey Sol"],
        ["In February 1992, which club was Ana in?", "In February 1992, Ana was in", "Lima"],
        [
            "On February 29, 1992, which club was Ana in?",
            "On February 29, 1992, Ana was in",
            "Lima",
        ],
    ]
    pd.testing.assert_frame_equal(made[list(dates)], dates.reset_index(drop=True))


def test_questions_are_the_facts_own_or_those_of_embedded_relations(facts):
    own = facts.assign(question=["who ruled {it}?", "whose was Ana?"], prefix=["{it} obeyed", ""])
    dates = by_hand(range(2001, 2003))
    made = probe.statements(own, dates.assign(fact_id=["head/peru", "club/ana"]))
    assert made["question"].tolist() == ["In 2001, who ruled {it}?", "In 2002, whose was Ana?"]
    assert made["prefix"].tolist() == ["In 2001, {it} obeyed", ""]
    bare = facts.drop(columns=["question", "prefix"])
    made = probe.statements(bare.assign(relation="head_of_state"), dates)
    assert made["question"][0] == "In 2001, who was the head of state of Peru?"
    with pytest.raises(KeyError, match="king"):
        probe.statements(bare.assign(relation="king"), by_hand())


def test_scores_by_hand(facts):
    """The likeliest year is 2003; -0.5 is for the last words."""
    model = YearModel(lambda year: -abs(year - 2003.0))
    scores = probe.scored(model, probe.statements(facts, by_hand()))
    assert list(scores) == [
        *("model", "prompt_format", "fact_id", "precision", "date", "year", "alpha", "years_off"),
        *("label", "logprob", "n_tokens", "other_logprobs"),
    ]
    assert scores["other_logprobs"].map(len).eq(0).all()  # nothing else was asked
    assert scores["model"].unique().tolist() == ["by year"]
    assert scores["prompt_format"].unique().tolist() == ["prefix"]
    assert scores["logprob"].tolist() == [-abs(year - 2003) - 0.5 for year in range(1996, 2009)]
    assert scores["n_tokens"].eq(3).all()


def test_prompts_are_what_is_sent(facts):
    statements = probe.statements(facts, by_hand(range(2001, 2003)))
    asked = "In 2001, who led Peru?"
    begun = "In 2001, Peru was led by"
    expected = {
        "prefix": (f"{asked} {begun}", " Juan Rey Sol"),
        "zero-shot": (f"Q: {asked}\nA:", " Juan Rey Sol"),
        # The template's own line end stands before the answer.
        "chat": (f"<user>{asked}<model>\n", "Juan Rey Sol"),
        "chat-prefix": (f"<user>{asked}<model>\n{begun}", " Juan Rey Sol"),
    }
    for name, sent in expected.items():
        model = YearModel(lambda year: -1.0)
        scores = probe.scored(model, statements, prompt_format=name)
        assert sorted(model.asked)[0] == sent
        assert probe.prompts(model, statements, name)[0] == sent[0]
        assert scores["prompt_format"].unique().tolist() == [name]
    assert probe.prompts(model, statements) == probe.prompts(model, statements, "prefix")
    with pytest.raises(ValueError, match="'cloze' is unknown; choose one of two-shot"):
        probe.scored(model, statements, prompt_format="cloze")


def test_object_in_the_question(toy_model):
    """The club is called like the player's town: only its words at the end are scored."""
    answers = {"\nA:": {" Lima": 0.25, " Cusco": 0.75}, " Lima": {" FC": 0.5, " SC": 0.5}}
    model = toy_model(answers | {" FC": {" Lima": 1.0}})
    fact = {
        "subject": "Rosa of Lima FC",
        "relation": "club",
        "object": "Lima FC",
        "fact_id": "f",
    }
    statements = probe.statements(worded(pd.DataFrame([fact])), by_hand(fact_id="f"))
    assert statements["question"].str.endswith("which club was Rosa of Lima FC in?").all()
    scores = probe.scored(model, statements, prompt_format="zero-shot")
    assert scores["n_tokens"].eq(2).all()
    np.testing.assert_allclose(scores["logprob"], math.log(0.25 * 0.5), atol=1e-6)


def test_wrong_names_are_scored_after_the_same_question(toy_model):
    model = toy_model({"\nA:": {" Lima": 0.5, " Cusco": 0.125, " Puno": 0.25, " Ica": 0.125}})
    fact = frame("""
        fact_id  subject  relation  object
        f        Ana      club      Lima
    """)
    facts = worded(fact).assign(others=[["Cusco", "Puno"]])
    asked = probe.statements(facts, by_hand(fact_id="f"))
    scores = probe.scored(model, asked, prompt_format="zero-shot")
    logs = np.array(scores["other_logprobs"].tolist())
    np.testing.assert_allclose(logs, [[math.log(1 / 8), math.log(1 / 4)]] * len(scores), atol=1e-6)
    np.testing.assert_allclose(scores["logprob"], math.log(0.5), atol=1e-6)
    alone = probe.scored(model, asked.drop(columns="others"), prompt_format="zero-shot")
    assert alone["other_logprobs"].map(len).eq(0).all()
    assert alone.drop(columns="other_logprobs").equals(scores.drop(columns="other_logprobs"))


def test_a_wrong_subject_is_asked_with_its_own_question(toy_model):
    words = {" Lima": 0.5, " Cusco": 0.5}
    model = toy_model({"Ana in?\nA:": words, "Bo in?\nA:": {" Lima": 0.125, " Cusco": 0.875}})
    facts = frame("""
        fact_id  object  question                asked_of
        f        Lima    which club was Ana in?  0
        f        Lima    which club was Bo in?   1
    """).assign(prefix="", others=[["Cusco"]] * 2)
    asked = probe.statements(facts, by_hand(range(2001, 2003), "f"))
    assert_rows(
        asked,
        """
        year  asked_of  question
        2001  0         In 2001, which club was Ana in?
        2001  1         In 2001, which club was Bo in?
        2002  0         In 2002, which club was Ana in?
        2002  1         In 2002, which club was Bo in?
        """,
    )
    scores = probe.scored(model, asked, prompt_format="zero-shot")
    schemas.CubeScores.validate(scores)
    chances = pd.DataFrame(scores["other_logprobs"].tolist(), columns=["other"])
    chances = np.exp(chances.assign(own=scores["logprob"]))
    assert chances["own"].tolist() == pytest.approx([0.5, 0.125] * 2)
    assert chances["other"].tolist() == pytest.approx([0.5, 0.875] * 2)


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
