"""The numbers of the pages that newcomers read, from the committed tables they are quoted from.

`python tests/readme.py` rewrites them; a test says whether they are up to date.
"""

import json
import re
from pathlib import Path

import pandas as pd

from factrobust import paths

PUBLISHED = paths.DATA / "published"
PAGES = ("README.md", "notebooks/results.md", "profiles/README.md")
# A block a part, "1 decoding": what stands around it is written by hand.
BLOCK = re.compile(
    r"(<!-- results ([^:]+): python tests/readme.py -->\n).*?(<!-- /results -->)", re.S
)
# The map of the papers' tables and figures, of data/published/artifacts.csv.
MAP = re.compile(r"(<!-- artifacts: python tests/readme.py -->\n).*?(<!-- /artifacts -->)", re.S)
# What `make flips` finds, of the same models as in 6.4.
FLIPS = re.compile(r"(<!-- flips: python tests/readme.py -->\n).*?(<!-- /flips -->)", re.S)
NUMBERS = ["mean", "low", "high", "n"]
# What some tables call the estimate before its interval.
MEANS = {"share": "mean", "half_effect": "mean", "r": "mean"}
# What is quoted: its part and its words, the table under figures/, and the rows of it that are
# meant.
QUOTED = """
1 decoding: right answers, words drawn at a temperature of 1 ; 1-decoding/table-accuracy ; of == 't = 1'
1 decoding: right answers, words drawn at a temperature of 2 ; 1-decoding/table-accuracy ; of == 't = 2'
1 decoding: FRS, t_b by ten samples a temperature, as in the paper ; 1-decoding/table-01 ; d == 1 and estimator == 'by samples'
1 decoding: FRS, t_b from the probability of the answer at the same temperatures ; 1-decoding/table-01 ; d == 1 and estimator == 'from P_t'
1 decoding: the same, all logits times 2 ; 1-decoding/table-dial-moves ; of == 'FRS' and s == 2
1 decoding: the same, all logits times 4 ; 1-decoding/table-dial-moves ; of == 'FRS' and s == 4
2 time: win rate, dates given as years ; 2-time/figure-04 ; measure == 'win rate' and precision == 'year'
2 time: win rate minus that of wrong names ; 2-time/table-nulls ; measure == 'win rate' and null == 'other names'
2 time: win rate minus that under wrong subjects ; 2-time/table-nulls ; measure == 'win rate' and null == 'other subjects'
2 time: what a right date adds to a right name, in nats: any name gains it (the date) ; 2-time/figure-cube ; effect == 'the date'
2 time: this name gains it under any subject (the name's era) ; 2-time/figure-cube ; effect == "the name's era"
2 time: any name gains it under this subject (the subject's era) ; 2-time/figure-cube ; effect == "the subject's era"
2 time: what is left for the fact ; 2-time/figure-cube ; effect == 'the fact'
2 time: robustness, dates given as years ; 2-time/figure-04 ; measure == 'robustness' and precision == 'year'
3 wording: right answers to the original questions ; 3-wording/table-overall ; of == 'correct'
3 wording: how alike the answers to all wordings are, SCons ; 3-wording/table-overall ; of == 'SCons'
3 wording: answers that flip under a paraphrase, no example ; 3-wording/figure-floor ; kind == 'paraphrase' and prompt == 'no example'
3 wording: the floor, no word changed ; 3-wording/figure-floor ; kind == 'no word changed' and prompt == 'no example'
3 wording: answers that flip under a paraphrase, two examples ; 3-wording/figure-floor ; kind == 'paraphrase' and prompt == 'two examples'
3 wording: the floor, no word changed, two examples ; 3-wording/figure-floor ; kind == 'no word changed' and prompt == 'two examples'
3 wording: worst to best wording, no example ; 3-wording/table-worst-to-best ; kind == 'paraphrase' and prompt == 'no example'
3 wording: worst to best wording, two examples ; 3-wording/table-worst-to-best ; kind == 'paraphrase' and prompt == 'two examples'
3 wording: AUC of the log-probability of one answer ; 3-wording/table-signs ; predictor == 'sum'
3 wording: AUC of Cert ; 3-wording/table-signs ; predictor == 'Cert'
3 wording: AUC of SCons ; 3-wording/table-signs ; predictor == 'SCons'
4 context: false sentences followed: in the question's words, the answer last ; 4-context/table-places ; words == 'question' and place == 'last' and model not in @GROWN
4 context: in other words, the answer first ; 4-context/table-places ; words == 'other' and place == 'first' and model not in @GROWN
4 context: in the question's words, wherever the answer stands ; 4-context/table-meter ; part == 'following' and words == 'question' and model not in @GROWN
4 context: the same sentences with nonsense for the words of meaning (copying) ; 4-context/table-meter ; part == 'copying' and words == 'question' and model not in @GROWN
4 context: the difference (reading) ; 4-context/table-meter ; part == 'reading' and words == 'question' and model not in @GROWN
4 context: right after a true sentence in the question's words ; 4-context/table-meter ; part == 'right, true' and words == 'question' and model not in @GROWN
4 context: right after a true sentence in other words ; 4-context/table-meter ; part == 'right, true' and words == 'other' and model not in @GROWN
4 context: right after a sentence without an answer ; 4-context/table-meter ; part == 'right, filler' and words == 'question' and model not in @GROWN
4 context: right after a false sentence in the question's words ; 4-context/table-meter ; part == 'right, false' and words == 'question' and model not in @GROWN
5 exposure: told 64 times or more, all through the training: right at its end ; 5-exposure/table-timing ; timing == 'spaced' and model in @SIZES
5 exposure: told 64 times or more, in the first half alone: right at its end ; 5-exposure/table-timing ; timing == 'early' and model in @SIZES
5 exposure: number of sentences, spaced, at which half of the facts are right ; 5-exposure/table-one-half ; told == 'spaced' and model in @SIZES
5 exposure: number of sentences at which half of the facts resist a false sentence ; 5-exposure/table-keeping ; what == 'half are kept' and model in @SIZES
5 exposure: facts with dates: right answers minus right answers with the dates swapped ; 5-exposure/table-when ; answer == 'beyond' and model in @SIZES
6 together: lost in heat: samples at half the model's own median t_b ; 6-together/table-ways ; way == 'heat, beside nearly none' and what == 'lost' and whose == 'gemma-3-270m'
6 together: lost in other words ; 6-together/table-ways ; way == 'other words, beside none changed' and what == 'lost' and whose == 'gemma-3-270m'
6 together: lost where no word changed ; 6-together/table-ways ; way == 'other words, beside none changed' and what == 'under its placebo' and whose == 'gemma-3-270m'
6 together: lost behind a false sentence ; 6-together/table-ways ; way == 'a false sentence, beside nonsense' and what == 'lost' and whose == 'gemma-3-270m'
6 together: lost behind its nonsense twin ; 6-together/table-ways ; way == 'a false sentence, beside nonsense' and what == 'under its placebo' and whose == 'gemma-3-270m'
6 together: lost behind a filler without a rival ; 6-together/table-ways ; way == 'a false sentence, beside a filler' and what == 'under its placebo' and whose == 'gemma-3-270m'
6 together: lost at 4 bits ; 6-together/table-ways ; way == '4 bits, beside 8' and what == 'lost' and whose == 'gemma-3-270m'
6 together: lost at 8 bits ; 6-together/table-ways ; way == '4 bits, beside 8' and what == 'under its placebo' and whose == 'gemma-3-270m'
6 together: dated facts lost to years outside, less under a wrong subject ; 6-together/table-ways ; way == 'a year, beside a wrong subject' and what == 'difference' and whose == 'gemma-3-270m'
6 together: AUC of log P, for holding at 4 bits ; 6-together/table-foretold ; failure == '4 bits' and predictor == 'logprob'
6 together: AUC of the FRS, for the same ; 6-together/table-foretold ; failure == '4 bits' and predictor == 'frs'
6 together: AUC of the share right in other words, for the same ; 6-together/table-foretold ; failure == '4 bits' and predictor == 'words'
"""

SIZES = ["world-s", "world-m", "world-l"]  # of the models grown on the invented world
GROWN = [*SIZES, "world-t5"]
# The columns of a part's table, as far as its models go.
MODELS = [
    "gemma-3-270m",
    "smollm2-135m-instruct",
    "qwen2.5-coder-0.5b-instruct",
    "qwen2.5-coder-1.5b-instruct",
    *SIZES,
]


def results(part: str, figures: Path, quoted: str = QUOTED) -> str:
    """The results' table of a part ("1 decoding"): a row a quoted number, a column a model. An n
    that all models share stands behind the words."""
    rows = {}
    for line in quoted.strip().splitlines():
        words, name, where = line.split(" ; ")
        if words.startswith(f"{part}: "):
            quoted_cells = _cells(figures / f"{name}.csv", where)
            counts = {n for _, n in quoted_cells.values()}
            shared = f" (n = {counts.pop()})" if len(counts) == 1 else ""
            row = {}
            for model, (text, n) in quoted_cells.items():
                row[model] = text if shared else f"{text}, n = {n}"
            rows[words.removeprefix(f"{part}: ") + shared] = row
    table = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    table = table[sorted(table, key=MODELS.index)]
    lines = [["---"] * (len(table.columns) + 1), *table.reset_index().values]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"| | {' | '.join(table.columns)} |\n{text}"


def _cells(file: Path, where: str) -> dict[str, tuple[str, int]]:
    """Mean with interval, and n, of each model in the rows of a table that are meant."""
    table = pd.read_csv(file).rename(columns=MEANS)
    # Some tables have a column a model and number ("gemma mean"), the others a row a model.
    models = [c.removesuffix(" mean") for c in map(str, table.columns) if c.endswith(" mean")]
    parts = [
        table.rename(columns={f"{model} {name}": name for name in NUMBERS}).assign(model=model)
        for model in models
    ]
    rows = (pd.concat(parts) if parts else table).query(where)
    cells = {}
    for row in rows[["model", *NUMBERS]].itertuples(index=False):
        mean, low, high = (f"{x:.3f}" if abs(x) < 2 else f"{x:.1f}" for x in row[1:4])
        cells[str(row.model)] = f"{mean} [{low}, {high}]", round(row.n)
    return cells


def artifacts() -> pd.DataFrame:
    """Every table and figure of the four papers; data/README.md has the columns."""
    return pd.read_csv(PUBLISHED / "artifacts.csv", keep_default_na=False)


def mapped(figures: Path) -> str:
    """The map of the papers' tables and figures, with the notebook that makes each of ours."""
    lines = ["| paper | what it shows | here | note | theirs | Gemma |", "| --- " * 6 + "|"]
    for row in artifacts().itertuples(index=False):
        place = f"{row.paper}, {row.where}"
        numbers = f"{_theirs(row.theirs)} | {_ours(row.ours, figures)}"
        lines.append(
            f"| {place} | {row.shows} | {_here(row.path, figures)} | {row.note} | {numbers} |"
        )
    return "\n".join(lines)


def _here(path: str, figures: Path) -> str:
    """A link to the notebook that wrote figures/PATH.csv, and the name that it has there."""
    if not path:
        return ""
    about = json.loads((figures / f"{path}.json").read_text(encoding="utf-8"))
    notebook = about["notebook"].removeprefix("notebooks/")
    number = Path(notebook).name.partition("-")[0]
    return f"[{number}]({notebook}), {Path(path).name}"


def _theirs(quoted: str) -> str:
    """The number in data/published that "table ; rows ; column" means, and its model."""
    if not quoted:
        return ""
    name, where, column = quoted.split(" ; ")
    table = pd.read_csv(PUBLISHED / f"{name}.csv").query(where)
    [number] = table.eval(column)
    return f"{float(number):.2f} ({table['model'].item()})"


def _ours(quoted: str, figures: Path) -> str:
    """Gemma's number in figures/ that "table ; rows" means, with its interval and n."""
    if not quoted:
        return ""
    name, where = quoted.split(" ; ")
    mean, n = _cells(figures / f"{name}.csv", where)["gemma-3-270m"]
    return f"{mean}, n = {n}"


def printed(figures: Path) -> str:
    table = pd.read_csv(figures / "6-together" / "table-flips.csv", keep_default_na=False)
    table = table.round(dict.fromkeys(NUMBERS, 3))
    return f"```text\n{table.to_string(index=False)}\n```"


def with_results(page: str, figures: Path) -> str:
    page = MAP.sub(lambda m: f"{m[1]}{mapped(figures)}\n{m[2]}", page)
    page = FLIPS.sub(lambda m: f"{m[1]}{printed(figures)}\n{m[2]}", page)
    return BLOCK.sub(lambda m: f"{m[1]}{results(m[2], figures)}\n{m[3]}", page)


def main() -> None:
    for path in map(paths.ROOT.joinpath, PAGES):
        text = with_results(path.read_text(encoding="utf-8"), paths.ROOT / "figures")
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
