"""Fill the numbers of part 4's prose from its tables: python drafts/part4/fill.py [NOTEBOOK ...]"""

import re
import sys
from pathlib import Path

import nbformat
import pandas as pd

ROOT = Path(__file__).parents[2]
MG, MS = "model=='gemma-3-270m'", "model=='smollm2-135m-instruct'"


def T(name):
    return pd.read_csv(
        ROOT / "figures" / "4-context" / f"{name}.csv", keep_default_na=False, na_values=[""]
    )


def row(name, query):
    found = T(name).query(query)
    if len(found) != 1:
        raise ValueError(f"{name}: {len(found)} rows with {query}")
    return found.iloc[0]


def N(name, query, col, digits=0):
    return f"{float(row(name, query)[col]):.{digits}f}"


def P(name, query, col="mean"):
    return f"{100 * float(row(name, query)[col]):.0f}%"


def I(name, query, digits=2, pct=False, col="mean"):  # noqa: E743
    r = row(name, query)
    ends = [f"{col}_low", f"{col}_high"] if f"{col}_low" in r else ["low", "high"]
    x, low, high = ((100 if pct else 1) * float(r[c]) for c in (col, *ends))
    text = f"{x:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"
    return re.sub(r"-(0(?:\.0+)?)(?![\d.])", r"\1", text)


def X(name, query):
    return I(name, query, 0, True) + "%"


def A(name, query):
    return I(name, query, 2, False, "auc")


def V(way):
    return " and ".join(
        N("table-ladder", f"way==@way and {m}".replace("@way", repr(way)), "log_loss", 3)
        for m in (MG, MS)
    )


def G(way, model):
    return I("table-ladder", f"way=={way!r} and {model}", 3, False, "gain")


def Q(kind):
    r = row("table-recount-shares", f"model=='flan-t5-xl' and ours=={kind!r}")
    return f"{int(r['count']):,}"


def CAUSES():
    def share(kind, cause, model):
        return (
            I(
                "table-causes",
                f"context=={kind!r} and cause=={cause!r} and {model}",
                0,
                True,
                "share",
            )
            + "%"
        )

    return (
        f"Where a passage states a falsehood, {share('false', 'context', MG)} of Gemma's answers and "
        f"{share('false', 'context', MS)} of SmolLM2's\nare from it. Where it lacks the answer, still "
        f"{share('missing', 'context', MG)} and {share('missing', 'context', MS)} are: they take an answer about\n"
        f"another subject. A denied answer is said all the same in {share('negated', 'context', MG)} and "
        f"{share('negated', 'context', MS)}."
    )


def STRATA():
    held = T("table-strata")
    out = held[(held["expected"] < held["low"]) | (held["expected"] > held["high"])]
    said = "; ".join(
        f"{r.model}, {r.context}: expected {100 * r.expected:.0f}%, seen {100 * r.mean:.0f}%"
        for r in out.itertuples()
    )
    return (
        f"In {len(held) - len(out)} of {len(held)} rows the exact interval holds what the probabilities expect"
        + (f". It does not in: {said}." if said else ".")
    )


def filled(text, left):
    def said(found):
        try:
            return str(eval(found[1]))
        except Exception as error:  # the table is not there yet
            left.append(f"{found[1]}: {error}")
            return found[0]

    text = re.sub("«(.*?)»", said, text, flags=re.S)
    return re.sub(r"(\d) (\[[^\]]*\])%", r"\1% \2", text)


def main():
    """The prose of the sources, with their numbers, into the notebooks that were run."""
    sys.path.insert(0, str(Path(__file__).parent))
    import notebooks_a as a
    import notebooks_b as b

    for name, cells in (a.N40, a.N41, a.N42, b.N43, b.N44, b.N45, b.N46):
        path = ROOT / "notebooks" / "4-context" / f"{name}.ipynb"
        if len(sys.argv) > 1 and not any(x in name for x in sys.argv[1:]):
            continue
        node, left = nbformat.read(path, 4), []
        if len(node.cells) != len(cells):  # 4.2 without world-t5: what stands in the notebook
            cells = [("md" if c.cell_type == "markdown" else "code", c.source) for c in node.cells]
        for cell, (kind, source) in zip(node.cells, cells, strict=True):
            if kind == "md":
                cell.source = filled(source, left)
        nbformat.write(node, path)
        print(name, "left:", left)


main()
