"""When does a generated text state the right answer, and how alike are the texts of a group?

Paper 1 selects known facts by exact match (4.1.2) and counts a sampled answer as right if it
contains the truth (4.2), but does not say how strings are compared: `normalise` is the usual rule
of SQuAD's evaluation, without diacritics, and keeps what carries meaning ("1.5" is not 15, "C++" is
not C).

A network, given as a function, tells how alike the texts of a group are: one float per group,
[group], NaN for fewer than two texts. Paper 3 says nothing about empty texts, whose embedding has
no direction: here two empty texts are equal (similarity 1), and an empty and another share nothing
(0)."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, starmap
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
PLACE = "qxzplace"  # a word that no text has
Array = NDArray[np.float64]
Groups = Sequence[Sequence[str]]

ARTICLES = frozenset(("a", "an", "the"))
# Letters that have no decomposition, or whose mark is left out in ordinary print (Russian ё).
PLAIN = str.maketrans("øłđðıё", "olddiе") | str.maketrans({"þ": "th", "æ": "ae", "œ": "oe"})
# Vowel points of Hebrew and Arabic, which are seldom written, and what only changes how a sign
# looks.
UNWRITTEN = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u0652\u0670\u034f\u20e3\ufe00-\ufe0f]"
)
STRESSED = frozenset("аеиоуыэюяіїє")  # in Cyrillic an acute over these marks the stress alone
ACUTE = "\u0301"
UNSPACED = (
    "CJK",
    "IDEOGRAPHIC",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)  # words stand without spaces
KANA = ("HIRAGANA", "KATAKANA")

APOSTROPHES = str.maketrans(dict.fromkeys("‘’`´′ʹʻʼʽʾʿ׳״＇", "'"))
TRADE_MARKS = str.maketrans(dict.fromkeys("™®©℠"))
# Other signs for the same: of Arabic numbers, and the hyphens of editors.
SIGNS = str.maketrans("٫٬٪‐‑‒", ".,%---")
NUMERO = re.compile("№ ?")
THIN_SPACE = re.compile(r"(?<=\d)[\u00a0\u2009\u202f](?=\d{3}(?!\d))")  # 1 000, as in print
RAISED = re.compile("(?<=\\d)(?=[²³¹⁰⁴-⁹⁻])")  # the power in 10²
FRACTION = re.compile("(?<=\\d)(?=[¼-¾⅐-⅞])")  # 10½

COMMA = re.compile(r"(?<=\d),(?=(?:\d\d,)*\d{3}\b)")  # 1,000 and 12,34,567
NO_ZERO = re.compile(r"(?<![\w.])\.(?=\d)")  # .5
ZEROS = re.compile(r"(?<![\d.])(\d+)\.0+(?![\d.]*\d)")  # 1969.0, but not 10.0.0.1
MINUS = re.compile(r"(?<![\w)\]])(?<!\d )[-–](?=[$€£]?\.?\d)")
GRADE = re.compile(r"(?<![\w.'’+-])(ab|[a-fo])[-–](?![\w-])")  # A-, blood of the group AB-
MINUS_BEFORE_CURRENCY = re.compile(r"−([$€£])")
PLUS = re.compile(r"(?<!\+)\+(?=\.?\d)|(?<=\d)\++")  # +5, 3+ and UTC+1 hold 5, 3 and 1
SUM = re.compile(r"(?<=\d)\+(?=\d)|(?<=\+\+)(?=\d)")  # 2+2 is no 22, C++17 is C++ 17
NUMBER_SIGN = re.compile(r"(?<![^\W\d_])#|#(?=\w)")  # of "#1", not of "C#"
MARKUP = re.compile(r"(?<=\w)[<>]|[<>](?!\s*[-$€£]?\.?\d)")
LETTER_POWER = re.compile(r"(?<=[^\W\d_])\^(?=\d)")  # m^2 is m²
POWER = re.compile(r"(?<!\d)\^|\^(?![−\d])")  # 10^2 stays, and is 10²
POINT = re.compile(r"(?<=\d)\.(?!\d)(?=\w)")  # "8.Next"
DOT = re.compile(r"(?<!\d)\.|\.(?!\d)")


# Signs with a text of their own; the bar of a fraction separates, as others do.
NAMED = {
    "&": " and ",
    "%": " percent ",
    "♯": "#",
    "'": "",
    "⁄": " ",
}


class _Signs(dict[int, str]):
    """What `str.translate` makes of each character: a letter, digit or mark stays; a sign that
    counts is a word; format characters vanish; all else separates."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        category = unicodedata.category(character)
        if character in NAMED:
            sign = NAMED[character]
        elif category[0] in "LNM" or character in ".+#^−♭":
            sign = character
        elif category == "Sc" or character in "°‰=<>≤≥≠±×÷√∞":
            sign = f" {character} "
        elif category == "Cf":
            sign = ""
        else:
            sign = " "
        self[code] = sign
        return sign


_SIGNS = _Signs()


@lru_cache(maxsize=100_000)
def normalise(text: str) -> str:
    """A text as it is compared: lower case, without diacritics, punctuation and articles, single
    spaces.

    Letters. Marks over Latin and Greek letters go ("São" -> "sao"), those of other scripts stay,
    since there they make other letters ("й", "が", Thai and Indic vowels), but for what is seldom
    written: the points of Hebrew and Arabic, the stress of Cyrillic. Composed and decomposed forms
    are equal. Where a script writes no spaces, each sign is a word; kana are cut where their kind
    changes.

    Numbers. Digits of any script are ASCII's; "1,457", "12,34,567" and "1969.0" are 1457, 1234567
    and 1969; a decimal point and a minus stay ("-5" is not 5), a plus beside a number goes; "№ 5"
    is "No. 5".

    Signs. Those of "C++", "C#", "A+" and "A-" belong to the word; currencies, "%" ("percent"), "&"
    ("and"), "°" and signs of relation are words. Apostrophes and full stops inside a word vanish
    ("U.S." -> "us"), other marks separate ("Coca-Cola" -> "coca cola"). A text that is only
    articles or signs stays."""
    words = _words(text)
    without_articles = [word for word in words if word not in ARTICLES]
    return " ".join(without_articles or words) or _only_signs(text)


def _words(text: str) -> list[str]:
    """The words that `normalise` joins, with the articles."""
    plain = text.casefold() if text.isascii() else _plain(text)
    plain = COMMA.sub("", plain)
    if "-" in plain or "–" in plain:
        plain = MINUS.sub("−", plain)
        plain = MINUS_BEFORE_CURRENCY.sub(r"\1−", plain)
        plain = GRADE.sub(r"\1−", plain)
    if "." in plain:
        plain = NO_ZERO.sub("0.", plain)
        plain = ZEROS.sub(r"\1", plain)
    if "<" in plain or ">" in plain:
        plain = MARKUP.sub(" ", plain)
    if "+" in plain or "#" in plain:
        plain = NUMBER_SIGN.sub(" ", plain)
        plain = SUM.sub(" ", plain)
        plain = PLUS.sub(" ", plain)
    if "^" in plain:
        plain = LETTER_POWER.sub("", plain)
        plain = POWER.sub(" ", plain)
    plain = plain.translate(_SIGNS)
    plain = POINT.sub(" ", plain)
    plain = DOT.sub("", plain)
    return plain.replace("−", "-").split()


def _plain(text: str) -> str:
    """A text in lower case, in plain letters and digits where `normalise` says so, composed."""
    # 1. Signs and digits.
    text = text.translate(APOSTROPHES).translate(TRADE_MARKS).translate(SIGNS)
    text = NUMERO.sub("No. ", text)
    text = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)
    text = THIN_SPACE.sub(",", text)
    text = RAISED.sub("^", text)
    text = FRACTION.sub(" ", text)
    # 2. Lower case, decomposed: a sign's compatible form may have a capital again.
    text = unicodedata.normalize("NFKD", text.casefold())
    text = unicodedata.normalize("NFKD", text.casefold())
    # 3. Letters without their marks, and with spaces where a script has none.
    kept = []
    base = ""
    script = ""
    for c in UNWRITTEN.sub("", text.replace("−", "-")):
        if unicodedata.category(c)[0] == "M":
            dropped = _script(base) in ("LATIN", "GREEK") or (c == ACUTE and base in STRESSED)
            if not dropped:
                kept.append(c)
            continue
        before = script
        base = c
        script = _script(c)
        if script == "KATAKANA-HIRAGANA":  # the mark of a long vowel
            script = before
        kana_changes = script != before and (script in KANA or before in KANA)
        if script in UNSPACED or before in UNSPACED or kana_changes:
            kept.append(" ")
        kept.append(c)
    return unicodedata.normalize("NFC", "".join(kept)).translate(PLAIN)


@lru_cache(maxsize=10_000)
def _script(c: str) -> str:
    """The first word of a character's name, which is its script."""
    return unicodedata.name(c, "").partition(" ")[0] if c else ""


def _only_signs(text: str) -> str:
    """The symbols of a text that has nothing else, without spaces ("" if it has none)."""
    return "".join(c for c in text if unicodedata.category(c)[0] == "S")


def exact_match(text: str, answers: Sequence[str]) -> bool:
    """Whether the text is one of the accepted answers, after normalisation. The letter A that ends
    an accepted answer is no article: "Vitamin A" is not "Vitamin"."""
    found = normalise(text)
    return bool(found) and any(
        found == normalise(answer) and _has_its_a(text, answer) for answer in answers
    )


def contains(text: str, answers: Sequence[str]) -> bool:
    """Whether an accepted answer occurs in the text, after normalisation. The paper's "contains"
    reads like a substring test, which finds Niger in "Nigeria". Here an answer must begin and end
    where words do. As in `exact_match`, "Vitamin A" does not occur in "Vitamin C"."""
    words = f" {normalise(text)} "
    for answer in answers:
        goal = normalise(answer)
        if goal and f" {goal} " in words and _has_its_a(text, answer):
            return True
    return False


def _has_its_a(text: str, answer: str) -> bool:
    """Whether the words of an answer that ends in A stand in the text with that letter."""
    if not answer.strip().endswith(" A"):
        return True
    return f" {' '.join(_words(answer))} " in f" {' '.join(_words(text))} "


def answer_spans(text: str, answer: str) -> list[tuple[int, int]]:
    """Where an answer stands in a text: beginning and end of each part of it that is the answer
    after normalisation, in whole words, and with nothing around it ("Kenya" in "Kenya's", too).
    They do not overlap."""
    found = _spans(text, answer)
    without_possessives = POSSESSIVE.sub(" s", text)  # as many characters
    if without_possessives == text:
        return found
    for start, end in _spans(without_possessives, answer):
        if all(end <= a or b <= start for a, b in found):
            found.append((start, end))
    return sorted(found)


def _spans(text: str, answer: str) -> list[tuple[int, int]]:
    """`answer_spans`, where what belongs to whom is not looked at."""
    goal = normalise(answer)
    whole = normalise(text).split()
    if not goal or f" {goal} " not in f" {' '.join(whole)} ":
        return []
    first = unicodedata.normalize("NFD", goal)[0]
    edges = []
    for i in range(len(text) + 1):
        if not _inside(text[i - 1 : i], text[i : i + 1]):
            edges.append(i)
    # Decomposed letters take twice as many characters.
    longest = 2 * max(len(goal), len(answer)) + 8
    found: list[tuple[int, int]] = []
    for n, start in enumerate(edges[:-1]):
        letter = normalise(text[start])
        if text[start].isspace() or (letter and unicodedata.normalize("NFD", letter)[0] != first):
            continue
        for end in edges[n + 1 :]:
            if end - start > longest or text[end - 1].isspace():
                continue
            is_goal = normalise(text[start:end]) == goal
            if is_goal and _stands(text, start, end, goal, whole):
                # Of two that overlap the later, shorter one is the answer alone.
                found = [span for span in found if span[1] <= start]
                found.append((start, end))
                break
    return found


def _inside(before: str, after: str) -> bool:
    """Whether a word goes on between two characters."""
    if _is_mark(after):
        return True
    for c in (before, after):
        if _script(c) in UNSPACED or _script(c) in KANA:
            return False
    return (before.isalnum() or _is_mark(before)) and after.isalnum()


def _is_mark(c: str) -> bool:
    return c != "" and unicodedata.category(c)[0] == "M"


def _stands(text: str, start: int, end: int, goal: str, whole: list[str]) -> bool:
    """Whether the words of `goal` between two places are words of the `whole` text, too: the 457 of
    "1,457" and the C of "C++" are not."""
    other = normalise(f"{text[:start]}{PLACE}{text[end:]}").split()
    at = other.index(PLACE) if PLACE in other else len(other)
    return whole == [*other[:at], *goal.split(), *other[at + 1 :]]


def int_sim(groups: Groups, embed: Callable[[list[str]], ArrayLike]) -> Array:
    """Mean pairwise cosine of each group's embeddings (equation 1), unclipped, in [-1, 1]: for n
    unit vectors u it is (|sum of u|^2 - n) / (n (n - 1)). `embed` is called once, with the
    distinct, non-empty, stripped texts, sorted, for their vectors, [text, dimension]."""
    from scipy.sparse import csr_array

    # 1. The group of each text, and its number among the distinct ones; empty texts have -1.
    texts = [text.strip() for group in groups for text in group]
    names = sorted({text for text in texts if text})
    numbers = {name: i for i, name in enumerate(names)}
    number = np.array([numbers.get(text, -1) for text in texts], dtype=int)
    n = np.array([len(group) for group in groups], dtype=int)
    group_of = np.repeat(np.arange(len(n)), n)
    # 2. All empty texts share one unit vector, in a dimension of their own.
    empty = np.bincount(group_of[number < 0], minlength=len(n))
    squared = empty**2.0
    if names:
        vectors = np.asarray(embed(names))
        length = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=float))
        rows = group_of[number >= 0]
        columns = number[number >= 0]
        # 3. Repeated (group, text) cells add up, so every distinct vector is touched once a group.
        weights = csr_array(
            (1 / length[columns], (rows, columns)),
            shape=(len(n), len(names)),
        )
        parts = ceil(vectors.shape[1] / 64)  # each fits in a cache
        for dimensions in np.array_split(vectors, parts, axis=1):
            sums = weights @ dimensions.astype(float)
            squared += np.einsum("ij,ij->i", sums, sums)
    return per_pair(squared - n, n)


def per_pair(sums: ArrayLike, sizes: ArrayLike) -> Array:
    """Means over the ordered pairs of each group, from their `sums` and the groups' `sizes`
    [group]."""
    n = np.asarray(sizes)
    pairs = n * (n - 1.0)
    return np.where(n > 1, sums / np.maximum(pairs, 1.0), np.nan)


def rouge_l(groups: Groups) -> Array:
    """Mean Rouge-L F over the pairs of each group's texts (Lin and Och, 2004), in [0, 1]. F is 2 l
    / (m + n) for texts of m and n normalised words with a longest common subsequence of l; 1 for
    two empty texts."""
    sums = []
    for texts in groups:
        pairs = combinations(map(normalise, texts), 2)
        sums.append(sum(starmap(_rouge, pairs)))
    return per_pair(2 * np.array(sums), [len(texts) for texts in groups])


@lru_cache(maxsize=100_000)
def _rouge(one: str, other: str) -> float:
    """The longest common subsequence by bits, one a word of the first text (Hyyrö, 2004)."""
    first = one.split()
    second = other.split()
    if not first + second:
        return 1.0
    places: dict[str, int] = {}
    for i, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << i
    every = left = (1 << len(first)) - 1
    for word in second:
        met = left & places.get(word, 0)
        left = ((left + met) | (left - met)) & every
    common = len(first) - left.bit_count()
    return 2 * common / (len(first) + len(second))
