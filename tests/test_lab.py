"""JupyterLab as `make lab` and `make read` open it, in a browser: the first screen, and the
playground.

They need the extra `book` and a chromium: what is missing skips a test and is named.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pytest
from jupyterlab.commands import get_app_dir

from factrobust.paths import ROOT

WIDTH, HEIGHT = 1366, 768  # of a laptop's screen, in pixels
TALL = 9000  # a cell out of sight is not drawn
COPIED = ("notebooks", "figures/0-start-here", "data/teaching")


def settings(folder):
    """JupyterLab's settings as install.py writes them into an environment; the folder that they are
    in."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "install.py")
    install = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(install)
    install.write_settings(folder)
    [written] = folder.rglob("overrides.json")
    return written.parent


def test_settings_are_written_where_jupyterlab_reads_them(tmp_path, monkeypatch):
    monkeypatch.delenv("JUPYTERLAB_DIR", raising=False)
    of_the_application = Path(get_app_dir()).relative_to(sys.prefix)
    assert settings(tmp_path) == tmp_path / of_the_application / "settings"


def recipe(target):
    """What `make` runs for a target, with the Python that runs this."""
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    outside["CONDA_DEFAULT_ENV"] = ""
    command = ["make", "-n", "-o", ".venv/.ready", target]
    printed = subprocess.check_output(command, cwd=ROOT, env=outside, text=True)
    last = printed.splitlines()[-1]
    assert ".venv/bin/python -m jupyterlab" in last
    return last.replace(".venv/bin/python", f"exec {shlex.quote(sys.executable)}")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of JupyterLab, started with the Makefile's own line in a copy of the pages."""
    root = tmp_path_factory.mktemp("root")
    for name in COPIED:  # no file is served through a link that leads out of the root
        shutil.copytree(ROOT / name, root / name)
    options = ["--allow-root", "--no-browser", "--IdentityProvider.token="]
    options.append(f"--LabApp.app_settings_dir={settings(root / 'environment')}")
    variables = {
        "LAB": " ".join(options),
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_DATA_DIR": str(root / "data_dir"),
    }
    server = subprocess.Popen(["sh", "-c", recipe("lab")], cwd=root, env=os.environ | variables)
    url = ""
    while not url:
        assert server.poll() is None
        time.sleep(0.2)
        texts = [path.read_text() for path in root.glob("data_dir/runtime/jpserver-*.json")]
        url = "".join(re.findall('http:[^"]+', "".join(texts)))
    yield url
    server.terminate()
    server.wait()


@contextmanager
def opened(browser, address):
    """A page, when its notebook's kernel is ready."""
    with browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}) as page:
        page.set_default_timeout(120_000)
        page.goto(address)
        page.get_by_text("| Idle").wait_for()
        yield page


def test_the_first_screen_has_a_picture_and_pages_are_rendered(browser, lab):
    """Nothing is clicked away before; a link to a page leads to that page."""
    with opened(browser, lab) as page:
        assert page.url.endswith("/lab/tree/notebooks/0-start-here.ipynb")
        picture = page.locator(".jp-RenderedMarkdown img").first
        picture.wait_for()
        natural, shown = picture.evaluate("image => [image.naturalWidth, image.width]")
        assert natural > 0
        assert shown == 600
        box = picture.bounding_box()
        assert box["y"] + box["height"] < HEIGHT
        page.goto(f"{lab}lab/tree/notebooks/README.md")
        page.locator(".jp-MarkdownViewer a", has_text="glossary").click()
        heading = page.locator(".jp-MarkdownViewer h1", has_text="Glossary")
        heading.wait_for()
        assert page.url.endswith("/lab/tree/notebooks/glossary.md")
        assert page.locator(".jp-FileEditor").count() == 0
        assert page.locator(".Toastify__toast").count() == 0


def test_the_playground_shows_what_its_cells_say(monkeypatch, capsys):
    """Each first answer is recorded; and a slider of its part begins with the same sentence. No
    model may be loaded."""
    pytest.importorskip("ipywidgets")
    monkeypatch.chdir(ROOT / "notebooks")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "path", [*sys.path])
    names = {}
    shown = []
    for cell in nbformat.read("playground.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
            printed = capsys.readouterr().out
            texts = [output.text for output in cell.outputs if output.output_type == "stream"]
            shown += texts
            if "interact(" in cell.source:
                assert cell.outputs == []
                assert shown[-1].splitlines()[-1] in printed
            else:
                assert printed == "".join(texts)
    assert len(shown) == 5
    plt.close("all")


# Of a part's boxes, those that cut their text, and how many things lie on another.
CUT = """part => [...part.querySelectorAll('input[type=text], textarea, select')]
  .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.value)"""
OVERLAP = """part => {
  const boxes = [...part.querySelectorAll('.widget-inline-hbox, img, .jp-OutputArea-child:not(:has(img))')]
    .map(x => x.getBoundingClientRect()).filter(x => x.height > 0);
  return boxes.filter((a, i) => boxes.some((b, j) => i < j
    && a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1)).length;
}"""
TOLD = (
    "of 100 draws.",
    "likelier after a year of yours",
    "different answers.",
    "From memory the model says",
    "the model knows",
)


def test_the_playground_fits_a_laptops_screen_and_answers(browser, lab):
    """Its code is folded, a sentence stands in each part, and no box cuts its text. Then a slider
    moves a figure, another text an answer, and a question without a date is told so."""
    with opened(browser, f"{lab}lab/tree/notebooks/playground.ipynb?reset") as page:
        assert page.locator(".jp-CodeCell .jp-InputArea-editor:visible").count() == 0
        page.set_viewport_size({"width": WIDTH, "height": TALL})
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_text("Run All Cells", exact=True).click()
        page.locator(".widget-interact").nth(4).locator("img").wait_for()
        parts = page.locator(".widget-interact").all()
        for part, words in zip(parts, TOLD, strict=True):
            assert words in part.inner_text()
            assert part.evaluate(CUT) == []
            assert part.evaluate(OVERLAP) == 0
            assert part.bounding_box()["width"] <= WIDTH
            for box in part.locator("input[type=text]").all():
                assert box.bounding_box()["width"] > 400
        temperature, years, wordings, *_ = parts
        figure = temperature.locator(".jp-OutputArea").element_handle()
        answer = wordings.locator(".jp-OutputArea").element_handle()
        before = [figure.inner_html(), answer.inner_html()]
        temperature.locator(".noUi-handle").press("ArrowRight")
        wordings.locator("textarea").fill("Who directed the film The Shining?")
        page.keyboard.press("Tab")  # a text is read when it is left
        changed = "([shown, before]) => shown.every((part, i) => part.innerHTML !== before[i])"
        page.wait_for_function(changed, arg=[[figure, answer], before])
        years.locator("input[type=text]").first.fill("Who was the president of Kenya?")
        page.keyboard.press("Tab")
        years.get_by_text("This question has no date").wait_for()
        assert years.locator("img").count() == 0
        assert page.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
