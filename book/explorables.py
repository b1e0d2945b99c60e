"""Five pages that move, each a single file that opens without a network, of data/teaching/ and figures/.

python book/explorables.py FOLDER     # writes dial.html, cube.html, wordings.html, ...

A page in explorables/ is its text, controls and figure; common.js draws, common.css is the look. Only
the standard library is needed, so that `make book` and `make read` can make them.
"""

import csv
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "teaching"
PUBLISHED = HERE.parent / "data" / "published"
CONTEXT = HERE.parent / "data" / "context"
FIGURES = HERE.parent / "figures"  # as the notebooks wrote their data
Row = dict[str, str]


def read(name: str, folder: Path = DATA) -> list[Row]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float | None:
    return float(text) if text else None


def bounded(row: Row) -> dict[str, float]:
    """A mean and its interval."""
    return {name: float(row[name]) for name in ("mean", "low", "high")}


def points(row: Row) -> str:
    mean, low, high = (100 * number for number in bounded(row).values())
    return f"{mean:.0f} points [{low:.0f}, {high:.0f}]"


def shares(row: Row) -> str:
    mean, low, high = bounded(row).values()
    return f"{mean:.0%} [{low:.0%}, {high:.0%}]"


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def dial() -> list[dict[str, Any]]:
    """Mean FRS (d = 1): ours at each sharpness s, and the paper's models as they are."""
    ours = read("1-decoding/figure-dial", FIGURES)
    paper = read("1-decoding-table-1", PUBLISHED)
    return [
        {
            "whose": whose,
            "model": row["model"],
            "s": float(row.get("s", 1)),
            "frs": float(row["frs"]),
        }
        for whose, rows in (("ours", ours), ("paper", paper))
        for row in rows
        if row["d"] == "1"
    ]


def cube() -> list[dict[str, Any]]:
    """What a right date adds to a right name, in nats: four parts of each model, with intervals."""
    return [
        {"model": row["model"], "effect": row["effect"], "n": int(row["n"])} | bounded(row)
        for row in read("2-time/figure-cube", FIGURES)
    ]


def wordings() -> list[dict[str, Any]]:
    """Questions in all wordings: questions, texts, correct (1 or 0), and the answer."""
    found = []
    for (model, _), rows in grouped(read("wordings"), "model", "group_id").items():
        lists = {"questions": [r["question"] for r in rows], "texts": [r["text"] for r in rows]}
        right = {"correct": [int(row["correct"]) for row in rows]}
        found.append({"model": model, "answer": rows[0]["answer"]} | lists | right)
    return found


def meter() -> list[dict[str, Any]]:
    """Of sentences that assert something false, by words and what they are about: the share followed,
    an example, and how much of following the false sentence is reading (it minus nonsense)."""
    reading = {
        (row["model"], row["words"]): bounded(row) | {"said": points(row)}
        for row in read("4-context/table-meter", FIGURES)
        if row["part"] == "reading"
    }
    examples = {
        row["words"]: row["sentence"]
        for row in read("meter", CONTEXT)
        if row["relation"] == "capital" and row["place"] == "last"
    }
    found = []
    for row in read("4-context/figure-meter", FIGURES):
        mode, words = row["sentence"].removesuffix(" words").split(", ")
        if mode == "asserted":
            found.append(
                {"model": row["model"], "words": words, "about": row["about"], "n": int(row["n"])}
                | bounded(row)
                | {"said": shares(row)}
                | {"sentence": example(examples[words], row["about"])}
                | {"reading": reading[row["model"], words]}
            )
    return found


def example(template: str, about: str) -> str:
    """A template of data/context/meter.csv, whose words of meaning stand as <word|nonsense>."""
    nonsense = about == "nonsense"
    said = re.sub(r"<([^|]*)\|([^>]*)>", lambda found: found[1 + nonsense], template)
    return said.format(subject="Peru" if about == "neighbour" else "Kenya", object="Lima")


def exposure() -> list[dict[str, Any]]:
    """The invented world's facts without dates: how many are known and kept."""
    return [
        {"model": row["model"], "timing": row["timing"], "contradicted": float(row["contradicted"])}
        | {name: int(row[name]) for name in ("exposure", "n", "known", "kept")}
        for row in read("world")
    ]


PAGES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    page.__name__: page for page in (dial, cube, wordings, meter, exposure)
}


def page(name: str) -> str:
    """A page with its data, look and code in it."""
    body = (HERE / "explorables" / f"{name}.html").read_text(encoding="utf-8")
    title = body.partition("<h1>")[2].partition("</h1>")[0]
    css, code = (
        (HERE / "explorables" / f"common.{end}").read_text("utf-8") for end in ("css", "js")
    )
    data = json.dumps(PAGES[name](), ensure_ascii=False, separators=(",", ":"))
    data = data.replace("</", "<\\/")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    head += f'<title>{title}</title><link rel="icon" href="data:,"><style>{css}</style>'
    body = body.replace("<script>", f"<script>{code}\nconst DATA = {data};", 1)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>{head}</head>\n<body>\n{body}</body>\n</html>\n'
    )


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        (folder / f"{name}.html").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
