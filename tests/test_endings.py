"""Where an answer ends."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factrobust.endings import covering, cut, ending, first_sentence, unsure
from factrobust.models.interface import Generation


def made(*tokens: str, text: str | None = None) -> Generation:
    """A generation of these tokens; the alternative to each is impossible."""
    ids = list(range(1, len(tokens) + 1))
    top = [[(token, -0.5), ("never", -9.0)] for token in tokens]
    return Generation("?", "".join(tokens) if text is None else text, ids, [-0.5] * len(ids), top)


@pytest.mark.parametrize(("text", "kept"), [
    (" Nairobi. The capital of", " Nairobi"), (" Nairobi.", " Nairobi"), (" Nairobi", " Nairobi"),
    (" Nairobi\nQ: What", " Nairobi"), ("\nNairobi", ""), (" 15.999.", " 15.999"),
    (" 1,000.5 m. It", " 1,000.5 m"), (" 1. B: In the periodic table", " 1"),
    (" 1947. In 1948", " 1947"), (" J. K. Rowling. She", " J. K. Rowling"),
    (" J.R.R. Tolkien.", " J.R.R. Tolkien"), (" F. Scott Fitzgerald. Q", " F. Scott Fitzgerald"),
    (" George W. Bush.", " George W. Bush"), (" Washington, D.C. It is", " Washington, D.C"),
    (" the U.S. Route 66. It", " the U.S. Route 66"), (" 300 B.C.E. The", " 300 B.C.E"),
    (" St. Petersburg. The", " St. Petersburg"), (" Dr. No.", " Dr. No"),
    (" Op. 27, No. 2. It", " Op. 27, No. 2"), (" A. B: The musical work", " A"),
    (" C. It is", " C"), (" the street. He", " the street"),
    (" the “Father of Physics.”", " the “Father of Physics"), (" Yahoo! Inc. of", " Yahoo! Inc"),
    ("", ""),
])  # fmt: skip
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


@pytest.mark.parametrize(("tokens", "text", "kept", "n"), [
    # SentencePiece tokenizers decode a single token without the space before it.
    (["New", "York", ".", "It"], " New York. It", "New York", 2),
    # Half a letter is a replacement character.
    ([" S", "\ufffd", "\ufffd", "o", " Paulo", "."], " São Paulo.", "São Paulo", 5),
    ([" caf", "\ufffd", "\ufffd", ".", " It"], " café. It", "café", 3),
    ([" Nai", "<pad>", "robi", "."], " Nairobi.", "Nairobi", 3),
])  # fmt: skip
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
    " Nairobi.": "Nairobi", " Nairobi. The capital of Kenya is Nairobi.": "Nairobi",
    "nairobi. it is large.": "nairobi", "Paris .": "Paris", "Paris...": "Paris",
    "Paris... The city of love": "Paris", "In 1945. It ended in May.": "In 1945",
    "Vitamin C. It is an acid.": "Vitamin C", "K. The symbol of potassium": "K",
    "George V. He was king.": "George V", "8. The atomic number of oxygen": "8",
    "World War II. It": "World War II", "a 5.5 km run. It": "a 5.5 km run", "东京。日本的首都": "东京",
    # Other marks stay, with the quotes that they close.
    "Mamma Mia!": "Mamma Mia!", "Who? I do not know.": "Who?",
    "Jeopardy! The host was Alex Trebek.": "Jeopardy!",
    'It is called "Paris." The name is old.': 'It is called "Paris."',
    "Paris (in France). It": "Paris (in France)",
    # No sentence ends here.
    "Washington, D.C.": "Washington, D.C.", "Washington, D.C": "Washington, D.C",
    "J. K. Rowling": "J. K. Rowling", "J.K. Rowling": "J.K. Rowling", "A. A. Milne": "A. A. Milne",
    "(J. K. Rowling)": "(J. K. Rowling)", "St. Louis": "St. Louis", "Mt. Everest": "Mt. Everest",
    "Dr. No": "Dr. No", "Dr. Who": "Dr. Who", "U.S.": "U.S.", "U.S. Route 66": "U.S. Route 66",
    "Robert Downey Jr.": "Robert Downey Jr.",
    "Martin Luther King Jr. was a minister": "Martin Luther King Jr. was a minister",
    "Warner Bros. Pictures": "Warner Bros. Pictures", "Apple Inc.": "Apple Inc.",
    "Symphony No. 9": "Symphony No. 9", "at 7 p.m. on Dec. 5": "at 7 p.m. on Dec. 5",
    "Yahoo! is a company": "Yahoo! is a company", "1. Nairobi": "1. Nairobi", "3.14": "3.14",
    "factrobust.org": "factrobust.org",
    # After an abbreviation it ends if the next word begins one.
    "Washington, D.C. It is the capital.": "Washington, D.C.",
    "Washington, D.C. is the capital. It": "Washington, D.C. is the capital",
    "J. K. Rowling. She wrote it.": "J. K. Rowling", "St. Louis. The city": "St. Louis",
    "The U.S. The country": "The U.S.", "Sammy Davis Jr. He sang.": "Sammy Davis Jr.",
    "by A. A. Milne": "by A. A. Milne",
    # Lines.
    "Nairobi \nQuestion: What else?": "Nairobi", "\n\n Nairobi\r\nMombasa": "Nairobi",
    # Nothing to cut, or nothing at all.
    "Nairobi": "Nairobi", "": "", " \n ": "", "...": "...", ". Nairobi. It": ". Nairobi",
    # Known failures.
    "Mamma Mia! Here We Go Again": "Mamma Mia!",
    "He lives in the U.S. Nobody knows.": "He lives in the U.S. Nobody knows",
}  # fmt: skip


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
