"""The tables that travel between modules: one schema each, which names, types and explains columns.

A docstring that takes or returns "a table `schemas.Scores`" means these columns; more may be there.
`schemas.Scores.validate(table)` checks one. A column means the same in every table; those that say
what was asked are carried along, so that nothing has to be merged again.

Log-probabilities are natural, in float32 as models give them, or sums of those in float64.
"""

import sys
from typing import Any

import pandas as pd
import pandera.pandas as pa

# Where Dask is installed, pandera imports all of its tables, half a second, for types of no use here.
if "dask.dataframe" not in sys.modules:
    sys.modules["dask.dataframe"] = None  # type: ignore[assignment]
    import pandera.typing.dask  # noqa: F401

    del sys.modules["dask.dataframe"]


def _column(description: str, *, nullable: bool = False, **checks: Any) -> Any:
    return pa.Field(description=description, nullable=nullable, **checks)


def names(table: type[pa.DataFrameModel]) -> tuple[str, ...]:
    """The columns of a schema, in its order."""
    return tuple(table.to_schema().columns)


# -- facts and questions (datasets) ----------------------------------------------------------------


class Facts(pa.DataFrameModel):
    """Facts with one accepted answer or several (parts 1, 4)."""

    fact_id: str = _column("relation/subject in small letters, unique", unique=True)
    subject: str = _column("what the fact is about")
    relation: str = _column("name of the relation, a line of data/relations.csv")
    object: str = _column("the answer, in its usual spelling")
    aliases: Any = _column("list of further accepted spellings")
    answer_type: str = _column("Human, Location, Numerical or Entity; empty if not known")
    domain: str = _column("geography, arts, science-history, or an official set's name")
    popularity: float = _column("of the subject; the unit is in popularity_source", nullable=True)
    popularity_source: str = _column("what popularity counts")
    source: str = _column("where the fact was looked up")


class AskedFacts(Facts):
    """Facts with their question."""

    question: str = _column("the question in full")
    prefix: str = _column("how a sentence that answers begins; empty if there is none")


class TemporalFacts(pa.DataFrameModel):
    """Facts that held for a time (part 2)."""

    fact_id: str = _column("relation/subject/object in small letters, unique", unique=True)
    subject: str = _column("what the fact is about")
    relation: str = _column("name of the relation, a line of data/temporal_relations.csv")
    object: str = _column("the answer during that time")
    aliases: Any = _column("list of further accepted spellings")
    start: str = _column("first day, month or year: YYYY, YYYY-MM or YYYY-MM-DD")
    end: str = _column("the last one, inclusive")
    subject_popularity: float = _column("log10 of a count, see subject_counts", nullable=True)
    subject_counts: str = _column("what it counts: views of the page, people, or nothing known")
    object_popularity: float = _column("the same of the object", nullable=True)
    object_counts: str = _column("what it counts; the two compare only where it is the same")
    popularity: float = _column("of the fact: the mean where both count the same", nullable=True)
    popularity_source: str = _column("what popularity counts")
    source: str = _column("where the fact comes from, or can be checked")


class Terms(pa.DataFrameModel):
    """Terms of offices: a row a term, each chain's in the order of time (part 2)."""

    chain: str = _column("short name of the office")
    term: int = _column("place in the chain, from 0", ge=0)
    office: str = _column("what was held: the president of France")
    question: str = _column("goes on after a date: who was the president of France?")
    prefix: str = _column("how a sentence that answers begins, after a date")
    holder: str = _column("who held it; one who came back has several terms")
    aliases: Any = _column("list of further accepted spellings")
    start: str = _column("first day, month or year: YYYY, YYYY-MM or YYYY-MM-DD")
    end: str = _column("the last one; empty: later than 2020")
    source: str = _column("where the term comes from, or can be checked")


class Dates(pa.DataFrameModel):
    """Dates to ask a temporal fact with: a row a fact, precision and date."""

    fact_id: str = _column("of a TemporalFacts row")
    precision: str = _column("of the date", isin=["year", "month", "day"])
    date: str = _column("YYYY, YYYY-MM or YYYY-MM-DD")
    year: int = _column("the year that it was drawn with")
    alpha: float = _column("place of that year: 0 is the middle, -1/2 and 1/2 the ends of validity")
    years_off: float = _column("from the end of validity that is nearer; below 0 before the start")
    label: str = _column("what the date is to the validity")


class Statements(Dates):
    """Dates with what is asked about them."""

    question: str = _column("the question in full, with the date in words")
    prefix: str = _column("how a sentence that answers begins")
    object: str = _column("the answer that is scored")


class Questions(pa.DataFrameModel):
    """Paraphrased questions, a row a wording (part 3)."""

    question_id: str = _column("group and number of the wording: capital/kenya#0", unique=True)
    group_id: str = _column("what the wordings ask for: a fact_id, or a name of its own")
    variant: int = _column("0 for the original question, then the paraphrases")
    relation: str = _column("the question's category (QCat)")
    question: str = _column("the question in full")
    prefix: str = _column("how a sentence that answers begins")
    answers: Any = _column("list of accepted answers")
    popularity: float = _column("of the subject", nullable=True)
    log_popularity: float = _column("its natural logarithm; NaN if not known", nullable=True)


class ContextQuestions(pa.DataFrameModel):
    """Questions that are asked with and without a context (part 4)."""

    question_id: str = _column(
        "base question and object in small letters: city-01/kyoto", unique=True
    )
    category: str = _column("city, person, ...: the kind of object")
    base_id: str = _column("the question before an object is filled in: city-01")
    attribute: str = _column("what is asked of the object")
    object: str = _column("what the question is about")
    question: str = _column("the question in full")
    prefix: str = _column("how a sentence that answers begins; a context is such a sentence")
    answers: Any = _column("list of right answers; empty for the thesis's questions")
    right_answers: str = _column("one or several: how many different answers can be right")
    popularity: float = _column("of the subject", nullable=True)


# -- what models said (probes) ---------------------------------------------------------------------


class Generated(pa.DataFrameModel):
    """What models said to facts."""

    model: str = _column("the name that the model was loaded by")
    fact_id: str = _column("of the fact that was asked")
    text: str = _column("what the model said, up to the stop")
    token_ids: Any = _column("list of the answer's token ids")
    logprobs: Any = _column("list of their log-probabilities, untempered")


class Answers(Generated):
    """Greedy answers to facts (part 1)."""

    prompt_format: str = _column("a key of models.prompts.FORMATS")
    prompt: str = _column("what the model was given")
    top_tokens: Any = _column("a list a token: the ten likeliest tokens there")
    top_logprobs: Any = _column("a list a token: their log-probabilities")
    curve: Any = _column("log P_t of the answer at each temperature asked, or empty")
    entropies: Any = _column("of the whole distribution at each token (nats), or empty")


class Samples(Generated):
    """Sampled answers to facts (part 1)."""

    temperature: float = _column("t that the logits were divided by", ge=0)
    sample: int = _column("number of the sample, from 0")
    tempered_logprobs: Any = _column("the same under the distribution that they were drawn from")


class Curves(pa.DataFrameModel):
    """log P_t of greedy answers: a row a model, fact and temperature (part 1)."""

    model: str = _column("the name that the model was loaded by")
    fact_id: str = _column("of the fact that was asked")
    temperature: float = _column("t that the logits were divided by", gt=0)
    logprob: float = _column("log P_t(answer | prompt)", coerce=True)


class Scores(Dates):
    """log P of a temporal fact's object under each date (part 2)."""

    model: str = _column("the name that the model was loaded by")
    prompt_format: str = _column("a key of models.prompts.FORMATS")
    logprob: float = _column("summed over the object's tokens", le=0, gt=float("-inf"))
    n_tokens: int = _column("how many these are", ge=1)
    freed: float = _column(
        "logprob minus the mean log P of other objects; NaN if not asked", nullable=True
    )

    class Config:
        """A date is asked once: two rows of it would count as two dates."""

        unique = ("model", "prompt_format", "fact_id", "precision", "date")


class HolderScores(pa.DataFrameModel):
    """log P of an office's holders after the question who held it in a year (part 2)."""

    model: str = _column("the name that the model was loaded by")
    chain: str = _column("of a term of an office")
    year: int = _column("the year that was asked for")
    term: int = _column("number of the term in which it lies, from 0", ge=0)
    candidate: int = _column("number of the term whose holder is scored", ge=0)
    holder: str = _column("that holder")
    true: bool = _column("it is who held the office in that year")
    logprob: float = _column("summed over the tokens of the name", le=0)
    prior: float = _column("the same after the question without a date", le=0)

    class Config:
        """A term's holder is scored once a moment."""

        unique = ("model", "chain", "year", "candidate")


class Responses(pa.DataFrameModel):
    """Answers to wordings; sampled ones have a column `sample`, their number (part 3)."""

    model: str = _column("the name that the model was loaded by")
    prompt_format: str = _column("a key of models.prompts.FORMATS")
    question_id: str = _column("of the wording that was asked")
    group_id: str = _column("of its group")
    variant: int = _column("its number in the group")
    relation: str = _column("the question's category (QCat)")
    prompt: str = _column("what the model was given")
    text: str = _column("the first sentence of what it said")
    raw: str = _column("all that it said")
    logprobs: Any = _column("list of the log-probabilities of the tokens of raw")


class ContextResults(pa.DataFrameModel):
    """Answers without and with a context, and their perplexities (part 4)."""

    model: str = _column("the name that the model was loaded by")
    question_id: str = _column("of the question that was asked")
    category: str = _column("the kind of object")
    base_id: str = _column("the question before an object is filled in")
    object: str = _column("what the question is about")
    parametric: str = _column("the answer without a context")
    counterfactual: str = _column("the answer that the context states", coerce=True)
    contextual: str = _column("the answer with the context")
    p0: float = _column("perplexity of parametric without context", nullable=True)
    p1: float = _column("of counterfactual without context", nullable=True)
    p2: float = _column("of parametric with the context", nullable=True)
    p3: float = _column("of counterfactual with the context", nullable=True)
    p4: float = _column("of contextual with the context", nullable=True)
    n_tokens_parametric: float = _column("tokens of parametric", nullable=True, coerce=True)
    n_tokens_counterfactual: float = _column("of counterfactual", nullable=True, coerce=True)
    first_entropy: float = _column("H of the first token without context, top 10", nullable=True)
    first_entropy_context: float = _column("the same with the context", nullable=True)
    first_shift: float = _column("Jensen-Shannon distance of the two", nullable=True)


# -- what it is worth (metrics) --------------------------------------------------------------------


class MarkedAnswers(Answers):
    """Answers with the fact's columns and what they are worth (part 1)."""

    exact_match: bool = _column("the text is an accepted answer but for case and articles")
    contains: bool = _column("an accepted answer occurs in the text as whole words")
    entropy: float = _column("H over the top 10, base 10, mean over tokens", nullable=True)


class MarkedSamples(Samples):
    """Samples with what they are worth (part 1)."""

    domain: str = _column("of the fact")
    answer_type: str = _column("of the fact")
    correct: bool = _column("an accepted answer occurs in the text")
    certainty: float = _column("mean probability of the tokens as drawn", nullable=True)
    certainty_at_1: float = _column("the same, untempered", nullable=True)


class Robustness(pa.DataFrameModel):
    """Breaking temperature and FRS: a row a model, fact and d (part 1)."""

    model: str = _column("the name that the model was loaded by")
    fact_id: str = _column("of the fact")
    domain: str = _column("of the fact")
    answer_type: str = _column("of the fact")
    entropy: float = _column("H of the greedy answer", nullable=True)
    t_b: float = _column("breaking temperature; inf where none breaks it", nullable=True)
    d: int = _column("weight of the temperature in equation 3")
    frs: float = _column("Factual Robustness Score, equation 4", nullable=True)


class Matched(pa.DataFrameModel):
    """Matches of correct with incorrect dates: a row a model, format, fact, precision (part 2)."""

    model: str = _column("the name that the model was loaded by")
    prompt_format: str = _column("a key of models.prompts.FORMATS")
    fact_id: str = _column("of the fact")
    precision: str = _column("year, month, day, or global: all matches of the three")
    n_correct: int = _column("correct dates", ge=0)
    n_incorrect: int = _column("incorrect dates", ge=0)
    matches: int = _column("their pairs", ge=0)
    wins: int = _column("pairs whose correct date has the greater log P", ge=0)
    ties: int = _column("pairs of equal log P, which count as lost", ge=0)
    win_rate: float = _column("W, equation 1: wins / matches", nullable=True)
    robust: pd.BooleanDtype = _column("R, equation 2: no match lost", nullable=True)
    margin: float = _column("least difference of log P over the matches", nullable=True)
    chance: float = _column("P(R) if all scores were independent and alike", nullable=True)


class MarkedResponses(Responses):
    """Answers to wordings, right or wrong (part 3)."""

    answers: Any = _column("list of accepted answers")
    log_popularity: float = _column("of the subject", nullable=True)
    correct: bool = _column("an accepted answer is stated (metrics.wording.stated)")
    substring: bool = _column("PopQA's rule: an accepted answer is a substring")

    class Config:
        """A wording is asked of a model once."""

        unique = ("model", "question_id")


class AnswerSets(pa.DataFrameModel):
    """All answers, or all samples, of a model to one question (part 3)."""

    model: str = _column("the name that the model was loaded by")
    group_id: str = _column("of the question")
    texts: Any = _column("list of the answers, in the order of the rows")
    n_answers: int = _column("how many", ge=1)
    n_empty: int = _column("how many of them are empty", ge=0)
    logprob: float = _column("mean over answers of their tokens' mean log P", nullable=True)
    int_sim: float = _column("mean similarity over pairs, equation 1", nullable=True)


class Groups(pa.DataFrameModel):
    """A question with what may predict that it is answered rightly (part 3)."""

    model: str = _column("the name that the model was loaded by")
    group_id: str = _column("of the question")
    relation: str = _column("its category (QCat)")
    correct: bool = _column("the original question is answered rightly")
    substring: bool = _column("the same by PopQA's rule")
    accuracy: float = _column("share of right answers over all wordings", ge=0, le=1)
    scons_raw: float = _column("mean similarity of the answers to all wordings")
    scons: float = _column("the same, clipped to [0, 1]", ge=0, le=1)
    cert_raw: float = _column("mean similarity of the samples of the original question")
    cert: float = _column("the same, clipped to [0, 1]", ge=0, le=1)
    scons_bare: float = _column("scons of the answers without the question's words", ge=0, le=1)
    n_answers: int = _column("answers behind scons", ge=1)
    n_empty: int = _column("how many of them are empty", ge=0)
    agreement: float = _column("share of pairs of answers that are the same text")
    logprob: float = _column("mean log P of the original's greedy tokens", nullable=True, le=0)
    predictive_entropy: float = _column("minus the samples' mean log P a token", nullable=True)
    string_entropy: float = _column("entropy of the samples over equal texts", ge=0)
    semantic_entropy: float = _column("the same over texts that say the same", ge=0)
    rouge_l: float = _column("mean Rouge-L F over pairs of samples", ge=0, le=1)
    log_popularity: float = _column("of the subject", nullable=True)


class MarkedContext(ContextResults):
    """Answers with a context, and where they come from (part 4)."""

    source: Any = _column(
        "parametric, contextual, other, none or same: where contextual comes from"
    )
    sound: bool = _column("all three texts are answers, and the first two differ")
    kind: pd.Int64Dtype = _column("of an other answer: 1 to 7", nullable=True)
    kind_rule: Any = _column("the rule that told the kind", nullable=True)
    preference: Any = _column("parametric or contextual by perplexity", nullable=True)
    parametric_correct: pd.BooleanDtype = _column(
        "parametric is right; NA if unknown", nullable=True
    )
    counterfactual_correct: pd.BooleanDtype = _column("counterfactual is right", nullable=True)
    correct: pd.BooleanDtype = _column("contextual is right", nullable=True)
