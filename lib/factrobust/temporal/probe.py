"""Part 2: how probable is a fact's object after a question with a date? A date makes some answers
likelier whatever is asked. So (ours) wrong names are scored after the same question, and all names
after the question of wrong subjects (`temporal.facts.other_subjects`)."""

import numpy as np
import pandas as pd

from factrobust.models.interface import Model
from factrobust.models.prompts import (
    FORMATS,
    as_asked,
    prompts,
)
from factrobust.temporal.dates import COLUMNS, verbalise
from factrobust.temporal.facts import WORDING, with_wording


def statements(facts: pd.DataFrame, dates: pd.DataFrame) -> pd.DataFrame:
    """`schemas.Dates` of facts with what is asked: `schemas.Statements`, and `others`. The date stands
    before question and prefix: "In December 2019, who was the head of state of Sri Lanka?" (paper 2,
    3.1, appendix E). A fact of `temporal.facts.of_all_subjects` is asked once a subject."""
    facts = with_wording(facts)
    columns = ["fact_id", "asked_of", *WORDING, "object", "others"]
    columns = [name for name in columns if name in facts]
    table = dates.merge(facts[columns], on="fact_id", how="left")
    spoken = table["date"].map({date: verbalise(date) for date in table["date"].unique()})
    for column in WORDING:
        table[column] = (spoken + ", " + table[column]).where(table[column] != "", "")
    return table


def scored_statements(
    model: Model,
    statements: pd.DataFrame,
    prompt_format: str | None = None,
) -> pd.DataFrame:
    """log P(object | dated question) of each of `schemas.Statements`: `schemas.Scores`. The tokens
    are the smallest suffix of prompt + separator + object that covers separator and object (paper
    2, appendix D). The same of the `others`, if there are any, are `other_logprobs`."""
    name = prompt_format or model.prompt_format
    answers = [[text] for text in statements["object"]]
    if "others" in statements:
        pairs = zip(answers, statements["others"], strict=True)
        answers = [[*first, *others] for first, others in pairs]
    sent = zip(
        prompts(model, statements, name),
        answers,
        strict=True,
    )
    asked = [(prompt, FORMATS[name].separator + text) for prompt, texts in sent for text in texts]
    values = iter(
        model.score(
            [prompt for prompt, _ in asked],
            [text for _, text in asked],
        )
    )
    scores = []
    for texts in answers:
        tokens = [next(values) for _ in texts]
        first, *rest = (float(np.sum(v, dtype=np.float64)) for v in tokens)
        scores.append((first, len(tokens[0]), rest))
    kept = [name for name in (*COLUMNS, "asked_of") if name in statements]
    table = as_asked(model, statements[kept], name)
    found = pd.DataFrame(
        scores,
        table.index,
        ["logprob", "n_tokens", "other_logprobs"],
    )
    return table.join(
        found.astype(
            {
                "logprob": float,
                "n_tokens": int,
                "other_logprobs": object,
            }
        )
    )


def holders(
    model: Model,
    terms: pd.DataFrame,
    moments: pd.DataFrame,
) -> pd.DataFrame:
    """log P of every holder of an office after the question who held it in a year:
    `schemas.HolderScores`. A row a moment of `moments` (chain, term, year) and term of its chain in
    `terms` (`temporal.facts.load_successions`). The prior is after the question without a date."""
    # 1. Every holder of the chain at each moment, and once without a date.
    candidates = terms[["chain", "term", "holder", *WORDING]].rename(columns={"term": "candidate"})
    right = terms[["chain", "term", "holder"]].rename(columns={"holder": "right"})
    dated = moments[["chain", "term", "year"]].merge(right, on=["chain", "term"])
    dated = dated.merge(candidates, on="chain")
    undated = candidates[candidates["chain"].isin(moments["chain"])].copy()
    # 2. The questions: "In 2019, who was ..." and "Who was ...".
    spoken = dated["year"].astype(str).map(verbalise)
    for column in WORDING:
        dated[column] = (spoken + ", " + dated[column]).where(dated[column] != "", "")
        undated[column] = undated[column].str[:1].str.upper() + undated[column].str[1:]
    # 3. Their scores.
    both = pd.concat([dated, undated], ignore_index=True)
    answers = FORMATS["question"].separator + both["holder"]
    values = model.score(prompts(model, both, "question"), answers.tolist())
    sums = np.array([np.sum(v, dtype=np.float64) for v in values])
    is_right = dated["holder"] == dated["right"]
    table = dated.assign(model=model.name, true=is_right, logprob=sums[: len(dated)])
    prior = undated[["chain", "candidate"]].assign(prior=sums[len(dated) :])
    columns = ["model", "chain", "year", "term", "candidate", "holder", "true", "logprob"]
    return table[columns].merge(prior, how="left")
