"""The book and its pages that move, in a browser at a desk's and a phone's width; the playground.

They need the extra `book` and a chromium: what is missing skips a test and is named.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest

from factrobust.datasets.published import load_published
from factrobust.paths import ROOT

NO_WORLD = pytest.mark.skipif(
    not (ROOT / "data" / "teaching" / "world.csv").exists(),
    reason="data/teaching/world.csv is missing: python data/build_teaching.py world",
)
NAMES = ("dial", "cube", "wordings", "meter", pytest.param("exposure", marks=NO_WORLD))
WIDTHS = {"desk": 1280, "phone": 390}


def module(name):
    spec = importlib.util.spec_from_file_location(f"book_{name}", ROOT / "book" / f"{name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorables")
    module("explorables").main(folder)
    return folder


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of the book's pages."""
    for package in ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx_revealjs", "latex2mathml"):
        pytest.importorskip(package, reason=f"{package} is in the extra 'book'")
    folder = tmp_path_factory.mktemp("book")
    assert module("build").main(folder) == 0  # with a warning it is 1
    return folder / "html"


@contextmanager
def opened(browser, address, width):
    """A page; its console and its scripts must not complain, nor may it ask another host."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda m: wrong.append(m.text) if m.type == "error" else None)
    own = ("file:", "data:", "blob:", *re.findall("http://[^/]+/", address))
    page.on("request", lambda r: None if r.url.startswith(own) else wrong.append(r.url))
    page.goto(address)
    yield page
    page.close()
    assert wrong == []


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_one_file_of_the_records(pages, name):
    text = (pages / f"{name}.html").read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert not re.search(r"""(?:src|href)=["']https?:""", text)
    assert text.count('type="range"') >= 1
    assert '"model":"' in text


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
@pytest.mark.parametrize("name", NAMES)
def test_every_slider_moves_figure_and_number(browser, pages, name, width):
    with opened(browser, (pages / f"{name}.html").as_uri(), width) as page:
        sliders = page.locator("input[type=range]")
        for i in range(sliders.count()):
            seen = []
            for end in ("min", "max"):
                sliders.nth(i).fill(sliders.nth(i).get_attribute(end))
                seen.append([page.locator("#number").inner_text(), page.inner_html("#figure")])
            assert seen[0][0] != seen[1][0], f"slider {i} does not move the number"
            assert seen[0][1] != seen[1][1], f"slider {i} does not move the figure"
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_dial_climbs_past_every_model_of_the_paper(browser, pages):
    """Gemma's FRS at s = 1 and at the end of figure-dial, and how many of table 1's five lie below."""
    table = pd.read_csv(ROOT / "figures" / "1-decoding" / "figure-dial.csv").query("d == 1")
    own = table[table["model"] == "gemma-3-270m"].sort_values("s")
    theirs = load_published("1-decoding-table-1").query("d == 1")["frs"]
    with opened(browser, (pages / "dial.html").as_uri(), 1280) as page:
        for s in (1, own["s"].max()):
            [frs] = own.loc[own["s"] == s, "frs"]
            page.locator("#s").fill(str(own["s"].tolist().index(s)))
            said = f"At s = {s:.2f} the FRS is {frs:.2f}: no lower than {(theirs <= frs).sum()} of the paper's 5"
            assert said in page.locator("#number").inner_text()


def test_of_the_cube_the_fact_is_left(browser, pages):
    """All four parts at first, the fact alone with its interval at the end."""
    table = pd.read_csv(ROOT / "figures" / "2-time" / "figure-cube.csv")
    own = table[table["model"] == "gemma-3-270m"].set_index("effect")
    with opened(browser, (pages / "cube.html").as_uri(), 1280) as page:
        assert f"adds {own['mean'].sum():.3f} nats" in page.locator("#number").inner_text()
        page.locator("#away").fill("3")
        fact = own.loc["the fact"]
        said = page.locator("#number").inner_text()
        assert f"adds {fact['mean']:.3f} nats" in said
        assert f"{fact['low']:.3f} to {fact['high']:.3f}: it may be nothing." in said


def test_the_meter_splits_following_into_copying_and_reading(browser, pages):
    """Gemma in the question's words: the false sentence, then nonsense, and what is left."""
    table = pd.read_csv(ROOT / "figures" / "4-context" / "table-meter.csv")
    own = table.query("model == 'gemma-3-270m' and words == 'question'").set_index("part")
    percents = {
        part: [f"{100 * x:.0f}" for x in row]
        for part, *row in own[["mean", "low", "high"]].itertuples()
    }
    with opened(browser, (pages / "meter.html").as_uri(), 1280) as page:
        assert "The capital of Kenya is Lima. What" in page.locator("#sentence").inner_text()
        for about, part in ((0, "following"), (2, "copying")):
            page.locator("#about").fill(str(about))
            mean, low, high = (f"{x}%" for x in percents[part])
            said = page.locator("#number").inner_text()
            assert f"follows {mean} [{low}, {high}]" in said
        assert "The blorp of Kenya is Lima. What" in page.locator("#sentence").inner_text()
        mean, low, high = percents["reading"]
        assert f"{mean} points [{low}, {high}] are reading" in said


def test_the_book_is_built_without_a_link_that_it_needs(book):
    for page in book.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        needed = re.findall(r'<(?:script[^>]*src|link[^>]*href|img[^>]*src)="(https?:[^"]+)"', text)
        assert needed == [], page
    assert (book / "searchindex.js").exists()
    assert "Nairobi" in (book / "notebooks" / "0-start-here.html").read_text(encoding="utf-8")


def test_the_pictures_of_all_pages_are_in_the_book(book):
    for page in book.rglob("*.html"):
        shown = re.findall(r'<img\b[^>]*\bsrc="([^":]+)"', page.read_text(encoding="utf-8"))
        assert [picture for picture in shown if not (page.parent / picture).exists()] == [], page


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
@pytest.mark.parametrize(
    "name", ["index", "explorables", "notebooks/glossary", "notebooks/course/week-1"]
)
def test_the_book_opens_in_a_browser(book, browser, name, width):
    with opened(browser, (book / f"{name}.html").as_uri(), width) as page:
        assert page.locator("article h1").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width + 1


@pytest.fixture
def playground(monkeypatch):
    """Its code cells, and the names in them; no model may be loaded."""
    pytest.importorskip("ipywidgets")
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "path", [*sys.path])
    cells = nbformat.read("playground.ipynb", as_version=4).cells
    yield [cell for cell in cells if cell.cell_type == "code"], {}
    plt.close("all")


@NO_WORLD
def test_the_playground_shows_what_its_cells_say(playground, capsys):
    """Each first answer is recorded; and a slider of its part begins with the same sentence."""
    cells, names = playground
    told = []
    for cell in cells:
        exec(cell.source, names)
        said = capsys.readouterr().out
        if "interact(" in cell.source:
            assert cell.outputs == []
            assert told[-1].splitlines()[-1] in said
        else:
            shown = [output.text for output in cell.outputs if output.output_type == "stream"]
            assert said == "".join(shown)
            told += shown
    assert len(told) == 5


@pytest.fixture
def lab(tmp_path):
    """The address of JupyterLab on a copy of the playground, as it may save it."""
    (tmp_path / "course").symlink_to(ROOT / "notebooks" / "course")
    shutil.copy(ROOT / "notebooks" / "playground.ipynb", tmp_path)
    words = f"{sys.executable} -m jupyterlab --no-browser --allow-root --IdentityProvider.token="
    own = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    server = subprocess.Popen(words.split(), cwd=tmp_path, env=os.environ | own)
    url = ""
    while not url:
        assert server.poll() is None
        time.sleep(0.2)
        found = tmp_path.glob("JUPYTER_DATA_DIR/runtime/jpserver-*.json")
        url = "".join(re.findall('http:[^"]+', "".join(path.read_text() for path in found)))
    yield f"{url}lab/tree/playground.ipynb"
    server.terminate()
    server.wait()


@NO_WORLD
def test_the_playground_runs_in_jupyterlab(browser, lab):
    """All cells run; then a slider moves a figure, and another text an answer."""
    with opened(browser, lab, 1280) as page:
        page.set_default_timeout(60_000)
        page.set_viewport_size({"width": 1280, "height": 9000})  # a cell out of sight is not drawn
        page.get_by_text("| Idle").wait_for()  # until then cells are not run
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        parts = page.locator(".widget-interact")
        parts.nth(4).locator("img").wait_for()
        shown = [parts.nth(i).locator(".jp-OutputArea").element_handle() for i in (0, 2)]
        before = [part.inner_html() for part in shown]
        parts.nth(0).locator(".noUi-handle").press("ArrowRight")
        parts.nth(2).locator("textarea").fill("Who directed the film The Shining?")
        page.keyboard.press("Tab")  # a text is read when it is left
        changed = "([shown, before]) => shown.every((part, i) => part.innerHTML !== before[i])"
        page.wait_for_function(changed, arg=[shown, before])
        assert page.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0


# Of each part's boxes and what it shows: nothing is wider than its place, or lies on another.
CUT = """part => [...part.querySelectorAll('input[type=text], textarea, select')]
  .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.value)"""
OVERLAP = """part => {
  const boxes = [...part.querySelectorAll('.widget-inline-hbox, img, .jp-OutputArea-child:not(:has(img))')]
    .map(x => x.getBoundingClientRect()).filter(x => x.height > 0);
  return boxes.filter((a, i) => boxes.some((b, j) => i < j
    && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
}"""


@NO_WORLD
def test_the_playground_fits_a_laptops_screen(browser, lab):
    """Its code is folded, a sentence stands in each part, and no box cuts its text."""
    with opened(browser, lab, 1366) as page:
        page.set_default_timeout(60_000)
        page.set_viewport_size({"width": 1366, "height": 768})
        page.get_by_text("| Idle").wait_for()
        assert page.locator(".jp-CodeCell .jp-InputArea-editor:visible").count() == 0
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.set_viewport_size({"width": 1366, "height": 9000})  # a cell out of sight is not drawn
        parts = page.locator(".widget-interact")
        parts.nth(4).locator("img").wait_for()
        told = [
            "of 100 draws.",
            "likelier after a year of yours",
            "different answers.",
            "From memory the model says",
            "the model knows",
        ]
        for i, words in enumerate(told):
            part = parts.nth(i)
            assert words in part.inner_text()
            assert part.evaluate(CUT) == [], i
            assert part.evaluate(OVERLAP) == 0, i
            assert part.bounding_box()["width"] <= 1366
            assert all(
                x.bounding_box()["width"] > 400 for x in part.locator("input[type=text]").all()
            )
        parts.nth(1).locator("input[type=text]").first.fill("Who was the president of Kenya?")
        page.keyboard.press("Tab")
        parts.nth(1).get_by_text("This question has no date").wait_for()
        assert parts.nth(1).locator("img").count() == 0
