"""The tables that travel between modules: one schema each, which names, types and checks its columns.

A docstring that takes or returns "a table `schemas.Scores`" means these columns; more may be there.
`schemas.Scores.validate(table)` checks one. A column means the same in every table, as COLUMNS says,
but where a table says otherwise; those that say what was asked are carried along, so that nothing has
to be merged again.

Log-probabilities are natural, in float32 as models give them, or sums of those in float64.
"""

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd
import pandera.pandas as pa

# Where Dask is installed, pandera imports all of its tables, half a second, for types of no use here.
if "dask.dataframe" not in sys.modules:
    sys.modules["dask.dataframe"] = None  # type: ignore[assignment]
    import pandera.typing.dask  # noqa: F401

    del sys.modules["dask.dataframe"]


def _column(
    dtype: Any, description: str, *, nullable: bool = False, coerce: bool = False, **checks: Any
) -> pa.Column:
    tests = [getattr(pa.Check, name)(value) for name, value in checks.items()]
    form: dict[str, Any] = {"nullable": nullable, "coerce": coerce}
    return pa.Column(dtype, tests, description=description, **form)


def _table(
    description: str,
    columns: str,
    base: pa.DataFrameSchema | None = None,
    unique: Sequence[str] = (),
    **own: pa.Column,
) -> pa.DataFrameSchema:
    """A schema of the `columns` (names of COLUMNS, or of its `own`) behind those of its `base`; no two
    rows agree in all of `unique`."""
    here = base.columns if base else {}
    here = here | {name: own.get(name) or COLUMNS[name] for name in columns.split()}
    unique = unique or (base.unique if base else None) or ()
    return pa.DataFrameSchema(here, unique=[*unique] or None, description=description)


def names(table: pa.DataFrameSchema) -> tuple[str, ...]:
    """The columns of a schema, in its order."""
    return tuple(table.columns)


_text, _real, _whole = (partial(_column, dtype) for dtype in (str, float, int))
_flag, _any = partial(_column, bool), partial(_column, None)
_maybe = partial(_column, float, nullable=True)

COLUMNS = {
    # of facts and questions (datasets)
    "fact_id": _text("relation/subject in small letters; of a temporal fact with /object"),
    "subject": _text("what the fact is about"),
    "relation": _text(
        "its name in data/relations.csv or temporal_relations.csv; the category (QCat)"
    ),
    "object": _text("the answer, in its usual spelling; of a temporal fact during that time"),
    "aliases": _any("list of further accepted spellings"),
    "answer_type": _text("Human, Location, Numerical or Entity; empty if not known"),
    "domain": _text("geography, arts, science-history, or an official set's name"),
    "popularity": _maybe("of the subject; of a temporal fact the mean where both count the same"),
    "popularity_source": _text("what popularity counts, and its unit"),
    "source": _text("where the fact or the term comes from, or can be checked"),
    "question": _text("the question in full, with its date in words"),
    "prefix": _text(
        "how a sentence that answers begins, as a context does; empty if there is none"
    ),
    "start": _text("first day, month or year: YYYY, YYYY-MM or YYYY-MM-DD"),
    "end": _text("the last one, inclusive; of a term empty if later than 2020"),
    "subject_popularity": _maybe("log10 of a count, see subject_counts"),
    "subject_counts": _text("what it counts: views of the page, people, or nothing known"),
    "object_popularity": _maybe("the same of the object"),
    "object_counts": _text("what it counts; the two compare only where it is the same"),
    "chain": _text("short name of an office"),
    "term": _whole("number of a term of the office, from 0: the one in which the year lies", ge=0),
    "office": _text("what was held: the president of France"),
    "holder": _text("who held it in that term; one who came back has several terms"),
    "precision": _text("of the date", isin=["year", "month", "day"]),
    "date": _text("YYYY, YYYY-MM or YYYY-MM-DD"),
    "year": _whole("the year that a date was drawn with, or that was asked for"),
    "alpha": _real("place of that year: 0 is the middle, -1/2 and 1/2 the ends of validity"),
    "years_off": _real("from the end of validity that is nearer; below 0 before the start"),
    "label": _text("what the date is to the validity"),
    "question_id": _text(
        "group and wording, capital/kenya#0; base question and object, city-01/kyoto"
    ),
    "group_id": _text("what the wordings ask for: a fact_id, or a name of its own"),
    "variant": _whole("number of the wording: 0 for the original question, then the paraphrases"),
    "answers": _any("list of accepted answers; empty for the thesis's questions"),
    "log_popularity": _maybe("of the subject, natural; NaN if not known"),
    "category": _text("city, person, ...: the kind of object"),
    "base_id": _text("the question before an object is filled in: city-01"),
    "attribute": _text("what is asked of the object"),
    "right_answers": _text("one or several: how many different answers can be right"),
    # of what models said (probes)
    "model": _text("the name that the model was loaded by"),
    "prompt_format": _text("a key of models.prompts.FORMATS"),
    "prompt": _text("what the model was given"),
    "text": _text("what the model said, up to the stop"),
    "token_ids": _any("list of the answer's token ids"),
    "logprobs": _any("list of their log-probabilities, untempered"),
    "top_tokens": _any("a list a token: the ten likeliest tokens there"),
    "top_logprobs": _any("a list a token: their log-probabilities"),
    "curve": _any("log P_t of the answer at each temperature asked, or empty"),
    "entropies": _any("of the whole distribution at each token (nats), or empty"),
    "temperature": _real("t that the logits were divided by", ge=0),
    "sample": _whole("number of the sample, from 0"),
    "tempered_logprobs": _any("the same under the distribution that they were drawn from"),
    "logprob": _real("summed over the object's tokens", le=0, gt=float("-inf")),
    "n_tokens": _whole("how many these are", ge=1),
    "freed": _maybe("logprob minus the mean log P of other objects; NaN if not asked"),
    "candidate": _whole("number of the term whose holder is scored", ge=0),
    "true": _flag("it is who held the office in that year"),
    "prior": _real("the same after the question without a date", le=0),
    "raw": _text("all that it said"),
    "parametric": _text("the answer without a context"),
    "counterfactual": _text("the answer that the context states", coerce=True),
    "contextual": _text("the answer with the context"),
    "p0": _maybe("perplexity of parametric without context"),
    "p1": _maybe("of counterfactual without context"),
    "p2": _maybe("of parametric with the context"),
    "p3": _maybe("of counterfactual with the context"),
    "p4": _maybe("of contextual with the context"),
    "n_tokens_parametric": _maybe("tokens of parametric", coerce=True),
    "n_tokens_counterfactual": _maybe("of counterfactual", coerce=True),
    "first_entropy": _maybe("H of the first token without context, top 10"),
    "first_entropy_context": _maybe("the same with the context"),
    "first_shift": _maybe("Jensen-Shannon distance of the two"),
    # of what it is worth (metrics)
    "exact_match": _flag("the text is an accepted answer but for case and articles"),
    "contains": _flag("an accepted answer occurs in the text as whole words"),
    "entropy": _maybe("H of the greedy answer over the top 10, base 10, mean over tokens"),
    "correct": _flag("an accepted answer is stated; of a group, by its original question's"),
    "certainty": _maybe("mean probability of the tokens as drawn"),
    "certainty_at_1": _maybe("the same, untempered"),
    "t_b": _maybe("breaking temperature; inf where none breaks it"),
    "d": _whole("weight of the temperature in equation 3"),
    "frs": _maybe("Factual Robustness Score, equation 4"),
    "n_correct": _whole("correct dates", ge=0),
    "n_incorrect": _whole("incorrect dates", ge=0),
    "matches": _whole("their pairs", ge=0),
    "wins": _whole("pairs whose correct date has the greater log P", ge=0),
    "ties": _whole("pairs of equal log P, which count as lost", ge=0),
    "win_rate": _maybe("W, equation 1: wins / matches"),
    "robust": _column(pd.BooleanDtype(), "R, equation 2: no match lost", nullable=True),
    "margin": _maybe("least difference of log P over the matches"),
    "chance": _maybe("P(R) if all scores were independent and alike"),
    "substring": _flag("the same by PopQA's rule: an accepted answer is a substring"),
    "texts": _any("list of the answers, in the order of the rows"),
    "n_answers": _whole("how many answers these are, or stand behind scons", ge=1),
    "n_empty": _whole("how many of them are empty", ge=0),
    "int_sim": _maybe("mean similarity over pairs, equation 1"),
    "accuracy": _real("share of right answers over all wordings", ge=0, le=1),
    "scons_raw": _real("mean similarity of the answers to all wordings"),
    "scons": _real("the same, clipped to [0, 1]", ge=0, le=1),
    "cert_raw": _real("mean similarity of the samples of the original question"),
    "cert": _real("the same, clipped to [0, 1]", ge=0, le=1),
    "scons_bare": _real("scons of the answers without the question's words", ge=0, le=1),
    "agreement": _real("share of pairs of answers that are the same text"),
    "predictive_entropy": _maybe("minus the samples' mean log P a token"),
    "string_entropy": _real("entropy of the samples over equal texts", ge=0),
    "semantic_entropy": _real("the same over texts that say the same", ge=0),
    "rouge_l": _real("mean Rouge-L F over pairs of samples", ge=0, le=1),
    "sound": _flag("all three texts are answers, and the first two differ"),
    "kind": _column(pd.Int64Dtype(), "of an other answer: 1 to 7", nullable=True),
    "kind_rule": _any("the rule that told the kind", nullable=True),
    "preference": _any("parametric or contextual by perplexity", nullable=True),
    "parametric_correct": _column(pd.BooleanDtype(), "it is right; NA if unknown", nullable=True),
    "counterfactual_correct": _column(pd.BooleanDtype(), "it is right", nullable=True),
}

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
    question=_text("goes on after a date, as the prefix does: who was the president of France?"),
)
Dates = _table(
    "Dates to ask a temporal fact with: a row a fact, precision and date.",
    "fact_id precision date year alpha years_off label",
)
Statements = _table("Dates with what is asked about them.", "question prefix object", Dates)
Questions = _table(
    "Paraphrased questions, a row a wording (part 3).",
    "question_id group_id variant relation question prefix answers popularity log_popularity",
    unique=["question_id"],
)
_OBJECT = _text("what the question is about")
ContextQuestions = _table(
    "Questions that are asked with and without a context (part 4).",
    "question_id category base_id attribute object question prefix answers right_answers popularity",
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
    "Sampled answers to facts (part 1).", "temperature sample tempered_logprobs", Generated
)
Curves = _table(
    "log P_t of greedy answers: a row a model, fact and temperature (part 1).",
    "model fact_id temperature logprob",
    logprob=_real("log P_t(answer | prompt)", coerce=True),
)
Scores = _table(
    "log P of a temporal fact's object under each date, asked once (part 2).",
    "model prompt_format logprob n_tokens freed",
    Dates,
    unique=["model", "prompt_format", "fact_id", "precision", "date"],
)
HolderScores = _table(
    "log P of an office's holders after the question who held it in a year, once each (part 2).",
    "model chain year term candidate holder true logprob prior",
    unique=["model", "chain", "year", "candidate"],
    holder=_text("that holder"),
    logprob=_real("summed over the tokens of the name", le=0),
)
Responses = _table(
    "Answers to wordings; sampled ones have a column `sample`, their number (part 3).",
    "model prompt_format question_id group_id variant relation prompt text raw logprobs",
    text=_text("the first sentence of what it said"),
    logprobs=_any("list of the log-probabilities of the tokens of raw"),
)
ContextResults = _table(
    "Answers without and with a context, and their perplexities (part 4).",
    "model question_id category base_id object parametric counterfactual contextual p0 p1 p2 p3 p4 "
    "n_tokens_parametric n_tokens_counterfactual first_entropy first_entropy_context first_shift",
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
    "domain answer_type correct certainty certainty_at_1",
    Samples,
)
Robustness = _table(
    "Breaking temperature and FRS: a row a model, fact and d (part 1).",
    "model fact_id domain answer_type entropy t_b d frs",
)
Matched = _table(
    "Matches of correct with incorrect dates: a row a model, format, fact, precision (part 2).",
    "model prompt_format fact_id precision n_correct n_incorrect matches wins ties win_rate robust "
    "margin chance",
    precision=_text("year, month, day, or global: all matches of the three"),
)
MarkedResponses = _table(
    "Answers to wordings, of which each is asked of a model once, right or wrong (part 3).",
    "answers log_popularity correct substring",
    Responses,
    unique=["model", "question_id"],
)
AnswerSets = _table(
    "All answers, or all samples, of a model to one question (part 3).",
    "model group_id texts n_answers n_empty logprob int_sim",
    logprob=_maybe("mean over answers of their tokens' mean log P"),
)
Groups = _table(
    "A question with what may predict that it is answered rightly (part 3).",
    "model group_id relation correct substring accuracy scons_raw scons cert_raw cert scons_bare "
    "n_answers n_empty agreement logprob predictive_entropy string_entropy semantic_entropy rouge_l "
    "log_popularity",
    logprob=_maybe("mean log P of the original's greedy tokens", le=0),
)
MarkedContext = _table(
    "Answers with a context, and where they come from (part 4).",
    "source sound kind kind_rule preference parametric_correct counterfactual_correct correct",
    ContextResults,
    source=_any("parametric, contextual, other, none or same: where contextual comes from"),
    correct=_column(pd.BooleanDtype(), "contextual is right", nullable=True),
)
