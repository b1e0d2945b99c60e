"""The README's numbers, links and commands are those of the repository."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pandas as pd

from factrobust import paths

readme = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("readme.py"))))
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_committed_tables(results):
    quoted = readme.with_results(README, results / "figures")
    assert quoted == README, "run `python tests/readme.py`"


def test_results_shows_mean_interval_and_n(tmp_path):
    wide = {"m mean": [0.5, 9], "m low": [0.4, 9], "m high": [0.61, 9], "m n": [20, 9]}
    pd.DataFrame({"d": [1, 2], **wide}).to_csv(tmp_path / "w.csv")
    long = {"share": [9, 0.6], "low": [9, 0.5], "high": [9, 0.7], "n": [9, 30]}
    pd.DataFrame({"model": ["k", "k"], "d": ["y", "x"], **long}).to_csv(tmp_path / "l.csv")
    table = readme.results(tmp_path, "wide one ; w ; d == 1\nlong one ; l ; d == 'x'")
    assert table.splitlines() == [
        "| | m | k |",
        "| --- | --- | --- |",
        "| wide one | 0.500 [0.400, 0.610], n = 20 |  |",
        "| long one |  | 0.600 [0.500, 0.700], n = 30 |",
    ]


def test_links_lead_to_files():
    links = re.findall(r"\]\(((?!https?:)[^)#]+)\)", README)
    assert links
    assert [link for link in links if not (paths.ROOT / link).exists()] == []


def test_targets_exist():
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} is not a target"
