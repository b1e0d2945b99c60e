"""The work that is timed is real, and its arithmetic is counted; no timing is judged."""

import pytest
from transformers import LlamaConfig, LlamaForCausalLM


@pytest.mark.parametrize("tied", [True, False])
def test_the_body_is_what_is_neither_embedding_nor_head(bench, tied):
    config = LlamaConfig(
        vocab_size=11, hidden_size=8, intermediate_size=12, num_hidden_layers=1,
        num_attention_heads=2, tie_word_embeddings=tied,
    )  # fmt: skip
    network = LlamaForCausalLM(config)
    every = sum(p.numel() for p in network.parameters())
    # Attention 4 x 8 x 8, feed-forward 3 x 8 x 12, three norms of 8.
    assert every - bench.embedding_weights(network) == 4 * 64 + 3 * 96 + 3 * 8


def test_each_operation_asks_all_questions(bench, smollm):
    prompts = ["Q: What is the capital of Kenya?\nA:", "Q: What is the capital of Peru?\nA:"]
    jobs = bench.works(smollm, prompts, [" Nairobi", " Lima"])
    assert [*jobs] == ["answers", "scores", "curves"]
    assert [len(jobs[name]()) for name in ("answers", "scores")] == [2, 2]
    assert bench.peak(rounds=1) > 1e8
