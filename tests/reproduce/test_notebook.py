"""The canonical form: equal runs give equal files, and nothing that a reader needs is lost."""

import json
from typing import Any

import pytest
from nbformat import from_dict, reads

from factrobust.paths import ROOT
from factrobust.reproduce.notebook import KERNEL, clean_outputs, read_canonical, say_whose_findings
from factrobust.reproduce.profiles import find_notebooks


def code(source: str, outputs: list[Any], **more: Any) -> dict[str, Any]:
    cell = {
        "cell_type": "code",
        "source": source,
        "outputs": outputs,
        "execution_count": 7,
        "metadata": {},
    }
    return cell | more


def notebook(*cells: dict[str, Any], **metadata: Any) -> str:
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 4,
            "metadata": metadata,
            "cells": cells,
        }
    )


@pytest.fixture
def canonical(tmp_path):

    def read(text: str) -> str:
        (tmp_path / "a.ipynb").write_text(text)
        return read_canonical(tmp_path / "a.ipynb")

    return read


def stream(name: str, text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: Any) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {"noise": 1}, "data": data}


def test_noise_goes_and_results_stay(canonical):
    printed = [
        stream("stdout", "1\n"),
        stream("stderr", "bar"),
        stream("stdout", "2\n"),
    ]
    noisy = {"papermill": {"duration": 3}, "tags": ["rtol=0.1"], "execution": {}}
    cells = [
        code("print(1)", printed, metadata=noisy),
        code("x", [], metadata={"tags": ["injected-parameters"]}),
        code("y", [], execution_count=None),
        code("z", [], execution_count=3),
    ]
    about = {
        "papermill": {"version": "2"},
        "kernelspec": {"name": "my-env", "display_name": "Mine", "language": "python"},
        "language_info": {"name": "python", "version": "3.14.1"},
    }
    text = canonical(notebook(*cells, **about))
    result = json.loads(text)
    assert result["metadata"] == {
        "kernelspec": KERNEL,
        "language_info": {"name": "python"},
    }
    assert [cell["execution_count"] for cell in result["cells"]] == [1, None, 2]
    first = result["cells"][0]
    assert first["metadata"] == {"tags": ["rtol=0.1"]}
    [output] = first["outputs"]
    assert output["name"] == "stdout"
    assert output["text"] == ["1\n", "2\n"]


def test_two_runs_with_other_random_ids_become_the_same(canonical):
    def run(style: str, address: str) -> str:
        html = f'<table id="T_{style}"><td id="T_{style}_row0_col0">0.5</td></table>'
        table = shown(**{"text/html": html, "text/plain": f"<Styler at {address}>"})
        return canonical(notebook(code("t", [table])))

    first = run("1a2b3", "0x7f0011223344")
    second = run("f9e8d", "0x7fffffff0000")
    assert first == second
    assert "0.5" in first


def test_folders_go_and_pictures_stay_as_they_are_with_their_size():
    size = {"image/png": {"height": 1, "width": 2}}
    picture = shown(**{"image/png": "iVBOR0x7f0011223344", "text/plain": "<Figure>"})
    error = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "bad row",
        "traceback": ["File /home/me/lib.py:3", "ValueError: bad row"],
    }
    noisy = picture | {"metadata": size | {"isolated": True}}
    found = clean_outputs(from_dict([noisy, error]))
    assert found == [
        picture | {"metadata": size},
        error | {"traceback": ["ValueError: bad row"]},
    ]


def test_canonical_is_a_fixed_point_with_ids_that_stay(canonical):
    first = code("print(1)", [stream("stdout", "ä 1\n")])
    second = code("b", [], id="mine")
    text = notebook(first, second)
    once = canonical(text)
    cells = json.loads(once)["cells"]
    assert [cell["id"] for cell in cells] == ["cell-0", "mine"]
    assert canonical(once) == once == canonical(text)
    assert once.endswith("}\n")


def test_every_committed_notebook_was_run_to_its_end():
    """nbval compares no cell that was not run."""
    for name in find_notebooks(ROOT):
        text = (ROOT / name).read_text("utf-8")
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code" and cell["source"]:
                assert cell["execution_count"], f"{name}: {cell['source']}: run `make reproduce`"


USUAL = {"models": ["gemma-3-270m", "smollm2-135m-instruct"], "data": "embedded", "n": 300}


def test_results_of_other_models_say_whose_the_sentences_are():
    made = reads(notebook(code("x", [])), as_version=4)
    endpoint = {"url": "https://a.org/v1", "model": "gpt-4o-mini", "key_env": "KEY"}
    given = {"models": ["org/a|b", endpoint], "data": "embedded", "n": 9}
    for _ in range(2):  # the second replaces the first
        say_whose_findings(made, "paper", given, USUAL)
    assert len(made.cells) == 2
    lines = made.cells[0].source.splitlines()
    assert lines[0].startswith("> **Whose findings these are.** The profile `paper` made this run.")
    assert lines[4:] == [
        "| models | gemma-3-270m, smollm2-135m-instruct | org/a\\|b, gpt-4o-mini |",
        "| n | 300 | 9 |",
    ]
