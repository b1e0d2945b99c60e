"""Where does the first sentence of an answer end?

Paper 3 keeps the first sentence of an answer (3.1) and does not say how it is found. No sentence
splitter is meant for three-word answers full of names, so the rule is spelt out here.
"""

from __future__ import annotations

import re

MARK = re.compile(r"([.!?]+)[\"'”’»)\]]*(?=\s|$)|([。！？])")  # with the quotes that it closes
OPENING = re.compile(r"[\s(\[\"'“‘«]")  # what may stand before a word
DOTTED = re.compile(r"(?:[A-Za-z]{1,2}\.)+[A-Za-z]{1,2}")  # U.S, D.C, a.m, Ph.D
TITLE = re.compile("Mrs?|Ms|Dr|Prof|Ste?|Mt|Ft|Gen|Col|Capt|Lt|Sgt|Rev|Hon|Pres|Gov")
END_OF_NAME = re.compile("Jr|Sr|Inc|Ltd|Co|Corp|Bros")
ABBREVIATION = re.compile(
    "Ave|Blvd|Dept|Univ|Nos?|Op|Vol|vs|ca|cf|approx|Jan|Feb|Mar|Apr|Aug|Sept|Oct|Nov|Dec"
)
SHORTENED = (END_OF_NAME, ABBREVIATION, DOTTED)
STARTER = re.compile(
    r"(?:The|This|That|These|Those|It|He|She|They|We|You|I|Its|His|Her|Their|There|An?|In|On|At|If|"
    r"But|And|So|However|Also|As|For|When|While|What|Who|Which|Where|How|Is|Was|Question|Answer)"
    r"(?!\w|\.)"
)


def first_sentence(text: str) -> str:
    """The first sentence of a text, without the white space around it and its full stop.

    It ends at the first line's end, or before at a run of . ! or ? (and the quotes and brackets
    that it closes) with white space or nothing after it, or at 。！？ anywhere. A full stop does not
    end it

    - after a title ("St. Louis", "Dr. No");
    - after another abbreviation, a single letter or dotted letters ("Martin Luther King Jr.",
      "J. K. Rowling", "U.S. Route 66") or a number that begins the text ("1. Nairobi"), unless a
      word follows with which sentences begin ("Washington, D.C. It is ...");

    and other marks do not before a small letter ("Yahoo! is ..."). The full stop goes, so that
    "Paris." is "Paris", but not that of dotted letters or of Jr., Inc. and the like; other marks
    stay. What is left is a prefix of the stripped text. Known to fail: "Mamma Mia! Here We Go
    Again" ends too early, "He lives in the U.S. Nobody ..." too late.
    """
    line = (text.strip().splitlines() or [""])[0].rstrip()
    for match in MARK.finditer(line):
        before, mark = line[: match.start()].rstrip(), match[1] or match[2]
        word = OPENING.split(before)[-1]
        if not before or not _ends(before, word, mark, line[match.end() :].lstrip()):
            continue
        stop = set(match[0]) <= {".", "。"}
        named = END_OF_NAME.fullmatch(word) or DOTTED.fullmatch(word)
        return before if stop and not named else line[: match.end()]
    return line


def _ends(before: str, word: str, mark: str, after: str) -> bool:
    """Whether a sentence ends with a mark after `word`, the last one of `before`."""
    if not after or mark in "。！？":
        return True
    if mark != ".":
        return not after[0].islower()
    if TITLE.fullmatch(word):
        return False
    letter = len(word) == 1 and word.isalpha()
    if letter or before.isdigit() or any(k.fullmatch(word) for k in SHORTENED):
        return STARTER.match(after) is not None
    return True
