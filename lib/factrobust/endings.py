"""Where does an answer begin, where does it end, and which of the generated tokens are it?

All parts have one rule for its beginning (`answer_text`): blank space, a thought and a label before
it are no part of it, and the model's own next question ends it. `generate_answers` lets a model go
on that has said nothing yet. The end is told by stop strings, by `first_sentence` (part 3) or by
`cut_answer` (part 4).

The thesis ends an answer before the first token that holds a full stop or a line's end (appendix
D), so that 15.999 becomes 15 and F. Scott Fitzgerald becomes F; we tell which full stops end it
(`cut_answer`).
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from factrobust.models import tokens
from factrobust.models.interface import Generation, Model, ModelError
from factrobust.models.prompts import CHAT_END

# "The answer is:", "**Final answer:**", "Answer - ", "A:", but not the first of options ("A: Jazz
# B: Rock"); a heading that says no more than that; a tag of that name; the line that opens a block
# of code.
WORDS = r"(?i:(?:(?:the|my|final|correct|right|short|best)\s+)*answer(?:\s+is)?)"
TAG = "(?:(?:final_)?answer|response|output|final)"
LABEL = re.compile(
    rf"(?:[\s*_#>]*(?:"
    rf"(?:{WORDS}|(?i:ans|response|assistant)|A(?!(?s:.*)\bB\s*:))\s*[*_]*[:：][\s*_]*|"
    rf"{WORDS}[*_]*\s+[-–—=]\s+|"
    rf"{WORDS}[*_]*[ \t]*\n[\s*_]*|"
    rf"(?<=[#*_ ]){WORDS}[*_]*$|"
    rf"(?i:<{TAG}>)\s*|"
    r"`{3}[a-z]*[ \t]*(?:\n\s*|$)))+"
)
BLANK_LINES = re.compile(r"\s*\n\s*")
QUESTION = re.compile(
    rf"(?:^|(?<=\s))(?:Question|Q)\s*:|(?i:</{TAG}>)|"
    r"<\|(?:end_of_solution|END_RESPONSE|return|end)\|>"
)
# Mathematicians' way to mark an answer: $\\boxed{\\text{Nairobi}}$.
BOX = re.compile(r"\\(?:boxed|fbox)\s*\{\s*(?:\\(?:text|mathrm|textbf|mathbf)\s*\{\s*)?")
LEAD = 8  # tokens that blank space or a label may take
THINKING = 1024  # tokens that a thought may take

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


def split_lead(text: str, prompt: str = "") -> tuple[str, str]:
    """What stands before the answer in a generated text, and the rest: lines without a word, a
    thought, a label, all before a box. A thought that has not ended is all before it; its first
    mark may stand at the end of the `prompt`."""
    at = tokens.after_thought(text, prompt)
    if at is None:
        return text, ""
    begin = BOX.search(text, at) or LABEL.match(text, at) or BLANK_LINES.match(text, at)
    at = begin.end() if begin else at
    return text[:at], text[at:]


def answer_text(text: str, prompt: str = "") -> str:
    """What an answer says: a generated text without what stands before the answer (`split_lead`:
    blank lines, a thought, a label such as "The answer is:"), up to the model's own next question,
    or to the end of its box."""
    lead, rest = split_lead(text, prompt)
    if lead.rstrip().endswith("{"):
        rest = rest[: _box_end(rest)]
    question = QUESTION.search(rest)
    return rest[: question.start()].rstrip() if question else rest


def _box_end(text: str) -> int:
    """The place of the bracket that closes a box, of the text in it and behind it."""
    depth = 0
    for place, sign in enumerate(text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth < 0:
            return place
    return len(text)


def generate_answers(
    model: Model,
    prompts: Sequence[str],
    *,
    max_new_tokens: int,
    stop: Sequence[str],
    temperatures: Sequence[float] = (),
    **options: Any,
) -> list[Generation]:
    """Greedy answers (`Model.generate`, which is given the further `options`, too). A model whose
    answer has not begun, since the text is blank, a label or a thought, is asked once more without
    stop strings and with more tokens; then the text ends at the first stop string after the
    answer's beginning, and the tokens are those up to there. So is one that a chat's full stop may
    have cut ("Washington, D", "3"); its text ends where `cut_answer` says.

    ModelError if no thought has ended after THINKING tokens. If some have, the others are no
    answers, and a line on stderr says how many.
    """
    if len(temperatures):
        options["temperatures"] = temperatures
    found = model.generate(prompts, max_new_tokens=max_new_tokens, stop=stop, **options)
    # 1. What has not begun, or may have been cut, is asked once more.
    thoughts: list[str] = []
    others: list[str] = []
    for answer in found:
        text = split_lead(answer.text, answer.prompt)[1].strip()
        is_cut = tuple(stop) == CHAT_END and (unsure(text) or text[-1:].isdigit())
        if answer.filtered or (text and not is_cut):
            continue
        waiting = thoughts if _thinks(answer) else others
        if answer.prompt not in waiting:
            waiting.append(answer.prompt)
    again: dict[str, Generation] = {}
    for waiting, more in ((thoughts, THINKING), (others, LEAD)):
        if waiting:
            longer = model.generate(waiting, max_new_tokens=max_new_tokens + more)
            again |= {answer.prompt: _ended(answer, stop) for answer in longer}
    # 2. Thoughts that have not ended are no answers.
    lost = sum(_thinks(again[prompt]) for prompt in thoughts)
    if lost:
        report = f"{lost} of {len(thoughts)} thoughts did not end within {THINKING} tokens"
        if lost == len(thoughts):
            raise ModelError(
                f"{model.name} thinks before it answers, and {report}; ask it by a chat template "
                "that switches its thinking off, or in another prompt format (NAME#two-shot)"
            )
        print(f"{model.name}: {report}; these are no answers", file=sys.stderr)
    # 3. The curves of those that begin now.
    tempered = [answer for answer in again.values() if answer.token_ids]
    if len(temperatures) and tempered:
        curves = model.temper(
            [answer.prompt for answer in tempered],
            [answer.token_ids for answer in tempered],
            temperatures,
        )
        for answer, curve in zip(tempered, curves.tolist(), strict=True):
            again[answer.prompt] = replace(answer, curve=curve)
    return [again.get(answer.prompt, answer) for answer in found]


def _thinks(answer: Generation) -> bool:
    """Whether an answer's text ends before the model's thought has."""
    return tokens.after_thought(answer.text, answer.prompt) is None


def _ended(answer: Generation, stop: Sequence[str]) -> Generation:
    """An answer without what follows the first stop string after its beginning, or in a chat its
    first sentence (`cut_answer`)."""
    lead, rest = split_lead(answer.text, answer.prompt)
    short = cut_answer(rest).rstrip() if tuple(stop) == CHAT_END else tokens.cut(rest, stop)
    if short is None or short == rest:
        return answer
    text = lead + short
    n = count_covering(answer, text)
    along = {name: getattr(answer, name)[:n] for name in ("token_ids", "logprobs", "entropies")}
    return replace(
        answer,
        text=text,
        top_logprobs=list(answer.top_logprobs)[:n],
        **along,
    )


def first_sentence(text: str) -> str:
    """The first sentence of a text, without the white space around it and its full stop.

    It ends at the first line's end, or before at a run of . ! or ? (and the quotes and brackets
    that it closes) with white space or nothing after it, or at 。！？ anywhere. A full stop does
    not end it

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
        before = line[: match.start()].rstrip()
        mark = match[1] or match[2]
        after = line[match.end() :].lstrip()
        word = OPENING.split(before)[-1]
        if not before or not _sentence_ends(before, word, mark, after):
            continue
        stop = set(match[0]) <= {".", "。"}
        named = END_OF_NAME.fullmatch(word) or DOTTED.fullmatch(word)
        return before if stop and not named else line[: match.end()]
    return line


def _sentence_ends(before: str, word: str, mark: str, after: str) -> bool:
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


# Where generation may stop at once; what it says after a full stop costs more than it tells.
STOP = ("\n", ". ")
INITIALS = re.compile(r"(?:[A-Z]\.)*[A-Z]")  # J, J.R.R, U.S
NAME = re.compile(r"[A-Z][\w'’-]*(?=[\s.,;)]|$)")
NUMBERED = re.compile("[Oo]p|[Nn]os?|[Vv]ol|ca?")  # Op. 27


def ending(generation: Generation, *, skip_lead: bool = False) -> tuple[str, int]:
    """What is kept of an answer (`cut_answer`), and how many tokens cover it. A text without
    letters or digits is empty. With `skip_lead` the answer begins where `answer_text` has it; the
    tokens are all up to its end."""
    lead = ""
    text = generation.text
    if skip_lead:
        lead, _ = split_lead(generation.text, generation.prompt)
        text = answer_text(generation.text, generation.prompt)
    text = cut_answer(text).strip()
    if not any(c.isalnum() for c in text):
        return "", 0
    return text, count_covering(generation, lead + text)


def cut_answer(text: str) -> str:
    """`text` up to its first line's end, or a full stop before that which ends a sentence.

    A full stop does not end the answer if a digit follows at once (15.999); after a title, with a
    capital letter behind (St. Louis); after Op., No., Vol. or c., with a number behind; after an
    initial or dotted letters, with what looks like a name behind (J. K. Rowling, U.S. Route 66),
    unless sentences begin with that word ("Washington, D.C. It is ...").
    """
    line = text.partition("\n")[0]
    for match in re.finditer(r"\.", line):
        before = line[: match.start()]
        after = line[match.end() :]
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


def count_covering(generation: Generation, text: str) -> int:
    """How many of the tokens cover `text`, a beginning of the answer, but for white space. One that
    does not stand in it (half a letter, a special token) belongs to what comes before the next one
    that does. All tokens, where a model tells no texts of tokens."""
    goal, whole = _dense(text), _dense(generation.text)
    if not goal:
        return 0
    at, broken = 0, False
    for n, alternatives in enumerate(generation.top_logprobs):
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
    return len(generation.logprobs)


def _dense(text: str) -> str:
    return "".join(text.split())
