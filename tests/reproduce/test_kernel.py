"""The surroundings of a notebook's kernel."""

from __future__ import annotations

from pathlib import Path

from factrobust.reproduce.kernel import kernel_environment


def test_start_up_files_of_an_earlier_version_do_not_run(tmp_path: Path) -> None:
    def startup() -> dict[str, str]:
        environment = kernel_environment(tmp_path, "a.ipynb", out=tmp_path, records="fresh")
        folder = Path(environment["IPYTHONDIR"], "profile_default", "startup")
        return {file.name: file.read_text() for file in folder.iterdir()}

    first = startup()
    assert list(map(bool, first.values())) == [True, True]
    (tmp_path / "build/ipython/profile_default/startup/00-note-reads.py").write_text("1 / 0")
    assert startup() == first
