"""The tables that modules give to each other. The schema of a table names, types and checks
columns.

"A table `schemas.Scores`" in a docstring means a table with these columns; it may have more.
`schemas.Scores.validate(table)` checks one. data/columns.csv says what a column means in every
table, unless the schema here says otherwise. A table keeps the columns that say what was asked.

Log-probabilities are natural, in float32 as models give them, or sums of those in float64.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust.paths import DATA

TYPES: dict[str, Any] = {
    "text": str,
    "number": float,
    "whole": int,
    "flag": bool,
    "any": None,
    "whole?": pd.Int64Dtype(),  # of others a missing one is NaN
    "flag?": pd.BooleanDtype(),
}


def _column(
    kind: str,
    description: str,
    low: float = np.nan,
    high: float = np.nan,
    coerce: Any = "",
) -> pa.Column:
    """A column with values from `low` to `high`. Its kind is a key of TYPES; ? means that cells may
    be missing."""
    checks = []
    if not np.isnan(low):
        checks.append(pa.Check.ge(low))
    if not np.isnan(high):
        checks.append(pa.Check.le(high))
    return pa.Column(
        TYPES[kind] if kind in TYPES else TYPES[kind.removesuffix("?")],
        checks,
        description=description,
        nullable=kind.endswith("?"),
        coerce=coerce == "yes",
    )


def _table(
    description: str,
    columns: str,
    base: pa.DataFrameSchema | None = None,
    unique: Sequence[str] = (),
    **special: pa.Column,
) -> pa.DataFrameSchema:
    """A schema with the columns of `base`, then `columns`: names of COLUMNS, or of `special` ones.
    No two rows are equal in all columns of `unique`."""
    base = base or pa.DataFrameSchema()
    every = dict(base.columns)
    for name in columns.split():
        every[name] = special.get(name) or COLUMNS[name]
    return pa.DataFrameSchema(
        every,
        unique=[*unique] or base.unique,
        description=description,
    )


_LINES = pd.read_csv(DATA / "columns.csv").itertuples(index=False)
COLUMNS = {name: _column(*line) for name, *line in _LINES}

# -- facts and questions (datasets) ----------------------------------------------------------------

_FACT = "fact_id subject relation object aliases"
_POPULAR = "subject_popularity subject_counts object_popularity object_counts"
Facts = _table(
    "Facts with one accepted answer or several (parts 1, 4).",
    f"{_FACT} answer_type domain popularity popularity_source source",
    unique=["fact_id"],
)
AskedFacts = _table("Facts with their question.", "question prefix", Facts)
TemporalFacts = _table(
    "Facts that held for a time (part 2).",
    f"{_FACT} start end {_POPULAR} popularity popularity_source source",
    unique=["fact_id"],
)
Terms = _table(
    "Terms of offices: a row a term, each chain's in the order of time (part 2).",
    "chain term office question prefix holder aliases start end source",
    question=_column(
        "text", "goes on after a date, as the prefix does: who was the president of France?"
    ),
)
Dates = _table(
    "Dates to ask a temporal fact with: a row a fact, precision and date.",
    "fact_id precision date year alpha years_off label",
    precision=pa.Column(str, pa.Check.isin(["year", "month", "day"]), description="of the date"),
)
Statements = _table("Dates with what is asked about them.", "question prefix object", Dates)
Questions = _table(
    "Paraphrased questions, a row a wording (part 3).",
    "question_id group_id variant relation question prefix answers popularity log_popularity",
    unique=["question_id"],
)
_OBJECT = _column("text", "what the question is about")
ContextQuestions = _table(
    "Questions that are asked with and without a context (part 4).",
    "question_id category base_id attribute object question prefix answers right_answers",
    unique=["question_id"],
    object=_OBJECT,
)

# -- what models said (probes) ---------------------------------------------------------------------

Generated = _table("What models said to facts.", "model fact_id text token_ids logprobs")
Answers = _table(
    "Greedy answers to facts (part 1).",
    "prompt_format prompt top_tokens top_logprobs curve entropies",
    Generated,
)
Samples = _table(
    "Sampled answers to facts (part 1).",
    "temperature sample tempered_logprobs",
    Generated,
)
Curves = _table(
    "log P_t of greedy answers: a row a model, fact and temperature (part 1).",
    "model fact_id temperature logprob",
    logprob=_column("number", "log P_t(answer | prompt)", coerce="yes"),
)
Scores = _table(
    "log P of a temporal fact's object under each date, asked once (part 2).",
    "model prompt_format logprob n_tokens other_logprobs",
    Dates,
    unique=["model", "prompt_format", "fact_id", "precision", "date"],
)
CubeScores = _table(
    "Scores after the question of the fact's own subject, and of wrong ones (part 2).",
    "asked_of",
    Scores,
    unique=["model", "prompt_format", "fact_id", "precision", "date", "asked_of"],
    asked_of=_column("whole", "0 for the fact's own subject, 1, 2, ... for its wrong ones", 0),
)
HolderScores = _table(
    "log P of an office's holders after the question who held it in a year, once each (part 2).",
    "model chain year term candidate holder true logprob prior",
    unique=["model", "chain", "year", "candidate"],
)
Responses = _table(
    "Answers to wordings; sampled ones have a column `sample`, their number (part 3).",
    "model prompt_format question_id group_id variant relation prompt text raw logprobs",
    text=_column("text", "the first sentence of what it said, after leading newlines"),
    logprobs=_column("any", "list of the log-probabilities of the tokens up to the end of text"),
)
ContextResults = _table(
    "Answers without and with a context, and their perplexities (part 4).",
    """
    model question_id category base_id object
    parametric counterfactual contextual
    p0 p1 p2 p3 p4
    n_tokens_parametric n_tokens_counterfactual
    """,
    object=_OBJECT,
)

# -- what it is worth (metrics) --------------------------------------------------------------------

MarkedAnswers = _table(
    "Answers with the fact's columns and what they are worth (part 1).",
    "exact_match contains entropy",
    Answers,
)
MarkedSamples = _table(
    "Samples with what they are worth (part 1).",
    "domain answer_type correct certainty",
    Samples,
)
Robustness = _table(
    "Breaking temperature and FRS: a row a model, fact and d (part 1).",
    "model fact_id domain answer_type entropy t_b d frs",
)
Matched = _table(
    "Matches of correct with incorrect dates: a row a model, format, fact, precision (part 2).",
    """
    model prompt_format fact_id precision
    n_correct n_incorrect
    matches wins ties
    win_rate robust margin chance
    """,
    precision=_column("text", "year, month, day, or global: all matches of the three"),
)
MarkedResponses = _table(
    "Answers to wordings, of which each is asked of a model once, right or wrong (part 3).",
    "answers log_popularity correct substring",
    Responses,
    unique=["model", "question_id"],
)
AnswerSets = _table(
    "All answers, or all samples, of a model to one question (part 3).",
    "model group_id texts int_sim",
)
MarkedContext = _table(
    "Answers with a context, and where they come from (part 4).",
    "source sound kind parametric_correct correct",
    ContextResults,
    source=_column(
        "any", "parametric, contextual, other, none or same: where contextual comes from"
    ),
    correct=_column("flag?", "contextual is right"),
)
