"""Text to tokens and back."""

from collections.abc import Sequence
from typing import Any

from factrobust.models.interface import ModelError


def encode(tokenizer: Any, text: str, *, bos: bool) -> list[int]:
    """Token ids of `text`. With `bos` they begin with exactly one BOS, even if the text has its own."""
    return _with_bos(tokenizer, tokenizer(text, add_special_tokens=False).input_ids, bos)


def _with_bos(tokenizer: Any, ids: list[int], bos: bool) -> list[int]:
    first = [tokenizer.bos_token_id]
    return [*first, *ids] if bos and ids[:1] != first else list(ids)


def encode_pair(
    tokenizer: Any, prompt: str, answer: str | list[int], *, bos: bool
) -> tuple[list[int], int]:
    """Token ids of prompt + answer, and the place of the answer's first token (see `Model.score`)."""
    if isinstance(answer, str):
        text, how = prompt + answer, {"return_offsets_mapping": True}
        found = tokenizer(text, add_special_tokens=False, **how)
        ids = _with_bos(tokenizer, found.input_ids, bos)
        start = len(ids) - sum(end > len(prompt) for _, end in found.offset_mapping)
    else:
        ids = encode(tokenizer, prompt, bos=bos)
        ids, start = [*ids, *answer], len(ids)
    if start == 0:
        raise ModelError(
            f"the prompt {prompt!r} leaves no token before the answer {answer!r} to predict it "
            "from; ask with a longer prompt"
        )
    return ids, start


def encode_source(tokenizer: Any, prompt: str) -> list[int]:
    """Token ids that an encoder reads: the prompt with the tokenizer's special tokens, each once."""
    ids = list(tokenizer(prompt).input_ids)
    special = set(tokenizer.all_special_ids)
    while len(ids) > 1 and ids[-1] == ids[-2] and ids[-1] in special:  # the text had it, too
        ids.pop()
    while len(ids) > 1 and ids[0] == ids[1] and ids[0] in special:
        ids.pop(0)
    return ids


def encode_target(tokenizer: Any, answer: str | list[int]) -> list[int]:
    """Token ids of a decoder's answer, a text without special tokens; ids are left as they are."""
    if not isinstance(answer, str):
        return answer
    ids = list(tokenizer(text_target=answer, add_special_tokens=False).input_ids)
    if not ids:
        raise ModelError(
            f"the answer {answer!r} has no tokens under this model's tokenizer; leave such questions "
            "out before scoring"
        )
    return ids


def continuation(tokenizer: Any, last: int, generated: Sequence[int]) -> str:
    """The text of the `generated` tokens after the prompt's `last` token. Both are decoded together,
    because some decoders drop a space at the start of a text."""
    options = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
    before = tokenizer.decode([last], **options)
    both = tokenizer.decode([last, *generated], **options)
    if both.startswith(before):
        return both[len(before) :]
    return tokenizer.decode(list(generated), **options)


def cut(text: str, stop: Sequence[str], skip_blank: bool = False) -> str | None:
    """`text` before its first stop string and the space in front of it; None if there is no such. With
    `skip_blank` none counts before something other than white space."""
    start = len(text) - len(text.lstrip()) if skip_blank else 0
    places = [at for s in stop if (at := text.find(s, start)) >= 0]
    return text[: min(places)].rstrip() if places else None


def covering(tokenizer: Any, last: int, generated: Sequence[int], text: str) -> int:
    """How many of the generated tokens cover `text`, the answer before the stop string."""
    parts = (continuation(tokenizer, last, generated[:n]) for n in range(len(generated)))
    return next((n for n, part in enumerate(parts) if part.startswith(text)), len(generated))
