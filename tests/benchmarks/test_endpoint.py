"""The server counts its own time, and the answers are those that it gives; no timing is judged."""

import json
import urllib.request


def test_the_server_adds_up_its_own_time(bench):
    with bench.serving(0.02) as url:
        bench.busy(url)
        for _ in range(3):
            body = json.dumps({"prompt": "a"}).encode()
            with urllib.request.urlopen(f"{url}/v1/completions", data=body) as reply:
                assert len(json.load(reply)["choices"][0]["logprobs"]["tokens"]) == 5
        assert bench.busy(url) >= 3 * 0.02
        assert bench.busy(url) == 0  # it began anew


def test_a_run_takes_at_least_what_the_server_needs(bench, tmp_path):
    found = bench.measure(0.01, concurrency=2, requests=6, rounds=2, folder=tmp_path)
    assert found.shape == (2,)
    assert (found > 0.95).all()
    assert (tmp_path / "0.01.sqlite").is_file()  # answers are recorded in what is measured
