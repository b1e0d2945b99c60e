"""python -m factrobust.reproduce --cluster: notebooks whose models are asked elsewhere."""

import nbformat

from factrobust.models.cluster import connect
from factrobust.reproduce.__main__ import main

ASK = """
from pathlib import Path
from factrobust import load_model
from factrobust.records import Records
model = load_model({folder!r}, records=Records(Path("answers.sqlite").resolve()))
print([g.text for g in model.generate(["why?", "who?"])])
"""


def test_a_notebook_is_answered_by_the_workers(root, write, toy_model, threads, capfd):
    """Its kernel commits the answers, and shows nothing but them; a cluster of others goes on."""
    toy, folder = toy_model({"?": {" a": 1.0}, " a": {".": 1.0}}), root / "toy"
    toy.body.network.save_pretrained(folder)
    toy.tokenizer.save_pretrained(folder)
    path = write("1.ipynb", ASK.format(folder=str(folder)))
    address = threads(1).scheduler_address
    capfd.readouterr()
    assert main(["--cluster", address], root=root) == 0
    assert capfd.readouterr().err == ""
    connect(address).close()
    assert (root / "notebooks" / "answers.sqlite").is_file()
    [output] = nbformat.read(path, as_version=4).cells[1].outputs
    assert output.text == "[' a.', ' a.']\n"
