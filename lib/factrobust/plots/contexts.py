"""A figure of part 4, ours: what popularity changes about true, irrelevant and false contexts.

`plots.grounding.truth` draws the contexts without popularity. Errors as `plots.time_style` says.
"""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from factrobust.plots import style
from factrobust.plots import time_style as parts
from factrobust.plots.grounding import CONTEXTS


@style.styled
def by_popularity(table: pd.DataFrame, value: str = "share of right answers") -> Figure:
    """A share in bins of popularity, a panel a context, a line a model with its intervals.

    `table`: model, context (of `plots.grounding.CONTEXTS`), popularity (where a bin stands: the mean
    of its facts), mean, low, high, n (facts of the bin). `value` is the label of y. Models stand a little apart,
    so that intervals do not hide each other.
    """
    parts.intervals(table, "model", "context", "popularity")
    parts.known(table, "context", CONTEXTS)
    looks = style.looks(table["model"])
    contexts = style.in_order(table["context"], CONTEXTS)
    fig, axes = style.panels(
        1, len(contexts), style.panel_width(len(contexts)), 2.5, sharex=True, sharey=True
    )
    apart = 0.03 * (table["popularity"].max() - table["popularity"].min())
    for axis, context in zip(axes[0], contexts, strict=True):
        here = table[table["context"] == context]
        for k, (model, look) in enumerate(looks.items()):
            own = here[here["model"] == model].sort_values("popularity")
            x = own["popularity"] + (k - (len(looks) - 1) / 2) * apart
            axis.plot(x, own["mean"], color=look.colour, ls=look.line, lw=1)
            axis.errorbar(
                x, own["mean"], style.errors(own), fmt=look.marker, color=look.colour, elinewidth=1
            )
        name = "no" if context == "none" else context
        axis.set_title(f"{name} context\nn = {style.count(here['n'])} facts")
        style.shares(axis)
    fig.supxlabel("popularity of the subject (Zipf, mean of a bin)", fontsize=8.5)
    axes[0, 0].set_ylabel(value)
    parts.legend(fig, [style.key(model, look) for model, look in looks.items()])
    return fig
