"""The README's numbers, from the committed table they are quoted from.

python -m factrobust.reproduce.readme          rewrites them
python -m factrobust.reproduce.readme --check  only says whether they are up to date, by exit status
"""

from __future__ import annotations

import re
import sys

import pandas as pd

from factrobust import paths

BEGIN = "<!-- results: python -m factrobust.reproduce.readme -->"
END = "<!-- /results -->"
ESTIMATORS = {
    "sampled": "ten samples a temperature (paper)",
    "answer probability, same grid": "probability of the answer",
}


def results(table: pd.DataFrame) -> str:
    """The README's table of mean FRS at d = 1, from table 1 (a row an estimator and d)."""
    at_one = table[table["d"] == 1].set_index("estimator")
    models = [c.removesuffix(" mean") for c in at_one.columns if c.endswith(" mean")]
    lines = [
        "| breaking temperature by | " + " | ".join(models) + " |",
        "| --- " * (len(models) + 1) + "|",
    ]
    for name, label in ESTIMATORS.items():
        row = at_one.loc[name]
        cells = [
            f"{row[f'{m} mean']:.3f} [{row[f'{m} low']:.3f}, {row[f'{m} high']:.3f}], n = {row[f'{m} n']:.0f}"
            for m in models
        ]
        lines.append("| " + " | ".join([label, *cells]) + " |")
    return "\n".join(lines)


def with_results(readme: str, table: pd.DataFrame) -> str:
    """The README's text with its results replaced; ValueError if the markers are gone."""
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"README.md has no line {BEGIN!r}; put it back where the results belong")
    return pattern.sub(lambda _: f"{BEGIN}\n{results(table)}\n{END}", readme)


def main(arguments: list[str]) -> int:
    path = paths.ROOT / "README.md"
    table = pd.read_csv(paths.ROOT / "figures" / "1-decoding" / "table-01.csv")
    old = path.read_text(encoding="utf-8")
    new = with_results(old, table)
    if "--check" not in arguments:
        path.write_text(new, encoding="utf-8")
    return int("--check" in arguments and new != old)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
