"""Draw the rows of data/labels/*.csv, which are labelled without knowing any rule's verdict.

    python data/draw_labels.py            write the drawn rows, and keep the labels they have
    python data/draw_labels.py --check    write nothing; exit 1 if the drawn columns differ

Drawn from what part 4's notebooks show: both models' answers to the thesis's questions with a
counterfactual in the context, 150 of each model, spread evenly over the questions' categories and,
within each, over base questions, in an order that is drawn as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from factrobust import draws, load_model
from factrobust.datasets.contexts import load_context_questions
from factrobust.probes.context import ask
from factrobust.records import Records

DATA = Path(__file__).resolve().parent
MODELS = ("gemma-3-270m", "smollm2-135m-instruct")
N_OBJECTS, SEED = 4, 0  # the notebooks' parameters
N_ANSWERS = 300
LABELS = ["label", "label_again", "note"]


def draw(rows: pd.DataFrame, n: int, seed: int = SEED) -> pd.DataFrame:
    """`n` of the rows, as many of each model, in an order drawn from the seed.

    Columns: model, `name` (unique), `domain` and, within it, `relation`, which take turns in a model.
    A row's place depends on its name and the seed alone.
    """
    parts = rows.assign(fact_id=rows["name"]).groupby("model", sort=True)
    chosen = pd.concat([draws.sample_evenly(part, n // len(parts), seed) for _, part in parts])
    return chosen.sort_values("name", key=lambda names: names.map(lambda x: draws.number(seed, x)))


def context() -> pd.DataFrame:
    """Part 4's answers with a context, beside the two that they are compared with."""
    questions = load_context_questions(limit=N_OBJECTS, seed=SEED)
    records = Records(None, DATA / "records", strict=True)
    models = [load_model(name, records=records) for name in MODELS]
    rows = pd.concat([ask(model, questions, seed=SEED) for model in models], ignore_index=True)
    rows = rows.assign(
        name=rows["model"] + "/" + rows["question_id"],
        domain=rows["category"],
        relation=rows["base_id"],
    )
    asked = questions[["question_id", "question", "prefix"]]
    drawn = draw(rows, N_ANSWERS).merge(asked, on="question_id", validate="m:1")
    drawn["context"] = drawn["prefix"] + " " + drawn["counterfactual"]
    drawn["answer"] = drawn["contextual"]
    columns = ["model", "question_id", "question", "context"]
    return drawn[[*columns, "parametric", "counterfactual", "answer"]]


SHEETS: Mapping[str, Callable[[], pd.DataFrame]] = {"context": context}


def build() -> dict[str, pd.DataFrame]:
    """The drawn columns of each sheet, by its name, with numbered label_ids."""
    tables = {name: sheet().reset_index(drop=True) for name, sheet in SHEETS.items()}
    for name, table in tables.items():
        table.insert(0, "label_id", [f"{name}-{i:03d}" for i in range(1, len(table) + 1)])
    return tables


def main(arguments: list[str] | None = None, folder: Path = DATA / "labels") -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    check, differs = parser.parse_args(arguments).check, False
    for name, table in build().items():
        path, drawn = folder / f"{name}.csv", list(table)
        old = table.reindex(columns=[*drawn, *LABELS])[:0].astype("str")
        if path.exists():
            old = pd.read_csv(path, dtype=str, keep_default_na=False)
            if old[drawn].equals(table.astype("str")):
                print(f"{path.name} is up to date")
                continue
        differs = True
        if not check:
            new = table.merge(old, on=drawn, how="left").fillna("")
            new.to_csv(path, index=False, lineterminator="\n")
        print(f"{path.name} differs from the draw" if check else f"{path.name} written")
    return int(differs and check)


if __name__ == "__main__":
    sys.exit(main())
