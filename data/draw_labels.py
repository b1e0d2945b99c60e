"""Draw the rows of data/labels/*.csv, which are labelled without knowing any rule's verdict.

    python data/draw_labels.py            write the drawn rows, and keep the labels they have
    python data/draw_labels.py --check    write nothing; exit 1 if the drawn columns differ

Drawn from what the notebooks show, as many of each model, spread evenly over relations, in an order
that is drawn as well. Part 3: both models' greedy answers to the original questions, and pairs of
different answers to one question in two wordings; wording_disputed.csv holds all answers about
which the two rules disagree, so there is nothing to draw. Part 4: both models' answers to the
thesis's questions with a counterfactual in the context."""

import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from building import Files, command_line

from factrobust import draws, load_model
from factrobust.context.facts import load_context_questions
from factrobust.context.probe import ask_counterfactual
from factrobust.models.interface import Model
from factrobust.models.records import open_records
from factrobust.text import normalise
from factrobust.wording.facts import load_named_questions, sample_groups
from factrobust.wording.metrics import mark_by_rules
from factrobust.wording.probe import greedy_responses, paper_format

DATA = Path(__file__).resolve().parent
MODELS = ("gemma-3-270m", "smollm2-135m-instruct")
# the notebooks' parameters, and how many rows part 3 and part 4 have
N_FACTS = 480
MAX_NEW_TOKENS = 20
N_OBJECTS = 4
SEED = 0
N_LABELS = 200
N_CONTEXT_LABELS = 300
LABELS = ["label", "label_again", "note"]


def draw(rows: pd.DataFrame, n: int) -> pd.DataFrame:
    """`n` of the rows, as many of each model, in an order drawn by lot.

    Columns: model, `name` (unique), `domain` and, within it, `relation`, which take turns in a
    model. A row's place depends on its name alone."""
    parts = rows.assign(fact_id=rows["name"]).groupby("model", sort=True)
    each = n // len(parts)
    chosen = [draws.sample_evenly(part, each, SEED) for _, part in parts]
    return in_order(pd.concat(chosen), "name")


def in_order(rows: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The rows in an order drawn by lot of their cells in some columns."""
    cells = rows[[*columns]].to_numpy()
    lots = [draws.hash48(SEED, *row) for row in cells]
    return rows.iloc[np.argsort(lots)]


def ask_models(ask: Callable[[Model], pd.DataFrame]) -> pd.DataFrame:
    """What is asked of each of MODELS, below each other."""
    models = [load_model(name, records=open_records()) for name in MODELS]
    return pd.concat([ask(model) for model in models], ignore_index=True)


def wording_responses() -> pd.DataFrame:
    """Part 3's greedy answers to all wordings, with `first`, the group's original question."""
    embedded, *_ = load_named_questions("embedded")
    questions = sample_groups(embedded, N_FACTS, SEED)

    def answers(model: Model) -> pd.DataFrame:
        form = paper_format(model.prompt_format, model.chat)
        return greedy_responses(model, questions, prompt_format=form, max_new_tokens=MAX_NEW_TOKENS)

    table = ask_models(answers)
    originals = questions[questions["variant"] == 0]
    first = originals.set_index("group_id")["question"]
    return table.assign(
        first=table["group_id"].map(first),
        domain=table["relation"],
        accepted=table["answers"].map("|".join),
        answer=table["text"],
    )


def wording_answers(responses: pd.DataFrame) -> pd.DataFrame:
    """The answers to original questions, with the accepted ones."""
    rows = responses[responses["variant"] == 0]
    names = rows["model"] + "/" + rows["question_id"]
    return draw(rows.assign(name=names), N_LABELS)


def wording_pairs(responses: pd.DataFrame) -> pd.DataFrame:
    """Of each question the pair of answers, not empty and different after normalisation, that is
    first in an order drawn by lot."""
    rows = []
    answered = responses[responses["text"].str.strip() != ""]
    for (model, _), part in answered.groupby(["model", "group_id"]):
        pairs = []
        for one, other in combinations(part.to_dict("records"), 2):
            if normalise(one["text"]) == normalise(other["text"]):
                continue
            pair = {
                "name": f"{model}/{one['question_id']}/{other['question_id']}",
                "question_1": one["question_id"],
                "question_2": other["question_id"],
                "answer_1": one["text"],
                "answer_2": other["text"],
            }
            pairs.append(one | pair)
        if pairs:
            rows.append(min(pairs, key=lambda pair: draws.hash48(SEED, pair["name"])))
    drawn = draw(pd.DataFrame(rows), N_LABELS)
    return drawn.assign(question=drawn["first"])


def wording_disputed(responses: pd.DataFrame) -> pd.DataFrame:
    """All answers, to any wording, that one rule counts as right and the other does not."""
    embedded, *_ = load_named_questions("embedded")
    marked = mark_by_rules(responses, embedded)
    disputed = marked[marked["substring"] != marked["correct"]]
    return in_order(disputed, "model", "question_id")


def context() -> pd.DataFrame:
    """Part 4's answers with a context, beside the two that they are compared with."""
    questions = load_context_questions(limit=N_OBJECTS, seed=SEED)
    rows = ask_models(lambda model: ask_counterfactual(model, questions, seed=SEED))
    rows = rows.assign(
        name=rows["model"] + "/" + rows["question_id"],
        domain=rows["category"],
        relation=rows["base_id"],
    )
    asked = questions[["question_id", "question", "prefix"]]
    drawn = draw(rows, N_CONTEXT_LABELS).merge(asked, on="question_id", validate="m:1")
    return drawn.assign(
        context=drawn["prefix"] + " " + drawn["counterfactual"],
        answer=drawn["contextual"],
    )


def build() -> dict[str, pd.DataFrame]:
    """The drawn rows of each sheet, by its name, with numbered label_ids."""
    responses = wording_responses()
    tables = {
        "context": context(),
        "wording_answers": wording_answers(responses),
        "wording_pairs": wording_pairs(responses),
        "wording_disputed": wording_disputed(responses),
    }
    for name, table in tables.items():
        table["label_id"] = [f"{name}-{i:03d}" for i in range(1, len(table) + 1)]
    return tables


def with_labels(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The columns of a file of drawn rows, with the labels that they have there, wherever they
    stand."""
    old = pd.read_csv(path, dtype=str, keep_default_na=False)
    drawn = [*old.columns.drop(["label_id", *LABELS])]
    new = table[["label_id", *drawn]]
    labelled = old[[*drawn, *LABELS]]
    return new.merge(labelled, on=drawn, how="left").fillna("")


def main(arguments: list[str] | None = None, folder: Path = DATA / "labels") -> int:
    return command_line(arguments, folder, files, __file__, __doc__)


def files(folder: Path) -> Files:
    for name, table in build().items():
        path = folder / f"{name}.csv"
        yield path, with_labels(table, path).to_csv(index=False, lineterminator="\n")


if __name__ == "__main__":
    sys.exit(main())
