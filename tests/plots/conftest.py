import io
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from factrobust.plots import style

MODELS = ["gemma-3-270m", "smollm2-135m-instruct", "my-own/model-with-quite-a-long-name"]


@pytest.fixture(params=[1, 3], ids="{} models".format)
def models(request):
    return MODELS[: request.param]


@pytest.fixture
def check():
    """A function that draws a figure for real and checks what all figures have in common."""

    def checked(fig: Figure, axes: int) -> Figure:
        assert isinstance(fig, Figure)
        assert plt.get_fignums() == []
        assert fig.get_figwidth() <= 7.0
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            fig.savefig(io.BytesIO(), format="png", dpi=fig.dpi)
        assert len(fig.axes) == axes
        assert all(axis.get_xlabel() for axis in fig.axes) or fig.get_supxlabel() or axes == 6
        assert fig.axes[0].get_ylabel() or axes == 1 or fig.axes[0].get_yticklabels()
        renderer = FigureCanvasAgg(fig).get_renderer()
        for legend in fig.legends:
            box = legend.get_window_extent(renderer)
            assert box.x0 >= 0
            assert box.x1 <= fig.bbox.x1
            assert not any(box.overlaps(a.get_window_extent(renderer)) for a in fig.axes)
        return fig

    return checked


@pytest.fixture
def intervals():
    """A function for a table over all combinations of its keys, each row with numbers of its own."""

    def made(n=40, **keys):
        table = pd.MultiIndex.from_product(keys.values(), names=keys.keys()).to_frame(index=False)
        mean = np.linspace(0.1, 0.9, len(table))
        return table.assign(mean=mean, low=mean - 0.05, high=mean + 0.08, n=n)

    return made


@pytest.fixture
def points():
    """A function for the points that are drawn in a colour: [point, (x, y)], in drawing order."""

    def drawn(axis, colour):
        lines = [line for line in axis.lines if line.get_marker() not in ("None", "", None)]
        found = [line.get_xydata() for line in lines if line.get_color() == colour]
        return np.vstack([np.empty((0, 2)), *found])

    return drawn


@pytest.fixture
def shows(points):
    """A function that checks that a panel's points in each model's colour are the model's rows of a
    table, in their order: one column of them along x, or two as (x, y)."""

    def checked(axis, table, *columns):
        for model, look in style.looks(table["model"]).items():
            own = table.loc[table["model"] == model, list(columns)]
            drawn = points(axis, look.colour)[: len(own), : len(columns)]
            assert drawn.tolist() == own.to_numpy().tolist()

    return checked


@pytest.fixture
def traces():
    """A function that checks that the first lines of a figure's panels are the rows of a table by
    `panel` and `by`, along x but for an offset that keeps them apart."""

    def checked(fig, table, x, panel, values, by="model"):
        names = list(style.looks(table[by])) if by == "model" else list(dict.fromkeys(table[by]))
        for axis, value in zip(fig.axes, values, strict=True):
            for line, name in zip(axis.lines, names, strict=False):
                own = table[(table[panel] == value) & (table[by] == name)].sort_values(x)
                assert list(line.get_ydata()) == list(own["mean"])
                assert line.get_xdata() == pytest.approx(own[x], abs=0.031 * np.ptp(own[x]))
        assert len(axis.lines) >= len(names)

    return checked


@pytest.fixture
def bars():
    """A function for the ends of the horizontal intervals drawn in a panel, [interval, (low, high)]."""

    def ends(axis):
        segments = [s for part in axis.collections for s in part.get_segments()]
        return np.array([segment[:, 0] for segment in segments if len(segment)])

    return ends


@pytest.fixture
def rows():
    """A function for the names of a panel's rows."""
    return lambda axis: [text.get_text() for text in axis.get_yticklabels()]


@pytest.fixture
def entries():
    """A function for the entries of a figure's legend."""
    return lambda fig: [text.get_text() for text in fig.legends[0].get_texts()]
