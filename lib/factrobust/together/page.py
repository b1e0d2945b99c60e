"""What a card looks like: one page, a picture, and a block for a model card."""

import base64
import io
import math
from collections import Counter
from typing import Any

import jinja2
import matplotlib.style
import pandas as pd
import yaml
from matplotlib.figure import Figure

from factrobust.paths import DATA
from factrobust.plots import blocks, style
from factrobust.together.card import VERDICTS, Card
from factrobust.together.opened import short_name

PAGE = "page.html.jinja"


def picture(card: Card) -> bytes:
    """A PNG of the measures, with their intervals and, grey, their baselines."""
    out = io.BytesIO()
    with matplotlib.style.context(style.STYLE):
        drawn(card).savefig(
            out,
            format="png",
            dpi=150,
            metadata={"Software": None},
        )
    return out.getvalue()


def drawn(card: Card) -> Figure:
    """The figure of `picture`."""
    table = card.table.rename(columns={"value": "mean"}).astype({"low": float, "high": float})
    rows = (table["name"] + " (n = " + table["n"].astype(str) + ")").tolist()
    known_as = card.model.partition("~")[0].partition("#")[0]
    [look] = style.looks([known_as]).values()
    fig, [(axis, _)] = blocks.forest(
        table.assign(model=card.model, measure=rows),
        "measure",
        rows,
        shares="x",
        width=style.DOUBLE,
        xlabel="share of facts (FRS: score), 95% interval; grey: baseline",
        looks={card.model: look},
    )
    axis.set_xlim(left=min(0, table["low"].min()) - 0.03)  # a difference may be below 0
    axis.set_ylabel("")
    baseline = pd.to_numeric(table["baseline"])
    axis.plot(
        baseline,
        range(len(table)),
        "|",
        color=style.GREY,
        ms=11,
        mew=2,
    )
    return fig


def headline(card: Card) -> str:
    """The sentence that answers: can its facts be relied on?"""
    known = [fact for fact in card.facts if fact.known]
    hold = sum("holds" in fact.verdicts for fact in known)
    return (
        f"{short_name(card.model)} knows {len(known)} of {len(card.facts)} facts that were asked, "
        f"and {hold} of these hold in every answer."
    )


def in_words(value: Any) -> Any:
    """Settings and lists as people write them; anything else as it is."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    return " | ".join(value) if isinstance(value, list) else value


def kind(verdict: str) -> str:
    """The colour of a verdict, a class of data/cards/style.css."""
    if verdict.startswith("unknown"):
        return "unknown"
    return "holds" if verdict == "holds" else "lost"


def templates() -> jinja2.Environment:
    """The templates of data/cards, for pages without a link to another host."""
    return jinja2.Environment(autoescape=True, loader=jinja2.FileSystemLoader(DATA / "cards"))


def html(card: Card) -> str:
    """The page, without a link to another host."""
    counts, order = Counter(v for fact in card.facts for v in fact.verdicts), [*VERDICTS.index]
    about = card.model_dump(exclude={"measures", "facts", "missing", "cannot_say", "notes"})
    about["model"] = short_name(card.model)
    found = (
        templates()
        .get_template(PAGE)
        .render(
            card=card,
            name=short_name(card.model),
            headline=headline(card),
            kind=kind,
            exp=math.exp,
            picture=base64.b64encode(picture(card)).decode(),
            measures=[m.model_dump().values() for m in card.measures],
            verdicts=[(v, counts[v], VERDICTS["advice"][v]) for v in order if counts[v]],
            about=[(name.replace("_", " "), in_words(value)) for name, value in about.items()],
            in_words=in_words,
            facts=sorted(card.facts, key=lambda f: (not f.known, order.index(f.verdicts[0]))),
        )
    )
    return f"{found}\n"


def model_index(card: Card) -> str:
    """The `model-index` block of a model card on the hub, a metric each measure."""
    metrics = [{"type": m.name.replace(" ", "_"), "value": round(m.value, 4),
                "args": {"n": m.n, "low": m.low, "high": m.high}} for m in card.measures]  # fmt: skip
    dataset = {"name": card.data, "type": "factrobust", "revision": card.data_sha256}
    task = {"type": "question-answering", "name": "facts from memory"}
    result = {"task": task, "dataset": dataset, "metrics": metrics}
    index = {"model-index": [{"name": card.model, "results": [result]}]}
    return str(yaml.safe_dump(index, sort_keys=False, allow_unicode=True))
