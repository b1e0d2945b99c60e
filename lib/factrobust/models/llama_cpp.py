"""A .gguf file as llama.cpp's own server answers from it: the very file, with the very program,
that ships.

`load_model("FILE.gguf")` computes with the same weights in float32 instead. llama.cpp multiplies
with activations that it rounds to 8 bits, so that near ties may fall otherwise.
"""

import os
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from factrobust.models.interface import Model, ModelError, RecordedModel
from factrobust.models.load import load_model
from factrobust.models.records import open_records

START = "llama.cpp:"
PACKAGE = "xllamacpp"
CONTEXT = 1024  # tokens of a prompt and its answer
SLOTS = 2  # requests at a time


def served(name: str) -> Model:
    """The model of "llama.cpp:FILE.gguf". Its server is started for the first answer that the
    records lack. ModelError if there is no such file, or no llama.cpp."""
    file = Path(name.removeprefix(START)).expanduser().absolute()
    if file.suffix != ".gguf" or not file.is_file():
        raise ModelError(f"{file} is no .gguf file; give llama.cpp:FILE.gguf")
    if find_spec(PACKAGE) is None:
        raise ModelError(
            f"llama.cpp's server is not installed (package {PACKAGE}); `pip install {PACKAGE}` "
            f"brings it, "
            "or leave 'llama.cpp:' out"
        )
    from factrobust.models.endpoint import LACKS, NO_SCORE

    ours = load_model(str(file), records=open_records())  # for its chat template
    about: dict[str, Any] = {
        "name": name,
        "fingerprint": f"{ours.fingerprint} llama.cpp {version(PACKAGE)}",
        "chat": ours.chat,
        "prompt_format": ours.prompt_format,
        "lacks": LACKS | {"score": NO_SCORE},
    }
    return RecordedModel(open_records(), partial(_start, file, about), **about)


def _start(file: Path, about: dict[str, Any]) -> Model:
    """An endpoint's model, with the server that it asks."""
    import xllamacpp

    from factrobust.models.endpoint import EndpointModel, read_endpoint

    given = xllamacpp.CommonParams()
    given.model.path = os.fspath(file)
    given.model_alias = {file.stem}
    given.hostnames = ["127.0.0.1"]
    given.port = 0
    given.n_ctx = CONTEXT * SLOTS
    given.n_parallel = SLOTS
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = os.cpu_count() or 1
    given.warmup, given.verbosity = False, 0
    running = xllamacpp.Server(given)
    mapping = {
        "url": f"{running.listening_address}/v1",
        "model": "".join(file.stem.split()),
        "api": "completions",
        "server": "llama.cpp",
        "concurrency": SLOTS,
    }
    model = EndpointModel(read_endpoint(mapping), **about)
    model.running = running  # type: ignore[attr-defined]  # it ends with the model
    return model
