"""The same rules for encoder-decoder models, on a tiny random T5 and against transformers itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom
from transformers import BartConfig, BartForConditionalGeneration

from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.interface import ModelError

PROMPTS = ["a", "why so", "the quick brown fox jumps over the lazy dog", "bb", "12345678", "abc"]
PROMPTS += ["who wrote Hamlet and when", "Q A"]
ANSWERS = ["x", "because", "an animal of some kind", "Y", "87654321", "abc", "W S", "the end"]
END = 0


@pytest.fixture(scope="module")
def t5(tiny_t5: Callable[..., Seq2SeqLM]) -> Seq2SeqLM:
    return tiny_t5()


def exact(model: Seq2SeqLM, prompt: str, answer: list[int], t: float = 1.0) -> np.ndarray:
    """Log P_t of an answer's tokens by the whole network, alone and without a cache, in float64."""
    source = torch.tensor([model.tokenizer(prompt).input_ids])
    target = torch.tensor([[*model.body.begin, *answer]])
    with torch.no_grad():
        logits = model.body.network(input_ids=source, decoder_input_ids=target).logits[0]
    predictors = logits[len(model.body.begin) - 1 : -1].double()
    chosen = torch.log_softmax(predictors / t, dim=-1).gather(1, torch.tensor(answer)[:, None])
    values: np.ndarray = chosen[:, 0].numpy()
    return values


def ids(model: Seq2SeqLM, text: str) -> list[int]:
    return list(model.tokenizer(text, add_special_tokens=False).input_ids)


@contextmanager
def read_prompts(model: Seq2SeqLM) -> Iterator[list[int]]:
    """How many prompts the encoder reads each time."""
    rows: list[int] = []
    hook = model.body.encoder.register_forward_hook(
        lambda _, __, kwargs, ___: rows.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    yield rows
    hook.remove()


# -- score -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [[], [END]])
def test_score_is_the_networks_own_loss(t5: Any, end: list[int]) -> None:
    """transformers' loss is the mean of -log P over the labels; the end token only if it is given."""
    labels = [[*ids(t5, answer), *end] for answer in ANSWERS]
    given = labels if end else ANSWERS
    for prompt, label, score in zip(PROMPTS, labels, t5.score(PROMPTS, given), strict=True):
        with torch.no_grad():
            loss = t5.body.network(
                input_ids=torch.tensor([t5.tokenizer(prompt).input_ids]),
                labels=torch.tensor([label]),
            ).loss
        assert len(score) == len(label)
        assert score.dtype == np.float32
        assert score.sum() == pytest.approx(-float(loss) * len(label), abs=1e-5 * len(label))


def test_batch_of_one_equals_batch_of_eight(t5: Any) -> None:
    scores = t5.score(PROMPTS, ANSWERS)
    made = t5.generate(PROMPTS)
    for k, (prompt, answer) in enumerate(zip(PROMPTS, ANSWERS, strict=True)):
        [alone] = t5.score([prompt], [answer])
        np.testing.assert_allclose(alone, scores[k], atol=1e-5)
        np.testing.assert_allclose(alone, exact(t5, prompt, ids(t5, answer)), atol=1e-5)
        [one] = t5.generate([prompt])
        assert (one.text, one.token_ids) == (made[k].text, made[k].token_ids)
        np.testing.assert_allclose(one.logprobs, made[k].logprobs, atol=1e-5)


def test_padding_is_without_effect(t5: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On whatever side the tokenizer pads, and whatever stands there."""
    expected = t5.score(PROMPTS, ANSWERS)
    made = t5.generate(PROMPTS)
    for side, pad in (("left", 1), ("right", 7)):
        monkeypatch.setattr(t5.tokenizer, "padding_side", side)
        monkeypatch.setattr(t5.body, "pad", pad)
        for got, one in zip(t5.score(PROMPTS, ANSWERS), expected, strict=True):
            np.testing.assert_allclose(got, one, atol=1e-6)
        assert [g.text for g in t5.generate(PROMPTS)] == [g.text for g in made]


def test_a_prompt_is_read_once_for_all_its_answers(t5: Any, watch: Any) -> None:
    prompts, answers = ["why so"] * 4 + ["abc"], ["because", "b", "b2", "x", "no"]
    with read_prompts(t5) as read, watch(t5) as work:
        scores = t5.score(prompts, answers)
    assert sum(read) == 2
    assert sum(work.head) == 2 + 6 + 1 + 1  # two places for first tokens, then each token's own
    for prompt, answer, score in zip(prompts, answers, scores, strict=True):
        np.testing.assert_allclose(score, exact(t5, prompt, ids(t5, answer)), atol=1e-5)
    many = [a + b for a in "abcdefgh" for b in "ijklmnopqr"]  # more than are forced at once
    with read_prompts(t5) as read:
        scores = t5.score(["why so"] * len(many), many)
    assert read == [1]
    np.testing.assert_allclose(scores[-1], exact(t5, "why so", ids(t5, "hr")), atol=1e-5)


def test_prompts_that_write_the_end_token_themselves(t5: Any) -> None:
    np.testing.assert_array_equal(t5.score(["abc</s>"], ["x"])[0], t5.score(["abc"], ["x"])[0])


def test_bfloat16_gives_normalised_float32(tiny_t5: Callable[..., Seq2SeqLM]) -> None:
    model = tiny_t5()
    model.body.network.to(torch.bfloat16)
    scores = model.score(["why so"] * 64, [[i] for i in range(64)])
    assert np.exp(np.concatenate(scores, dtype=np.float64)).sum() == pytest.approx(1, abs=1e-5)


# -- temper ----------------------------------------------------------------------------------------


def test_temper_at_one_is_score_and_elsewhere_the_tempered_softmax(t5: Any) -> None:
    grid = [0.0, 0.3, 1.0, 2.5]
    with read_prompts(t5) as read:
        curves = t5.temper(PROMPTS, ANSWERS, grid)
    assert sum(read) == len(PROMPTS)
    scores = t5.score(PROMPTS, ANSWERS)
    np.testing.assert_allclose(curves[:, 2], [s.sum() for s in scores], atol=1e-5)
    for prompt, answer, curve in zip(PROMPTS, ANSWERS, curves, strict=True):
        for t, value in zip(grid[1:], curve[1:], strict=True):
            expected = exact(t5, prompt, ids(t5, answer), t).sum()
            assert value == pytest.approx(expected, abs=2e-4 / t)


# -- generate --------------------------------------------------------------------------------------


def test_generate_is_transformers_greedy(t5: Any) -> None:
    made = t5.generate(PROMPTS, max_new_tokens=8)
    assert {len(g.token_ids) for g in made} == {0, 2, 3, 8}  # some end early, one at once
    assert len({g.text for g in made}) == 7
    for prompt, g in zip(PROMPTS, made, strict=True):
        source = torch.tensor([t5.tokenizer(prompt).input_ids])
        out = t5.body.network.generate(
            input_ids=source, attention_mask=torch.ones_like(source), do_sample=False,
            num_beams=1, max_new_tokens=8,
        )[0].tolist()  # fmt: skip
        assert g.token_ids == [i for i in out[1:] if i != END]
        assert g.text == t5.tokenizer.decode(g.token_ids)
        np.testing.assert_allclose(g.logprobs, exact(t5, prompt, g.token_ids), atol=1e-5)
        for chosen, top in zip(g.logprobs, g.top_logprobs, strict=True):
            assert len(top) == 10
            assert top[0][1] == chosen
            assert [p for _, p in top] == sorted((p for _, p in top), reverse=True)


def test_scoring_what_was_generated(t5: Any) -> None:
    made = [g for g in t5.generate(PROMPTS, max_new_tokens=8) if g.token_ids]
    by_ids = t5.score([g.prompt for g in made], [g.token_ids for g in made])
    by_text = t5.score([g.prompt for g in made], [g.text for g in made])
    for g, a, b in zip(made, by_ids, by_text, strict=True):
        np.testing.assert_allclose(a, g.logprobs, atol=1e-5)
        np.testing.assert_array_equal(a, b)  # a letter is a token


def test_stop_strings_end_and_shorten_an_answer(t5: Any, watch: Any) -> None:
    [whole] = t5.generate(PROMPTS[2:3])
    stop = whole.text[2]
    assert stop not in whole.text[:2]
    kept = whole.text.index(stop)
    with watch(t5) as work:
        [g] = t5.generate([whole.prompt], stop=[stop])
    assert g.text == whole.text[:kept]
    assert g.token_ids == whole.token_ids[:kept]
    assert len(g.top_logprobs) == kept
    assert len(work.body) == kept + 1  # the start and the kept tokens, none after the stop


# -- sample ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("t", [0.6, 1.0, 2.0])
def test_samples_follow_the_exact_probabilities(t5: Any, t: float) -> None:
    """First tokens, the end token among them, and pairs of tokens."""
    n = 4000
    [made] = t5.sample(["why so"], temperature=t, n=n, max_new_tokens=2, seed=3)
    first = np.exp(t5.temper(["why so"] * 64, [[i] for i in range(64)], [t])[:, 0])
    assert first.sum() == pytest.approx(1, abs=1e-5)
    counts = Counter(g.token_ids[0] if g.token_ids else END for g in made)
    low, high = binom.ppf(1e-6, n, first), binom.ppf(1 - 1e-6, n, first)
    found = np.array([counts[i] for i in range(64)])
    assert ((low <= found) & (found <= high)).all()
    pairs = Counter(tuple(g.token_ids) for g in made if len(g.token_ids) == 2)
    common = [pair for pair, _ in pairs.most_common(5)]
    p = np.exp(t5.temper(["why so"] * 5, [list(pair) for pair in common], [t])[:, 0])
    found = np.array([pairs[pair] for pair in common])
    assert ((binom.ppf(1e-6, n, p) <= found) & (found <= binom.ppf(1 - 1e-6, n, p))).all()


def test_a_sample_depends_on_itself_alone(t5: Any) -> None:
    """Also on the same random numbers as a decoder-only model's: the streams are shared."""
    settings: dict[str, Any] = {"n": 6, "max_new_tokens": 7, "seed": 5}
    [alone] = t5.sample(["abc"], temperature=1.5, **settings)
    with read_prompts(t5) as read:
        together = t5.sample(PROMPTS * 2, temperature=[1.5] * 8 + [0.7] * 8, **settings)
    assert sum(read) == len(PROMPTS)
    assert [g.text for g in together[PROMPTS.index("abc")]] == [g.text for g in alone]
    assert len({g.text for g in alone}) > 1
    for g in together[2]:
        np.testing.assert_allclose(g.logprobs, exact(t5, PROMPTS[2], g.token_ids), atol=2e-5)
        np.testing.assert_allclose(
            g.tempered_logprobs, exact(t5, PROMPTS[2], g.token_ids, 1.5), atol=2e-5
        )
    [cold] = t5.sample(["abc"], temperature=0.0, **settings)
    [greedy] = t5.generate(["abc"], max_new_tokens=7)
    assert {g.text for g in cold} == {greedy.text}


# -- batches, bad input ----------------------------------------------------------------------------


def test_scarce_memory_and_small_batches(tiny_t5: Callable[..., Seq2SeqLM]) -> None:
    model = tiny_t5(name="models/tiny", tokens_per_batch=10**6)

    def everything() -> list[Any]:
        return [
            model.generate(PROMPTS),
            model.sample(PROMPTS, temperature=1.0, n=3, seed=1),
            *model.score(PROMPTS, ANSWERS),
            *model.temper(PROMPTS, ANSWERS, [0.5, 2.0]),
        ]

    def same(left: list[Any], right: list[Any]) -> None:
        for a, b in zip(chain(left[0], *left[1]), chain(right[0], *right[1]), strict=True):
            assert a.text == b.text
            np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-5)
        for a, b in zip(left[2:], right[2:], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-4)

    plenty = everything()
    most, inner = [2], model.body.encode

    def encode(prompts: list[list[int]]) -> Any:
        if len(prompts) > most[0]:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return inner(prompts)

    model.body.encode = encode  # type: ignore[method-assign]
    same(everything(), plenty)
    model.tokens_per_batch, model.logits_per_batch = 20, 1
    same(everything(), plenty)
    most[0] = 0
    with pytest.raises(ModelError, match="models/tiny: one prompt alone does not fit into memory"):
        model.generate(PROMPTS)


def test_ids_and_lengths_that_the_model_does_not_have(t5: Any, letters: Any) -> None:
    with pytest.raises(ModelError, match="tiny: 64 is no token id of this model, whose vocabulary"):
        t5.score(["abc"], [[5, 64]])
    with pytest.raises(ModelError, match=r"answer 0 .* is empty; leave such questions out"):
        t5.score(["abc"], [[]])
    bart = BartForConditionalGeneration(
        BartConfig(
            vocab_size=64, d_model=32, encoder_layers=1, decoder_layers=1,
            encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64,
            decoder_ffn_dim=64, max_position_embeddings=20, pad_token_id=1, bos_token_id=0,
            eos_token_id=0, decoder_start_token_id=0,
        )
    )  # fmt: skip
    model = Seq2SeqLM(
        bart, letters, name="short", fingerprint="x", prompt_format="prefix", chat=None
    )
    assert len(model.score(["a" * 19], ["b" * 19])[0]) == 19  # with the end, and after the start
    for prompt, answer in (("a" * 20, "b"), ("a", "b" * 20)):
        with pytest.raises(ModelError, match=r"short: .* 21 tokens in score, .* context of 20"):
            model.score([prompt], [answer])
