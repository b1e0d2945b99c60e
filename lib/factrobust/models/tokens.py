"""Text to tokens and back."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from factrobust.models.interface import ModelError

Ids = list[int]  # of tokens


def before_every_text(tokenizer: Any) -> Ids:
    """The special tokens that the tokenizer puts before every text: BOS, or GLM's [gMASK] and
    <sop>."""
    plain = tokenizer("a", add_special_tokens=False).input_ids
    whole = tokenizer("a").input_ids
    for start in range(len(whole)):
        if plain and whole[start : start + len(plain)] == plain:
            return list(whole[:start])
    return []


def in_template(tokenizer: Any, chat: tuple[str, str] | None, prompt: str) -> bool:
    """Whether a prompt stands in the tokenizer's own chat template, whose frame is `chat`. Then the
    template writes all special tokens, and transformers adds none to them."""
    if not chat or not any(chat) or not getattr(tokenizer, "chat_template", None):
        return False
    return prompt.startswith(chat[0]) and chat[1] in prompt[len(chat[0]) :]


def encode(tokenizer: Any, text: str, *, bos: Sequence[int]) -> Ids:
    """Token ids of `text`. They begin with the tokens `bos` exactly once, even if the text has its
    own."""
    return _with_bos(tokenizer(text, add_special_tokens=False).input_ids, bos)


def _with_bos(ids: Ids, bos: Sequence[int]) -> Ids:
    first = list(bos)
    if ids[: len(first)] == first:
        return list(ids)
    return [*first, *ids]


def encode_pair(
    tokenizer: Any,
    prompt: str,
    answer: str | Ids,
    *,
    bos: Sequence[int],
) -> tuple[Ids, int]:
    """Token ids of prompt + answer, and the place of the answer's first token (see
    `Model.score`)."""
    if isinstance(answer, str):
        found = tokenizer(
            prompt + answer,
            add_special_tokens=False,
            return_offsets_mapping=True,
        )
        ids = _with_bos(found.input_ids, bos)
        of_answer = [end for _, end in found.offset_mapping if end > len(prompt)]
        start = len(ids) - len(of_answer)
    else:
        before = encode(tokenizer, prompt, bos=bos)
        ids = [*before, *answer]
        start = len(before)
    if start == 0:
        raise ModelError(
            f"the prompt {prompt!r} leaves no token before the answer {answer!r} to predict it "
            "from; ask with a longer prompt"
        )
    return ids, start


def encode_source(tokenizer: Any, prompt: str) -> Ids:
    """Token ids that an encoder reads: the prompt with the tokenizer's special tokens, each
    once."""
    ids = list(tokenizer(prompt).input_ids)
    special = set(tokenizer.all_special_ids)
    while len(ids) > 1 and ids[-1] == ids[-2] and ids[-1] in special:  # the text had it, too
        ids.pop()
    while len(ids) > 1 and ids[0] == ids[1] and ids[0] in special:
        ids.pop(0)
    return ids


def encode_target(tokenizer: Any, answer: str | Ids) -> Ids:
    """Token ids of a decoder's answer, a text without special tokens; ids are left as they are."""
    if not isinstance(answer, str):
        return answer
    ids = list(tokenizer(text_target=answer, add_special_tokens=False).input_ids)
    if not ids:
        raise ModelError(
            f"the answer {answer!r} has no tokens under this model's tokenizer; leave such "
            "questions out before scoring"
        )
    return ids


# The marks of a thought: tags of most models, and those of Mistral, Kimi, Cohere, MedGemma, Gemma,
# and of OpenAI's open models, also where special tokens have lost their signs. The answer may have
# a mark of its own behind it.
NAMES = r"(?:\w+:)?(?:think(?:ing)?|thought|reasoning|reflection|scratchpad|cot)"
OPENS = (
    rf"<\|?{NAMES}(?:\s[^<>/]*)?\|?>|\[THINK\]|◁think▷|<\|(?:begin_of_thought|START_THINKING)\|>|"
    r"<unused94>|<\|channel>\s*thought|<\|channel\|>\s*(?:analysis|commentary)"
)
CLOSES = (
    rf"<\|?/{NAMES}\|?>|<{NAMES}\s*/>|\[/THINK\]|◁/think▷|"
    r"<\|end_of_thought\|>(?:\s*<\|begin_of_solution\|>)?|"
    r"<\|END_THINKING\|>(?:\s*<\|START_RESPONSE\|>)?|<unused95>|<channel\|>|assistantfinal|"
    r"<\|channel\|>\s*final\s*(?:<\|constrain\|>\w+)?(?:<\|message\|>)?"
)
OPENED = re.compile(rf"\s*(?:{OPENS})", re.I)
CLOSED = re.compile(CLOSES, re.I)
OPENED_BEFORE = re.compile(rf"(?:{OPENS})\s*$", re.I)  # by the chat template
# In the text of a special token that may be one of these.
THOUGHT = re.compile(
    "think|thought|reason|channel|message|start_response|begin_of_solution", re.IGNORECASE
)
BETWEEN = ("<|start|>", "<|end|>")  # around each channel of OpenAI's open models


def after_thought(text: str, prompt: str = "") -> int | None:
    """Where a generated text goes on after its thought: 0 if it has none, None if that has not
    ended. Its first mark may stand at the end of the `prompt`."""
    closed = [found.end() for found in CLOSED.finditer(text)]
    if closed:
        return closed[-1]
    return None if OPENED.match(text) or OPENED_BEFORE.search(prompt) else 0


NO_MARKS: Mapping[int, str] = MappingProxyType({})


def continuation(
    tokenizer: Any,
    last: int,
    generated: Sequence[int],
    marks: Mapping[int, str] = NO_MARKS,
) -> str:
    """The text of the `generated` tokens after the prompt's `last` token. Both are decoded
    together, because some decoders drop a space at the start of a text. Special tokens have no
    text, but for the `marks`."""
    marked = [n for n, token in enumerate(generated) if token in marks]
    if marked:
        n = marked[0]
        before = continuation(tokenizer, last, generated[:n])
        after = continuation(tokenizer, generated[n], generated[n + 1 :], marks)
        return before + marks[generated[n]] + after

    def text(ids: Ids) -> str:
        return tokenizer.decode(
            ids,
            skip_special_tokens=True,
            clean_up_tokenization_spaces=False,
        )

    before = text([last])
    both = text([last, *generated])
    if both.startswith(before):
        return both[len(before) :]
    return text(list(generated))


def cut(text: str, stop: Sequence[str], skip_blank: bool = False) -> str | None:
    """`text` before its first stop string and the space in front of it; None if there is no such.
    With `skip_blank` none counts before something other than white space."""
    start = len(text) - len(text.lstrip()) if skip_blank else 0
    places = [text.find(string, start) for string in stop]
    found = [place for place in places if place >= 0]
    return text[: min(found)].rstrip() if found else None


class Ending:
    """Where the answers of a job end: at an end token, at a special token once something was said,
    or at a stop string of its `settings`."""

    def __init__(
        self,
        tokenizer: Any,
        end_ids: Sequence[int],
        settings: Mapping[str, Any],
    ) -> None:
        self.tokenizer = tokenizer
        self.end_ids = end_ids
        self.stop = settings["stop"]
        self.skip_blank = settings.get("skip_blank", False)
        # Special tokens are left out of a text, but for the one of an unknown letter. A model may
        # end its turn with one that nobody calls its end token. Those around a thought end nothing.
        texts = dict(zip(tokenizer.all_special_ids, tokenizer.all_special_tokens, strict=False))
        for token_id, token in tokenizer.added_tokens_decoder.items():
            if token.special:
                texts.setdefault(token_id, str(token))
        channels = "<|channel|>" in texts.values()
        self.marks = {}
        for token_id, text in texts.items():
            if THOUGHT.search(text) or (channels and text in BETWEEN):
                self.marks[token_id] = text
        self.special = {*texts} - {tokenizer.unk_token_id, *self.marks}

    def may_be_at(self, token: int) -> bool:
        """Whether an answer may end with this token. Few tokens end one, and this saves
        decoding."""
        if token in self.end_ids or token in self.special:
            return True
        text = self.tokenizer.decode([token]) + " "
        return any(string[-1] in text or not string.isascii() for string in self.stop)

    def closed(self, ids: Sequence[int]) -> bool:
        """Whether the last of an answer's tokens ends it by itself."""
        if ids[-1] in self.end_ids:
            return True
        *before, token = ids
        is_said = any(i not in self.special for i in before)
        return is_said and token in self.special

    def text(self, last: int, ids: Sequence[int]) -> str:
        """The text of an answer behind the prompt's `last` token."""
        return continuation(self.tokenizer, last, ids, self.marks)

    def reached(self, last: int, ids: Sequence[int]) -> bool:
        """Whether an answer is complete."""
        if self.closed(ids):
            return True
        text = self.text(last, ids)
        return cut(text, self.stop, self.skip_blank) is not None

    def before_end(self, last: int, ids: Sequence[int]) -> tuple[str, int]:
        """The text of an answer before its end, and how many of its tokens cover it."""
        if self.closed(ids):
            ids = ids[:-1]
        text = self.text(last, ids)
        short = cut(text, self.stop, self.skip_blank)
        if short is not None:
            for n in range(len(ids)):
                if self.text(last, ids[:n]).startswith(short):
                    return short, n
            text = short
        return text, len(ids)
