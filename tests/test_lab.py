"""JupyterLab as `make lab` and `make read` open it, in a browser; and where the pages' pictures and
links lead.

The browser needs the extra `book` and a chromium: what is missing skips a test and is named.
"""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from jupyterlab.commands import get_app_dir

from factrobust.paths import ROOT

HEIGHT = 768  # of a laptop's screen, in pixels
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.ipynb", "*.md")
    for path in (ROOT / "notebooks").rglob(pattern)
    if ".ipynb_checkpoints" not in path.parts
)
# Pictures and links of Markdown, and of what is written as HTML in it.
LEADS = re.compile(r"""\]\(([^)\s]+)\)|<(?:img|a)\b[^>]*?(?:src|href)=["']([^"']+)""")


def texts(page):
    """What a reader of a page sees as Markdown."""
    if page.suffix == ".md":
        return [page.read_text(encoding="utf-8")]
    cells = nbformat.read(page, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


@pytest.mark.parametrize("name", PAGES)
def test_pictures_and_links_lead_to_files_below_the_root(name):
    """JupyterLab, opened at the root, shows nothing above it; GitHub and the book need the same."""
    page = ROOT / name
    found = [a or b for text in texts(page) for a, b in LEADS.findall(text)]
    local = [link.partition("#")[0] for link in found if not re.match(r"https?:|mailto:|#", link)]
    places = {link: (page.parent / link).resolve() for link in local}
    lost = [x for x, place in places.items() if not (place.exists() and ROOT in place.parents)]
    assert lost == []


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


@pytest.fixture
def lab(tmp_path):
    """The address of JupyterLab, started with the Makefile's own line in a copy of the pages."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    # Copied, too: no file is served through a link that leads out of the root.
    shutil.copytree(ROOT / "figures" / "0-start-here", tmp_path / "figures" / "0-start-here")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    outside["CONDA_DEFAULT_ENV"] = ""
    recipe = subprocess.check_output(
        ["make", "-n", "-o", ".venv/.ready", "lab"],
        cwd=ROOT,
        env=outside,
        text=True,
    ).splitlines()[-1]
    assert ".venv/bin/python -m jupyterlab" in recipe
    folder = settings(tmp_path / "environment")
    outside["LAB"] = (
        f"--allow-root --no-browser --IdentityProvider.token= --LabApp.app_settings_dir={folder}"
    )
    outside |= {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    server = subprocess.Popen(
        ["sh", "-c", recipe.replace(".venv/bin/python", f"exec {shlex.quote(sys.executable)}")],
        cwd=tmp_path,
        env=outside,
    )
    url = ""
    while not url:
        assert server.poll() is None
        time.sleep(0.2)
        found = tmp_path.glob("JUPYTER_DATA_DIR/runtime/jpserver-*.json")
        url = "".join(re.findall('http:[^"]+', "".join(path.read_text() for path in found)))
    yield url
    server.terminate()
    server.wait()


def test_the_first_screen_has_a_picture_and_pages_are_rendered(browser, lab):
    """Nothing is clicked away before; a link to a page leads to that page."""
    page = browser.new_page(viewport={"width": 1366, "height": HEIGHT})
    page.set_default_timeout(60_000)
    page.goto(lab)
    picture = page.locator(".jp-RenderedMarkdown img").first
    picture.wait_for()
    assert page.url.endswith("/lab/tree/notebooks/0-start-here.ipynb")
    page.get_by_text("| Idle").wait_for()
    natural, shown = picture.evaluate("image => [image.naturalWidth, image.width]")
    assert natural > 0
    assert shown == 600
    assert picture.bounding_box()["y"] + picture.bounding_box()["height"] < HEIGHT
    page.goto(f"{lab}lab/tree/notebooks/README.md")
    page.locator(".jp-MarkdownViewer a", has_text="glossary").click()
    heading = page.locator(".jp-MarkdownViewer h1", has_text="Glossary")
    heading.wait_for()
    assert page.url.endswith("/lab/tree/notebooks/glossary.md")
    assert page.locator(".jp-FileEditor").count() == 0
    assert page.locator(".Toastify__toast").count() == 0
    page.close()
