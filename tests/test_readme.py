"""The numbers, links and commands of README and the pages behind it are those of the repository."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from factrobust import paths
from factrobust.reproduce.profiles import find_notebooks

readme, prose = (
    SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name(name))))
    for name in ("readme.py", "test_notebook_prose.py")
)
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", readme.PAGES)
def test_the_numbers_are_those_of_the_committed_tables(results, name):
    page = (paths.ROOT / name).read_text(encoding="utf-8")
    assert readme.with_results(page, results / "figures") == page, "run `python tests/readme.py`"


def test_each_quoted_number_stands_on_a_page():
    parts = {line.partition(": ")[0] for line in readme.QUOTED.strip().splitlines()}
    pages = [(paths.ROOT / name).read_text(encoding="utf-8") for name in readme.PAGES]
    assert {found[2] for page in pages for found in readme.BLOCK.finditer(page)} == parts
    assert sum(len(readme.FLIPS.findall(page)) for page in pages) == 1


def wrong(text, tables):
    """The intervals in a text that are in none of these tables."""
    made = [estimate for table in tables for estimate in prose.estimates_in(table)]
    stated = list(prose.statements_in(text))
    assert stated
    return [s for s in stated if not any(prose.agrees(s, e) for e in made)]


def test_the_front_states_what_its_part_found(results):
    """Each interval of a part's paragraph is in a table of that part, and its placebo stands
    beside it."""
    front = README[README.index("## What we found") : README.index("## Rerun the study")]
    parts = re.findall(r"^\*\*(\d) .*?\(figures/(\d-\w+)/.*?$", front, re.MULTILINE | re.DOTALL)
    paragraphs = re.findall(r"^\*\*\d .*?\n\n", front, re.MULTILINE | re.DOTALL)
    assert [number for number, _ in parts] == list("123456")
    assert len(paragraphs) == len(parts)
    for (number, part), paragraph in zip(parts, paragraphs, strict=True):
        assert part.startswith(number)
        assert "*Placebo:*" in paragraph
        if re.search(r"\[-?[\d.]+, ", paragraph):  # ranges over trainings have a test of their own
            assert wrong(paragraph, (results / "figures" / part).glob("*.csv")) == []


def test_the_results_state_what_the_tables_hold(results):
    text = (paths.ROOT / "notebooks" / "results.md").read_text(encoding="utf-8")
    assert wrong(text, (results / "figures").glob("*/*.csv")) == []


@pytest.mark.parametrize("name", ["README.md", "profiles/README.md"])
def test_a_comparison_states_what_flips_found(results, name):
    text = (paths.ROOT / name).read_text(encoding="utf-8")
    about = text[text.index("    make flips A=smollm2-135m-instruct") :].partition("\n## ")[0]
    assert wrong(about, [results / "figures" / "6-together" / "table-flips.csv"]) == []


def test_the_fact_lost_is_what_the_notebooks_saw(results):
    """0-start-here saved its answers, in two prompts."""
    table = pd.read_csv(results / "figures" / "0-start-here" / "table-four-ways.csv")
    table = table.dropna(subset="says").set_index(["question", "prompt_of"])
    block = README[README.index("## What a fact lost") : README.index("## What we found")]
    cell = r" ([^|]+?) \((\d+)%\) \|"
    told = re.findall(rf"^\| ([^|]*\?) \|{cell}{cell}$", block, re.MULTILINE)
    assert len(told) == 4
    for question, *cells in told:
        for prompt, *cell in zip(
            ["two examples", "no example"], cells[::2], cells[1::2], strict=True
        ):
            found = table.loc[question, prompt]
            assert [found["says"], f"{100 * found['P']:.0f}"] == cell, (question, prompt)
    worded = table[table["change"].isin(["as it is", "in other words"])]
    lost = worded["says"].ne("Nairobi").groupby("prompt_of").agg(["size", "sum"])
    assert lost.loc[["two examples", "no example"]].to_numpy().tolist() == [[7, 0], [7, 2]]


def test_all_notebooks_are_listed_by_their_titles():
    listed = (paths.ROOT / "notebooks" / "README.md").read_text(encoding="utf-8")
    names = [name for name in find_notebooks(paths.ROOT) if re.match(r"notebooks/\d-\w+/", name)]
    titles = [prose.cells_of(name)[0].partition("\n")[0].removeprefix("# ") for name in names]
    files = [name.removeprefix("notebooks/") for name in names]
    found = re.findall(r"^- \[(.*)\]\((.*)\)", listed, re.MULTILINE)
    assert found == [*zip(titles, files, strict=True)]


# Captions counted in the papers; paper 2's figure 1 is no result.
CAPTIONS = {
    "paper 1": {"table": range(1, 3), "figure": range(1, 14)},
    "paper 2": {"table": range(1, 3), "figure": range(2, 10)},
    "paper 3": {"table": range(1, 15), "figure": range(1, 6)},
    "thesis": {"table": range(1, 17), "figure": range(1, 11)},
}
MADE = ("as the paper", "on other models", "from their numbers")
NOT_MADE = "cannot be made: "


def test_every_table_and_figure_of_the_papers_is_on_the_map():
    named = readme.artifacts().set_index("paper")["where"]
    for paper, kinds in CAPTIONS.items():
        captions = [f"{kind} {number}" for kind, numbers in kinds.items() for number in numbers]
        assert named[paper].tolist() == captions
    assert set(named.index) == set(CAPTIONS)


def test_what_the_map_names_is_written_by_a_notebook(results):
    """And what has no place says why."""
    for row in readme.artifacts().itertuples(index=False):
        assert row.note.startswith(MADE if row.path else NOT_MADE), row
        if row.path:
            about = (results / "figures" / f"{row.path}.json").read_text(encoding="utf-8")
            assert json.loads(about)["notebook"] in find_notebooks(paths.ROOT), row
            written = json.loads(about)["files"]
            assert {(paths.ROOT / "figures" / row.path).with_name(x).exists() for x in written} == {
                True
            }
            assert Path(f"{row.path}.csv").name in written, row


def test_a_number_of_theirs_and_one_of_ours(tmp_path):
    quoted = "4-context-table-8 ; model == 'llama-3.1-8B' and source == 'contextual' ; count / 4760"
    assert readme._theirs(quoted) == "0.77 (llama-3.1-8B)"  # 3662 of 4760
    table = "model,by,r,low,high,n\ngemma-3-270m,a,-0.5,-0.625,0.25,8\ngemma-3-270m,b,1,1,1,1\n"
    (tmp_path / "table.csv").write_text(table, encoding="utf-8")
    assert readme._ours("table ; by == 'a'", tmp_path) == "-0.500 [-0.625, 0.250], n = 8"


def anchors(page):
    """Of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("name", [*readme.PAGES, "notebooks/README.md", "data/world/README.md"])
def test_links_lead_to_files_and_targets_exist(name):
    page = paths.ROOT / name
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", text)
    assert [link for link, _ in links if not (page.parent / link).exists()] == []
    pages = [(page.parent / link if link else page, to) for link, to in links if to]
    assert [(where, to) for where, to in pages if to not in anchors(where)] == []
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z]+)", text)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target} is not a target"
