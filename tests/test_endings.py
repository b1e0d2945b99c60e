"""Where an answer begins, and where it ends. In the tables ⏎ is a line's end."""

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from frames import cells
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust import endings
from factrobust.endings import (
    answer_text,
    count_covering,
    cut_answer,
    ending,
    first_sentence,
    generate_answers,
    split_lead,
    unsure,
)
from factrobust.models.interface import Generation, ModelError
from factrobust.models.prompts import CHAT_END
from factrobust.models.records import read_index, read_texts
from factrobust.paths import DATA


def made(*tokens: str, text: str = "") -> Generation:
    """A generation of these tokens; the alternative to each is impossible."""
    ids = list(range(1, len(tokens) + 1))
    logprobs = [-0.5] * len(ids)
    top = [[(token, -0.5), ("never", -9.0)] for token in tokens]
    return Generation("?", text or "".join(tokens), ids, logprobs, top)


def rows(table: str) -> list[tuple[str, str]]:
    """Rows of a text and what is kept of it, which may be nothing."""
    found = []
    for row in cells(table):
        text, kept, *_ = [*row, ""]
        found.append((text.replace("⏎", "\n"), kept.replace("⏎", "\n")))
    return found


CUT = """
    Nairobi. The capital of      Nairobi
    Nairobi.                     Nairobi
    Nairobi                      Nairobi
    Nairobi⏎Q: What              Nairobi
    15.999.                      15.999
    1,000.5 m. It                1,000.5 m
    1. B: In the periodic table  1
    1947. In 1948                1947
    J. K. Rowling. She           J. K. Rowling
    J.R.R. Tolkien.              J.R.R. Tolkien
    F. Scott Fitzgerald. Q       F. Scott Fitzgerald
    George W. Bush.              George W. Bush
    Washington, D.C. It is       Washington, D.C
    the U.S. Route 66. It        the U.S. Route 66
    300 B.C.E. The               300 B.C.E
    St. Petersburg. The          St. Petersburg
    Dr. No.                      Dr. No
    Op. 27, No. 2. It            Op. 27, No. 2
    A. B: The musical work       A
    C. It is                     C
    the street. He               the street
    the “Father of Physics.”     the “Father of Physics
    Yahoo! Inc. of               Yahoo! Inc
"""


@pytest.mark.parametrize(("text", "kept"), rows(CUT))
def test_cut(text, kept):
    assert cut_answer(f" {text}") == f" {kept}"
    assert cut_answer(f"\n{text}") == cut_answer("") == ""


def test_what_may_go_on_after_its_full_stop():
    """Generation stops at a full stop and a space, so only these need be asked again."""
    for text in (" J", " F", " Washington, D.C", " St", " Op", " in the U.S", " C"):
        assert unsure(text), text
        assert not unsure(text + "opped")
    for text in (" Nairobi", " 1", " 300 BC", " the street", ""):
        assert not unsure(text)
        for behind in (" Nairobi is", " 12", " It", "", " B: C", " K. L"):
            assert cut_answer(f"{text}.{behind}") == text


def test_fewest_tokens():
    answer = made(" Nai", "robi", ".", " The", " capital")
    assert ending(answer) == ("Nairobi", 2)
    beginnings = {"": 0, " Nai": 1, " Nairo": 2, answer.text: 5}
    for text, n in beginnings.items():
        assert count_covering(answer, text) == n
    # The token that ends the answer may begin with its last letters.
    assert ending(made(" Washington", ",", " D", ".C", ".", " It")) == ("Washington, D.C", 4)
    # Of equally likely tokens the chosen one need not be listed first.
    answer = made(" Lima", ".", " It")
    answer.top_logprobs[0] = [(" Nairobi", -0.5), (" Lima", -0.5)]
    assert ending(answer) == ("Lima", 1)


@pytest.mark.parametrize(
    ("tokens", "text", "kept", "n"),
    [
        # SentencePiece tokenizers decode a single token without the space before it.
        ("New York . It", " New York. It", "New York", 2),
        # Half a letter is a replacement character.
        ("_S \ufffd \ufffd o _Paulo .", " São Paulo.", "São Paulo", 5),
        ("_caf \ufffd \ufffd . _It", " café. It", "café", 3),
        ("_Nai <pad> robi .", " Nairobi.", "Nairobi", 3),
    ],
)
def test_tokens_that_do_not_stand_in_the_text(tokens, text, kept, n):
    pieces = [token.replace("_", " ") for token in tokens.split()]
    assert ending(made(*pieces, text=text)) == (kept, n)
    without_texts = Generation("?", text, [1] * len(pieces), [-1.0] * len(pieces))
    assert ending(without_texts) == (kept, len(pieces))


def test_no_letters_or_digits_is_empty():
    for text in (" :", "...", " “", " -", ""):
        assert ending(made(text)) == ("", 0)
    assert ending(made(" +", "1")) == ("+1", 2)


# A sentence ends, and its full stop goes; other marks stay, with the quotes that they close; no
# sentence ends; after an abbreviation it ends if the next word begins one; nothing to cut. The last
# two are known failures.
SENTENCES = """
    Nairobi.                                    Nairobi
    Nairobi. The capital of Kenya is Nairobi.   Nairobi
    nairobi. it is large.                       nairobi
    Paris .                                     Paris
    Paris...                                    Paris
    Paris... The city of love                   Paris
    In 1945. It ended in May.                   In 1945
    Vitamin C. It is an acid.                   Vitamin C
    K. The symbol of potassium                  K
    George V. He was king.                      George V
    8. The atomic number of oxygen              8
    World War II. It                            World War II
    a 5.5 km run. It                            a 5.5 km run
    东京。日本的首都                            东京

    Mamma Mia!                                  Mamma Mia!
    Who? I do not know.                         Who?
    Jeopardy! The host was Alex Trebek.         Jeopardy!
    It is called "Paris." The name is old.      It is called "Paris."
    Paris (in France). It                       Paris (in France)

    Washington, D.C.                            Washington, D.C.
    Washington, D.C                             Washington, D.C
    J. K. Rowling                               J. K. Rowling
    J.K. Rowling                                J.K. Rowling
    A. A. Milne                                 A. A. Milne
    (J. K. Rowling)                             (J. K. Rowling)
    St. Louis                                   St. Louis
    Mt. Everest                                 Mt. Everest
    Dr. No                                      Dr. No
    Dr. Who                                     Dr. Who
    U.S.                                        U.S.
    U.S. Route 66                               U.S. Route 66
    Robert Downey Jr.                           Robert Downey Jr.
    Martin Luther King Jr. was a minister       Martin Luther King Jr. was a minister
    Warner Bros. Pictures                       Warner Bros. Pictures
    Apple Inc.                                  Apple Inc.
    Symphony No. 9                              Symphony No. 9
    at 7 p.m. on Dec. 5                         at 7 p.m. on Dec. 5
    Yahoo! is a company                         Yahoo! is a company
    1. Nairobi                                  1. Nairobi
    3.14                                        3.14
    factrobust.org                              factrobust.org

    Washington, D.C. It is the capital.         Washington, D.C.
    Washington, D.C. is the capital. It         Washington, D.C. is the capital
    J. K. Rowling. She wrote it.                J. K. Rowling
    St. Louis. The city                         St. Louis
    The U.S. The country                        The U.S.
    Sammy Davis Jr. He sang.                    Sammy Davis Jr.
    by A. A. Milne                              by A. A. Milne

    Nairobi ⏎Question: What else?               Nairobi
    ⏎⏎ Nairobi⏎Mombasa                          Nairobi
    ⏎
    Nairobi                                     Nairobi
    ...                                         ...
    . Nairobi. It                               . Nairobi

    Mamma Mia! Here We Go Again                 Mamma Mia!
    He lives in the U.S. Nobody knows.          He lives in the U.S. Nobody knows
"""


@pytest.mark.parametrize(("text", "sentence"), rows(SENTENCES))
def test_the_first_sentence(text, sentence):
    assert first_sentence(text) == sentence
    assert first_sentence(f" {text} ".replace("\n", "\r\n")) == sentence


@settings(deadline=None)
@given(st.text(alphabet="Ab U.S!?1 \n\"'。)(", max_size=30) | st.text())
def test_is_the_beginning_of_one_line(text):
    sentence = first_sentence(text)
    assert text.strip().startswith(sentence)
    assert sentence == sentence.strip()
    assert len(sentence.splitlines()) <= 1
    assert bool(sentence) == bool(text.strip())


# -- where an answer begins ------------------------------------------------------------------------

# Nothing stands before it; blank lines do; labels, on a line of their own or not; thoughts; the
# model's own next question.
BEGINNINGS = """
    Nairobi                                        Nairobi
    Nairobi⏎Mombasa                                Nairobi⏎Mombasa
    The answer is Nairobi                          The answer is Nairobi
    A capital: Nairobi                             A capital: Nairobi
    Answers differ: a                              Answers differ: a
    A: Jazz B: Rock                                A: Jazz B: Rock
    a: A: Jazz                                     a: A: Jazz
    A. Nairobi                                     A. Nairobi

    ⏎Nairobi                                       Nairobi
    ⏎⏎ Nairobi⏎x                                   Nairobi⏎x
    ⏎
    ⏎ ⏎

    The answer is: Nairobi                         Nairobi
    ⏎The answer is:⏎Nairobi                        Nairobi
    A: Nairobi                                     Nairobi
    Answer:
    ⏎⏎The answer is:
    **Answer:** Nairobi                            Nairobi
    A:⏎A:
    ### Final answer:⏎⏎**Nairobi**                 Nairobi**
    The correct answer is: Nairobi                 Nairobi
    ANSWER: Nairobi                                Nairobi
    My answer: It is A: b                          It is A: b
    Answer - Nairobi                               Nairobi
    **Answer** — Nairobi                           Nairobi
    Answer-key                                     Answer-key
    Answer：Nairobi                                Nairobi
    Ans: Nairobi                                   Nairobi
    Response: Nairobi                              Nairobi
    ### Answer⏎Nairobi                             Nairobi
    ## Final answer
    Answer                                         Answer
    <answer>Nairobi</answer>                       Nairobi
    ```⏎Nairobi                                    Nairobi
    Answer:⏎```text⏎Nairobi                        Nairobi
    ```
    ```Nairobi```                                  ```Nairobi```

    <think>⏎Kenya? It is Mombasa.⏎</think>⏎⏎Nairobi  Nairobi
    <think>⏎Kenya?
    <think></think>Nairobi                         Nairobi
    Kenya? Hm.</think>⏎A: Nairobi                  Nairobi
    [THINK]Kenya?[/THINK]Nairobi                   Nairobi
    <thinking>Hm
    <|channel|>analysis<|message|>Hm
    <seed:think>Hm</seed:think>Nairobi             Nairobi
    <|channel|>analysis<|message|>Hm<|channel|>final<|message|>Nairobi  Nairobi

    <|thinking|>Hm<|/thinking|>⏎Nairobi            Nairobi
    <think mode="on">Hm</think>Nairobi             Nairobi
    <think/>Nairobi                                Nairobi
    <scratchpad>Hm
    <|channel>thought⏎Hm<channel|>Nairobi          Nairobi
    <unused94>thought⏎Hm<unused95>Nairobi          Nairobi
    analysisHm.assistantfinalNairobi               Nairobi
    <|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>Nairobi<|END_RESPONSE|>  Nairobi
    <|begin_of_thought|>Hm<|end_of_thought|>⏎<|begin_of_solution|>Nairobi<|end_of_solution|>  Nairobi
    <|channel|>final <|constrain|>json<|message|>Nairobi<|return|>  Nairobi

    \\boxed{Nairobi}                               Nairobi
    It is $\\boxed{\\text{New York}}$.              New York
    <think>\\boxed{8}</think>\\[\\boxed{9}\\]        9
    **Answer:** \\fbox{f_{1}}                      f_{1}
    \\boxed{Nai                                    Nai
    \\boxed{}
    <final_answer>Nairobi</final_answer>           Nairobi

    Question: Who?⏎A: Nairobi
    Nairobi⏎Question: Who is Mombasa?              Nairobi
    Nairobi. Q: Who? A: He                         Nairobi.
    ⏎Q: Who?
    A Q: x                                         A
    IQ: 100                                        IQ: 100
"""


@pytest.mark.parametrize(("text", "answer"), rows(BEGINNINGS))
def test_what_an_answer_says(text, answer):
    assert answer_text(text) == answer
    assert answer_text(answer_text(text)) == answer
    lead, rest = split_lead(text)
    assert lead + rest == text
    assert rest.startswith(answer)


def test_spaces_before_an_answer_stay():
    assert answer_text("") == ""
    assert answer_text(" Nairobi") == " Nairobi"
    assert answer_text(" \n\n  Nairobi") == "Nairobi"
    assert answer_text(" A: Nairobi") == "Nairobi"
    assert answer_text("◁think▷Hm◁/think▷ Nairobi") == " Nairobi"


def test_a_thought_that_the_template_began():
    before = "<|user|>Who?<|assistant|><think>\n"
    assert split_lead("Hm, Kenya", before) == ("Hm, Kenya", "")
    assert answer_text("Hm, Kenya</think> Nairobi", before) == " Nairobi"
    assert answer_text("Nairobi", "<think>Hm</think>") == "Nairobi"


@pytest.mark.parametrize(
    ("tokens", "kept", "n"),
    [
        ("\n|Nai|robi|.| The", "Nairobi", 3),
        ("The answer is|:| Nairobi", "Nairobi", 3),
        (" A|:| Nai|robi|\n|B", "Nairobi", 4),
        ("Question|:| Who", "", 0),
    ],
)
def test_the_tokens_of_an_answer_are_all_up_to_its_end(tokens, kept, n):
    assert ending(made(*tokens.split("|")), skip_lead=True) == (kept, n)


LABELLED = re.compile(r"\s*((the answer is|answer):\s*)+(a:\s*$)?", re.IGNORECASE)
QUESTION = re.compile(r"(?:^|\s)(?:Q|Question)\s*:")
EDGE = " \n*_"


def test_recorded_answers():
    """SmolLM2's: what begins at once is left as it is, and a label is never an answer."""
    smollm = "sha256:b179c9523d0e6a0f float32"
    texts = []
    for file, about in read_index(DATA / "records")["files"].items():
        if about["operation"] == "generate" and about["model"] == smollm:
            values = read_texts(DATA / "records" / file, about["sha256"]).values()
            texts += [json.loads(value)["text"] for value in values]
    assert len(texts) > 10_000
    late = ("\n", "a:", "q:", "question:", "the answer is:", "answer:")
    n_changed = 0
    for text in texts:
        answer = answer_text(text)
        n_changed += answer not in (text, "")
        begins_at_once = not text.lstrip(" \t").lower().startswith(late)
        if begins_at_once and not QUESTION.search(text):
            assert answer == text
        label = LABELLED.match(text)
        if label:
            behind = QUESTION.split(text[label.end() :])[0]
            assert answer.strip(EDGE) == behind.strip(EDGE), text
    assert n_changed > 40  # it was not looked at for nothing


# Tokens of what a model goes on to say in a chat, and the answer that is kept.
CUT_BY_A_FULL_STOP = """
    Washington|, D|.C|. |It|⏎           Washington, D.C
    St|. |Louis|⏎                       St. Louis
    3|.|14|⏎                            3.14
    1969|. |It|⏎                        1969
    ```|⏎|Nairobi|⏎⏎                    ```⏎Nairobi
"""
CHAT = {"prompt_format": "chat", "chat": ("<user>", "<model>")}
WHO, OTHER, WHAT = "<user>Who?<model>", "<user>Who?</model>", "<user>What?<model>"


@pytest.mark.parametrize(("path", "kept"), rows(CUT_BY_A_FULL_STOP))
def test_a_full_stop_inside_an_answer_of_a_chat_does_not_end_it(path, kept, toy_model):
    """Of one word after another, all of which are certain."""
    said_tokens = path.split("|")
    pairs = zip(["<model>", *said_tokens], said_tokens, strict=False)
    model = toy_model({last: {token: 1.0} for last, token in pairs}, **CHAT)
    [found] = generate_answers(model, [WHO], max_new_tokens=5, stop=CHAT_END)
    assert found.text == kept
    assert "".join(said_tokens[: len(found.token_ids)]) == kept


@pytest.mark.parametrize("before", ["\n", "The answer is:|\n", "<think>|Hm|</think>|\n"])
def test_a_model_that_has_said_nothing_goes_on(toy_model, before):
    """The answer ends at the stop string behind its beginning, with its tokens, and its curve."""
    path = [*before.split("|"), " Nairobi", ".", "\n"]
    rows = {"<model>": {path[0]: 0.8, " Lima": 0.2}, "</model>": {" Lima": 1.0}}
    for token, following in pairwise(path):
        rows.setdefault(token, {following: 1.0})
    model = toy_model(rows, **CHAT)
    grid = [0.5, 2.0]
    how = {"max_new_tokens": 2, "stop": [".", "\n"], "temperatures": grid}
    late, at_once, same = generate_answers(model, [WHO, OTHER, WHAT], **how)
    assert late.text == "".join(path[:-2])
    assert answer_text(late.text).strip() == "Nairobi"
    assert len(late.token_ids) == len(late.logprobs) == len(path) - 2
    assert np.exp(sum(late.logprobs)) == pytest.approx(0.8)
    odds = 4.0 ** np.array([1 / 0.5, 1 / 2.0])
    assert np.exp(late.curve) == pytest.approx(odds / (1 + odds), rel=1e-4)
    assert at_once == model.generate([OTHER], **how)[0]
    assert (same.prompt, same.text) == (WHAT, late.text)


def test_a_thought_that_does_not_end(toy_model, monkeypatch, capsys):
    monkeypatch.setattr(endings, "THINKING", 20)
    path = {
        "<model>": "<think>",
        "<think>": "Hm",
        "Hm": "Hm",
        "</model>": "[THINK]",
        "[THINK]": "[/THINK]",
        "[/THINK]": "Lima",
    }
    rows = {token: {following: 1.0} for token, following in path.items()}
    model = toy_model(rows, **CHAT)
    with pytest.raises(ModelError, match=r"thinks before .* 1 of 1 thoughts did not end within 20"):
        generate_answers(model, [WHO], max_new_tokens=1, stop=["."])
    lost, found = generate_answers(model, [WHO, OTHER], max_new_tokens=1, stop=["."])
    assert answer_text(lost.text) == ""
    assert answer_text(found.text) == "Lima"
    assert "1 of 2 thoughts did not end" in capsys.readouterr().err


def test_what_has_begun_is_asked_once(toy_model, monkeypatch):
    model = toy_model({"?": {" Lima": 1.0}, " Lima": {".": 1.0}})
    answer = model.answer
    asked = []
    monkeypatch.setattr(model, "answer", lambda job: asked.append(job) or answer(job))
    [found] = generate_answers(model, ["Who?"], max_new_tokens=3, stop=["."])
    assert found.text == " Lima"
    assert len(asked) == 1
