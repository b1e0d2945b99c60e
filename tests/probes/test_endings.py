"""Where an answer ends, by both rules."""

from __future__ import annotations

import pytest

from factrobust.models.interface import Generation
from factrobust.probes.endings import covering, cut, ending, unsure


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
def test_cut(text: str, kept: str) -> None:
    assert cut(text) == kept


@pytest.mark.parametrize(
    "text", [" J", " F", " Washington, D.C", " St", " Op", " in the U.S", " C"]
)
def test_what_may_go_on_after_its_full_stop(text: str) -> None:
    """Generation stops at a full stop and a space, so only these need be asked again."""
    assert unsure(text)
    assert not unsure(text + "opped")


def test_no_other_answer_goes_on() -> None:
    for text in (" Nairobi", " 1", " 300 BC", " the street", ""):
        assert not unsure(text)
        for behind in (" Nairobi is", " 12", " It", "", " B: C", " K. L"):
            assert cut(f"{text}.{behind}") == text


def test_fewest_tokens() -> None:
    answer = made(" Nai", "robi", ".", " The", " capital")
    assert ending(answer, "robust") == ("Nairobi", 2)
    assert covering(answer, " Nai") == 1
    assert covering(answer, " Nairo") == 2
    assert covering(answer, "") == 0
    assert covering(answer, answer.text) == 5
    # The token that ends the answer may begin with its last letters.
    assert ending(made(" Washington", ",", " D", ".C", ".", " It"), "robust") == (
        "Washington, D.C",
        4,
    )


def test_spaces_that_a_token_alone_does_not_show() -> None:
    """SentencePiece tokenizers decode a single token without the space before it."""
    answer = made("New", "York", ".", "It", text=" New York. It")
    assert ending(answer, "robust") == ("New York", 2)


def test_halves_of_letters() -> None:
    half = "\ufffd"
    assert ending(made(" S", half, half, "o", " Paulo", ".", text=" São Paulo."), "robust") == (
        "São Paulo",
        5,
    )
    assert ending(made(" caf", half, half, ".", " It", text=" café. It"), "robust") == ("café", 3)


def test_tokens_that_add_nothing() -> None:
    answer = made(" Nai", "<pad>", "robi", ".", text=" Nairobi.")
    assert ending(answer, "robust") == ("Nairobi", 3)


def test_equally_likely_tokens() -> None:
    """The chosen one need not be listed first."""
    answer = made(" Lima", ".", " It")
    answer.top_logprobs[0] = [(" Nairobi", -0.5), (" Lima", -0.5)]
    assert ending(answer, "robust") == ("Lima", 1)


def test_models_that_tell_no_tokens() -> None:
    answer = Generation("?", " Nairobi. It", [1, 2, 3], [-1.0] * 3)
    assert ending(answer, "robust") == ("Nairobi", 3)


def test_no_letters_or_digits_is_empty() -> None:
    for text in (" :", "...", " “", " -", ""):
        for rule in ("robust", "published"):
            assert ending(made(text), rule) == ("", 0)
    assert ending(made(" +", "1"), "robust") == ("+1", 2)


def test_published_drops_whole_tokens() -> None:
    """Generation has stopped at the full stop; the last token may hold it."""
    assert ending(made(" 15", text=" 15"), "published") == ("15", 1)
    assert ending(made(" Apple", " Inc.", text=" Apple Inc"), "published") == ("Apple", 1)
    assert ending(made(" St.", text=" St"), "published") == ("", 0)
    assert ending(made(text=""), "published") == ("", 0)


def test_unknown_rule() -> None:
    from factrobust.probes.endings import check_rule

    with pytest.raises(ValueError, match="rule 'thesis' is unknown; choose one of robust, publis"):
        check_rule("thesis")
