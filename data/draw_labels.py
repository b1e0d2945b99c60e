"""Draw the rows of data/labels/*.csv, which are labelled without knowing any rule's verdict.

    python data/draw_labels.py            write the drawn rows, and keep the labels they have
    python data/draw_labels.py --check    write nothing; exit 1 if the drawn columns differ

Drawn from what the notebooks show, as many of each model, spread evenly over relations, in an order
that is drawn as well. Part 3: both models' greedy answers to the original questions, and pairs of
different answers to one question in two wordings; wording_disputed.csv holds all answers about
which the two rules disagree, so there is nothing to draw. Part 4: both models' answers to the
thesis's questions with a counterfactual in the context."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from factrobust import draws, load_model
from factrobust.context.facts import load_context_questions
from factrobust.context.probe import ask
from factrobust.models.records import open_records
from factrobust.text import normalise
from factrobust.wording.facts import load_named_questions, sample
from factrobust.wording.metrics import mark_by_rules
from factrobust.wording.probe import greedy, paper_format

DATA = Path(__file__).resolve().parent
MODELS = ("gemma-3-270m", "smollm2-135m-instruct")
# the notebooks' parameters, and how many rows part 3 and part 4 have
N_FACTS, MAX_NEW_TOKENS, N_OBJECTS, SEED = 480, 20, 4, 0
N_LABELS, N_CONTEXT_LABELS = 200, 300
LABELS = ["label", "label_again", "note"]


def draw(rows: pd.DataFrame, n: int = N_LABELS, seed: int = SEED) -> pd.DataFrame:
    """`n` of the rows, as many of each model, in an order drawn from the seed.

    Columns: model, `name` (unique), `domain` and, within it, `relation`, which take turns in a
    model. A row's place depends on its name and the seed alone."""
    parts = rows.assign(fact_id=rows["name"]).groupby("model", sort=True)
    chosen = pd.concat([draws.sample_evenly(part, n // len(parts), seed) for _, part in parts])
    return chosen.sort_values("name", key=lambda names: names.map(lambda x: draws.hash48(seed, x)))


@cache
def wording_responses() -> pd.DataFrame:
    """Part 3's greedy answers to all wordings, with `first`, the group's original question."""
    questions = sample(load_named_questions("embedded")[0], N_FACTS, SEED)
    models = [load_model(name, records=open_records()) for name in MODELS]
    answers = [
        greedy(model, questions, prompt_format=paper_format(model.prompt_format, model.chat),
               max_new_tokens=MAX_NEW_TOKENS)
        for model in models
    ]  # fmt: skip
    table = pd.concat(answers, ignore_index=True)
    first = questions[questions["variant"] == 0].set_index("group_id")["question"]
    return table.assign(first=table["group_id"].map(first), domain=table["relation"])


def wording_answers(responses: pd.DataFrame) -> pd.DataFrame:
    """The answers to original questions, with the accepted ones."""
    rows = responses[responses["variant"] == 0]
    rows = rows.assign(name=rows["model"] + "/" + rows["question_id"])
    drawn = draw(rows).assign(accepted=lambda table: table["answers"].map("|".join))
    drawn["answer"] = drawn["text"]
    return drawn[["model", "question_id", "question", "accepted", "answer"]]


def wording_pairs(responses: pd.DataFrame) -> pd.DataFrame:
    """Of each question the pair of answers, not empty and different after normalisation, that is
    first in an order drawn from the seed."""
    rows = []
    for _, part in responses[responses["text"].str.strip() != ""].groupby(["model", "group_id"]):
        pairs = combinations(part.to_dict("records"), 2)
        differ = [(a, b) for a, b in pairs if normalise(a["text"]) != normalise(b["text"])]
        names = [f"{a['model']}/{a['question_id']}/{b['question_id']}" for a, b in differ]
        if names:
            name, (a, b) = min(
                zip(names, differ, strict=True), key=lambda row: draws.hash48(SEED, row[0])
            )
            ids = {"question_1": a["question_id"], "question_2": b["question_id"]}
            rows.append(a | ids | {"name": name, "answer_1": a["text"], "answer_2": b["text"]})
    drawn = draw(pd.DataFrame(rows)).assign(question=lambda table: table["first"])
    columns = ["model", "question_1", "question_2", "question", "answer_1", "answer_2"]
    return drawn[columns]


def wording_disputed(responses: pd.DataFrame) -> pd.DataFrame:
    """All answers, to any wording, that one rule counts as right and the other does not."""
    marked = mark_by_rules(responses, load_named_questions("embedded")[0])
    table = marked[marked["substring"] != marked["correct"]]
    table = table.assign(accepted=table["answers"].map("|".join), answer=table["text"])
    order = [draws.hash48(SEED, *key) for key in table[["model", "question_id"]].to_numpy()]
    columns = ["model", "question_id", "question", "accepted", "answer"]
    return table.iloc[np.argsort(order)][columns]


def context() -> pd.DataFrame:
    """Part 4's answers with a context, beside the two that they are compared with."""
    questions = load_context_questions(limit=N_OBJECTS, seed=SEED)
    models = [load_model(name, records=open_records()) for name in MODELS]
    rows = pd.concat([ask(model, questions, seed=SEED) for model in models], ignore_index=True)
    rows = rows.assign(
        name=rows["model"] + "/" + rows["question_id"],
        domain=rows["category"],
        relation=rows["base_id"],
    )
    asked = questions[["question_id", "question", "prefix"]]
    drawn = draw(rows, N_CONTEXT_LABELS).merge(asked, on="question_id", validate="m:1")
    drawn["context"] = drawn["prefix"] + " " + drawn["counterfactual"]
    drawn["answer"] = drawn["contextual"]
    columns = ["model", "question_id", "question", "context"]
    return drawn[[*columns, "parametric", "counterfactual", "answer"]]


SHEETS: Mapping[str, Callable[[], pd.DataFrame]] = {
    "context": context,
    "wording_answers": lambda: wording_answers(wording_responses()),
    "wording_pairs": lambda: wording_pairs(wording_responses()),
    "wording_disputed": lambda: wording_disputed(wording_responses()),
}


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
            # a row keeps its labels wherever it now stands
            new = table.merge(old.drop(columns="label_id"), on=drawn[1:], how="left").fillna("")
            new.to_csv(path, index=False, lineterminator="\n")
        print(f"{path.name} differs from the draw" if check else f"{path.name} written")
    return int(differs and check)


if __name__ == "__main__":
    sys.exit(main())
