import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from factrobust.metrics import time as duels
from factrobust.plots import style, time

LAPTOP = ["gemma-3-270m", "smollm2-135m-instruct"]


def sizes(models, parameters):
    kind = ["instruction-tuned" if "nstruct" in model else "pretrained" for model in models]
    table = pd.DataFrame({"model": models, "parameters": parameters, "kind": kind})
    return table.assign(mean=np.linspace(0.1, 0.3, len(table)), low=0.05, high=0.4, n=60)


def points(axis):
    """Colour -> the line of a model's point."""
    lines = [line for line in axis.lines if line.get_marker() in ("o", "D")]
    return {line.get_color(): line for line in lines}


def test_by_size_with_two_models(check):
    fig = check(time.by_size(sizes(LAPTOP, [268e6, 135e6]), "robustness"), axes=1)
    axis, looks = fig.axes[0], style.looks(LAPTOP)
    gemma, smollm = (points(axis)[look.colour] for look in looks.values())
    assert gemma.get_xydata().tolist() == [[268e6, 0.1]]
    assert smollm.get_xydata().tolist() == [[135e6, 0.3]]
    assert (gemma.get_marker(), gemma.get_mfc()) == ("o", looks[LAPTOP[0]].colour)
    assert (smollm.get_marker(), smollm.get_mfc()) == ("D", "white")
    assert [text.get_text() for text in axis.get_xticklabels()] == ["100M", "200M", "500M"]
    assert axis.get_title() == "n = 60 facts each"
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == [*LAPTOP, "pretrained", "instruction-tuned"]


def test_by_size_with_one_model(check):
    axis = check(time.by_size(sizes(LAPTOP[:1], [268e6]), "win rate"), axes=1).axes[0]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["200M", "500M"]


def test_models_of_the_same_size_stand_side_by_side_and_a_fit_is_dashed(check):
    names = [*(f"model-{k}" for k in range(9)), *(f"model-{k}-Instruct" for k in range(9))]
    table = sizes(names, 2 * [4.5e8, 2e9, 3e9, 7e9, 8e9, 9e9, 12e9, 27e9, 70e9])
    fit = pd.DataFrame({"parameters": [1e11, 4e8], "mean": [0.4, 0.1]})
    axis = check(time.by_size(table, "robustness", fit), axes=1).axes[0]
    x = sorted(line.get_xdata()[0] for line in axis.lines if line.get_marker() in ("o", "D"))
    assert len(set(x)) == 18
    assert x[:2] == pytest.approx([4.5e8 / 1.05**0.5, 4.5e8 * 1.05**0.5])
    (line,) = [line for line in axis.lines if line.get_linestyle() == "--"]
    assert line.get_xydata().tolist() == [[4e8, 0.1], [1e11, 0.4]]


def test_by_size_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="no kind 'chat'"):
        time.by_size(sizes(LAPTOP, [1e8, 2e8]).assign(kind="chat"), "robustness")


def test_by_popularity(check, models):
    rows = [(m, w, k) for m in models for w in ("object", "fact", "subject") for k in (1, 0, 2)]
    table = pd.DataFrame(rows, columns=["model", "what", "popularity_bin"])
    table = table.assign(mean=np.linspace(0, 0.9, len(table)), low=0.0, high=1.0, n=12)
    fig = check(time.by_popularity(table, "robustness"), axes=len(models))
    for axis, model in zip(fig.axes, models, strict=True):
        assert axis.get_title() == f"{style.model_name(model)}\nn = 12 facts a bin"
        assert [text.get_text() for text in axis.get_xticklabels()] == ["1", "2", "3"]
        lines = [line for line in axis.lines if line.get_linestyle() != "None"]
        for line, what, aside in zip(
            lines, ("subject", "object", "fact"), (-0.14, 0, 0.14), strict=True
        ):
            own = table[(table["model"] == model) & (table["what"] == what)]
            assert line.get_color() == time.POPULARITIES[what].colour
            assert line.get_xdata() == pytest.approx(np.arange(3) + aside)
            assert list(line.get_ydata()) == list(own.sort_values("popularity_bin")["mean"])
    assert fig.axes[0].get_ylabel() == "robustness"


def test_by_popularity_of_the_fact_only(check):
    table = pd.DataFrame({"model": "m", "what": "fact", "popularity_bin": [0, 1], "mean": 0.2})
    fig = check(time.by_popularity(table.assign(low=np.nan, high=np.nan, n=1), "W"), axes=1)
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["of the fact"]
    with pytest.raises(ValueError, match="no what 'city'"):
        time.by_popularity(table.assign(what="city", low=0, high=1, n=1), "W")


def duel(first=LAPTOP[0], second=LAPTOP[1], formats=("question", "question")):
    """Win rates 1 > 0.5, 0.5 = 0.5, 0.5 < 1, 1 > 0: 50% win, 25% tie, 25% lose."""
    tables = [
        pd.DataFrame(
            {
                "model": model,
                "prompt_format": name,
                "fact_id": list("abcd"),
                "precision": "global",
                "win_rate": rates,
                "robust": [rate == 1 for rate in rates],
            }
        )
        for model, name, rates in (
            (first, formats[0], [1, 0.5, 0.5, 1]),
            (second, formats[1], [0.5, 0.5, 1, 0]),
        )
    ]
    year = [table.assign(precision="year") for table in tables]
    return duels.duel_shares(
        duels.duels(*(pd.concat(pair) for pair in zip(tables, year, strict=True)))
    )


def test_duel_shares_stack_to_one(check):
    fig = check(time.duel_shares(duel()), axes=2)
    assert [axis.get_title() for axis in fig.axes] == ["win rate", "robustness"]
    bars = fig.axes[0].patches  # outcome by outcome, two rows each
    assert [(bar.get_x(), bar.get_width()) for bar in bars[::2]] == [
        (0, 0.5), (0.5, 0.25), (0.75, 0.25),
    ]  # fmt: skip
    colours = [to_hex(bar.get_facecolor()).upper() for bar in bars[::2]]
    assert (colours[0], colours[2]) == (style.RIGHT, style.WRONG)
    texts = [text.get_text() for text in fig.axes[0].texts]
    assert sorted(texts) == ["25%"] * 4 + ["50%"] * 2
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    assert labels == ["year (n = 4)", "global (n = 4)"]
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["gemma-3-270m better", "equal", "smollm2-135m-instruct better"]


def test_several_duels_are_named_on_the_axis(check):
    formats = duel(LAPTOP[0], LAPTOP[0], ("dated-few-shot", "question"))
    table = pd.concat([duel(), formats], ignore_index=True)
    fig = check(time.duel_shares(table[table["precision"] == "global"]), axes=2)
    labels = [text.get_text() for text in fig.axes[0].get_yticklabels()]
    assert labels == [
        "gemma-3-270m /\nsmollm2-135m-instruct\nglobal (n = 4)",
        "gemma-3-270m dated-few-shot /\ngemma-3-270m question\nglobal (n = 4)",
    ]
    assert fig.legends[0].get_texts()[0].get_text() == "first better"


def test_a_share_too_narrow_for_its_number_has_none(check):
    table = duel().query("precision == 'year' and metric == 'win_rate'")
    table = table.assign(share=table["outcome"].map({"win": 0.9, "tie": 0.1, "lose": 0.0}))
    axis = check(time.duel_shares(table), axes=1).axes[0]
    assert [text.get_text() for text in axis.texts] == ["90%"]
