import numpy as np
import pandas as pd
import pytest

from factrobust.metrics import calibration as metric
from factrobust.plots import blocks, style, wording


def predictions(models, n=60):
    rng = np.random.default_rng(0)
    tables = [
        pd.DataFrame(
            {"model": model, "group_id": range(n), "repeat": 0, "probability": rng.random(n)}
        )
        for model in models
    ]
    table = pd.concat(tables, ignore_index=True)
    right = rng.random(len(table)) < table["probability"]
    return table.assign(
        correct=right, prior=0.5, SCons=rng.random(len(table)), Cert=table["probability"].round(1)
    )


def marked(axis, colour):
    """The lines with markers of a colour that hold points."""
    found = [line for line in axis.lines if line.get_marker() not in ("None", "", None)]
    return [line for line in found if line.get_color() == colour and len(line.get_xdata())]


def labels(axis):
    return [text.get_text() for text in axis.get_yticklabels()]


def test_measures(check, models):
    table = metric.ranking(predictions(models), ["SCons", "Cert"], n_boot=50)
    axis = check(wording.measures(table), axes=1).axes[0]
    assert labels(axis) == ["Cert", "SCons"]  # the better one on top
    for model, look in style.looks(models).items():
        own = table[table["model"] == model].set_index("measure")["mean"]
        (line,) = marked(axis, look.colour)
        assert sorted(line.get_xdata()) == sorted(own)
        assert line.get_xdata()[np.argmin(line.get_ydata())] == own["Cert"]
    (dashed,) = [line for line in axis.lines if list(line.get_xdata()) == [0.5, 0.5]]
    assert dashed.get_linestyle() == "--"
    assert (axis.get_xlabel(), axis.get_title()) == ("AUC", "n = 60 questions")


def test_measures_without_a_level_of_chance(check):
    table = metric.ranking(predictions(["m"]), ["SCons"], n_boot=50).assign(mean=2.5, high=3.0)
    axis = check(wording.measures(table, "distance", chance=None), axes=1).axes[0]
    assert axis.get_xlabel() == "distance"
    assert not [line for line in axis.lines if line.get_linestyle() == "--"]


def test_calibration(check, models):
    table = metric.calibration_curve(predictions(models), bins=5, n_boot=50)
    fig = check(wording.calibration(table.sample(frac=1, random_state=0)), axes=len(models))
    for axis, (model, look) in zip(fig.axes, style.looks(models).items(), strict=True):
        own = table[table["model"] == model].sort_values("bin")
        diagonal = axis.lines[0]
        assert diagonal.get_xydata().tolist() == [[0, 0], [1, 1]]
        assert diagonal.get_linestyle() == "--"
        (line,) = marked(axis, look.colour)
        assert line.get_xydata().tolist() == own[["predicted", "observed"]].values.tolist()
        bars = axis.collections[0].get_segments()
        assert [bar[:, 1].tolist() for bar in bars] == [
            pytest.approx(bounds) for bounds in own[["low", "high"]].values.tolist()
        ]
        assert [text.get_text() for text in axis.texts] == list(own["n"].astype(str))
        assert axis.get_title().startswith(style.model_name(model))
    assert fig.axes[0].get_ylabel() == "share of right answers"


def test_calibration_of_two_sets_of_predictors_is_refused():
    table = metric.calibration_curve(predictions(["m"]), bins=2, n_boot=50)
    with pytest.raises(ValueError, match=r"several rows for model m, bin 0\.0"):
        wording.calibration(pd.concat([table, table]))


def risk(models):
    parts = [metric.risk_coverage(predictions(models), s, n_boot=50) for s in ("SCons", "Cert")]
    return pd.concat(parts, ignore_index=True)


def test_risk_coverage(check, models):
    table = risk(models)
    fig = check(wording.risk_coverage(table.sample(frac=1, random_state=1)), axes=len(models))
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert sorted(names[:2]) == ["Cert", "SCons"]
    assert names[2] == "all answered"
    for axis, model in zip(fig.axes, style.looks(models), strict=True):
        own = table[table["model"] == model]
        overall = own.loc[own["coverage"] == 1, "accuracy"].iloc[0]
        dashed = axis.lines[0]
        assert list(dashed.get_ydata()) == [overall, overall]
        assert dashed.get_linestyle() == "--"
        for name, look in zip(names[:2], blocks.LINE_LOOKS[:2], strict=True):
            curve = own[own["score"] == name].sort_values("coverage")
            (line,) = marked(axis, look.colour)
            assert line.get_xydata().tolist() == curve[["coverage", "accuracy"]].values.tolist()
        assert axis.get_title() == f"{style.model_name(model)}\nn = 60 questions"


def test_scores_have_no_colour_of_an_embedded_model():
    colours = {look.colour for look in blocks.LINE_LOOKS}
    assert len(colours) == 5
    assert not colours & {style.BLUE, style.VERMILION}


def test_risk_coverage_of_too_many_scores_is_refused():
    table = pd.concat([risk(["m"]).query("score == 'Cert'").assign(score=s) for s in "abcdef"])
    with pytest.raises(ValueError, match="6 scores are too many to tell apart: give at most 5"):
        wording.risk_coverage(table)


def moved(names, **changed):
    index = pd.MultiIndex.from_product([names, names], names=["fitted_on", "predicted"])
    table = index.to_frame(index=False)
    mean = np.linspace(0.2, 0.9, len(table))
    return table.assign(mean=mean, low=mean - 0.1, high=mean + 0.1, n=12, **changed)


def test_transfer_between_models(check, models):
    table = moved(models)
    axis = check(wording.transfer(table.sample(frac=1, random_state=0)), axes=1).axes[0]
    order = list(style.looks(models))
    assert [name.replace("\n", "") for name in labels(axis)] == [style.model_name(m) for m in order]
    cells = table.set_index(["fitted_on", "predicted"])["mean"]
    shown = axis.collections[0].get_array().reshape(len(models), len(models))
    assert shown.tolist() == [[cells[row, column] for column in order] for row in order]
    low, high = axis.collections[0].get_clim()
    assert (low, high) == (0, 1)
    assert axis.texts[0].get_text() == "0.20\n0.10–0.30\nn = 12"
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("predicted", "fitted on")
    assert len(axis.patches) == len(models)  # frames


def test_transfer_between_relations(check):
    names = [f"relation_{letter}" for letter in "ponmlkjihgfedcba"]
    table = moved(names)
    table.loc[table["fitted_on"] == "relation_b", ["mean", "low", "high", "n"]] = [np.nan] * 3 + [0]
    axis = check(wording.transfer(table), axes=1).axes[0]
    assert labels(axis)[:2] == ["relation a", "relation b"]
    shown = axis.collections[0].get_array().reshape(16, 16)
    assert np.ma.getmaskarray(shown)[1].all()
    assert np.ma.getmaskarray(shown).sum() == 16
    assert axis.texts[0].get_text() == "0.90"  # of a and a, the last of the table
    assert axis.get_title() == "AUC, n = 12 questions"


def test_transfer_without_any_auc_is_grey(check):
    table = moved(["a", "b"]).assign(mean=np.nan, low=np.nan, high=np.nan, n=0)
    axis = check(wording.transfer(table), axes=1).axes[0]
    assert not [text for text in axis.texts if text.get_text()]
    assert axis.get_title() == "AUC, n = – questions"


def test_transfer_of_several_measures_is_refused():
    table = pd.concat([moved(["a", "b"], measure=name) for name in ("auc", "brier")])
    with pytest.raises(ValueError, match="several rows for fitted_on a, predicted a"):
        wording.transfer(table)
