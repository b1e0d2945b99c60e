"""Draw the answers of data/labels/context.csv, labelled without knowing any rule's verdict.

    python data/draw_labels.py            write the drawn answers, and keep the labels they have
    python data/draw_labels.py --check    write nothing; exit 1 if the drawn columns differ

Drawn from what part 4's notebooks show: the committed answers of both models to the thesis's
questions with a counterfactual in the context. As many of each model, spread over the questions'
categories and, within each, over base questions; in an order that is drawn as well.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

from factrobust import draws, load_model
from factrobust.datasets.contexts import load_context_questions
from factrobust.probes.context import ask
from factrobust.records import Records

DATA = Path(__file__).resolve().parent
MODELS = ("gemma-3-270m", "smollm2-135m-instruct")
N_OBJECTS, SEED, N_LABELS = 4, 0, 300  # the first two are the notebooks' parameters
DRAWN = ["label_id", "model", "question_id", "question", "context"]
DRAWN += ["parametric", "counterfactual", "answer"]
LABELS = ["label", "label_again", "note"]


def draw(answers: pd.DataFrame, n: int = N_LABELS, seed: int = SEED) -> pd.DataFrame:
    """`n` rows of `probes.context.ask`, as many of each model, in an order drawn from the seed.

    Columns: those of `answers` and name ("model/question_id"). A row's place depends on its name and
    the seed alone; within a model the categories, and within these the base questions, take turns.
    """
    named = answers.assign(
        name=answers["model"] + "/" + answers["question_id"],
        domain=answers["category"],
        relation=answers["base_id"],
    )
    named["fact_id"] = named["name"]
    parts = named.groupby("model", sort=True)
    chosen = pd.concat([draws.sample_evenly(part, n // len(parts), seed) for _, part in parts])
    return chosen.sort_values("name", key=lambda names: names.map(lambda x: draws.number(seed, x)))


def build() -> pd.DataFrame:
    """The drawn columns of data/labels/context.csv, from the committed records."""
    questions = load_context_questions(limit=N_OBJECTS, seed=SEED)
    records = Records(None, DATA / "records", strict=True)
    models = [load_model(name, records=records) for name in MODELS]
    answers = [ask(model, questions, seed=SEED) for model in models]
    table = draw(pd.concat(answers, ignore_index=True)).merge(
        questions[["question_id", "question", "prefix"]], on="question_id", validate="m:1"
    )
    return table.assign(
        label_id=[f"context-{i:03d}" for i in range(1, len(table) + 1)],
        context=table["prefix"] + " " + table["counterfactual"],
        answer=table["contextual"],
    )[DRAWN]


def main(arguments: list[str] | None = None, path: Path = DATA / "labels" / "context.csv") -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    check = parser.parse_args(arguments).check
    table = build()
    if path.exists():
        old = pd.read_csv(path, dtype=str, keep_default_na=False)
        if old[DRAWN].equals(table.astype(str)):
            print("up to date")
            return 0
        table = table.merge(old[[*DRAWN, *LABELS]], on=DRAWN, how="left").fillna("")
    if not check:
        path.parent.mkdir(exist_ok=True)
        table.reindex(columns=[*DRAWN, *LABELS]).to_csv(path, index=False, lineterminator="\n")
    said = "differs from the draw; run python data/draw_labels.py" if check else "written"
    print(f"{path.name} {said}")
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
