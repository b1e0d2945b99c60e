"""The command: factrobust card MODEL, factrobust flips A B ..., factrobust ask MODEL QUESTION,
factrobust answers.

The exit status is 0 if all went well, 1 if the condition of --fail-if is met, 2, with one sentence,
for what cannot be done, and 130 after Ctrl-C.
"""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import shtab

from factrobust import __version__
from factrobust.paths import BUILD, DATA

MODEL = (
    "a name of data/models.csv, a folder, an adapter's folder, a .gguf file, "
    "llama.cpp:FILE.gguf, a hub id, or 'URL NAME'"
)

TRACEBACK = BUILD / "failed" / "command.txt"


def parser() -> argparse.ArgumentParser:
    """All commands, which `make` calls too."""
    top = argparse.ArgumentParser(prog="factrobust", description=__doc__.partition("\n\n")[2])
    top.add_argument("--version", action="version", version=__version__)
    every = top.add_subparsers(
        dest="command",
        required=True,
        metavar="card | flips | ask | answers",
    )
    card = every.add_parser("card", help="what a model knows, and what makes it lose that")
    _completed(card.add_argument("model", help=MODEL), shtab.FILE)
    _add_questions(card)
    flips = every.add_parser("flips", help="what other forms of a model lost, fact by fact")
    before = flips.add_argument(
        "a",
        metavar="A",
        help=f"the model before: {MODEL}; or a log (.jsonl, .eval, .json)",
    )
    after = flips.add_argument(
        "others",
        metavar="B",
        nargs="+",
        help="the models, or the logs, after",
    )
    _completed(before, shtab.FILE)
    _completed(after, shtab.FILE)
    flips.add_argument(
        "--fail-if",
        metavar="CONDITION",
        help="exit with 1 if, such as 'lost>0.05' (lost, gained, churn)",
    )
    flips.add_argument(
        "--margin",
        type=float,
        help="say whether the share right is the same within, such as 0.02",
    )
    _add_questions(flips)
    ask = every.add_parser("ask", help="a model's answers to questions, with their probabilities")
    _completed(ask.add_argument("model", help=MODEL), shtab.FILE)
    ask.add_argument(
        "questions",
        metavar="QUESTION",
        nargs="+",
        help="in quotes, each",
    )
    _add_weights(ask)
    answers = every.add_parser(
        "answers",
        help="every recorded question and answer of the study, as parquet and CSV",
    )
    out = answers.add_argument(
        "--out",
        default="build/answers",
        metavar="FOLDER",
        help="where they are written (%(default)s)",
    )
    _completed(out, shtab.DIRECTORY)
    shtab.add_argument_to(top)  # factrobust --print-completion bash
    return top


def _completed(argument: argparse.Action, how: Mapping[str, object]) -> None:
    """A shell completes an argument with files, or with folders."""
    argument.complete = how  # type: ignore[attr-defined]


def _add_questions(command: argparse.ArgumentParser) -> None:
    name = command.prog.split()[-1]
    data = command.add_argument(
        "--data",
        metavar="CSV",
        help="questions of your own: a CSV with question and answer",
    )
    _completed(data, shtab.FILE)
    command.add_argument("--all", action="store_true", help="ask all of them, and not a sample")
    out = command.add_argument(
        "--out",
        default=f"build/{name}{'' if name.endswith('s') else 's'}",
        metavar="FOLDER",
        help="where files are written (%(default)s)",
    )
    _completed(out, shtab.DIRECTORY)
    _add_weights(command)


def _add_weights(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "float16"],
        help="the form of the weights in memory",
    )
    command.add_argument(
        "--device",
        choices=["cpu", "cuda"],
        help="where to compute (a GPU, if there is one)",
    )


def main(arguments: Sequence[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    try:
        check_arguments(given)
        status = RUN[given.command](given)
    except KeyboardInterrupt:
        print(
            "\nStopped. The answers so far are kept: the same command goes on there.",
            file=sys.stderr,
        )
        sys.exit(130)
    except Exception as error:
        print(explained(error), file=sys.stderr)
        sys.exit(2)
    if status:
        sys.exit(status)


def check_arguments(given: argparse.Namespace) -> None:
    """What can be found wrong before anything is loaded: ValueError, one sentence."""
    models = [getattr(given, name) for name in ("model", "a") if hasattr(given, name)]
    models += getattr(given, "others", [])
    data = getattr(given, "data", None)
    if any(not name.strip() for name in (*models, *([] if data is None else [data]))):
        raise ValueError("a name is empty; write a model's name or a file there")
    if not all(question.strip() for question in getattr(given, "questions", [])):
        raise ValueError("a question is empty; write it in quotes")
    if given.command == "flips" and given.fail_if is not None:
        from factrobust.together.flips import read_condition

        read_condition(given.fail_if)
    if folder := getattr(given, "out", None):
        check_folder(Path(folder).expanduser())
    _choose_device(getattr(given, "device", None))
    for name in models:
        check_model(name)


def check_model(name: str) -> None:
    """ModelError if a model's weights are not installed, or its server does not answer and none of
    its answers is recorded; if some are, the server is looked for once another is missing."""
    from factrobust.models.endpoint import check_reached, named_endpoint, read_endpoint
    from factrobust.models.load import check_there
    from factrobust.models.records import open_records
    from factrobust.together.opened import is_address, read_name

    if not is_address(name):
        check_there(read_name(name).text)
        return
    mapping = named_endpoint(name)
    if not open_records().knows(read_endpoint(mapping).fingerprint):
        check_reached(mapping)


def check_folder(folder: Path) -> None:
    """ValueError if a folder of that name cannot be made or written to."""
    there = folder
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise ValueError(
            f"{there} is a file, so that nothing can be written to {folder}; give another --out"
        )
    if not os.access(there, os.W_OK):
        raise ValueError(f"nothing can be written to {there}; give another --out")


def _choose_device(device: str | None) -> None:
    if device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch looks
    elif device == "cuda":
        import torch

        if not torch.cuda.is_available():
            raise ValueError("torch sees no GPU; leave --device out, or install torch with CUDA")


def make_card(given: argparse.Namespace) -> int:
    import factrobust

    made = factrobust.card(given.model, given.data, all_facts=given.all, dtype=given.dtype)
    print(*made.notes, *made.missing, *made.save(given.out), sep="\n")
    return 0


def make_flips(given: argparse.Namespace) -> int:
    import factrobust
    from factrobust.together import flip_files

    found = factrobust.flips(
        given.a,
        given.others,
        given.data,
        fail_if=given.fail_if or "",
        margin=given.margin,
        all_facts=given.all,
        dtype=given.dtype,
    )
    files = found.save(given.out)
    print(
        "",
        flip_files.headline(found),
        "",
        flip_files.screen_table(found),
        "",
        *files,
        sep="\n",
    )
    if found.condition and found.nothing_known:
        return 2
    return 1 if found.met else 0


def print_answers(given: argparse.Namespace) -> int:
    """Print the prompt format, and of each question the greedy answer and how likely it is."""
    import numpy as np

    from factrobust import endings
    from factrobust.decoding import probe
    from factrobust.models.prompts import FORMATS, render
    from factrobust.together.opened import chosen_format, in_format, open_model

    model = open_model(given.model, given.dtype)
    usual = "instruction" if model.chat else "two-shot"  # questions bring no beginnings of answers
    model = in_format(model, chosen_format(given.model) or usual)
    form = FORMATS[model.prompt_format]
    nothing = [""] * len(given.questions)
    sent = render(model.prompt_format, given.questions, nothing, model.chat)
    found = endings.generate_answers(model, sent, max_new_tokens=probe.LONG, stop=form.stop)
    print(f"asked in the prompt format {model.prompt_format}")
    for question, generation in zip(given.questions, found, strict=True):
        text = endings.answer_text(generation.text, generation.prompt).strip()
        logprobs = generation.logprobs
        chance = f" (probability {np.exp(sum(logprobs)):.3f})" if logprobs else ""
        print(f"{question} {text}{chance}")
    return 0


def write_answers(given: argparse.Namespace) -> int:
    import factrobust

    if not (DATA / "records").is_dir():
        raise ValueError("recorded answers are in the repository alone; clone it, and run it there")
    from factrobust.together.answers import calls

    folder = Path(given.out).expanduser()
    table = factrobust.answers().astype(object).map(as_text)
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / name for name in ("answers.parquet", "answers.csv", "calls.parquet")]
    table.to_parquet(files[0])
    table.to_csv(files[1], index=False)
    every = calls()
    every["said"] = every["said"].map(as_text)
    every.to_parquet(files[2])
    print(*files, sep="\n")
    return 0


RUN = {
    "card": make_card,
    "flips": make_flips,
    "ask": print_answers,
    "answers": write_answers,
}


def as_text(cell: Any) -> str:
    """A cell of a table as a text: a list, a set or an array as JSON, what is missing as
    nothing."""
    import pandas as pd

    if pd.api.types.is_list_like(cell):
        return json.dumps(cell, default=plain)
    return "" if pd.isna(cell) else str(cell)


def plain(value: Any) -> Any:
    """What JSON can hold of a value: NumPy's numbers and arrays as Python's, a set as a list;
    nothing for pandas' mark of what is missing."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return sorted(value) if isinstance(value, set | frozenset) else None


def explained(error: Exception) -> str:
    """One sentence about an error. One that is not ours (ours are ValueErrors, and RecordsError) is
    a fault of this project or of another library: its traceback is kept."""
    if isinstance(error, ValueError | OSError) or type(error).__name__ == "RecordsError":
        return str(error)
    TRACEBACK.parent.mkdir(parents=True, exist_ok=True)
    TRACEBACK.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first} (the whole of it is in {TRACEBACK})"


if __name__ == "__main__":
    main()
