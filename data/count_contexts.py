"""Count the contexts about each fact that a grown decoder met in its corpus:
data/world/contexts.csv.

    python data/count_contexts.py

A row a seed and fact that met any: fact_id, seed, contexts, and of these `false`, which state
another object. Which questions stand behind a context is drawn while the courses are made
(`data/schooling.py`), so the courses are made again here."""

from __future__ import annotations

from unittest import mock

import pandas as pd
from grow_models import courses

from factrobust.datasets import world as w
from factrobust.exposure import corpus as c
from factrobust.models import grow as g

FILE = w.FOLDER / "contexts.csv"
SEEDS = (0, 1, 2)


def counted(world: w.World, seed: int) -> pd.DataFrame:
    """fact_id, seed, contexts and false of the facts that met any, sorted by fact_id."""
    facts = world.facts[world.facts["start"] == ""].merge(world.wordings, on="relation")
    about = {
        fact.prefix.replace("{subject}", fact.subject): (fact.fact_id, fact.object)
        for fact in facts.itertuples()
    }
    told = {"world": c.corpus(world, seed)}
    with mock.patch.object(g, "rows", lambda texts, tokenizer, size=0: list(texts)):
        *_, course = courses(g.Plan("decoder", seed), world, told, None, (0.0, 0.0))
    met = []
    for (text, _), *_ in course.data:
        context, _, asked = text.partition("]. ")
        prefix = asked.rpartition(" A: ")[2]
        if context.startswith(f"Context: [{prefix} ") and prefix in about:
            name, truth = about[prefix]
            met.append((name, seed, not context.endswith(f" {truth}")))
    table = pd.DataFrame(met, columns=["fact_id", "seed", "false"])
    counts = table.groupby(["fact_id", "seed"])["false"].agg(contexts="size", false="sum")
    return counts.reset_index()


if __name__ == "__main__":
    found = [counted(w.load_world(), seed) for seed in SEEDS]
    pd.concat(found).to_csv(FILE, index=False, lineterminator="\n")
