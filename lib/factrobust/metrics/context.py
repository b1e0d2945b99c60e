"""Does an answer come from memory or from the context (thesis, 3.2.2 and 3.3)?

Responses are the rows of `probes.context.ask`: the answer without context (parametric), the one that
the context states (counterfactual), the answer given with the context (contextual), and the
log-probabilities of their tokens; results are the same with perplexities (`measured`), and marked
results with the source of each answer (`mark_sources`).

Two rules, here and in all functions that take `rule`:

"published" is what the thesis's code does (listing 5). Source: lower-case both answers, delete the
letters "the" wherever they stand, and commas; they are equal if one begins the other, so that an
empty answer equals any, "1" equals "1969", and "Netherlands" loses letters. (The text, 3.2.2, has
another rule, `text_source`.) Preference:
parametric if P4 > P3, the perplexity of the answer given over that of the counterfactual, which
says nothing of the parametric answer; a missing perplexity is contextual.

"robust" is the default. Source: the rules of `metrics.answer_rules`, by which an answer of kind 1 is
parametric and one of kind 5 contextual, and empty answers are "empty". Preference: the text's
definition (3.3.3, figure 4), parametric if P2 < P3, contextual if P2 > P3; equal perplexities are a
"tie" (answers of one token do tie), missing ones are missing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from factrobust.metrics.answer_rules import KINDS, NEGATION, Decision, Judge, decide, judged
from factrobust.metrics.decoding import top_entropy
from factrobust.metrics.phrases import WORDS, empty
from factrobust.metrics.values import Quantity, date, meet, quantity, shared_parts
from factrobust.statistics import Interval, binomial_interval, bootstrap_mean
from factrobust.text import contains, exact_match, normalise

SOURCES = ("parametric", "contextual", "other", "empty")
PREFERENCES = ("parametric", "contextual", "tie")
ANSWERS = ("parametric", "counterfactual", "contextual")
PERPLEXITIES = ("p0", "p1", "p2", "p3", "p4")
CORRECT = {
    "parametric_correct": "parametric",
    "counterfactual_correct": "counterfactual",
    "correct": "contextual",
}
SOURCE_OF_KIND = {None: "empty", 1: "parametric", 5: "contextual"}
ORDERED: dict[str, tuple] = {"source": SOURCES, "preference": PREFERENCES, "kind": tuple(KINDS)}
DEGENERATE = ("empty", "option", "marks", "short")
OPTION = re.compile(r"\s*(?:[(\[{]\s*(?:\w|[ivxIVX]{2,4})|(?:[A-E]|[a-e]))(?!\w)[^\w]*")
MARK = re.compile(r"(?<!\w)[A-Z]:")
STOP_WORDS = frozenset(WORDS["function"].split())

Alternatives = Sequence[tuple[str, float]]  # (token, natural log-probability), the likeliest ones


def measured(responses: pd.DataFrame) -> pd.DataFrame:
    """Responses of `probes.context.ask` or `ask_known` with their numbers: `schemas.ContextResults`.

    A perplexity is NaN for an empty answer, and for one that was not scored.
    """
    lists = responses.reindex(columns=[f"logprobs_{name}" for name in PERPLEXITIES])
    lists = lists.set_axis(PERPLEXITIES, axis="columns").astype(object)
    first, with_context = responses["first"], responses["first_context"]
    shifts = [first_shift(a, b) for a, b in zip(first, with_context, strict=True)]
    return responses.assign(
        **lists.map(perplexity).astype(float),
        n_tokens_parametric=lists["p0"].map(len, na_action="ignore").astype(float),
        n_tokens_counterfactual=lists["p1"].map(len, na_action="ignore").astype(float),
        first_entropy=first.map(first_entropy).astype(float),
        first_entropy_context=with_context.map(first_entropy).astype(float),
        first_shift=np.array(shifts, dtype=float),
    )


def perplexity(logprobs: ArrayLike) -> float:
    """exp of the mean negative natural log-probability of an answer's tokens, [token].

    It equals 2 to the mean negative log2 probability (equations 1 and 2). NaN without tokens.
    """
    x = np.asarray(logprobs, dtype=float)
    return float(np.exp(-x.mean())) if x.size else np.nan


def first_entropy(alternatives: Alternatives) -> float:
    """Entropy in nats of the likeliest first tokens, renormalised to sum to one.

    It is at most ln k for k tokens (models give ten); NaN for fewer than two.
    """
    logs = [p for _, p in alternatives]
    return top_entropy(logs) * float(np.log(len(logs))) if len(logs) > 1 else float("nan")


def first_shift(one: Alternatives, other: Alternatives) -> float:
    """Jensen-Shannon distance of two first-token distributions, 0 (equal) to sqrt(ln 2).

    The square root of the divergence, with the natural logarithm, over the union of the tokens of
    both lists and the rest. A token that is in one list only counts in the other's rest, so what is
    beyond the lists makes the distance somewhat too large. NaN if a list is empty.
    """
    if not one or not other:
        return float("nan")
    p, q = ({token: float(np.exp(logprob)) for token, logprob in x} for x in (one, other))
    pairs = np.array([(p.get(token, 0.0), q.get(token, 0.0)) for token in p | q])
    both = np.vstack([pairs, np.clip(1 - pairs.sum(axis=0), 0, 1)])
    divergence = rel_entr(both, both.mean(axis=1, keepdims=True)).sum() / 2
    return float(np.sqrt(max(0.0, divergence)))


def answer_counts(
    results: pd.DataFrame, questions: pd.DataFrame, models: Sequence[str]
) -> pd.DataFrame:
    """What became of the questions, a row a model (the index).

    Columns: questions, no_counterfactual (those that `probes.context.ask` left out of the results),
    and of each of ANSWERS how many have no letter or digit: empty_parametric, ...
    """
    texts = results[list(ANSWERS)].map(lambda text: not any(c.isalnum() for c in text)).astype(bool)
    counts = texts.groupby(results["model"]).sum().add_prefix("empty_")
    counts = counts.reindex(pd.Index(models), fill_value=0)
    if "context" not in results:
        answered = results.groupby("model").size().reindex(counts.index, fill_value=0)
        counts.insert(0, "no_counterfactual", len(questions) - answered)
    counts.insert(0, "questions", len(questions))
    return counts.rename_axis("model")


def published_source(parametric: str, counterfactual: str, contextual: str) -> str:
    """Source of an answer by the published comparison (see above): parametric is tested first."""
    texts = (contextual, parametric, counterfactual)
    a, p, c = (x.lower().replace("the", "").replace(",", "").strip() for x in texts)
    if a.startswith(p) or p.startswith(a):
        return "parametric"
    return "contextual" if a.startswith(c) or c.startswith(a) else "other"


def text_source(parametric: str, counterfactual: str, contextual: str) -> str:
    """Source of an answer by the thesis's text (3.2.2): what follows a full stop, punctuation and stop
    words removed, one answer's words are a subsequence of the other's.

    The text leaves open which words stop (ours: `function` of data/words.yaml), that case does not
    count, and which answer is compared first (parametric, as in the code). No words are a subsequence
    of any.
    """
    a, p, c = map(_left_words, (contextual, parametric, counterfactual))
    return "parametric" if _within(a, p) else "contextual" if _within(a, c) else "other"


def _left_words(text: str) -> list[str]:
    words = re.sub(r"[^\w\s]|_", "", text.partition(".")[0].lower()).split()
    return [word for word in words if word not in STOP_WORDS]


def _within(one: list[str], other: list[str]) -> bool:
    """Whether the shorter one's words stand in the longer in their order, also with others between."""
    short, long = sorted((one, other), key=len)
    rest = iter(long)
    return all(word in rest for word in short)


def robust_source(parametric: str, counterfactual: str, contextual: str, **known: Any) -> str:
    """Source of an answer by `metrics.answer_rules`, whose `decide` is told what is `known`."""
    kind = decide(parametric, counterfactual, contextual, **known).kind
    return SOURCE_OF_KIND.get(kind, "other")


def right(text: str, answers: Sequence[str]) -> bool:
    """Whether a text states an accepted answer: its words, or the same date or number.

    A date must be as precise as the answer. What the text negates it does not state ("not Paris").
    """
    before = NEGATION.split(text)[0].strip()
    stated = before or text.partition(" but ")[2].strip()
    if exact_match(text, answers) or contains(stated, answers):
        return True
    when, number = date(stated), quantity(stated)
    for answer in answers:
        then, value = date(answer), quantity(answer)
        if when and then and then.month:
            if shared_parts(when, then) == sum(part is not None for part in then):
                return True
        elif number and value and meet(number, value) and _width(number) <= _width(value):
            return True
    return False


def _width(number: Quantity) -> float:
    return number.high - number.low


def preference(results: pd.DataFrame, rule: str = "robust") -> pd.Series:
    """Which source the perplexities prefer, [row]: one of PREFERENCES, or None where missing."""
    p2, p3, p4 = (results[name] for name in ("p2", "p3", "p4"))
    by_rule = {
        "robust": np.select([p2 < p3, p2 > p3, p2 == p3], PREFERENCES, None),  # type: ignore[call-overload]
        "published": np.where(p4 > p3, "parametric", "contextual"),
    }
    return pd.Series(by_rule[rule], index=results.index, dtype=object, name="preference")


def mark_sources(
    results: pd.DataFrame,
    questions: pd.DataFrame,
    rule: str = "robust",
    *,
    judge: Judge | None = None,
) -> pd.DataFrame:
    """`schemas.ContextResults` with the source of each answer by one of the rules: `schemas.MarkedContext`.

    Source is one of SOURCES ("published" knows no "empty"); kind (1 to 7, see `metrics.answer_rules`)
    is that of the answers that this rule or the published one calls other. `questions` are those that
    were asked (`schemas.ContextQuestions`): if only one answer is right, the accepted ones are names
    of one thing, and answers to the same base question that share it are the same. `judge` decides
    between kinds 2, 3 and 6.
    """
    asked = questions.set_index("question_id").loc[results["question_id"]]
    accepted, synonyms = asked["answers"].tolist(), _synonyms(questions)
    sources, decisions = [], []
    rows = zip(results.to_dict("records"), accepted, asked["right_answers"], strict=True)
    for row, names, right_answers in rows:
        texts = [row[name] for name in ANSWERS]
        known = {"accepted": names, "right_answers": right_answers}
        decision = decide(*texts, synonyms=synonyms[row["base_id"]], **known)
        published = published_source(*texts)
        robust = SOURCE_OF_KIND.get(decision.kind, "other")
        sources.append(published if rule == "published" else robust)
        if "other" not in (published, sources[-1]):
            decision = Decision(None, "")
        decisions.append(judged(judge, row, decision) if judge else decision)
    rules = [decision.rule if decision.kind else None for decision in decisions]
    marked = results.assign(
        source=pd.Series(sources, index=results.index, dtype=object),
        kind=pd.array([decision.kind for decision in decisions], dtype="Int64"),
        kind_rule=pd.Series(rules, index=results.index, dtype=object),
        preference=preference(results, rule),
    )
    for column, answer in CORRECT.items():
        pairs = zip(results[answer], accepted, strict=True)
        found = [right(text, names) if names else None for text, names in pairs]
        marked[column] = pd.array(found, dtype="boolean")
    return marked


def _synonyms(questions: pd.DataFrame) -> dict[str, dict[str, frozenset[str]]]:
    """For each base question, which questions accept a normalised answer, if one answer is right."""
    found: dict[str, dict[str, frozenset[str]]] = defaultdict(dict)
    for row in questions[questions["right_answers"] != "several"].to_dict("records"):
        names = found[row["base_id"]]
        for answer in filter(None, map(normalise, row["answers"])):
            names[answer] = names.get(answer, frozenset()) | {row["question_id"]}
    return found


def changes(results: pd.DataFrame, questions: pd.DataFrame, verdict: str) -> pd.DataFrame:
    """What changes between the rules: how often each pair of verdicts occurs, most frequent first.

    `verdict` is "source" or "preference". Columns: model, published, robust ("" if missing), n, share
    (of the model's rows), kind_rule (what most often decided the robust source; "" where the rules
    agree), example (a question_id).
    """
    by_rule = {rule: mark_sources(results, questions, rule) for rule in ("published", "robust")}
    rows = results[["model", "question_id"]].assign(
        **{rule: marked[verdict].fillna("") for rule, marked in by_rule.items()}
    )
    why = by_rule["robust"]["kind_rule"].fillna("")
    rows["kind_rule"] = why.mask(rows["published"] == rows["robust"], "")
    table = rows.groupby(["model", "published", "robust"], sort=False).agg(
        n=("question_id", "size"),
        kind_rule=("kind_rule", lambda names: names.value_counts().index[0]),
        example=("question_id", "first"),
    )
    table.insert(1, "share", table["n"] / table["n"].groupby("model").transform("sum"))
    table = table.sort_values("n", ascending=False, kind="stable").reset_index()
    models = _in_order(results["model"])
    return table.sort_values("model", key=models, kind="stable", ignore_index=True)


def counts_by(
    marked: pd.DataFrame,
    by: Sequence[str] = ("model",),
    value: str = "source",
    *,
    group: str = "question_id",
    n_boot: int = 2000,
) -> pd.DataFrame:
    """How often each value occurs, and its share of the rows that have one (tables 8 to 10, 13, 14).

    `value` is source, preference or kind, whose values are all listed, or any other column. Columns:
    those of `by`, value, count, total (rows with a value), share, low, high, n (number of `group`s),
    n_missing (rows without a value). Sources, preferences and kinds stand in their order, other
    columns of `by` in that of their first rows.

    Where each group has one row, low and high are exact binomial bounds (Clopper-Pearson), which say
    how little 0 of 8 tells; resampling would say that it is 0 for sure. Where a group has several
    rows, whole groups are resampled (`bootstrap_mean`).
    """
    rows = []
    order = ORDERED.get(value, tuple(marked[value].dropna().unique()))
    for key, part in _groups(marked, by):
        known = part[part[value].notna()]
        repeated, missing = known[group].duplicated().any(), len(part) - len(known)
        for name in order:
            hits = (known[value] == name).to_numpy(dtype=float)
            share = exact_share(hits)
            if repeated:
                share = bootstrap_mean(hits, known[group], n_boot=n_boot)
            rows.append((*key, name, int(hits.sum()), len(known), *share, missing))
    columns = [*by, value, "count", "total", "share", "low", "high", "n", "n_missing"]
    return pd.DataFrame(rows, columns=columns)


def shares(counts: pd.DataFrame, by: Sequence[str] = ("model",)) -> pd.DataFrame:
    """Counts that a paper prints with their shares of the total over the columns `by`.

    `counts` has those, count, and what was counted, such as source. Adds total, share, low and high
    (exact binomial bounds, as if questions were independent) and n (the total), as in `counts_by`.
    """
    total = counts.groupby(list(by), sort=False)["count"].transform("sum")
    low, high = binomial_interval(counts["count"], total)
    return counts.assign(total=total, share=counts["count"] / total, low=low, high=high, n=total)


def perplexity_table(
    marked: pd.DataFrame,
    by: Sequence[str] = ("model", "source"),
    value: str = "p4",
    *,
    n_boot: int = 2000,
) -> pd.DataFrame:
    """Distribution of a perplexity, or any other number (tables 11 and 12).

    The thesis groups P4, the perplexity of the answer given, by the published preference: then the
    groups differ by their selection, P4 > P3. Columns: those of `by`, count, mean, low, high (of the
    mean), n (questions), std, 25%, 50%, 75%, n_missing (rows without a finite number).
    """
    rows = []
    for key, part in _groups(marked, by):
        known = part[np.isfinite(part[value].to_numpy(dtype=float))]
        numbers = known[value].astype(float)
        mean = bootstrap_mean(numbers, known["question_id"], n_boot=n_boot)
        quartiles = numbers.quantile([0.25, 0.5, 0.75])
        rows.append((*key, len(known), *mean, numbers.std(), *quartiles, len(part) - len(known)))
    columns = [*by, "count", "mean", "low", "high", "n", "std", "25%", "50%", "75%", "n_missing"]
    return pd.DataFrame(rows, columns=columns)


def degeneracy(text: str) -> str | None:
    """Why a text is hardly an answer, or None.

    "empty": no word but "the"; "option": the mark of an option, such as "(D", "[4" or
    "b)", a letter A to E also by itself; "marks": a capital and a colon somewhere, which go on with
    the prompt's form ("A: Jazz B: Rock"); "short": one or two characters without a digit. Symbols of
    elements ("Au"; "C" is an option) are degenerate here, too, and right where one is asked for.
    """
    if empty(text):
        return "empty"
    if OPTION.fullmatch(text):
        return "option"
    if MARK.search(text):
        return "marks"
    left = re.sub(r"[\W_]", "", text)
    return "short" if len(left) <= 2 and not any(c.isdigit() for c in left) else None


def degenerate_counts(results: pd.DataFrame) -> pd.DataFrame:
    """How many answers are degenerate (see `degeneracy`).

    Columns: model, answer (one of ANSWERS), empty, option, marks, short, degenerate (their sum), n
    (rows), share.
    """
    rows = results.melt("model", list(ANSWERS), "answer", "text")
    why = rows.pop("text").map(degeneracy)
    rows = rows.assign(**{name: why == name for name in DEGENERATE}, degenerate=why.notna(), n=1)
    table = rows.groupby(["answer", "model"], sort=False).sum().reset_index()
    table["share"] = table["degenerate"] / table["n"]
    return table[["model", "answer", *DEGENERATE, "degenerate", "n", "share"]]


def p0_exceptions(results: pd.DataFrame) -> pd.DataFrame:
    """How often P0 > P1, which the thesis excludes by definition (3.3.2).

    The parametric answer is greedy, so its first token is the likeliest; but a mean over several
    tokens may be lower for another answer. Only where both answers have one token is P0 <= P1 sure
    (if generation could choose from all tokens, as scoring does). Columns: model, tokens ("one each"
    or "more"), n (rows with both perplexities), exceptions, share, n_missing.
    """
    one = (results[["n_tokens_parametric", "n_tokens_counterfactual"]] == 1).all(axis=1)
    known = results[["p0", "p1"]].notna().all(axis=1)
    rows = results[["model"]].assign(
        tokens=np.where(one, "one each", "more"),
        n=known,
        exceptions=results["p0"] > results["p1"],
        n_missing=~known,
    )
    table = rows.groupby(["model", "tokens"], sort=False).sum().reset_index()
    table.insert(4, "share", table["exceptions"] / table["n"])
    return table


def exact_share(hits: np.ndarray) -> Interval:
    """Share of hits with its exact bounds (Clopper-Pearson), which say how little 0 of 8 tells."""
    n = len(hits)
    if n == 0:
        return Interval(np.nan, np.nan, np.nan, 0)
    low, high = binomial_interval(hits.sum(), n)
    return Interval(float(hits.mean()), float(low), float(high), n)


def _groups(table: pd.DataFrame, by: Sequence[str]) -> Iterator[tuple[tuple, pd.DataFrame]]:
    """The parts of a table by the columns `by`, column by column in the order of ORDERED, or else of
    the first rows; missing values last."""
    ranks = [_in_order(table[name])(table[name]) for name in by]
    for _, part in table.groupby([rank.to_numpy() for rank in ranks]):
        yield tuple(part[list(by)].iloc[0]), part


def _in_order(column: pd.Series) -> Callable[[pd.Series], pd.Series]:
    """The rank of values of such a column: in the order of ORDERED, or else of the first rows."""
    order = [*ORDERED.get(str(column.name), ()), *column.dropna().unique()]
    ranks = {value: i for i, value in enumerate(dict.fromkeys(order))}
    return lambda values: values.map(ranks).astype(float).fillna(np.inf)
