"""Count the contexts about each fact that a grown decoder met in its corpus:
data/world/contexts.csv.

    python data/count_contexts.py

A row a seed and fact that met any: fact_id, seed, contexts, and of these `false`, which state
another object. Which questions stand behind a context is drawn while the lessons are made
(`data/schooling.py`), so the lessons are made again here."""

import pandas as pd
from schooling import lessons

from factrobust.datasets import world as w
from factrobust.exposure.corpus import corpus
from factrobust.models.grow import Plan

FILE = w.FOLDER / "contexts.csv"
SEEDS = (0, 1, 2)


def counted(world: w.World, seed: int) -> pd.DataFrame:
    """fact_id, seed, contexts and false of the facts that met any, sorted by fact_id."""
    undated = world.facts[world.facts["start"] == ""]
    facts = undated.merge(world.wordings, on="relation")
    about = {}
    for fact in facts.itertuples():
        prefix = fact.prefix.replace("{subject}", fact.subject)
        about[prefix] = fact.fact_id, fact.object
    told = {"world": corpus(world, seed)}
    plan = Plan("decoder", seed)
    *_, lesson = lessons(plan, world, told, (0.0, 0.0))
    rows = []
    for (text, _), *_ in lesson.texts:
        context, _, asked = text.partition("]. ")
        _, _, prefix = asked.rpartition(" A: ")
        is_about_it = context.startswith(f"Context: [{prefix} ")
        if is_about_it and prefix in about:
            name, truth = about[prefix]
            is_false = not context.endswith(f" {truth}")
            rows.append((name, seed, is_false))
    table = pd.DataFrame(rows, columns=["fact_id", "seed", "false"])
    by_fact = table.groupby(["fact_id", "seed"])["false"]
    counts = by_fact.agg(contexts="size", false="sum")
    return counts.reset_index()


if __name__ == "__main__":
    found = [counted(w.load_world(), seed) for seed in SEEDS]
    pd.concat(found).to_csv(FILE, index=False, lineterminator="\n")
