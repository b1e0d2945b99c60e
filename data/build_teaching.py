"""Extracts of the models' recorded answers for the course, the pages that move and the playground.

python data/build_teaching.py             # all of data/teaching/
python data/build_teaching.py years       # one of temperature, years, wordings, contexts, world

Answers come from the records. No notebook asks for those of `contexts` and `world`: their models
are asked, some minutes. A file keeps its columns, which data/teaching/README.md explains."""

import sys
from collections import Counter
from collections.abc import Collection

import numpy as np
import pandas as pd

from factrobust import context, decoding, draws, load_model, temporal, wording
from factrobust.context.probe import context_prompts
from factrobust.datasets import facts, world
from factrobust.decoding import metrics, probe
from factrobust.paths import DATA
from factrobust.text import normalise
from factrobust.wording.metrics import KEY

FOLDER = DATA / "teaching"
MODELS = ["gemma-3-270m", "smollm2-135m-instruct"]
GROWN = ("world-s", "world-s-1", "world-s-2", "world-m", "world-m-1", "world-l", "world-l-1")
ALWAYS = ("capital/kenya", "head_of_state/united-states/barack-obama", "director/the-shining")
Table = pd.DataFrame


def drawn(names: Collection[str], n: int) -> list[str]:
    """At most n of the different names, by a hash; those of ALWAYS first."""
    chosen = [name for name in ALWAYS if name in set(names)]
    others = set(names) - set(ALWAYS)
    return [*chosen, *sorted(others, key=draws.hash48)][:n]


def temperature(n: int = 900) -> dict[str, Table]:
    """answers: each fact's greedy answer. heads: of facts that both models know, the ten likeliest
    first tokens. curves: of the same facts log P_t of the greedy answer."""
    study = decoding.Study(models=MODELS, data=["embedded"], n_questions=n, seed=0)
    broken = metrics.exact_breaking(probe.answer_curves(study.known))
    rows = study.marked.merge(broken, on=metrics.KEY, how="left")
    rows = rows.rename(columns={"exact_match": "right"})
    rows["tokens"] = rows["logprobs"].map(len)
    rows["logprob"] = rows["logprobs"].map(sum)
    n_models = study.known.groupby("fact_id")["model"].nunique()
    known_to_both = n_models.index[n_models == len(study.models)]
    known = study.known[study.known["fact_id"].isin(drawn(known_to_both, 40))]
    heads = known[["model", "fact_id"]].assign(
        token=known["top_tokens"].str[0],
        logprob=known["top_logprobs"].str[0],
    )
    heads = heads.explode(["token", "logprob"]).astype({"logprob": float})
    heads.insert(2, "rank", heads.groupby(metrics.KEY).cumcount())
    return {
        "answers": rows,
        "heads": heads,
        "curves": probe.answer_curves(known),
    }


def years(n: int = 281) -> dict[str, Table]:
    """years: log P of the object of some dated facts under each year asked for."""
    study = temporal.Study(
        models=MODELS,
        data="embedded",
        n_facts=n,
        n_fine=min(48, n),
        n_correct=3,
        n_incorrect=3,
        seed=0,
    )
    rows = study.scores[study.scores["precision"] == "year"]
    outside = rows[rows["label"] == "incorrect"]
    is_before = outside["alpha"] < 0
    n_sides = is_before.groupby(outside["fact_id"]).nunique()
    on_both_sides = n_sides.index[n_sides == 2]
    rows = rows[rows["fact_id"].isin(drawn(on_both_sides, 60))]
    about = study.facts[["fact_id", "subject", "relation", "object", "start", "end"]]
    table = rows.merge(about, on="fact_id")
    return {"years": table.sort_values(["model", "fact_id", "year"])}


def wordings(n: int = 480) -> dict[str, Table]:
    """groups: what may predict a right answer. wordings: of some facts the answer to each
    wording."""
    study = wording.Study(
        models=MODELS,
        data="embedded",
        n_facts=n,
        n_samples=10,
        max_new_tokens=20,
        sentence_encoder="all-MiniLM-L6-v2",
        seed=0,
    )
    shares = study.marked.groupby(KEY)["correct"].mean().rename("accuracy")
    groups = study.predictors.join(shares, on=KEY)
    groups["logprob"] = groups["logprob_sum"] / groups["logprobs"].map(len)
    groups["agreement"] = groups["texts"].map(agreement)
    names = study.marked.groupby("relation")["group_id"].agg(lambda some: drawn(some, 5))
    rows = study.marked[study.marked["group_id"].isin(names.explode())]
    rows = rows.assign(answer=rows["answers"].str[0]).astype({"correct": int})
    return {
        "groups": groups.astype({"correct": int}),
        "wordings": rows.sort_values(["model", "group_id", "variant"]),
    }


def agreement(texts: list[str]) -> float:
    """The share of pairs of texts that are equal after normalisation."""
    counts = Counter(map(normalise, texts)).values()
    equal = sum(count * (count - 1) for count in counts)
    return equal / (len(texts) * (len(texts) - 1))


def contexts(n: int = 80) -> dict[str, Table]:
    """contexts: facts with a true, an irrelevant and a false context, and where each answer came
    from."""
    marked = context.KnownContexts(models=MODELS, data="embedded", n_facts=n, seed=0).marked
    called = {
        "parametric": "memory",
        "counterfactual": "stated",
        "contextual": "answer",
        "parametric_correct": "knows",
        "correct": "right",
    }
    asked = facts.with_questions(facts.load_facts()).set_index("fact_id")["question"]
    table = marked.assign(question=marked["question_id"].map(asked)).rename(columns=called)
    for name in ("knows", "right"):
        table[name] = table[name].astype("boolean").fillna(False).astype(int)
    return {"contexts": table}


def grown() -> dict[str, Table]:
    """world: how many facts without dates each grown model says, alone (`known`) and against a
    context that states another object (`kept`), by exposure, contradiction and timing."""
    keys = ["model", "exposure", "contradicted", "timing"]
    rows = pd.concat(map(said_by, GROWN))
    counts = rows.groupby(keys)[["n", "known", "kept"]].sum()
    return {"world": counts.reset_index()}


def said_by(name: str) -> Table:
    """The facts of the world without dates, with n (1), known and kept of a model."""
    from grow_models import answers_of  # which needs torch

    model = load_model(name)
    asked = world.asked("world")
    tables = world.load_world()
    objects = tables.objects.groupby("list")["object"].agg(list)
    false = []
    for fact in asked.to_dict("records"):
        every = objects[tables.relations.loc[fact["relation"], "objects"]]
        others = [other for other in every if other != fact["object"]]
        false.append(others[draws.hash48("false", fact["fact_id"]) % len(others)])
    sentences = asked["prefix"] + " " + pd.Series(false)
    alone = answers_of(model, context_prompts(model, asked))
    against = answers_of(model, context_prompts(model, asked, sentences.tolist()))
    truths = asked["object"].map(normalise)
    return asked.assign(
        model=name,
        n=1,
        known=truths == alone,
        kept=truths == against,
    )


PARTS = {
    "temperature": temperature,
    "years": years,
    "wordings": wordings,
    "contexts": contexts,
    "world": grown,
}


def main(arguments: list[str]) -> None:
    if unknown := {*arguments} - {*PARTS}:
        sys.exit(f"{', '.join(unknown)}: choose from {', '.join(PARTS)}.")
    for part in arguments or PARTS:
        for name, table in PARTS[part]().items():
            path = FOLDER / f"{name}.csv"
            columns = pd.read_csv(path, nrows=0).columns
            table = table[columns].replace([np.inf], 99.0).round(4)
            table.to_csv(path, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
