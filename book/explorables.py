"""Five pages that move, each a single file that opens without a network, of data/teaching/.

python book/explorables.py FOLDER     # writes temperature.html, years.html, wordings.html, ...

A page in explorables/ is its text, controls and figure; common.js draws, common.css is the look. Only
the standard library is needed, so that `make book` and `make read` can make them.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data" / "teaching"
NEVER = 99.0  # stands for infinity in the tables
Row = dict[str, str]


def read(name: str) -> list[Row]:
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(text: str) -> float | None:
    return float(text) if text else None


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def temperature() -> list[dict[str, Any]]:
    """Known facts: question, text of the answer, t_b (None: never), curve of [temperature, log P]."""
    curves = grouped(read("curves"), "model", "fact_id")
    return [
        {"model": row["model"], "question": row["question"], "text": row["text"],
         "t_b": None if float(row["t_b"]) >= NEVER else float(row["t_b"]),
         "curve": [[float(at["temperature"]), float(at["logprob"])] for at in curves[key]]}
        for row in read("answers")
        if (key := (row["model"], row["fact_id"])) in curves and row["t_b"]
    ]  # fmt: skip


def years() -> list[dict[str, Any]]:
    """Dated facts: years in order and log P at each, without those in which the fact began or ended; the
    place of the first true one and their number k."""
    found = []
    for (model, _), rows in grouped(read("years"), "model", "fact_id").items():
        dated = sorted(
            (r for r in rows if r["label"] != "transitional"), key=lambda r: int(r["year"])
        )
        true = [row["label"] == "correct" for row in dated]
        if len(dated) - sum(true) >= 3 and not (true[0] or true[-1]):
            about = {name: dated[0][name] for name in ("subject", "object", "relation")}
            about["relation"] = about["relation"].replace("_", " ")
            times = {"years": [int(row["year"]) for row in dated]}
            logs = {"logprobs": [float(row["logprob"]) for row in dated]}
            place = {"first": true.index(True), "k": sum(true)}
            found.append({"model": model} | about | times | logs | place)
    return found


def wordings() -> list[dict[str, Any]]:
    """Questions in all wordings: questions, texts, correct (1 or 0), and the answer."""
    found = []
    for (model, _), rows in grouped(read("wordings"), "model", "group_id").items():
        lists = {"questions": [r["question"] for r in rows], "texts": [r["text"] for r in rows]}
        right = {"correct": [int(row["correct"]) for row in rows]}
        found.append({"model": model, "answer": rows[0]["answer"]} | lists | right)
    return found


def context() -> list[dict[str, Any]]:
    """Facts by context: what the model says, and the perplexities of both answers."""
    texts = ("model", "question", "context", "sentence", "memory", "stated", "answer", "source")
    return [
        {name: row[name] for name in texts}
        | {name: number(row[name]) for name in ("p0", "p1", "p2", "p3")}
        | {name: int(float(row[name] or 0)) for name in ("knows", "right")}
        for row in read("contexts")
    ]


def exposure() -> list[dict[str, Any]]:
    """The invented world's facts without dates: how many are known and kept."""
    return [
        {"model": row["model"], "timing": row["timing"], "contradicted": float(row["contradicted"])}
        | {name: int(row[name]) for name in ("exposure", "n", "known", "kept")}
        for row in read("world")
    ]


PAGES: dict[str, Callable[[], list[dict[str, Any]]]] = {
    page.__name__: page for page in (temperature, years, wordings, context, exposure)
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
        if name == "exposure" and not (DATA / "world.csv").exists():
            print("no data/teaching/world.csv: run `python data/build_teaching.py world`")
            continue
        (folder / f"{name}.html").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
