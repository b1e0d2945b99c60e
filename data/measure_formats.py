"""Which prompt format finds most of what a model knows: data/formats.csv.

    python data/measure_formats.py

The models are asked facts that no notebook asks: those that data/build_facts.py leaves out, since
their relations have enough. So no format is chosen by the facts on which it is judged later. An
answer is right in its first words (`exact`: it ends before the format's stop, and is the name), or
anywhere in its tokens (`contains`).
"""

import build_facts
import pandas as pd

from factrobust import intervals, load_model
from factrobust.datasets import facts
from factrobust.decoding import metrics, probe
from factrobust.models.prompts import FORMATS
from factrobust.paths import DATA

MODELS = ("qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
DATED = "dated-few-shot"  # its examples have dates, and these questions have none
PER_RELATION = 5
TOKENS = 12
VALUES = ["exact", "contains"]


def asked() -> pd.DataFrame:
    """The most popular of the facts left out, at most PER_RELATION of a relation, with
    questions."""
    left_out, _ = build_facts.build(left_out=True)
    return facts.with_questions(left_out.groupby("relation").head(PER_RELATION))


def measure() -> pd.DataFrame:
    """A row a model and format, with shares of right answers and intervals over relations."""
    questions = asked()
    tables = []
    for name in MODELS:
        model = load_model(name)
        for prompt_format, form in FORMATS.items():
            if prompt_format == DATED or (form.chat and not model.chat):
                continue
            responses = probe.greedy_answers(
                model,
                questions,
                max_new_tokens=TOKENS,
                temperatures=(),
                prompt_format=prompt_format,
            )
            marked = metrics.mark_greedy(responses)
            tables.append(marked.rename(columns={"exact_match": "exact"}))
    return intervals.interval_table(
        pd.concat(tables),
        ["model", "prompt_format", "measure"],
        VALUES,
        "fact_id",
        cluster="relation",
        n_boot=2000,
    )


if __name__ == "__main__":
    measure().to_csv(DATA / "formats.csv", index=False, float_format="%.3f", lineterminator="\n")
