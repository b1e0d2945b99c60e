"""Part 4 from questions to perplexities, on a model whose numbers are known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from frames import assert_rows, frame
from scipy.stats import binom
from toys import chances, jobs_of

from factrobust.context import probe
from factrobust.context.facts import known_contexts
from factrobust.context.metrics import PERPLEXITIES, measured
from factrobust.context.probe import counterfactuals
from factrobust.models import prompts
from factrobust.schemas import ContextResults

OBJECTS = ("Kenya", "Peru", "Chad", "Oman")


def in_contexts(text):
    """What follows the question for a capital, in a context that states one about a country."""
    table = {}
    for asked, about, stated, following in frame(text).itertuples(index=False):
        prompt = (
            f"Context: [The capital of {about} is {stated}]. "
            f"Q: What is the capital of {asked}? A: The capital of {asked} is"
        )
        [table[prompt]] = chances(f"_ {following}").values()
    return table


# Only the last token counts, so a prompt with context is one token.
PLAIN = chances("""
    _Kenya_is  _Nai 0.8  _Lima 0.2
    _Nai       robi 0.6  vasha 0.4
    robi       . 1
    _Peru_is   _Lima 0.9  _Nai 0.1
    _Lima      . 1
    .          _It 1
    _It        _is 1
    _Chad_is   : 0.6  _Lima 0.3  _Nai 0.1
    :          ↵ 1
    _Oman_is   ↵ 0.8  _Lima 0.1  _Nai 0.1
""")
TABLE = PLAIN | in_contexts("""
    asked  about  stated   following
    Kenya  Kenya  Lima     _Lima 0.7 _Nai 0.3
    Peru   Peru   Nairobi  _Lima 0.75 _Nai 0.25
    Chad   Chad   Lima     : 0.6 _Lima 0.4
    Chad   Chad   Nairobi  : 0.6 _Nai 0.4
    Oman   Oman   Lima     _Nai 0.9 _Lima 0.1
    Oman   Oman   Nairobi  _Nai 0.9 _Lima 0.1
""")


@pytest.fixture
def questions():
    names = pd.Series(OBJECTS, index=range(10, 14))  # not 0, 1, ...
    return pd.DataFrame({"object": names}).assign(
        question_id="capital/" + names.str.lower(),
        category="geography",
        base_id="capital",
        question="What is the capital of " + names + "?",
        prefix="The capital of " + names + " is",
        answers=[[] for _ in OBJECTS],
    )


@pytest.fixture(scope="module")
def toy(toy_model):
    return toy_model(TABLE)


def test_prompts_are_the_thesis(toy, questions):
    first = questions[:1]
    stated = "The capital of Kenya is Lima"
    plain = "Q: What is the capital of Kenya? A: The capital of Kenya is"
    assert probe.context_prompts(toy, first) == [plain]
    assert probe.context_prompts(toy, first, [stated]) == [f"Context: [{stated}]. {plain}"]
    chat = SimpleNamespace(prompt_format="chat", chat=("<user>", "<model>"))
    assert probe.context_prompts(chat, first, ["It is Lima"]) == [
        "<user>Context: [It is Lima]. Q: What is the capital of Kenya? A:<model>"
        "The capital of Kenya is"
    ]


def test_perplexities_by_hand(toy, questions):
    """The inverse of the geometric mean probability of the tokens: those of Nairobi have 0.8 and
    0.6 without a context, 0.3 and 0.6 with one, hence 0.48^-0.5 = 1.4434."""
    rows = measured(probe.ask_counterfactual(toy, questions))[:2]
    expected = """
        object  parametric  counterfactual  contextual  p0        p1        p2        p3        p4
        Kenya   Nairobi     Lima            Lima        1.4434  5         2.3570  1.4286  1.4286
        Peru    Lima        Nairobi         Lima        1.1111  4.0825  1.3333  2.5820  1.3333
    """
    numbers = rows[[*PERPLEXITIES]]
    assert_rows(rows.assign(**numbers.round(4)), expected)
    # Exactly what the same tokens had before: else P4 > P3, the code's preference, is rounding.
    assert rows["p4"][0] == rows["p3"][0]
    assert rows["p4"][1] == rows["p2"][1]
    tokens = rows[["n_tokens_parametric", "n_tokens_counterfactual"]]
    assert tokens.to_numpy().tolist() == [[2, 1], [1, 2]]


def test_empty_answers_are_kept_apart(toy, questions):
    results = ContextResults.validate(measured(probe.ask_counterfactual(toy, questions)))
    assert results["question_id"].tolist() == questions["question_id"].tolist()
    chad, oman = results[2:].to_dict("records")
    # ":" has no letter; Oman's first token ends the line.
    assert chad["parametric"] == chad["contextual"] == oman["parametric"] == ""
    assert chad["n_tokens_parametric"] == 0
    numbers = [chad[name] for name in PERPLEXITIES]
    assert np.isnan(numbers).tolist() == [True, False, True, False, True]
    assert oman["contextual"] == "Nairobi"


def test_each_thing_is_asked_once(toy, questions, monkeypatch):
    """Two base questions that ask the same; an answer that generation scored is not scored."""
    jobs = jobs_of(toy, monkeypatch)
    again = questions.assign(question_id=questions["question_id"] + "!", base_id="again")
    made = probe.ask_counterfactual(toy, pd.concat([questions, again]))
    assert len(made) == 8
    memory, contextual, scored = jobs
    plain = probe.context_prompts(toy, questions)
    assert [request["prompt"] for request in memory.requests] == plain
    assert memory.settings["max_new_tokens"] == 20
    assert memory.settings["stop"] == ["\n", ". "]
    sent = [request["prompt"] for request in contextual.requests]
    assert len(sent) == len(set(sent))
    assert scored.operation == "score"
    pairs = [(request["prompt"], *request["answer"]) for request in scored.requests]
    assert len(pairs) == len(set(pairs))


def test_an_initial_is_asked_again(toy_model, questions):
    """Generation stops at ". ", which does not end every answer."""
    table = chances("""
        _Kenya_is  _J 1
        _J         . 1
        .          _Kenyatta 1
        _Kenyatta  ↵ 1
        _Peru_is   _Lima 0.6  _J 0.4
        _Lima      ._ 1
        ._         A 1
        A          A 1
        _Chad_is   _Nai 1
        _Nai       .↵ 1
    """)
    model = toy_model(table)
    made = probe.answer_questions(model, questions[:3])
    assert made["text"].tolist() == ["J. Kenyatta", "Lima", "Nai"]
    assert made["token_ids"].map(len).tolist() == [3, 1, 1]
    assert made["tokens"].tolist() == [[" J", ".", " Kenyatta"], [" Lima"], [" Nai"]]


def test_asked_in_chunks_and_in_any_order(toy, questions, monkeypatch):
    more = pd.concat([questions, questions.assign(base_id="b", question_id=[*"abcd"])])
    results = probe.ask_counterfactual(toy, more, seed=5).set_index("question_id")
    monkeypatch.setattr(prompts, "CHUNK", 1)
    turned = probe.ask_counterfactual(toy, more[::-1], seed=5).set_index("question_id")
    pd.testing.assert_frame_equal(turned.loc[results.index], results)


def test_known_contexts_by_hand(toy_model, questions, monkeypatch):
    """The model knows Kenya's capital, believes what is said of Kenya, and repeats what is said of
    Peru."""
    table = in_contexts("""
        asked  about  stated   following
        Kenya  Kenya  Nairobi  _Nai 0.9 _Lima 0.1
        Kenya  Peru   Lima     _Nai 0.6 _Lima 0.4
        Kenya  Kenya  Lima     _Lima 0.7 _Nai 0.3
        Peru   Peru   Lima     _Lima 1
        Peru   Kenya  Nairobi  _Nai 1
        Peru   Peru   Nairobi  ↵ 1
    """)
    toy = toy_model(PLAIN | table | {" Peru is": {"\n": 1.0}})
    jobs = jobs_of(toy, monkeypatch)
    questions = questions[:2].assign(answers=[["Nairobi"], ["Lima", "Ciudad de los Reyes"]])
    made = measured(probe.ask_known(toy, questions, known_contexts(questions, questions)))
    # Of Nairobi, " Nai" "robi", and of the answer that the context states: (0.9 x 0.6)^-0.5 and so
    # on. Peru: - is an answer that says nothing.
    expected = """
        object  context     parametric  counterfactual  contextual  p0        p1        p2        p3        p4
        Kenya   true        Nairobi     Nairobi         Nairobi     1.4434  1.4434  1.3608  1.3608  1.3608
        Kenya   irrelevant  Nairobi     Lima            Nairobi     1.4434  5         1.6667  2.5       1.6667
        Kenya   false       Nairobi     Lima            Lima        1.4434  5         2.3570  1.4286  1.4286
    """
    kenya = made[:3]
    assert_rows(kenya.assign(**kenya[[*PERPLEXITIES]].round(4)), expected)
    peru = made[3:]
    assert_rows(
        peru.replace("", "-"),
        """
        object  context     parametric  counterfactual  contextual  p0   p2
        Peru    true        -           Lima            Lima        NaN  NaN
        Peru    irrelevant  -           Nairobi         Nairobi     NaN  NaN
        Peru    false       -           Nairobi         -           NaN  NaN
        """,
    )
    # What is stated is scored as a text where neither answer is the same: Lima and Nairobi,
    # without the context and with it.
    scored = [request["answer"] for request in jobs[-1].requests]
    texts = [answer for answer in scored if isinstance(answer, str)]
    assert sorted(texts) == [" Lima", " Lima", " Nairobi", " Nairobi"]
    # Else it has exactly the numbers of generation.
    assert made["p2"][0] == made["p3"][0] == made["p4"][0]
    assert made["p3"][2] == made["p4"][2]


def test_tokens_of_both_answers(toy, questions):
    kenya = probe.ask_counterfactual(toy, questions).iloc[0]
    table = probe.answer_tokens(toy, questions, kenya)
    expected = frame("""
        answer          context  position  token  probability
        parametric      False    1         Nai    0.8
        parametric      False    2         robi   0.6
        parametric      True     1         Nai    0.3
        parametric      True     2         robi   0.6
        counterfactual  False    1         Lima   0.2
        counterfactual  True     1         Lima   0.7
    """)
    assert table["token"].tolist() == [" Nai", "robi", " Nai", "robi", " Lima", " Lima"]
    plain = table.assign(token=table["token"].str.strip())
    pd.testing.assert_frame_equal(plain, expected, check_dtype=False)


def answered(*texts, base="b"):
    """Answers to one base question about objects 0, 1, ..."""
    names = [str(i) for i in range(len(texts))]
    return pd.DataFrame({"base_id": base, "object": names, "text": texts})


def test_a_counterfactual_is_never_an_equal_answer_nor_an_empty_one():
    allowed = [{1, 2, 3, 4}, {3, 4}, {3, 4}, {1, 2, 4}, {1, 2, 3}]
    for seed in range(20):
        drawn = counterfactuals(answered("", "Paris", "the paris", "Rome", "Oslo"), seed=seed)
        assert all(map(set.__contains__, allowed, drawn))
    assert counterfactuals(answered("Oslo", "Oslo")).tolist() == [-1, -1]
    assert counterfactuals(answered("Oslo", "")).tolist() == [-1, 0]
    assert counterfactuals(answered()).tolist() == []


def test_other_base_questions_do_not_matter():
    one = answered("Oslo", "Rome", "Paris")
    both = pd.concat([answered("1", "2", base="c"), one], ignore_index=True)
    assert (counterfactuals(both)[2:] - 2).tolist() == counterfactuals(one).tolist()


def test_a_counterfactual_is_uniform_over_questions():
    rows = answered("Oslo", "Rome", "Rome", "Rome", "Paris")
    draws = [counterfactuals(rows, seed=seed)[0] for seed in range(2000)]
    # Rome stands there three times of four.
    low, high = binom.interval(1 - 1e-4, 2000, 0.25)
    counts = np.bincount(draws)
    assert counts[0] == 0
    assert all(low <= count <= high for count in counts[1:])


def test_passages_are_asked_four_times(toy, questions, monkeypatch):
    """Without a passage, with it, with its slots exchanged, and with another answer exchanged; what is said
    twice is scored once, and a passage without a placebo is asked once."""
    jobs = jobs_of(toy, monkeypatch)
    passages = frame("""
        question_id    context  sentence  swap_1  swap_2  placebo
        capital/kenya  true     a         a1      a2      a3
        capital/kenya  false    b         b1      b2      -
    """).replace("-", "")
    made = probe.swapped(toy, questions, passages)
    sent = [request["prompt"] for job in jobs for request in job.requests]
    assert len(sent) == len(set(sent)) == 1 + 6 + 1  # nothing scored: memory says the same
    columns = ["parametric", "contextual", "text_1", "text_2", "text_placebo"]
    assert made[columns].eq("Nairobi").all(axis=None)
    assert made["placebo"].tolist() == ["a3", ""]
    assert made["logprobs_p1"].tolist() == made["logprobs_p0"].tolist()
