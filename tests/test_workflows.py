"""What CI, the web pages and Binder run is what a reader is told to run, on the Pythons that are supported."""

import re

import yaml

from factrobust.paths import ROOT


def workflow(name):
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def test_ci_runs_the_projects_own_checks_on_the_oldest_and_the_newest_python():
    job = workflow("ci")["jobs"]["checks"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    [(oldest, beyond)] = re.findall(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', project)
    assert job["strategy"]["matrix"]["python"] == [f"3.{oldest}", f"3.{int(beyond) - 1}"]
    assert commands(job) == [".ci/run"]
    assert (ROOT / ".ci" / "run").exists()


def test_the_pages_are_what_make_book_writes():
    job = workflow("pages")["jobs"]["book"]
    assert commands(job) == ["make book"]
    [folder] = [
        step["with"]["path"] for step in job["steps"] if "upload-pages" in step.get("uses", "")
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^book:.*: {folder}$", makefile, re.MULTILINE)


def test_binder_opens_the_reading_environment():
    script = (ROOT / "binder" / "postBuild").read_text(encoding="utf-8")
    assert script.splitlines()[-1] == 'python install.py "$NB_PYTHON_PREFIX" read'
    [first] = re.findall(r"urlpath=lab/tree/(\S+)", script)
    assert (ROOT / first).exists()
    assert (ROOT / "binder" / "postBuild").stat().st_mode & 0o111
