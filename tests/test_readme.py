"""The numbers, links and commands of README and the pages behind it are those of the repository."""

import json
import re
import runpy
from itertools import chain
from types import SimpleNamespace

import pandas as pd
import pytest

from factrobust import paths
from factrobust.reproduce.profiles import find_notebooks

ROOT = paths.ROOT
readme = SimpleNamespace(**runpy.run_path(str(ROOT / "tests/readme.py")))
prose = SimpleNamespace(**runpy.run_path(str(ROOT / "tests/test_notebook_prose.py")))
NOTEBOOKS = find_notebooks(ROOT)


def text_of(name):
    """What a reader of a page, or of a notebook's Markdown, sees."""
    if name.endswith(".ipynb"):
        return "\n\n".join(prose.cells_of(name))
    return (ROOT / name).read_text(encoding="utf-8")


README = text_of("README.md")


def section(heading):
    """Of README, up to the next heading."""
    _, _, text = README.partition(f"## {heading}\n")
    assert text
    return text.partition("\n## ")[0]


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
    made = list(chain.from_iterable(map(prose.estimates_in, tables)))
    stated = list(prose.statements_in(text))
    assert stated
    return prose.drifted(stated, made)


def paragraphs():
    """Of each part: its number, its first paragraph and the folder of its figures."""
    found = section("What we found")
    for part in re.split(r"^(?=\*\*\d )", found, flags=re.MULTILINE)[1:]:
        paragraph, _, rest = part.partition("\n\n")
        [folder] = re.findall(r"\(figures/(\d-\w+)/", rest)
        yield part[2], paragraph, folder


def test_the_front_states_what_its_part_found(results):
    """Each interval of a part's paragraph is in a table of that part, and its placebo stands
    beside it."""
    numbers = ""
    for number, paragraph, folder in paragraphs():
        numbers += number
        assert folder.startswith(number)
        assert "*Placebo:*" in paragraph
        if number != "5":  # ranges over trainings, see below
            assert wrong(paragraph, (results / "figures" / folder).glob("*.csv")) == []
    assert numbers == "123456"


def test_the_results_state_what_the_tables_hold(results):
    text = text_of("notebooks/results.md")
    assert wrong(text, (results / "figures").glob("*/*.csv")) == []


@pytest.mark.parametrize("name", ["README.md", "profiles/README.md"])
def test_a_comparison_states_what_flips_found(results, name):
    _, command, about = text_of(name).partition("    make flips A=smollm2-135m-instruct")
    assert command
    about = about.partition("\n## ")[0]
    assert wrong(about, [results / "figures/6-together/table-flips.csv"]) == []


def test_the_fact_lost_is_what_the_notebooks_saw(results):
    """0-start-here saved its answers, in two prompts."""
    table = pd.read_csv(results / "figures/0-start-here/table-four-ways.csv")
    table = table.set_index(["question", "prompt_of"]).dropna(subset="says")
    block = section("What a fact lost looks like")
    rows = re.findall(r"^\| (.*\?) \| (.*) \| (.*) \|$", block, re.MULTILINE)
    assert len(rows) == 4
    for question, with_examples, without in rows:
        for prompt, cell in (("two examples", with_examples), ("no example", without)):
            answer = table.loc[(question, prompt)]
            assert cell == f"{answer['says']} ({answer['P']:.0%})", question
        assert with_examples.startswith("Nairobi")  # "always Nairobi"
    assert sum(without.startswith("Nairobi") for _, _, without in rows) == 2  # "only in two rows"
    assert "always Nairobi" in block
    assert "only in two rows" in " ".join(block.split())


def test_all_notebooks_are_listed_by_their_titles():
    names = [name for name in NOTEBOOKS if re.match(r"notebooks/\d-\w+/", name)]
    listed = re.findall(r"^- \[(.*)\]\((.*)\)", text_of("notebooks/README.md"), re.MULTILINE)
    for (title, file), name in zip(listed, names, strict=True):
        assert f"notebooks/{file}" == name
        assert text_of(name).startswith(f"# {title}\n")


# Numbers of the tables, and of the figures, counted in the papers. Paper 2's figure 1 is
# no result.
CAPTIONS = {
    "paper 1": (range(1, 3), range(1, 14)),
    "paper 2": (range(1, 3), range(2, 10)),
    "paper 3": (range(1, 15), range(1, 6)),
    "thesis": (range(1, 17), range(1, 11)),
}
MADE = ("as the paper", "on other models", "from their numbers")
NOT_MADE = "cannot be made: "


def test_every_table_and_figure_of_the_papers_is_on_the_map():
    named = readme.artifacts().groupby("paper")["where"].agg(list)
    assert set(named.index) == set(CAPTIONS)
    for paper, (tables, figures) in CAPTIONS.items():
        captions = [f"table {number}" for number in tables]
        captions += [f"figure {number}" for number in figures]
        assert named[paper] == captions


def test_what_the_map_names_is_written_by_a_notebook(results):
    """And what has no place says why."""
    for row in readme.artifacts().itertuples(index=False):
        assert row.note.startswith(MADE if row.path else NOT_MADE), row
        if not row.path:
            continue
        about = json.loads((results / f"figures/{row.path}.json").read_text(encoding="utf-8"))
        assert about["notebook"] in NOTEBOOKS, row
        place = ROOT / "figures" / row.path
        assert f"{place.name}.csv" in about["files"], row
        assert all(place.with_name(file).exists() for file in about["files"]), row


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
]
for file in sorted((ROOT / "notebooks").rglob("*.*")):
    if file.suffix in (".md", ".ipynb") and ".ipynb_checkpoints" not in file.parts:
        PAGES.append(file.relative_to(ROOT).as_posix())
# Links and pictures of Markdown, and of what is written as HTML in it: a path, and a heading there.
LEADS = re.compile(
    r"""(?:\]\(|<(?:img|a)\b[^>]*?(?:src|href)=["'])(?!https?:|mailto:)([^)\s"'#]*)(?:#([^)"']*))?"""
)


def headings(page):
    """Of a page, as GitHub makes addresses of them."""
    found = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8").lower(), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading).replace(" ", "-") for heading in found]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_to_what_is_there_below_the_root(name):
    """JupyterLab, opened at the root, shows nothing above it; GitHub and the book need the same."""
    page = ROOT / name
    for link, heading in LEADS.findall(text_of(name)):
        place = (page.parent / link).resolve() if link else page
        assert place.exists(), link
        assert place.is_relative_to(ROOT), link
        assert not heading or heading in headings(place), heading


@pytest.mark.parametrize("name", PAGES)
def test_what_is_to_be_made_is_a_target(name):
    targets = re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE)
    named = re.findall(r"(?:`|^    )make ([a-z]+)", text_of(name), re.MULTILINE)
    assert set(named) <= set(targets)
