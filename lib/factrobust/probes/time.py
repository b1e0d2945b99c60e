"""Part 2: how probable is a fact's object after a question with a date?

`statements` puts every date of `datasets.dates.sample_dates` before its fact's question, `scored`
asks a model for log P(object | dated question). Which dates win is decided later, by the metrics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from factrobust.datasets.dates import verbalise
from factrobust.datasets.temporal import load_temporal_relations
from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS
from factrobust.probes import need, prompts

KEPT = ["fact_id", "precision", "date", "year", "alpha", "years_off", "label"]
WORDING = ("question", "prefix")


def statements(
    facts: pd.DataFrame, dates: pd.DataFrame, relations: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`schemas.Dates` of `schemas.TemporalFacts` with what is asked about them: `schemas.Statements`.

    The facts may have their own question and prefix (no subject to fill in; an empty prefix stays
    empty). Where they have none, `relations`, indexed by name, has the columns question and prefix
    with {subject} in them (default: the embedded ones). The date stands before both: "In December
    2019, who was the head of state of Sri Lanka?" (paper 2, 3.1 and appendix E).
    """
    columns = ["fact_id", "subject", "relation", "object"]
    columns += [*WORDING] if "question" in facts else []
    table = dates.merge(facts[columns], on="fact_id", how="left", validate="many_to_one")
    if "question" not in facts:
        known = load_temporal_relations() if relations is None else relations
        for column in WORDING:
            pairs = zip(known.loc[table["relation"], column], table["subject"], strict=True)
            table[column] = [text.replace("{subject}", subject) for text, subject in pairs]
    spoken = table["date"].map({date: verbalise(date) for date in table["date"].unique()})
    for column in WORDING:
        pairs = zip(spoken, table[column], strict=True)
        table[column] = [f"{when}, {text}" if text else "" for when, text in pairs]
    return table[[*dates, *WORDING, "object"]]


def tuned(models: Sequence[Model]) -> list[Model]:
    """The models that have a chat template. Raises LacksError if none of them has."""
    found = [model for model in models if model.chat]
    need(found, models, "no chat template here to compare with; name a model that has one")
    return found


def scored(
    model: Model, statements: pd.DataFrame, *, prompt_format: str | None = None
) -> pd.DataFrame:
    """log P(object | dated question) of each of `schemas.Statements`, in their order: `schemas.Scores`.

    The tokens are the smallest suffix of prompt + separator + object
    that covers separator and object (paper 2, appendix D): " Mahinda" is one token with its space,
    and where a tokenizer keeps spaces apart, the space counts as well, the same for every date.
    """
    name = prompt_format or model.prompt_format
    sent = prompts(model, statements, name)
    separator = FORMATS[name].separator
    values = model.score(sent, [separator + answer for answer in statements["object"]])
    table = statements[KEPT].reset_index(drop=True)
    table.insert(0, "model", model.name)
    table.insert(1, "prompt_format", name)
    return table.assign(
        logprob=np.array([np.sum(v, dtype=np.float64) for v in values], dtype=np.float64),
        n_tokens=np.array([len(v) for v in values], dtype=np.int64),
    )
