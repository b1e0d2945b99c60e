"""The README's numbers, from the committed tables they are quoted from.

`python tests/readme.py` rewrites them; a test says whether they are up to date.
"""

import re
from pathlib import Path

import pandas as pd

from factrobust import paths

# A block a part, "1 decoding": what stands around it is written by hand.
BLOCK = re.compile(
    r"(<!-- results ([^:]+): python tests/readme.py -->\n).*?(<!-- /results -->)", re.S
)
NUMBERS = ["mean", "low", "high", "n"]
# What is quoted: its part and its words, the table under figures/, and the rows of it that are meant.
QUOTED = """
1 decoding: FRS, mean over domains, t_b by ten samples a temperature (paper) ; 1-decoding/table-01 ; d == 1 and over == 'domains' and estimator == 'by samples'
1 decoding: FRS, mean over domains, t_b from the probability of the answer ; 1-decoding/table-01 ; d == 1 and over == 'domains' and estimator == 'from P_t'
2 time: win rate at the year ; 2-time/table-win-rate ; precision == 'year'
2 time: the same, minus that of wrong names under the same dates ; 2-time/table-win-rate-nulls ; precision == 'year' and null == 'wrong names'
2 time: the same, against years more than 20 off ; 2-time/table-by-distance ; years == 'over 20'
2 time: step at the start and the end, minus that of wrong names (nats) ; 2-time/figure-boundaries ; boundary == 'both'
2 time: robustness at the year, no match lost ; 2-time/table-robustness ; precision == 'year'
2 time: robustness at all three precisions ; 2-time/table-robustness ; precision == 'global'
2 time: the right holder of an office named for a year, no name preferred in general ; 2-time/table-offices ; measure == 'right' and score == 'above'
2 time: what a model adds to the order of the holders and the usual length of a term (bits a year) ; 2-time/table-office-order ; measure == 'bits'
3 wording: correctness of the original questions ; 3-wording/table-correctness ; n > 0
3 wording: consistency of the answers to paraphrases, SCons ; 3-wording/table-consistency ; n > 0
3 wording: before rounding to right or wrong, the share of facts in the variance ; 3-wording/table-latent ; source == 'fact'
3 wording: the share of the interaction, a wording that breaks this fact and not that one ; 3-wording/table-latent ; source == 'interaction'
3 wording: AUC within relations, as a sign of a right answer, of one answer's log-probability ; 3-wording/table-ladder ; predictor == 'sum' and measure == 'auc_within'
3 wording: the same of the certainty of ten samples, Cert ; 3-wording/table-ladder ; predictor == 'Cert' and measure == 'auc_within'
3 wording: the same of the consistency over wordings, SCons ; 3-wording/table-ladder ; predictor == 'SCons' and measure == 'auc_within'
4 context: answers that follow a contradicting context, of those that make sense ; 4-context/table-sound ; source == 'contextual'
4 context: false contexts that win over a fact that the model knows ; 4-context/table-dose ; factor == 'all'
4 context: right answers, without a context ; 4-context/table-contexts ; facts == 'all' and context == 'none'
4 context: right answers, with a true one ; 4-context/table-contexts ; facts == 'all' and context == 'true'
4 context: right answers, with one about another subject ; 4-context/table-contexts ; facts == 'all' and context == 'irrelevant'
4 context: right answers, with a false one ; 4-context/table-contexts ; facts == 'all' and context == 'false'
5 exposure: of facts told 64 times or more, spaced over the training, the share that is right at its end ; 5-exposure/table-timing ; timing == 'spaced' and model in @SIZES
5 exposure: the same, told as often in the first half of the training alone ; 5-exposure/table-timing ; timing == 'early' and model in @SIZES
5 exposure: spaced sentences from which on half of the facts are right ; 5-exposure/table-one-half ; told == 'spaced' and model in @SIZES
5 exposure: sentences, at all times, from which on half of the facts are kept against a false context ; 5-exposure/table-keeping ; what == 'half are kept' and model in @SIZES
5 exposure: right at the date asked for, minus the same with the dates swapped ; 5-exposure/table-when ; answer == 'beyond' and model in @SIZES
6 together: still right in other wordings, mean of five ; 6-together/table-ways ; way == 'other wordings'
6 together: behind a sentence about another subject ; 6-together/table-ways ; way == 'an irrelevant context'
6 together: behind a false sentence ; 6-together/table-ways ; way == 'a false context'
6 together: after rounding the weights to 4 bits ; 6-together/table-share ; way == 'round' and dose == 4
6 together: AUC within relations, as a sign of what survives a change of the weights, of log P ; 6-together/table-pooled ; predictor == 'logprob' and measure == 'auc_within'
6 together: the same of the FRS ; 6-together/table-pooled ; predictor == 'frs' and measure == 'auc_within'
6 together: the same of the share of right wordings ; 6-together/table-pooled ; predictor == 'wordings' and measure == 'auc_within'
"""

SIZES = ["world-s", "world-m", "world-l"]  # of the models grown on the invented world


def results(part: str, figures: Path, quoted: str = QUOTED) -> str:
    """The README's table of a part ("1 decoding"): a row a quoted number, a column a model."""
    rows = {}
    for line in quoted.strip().splitlines():
        words, table, where = line.split(" ; ")
        if words.startswith(f"{part}: "):
            rows[words.removeprefix(f"{part}: ")] = _cells(figures / f"{table}.csv", where)
    cells = pd.DataFrame.from_dict(rows, orient="index").fillna("")
    if SIZES[0] in cells:
        cells = cells[SIZES]
    lines = [["---"] * (len(cells.columns) + 1), *cells.reset_index().values]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"| | {' | '.join(cells.columns)} |\n{table}"


def _cells(file: Path, where: str) -> dict[str, str]:
    """Mean, interval and n of each model in the rows of a table that are meant."""
    table = pd.read_csv(file).rename(columns={"share": "mean", "half_effect": "mean"})
    # Some tables have a column a model and number ("gemma mean"), the others a row a model.
    models = [c.removesuffix(" mean") for c in map(str, table.columns) if c.endswith(" mean")]
    parts = [
        table.rename(columns={f"{model} {name}": name for name in NUMBERS}).assign(model=model)
        for model in models
    ]
    rows = (pd.concat(parts) if parts else table).query(where)
    told = {}
    for row in rows[["model", *NUMBERS]].itertuples(index=False):
        mean, low, high = (f"{x:.3f}" if abs(x) < 2 else f"{x:.1f}" for x in row[1:4])
        told[str(row.model)] = f"{mean} [{low}, {high}], n = {row.n:.0f}"
    return told


def with_results(readme: str, figures: Path) -> str:
    return BLOCK.sub(lambda m: f"{m[1]}{results(m[2], figures)}\n{m[3]}", readme)


def main() -> None:
    path = paths.ROOT / "README.md"
    text = with_results(path.read_text(encoding="utf-8"), paths.ROOT / "figures")
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
