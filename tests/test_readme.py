"""The README's numbers, links and commands are those of the repository."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

from factrobust import paths

readme = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("readme.py"))))
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_committed_tables(results):
    quoted = readme.with_results(README, results / "figures")
    assert quoted == README, "run `python tests/readme.py`"


def test_links_lead_to_files_and_targets_exist():
    links = re.findall(r"\]\(((?!https?:)[^)#]+)\)", README)
    assert links
    assert [link for link in links if not (paths.ROOT / link).exists()] == []
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} is not a target"
