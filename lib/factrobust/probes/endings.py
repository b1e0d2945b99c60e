"""Where does an answer of part 4 end, and which of the generated tokens are it?

The thesis ends an answer before the first token that holds a full stop or a line's end (appendix D),
so that 15.999 becomes 15 and F. Scott Fitzgerald becomes F. Both rules are here; `robust` is ours.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from factrobust.models.interface import Generation
from factrobust.probes.sentences import OPENING, STARTER, TITLE

# Where generation may stop at once; what it says after a full stop costs more than it tells.
STOP = {"robust": ("\n", ". "), "published": ("\n", ".")}
INITIALS = re.compile(r"(?:[A-Z]\.)*[A-Z]")  # J, J.R.R, U.S
NAME = re.compile(r"[A-Z][\w'’-]*(?=[\s.,;)]|$)")
NUMBERED = re.compile("[Oo]p|[Nn]os?|[Vv]ol|ca?")  # Op. 27


class Ending(NamedTuple):
    """The kept text, without white space around it, and how many of the tokens cover it."""

    text: str
    n_tokens: int


def check_rule(rule: str) -> None:
    """Raise ValueError for an unknown rule."""
    if rule not in STOP:
        raise ValueError(f"rule {rule!r} is unknown; choose one of {', '.join(STOP)}")


def ending(made: Generation, rule: str) -> Ending:
    """What is kept of an answer that was generated with `STOP[rule]`.

    `robust` is `cut`. `published` is the thesis's rule: a token that holds a full stop goes
    altogether, with the letters before it (" Inc."). A text without letters or digits is empty.
    """
    if rule == "published":
        text, n = _whole_tokens(made)
    else:
        text = cut(made.text)
        n = covering(made, text)
    text = text.strip()
    return Ending(text, n) if any(c.isalnum() for c in text) else Ending("", 0)


def cut(text: str) -> str:
    """`text` up to its first line's end, or a full stop before that which ends a sentence.

    A full stop does not end the answer if a digit follows at once (15.999); after a title, with a
    capital letter behind (St. Louis); after Op., No., Vol. or c., with a number behind; after an
    initial or dotted letters, with what looks like a name behind (J. K. Rowling, U.S. Route 66),
    unless sentences begin with that word ("Washington, D.C. It is ...").
    """
    line = text.partition("\n")[0]
    for match in re.finditer(r"\.", line):
        before, after = line[: match.start()], line[match.end() :]
        if _ends(OPENING.split(before)[-1], after):
            return before
    return line


def unsure(text: str) -> bool:
    """Whether a full stop and a space after `text` need not end the answer."""
    word = OPENING.split(text)[-1]
    return any(kind.fullmatch(word) for kind in (TITLE, NUMBERED, INITIALS))


def _ends(word: str, after: str) -> bool:
    """Whether the answer ends at a full stop between `word` and `after`."""
    if after[:1].isdigit():
        return False
    behind = after.lstrip(" ")
    if TITLE.fullmatch(word):
        return not behind[:1].isupper()
    if NUMBERED.fullmatch(word):
        return not behind[:1].isdigit()
    if INITIALS.fullmatch(word):
        return not NAME.match(behind) or STARTER.match(behind) is not None
    return True


def covering(made: Generation, text: str) -> int:
    """How many of the tokens cover `text`, a beginning of the answer; white space does not count.

    Tokens are matched with the answer one by one. One that does not stand there (half a letter
    decodes as a replacement character, a special token as nothing) belongs to what comes before the
    next one that does. All tokens, where a model tells no texts of tokens.
    """
    goal, whole = _dense(text), _dense(made.text)
    if not goal:
        return 0
    at, broken = 0, False
    for n, alternatives in enumerate(made.top_logprobs):
        # Equally likely tokens: any of them may be the one that was chosen.
        best = [_dense(t) for t, p in alternatives if p >= alternatives[0][1] - 1e-6]
        fits = [t for t in best if "\ufffd" not in t and whole.startswith(t, at)]
        if fits:
            at += max(map(len, fits))
        elif broken and (found := whole.find(best[0], at)) >= 0 and "\ufffd" not in best[0]:
            if found >= len(goal):
                return n
            at = found + len(best[0])
        else:
            broken = True
            continue
        broken = False
        if at >= len(goal):
            return n + 1
    return len(made.token_ids)


def _whole_tokens(made: Generation) -> tuple[str, int]:
    """Text and number of the tokens before the first one that holds a stop."""
    text, n = made.text, len(made.token_ids)
    last = made.top_logprobs[n - 1][0][0] if n and made.top_logprobs else ""
    if match := re.search(r"[.\n]", last):
        text, n = text.removesuffix(last[: match.start()]), n - 1
    return text, n


def _dense(text: str) -> str:
    return "".join(text.split())
