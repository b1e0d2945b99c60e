"""The six rules on the real embedded models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from factrobust.models import tokens
from factrobust.models.causal import CausalLM
from factrobust.models.interface import ModelError
from factrobust.models.prompts import FORMATS

ANSWERS = [" Nairobi", " William Shakespeare", " 1945", " Au", " Paris", " blue", " Pablo Picasso"]
ANSWERS += [" the Japanese yen", " South America", " 8"]
TEMPERATURES = [0.2, 1.0, 2.0, 5.0]


@pytest.fixture
def fresh() -> Callable[[CausalLM], None]:
    """Forget the prefix that earlier calls left."""

    def forget(model: CausalLM) -> None:
        model._prefix = None

    return forget


# -- rule 2: padding, prefix, branches -------------------------------------------------------------


def test_batch_of_one_equals_batch_of_many(real: Any, ask: Any, reference: Any, fresh: Any) -> None:
    """Prompts of very different lengths, with and without a prefix in the cache."""
    prompts = [*ask(real, 6), "The capital of France is"]  # the last shares no prefix
    answers = [*ANSWERS[:6], " Paris"]
    many = real.score(prompts, answers)
    wide = real.temper(prompts, answers, TEMPERATURES)
    for k, (prompt, answer) in enumerate(zip(prompts, answers, strict=True)):
        [one] = real.score([prompt], [answer])
        np.testing.assert_allclose(one, many[k], atol=1e-4)
        if k in (1, 6):
            fresh(real)
            [narrow] = real.temper([prompt], [answer], TEMPERATURES)
            np.testing.assert_allclose(narrow, wide[k], atol=1e-4 / 0.2)  # t = 0.2 scales by 5
            ids = real.tokenizer(prompt + answer).input_ids
            np.testing.assert_allclose(one, reference(real, ids, len(ids) - len(one)), atol=1e-4)


def test_greedy_is_transformers_greedy(real: Any, ask: Any) -> None:
    """Ids equal those of transformers' generate, one prompt at a time; so do batches of one."""
    prompts = ask(real)
    made = real.generate(prompts)
    stop = FORMATS[real.prompt_format].stop
    [alone] = real.generate(prompts[4:5])
    assert alone.text == made[4].text
    np.testing.assert_allclose(alone.logprobs, made[4].logprobs, atol=1e-4)
    for prompt, g in zip(prompts, made, strict=True):
        ids = torch.tensor([real.tokenizer(prompt).input_ids])
        with torch.no_grad():
            out = real.body.network.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                max_new_tokens=5,
                pad_token_id=0,
            )[0, ids.shape[1] :].tolist()
        assert g.token_ids == [i for i in out if i not in real.end_ids]
    for short, g in zip(real.generate(prompts, stop=stop), made, strict=True):
        assert g.text.startswith(short.text)
        assert not any(s in short.text for s in stop)


def test_answers_to_one_prompt_are_branches(gemma: Any, ask: Any, watch: Any) -> None:
    """Six answers to one prompt: its tokens are read once, and numbers are those of six calls."""
    [prompt] = ask(gemma, 1)
    answers = [" Nairobi", " Nairobi", " New York", " the city of Nairobi", "\nNairobi", " 12"]
    gemma._prefix = None
    with watch(gemma) as work:
        together = gemma.score([prompt] * 6, answers)
    length = len(gemma.tokenizer(prompt).input_ids)
    assert work.tokens < length + 20  # 6 answers of at most 5 tokens each, not 6 prompts
    for answer, got in zip(answers, together, strict=True):
        np.testing.assert_allclose(got, gemma.score([prompt], [answer])[0], atol=1e-4)


# -- rule 4: the head where it is needed -----------------------------------------------------------


def test_head_only_where_it_is_asked_for(gemma: Any, ask: Any, watch: Any) -> None:
    prompts = ask(gemma, 4)
    with watch(gemma) as work:
        scores = gemma.score(prompts, ANSWERS[:4])
    assert sum(work.head) == sum(map(len, scores))
    with watch(gemma) as work:
        gemma.temper(prompts[:1] * 5, [" Nairobi", " Paris", " Rome", " Oslo", " Lima"], [0.5, 1])
    assert sum(work.head) == 1  # five answers of one token follow the same place
    with watch(gemma) as work:
        gemma.generate(prompts, max_new_tokens=2)
    assert sum(work.head) == 8


def test_bfloat16_gives_normalised_float32(toy_model: Any) -> None:
    """Probabilities sum to 1 to float32's precision, which bfloat16's softmax misses by 1e-3."""
    words = [f" w{i}" for i in range(50)]
    toy = toy_model({"?": dict.fromkeys(words, 0.02)})
    toy.body.network.to(torch.bfloat16)
    scores = toy.score(["why?"] * 50, words)
    assert scores[0].dtype == np.float32
    assert np.exp(np.concatenate(scores, dtype=np.float64)).sum() == pytest.approx(1, abs=1e-5)


# -- rule 5: shared work is done once --------------------------------------------------------------


def test_one_prefill_for_all_temperatures_and_samples(gemma: Any, ask: Any, watch: Any) -> None:
    [prompt] = ask(gemma, 1)
    length = len(gemma.tokenizer(prompt).input_ids)
    gemma._prefix = None
    with watch(gemma) as work:
        gemma.sample([prompt] * 3, temperature=[0.2, 0.6, 1.0], n=4, max_new_tokens=2)
    assert sum(q for _, q in work.body[:-1]) == length  # the prompt (in two parts) once
    assert work.body[-1][0] == 1
    assert work.body[-1][1] <= 12  # then one token for each distinct first draw
    with watch(gemma) as work:
        gemma.temper([prompt], [" Nairobi"], np.linspace(0.1, 5, 40))
    assert work.tokens == 1  # the prompt is in the cache but for its last token
    assert sum(work.head) == 1


def test_prefix_is_computed_once_across_calls(smollm: Any, ask: Any, watch: Any) -> None:
    prompts = ask(smollm)
    smollm._prefix = None
    with watch(smollm) as first:
        smollm.score(prompts[:3], ANSWERS[:3])
    with watch(smollm) as second:
        smollm.score(prompts[5:8], ANSWERS[5:8])
    assert first.body[0][0] == 1  # the common beginning, for all rows
    assert len(first.body) == 2
    assert len(second.body) == 1
    lengths = [len(smollm.tokenizer(p).input_ids) for p in prompts[5:8]]
    assert second.tokens < sum(lengths) / 2


def test_small_batches_give_the_same(smollm: Any, ask: Any, monkeypatch: Any) -> None:
    prompts = ask(smollm, 4)
    expected = smollm.temper(prompts, ANSWERS[:4], TEMPERATURES)
    monkeypatch.setattr(smollm, "tokens_per_batch", 20)
    monkeypatch.setattr(smollm, "logits_per_batch", 1)
    got = smollm.temper(prompts, ANSWERS[:4], TEMPERATURES)
    np.testing.assert_allclose(got, expected, atol=5e-4)


# -- temper and alternatives -----------------------------------------------------------------------


def test_temper_against_float64_and_score(real: Any, ask: Any, reference: Any) -> None:
    prompts, answers = ask(real, 3), ANSWERS[:3]
    curves = real.temper(prompts, answers, [*TEMPERATURES, 0.0])
    scores = real.score(prompts, answers)
    np.testing.assert_allclose(curves[:, 1], [s.sum() for s in scores], atol=1e-5)
    for prompt, answer, curve, score in zip(prompts, answers, curves, scores, strict=True):
        ids = real.tokenizer(prompt + answer).input_ids
        for t, value in zip(TEMPERATURES, curve[:-1], strict=True):
            expected = reference(real, ids, len(ids) - len(score), t).sum()
            assert value == pytest.approx(expected, abs=2e-4 * max(1, 1 / t))


def test_greedy_answers_fade_with_temperature(real: Any, ask: Any) -> None:
    prompts = ask(real, 4)
    made = real.generate(prompts, max_new_tokens=3)
    curves = real.temper(prompts, [g.text for g in made], [0.0, 0.2, 0.5, 1, 2, 5, 50])
    assert (np.diff(curves, axis=1) <= 1e-6).all()
    np.testing.assert_allclose(curves[:, 3], [sum(g.logprobs) for g in made], atol=1e-4)
    np.testing.assert_allclose(curves[:, 0], 0, atol=1e-3)  # at 1e-4 the likeliest is certain
    for g in made:
        for token_logprob, at in zip(g.logprobs, g.top_logprobs, strict=True):
            values = np.array([p for _, p in at])
            assert len(values) == 10
            assert (np.diff(values) <= 0).all()
            assert np.logaddexp.reduce(values) <= 1e-6
            assert values[0] == token_logprob


def test_scoring_the_generated_ids_gives_what_generation_reported(real: Any, ask: Any) -> None:
    made = [g for g in real.generate(ask(real), max_new_tokens=8) if g.token_ids]
    prompts = [g.prompt for g in made]
    scores = real.score(prompts, [g.token_ids for g in made])
    for g, score in zip(made, scores, strict=True):
        np.testing.assert_allclose(score, g.logprobs, atol=1e-4)
    tempered = real.temper(prompts, [g.token_ids for g in made], [1.0])[:, 0]
    np.testing.assert_allclose(tempered, [s.sum() for s in scores], atol=1e-4)


def test_texts_and_ids_agree_where_they_are_the_same_tokens(real: Any, ask: Any) -> None:
    prompts, answers = ask(real), ANSWERS
    same = 0
    for prompt, answer, score in zip(prompts, answers, real.score(prompts, answers), strict=True):
        ids, start = tokens.encode_pair(real.tokenizer, prompt, answer, bos=real.bos)
        if ids[:start] == tokens.encode(real.tokenizer, prompt, bos=real.bos):
            same += 1
            np.testing.assert_allclose(real.score([prompt], [ids[start:]])[0], score, atol=1e-4)
    assert same == len(prompts)


def test_ids_by_hand(toy_model: Any) -> None:
    """Ids that no text gives: "ab" is one token, and "a" + "b" are asked for."""
    toy = toy_model({"?": {"a": 0.5, "ab": 0.5}, "a": {"b": 0.25, ".": 0.75}, "ab": {".": 1.0}})
    a, b, ab = (toy.tokenizer.convert_tokens_to_ids(w) for w in ("a", "b", "ab"))
    parted, whole, text = toy.score(["why?"] * 3, [[a, b], [ab], "ab"])
    np.testing.assert_allclose(np.exp(parted), [0.5, 0.25], rtol=1e-6)
    np.testing.assert_allclose(np.exp(whole), [0.5], rtol=1e-6)
    np.testing.assert_array_equal(whole, text)
    [g] = toy.generate(["oh?"])
    np.testing.assert_allclose(toy.score(["oh?"], [g.token_ids])[0], g.logprobs, atol=1e-6)


def test_sampled_shares_agree_with_temper(gemma: Any, ask: Any) -> None:
    """The first answer token's share among samples lies within binomial bounds of P_t."""
    [prompt] = ask(gemma, 1)
    ts = [0.5, 1.0, 1.5]
    p = np.exp(gemma.temper([prompt], [" Nairobi"], ts))[0]
    made = gemma.sample([prompt] * 3, temperature=ts, n=400, max_new_tokens=1, seed=2)
    share = np.array([np.mean([g.text == " Nairobi" for g in row]) for row in made])
    assert (np.abs(share - p) < 4 * np.sqrt(p * (1 - p) / 400) + 1e-3).all()
    for row, t in zip(made, ts, strict=True):
        g = next(g for g in row if g.text == " Nairobi")
        assert g.tempered_logprobs[0] == pytest.approx(np.log(p[ts.index(t)]), abs=1e-4)


# -- bad input -------------------------------------------------------------------------------------


def test_longer_than_the_context(toy_model: Any) -> None:
    toy = toy_model({" a": {" a": 1.0}})
    toy.body.config.max_position_embeddings = 20
    assert len(toy.generate([" a" * 15])[0].token_ids) == 5
    with pytest.raises(ModelError, match=r"21 tokens in generate, more than the model's context"):
        toy.generate([" a", " a" * 16])
    with pytest.raises(ModelError, match=r"21 tokens in score, .* of 20; shorten the prompt"):
        toy.score([" a" * 20], [" a"])


def test_a_head_that_is_not_the_last_step_is_refused(toy_model: Any) -> None:
    toy = toy_model({" a": {" b": 0.5, " c": 0.5}})
    network = toy.body.network
    network.register_forward_hook(lambda _, __, out: out.__setitem__("logits", out.logits * 0.5))
    with pytest.raises(ModelError, match=r"differ from its head .* not supported yet"):
        CausalLM(
            network, toy.tokenizer, name="x", fingerprint="x", prompt_format="prefix", chat=None
        )
