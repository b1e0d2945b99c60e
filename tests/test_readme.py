"""The README's numbers, links and commands are those of the repository."""

from __future__ import annotations

import re

import pandas as pd
import pytest

from factrobust import paths
from factrobust.reproduce.readme import results, with_results

README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_committed_table() -> None:
    table = pd.read_csv(paths.ROOT / "figures" / "1-decoding" / "table-01.csv")
    assert with_results(README, table) == README, "run `python -m factrobust.reproduce.readme`"


def test_results_shows_mean_interval_and_n() -> None:
    numbers = {"m mean": [0.5, 0.6], "m low": [0.4, 0.5], "m high": [0.61, 0.7], "m n": [20, 30]}
    names = ["sampled", "answer probability, same grid"]
    table = pd.DataFrame({"estimator": names, "d": [1, 1], **numbers})
    assert "0.500 [0.400, 0.610], n = 20" in results(table)
    assert "0.600 [0.500, 0.700], n = 30" in results(table)


def test_missing_markers_are_named() -> None:
    with pytest.raises(ValueError, match="put it back"):
        with_results("no markers", pd.DataFrame())


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(((?!https?:)[^)#]+)\)", README)
    assert links
    assert [link for link in links if not (paths.ROOT / link).exists()] == []


def test_targets_exist() -> None:
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} is not a target"
