"""What models were asked: the answers that parts mark, with their verdicts, and all recorded calls."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pandas as pd

from factrobust import context, decoding, temporal, wording
from factrobust.datasets.facts import accepted_answers as accepted
from factrobust.models.records import COLUMNS, NOTEBOOKS, Records, decode, read_columns, read_index
from factrobust.paths import DATA, ROOT
from factrobust.reproduce.again import name_of, words
from factrobust.reproduce.profiles import declared_parameters, find_notebooks
from factrobust.together.study import Study


class Part(NamedTuple):
    """Where a part's answers come from."""

    notebook: str  # whose parameters tell what was asked
    study: Callable[..., Any]
    parameters: tuple[str, ...]  # of the notebook, for the study; models and seed are all studies'
    table: str  # of the study: its answers
    mark: str  # the column that marks them


PARTS = {
    "decoding": Part(
        "1-decoding/1.1-*",
        decoding.Study,
        ("data", "n_questions"),
        "marked",
        "exact_match",
    ),
    "time": Part(
        "2-time/2.2-*",
        temporal.Study,
        ("data", "n_facts", "n_fine", "n_correct", "n_incorrect", "n_others"),
        "scores",
        "",
    ),
    "wording": Part(
        "3-wording/3.2-*",
        wording.Study,
        ("data", "n_facts", "max_new_tokens", "sentence_encoder"),
        "marked",
        "correct",
    ),
    "context": Part(
        "4-context/4.2-*",
        context.Study,
        ("questions", "results", "n_objects"),
        "marked",
        "correct",
    ),
    "together": Part(
        "6-together/6.1-*",
        Study,
        ("larger", "data", "prompt_format", "n_questions", "n_known"),
        "answers",
        "right",
    ),
}
SHOWN = ("part", "model", "fact_id", "prompt", "text", "accepted", "correct", "logprob")
SPOKEN = ("generate", "sample")  # operations whose results are texts
SAME = {"question_id": "fact_id", "contextual": "text", "answers": "accepted"}  # parts' names


def answers(part: str | None = None, models: Sequence[str] | None = None) -> pd.DataFrame:
    """Every question that the records hold of a part (a key of PARTS; None: all), a row an answer.

    Columns: SHOWN, then all else that the part measured (data/columns.csv explains them). prompt is
    missing where a part does not keep it; accepted is a list; correct is missing where nothing is
    marked; logprob is in nats, of the answer. Only answers of the notebooks in PARTS come, and of their
    models, or those named in `models`. Nothing is asked: RecordsError if records are missing.
    """
    if part is not None and part not in PARTS:
        raise ValueError(f"part is {part!r}; give one of {', '.join(PARTS)}, or None for all")
    records = Records(None, DATA / "records", strict=True)
    names = [part] if part else PARTS
    found = pd.concat([_of(name, models, records) for name in names], ignore_index=True)
    if found.empty:
        raise ValueError(f"no notebook of these parts asked {models}; give a model that one names")
    return found


def _of(part: str, models: Sequence[str] | None, records: Records) -> pd.DataFrame:
    about = PARTS[part]
    [notebook] = find_notebooks(ROOT, f"notebooks/{about.notebook}")
    given = declared_parameters(ROOT / notebook)
    every = [*given["models"], *(given["larger"] if "larger" in about.parameters else ())]
    wanted = [name for name in every if models is None or name in models]
    if not wanted:
        return pd.DataFrame()
    asked = {name: given[name] for name in ("models", "seed", *about.parameters)}
    study = about.study(**asked, records=records)
    table = getattr(study, about.table)
    if part == "together":  # the questions as they are, too
        table = pd.concat([study.known.assign(arm="question", form=1), table], ignore_index=True)
    table = table[table["model"].isin(wanted)]  # all were asked: which facts may depend on it
    table = table.rename(columns={old: new for old, new in SAME.items() if new not in table})
    if "accepted" not in table and {"object", "aliases"} <= {*table}:
        table = table.assign(accepted=pd.Series(accepted(table), table.index, dtype=object))
    if "logprob" not in table and "logprobs" in table:
        table = table.assign(logprob=table["logprobs"].map(sum))
    table = table.rename(columns={about.mark: "correct"}).assign(part=part)
    first = [name for name in SHOWN if name in table]
    return table[[*first, *table.columns.difference(first, sort=False)]]


def calls() -> pd.DataFrame:
    """Every recorded call of a model, a row each, whatever it was asked: after changes of its weights,
    samples, the invented world, each prompt. Columns: model (its name and change), operation, prompt,
    parameters (JSON), said (the text, or texts of samples; numbers otherwise, as JSON) and notebooks
    (those that use it, a line each). Nothing is marked here, and nothing is asked.
    """
    folder = DATA / "records"
    parts = []
    for name, about in read_index(folder)["files"].items():
        columns = read_columns(folder / name, about["sha256"], [*COLUMNS, NOTEBOOKS])
        part = pd.DataFrame(dict(zip([*COLUMNS, NOTEBOOKS], columns, strict=True)))
        part["model"] = name_of(about["model"])
        values = part.pop("value")
        if about["operation"] in SPOKEN:
            values = values.map(lambda text: words(decode(text)))
        part["said"] = values
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
