"""The README's numbers, links and commands are those of the repository."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from factrobust import paths

readme, prose = (
    SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name(name))))
    for name in ("readme.py", "test_notebook_prose.py")
)
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


def test_the_numbers_are_those_of_the_committed_tables(results):
    quoted = readme.with_results(README, results / "figures")
    assert quoted == README, "run `python tests/readme.py`"


def test_the_front_states_what_its_part_found(results):
    """Each interval in the rows with a picture is in a table of that part."""
    front = README[README.index("## What we found") : README.index("## Your model")]
    rows = re.findall(r"^\| \*\*.*?figures/(\d-\w+)/.*$", front, re.MULTILINE)
    assert [row[:1] for row in rows] == list("123456")
    for row in re.findall(r"^\| \*\*.*$", front, re.MULTILINE):
        [part] = re.findall(r"\(figures/(\d-\w+)/", row)
        made = [
            e for t in (results / "figures" / part).glob("*.csv") for e in prose.estimates_in(t)
        ]
        stated = list(prose.statements_in(row))
        assert stated
        assert [s for s in stated if not any(prose.agrees(s, e) for e in made)] == []


def test_the_fact_lost_is_what_the_notebooks_saw(results):
    """0-start-here saved its answers; 6.1 shows its own, a column a model, Gemma's first."""
    table = pd.read_csv(results / "figures" / "0-start-here" / "table-four-ways.csv")
    [place] = (paths.ROOT / "notebooks").glob("6-together/6.1-*.ipynb")
    shown = place.read_text(encoding="utf-8")
    block = README[README.index("## What a fact lost") : README.index("[Start here]")]
    row = r"^\| ([^|(]*\?)(?: \([^|]*\))? \| ([^|,]+?)(?:, with a probability of (\d+)%)? \|$"
    told = re.findall(row, block, re.MULTILINE)
    assert len(told) == 5
    for question, says, percent in told:
        found = table[(table["question"] == question) & (table["says"] == says)]
        cells = rf'<th>{re.escape(question)}</th>\\n",\s*" *<td>{re.escape(says)}</td>'
        assert len(found) or re.search(cells, shown), (question, says)
        assert not percent or (100 * found["P"]).round().eq(int(percent)).any()


@pytest.mark.parametrize("name", ["README.md", "profiles/README.md", "data/world/README.md"])
def test_links_lead_to_files_and_targets_exist(name):
    page = paths.ROOT / name
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(((?!https?:)[^)#\s]+)(?:#[^)]*)?\)", text)
    assert [link for link in links if not (page.parent / link).exists()] == []
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} is not a target"
