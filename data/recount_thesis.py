"""Recount the thesis's published answers by our rules: data/published/4-context-recount.csv.

    python data/recount_thesis.py FOLDER

FOLDER holds the four result files of its author's repository (llama.csv, llama-70b.csv,
flan-t5-xl.csv, flan-t5-xxl.csv; 4,760 answers each), which have no licence and are not part of this
repository. Counts of them are facts."""

import argparse
from pathlib import Path

import pandas as pd

from factrobust.context.rules import decide, degeneracy, published_source, same_answer
from factrobust.paths import DATA

FILE = DATA / "published" / "4-context-recount.csv"
NAMES = {
    "llama": "llama-3.1-8B",
    "llama-70b": "llama-3.1-70B",
    "flan-t5-xl": "flan-t5-xl",
    "flan-t5-xxl": "flan-t5-xxl",
}
KEYS = ["model", "published", "ours", "says_nothing"]
SOURCE = "results published by the thesis's author, 4,760 answers a model, recounted here"


def recount(folder: Path) -> pd.DataFrame:
    """Numbers of answers, a row a model, verdict of the thesis's code and verdict of our rules."""
    rows = []
    for file, model in NAMES.items():
        table = pd.read_csv(folder / f"{file}.csv", dtype=str, keep_default_na=False)
        texts = table[["parametric", "counterfactual", "contextual"]].map(str.strip)
        for parametric, counterfactual, answer in texts.itertuples(index=False, name=None):
            published = published_source(parametric, counterfactual, answer)
            ours = decide(parametric, counterfactual, answer).source
            is_decided = not same_answer(parametric, counterfactual)
            nothing = (degeneracy(answer) or "") if is_decided else ""
            rows.append((model, published, ours, nothing))
    table = pd.DataFrame(rows, columns=KEYS)
    counts = table.groupby(KEYS, sort=False).size().rename("count").reset_index()
    counts["model"] = pd.Categorical(counts["model"], [*NAMES.values()])
    counts = counts.sort_values(["model", "count"], ascending=[True, False], kind="stable")
    return counts.assign(where=SOURCE, check="ok")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    recount(parser.parse_args().folder).to_csv(FILE, index=False)
