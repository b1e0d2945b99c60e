"""fill.py NOTEBOOK TEXTS: put the texts into a notebook's cells, and numbers of its tables into these.

TEXTS holds a text below each line "== NAME", for the line NAME of a cell. In a text, «table|query|format»
stands for a row of figures/6-together/table.csv: "%" is the mean as a percentage with its interval, "2" with two
digits, "m%" without its interval, "n" the number of facts, and "column:2" another column.
"""

import json
import re
import sys
import textwrap

import pandas as pd

from factrobust.paths import ROOT


def number(value: float, digits: int, scale: int) -> str:
    return f"{round(float(value) * scale, digits) + 0.0:.{digits}f}"


def filled(found: re.Match[str]) -> str:
    name, query, form = (*found[1].split("|"), "0")[:3]
    table = pd.read_csv(ROOT / "figures" / "6-together" / f"{name}.csv")
    table = table.query(query) if query else table
    if len(table) != 1:
        return f"?? {len(table)} rows: {found[1]} ??"
    row = table.iloc[0]
    if form == "n":
        return str(int(row["n"]))
    column, _, digits = form.partition(":") if ":" in form else ("", "", form)
    mean = column or ("mean" if "mean" in row else "r")
    percent, places = "%" in digits, int(re.sub(r"\D", "", digits) or 0)
    value, low, high = (
        number(row.get(c, 0), places, 100 if percent else 1) for c in (mean, "low", "high")
    )
    value += "%" if percent else ""
    return value if column or "m" in form else f"{value} [{low}, {high}]"


def wrapped(paragraph: str) -> str:
    if paragraph.startswith(("#", "|")) or "$$" in paragraph:
        return paragraph
    how = {"break_long_words": False, "break_on_hyphens": False}
    items = [" ".join(item.split()) for item in re.split(r"\n(?=- )", paragraph)]
    ends = ["  " if item.startswith("- ") else "" for item in items]
    pairs = zip(items, ends, strict=True)
    return "\n".join(textwrap.fill(item, 120, subsequent_indent=e, **how) for item, e in pairs)


def main(path: str, texts: str) -> None:
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    with open(texts, encoding="utf-8") as file:
        new = dict(re.findall(r"(?ms)^== (\w+)\n(.*?)(?=^== |\Z)", file.read()))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            text = re.sub(r"(?m)^([A-Z]{4,})$", lambda m: new.get(m[1], m[1]).strip(), text)
            text = re.sub(r"«([^»]*)»", filled, text)
            text = "\n\n".join(map(wrapped, text.split("\n\n")))
            cell["source"] = text.splitlines(keepends=True)
            print(*re.findall(r"\?\?[^?]*\?\?", text), sep="\n", end="")
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
