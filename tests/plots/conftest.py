import io
import warnings

import matplotlib.pyplot as plt
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


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
        assert fig.axes[0].get_ylabel() or axes == 1
        renderer = FigureCanvasAgg(fig).get_renderer()
        for legend in fig.legends:
            box = legend.get_window_extent(renderer)
            assert box.x0 >= 0
            assert box.x1 <= fig.bbox.x1
            assert not any(box.overlaps(a.get_window_extent(renderer)) for a in fig.axes)
        return fig

    return checked


MODELS = ["gemma-3-270m", "smollm2-135m-instruct", "my-own/model-with-quite-a-long-name"]


@pytest.fixture(params=[1, 2, 3], ids="{} models".format)
def models(request):
    return MODELS[: request.param]
