"""Tiny networks of random weights, and what a network says of one row alone."""

import numpy as np
import torch
import transformers as hf

from factrobust.models.engine import Plain
from factrobust.models.extra import OpenELMConfig, OpenELMForCausalLM

# The settings of Llama, and of most decoders since.
LLAMA = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
    "initializer_range": 0.5,
}
T5 = {
    "vocab_size": 64,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_heads": 4,
    "pad_token_id": 1,
    "eos_token_id": 0,
    "decoder_start_token_id": 1,
}
OTHER_NAMES = {
    "Bert": (hf.BertLMHeadModel, hf.BertConfig),
    "GPT2": (hf.GPT2LMHeadModel, hf.GPT2Config),
    "Gemma3": (hf.Gemma3ForCausalLM, hf.Gemma3TextConfig),
    "OpenELM": (OpenELMForCausalLM, OpenELMConfig),
}
ENCODER_DECODERS = ("T5", "UMT5", "Bart", "Pegasus")
TEMPERATURES = [0.2, 5.0]


def build(kind, *, seed=0, **settings):
    """A network whose weights depend on the seed alone."""
    use = "ConditionalGeneration" if kind in ENCODER_DECODERS else "CausalLM"
    names = f"{kind}For{use}", f"{kind}Config"
    network, config = OTHER_NAMES.get(kind) or [getattr(hf, name) for name in names]
    torch.manual_seed(seed)
    return network(config(**settings)).eval()


@torch.no_grad()
def logits_behind(network, prompt, answer):
    """The network's own logits behind a prompt and behind each token of an answer, float64 [1 +
    token, vocabulary]: one row, without masks or a cache.

    Prompt and answer are token ids; an encoder reads the end token (0) behind the prompt.
    """
    if network.config.is_encoder_decoder:
        start = network.config.decoder_start_token_id
        forced = network.generation_config.forced_bos_token_id
        begin = [start] if forced is None else [start, forced]
        read = torch.tensor([[*prompt, 0]])
        written = torch.tensor([[*begin, *answer]])
        logits = network(input_ids=read, decoder_input_ids=written).logits
    else:
        logits = network(input_ids=torch.tensor([[*prompt, *answer]])).logits
    return logits[0, -len(answer) - 1 :].double()


def chosen(logits, tokens, t):
    """Log P_t of each token by its logits [token, vocabulary]."""
    logprobs = torch.log_softmax(logits / t, dim=-1)
    return [float(row[token]) for row, token in zip(logprobs, tokens, strict=True)]


def alone(network, prompt, answer, t=1.0):
    """Log P_t of an answer's tokens, as an answer is read that is given."""
    return chosen(logits_behind(network, prompt, answer)[:-1], answer, t)


def step_by_step(network, prompt, answer, t=1.0):
    """The same, as an answer is made: token by token."""
    found = []
    for i, token in enumerate(answer):
        found += chosen(logits_behind(network, [*prompt, *answer[:i]], []), [token], t)
    return found


def assert_given_as_alone(model, network, ids, prompts, answers):
    """Whether answers that are given have the numbers of `alone`; `ids` gives a text's tokens."""
    scores = model.score(prompts, answers)
    curves = model.temper(prompts, answers, TEMPERATURES)
    for prompt, answer, score, curve in zip(prompts, answers, scores, curves, strict=True):
        pair = ids(prompt), ids(answer)
        np.testing.assert_allclose(score, alone(network, *pair), atol=1e-4)
        expected = [sum(alone(network, *pair, t)) for t in TEMPERATURES]
        np.testing.assert_allclose(curve, expected, atol=1e-3)


def assert_made_as_alone(model, network, ids, prompts):
    """The same of answers that the model makes, greedily and drawn."""
    greedy = model.generate(prompts, max_new_tokens=6, temperatures=TEMPERATURES)
    drawn = model.sample(prompts, temperature=2.0, n=4, max_new_tokens=6, seed=3)
    of_rows = isinstance(model.body, Plain) and not network.config.is_encoder_decoder
    read = step_by_step if of_rows else alone
    for first, samples in zip(greedy, drawn, strict=True):
        prompt = ids(first.prompt)
        for made in (first, *samples):
            expected = read(network, prompt, made.token_ids)
            np.testing.assert_allclose(made.logprobs, expected, atol=1e-4)
        for made in samples:
            expected = read(network, prompt, made.token_ids, 2.0)
            np.testing.assert_allclose(made.tempered_logprobs, expected, atol=1e-4)
        if first.token_ids:
            expected = [sum(read(network, prompt, first.token_ids, t)) for t in TEMPERATURES]
            np.testing.assert_allclose(first.curve, expected, atol=1e-3)
