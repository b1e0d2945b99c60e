"""Extracts of the models' recorded answers for the course, the pages that move and the playground.

python data/build_teaching.py             # all of data/teaching/, from the records: no model is run
python data/build_teaching.py years       # one of temperature, years, wordings, contexts, world

`world` asks the small models of data/world/ instead, a few seconds each. data/teaching/README.md
says what the columns mean."""

import os
import sys

import numpy as np
import pandas as pd

from factrobust import draws
from factrobust.paths import DATA

FOLDER = DATA / "teaching"
MODELS = ["gemma-3-270m", "smollm2-135m-instruct"]
GROWN = ("world-s", "world-s-1", "world-s-2", "world-m", "world-m-1", "world-l", "world-l-1")
ALWAYS = ("capital/kenya", "head_of_state/united-states/barack-obama", "director/the-shining")
Table = pd.DataFrame


def drawn(names: pd.Series, n: int) -> list[str]:
    """At most n of the different names, by a hash; those of ALWAYS first."""
    different = sorted(set(names), key=lambda name: (name not in ALWAYS, draws.hash48(name)))
    return different[:n]


def temperature(n: int = 900) -> dict[str, Table]:
    """answers: each fact's greedy answer. heads: of facts that both models know, the ten likeliest
    first tokens. curves: of the same facts log P_t of the greedy answer."""
    from factrobust import decoding
    from factrobust.decoding import metrics, probe

    study = decoding.Study(models=MODELS, data=["embedded"], n_questions=n, seed=0)
    broken = metrics.exact_breaking(probe.curves(study.known))
    rows = study.marked.merge(broken, on=metrics.KEY, how="left")
    rows["tokens"], rows["logprob"] = rows["logprobs"].map(len), rows["logprobs"].map(sum)
    rows = rows.rename(columns={"exact_match": "right"})
    columns = "model fact_id relation domain question object text right tokens logprob entropy t_b"
    both = study.known.groupby("fact_id")["model"].nunique()
    few = drawn(pd.Series(both.index[both == len(study.models)]), 40)
    known = study.known[study.known["fact_id"].isin(few)]
    heads = [
        (model, fact, rank, token, logprob)
        for model, fact, tokens, logs in zip(
            known["model"],
            known["fact_id"],
            known["top_tokens"],
            known["top_logprobs"],
            strict=True,
        )
        for rank, (token, logprob) in enumerate(zip(tokens[0], logs[0], strict=True))
    ]
    return {
        "answers": rows[columns.split()],
        "heads": pd.DataFrame(heads, columns=["model", "fact_id", "rank", "token", "logprob"]),
        "curves": probe.curves(known),
    }


def years(n: int = 281) -> dict[str, Table]:
    """years: log P of the object of some dated facts under each year asked for."""
    from factrobust import temporal

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
    sides = rows.assign(before=rows["alpha"] < 0).query("label == 'incorrect'")
    full = sides.groupby("fact_id")["before"].nunique() == 2  # dates on both sides
    rows = rows[rows["fact_id"].isin(drawn(pd.Series(full.index[full]), 60))]
    facts = study.facts[["fact_id", "subject", "relation", "object", "start", "end"]]
    table = rows.merge(facts, on="fact_id")
    columns = "model fact_id subject relation object start end year label logprob"
    return {"years": table[columns.split()].sort_values(["model", "fact_id", "year"])}


def wordings(n: int = 480) -> dict[str, Table]:
    """groups: what may predict a right answer. wordings: of some facts the answer to each
    wording."""
    from factrobust import wording

    study = wording.Study(
        models=MODELS,
        data="embedded",
        n_facts=n,
        n_samples=10,
        max_new_tokens=20,
        sentence_encoder="all-MiniLM-L6-v2",
        seed=0,
    )
    columns = "model group_id relation correct accuracy scons cert agreement logprob"
    names = study.marked[["group_id", "relation"]].drop_duplicates()
    few = [name for _, part in names.groupby("relation") for name in drawn(part["group_id"], 5)]
    rows = study.marked[study.marked["group_id"].isin(few)]
    rows = rows.assign(
        correct=rows["correct"].astype(int), answer=rows["answers"].map(lambda names: names[0])
    )
    asked = "model group_id relation variant question answer text correct"
    return {
        "groups": study.groups[columns.split()].astype({"correct": int}),
        "wordings": rows[asked.split()].sort_values(["model", "group_id", "variant"]),
    }


def contexts(n: int = 80) -> dict[str, Table]:
    """contexts: facts with a true, an irrelevant and a false context, and where each answer came
    from."""
    from factrobust import context

    marked = context.KnownContexts(models=MODELS, data="embedded", n_facts=n, seed=0).marked
    answers = {"parametric": "memory", "counterfactual": "stated", "contextual": "answer"}
    columns = (
        "model question_id question context sentence memory stated answer source p0 p1 p2 p3 p4"
    )
    flags = {"parametric_correct": "knows", "correct": "right"}
    questions = study_questions(marked)
    table = marked.assign(question=questions).rename(columns=answers | flags)
    for name in flags.values():
        table[name] = table[name].astype("boolean").fillna(False).astype(int)
    return {"contexts": table[[*columns.split(), *flags.values()]]}


def study_questions(marked: Table) -> pd.Series:
    """The question of each row, as it is asked without a context."""
    from factrobust.datasets.facts import load_facts, questions

    asked = questions(load_facts()).set_index("fact_id")["question"]
    return marked["question_id"].map(asked)


def world() -> dict[str, Table]:
    """world: how many facts without dates each grown model says, alone (`known`) and against a
    context that states another object (`kept`), by exposure, contradiction and timing."""
    keys = ["model", "exposure", "contradicted", "timing"]
    names = [name for name in GROWN if (DATA / "world" / "models" / name).is_dir()]
    counts = pd.concat(map(_said, names)).groupby(keys)[["n", "known", "kept"]].sum()
    return {"world": counts.reset_index()}


def _said(name: str) -> Table:
    from grow_models import said

    from factrobust import load_model
    from factrobust.context.probe import context_prompts
    from factrobust.datasets.world import asked, load_world
    from factrobust.text import normalise

    model, facts, tables = load_model(name), asked("world"), load_world()
    objects = tables.objects.groupby("list")["object"].agg(list)
    others = [
        [x for x in objects[tables.relations.loc[fact.relation, "objects"]] if x != fact.object]
        for fact in facts.itertuples()
    ]
    false = [
        xs[draws.hash48("false", f) % len(xs)]
        for xs, f in zip(others, facts["fact_id"], strict=True)
    ]
    sentences = (facts["prefix"] + " " + false).tolist()
    truths = facts["object"].map(normalise)
    known = said(model, context_prompts(model, facts))
    kept = said(model, context_prompts(model, facts, sentences))
    return facts.assign(model=name, n=1, known=truths == known, kept=truths == kept)


PARTS = {part.__name__: part for part in (temperature, years, wordings, contexts, world)}


def main(arguments: list[str]) -> None:
    if unknown := {*arguments} - {*PARTS}:
        sys.exit(f"{', '.join(unknown)}: choose from {', '.join(PARTS)}.")
    os.environ.setdefault("FACTROBUST_RECORDS", "replay")
    FOLDER.mkdir(exist_ok=True)
    for part in arguments or PARTS:
        for name, table in PARTS[part]().items():
            numbers = table.select_dtypes(float).columns
            table[numbers] = table[numbers].replace([np.inf], 99.0).round(4)
            table.to_csv(FOLDER / f"{name}.csv", index=False, lineterminator="\n")
            print(f"{name}: {len(table)} rows")


if __name__ == "__main__":
    main(sys.argv[1:])
