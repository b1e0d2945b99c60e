"""A language model whose next-token probabilities are a table, for answers derived by hand."""

import math
import re
from collections.abc import Mapping
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from factrobust.models.causal import CausalLM

END = "</s>"
UNKNOWN = "<unk>"
IMPOSSIBLE = -1e9  # the logit of a token of probability 0: a finite number, so that 0 x it is 0


def toy_model(table: Mapping[str, Mapping[str, float]], **options: Any) -> CausalLM:
    """A `CausalLM` that follows `table`: last token -> {next token: probability}.

    A token is the exact text that it adds, leading space included, and the longest token wins:

        {" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}, " Nairobi": {".": 1.0}}

    answers the prompt "The capital of Kenya" with " Nairobi." in 80% of the samples. Only the last
    token counts, so prompts that shall be answered differently must end in different tokens; any
    text that is no token is one unknown token. A token without a row (or an unknown one) is
    followed by the end of the answer; write "</s>" in a row to end an answer with some probability.
    A row must sum to 1. At temperature t the probabilities are p ** (1 / t), normalised.

    `options` go to CausalLM: name, fingerprint, prompt_format ("prefix"), chat, tokens_per_batch,
    ... The vocabulary holds at least 16 tokens (unused ones have probability 0), so that there are
    ten alternatives; an impossible token has log-probability -1e9."""
    words = [END, UNKNOWN]
    for last, row in table.items():
        words += [last, *row]
    words = list(dict.fromkeys(words))
    size = 16
    while size < len(words):
        size *= 4  # its square root is exact
    words += [f"<unused{i}>" for i in range(size - len(words))]
    ids = {word: i for i, word in enumerate(words)}

    logits = torch.full((size, size), IMPOSSIBLE)  # [next token, last token], as in a linear layer
    for last in words:
        row = table.get(last, {END: 1.0})
        total = sum(row.values())
        if not math.isclose(total, 1):
            raise ValueError(f"the row of {last!r} sums to {total}")
        for word, probability in row.items():
            if probability > 0:
                logits[ids[word], ids[last]] = math.log(probability)
    about = {"name": "toy", "fingerprint": "toy"} | options
    return CausalLM(_network(logits), _tokenizer(words), **about)


def _network(logits: torch.Tensor) -> LlamaForCausalLM:
    """A Llama whose only layer adds nothing: its last hidden state is the last token's one-hot."""
    size = len(logits)
    config = LlamaConfig(
        vocab_size=size,
        hidden_size=size,
        intermediate_size=size,
        num_hidden_layers=1,
        num_attention_heads=2,
        rms_norm_eps=0.0,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=0,
    )
    network = LlamaForCausalLM(config)
    with torch.no_grad():
        network.model.layers[0].self_attn.o_proj.weight.zero_()
        network.model.layers[0].mlp.down_proj.weight.zero_()
        network.model.embed_tokens.weight.copy_(torch.eye(size))
        network.model.norm.weight.fill_(size**-0.5)  # undoes the division by the root mean square
        network.lm_head.weight.copy_(logits)
    return network


def _tokenizer(words: list[str]) -> PreTrainedTokenizerFast:
    ids = {word: i for i, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    longest_first = sorted(words, key=len, reverse=True)
    any_word = Regex("|".join(map(re.escape, longest_first)))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(any_word, "isolated")
    tokenizer.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token=UNKNOWN,
        eos_token=END,
        clean_up_tokenization_spaces=False,
    )
