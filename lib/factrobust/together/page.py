"""What a card looks like: one page, a picture, and a block for a model card."""

import base64
import io
from collections import Counter
from html import escape
from typing import Any

import pandas as pd
import yaml

from factrobust.plots import blocks, style
from factrobust.together.card import VERDICTS, Card, Fact

STYLE = (
    "body{font:16px/1.45 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}img{max-width:100%}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem}td,th{border-bottom:1px solid #ddd;"
    "padding:.3rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}"
)


def picture(card: Card) -> bytes:
    """A PNG of the measures, with their intervals and, grey, their baselines."""
    table = card.table.rename(columns={"value": "mean"}).astype({"low": float, "high": float})
    rows = (table["name"] + " (n = " + table["n"].astype(str) + ")").tolist()
    look = style.looks([card.model.partition("~")[0].partition("#")[0]]).popitem()[1]
    fig, [(axis, _)] = blocks.forest(
        table.assign(model=card.model, measure=rows), "measure", rows, shares="x", width=style.DOUBLE,
        xlabel="share of facts with 95% interval (grey: baseline)", looks={card.model: look},
    )  # fmt: skip
    axis.plot(
        pd.to_numeric(table["baseline"]), range(len(table)), "|", color=style.GREY, ms=11, mew=2
    )
    out = io.BytesIO()
    fig.savefig(out, format="png", dpi=150, metadata={"Software": None})
    return out.getvalue()


def html(card: Card) -> str:
    """The page, without a link to another host."""
    counts, order = Counter(v for fact in card.facts for v in fact.verdicts), list(VERDICTS)
    image = base64.b64encode(picture(card)).decode()
    numbers = card.table.rename(columns=lambda name: name.replace("_", " ")).round(3).astype(object)
    verdicts = [(v, counts[v], advice) for v, advice in VERDICTS.items() if counts[v]]
    facts = [_row(f) for f in sorted(card.facts, key=lambda f: order.index(f.verdicts[0]))]
    about = card.model_dump(exclude={"measures", "facts", "missing", "cannot_say", "notes"})
    parts = {
        "Measures": _table([*numbers], numbers.where(numbers.notna(), "–").values.tolist()),
        "Verdicts": _table(["verdict", "facts", "what is usually done"], verdicts),
        "What is missing": _table([""], [[text] for text in card.missing]),
        "What this card cannot say": _table([""], [[text] for text in card.cannot_say]),
        "How it was asked": _table(["", ""], [(k.replace("_", " "), v) for k, v in about.items()]),
        "Facts": _table(
            ["question", "answer", "right", "verdicts", "numbers", "other answers"], facts
        ),
    }
    title = escape(f"Fact card of {card.model}")
    head = f'<html lang="en"><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style>'
    image = f'<img alt="measures with intervals" src="data:image/png;base64,{image}">'
    body = "".join(f"<h2>{name}</h2>{part}" for name, part in parts.items())
    return f"<!doctype html>{head}<h1>{title}</h1><p>{escape('; '.join(card.notes))}.</p>{image}{body}</html>\n"


def _row(fact: Fact) -> list[Any]:
    said = [f"{question} → {answer}" for question, answer in fact.wordings.items()]
    said += [
        f"{kind}: {sentence}. → {answer}" for kind, (sentence, answer) in fact.contexts.items()
    ]
    named = {"log P": fact.logprob, "t_b": fact.t_b, "kept": fact.kept, "years": fact.win_rate}
    numbers = ", ".join(f"{name} {value:.2f}" for name, value in named.items() if value is not None)
    verdicts = ", ".join(fact.verdicts)
    return [fact.question, fact.answer, fact.accepted[0], verdicts, numbers, "\n".join(said)]


def _table(head: list[str], rows: Any) -> str:
    cells = [[escape(str(cell)).replace("\n", "<br>") for cell in row] for row in rows]
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in cells)
    return f"<table><tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>{body}</table>"


def model_index(card: Card) -> str:
    """The `model-index` block of a model card on the hub, a metric each measure."""
    metrics = [{"type": m.name.replace(" ", "_"), "value": round(m.value, 4),
                "args": {"n": m.n, "low": m.low, "high": m.high}} for m in card.measures]  # fmt: skip
    dataset = {"name": card.data, "type": "factrobust", "revision": card.data_sha256}
    task = {"type": "question-answering", "name": "facts from memory"}
    result = {"task": task, "dataset": dataset, "metrics": metrics}
    index = {"model-index": [{"name": card.model, "results": [result]}]}
    return str(yaml.safe_dump(index, sort_keys=False, allow_unicode=True))
