"""Rules 1 and 3: where an answer begins among the tokens, and one BOS only."""

import copy
from itertools import pairwise

import pytest
from tokenizers import normalizers
from tokenizers.processors import TemplateProcessing

from factrobust.models import load, tokens
from factrobust.models.interface import ModelError
from factrobust.models.load import load_model
from factrobust.models.prompts import CHATS

PAIRS = [
    ("Q: What is the capital of France?\nA:", " Paris"),
    ("The capital of France is ", "Paris"),  # the trailing space merges with the answer
    ("Is Paris the capital of Paris? Paris", " Paris"),  # the answer stands in the question too
    ("The capital of Iceland is", " Reykjavík"),
    ("日本の首都は", "東京"),
    ("A sign of joy:", " 😀🎉"),  # one character, several tokens
    ("2 + 2 =", " 4"),
    ("It is un", "believable"),
]


GEMMA, SMOLLM = "gemma-3-270m", "smollm2-135m-instruct"


def tokenizer_of(name):
    return load._tokenizer(load.find_weights(name))


real = pytest.fixture(lambda request: tokenizer_of(request.param), params=[GEMMA, SMOLLM])


def test_answer_is_the_smallest_suffix_that_covers_it(real):
    bos = tokens.before_every_text(real)
    for prompt, answer in PAIRS:
        ids, start = tokens.encode_pair(real, prompt, answer, bos=bos)
        assert ids == real(prompt + answer).input_ids  # with the tokenizer's own special tokens
        covering = real.decode(ids[start:])
        smaller = real.decode(ids[start + 1 :])
        assert covering.endswith(answer)
        assert not smaller.endswith(answer)
        assert (prompt + answer).endswith(covering)


def test_ids_follow_the_prompts_tokens_as_they_stand(real):
    prompt = "The capital of France is "
    bos = tokens.before_every_text(real)
    prompt_ids = tokens.encode(real, prompt, bos=bos)
    pair = tokens.encode_pair(real, prompt, [7, 8], bos=bos)
    assert pair == ([*prompt_ids, 7, 8], len(prompt_ids))


def test_bos_exactly_once():
    gemma, smollm = tokenizer_of(GEMMA), tokenizer_of(SMOLLM)
    bos = tokens.before_every_text(gemma)
    assert bos == [gemma.bos_token_id]
    for text in ("Paris", "<bos>Paris", "<bos><start_of_turn>user\nHi"):
        ids = tokens.encode(gemma, text, bos=bos)
        assert ids[0] == gemma.bos_token_id
        assert ids.count(gemma.bos_token_id) == 1
        pair, start = tokens.encode_pair(gemma, text, "!", bos=bos)
        assert pair[:start] == ids
    # This tokenizer adds none: the chat template's <|im_start|> is its BOS and stays alone.
    assert not tokens.before_every_text(smollm)
    before, after = CHATS["smollm2"]
    message = [{"role": "user", "content": "Hi"}]
    templated = smollm.apply_chat_template(
        message,
        add_generation_prompt=True,
        return_dict=True,
    )
    ids = tokens.encode(smollm, f"{before}Hi{after}", bos=[])
    assert ids == templated["input_ids"]


def test_an_answer_needs_a_token_before_it(toy_model):
    toy = toy_model({"ab": {"c": 1.0}})  # "a" + "b" are one token, and nothing predicts it
    with pytest.raises(ModelError, match="leaves no token before the answer 'b'"):
        toy.score(["a"], ["b"])
    toy.tokenizer.backend_tokenizer.normalizer = normalizers.Replace("\u200b", "")
    with pytest.raises(ModelError, match=r"leaves no token before the answer \[2\]"):
        toy.score(["\u200b"], [[2]])


def test_continuation_keeps_the_leading_space_and_an_ending_counts_tokens(real):
    _, last, *rest = tokens.encode(real, "It is Paris, France", bos=[])
    assert tokens.continuation(real, last, rest) == " Paris, France"
    cases = (
        (",", " Paris", 1),
        (" Par", "", 0),
        ("ance", " Paris, Fr", len(rest)),
    )
    for stop, text, n in cases:
        ending = tokens.Ending(real, [], {"stop": [stop]})
        assert ending.before_end(last, rest) == (text, n)


def test_a_listed_chat_is_asked_as_it_was_measured():
    """The grown chat model learned with BOS before its own template, which writes none."""
    grown = load_model("world-m-chat")
    before, after = grown.chat
    prompt = f"{before}Who?{after}"
    ids = grown._encode(prompt)
    assert ids == grown.tokenizer(prompt).input_ids
    assert ids[0] == grown.tokenizer.bos_token_id


def test_what_stands_before_every_text(letters):
    tokenizer = copy.deepcopy(letters)
    assert tokens.before_every_text(tokenizer) == []  # an end is not for a prompt
    special = [("</s>", 0), ("<unk>", 1)]
    templates = {
        "<unk> </s> $A": [1, 0],
        "<unk> $A </s>": [1],
        "$A": [],
    }
    for text, first in templates.items():
        template = TemplateProcessing(single=text, special_tokens=special)
        tokenizer.backend_tokenizer.post_processor = template
        assert tokens.before_every_text(tokenizer) == first
        ids = tokens.encode(tokenizer, "ab", bos=first)
        assert ids == [*first, 2, 3]
        ids = tokens.encode(tokenizer, "<unk></s>ab", bos=first)
        assert ids[:3] == [1, 0, 2]


def test_what_stands_between_two_channels_ends_no_answer(toy_model):
    """Of OpenAI's open models; elsewhere it does."""
    tokenizer = toy_model({"a": {"b": 1.0}}).tokenizer
    for marks, ends in ((["<|end|>"], True), (["<|end|>", "<|channel|>"], False)):
        tokenizer.add_special_tokens({"additional_special_tokens": marks})
        token_id = tokenizer.convert_tokens_to_ids("<|end|>")
        assert (token_id in tokens.Ending(tokenizer, [], {"stop": []}).special) == ends


def test_an_answer_ends_at_any_special_token_once_something_was_said(toy_model):
    """But not at the mark of a thought, whose text stays, nor at an unknown letter."""
    words = ["?", "<pad>", "[THINK]", " Lima", "<|channel|>", "<|eot|>", "?"]
    toy = toy_model({last: {word: 1.0} for last, word in pairwise(words)})
    [made] = toy.generate(["Who?"])
    assert made.text == "<pad>[THINK] Lima<|channel|><|eot|>"
    marks = ["<pad>", "<|eot|>", "[THINK]", "<|channel|>"]
    toy.tokenizer.add_special_tokens({"additional_special_tokens": marks})
    pad, eot, think, channel = toy.tokenizer.convert_tokens_to_ids(marks)
    found = tokens.Ending(toy.tokenizer, [], {"stop": []})
    assert found.marks == {think: "[THINK]", channel: "<|channel|>"}
    assert {eot, pad} < found.special
    assert toy.tokenizer.unk_token_id not in found.special
    [made] = toy.generate(["Who?"], max_new_tokens=9)
    assert made.text == "[THINK] Lima<|channel|>"
    assert made.token_ids[-1] == channel  # the end is no part of the answer
    [[drawn]] = toy.sample(["Who?"], temperature=1.0, n=1, max_new_tokens=9)
    assert drawn.text == made.text
    assert drawn.token_ids == made.token_ids
