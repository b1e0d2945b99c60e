"""Where an answer ends."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust import endings
from factrobust.endings import ask, covering, cut, ending, first_sentence, said, split, unsure
from factrobust.models.interface import Generation, ModelError
from factrobust.models.records import read_index, read_texts
from factrobust.paths import DATA


def made(*tokens: str, text: str | None = None) -> Generation:
    """A generation of these tokens; the alternative to each is impossible."""
    ids = list(range(1, len(tokens) + 1))
    top = [[(token, -0.5), ("never", -9.0)] for token in tokens]
    return Generation("?", "".join(tokens) if text is None else text, ids, [-0.5] * len(ids), top)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (" Nairobi. The capital of", " Nairobi"),
        (" Nairobi.", " Nairobi"),
        (" Nairobi", " Nairobi"),
        (" Nairobi\nQ: What", " Nairobi"),
        ("\nNairobi", ""),
        (" 15.999.", " 15.999"),
        (" 1,000.5 m. It", " 1,000.5 m"),
        (" 1. B: In the periodic table", " 1"),
        (" 1947. In 1948", " 1947"),
        (" J. K. Rowling. She", " J. K. Rowling"),
        (" J.R.R. Tolkien.", " J.R.R. Tolkien"),
        (" F. Scott Fitzgerald. Q", " F. Scott Fitzgerald"),
        (" George W. Bush.", " George W. Bush"),
        (" Washington, D.C. It is", " Washington, D.C"),
        (" the U.S. Route 66. It", " the U.S. Route 66"),
        (" 300 B.C.E. The", " 300 B.C.E"),
        (" St. Petersburg. The", " St. Petersburg"),
        (" Dr. No.", " Dr. No"),
        (" Op. 27, No. 2. It", " Op. 27, No. 2"),
        (" A. B: The musical work", " A"),
        (" C. It is", " C"),
        (" the street. He", " the street"),
        (" the “Father of Physics.”", " the “Father of Physics"),
        (" Yahoo! Inc. of", " Yahoo! Inc"),
        ("", ""),
    ],
)
def test_cut(text, kept):
    assert cut(text) == kept


def test_what_may_go_on_after_its_full_stop():
    """Generation stops at a full stop and a space, so only these need be asked again."""
    for text in (" J", " F", " Washington, D.C", " St", " Op", " in the U.S", " C"):
        assert unsure(text), text
        assert not unsure(text + "opped")
    for text in (" Nairobi", " 1", " 300 BC", " the street", ""):
        assert not unsure(text)
        for behind in (" Nairobi is", " 12", " It", "", " B: C", " K. L"):
            assert cut(f"{text}.{behind}") == text


def test_fewest_tokens():
    answer = made(" Nai", "robi", ".", " The", " capital")
    assert ending(answer) == ("Nairobi", 2)
    assert covering(answer, " Nai") == 1
    assert covering(answer, " Nairo") == 2
    assert covering(answer, "") == 0
    assert covering(answer, answer.text) == 5
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
        (["New", "York", ".", "It"], " New York. It", "New York", 2),
        # Half a letter is a replacement character.
        ([" S", "\ufffd", "\ufffd", "o", " Paulo", "."], " São Paulo.", "São Paulo", 5),
        ([" caf", "\ufffd", "\ufffd", ".", " It"], " café. It", "café", 3),
        ([" Nai", "<pad>", "robi", "."], " Nairobi.", "Nairobi", 3),
    ],
)
def test_tokens_that_do_not_stand_in_the_text(tokens, text, kept, n):
    assert ending(made(*tokens, text=text)) == (kept, n)
    untold = Generation("?", text, [1] * len(tokens), [-1.0] * len(tokens))
    assert ending(untold) == (kept, len(tokens))  # a model that tells no tokens


def test_no_letters_or_digits_is_empty():
    for text in (" :", "...", " “", " -", ""):
        assert ending(made(text)) == ("", 0)
    assert ending(made(" +", "1")) == ("+1", 2)


EXAMPLES = {
    # A sentence ends, and its full stop goes.
    " Nairobi.": "Nairobi",
    " Nairobi. The capital of Kenya is Nairobi.": "Nairobi",
    "nairobi. it is large.": "nairobi",
    "Paris .": "Paris",
    "Paris...": "Paris",
    "Paris... The city of love": "Paris",
    "In 1945. It ended in May.": "In 1945",
    "Vitamin C. It is an acid.": "Vitamin C",
    "K. The symbol of potassium": "K",
    "George V. He was king.": "George V",
    "8. The atomic number of oxygen": "8",
    "World War II. It": "World War II",
    "a 5.5 km run. It": "a 5.5 km run",
    "东京。日本的首都": "东京",
    # Other marks stay, with the quotes that they close.
    "Mamma Mia!": "Mamma Mia!",
    "Who? I do not know.": "Who?",
    "Jeopardy! The host was Alex Trebek.": "Jeopardy!",
    'It is called "Paris." The name is old.': 'It is called "Paris."',
    "Paris (in France). It": "Paris (in France)",
    # No sentence ends here.
    "Washington, D.C.": "Washington, D.C.",
    "Washington, D.C": "Washington, D.C",
    "J. K. Rowling": "J. K. Rowling",
    "J.K. Rowling": "J.K. Rowling",
    "A. A. Milne": "A. A. Milne",
    "(J. K. Rowling)": "(J. K. Rowling)",
    "St. Louis": "St. Louis",
    "Mt. Everest": "Mt. Everest",
    "Dr. No": "Dr. No",
    "Dr. Who": "Dr. Who",
    "U.S.": "U.S.",
    "U.S. Route 66": "U.S. Route 66",
    "Robert Downey Jr.": "Robert Downey Jr.",
    "Martin Luther King Jr. was a minister": "Martin Luther King Jr. was a minister",
    "Warner Bros. Pictures": "Warner Bros. Pictures",
    "Apple Inc.": "Apple Inc.",
    "Symphony No. 9": "Symphony No. 9",
    "at 7 p.m. on Dec. 5": "at 7 p.m. on Dec. 5",
    "Yahoo! is a company": "Yahoo! is a company",
    "1. Nairobi": "1. Nairobi",
    "3.14": "3.14",
    "factrobust.org": "factrobust.org",
    # After an abbreviation it ends if the next word begins one.
    "Washington, D.C. It is the capital.": "Washington, D.C.",
    "Washington, D.C. is the capital. It": "Washington, D.C. is the capital",
    "J. K. Rowling. She wrote it.": "J. K. Rowling",
    "St. Louis. The city": "St. Louis",
    "The U.S. The country": "The U.S.",
    "Sammy Davis Jr. He sang.": "Sammy Davis Jr.",
    "by A. A. Milne": "by A. A. Milne",
    # Lines.
    "Nairobi \nQuestion: What else?": "Nairobi",
    "\n\n Nairobi\r\nMombasa": "Nairobi",
    # Nothing to cut, or nothing at all.
    "Nairobi": "Nairobi",
    "": "",
    " \n ": "",
    "...": "...",
    ". Nairobi. It": ". Nairobi",
    # Known failures.
    "Mamma Mia! Here We Go Again": "Mamma Mia!",
    "He lives in the U.S. Nobody knows.": "He lives in the U.S. Nobody knows",
}


@pytest.mark.parametrize(("text", "sentence"), EXAMPLES.items(), ids=lambda text: repr(text)[:30])
def test_examples(text, sentence):
    assert first_sentence(text) == sentence


@settings(deadline=None)
@given(st.text(alphabet="Ab U.S!?1 \n\"'。)(", max_size=30) | st.text())
def test_is_the_beginning_of_one_line(text):
    sentence = first_sentence(text)
    assert text.strip().startswith(sentence)
    assert sentence == sentence.strip()
    assert len(sentence.splitlines()) <= 1
    assert bool(sentence) == bool(text.strip())


# -- where an answer begins ------------------------------------------------------------------------

BEGINNINGS = {
    # Nothing stands before it.
    " Nairobi": " Nairobi",
    "Nairobi": "Nairobi",
    "": "",
    "Nairobi\nMombasa": "Nairobi\nMombasa",
    "The answer is Nairobi": "The answer is Nairobi",
    "A capital: Nairobi": "A capital: Nairobi",
    "Answers differ: a": "Answers differ: a",
    "A: Jazz B: Rock": "A: Jazz B: Rock",
    "a: A: Jazz": "a: A: Jazz",
    "A. Nairobi": "A. Nairobi",
    # Blank lines.
    "\nNairobi": "Nairobi",
    " \n\n  Nairobi\nx": "Nairobi\nx",
    "\n": "",
    " \n \n": "",
    # Labels, on a line of their own or not.
    "The answer is: Nairobi": "Nairobi",
    "\nThe answer is:\nNairobi": "Nairobi",
    " A: Nairobi": "Nairobi",
    "Answer:": "",
    "\n\nThe answer is:": "",
    "**Answer:** Nairobi": "Nairobi",
    "A:\nA:": "",
    "### Final answer:\n\n**Nairobi**": "Nairobi**",
    "The correct answer is: Nairobi": "Nairobi",
    "ANSWER: Nairobi": "Nairobi",
    "My answer: It is A: b": "It is A: b",
    "Answer - Nairobi": "Nairobi",
    "**Answer** — Nairobi": "Nairobi",
    "Answer-key": "Answer-key",
    "Answer：Nairobi": "Nairobi",
    "Ans: Nairobi": "Nairobi",
    "Response: Nairobi": "Nairobi",
    "### Answer\nNairobi": "Nairobi",
    "## Final answer": "",
    "Answer": "Answer",
    "<answer>Nairobi</answer>": "Nairobi",
    # Thoughts.
    "<think>\nKenya? It is Mombasa.\n</think>\n\nNairobi": "Nairobi",
    "<think>\nKenya?": "",
    "<think></think>Nairobi": "Nairobi",
    "Kenya? Hm.</think>\nA: Nairobi": "Nairobi",
    "[THINK]Kenya?[/THINK]Nairobi": "Nairobi",
    " <thinking>Hm": "",
    "◁think▷Hm◁/think▷ Nairobi": " Nairobi",
    "<|channel|>analysis<|message|>Hm": "",
    "<seed:think>Hm</seed:think>Nairobi": "Nairobi",
    "<|channel|>analysis<|message|>Hm<|channel|>final<|message|>Nairobi": "Nairobi",
    # The model's own next question.
    "Question: Who?\nA: Nairobi": "",
    "Nairobi\nQuestion: Who is Mombasa?": "Nairobi",
    " Nairobi. Q: Who? A: He": " Nairobi.",
    "\nQ: Who?": "",
    "A Q: x": "A",
    "IQ: 100": "IQ: 100",
}


@pytest.mark.parametrize(("text", "answer"), BEGINNINGS.items(), ids=lambda text: repr(text)[:30])
def test_what_an_answer_says(text, answer):
    assert said(text) == answer
    assert said(said(text)) == answer
    lead, rest = split(text)
    assert lead + rest == text
    assert rest.startswith(answer)


def test_a_thought_that_the_template_began():
    before = "<|user|>Who?<|assistant|><think>\n"
    assert split("Hm, Kenya", before) == ("Hm, Kenya", "")
    assert said("Hm, Kenya</think> Nairobi", before) == " Nairobi"
    assert said("Nairobi", "<think>Hm</think>") == "Nairobi"


@pytest.mark.parametrize(
    ("tokens", "kept", "n"),
    [
        (["\n", "Nai", "robi", ".", " The"], "Nairobi", 3),
        (["The answer is", ":", " Nairobi"], "Nairobi", 3),
        ([" A", ":", " Nai", "robi", "\n", "B"], "Nairobi", 4),
        (["Question", ":", " Who"], "", 0),
    ],
)
def test_the_tokens_of_an_answer_are_all_up_to_its_end(tokens, kept, n):
    assert ending(made(*tokens), begun=True) == (kept, n)


def recorded(model: str) -> list[str]:
    """The greedy answers that a model's records hold."""
    files = read_index(DATA / "records")["files"].items()
    mine = [(f, a) for f, a in files if a["operation"] == "generate" and a["model"] == model]
    values = [v for f, a in mine for v in read_texts(DATA / "records" / f, a["sha256"]).values()]
    return [json.loads(value)["text"] for value in values]


def test_recorded_answers():
    """SmolLM2's: what begins at once is left as it is, and a label is never an answer."""
    texts = recorded("sha256:b179c9523d0e6a0f float32")
    assert len(texts) > 10_000
    labels = ("the answer is:", "answer:")
    late = ("\n", "a:", "q:", "question:", *labels)
    for text in texts:
        plain = text.strip().lower()
        if not (
            text.lstrip(" \t").lower().startswith(late) or re.search(r"\s(Q|Question)\s*:", text)
        ):
            assert said(text) == text, text
        for label in labels:
            if plain.startswith(label):
                behind = re.sub(rf"(?i)^\s*({label}\s*)+", "", text)
                told = re.split(r"(?:^|\s)(?:Q|Question):", behind)[0]
                told = re.sub(r"(?i)^\s*a:\s*$", "", told)  # another label, and nothing behind it
                assert said(text).strip(" \n*_") == told.strip(" \n*_"), text
    begun = sum(said(text) != text and bool(said(text).strip()) for text in texts)
    assert begun > 40  # it was not looked at for nothing


CHAT = {"prompt_format": "chat", "chat": ("<user>", "<model>")}
LATE = {  # what a model says first, and the tokens that lead to the answer
    "a newline": {"\n": {" Nairobi": 1.0}},
    "a label": {"The answer is:": {"\n": 1.0}, "\n": {" Nairobi": 1.0}},
    "a thought": {
        "<think>": {"Hm": 1.0},
        "Hm": {"</think>": 1.0},
        "</think>": {"\n": 1.0},
        "\n": {" Nairobi": 1.0},
    },
}


@pytest.mark.parametrize("kind", LATE)
def test_a_model_that_has_said_nothing_goes_on(toy_model, kind):
    """The answer ends at the stop string behind its beginning, with its tokens, and its curve."""
    path = [*LATE[kind]]
    rows = {
        "<model>": {path[0]: 0.8, " Lima": 0.2},
        **LATE[kind],
        " Nairobi": {".": 1.0},
        ".": {"\n": 1.0},
    }
    model = toy_model(rows | {"</model>": {" Lima": 1.0}}, **CHAT)
    grid = [0.5, 2.0]
    how = {"max_new_tokens": 2, "stop": [".", "\n"], "temperatures": grid}
    prompts = ["<user>Who?<model>", "<user>Who?</model>", "<user>What?<model>"]
    late, at_once, same = ask(model, prompts, **how)
    assert late.text == "".join(path) + " Nairobi"
    assert said(late.text).strip() == "Nairobi"
    assert len(late.token_ids) == len(late.logprobs) == len(path) + 1
    assert np.exp(sum(late.logprobs)) == pytest.approx(0.8)
    odds = 4.0 ** np.array([1 / 0.5, 1 / 2.0])
    assert np.exp(late.curve) == pytest.approx(odds / (1 + odds), rel=1e-4)
    assert at_once == model.generate(prompts[1:2], **how)[0]
    assert same.prompt == prompts[2]
    assert same.text == late.text


def test_a_thought_that_does_not_end(toy_model, monkeypatch, capsys):
    monkeypatch.setattr(endings, "THINKING", 20)
    rows = {"<model>": {"<think>": 1.0}, "<think>": {"Hm": 1.0}, "Hm": {"Hm": 1.0}}
    rows |= {"</model>": {"[THINK]": 1.0}, "[THINK]": {"[/THINK]": 1.0}, "[/THINK]": {"Lima": 1.0}}
    model = toy_model(rows, **CHAT)
    how = {"max_new_tokens": 1, "stop": ["."]}
    with pytest.raises(ModelError, match=r"thinks before .* 1 of 1 thoughts did not end within 20"):
        ask(model, ["<user>Who?<model>"], **how)
    lost, found = ask(model, ["<user>Who?<model>", "<user>Who?</model>"], **how)
    assert said(lost.text) == ""
    assert said(found.text) == "Lima"
    assert "1 of 2 thoughts did not end" in capsys.readouterr().err


def test_what_has_begun_is_asked_once(toy_model, monkeypatch):
    model = toy_model({"?": {" Lima": 1.0}, " Lima": {".": 1.0}})
    answer = model.answer
    asked = []
    monkeypatch.setattr(model, "answer", lambda job: asked.append(job) or answer(job))
    assert [g.text for g in ask(model, ["Who?"], max_new_tokens=3, stop=["."])] == [" Lima"]
    assert len(asked) == 1
