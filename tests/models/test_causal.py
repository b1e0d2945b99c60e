"""The rules on a real embedded model; and rows, branches and what is computed once, on small ones
(masks on every kind of network: test_verify)."""

import numpy as np
import pytest
import torch
from networks import LLAMA, assert_given_as_alone, assert_made_as_alone, build

from factrobust.models import causal
from factrobust.models.causal import NO_PREFIX, pack_answers, rows_of
from factrobust.models.engine import Body, Plain
from factrobust.models.interface import ModelError
from factrobust.models.prompts import render

LONG = "Which large city on the river Seine, known for the Eiffel Tower, is the capital of France "
QUESTIONS = [
    "What is the capital of Kenya?",
    "Who wrote the play Hamlet?",
    "In which year did the Second World War end?",
    "What is the chemical symbol of gold?",
    f"{LONG}and the seat of its government?",
]
SHARED = "the few shots that all share "

# -- rule 2: padding, prefix, branches -------------------------------------------------------------


def test_score_and_temper_are_the_networks_own(smollm):
    """Prompts of very different lengths in one batch, without and with a prefix in the cache."""

    def ids(text):
        return smollm.tokenizer(text).input_ids

    prompts = render("two-shot", QUESTIONS[:4], QUESTIONS[:4])
    prompts.append("The capital of France is")  # which shares no prefix
    answers = [
        " Nairobi",
        " William Shakespeare",
        " 1945",
        " Au",
        " Paris",
    ]
    assert not isinstance(smollm.body, Plain)  # which would be right, and slow
    smollm._last_prefix = NO_PREFIX
    for n in (4, 5):
        assert_given_as_alone(smollm, smollm.network, ids, prompts[:n], answers[:n])


def test_greedy_is_transformers_greedy(smollm):
    """Ids equal those of transformers' generate, one prompt at a time."""
    prompts = render("two-shot", QUESTIONS[2:], QUESTIONS[2:])
    for answer in smollm.generate(prompts):
        tokens = smollm.tokenizer(answer.prompt).input_ids
        ids = torch.tensor([tokens])
        made = smollm.network.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=5,
            pad_token_id=0,
        )
        new = made[0, len(tokens) :].tolist()
        before_the_end = [token for token in new if token not in smollm.end_ids]
        assert answer.token_ids == before_the_end


def pattern(links):
    """A line a token, with an x for each token that it sees."""
    lines = []
    for row in links:
        marks = ["x" if sees else "." for sees in row]
        lines.append("".join(marks))
    return lines


def test_pack_answers_by_hand():
    # Prompt 5 6 7; answers 8 9 and 1; the first two tokens are in the cache.
    long = [5, 6, 7, 8, 9]
    short = [5, 6, 7, 1]
    row = pack_answers([(long, 3), (short, 3)], 2)
    assert row.tokens == [7, 8]  # 9 and 1 predict nothing that is asked for
    assert row.positions == [2, 3]
    assert row.predictors == [0, 1, 0]  # 8 and 1 both follow 7; 9 follows 8
    # The second answer merges with the prompt's last token: it begins one token earlier.
    merged = [5, 6, 4, 1]
    row = pack_answers([(long, 3), (merged, 2)], 0)
    assert row.tokens == [5, 6, 7, 8, 4]
    assert row.positions == [0, 1, 2, 3, 2]
    assert row.predictors == [2, 3, 1, 4]
    assert pattern(row.links) == ["x....", "xx...", "xxx..", "xxxx.", "xx..x"]


def test_rows_of_answers_that_begin_alike_by_hand():
    # Two of one prompt; one of another, but two of four tokens behind token 1 are the same; one
    # alone.
    first = [1, 2, 3, 4, 9, 8], 4
    second = [1, 2, 3, 4, 7], 4
    other = [1, 2, 3, 5, 6], 4
    single = [1, 9, 9, 9, 9], 4
    answers = [
        first,
        second,
        other,
        single,
    ]
    # In the order of tokens: 2 3 4 7, then 9 8, then 5 6; and 9 9 9 9 alone.
    together = rows_of(answers)
    assert together == (
        [[1, 0, 2], [3]],
        [9, 5],
    )
    separate = rows_of(answers, keep_prompts_separate=True)
    assert separate == (
        [[1, 0], [2], [3]],
        [7, 5, 5],
    )
    row = pack_answers([second, first, other], 1)
    assert row.tokens == [2, 3, 4, 9, 5]
    assert row.positions == [1, 2, 3, 4, 3]
    assert row.predictors == [2, 2, 3, 4]  # 7 and 9 follow 4, 8 follows 9, 6 follows 5
    assert pattern(row.links)[4] == "xx..x"  # 5 sees 2 and 3, not 4 and 9
    answer = [1, 2, 3], 2
    most = causal.BRANCHES
    rows, sizes = rows_of([answer] * (most + 1))
    assert [*map(len, rows)] == [most, 1]
    assert sizes == [3, 3]
    assert rows_of([]) == ([], [])


# -- rule 5: shared work is done once --------------------------------------------------------------


@pytest.fixture
def plain(lettered):
    """A letter is a token; the weights are sharp enough that a fault shows."""
    return lettered(build("Qwen2", **LLAMA | {"num_hidden_layers": 4}))


def test_prefix_is_computed_once_across_calls(plain, watch):
    prompts = [f"{SHARED}{start}" for start in ("abc", "bcde", "cdefg", "defghi")]
    with watch(plain) as work:
        plain.score(prompts[:2], ["x", "yz"])
    # The common beginning, for all rows; then one row of abc and bcdey.
    assert work.body == [(1, len(SHARED)), (1, 3 + 5)]
    with watch(plain) as work:
        plain.score(prompts[2:], ["Z", "xyz"])
    assert work.body == [(1, 5 + 8)]
    thrice = [prompts[0]] * 3
    with watch(plain) as work:
        plain.temper(thrice, [[5], [6], [7]], [0.1, 1.0, 5.0])
    assert sum(work.head) == 1  # three answers of one token follow the same place


def test_beginning_is_the_jobs_and_not_of_the_batch_that_comes_first(plain, monkeypatch):
    """Batches run side by side: what they begin with must not depend on which is the first."""
    prompts = [SHARED + letter for letter in "abcdefgh"]
    prompts.append(SHARED[:9])  # of all that the others share only this much
    monkeypatch.setattr(plain, "tokens_per_batch", 64)
    answers = ["xyz"] * 9
    first = plain.score(prompts, answers)
    # The shortest prompt's last token predicts its answer, and is read with it.
    assert len(plain._last_prefix.ids) == 8
    plain._last_prefix = NO_PREFIX
    second = plain.score(prompts, answers)
    np.testing.assert_array_equal(second, first)


def test_rows_whose_answers_have_ended_leave_the_batch(toy_model, watch):
    table = {
        "?": {" a": 1.0},
        " a": {" a": 1.0},
        "!": {" b": 1.0},
        " b": {".": 1.0},
    }
    toy = toy_model(table)
    prompts = ["so?", "so!", "oh so!", "why, oh why?", "no!"]
    with watch(toy) as work:
        answers = toy.generate(prompts, max_new_tokens=6, stop=["."])
    long = " a" * 6
    assert [answer.text for answer in answers] == [long, " b", " b", long, " b"]
    # Prompts that begin alike are read in one row; the answers of each grow in a row of its own.
    rows, _ = zip(*work.body, strict=True)
    assert rows == (1, 5, 2, 2, 2, 2)


def test_another_cut_of_the_same_answers_costs_the_head_alone(plain, watch, monkeypatch):
    prompts = ["why so", "who", "abcabc"]
    answers = ["x", "yz", "Z"]
    other = plain.temper(prompts[::-1], answers, [1.0, 2.0], min_p=0.1)
    with watch(plain) as first:
        plain.temper(prompts, answers, [1.0])
    with watch(plain) as second:
        cut = plain.temper(prompts, answers, [1.0, 2.0], min_p=0.1)
    assert not second.body
    assert second.head == first.head
    assert not np.array_equal(cut, other)  # other answers: other hidden states
    plain._tempered = {}
    monkeypatch.setattr(causal, "KEPT_BYTES", 0)  # hidden states are kept only up to a size
    again = plain.temper(prompts, answers, [1.0, 2.0], min_p=0.1)
    np.testing.assert_allclose(again, cut, atol=1e-4)
    with watch(plain) as third:
        plain.temper(prompts, answers, [2.0])
    assert third.body


def test_answers_behind_a_shared_beginning_are_those_of_each_prompt(plain, ids):
    prompts = [SHARED + letter for letter in "abcdefgh"]
    assert_made_as_alone(plain, plain.network, ids, prompts)
    assert len(plain._last_prefix.ids) == len(SHARED)


# -- ids as answers --------------------------------------------------------------------------------


def test_ids_by_hand(toy_model):
    """Ids that no text gives: "ab" is one token, and "a" + "b" are asked for."""
    table = {
        "?": {"a": 0.5, "ab": 0.5},
        "a": {"b": 0.25, ".": 0.75},
    }
    toy = toy_model(table)
    a, b, ab = toy.tokenizer.convert_tokens_to_ids(["a", "b", "ab"])
    answers = [[a, b], [ab], "ab"]
    parted, whole, text = toy.score(["why?"] * 3, answers)
    assert np.exp(parted) == pytest.approx([0.5, 0.25])
    assert np.exp(whole) == pytest.approx([0.5])
    assert whole == text


def test_layers_that_masks_cannot_steer_are_refused():
    """Networks without position ids: test_verify's Bloom."""
    linear = build("Qwen2", **LLAMA)
    kinds = ["linear_attention"] * 2
    linear.config.layer_types = kinds
    with pytest.raises(ModelError, match="linear_attention, which cannot be batched exactly"):
        Body(linear)
