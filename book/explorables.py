"""Five pages that move, each a single file that opens without a network, of data/teaching/ and figures/.

python book/explorables.py FOLDER     # writes dial.html, cube.html, wordings.html, ...

A page in explorables/ is its text, controls and figure; common.js draws, common.css is the look.
"""

import json
import re
import sys
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent
PAGES = HERE / "explorables"
BOUNDED = ["mean", "low", "high"]  # an estimate with its interval
HEAD = """<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\
<title>{title}</title><link rel="icon" href="data:,"><style>{css}</style>"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>{head}</head>
<body>
{body}</body>
</html>
"""


def read(name: str) -> pd.DataFrame:
    """A table of the repository; of the figures as the notebooks wrote it."""
    return pd.read_csv(HERE.parent / f"{name}.csv", keep_default_na=False)


def dial() -> pd.DataFrame:
    """Mean FRS (d = 1): ours at each sharpness s, and the paper's models as they are."""
    ours = read("figures/1-decoding/figure-dial").assign(whose="ours")
    paper = read("data/published/1-decoding-table-1").assign(whose="paper", s=1.0)
    both = pd.concat([ours, paper])
    return both.loc[both["d"] == 1, ["whose", "model", "s", "frs"]]


def cube() -> pd.DataFrame:
    """What a right date adds to a right name, in nats: four parts of each model, with intervals."""
    return read("figures/2-time/figure-cube")[["model", "effect", "n", *BOUNDED]]


def wordings() -> pd.DataFrame:
    """Questions in all wordings: questions, texts, correct (1 or 0), and the answer."""
    table = read("data/teaching/wordings").rename(
        columns={"question": "questions", "text": "texts"}
    )
    table["correct"] = table["correct"].astype(int)
    lists = dict.fromkeys(("questions", "texts", "correct"), list)
    groups = table.groupby(["model", "group_id"], sort=False)
    return groups.agg({"answer": "first", **lists}).reset_index().drop(columns="group_id")


def meter() -> pd.DataFrame:
    """Of sentences that assert something false, by words and what they are about: the share followed,
    an example, and how much of following the false sentence is reading (it minus nonsense)."""
    table = read("figures/4-context/figure-meter")
    table = table[table["sentence"].str.startswith("asserted, ")]
    table["words"] = table.pop("sentence").str.extract(", (.*) words", expand=False)
    templates = read("data/context/meter")
    templates = templates.query("relation == 'capital' and place == 'last'")
    templates = templates.set_index("words")["sentence"]
    reading = read("figures/4-context/table-meter")
    reading = reading.query("part == 'reading'")
    reading = reading.set_index(["model", "words"])[BOUNDED]
    rows = []
    for row in table.itertuples():
        of_row = {
            "said": f"{row.mean:.0%} [{row.low:.0%}, {row.high:.0%}]",
            "sentence": example(templates[row.words], row.about),
            "reading": points(reading.loc[(row.model, row.words)]),
        }
        rows.append(of_row)
    columns = ["model", "words", "about", "n", *BOUNDED]
    return table[columns].assign(**pd.DataFrame(rows, table.index))


def points(row: pd.Series) -> dict[str, object]:
    """A difference with its interval, in numbers and in words."""
    mean, low, high = 100 * row
    return row.to_dict() | {"said": f"{mean:.0f} points [{low:.0f}, {high:.0f}]"}


def example(template: str, about: str) -> str:
    """A template of data/context/meter.csv, whose words of meaning stand as <word|nonsense>."""
    kept = r"\2" if about == "nonsense" else r"\1"
    said = re.sub(r"<([^|]*)\|([^>]*)>", kept, template)
    return said.format(subject="Peru" if about == "neighbour" else "Kenya", object="Lima")


def exposure() -> pd.DataFrame:
    """The invented world's facts without dates: how many are known and kept."""
    columns = ["model", "timing", "contradicted", "exposure", "n", "known", "kept"]
    return read("data/teaching/world")[columns]


TABLES = {table.__name__: table for table in (dial, cube, wordings, meter, exposure)}


def page(name: str) -> str:
    """A page with its data, look and code in it."""
    files = (f"{name}.html", "common.css", "common.js")
    body, css, code = ((PAGES / file).read_text(encoding="utf-8") for file in files)
    [title] = re.findall("<h1>(.*)</h1>", body)
    rows = TABLES[name]().to_dict("records")
    data = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    body = body.replace("<script>", f"<script>{code}\nconst DATA = {data};", 1)
    return PAGE.format(head=HEAD.format(title=title, css=css), body=body)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        (folder / f"{name}.html").write_text(page(name), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
