"""The two ways of dividing a job give the same on a toy model; nothing here is about time."""

from concurrent.futures import ThreadPoolExecutor

TABLE = {":": {" a": 0.5, " b": 0.3, " c": 0.2}, " a": {".": 0.7, "!": 0.3}}


def test_both_ways_agree(bench, tmp_path, toy_model):
    toy = toy_model(TABLE, prompt_format="zero-shot", name=str(tmp_path))
    toy.body.network.save_pretrained(tmp_path)
    toy.tokenizer.save_pretrained(tmp_path)
    work = bench.jobs(toy, 7)
    asked = [(job.operation, len(job.requests)) for job in work.values()]
    assert asked == [("generate", 7)] * 2
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        found = bench.measure(toy, [one, other], 1, work, rounds=1)
    assert found["equal_texts"]
    assert found["largest_difference"] < 1e-5
    assert [c["target"] for c in found["comparisons"]] == ["at most 1.15"] * 2
    assert found["slices"] == {"greedy answers": 1, "exact curves": 1}
