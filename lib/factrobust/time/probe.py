"""Part 2: how probable is a fact's object after a question with a date? A date makes some answers
likelier whatever is asked. So (ours) `other_objects` of the relation, the wrong names, are scored
after the same question."""

from collections import defaultdict

import numpy as np
import pandas as pd

from factrobust.draws import hash64
from factrobust.models.interface import Model
from factrobust.models.prompts import FORMATS, as_asked, prompts
from factrobust.text import normalise
from factrobust.time.dates import COLUMNS, verbalise
from factrobust.time.facts import load_temporal_relations

WORDING = ("question", "prefix")


def statements(
    facts: pd.DataFrame, dates: pd.DataFrame, relations: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`schemas.Dates` of `schemas.TemporalFacts` with what is asked: `schemas.Statements`, and
    `others`. Wordings that facts lack are their relation's. The date stands before both: "In
    December 2019, who was the head of state of Sri Lanka?" (paper 2, 3.1, appendix E)."""
    if "question" not in facts:
        relations = load_temporal_relations() if relations is None else relations
        for column in WORDING:
            pairs = zip(relations.loc[facts["relation"], column], facts["subject"], strict=True)
            texts = [text.replace("{subject}", subject) for text, subject in pairs]
            facts = facts.assign(**{column: texts})
    columns = [name for name in ("fact_id", *WORDING, "object", "others") if name in facts]
    table = dates.merge(facts[columns], on="fact_id", how="left", validate="many_to_one")
    spoken = table["date"].map({date: verbalise(date) for date in table["date"].unique()})
    for column in WORDING:
        table[column] = (spoken + ", " + table[column]).where(table[column] != "", "")
    return table


def other_objects(facts: pd.DataFrame, n: int, *, seed: int = 0) -> pd.DataFrame:
    """`schemas.TemporalFacts` with a column `others`: n objects of other facts of the relation (or
    fewer). Never one that the fact's subject has in this relation, nor its alias. A draw depends on
    the seed and the objects of the relation, not on the facts' order."""
    spelled: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    owned: dict[tuple[str, str], set[str]] = defaultdict(set)
    rows = facts[["relation", "subject", "object", "aliases", "fact_id"]].values.tolist()
    for relation, subject, answer, aliases, _ in rows:
        names = {normalise(name) for name in (answer, *aliases)}
        spelled[relation][answer] |= names
        owned[relation, subject] |= names
    drawn = []
    for relation, subject, _, _, fact in rows:
        right = owned[relation, subject]
        others = [name for name, names in spelled[relation].items() if not names & right]
        lots = {name: hash64(f"{seed}/{fact}/{name}") for name in others}
        drawn.append(sorted(others, key=lots.__getitem__)[:n])
    return facts.assign(others=pd.Series(drawn, index=facts.index, dtype=object))


def scored(
    model: Model, statements: pd.DataFrame, prompt_format: str | None = None
) -> pd.DataFrame:
    """log P(object | dated question) of each of `schemas.Statements`: `schemas.Scores`. The tokens
    are the smallest suffix of prompt + separator + object that covers separator and object (paper
    2, appendix D). At the year the same of the `others` are `other_logprobs`."""
    name = prompt_format or model.prompt_format
    answers = [[text] for text in statements["object"]]
    if "others" in statements:  # with the years alone: they cost as much again
        every = zip(answers, statements["others"], statements["precision"], strict=True)
        answers = [[*first, *(more if unit == "year" else [])] for first, more, unit in every]
    rows = zip(prompts(model, statements, name), answers, strict=True)
    pairs = [(prompt, FORMATS[name].separator + text) for prompt, texts in rows for text in texts]
    values = iter(model.score([prompt for prompt, _ in pairs], [text for _, text in pairs]))
    scores = []
    for texts in answers:
        tokens = [next(values) for _ in texts]
        first, *rest = (float(np.sum(v, dtype=np.float64)) for v in tokens)
        scores.append((first, len(tokens[0]), rest))
    table = as_asked(model, statements[list(COLUMNS)], name)
    found = pd.DataFrame(scores, table.index, ["logprob", "n_tokens", "other_logprobs"])
    return table.join(found.astype({"logprob": float, "n_tokens": int, "other_logprobs": object}))


def holders(model: Model, terms: pd.DataFrame, moments: pd.DataFrame) -> pd.DataFrame:
    """log P of every holder of an office after the question who held it in a year:
    `schemas.HolderScores`. A row a moment of `moments` (chain, term, year) and term of its chain in
    `terms` (`time.facts.load_successions`). The prior is after the question without a date."""
    every = terms[["chain", "term", "holder", *WORDING]].rename(columns={"term": "candidate"})
    right = terms[["chain", "term", "holder"]].rename(columns={"holder": "right"})
    dated = moments[["chain", "term", "year"]].merge(right, on=["chain", "term"])
    dated = dated.merge(every, on="chain")
    spoken = dated["year"].astype(str).map(verbalise)
    for column in WORDING:
        dated[column] = (spoken + ", " + dated[column]).where(dated[column] != "", "")
        every[column] = every[column].str[:1].str.upper() + every[column].str[1:]
    every = every[every["chain"].isin(moments["chain"])]
    both = pd.concat([dated, every], ignore_index=True)
    answers = FORMATS["question"].separator + both["holder"]
    values = model.score(prompts(model, both, "question"), answers.tolist())
    sums = np.array([np.sum(v, dtype=np.float64) for v in values])
    dated = dated.assign(model=model.name, true=dated["holder"] == dated["right"])
    table = dated[["model", "chain", "year", "term", "candidate", "holder", "true"]]
    prior = every[["chain", "candidate"]].assign(prior=sums[len(dated) :])
    return table.assign(logprob=sums[: len(dated)]).merge(prior, how="left")
