"""Logs of runs already made: lm-evaluation-harness's samples (`--log_samples`, .jsonl) and
inspect_ai's (.eval, .json)."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust.tables import FactsError

ENDS = (".jsonl", ".eval", ".json")
MARKS = {
    "C": True,
    "I": False,
    "P": False,
}  # of inspect_ai's scorers; a part is not right


class Log(NamedTuple):
    """Answers of a model to marked questions: fact_id, relation, question, object, aliases, prompt,
    message, settings, text, right, logprob and t_b (both NaN)."""

    name: str
    task: str
    metric: str
    table: pd.DataFrame

    @property
    def fingerprint(self) -> str:
        text = self.table.to_csv(index=False)
        return f"log:{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def prompt_format(self) -> str:
        return "as logged"


def is_log(name: Any) -> bool:
    """Whether a name is that of a log's file."""
    if not isinstance(name, str | Path) or not str(name).endswith(ENDS):
        return False
    return str(name).endswith(ENDS[:2]) or Path(name).expanduser().is_file()


def read_log(path: str | Path) -> Log:
    """The answers of a log. FactsError, one sentence, for what is none, and for a question without
    a mark of right or wrong."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise FactsError(f"{path} is no file; give the log of a run")
    found = _lm_eval(path) if path.suffix == ".jsonl" else _inspect(path)
    if found.table.empty:
        raise FactsError(f"{path} holds no answered question; give the log of a finished run")
    twice = found.table["fact_id"].duplicated()
    if twice.any():
        name = found.table.loc[twice, "fact_id"].iloc[0]
        raise FactsError(
            f"{path} holds the question {name!r} twice; give a log of one epoch of one task"
        )
    return found


def common(logs: Sequence[Log]) -> list[str]:
    """The ids that all logs hold. FactsError if there are none, or if prompts or settings
    differ."""
    first, *rest = logs
    names = [
        n for n in first.table["fact_id"] if all((log.table["fact_id"] == n).any() for log in rest)
    ]
    if not names:
        raise FactsError(
            f"{first.name} and {rest[0].name} share no question; give logs of the same task"
        )
    ours = first.table.set_index("fact_id")
    for log in rest:
        theirs = log.table.set_index("fact_id")
        for what in ("prompt", "object", "settings"):
            other = [name for name in names if ours.loc[name, what] != theirs.loc[name, what]]
            if other:
                called = "target" if what == "object" else what
                raise FactsError(
                    f"the logs {first.name} and {log.name} differ in the {called} of "
                    f"{len(other)} of "
                    f"{len(names)} questions, the first {other[0]!r}; run both with the same "
                    f"task and settings"
                )
    return names


# -- lm-evaluation-harness -------------------------------------------------------------------------


def _lm_eval(path: Path) -> Log:
    try:
        # A text may hold U+2028, where Python's own splitlines would cut its row.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
        kept = [row for row in rows if row["filter"] == rows[0]["filter"]]
        metric = _metric(kept, path)
        table = pd.DataFrame([_lm_eval_row(row, metric) for row in kept])
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        if isinstance(error, FactsError):
            raise
        raise FactsError(
            f"{path} is no log of lm-evaluation-harness ({type(error).__name__}: {error}); make "
            f"one with "
            "--log_samples"
        ) from error
    name = path.parent.name + "/" + path.name if path.parent.name else path.name
    task = path.name.removeprefix("samples_").rpartition("_")[0] or path.stem
    called = metric if len(rows) == len(kept) else f"{metric} of the filter {rows[0]['filter']}"
    return Log(name, task, called, table)


def _metric(rows: list[dict[str, Any]], path: Path) -> str:
    """The first metric that marks every question as right or wrong."""
    named = rows[0]["metrics"] if rows else []
    for name in named:
        if all(row[name] in (0, 1) for row in rows):
            return str(name)
    raise FactsError(
        f"{path} has no metric that is 0 or 1 for every question (it has {', '.join(named)}); "
        f"log a task with one, such "
        "as exact_match or acc"
    )


def _lm_eval_row(row: dict[str, Any], metric: str) -> dict[str, Any]:
    doc = row["doc"]
    calls = row["arguments"]
    first: dict[Any, Any] = (
        calls["gen_args_0"] if isinstance(calls, dict) else dict(enumerate(calls[0]))
    )
    keys = ("arg_0", "arg_1") if "arg_0" in first else (0, 1)
    prompt = str(first[keys[0]])
    settings = first.get(keys[1])
    question = doc.get("question")
    if not isinstance(question, str) or not question:
        question = prompt.rstrip().splitlines()[-1]
    accepted = row["target"] if isinstance(row["target"], list) else [row["target"]]
    return _row(
        fact_id=f"{row['doc_id']}",
        relation=str(doc.get("relation") or doc.get("subject") or doc.get("category") or "all"),
        question=question,
        accepted=accepted,
        prompt=prompt,
        settings=json.dumps(settings, sort_keys=True) if isinstance(settings, dict) else "",
        text=_likeliest_text(row["filtered_resps"]),
        right=row[metric] == 1,
    )


def _likeliest_text(answers: Any) -> str:
    """A generated text, which is empty where none is told, or of choices with their
    log-probabilities (numbers, or texts of them) the likeliest."""
    if isinstance(answers, str):
        return answers
    first = answers[0]
    if isinstance(first, list) and first and not _is_choice(first):
        first = first[0]
    if first is None or isinstance(first, str):
        return first or ""
    return f"choice {int(np.nanargmax([float(answer[0]) for answer in answers])) + 1}"


def _is_choice(answer: list[Any]) -> bool:
    """Whether it is a log-probability, and whether greedy decoding would say the choice."""
    return len(answer) == 2 and str(answer[1]) in ("True", "False")


# -- inspect_ai ------------------------------------------------------------------------------------


def _inspect(path: Path) -> Log:
    if path.suffix == ".eval":
        log = _read_eval(path)
    else:
        try:
            log = json.loads(path.read_text(encoding="utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise FactsError(f"{path} is no JSON ({error}); give a log of inspect_ai") from error
    try:
        samples = log["samples"] or []
        marked = [sample["scores"] for sample in samples if sample.get("scores")]
        metric = next(iter(marked[0])) if marked else ""
        settings = json.dumps(
            log["eval"].get("model_generate_config") or {},
            sort_keys=True,
        )
        settings += json.dumps(log["plan"].get("config") or {}, sort_keys=True)
        table = pd.DataFrame([_inspect_row(sample, metric, settings, path) for sample in samples])
        name = log["eval"]["model"]
        task = log["eval"]["task"]
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise FactsError(
            f"{path} is no log of inspect_ai with scores ({type(error).__name__}: {error}); give "
            f"one of "
            "`inspect eval`"
        ) from error
    return Log(f"{name} ({path.name})", task, metric, table)


def _read_eval(path: Path) -> dict[str, Any]:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise FactsError(
            f"{path} is read by the package inspect_ai, which is not installed; install it, or "
            f"write the log "
            "as JSON (`inspect log convert --to json`)"
        ) from error
    found: dict[str, Any] = read_eval_log(str(path)).model_dump(mode="json")
    return found


def _inspect_row(
    sample: dict[str, Any],
    metric: str,
    settings: str,
    path: Path,
) -> dict[str, Any]:
    mark = (sample.get("scores") or {}).get(metric)
    if mark is None:
        raise FactsError(
            f"{path} holds the sample {sample['id']!r} without a score{metric and f' {metric}'}; "
            "run what failed again (`inspect eval-retry`), or score it (`inspect score`)"
        )
    value = mark["value"]
    if value not in (*MARKS, 0, 1):
        raise FactsError(
            f"{path} marks the sample {sample['id']!r} as {value!r}, which is neither right nor "
            f"wrong; use a "
            "scorer that marks C or I, such as includes"
        )
    sent = sample["input"]
    prompt = (
        sent if isinstance(sent, str) else json.dumps([[m["role"], m["content"]] for m in sent])
    )
    target = sample["target"]
    choices = sample["output"]["choices"]
    text = (choices[0]["message"]["content"] if choices else None) or ""
    if not isinstance(text, str):
        text = "".join(part.get("text") or "" for part in text)
    return _row(
        fact_id=f"{sample['id']}" + (f" epoch {sample['epoch']}" if sample["epoch"] > 1 else ""),
        relation=str((sample.get("metadata") or {}).get("relation", "all")),
        question=prompt.rstrip().splitlines()[-1],
        accepted=target if isinstance(target, list) else [target],
        prompt=prompt,
        settings=settings,
        text=text,
        right=MARKS.get(value, value == 1),
    )


def _row(*, accepted: list[Any], prompt: str, **cells: Any) -> dict[str, Any]:
    first, *aliases = [str(name) for name in accepted if name is not None] or [""]
    names = {
        "object": first,
        "aliases": aliases,
        "prompt": prompt,
        "message": prompt,
    }
    return cells | names | {"logprob": np.nan, "t_b": np.nan}
