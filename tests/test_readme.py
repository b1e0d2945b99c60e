"""The numbers, links and commands of README and the pages behind it are those of the repository."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import pytest

from factrobust import paths
from factrobust.reproduce.profiles import find_notebooks

readme, prose = (
    SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name(name))))
    for name in ("readme.py", "test_notebook_prose.py")
)
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
NOTEBOOKS = find_notebooks(paths.ROOT)


def text_of(name):
    """What a reader of a page, or of a notebook's Markdown, sees."""
    page = paths.ROOT / name
    if page.suffix == ".md":
        return page.read_text(encoding="utf-8")
    cells = nbformat.read(page, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def section(text, first, last):
    """From one heading up to another."""
    return text[text.index(first) : text.index(last)]


@pytest.mark.parametrize("name", readme.PAGES)
def test_the_numbers_are_those_of_the_committed_tables(results, name):
    page = text_of(name)
    assert readme.with_results(page, results / "figures") == page, "run `python tests/readme.py`"


def test_each_quoted_number_stands_on_a_page():
    parts = {line.partition(": ")[0] for line in readme.QUOTED.strip().splitlines()}
    text = "".join(map(text_of, readme.PAGES))
    shown = {found[2] for found in readme.BLOCK.finditer(text)}
    assert shown == parts
    assert len(readme.FLIPS.findall(text)) == 1


def test_the_front_page_is_short():
    assert len(README.split()) <= 1_300


def wrong(text, tables):
    """The intervals in a text that are in none of these tables."""
    made = [estimate for table in tables for estimate in prose.estimates_in(table)]
    stated = list(prose.statements_in(text))
    assert stated
    return [s for s in stated if not any(prose.agrees(s, e) for e in made)]


def paragraphs():
    """Of each part: its number, its first paragraph and the folder of its figures."""
    found = section(README, "## What we found", "## Rerun the study")
    for part in re.split(r"^(?=\*\*\d )", found, flags=re.MULTILINE)[1:]:
        paragraph, _, rest = part.partition("\n\n")
        [folder] = re.findall(r"\(figures/(\d-\w+)/", rest)
        yield part[2], paragraph, folder


def test_the_front_states_what_its_part_found(results):
    """Each interval of a part's paragraph is in a table of that part, and its placebo stands
    beside it."""
    told = list(paragraphs())
    assert [number for number, _, _ in told] == list("123456")
    for number, paragraph, folder in told:
        assert folder.startswith(number)
        assert "*Placebo:*" in paragraph
        if number != "5":  # ranges over trainings, see below
            assert wrong(paragraph, (results / "figures" / folder).glob("*.csv")) == []


def test_the_results_state_what_the_tables_hold(results):
    text = text_of("notebooks/results.md")
    assert wrong(text, (results / "figures").glob("*/*.csv")) == []


@pytest.mark.parametrize("name", ["README.md", "profiles/README.md"])
def test_a_comparison_states_what_flips_found(results, name):
    _, command, about = text_of(name).partition("    make flips A=smollm2-135m-instruct")
    assert command
    about = about.partition("\n## ")[0]
    assert wrong(about, [results / "figures" / "6-together" / "table-flips.csv"]) == []


def test_the_fact_lost_is_what_the_notebooks_saw(results):
    """0-start-here saved its answers, in two prompts."""
    table = pd.read_csv(results / "figures" / "0-start-here" / "table-four-ways.csv")
    table = table.dropna(subset="says")
    block = section(README, "## What a fact lost", "## What we found")
    rows = re.findall(r"^\| (.*\?) \| (.*) \| (.*) \|$", block, re.MULTILINE)
    assert len(rows) == 4
    for question, *cells in rows:
        asked = table[table["question"] == question].set_index("prompt_of")
        for prompt, cell in zip(["two examples", "no example"], cells, strict=True):
            answer = asked.loc[prompt]
            assert cell == f"{answer['says']} ({answer['P']:.0%})", question
    right = sum(row[2].startswith("Nairobi") for row in rows)
    assert right == 2
    assert "always Nairobi" in block
    assert all(row[1].startswith("Nairobi") for row in rows)


def test_all_notebooks_are_listed_by_their_titles():
    names = [name for name in NOTEBOOKS if re.match(r"notebooks/\d-\w+/", name)]
    listed = re.findall(r"^- \[(.*)\]\((.*)\)", text_of("notebooks/README.md"), re.MULTILINE)
    for (title, file), name in zip(listed, names, strict=True):
        assert f"notebooks/{file}" == name
        assert text_of(name).startswith(f"# {title}\n")


# Captions counted in the papers: the first and the last table, then figure. Paper 2's figure 1 is
# no result.
CAPTIONS = {
    "paper 1": [("table", 1, 2), ("figure", 1, 13)],
    "paper 2": [("table", 1, 2), ("figure", 2, 9)],
    "paper 3": [("table", 1, 14), ("figure", 1, 5)],
    "thesis": [("table", 1, 16), ("figure", 1, 10)],
}
MADE = ("as the paper", "on other models", "from their numbers")
NOT_MADE = "cannot be made: "


def test_every_table_and_figure_of_the_papers_is_on_the_map():
    named = readme.artifacts().groupby("paper")["where"].agg(list)
    assert set(named.index) == set(CAPTIONS)
    for paper, counted in CAPTIONS.items():
        captions = []
        for kind, first, last in counted:
            captions += [f"{kind} {number}" for number in range(first, last + 1)]
        assert named[paper] == captions


def test_what_the_map_names_is_written_by_a_notebook(results):
    """And what has no place says why."""
    for row in readme.artifacts().itertuples(index=False):
        assert row.note.startswith(MADE if row.path else NOT_MADE), row
        if row.path:
            place = results / "figures" / row.path
            about = json.loads(place.with_suffix(".json").read_text(encoding="utf-8"))
            assert about["notebook"] in NOTEBOOKS, row
            assert f"{place.name}.csv" in about["files"], row
            for file in about["files"]:
                assert (paths.ROOT / "figures" / row.path).with_name(file).exists(), row


def test_a_number_of_theirs_and_one_of_ours(tmp_path):
    quoted = "4-context-table-8 ; model == 'llama-3.1-8B' and source == 'contextual' ; count / 4760"
    assert readme._theirs(quoted) == "0.77 (llama-3.1-8B)"  # 3662 of 4760
    table = "model,by,r,low,high,n\ngemma-3-270m,a,-0.5,-0.625,0.25,8\ngemma-3-270m,b,1,1,1,1\n"
    (tmp_path / "table.csv").write_text(table, encoding="utf-8")
    assert readme._ours("table ; by == 'a'", tmp_path) == "-0.500 [-0.625, 0.250], n = 8"


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "profiles/README.md",
    "data/README.md",
    "data/world/README.md",
    *(
        path.relative_to(paths.ROOT).as_posix()
        for pattern in ("*.md", "*.ipynb")
        for path in sorted((paths.ROOT / "notebooks").rglob(pattern))
        if ".ipynb_checkpoints" not in path.parts
    ),
]
# Links and pictures of Markdown, and of what is written as HTML in it: a path, and a heading there.
LEADS = re.compile(
    r"""(?:\]\(|<(?:img|a)\b[^>]*?(?:src|href)=["'])(?!https?:|mailto:)([^)\s"'#]*)(?:#([^)"']*))?"""
)


def headings(page):
    """Of a page, as GitHub makes addresses of them."""
    found = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_what_is_there_below_the_root(name):
    """JupyterLab, opened at the root, shows nothing above it; GitHub and the book need the same."""
    page = paths.ROOT / name
    for link, heading in LEADS.findall(text_of(name)):
        place = (page.parent / link).resolve() if link else page
        assert place.exists(), link
        assert place.is_relative_to(paths.ROOT), link
        assert not heading or heading in headings(place), heading


@pytest.mark.parametrize("name", PAGES)
def test_what_is_to_be_made_is_a_target(name):
    makefile = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^([a-z]+):", makefile, re.MULTILINE)
    named = re.findall(r"(?:`|^    )make ([a-z]+)", text_of(name), re.MULTILINE)
    assert set(named) <= set(targets)
