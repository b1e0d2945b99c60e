"""The book, its pages that move and its slides, in a browser at a desk's and a phone's width.

They need the extra `book` and a chromium: what is missing skips a test and is named.
"""

import re
import runpy
from contextlib import contextmanager

import pandas as pd
import pytest

from factrobust.datasets.published import load_published
from factrobust.paths import ROOT

NAMES = ("dial", "cube", "wordings", "meter", "exposure")
DESK, PHONE = 1366, 390  # pixels
widths = pytest.mark.parametrize("width", [DESK, PHONE])
PACKAGES = ("sphinx", "myst_nb", "sphinx_book_theme", "sphinx_revealjs", "latex2mathml")


def main_of(name):
    return runpy.run_path(str(ROOT / "book" / f"{name}.py"))["main"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorables")
    main_of("explorables")(folder)
    return folder


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of the book's pages."""
    for package in PACKAGES:
        pytest.importorskip(package, reason=f"{package} is in the extra 'book'")
    folder = tmp_path_factory.mktemp("book")
    assert main_of("build")(folder) == 0  # with a warning it is 1
    return folder / "html"


@contextmanager
def opened(browser, file, width=DESK):
    """A page; its console and its scripts must not complain, nor may it ask another host."""
    wrong = []
    asked = []
    with browser.new_page(viewport={"width": width, "height": 768}) as page:
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda line: wrong.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: asked.append(request.url))
        page.goto(file.as_uri())
        yield page
    assert wrong == []
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []


def gemmas(name, where="n > 0"):
    """Gemma's rows of a figure's data, or of a table."""
    table = pd.read_csv(ROOT / "figures" / f"{name}.csv")
    return table.query("model == 'gemma-3-270m'").query(where)


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_one_file_of_the_records(pages, name):
    text = (pages / f"{name}.html").read_text(encoding="utf-8")
    assert len(text) < 1_000_000
    assert not re.search(r"""(?:src|href)=["']https?:""", text)
    assert 'type="range"' in text
    assert '"model":"' in text


@widths
@pytest.mark.parametrize("name", NAMES)
def test_every_slider_moves_figure_and_number(browser, pages, name, width):
    with opened(browser, pages / f"{name}.html", width) as page:
        number, figure = page.locator("#number"), page.locator("#figure")
        for slider in page.locator("input[type=range]").all():
            slider.fill(slider.get_attribute("min"))
            before, drawn = number.inner_text(), figure.inner_html()
            slider.fill(slider.get_attribute("max"))
            assert number.inner_text() != before
            assert figure.inner_html() != drawn
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_dial_climbs_past_every_model_of_the_paper(browser, pages):
    """Gemma's FRS at s = 1 and at the end of figure-dial, and how many of table 1's five lie below."""
    scores = gemmas("1-decoding/figure-dial", "d == 1").set_index("s")["frs"].sort_index()
    theirs = load_published("1-decoding-table-1").query("d == 1")["frs"]
    with opened(browser, pages / "dial.html") as page:
        for s in (1, scores.index.max()):
            page.locator("#s").fill(str(scores.index.get_loc(s)))
            below = (theirs <= scores[s]).sum()
            shown = page.locator("#number").inner_text()
            assert f"At s = {s:.2f} the FRS is {scores[s]:.2f}: no lower than {below} of" in shown


def test_of_the_cube_the_fact_is_left(browser, pages):
    """All four parts at first, the fact alone with its interval at the end."""
    effects = gemmas("2-time/figure-cube").set_index("effect")
    fact = effects.loc["the fact"]
    with opened(browser, pages / "cube.html") as page:
        number = page.locator("#number")
        assert f"adds {effects['mean'].sum():.3f} nats" in number.inner_text()
        page.locator("#away").fill("3")
        shown = number.inner_text()
        assert f"adds {fact['mean']:.3f} nats" in shown
        assert f"{fact['low']:.3f} to {fact['high']:.3f}: it may be nothing." in shown


def test_the_meter_splits_following_into_copying_and_reading(browser, pages):
    """Gemma in the question's words: the false sentence, then nonsense, and what is left."""
    parts = gemmas("4-context/table-meter", "words == 'question'").set_index("part")
    percents = (100 * parts[["mean", "low", "high"]]).round().astype(int)
    steps = (("0", "following", "capital"), ("2", "copying", "blorp"))
    with opened(browser, pages / "meter.html") as page:
        for about, part, word in steps:
            page.locator("#about").fill(about)
            mean, low, high = percents.loc[part]
            shown = page.locator("#number").inner_text()
            assert f"follows {mean}% [{low}%, {high}%]" in shown
            sentence = page.locator("#sentence").inner_text()
            assert f"The {word} of Kenya is Lima. What" in sentence
        mean, low, high = percents.loc["reading"]
        assert f"{mean} points [{low}, {high}] are reading" in shown


def test_the_book_has_its_pictures_and_needs_no_network(book):
    for page in book.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        needed = re.findall(r'<(?:script[^>]*src|link[^>]*href|img[^>]*src)="(https?:[^"]+)"', text)
        assert needed == [], page
        shown = re.findall(r'<img\b[^>]*\bsrc="([^":]+)"', text)
        assert [picture for picture in shown if not (page.parent / picture).exists()] == [], page
    assert (book / "searchindex.js").exists()
    assert "Nairobi" in (book / "notebooks" / "0-start-here.html").read_text(encoding="utf-8")


@widths
@pytest.mark.parametrize(
    "name", ["index", "explorables", "notebooks/glossary", "notebooks/course/week-1"]
)
def test_the_book_opens_in_a_browser(book, browser, name, width):
    with opened(browser, book / f"{name}.html", width) as page:
        assert page.locator("article h1").first.is_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width + 1


# Of all slides: the first words of each, and which are taller than the screen.
SLIDES = """() => Reveal.getSlides().map(slide => {
  const {h, v} = Reveal.getIndices(slide);
  Reveal.slide(h, v);
  return [slide.innerText.trim(), slide.scrollHeight > slide.clientHeight + 1];
})"""


@pytest.mark.parametrize("week", [1, 2, 3, 4])
def test_slides_have_each_exercise_above_its_solution(book, browser, week):
    notebook = (ROOT / "notebooks" / "course" / f"week-{week}.md").read_text(encoding="utf-8")
    exercises = re.findall(r"^\| (\d\.\d .+?) \|", notebook, re.MULTILINE)
    with opened(browser, book / "slides" / f"week-{week}.html") as page:
        page.wait_for_function("Reveal.isReady()")
        slides = page.evaluate(SLIDES)
    assert [words for words, is_cut in slides if is_cut] == []
    first, *rest, last = [words for words, _ in slides]
    assert first.startswith(f"Week {week}: ")
    assert last.startswith("Take with you")
    assert len(rest) == 3 * len(exercises)
    for exercise, task, solution in zip(exercises, rest[::3], rest[1::3], strict=True):
        assert task.startswith(exercise)
        assert "$" not in task  # formulas are drawn
        assert f"{exercise[:3]}: right." in solution
