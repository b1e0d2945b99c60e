"""The README's numbers, from the committed tables they are quoted from.

python -m factrobust.reproduce.readme          rewrites them
python -m factrobust.reproduce.readme --check  only says whether they are up to date, by exit status
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd

from factrobust import paths

BEGIN = "<!-- results: python -m factrobust.reproduce.readme -->"
NUMBERS = ["mean", "low", "high", "n"]
END = "<!-- /results -->"
# What is quoted: its words, the table under figures/, and the rows of it (one a model).
QUOTED: tuple[tuple[str, str, dict[str, object]], ...] = (
    (
        "1 decoding: FRS, t_b by ten samples a temperature (paper)",
        "1-decoding/table-01.csv",
        {"estimator": "sampled", "d": 1},
    ),
    (
        "1 decoding: FRS, t_b by the probability of the answer",
        "1-decoding/table-01.csv",
        {"estimator": "answer probability, same grid", "d": 1},
    ),
    (
        "2 time: win rate over all three precisions",
        "2-time/table-win-rate.csv",
        {"precision": "global"},
    ),
    (
        "2 time: robustness, no match lost",
        "2-time/table-robustness.csv",
        {"precision": "global"},
    ),
    ("3 wording: correctness of the original questions", "3-wording/table-correctness.csv", {}),
    (
        "3 wording: consistency of the answers to paraphrases, SCons",
        "3-wording/table-consistency.csv",
        {},
    ),
    (
        "3 wording: AUC of certainty (Cert) as a sign of a right answer",
        "3-wording/table-auc.csv",
        {"measure": "Cert"},
    ),
    (
        "4 context: answers that follow a contradicting context, of those that make sense",
        "4-context/table-sound.csv",
        {"source": "contextual"},
    ),
    *(
        (
            f"4 context: right answers, {words}",
            "4-context/table-contexts.csv",
            dict[str, object](facts="all", context=context),
        )
        for context, words in (
            ("none", "without a context"),
            ("true", "with a true one"),
            ("irrelevant", "with one about another subject"),
            ("false", "with a false one"),
        )
    ),
)


def results(figures: Path) -> str:
    """The README's table: a row a quoted number, a column a model."""
    rows = {label: _cells(figures / file, where) for label, file, where in QUOTED}
    models = list(dict.fromkeys(model for cells in rows.values() for model in cells))
    lines = ["| | " + " | ".join(models) + " |", "| --- " * (len(models) + 1) + "|"]
    for label, cells in rows.items():
        lines.append("| " + " | ".join([label, *(cells.get(model, "") for model in models)]) + " |")
    return "\n".join(lines)


def _cells(file: Path, where: dict[str, object]) -> dict[str, str]:
    """Mean, interval and n of each model in the rows of a table that are meant."""
    table = pd.read_csv(file).rename(columns={"share": "mean"})
    for column, value in where.items():
        table = table[table[column] == value]
    wide = [c.removesuffix(" mean") for c in map(str, table.columns) if c.endswith(" mean")]
    parts = [
        table.rename(columns={f"{model} {name}": name for name in NUMBERS}).assign(model=model)
        for model in wide
    ]
    rows = pd.concat(parts) if parts else table
    return {
        str(model): f"{mean:.3f} [{low:.3f}, {high:.3f}], n = {n:.0f}"
        for model, mean, low, high, n in rows[["model", *NUMBERS]].itertuples(
            index=False, name=None
        )
    }


def with_results(readme: str, figures: Path) -> str:
    """The README's text with its results replaced; ValueError if the markers are gone."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"README.md has no line {BEGIN!r}; put it back where the results belong")
    return pattern.sub(lambda _: f"{BEGIN}\n{results(figures)}\n{END}", readme)


def main(arguments: list[str]) -> int:
    path = paths.ROOT / "README.md"
    old = path.read_text(encoding="utf-8")
    new = with_results(old, paths.ROOT / "figures")
    if "--check" not in arguments:
        path.write_text(new, encoding="utf-8")
    return int("--check" in arguments and new != old)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
