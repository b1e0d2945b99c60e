import numpy as np
import pandas as pd
import pytest

from factrobust.metrics.context import SOURCES, counts_by, mark_sources
from factrobust.plots import context, style
from factrobust.statistics import interval_table

CATEGORIES = ["person", "city", "historical event"]
TEXTS = ["Nairobi"] * 12 + ["Lima"] * 4 + ["Oslo", "not Nairobi", "Bern", ""]  # 20 answers


def marked(models, rule="robust"):
    """20 answers a category and model, of which the first model gives four otherwise."""
    rows = [
        (model, f"{category}/{i}", category, text if k or i > 3 else "Lima")
        for k, model in enumerate(models)
        for category in CATEGORIES
        for i, text in enumerate(TEXTS)
    ]
    table = pd.DataFrame(rows, columns=["model", "question_id", "category", "contextual"])
    table = table.assign(parametric="Lima", counterfactual="Nairobi", base_id=table["category"])
    return mark_sources(table.assign(p2=2.0, p3=3.0, p4=3.0), rule=rule)


def counts(models, by=("model",), value="source", **changed):
    return counts_by(marked(models, **changed), by, value, n_boot=50)


def labels(axis):
    return [text.get_text() for text in axis.get_yticklabels()]


def bars(axis):
    """(left, width, row) of the bars of each source, [row], from the top."""
    found = {}
    for source, look in context.SOURCE_LOOKS.items():
        own = [p for p in axis.patches if style_of(p) == look.colour and p.get_width()]
        found[source] = [(p.get_x(), p.get_width(), round(p.get_y() + 0.37)) for p in own]
    return found


def style_of(patch):
    return "#{:02X}{:02X}{:02X}".format(*(round(255 * x) for x in patch.get_facecolor()[:3]))


def test_sources_have_no_colour_of_an_embedded_model():
    assert tuple(context.SOURCE_LOOKS) == SOURCES
    colours = {look.colour for look in context.SOURCE_LOOKS.values()}
    assert len(colours) == 4
    assert not colours & {style.BLUE, style.VERMILION}


def test_source_shares(check, models):
    table = counts(models)
    fig = check(context.source_shares(table.sample(frac=1, random_state=0)), axes=1)
    axis, order = fig.axes[0], list(style.looks(models))
    assert labels(axis) == [f"{style.model_name(m)}\nn = 60 questions" for m in order]
    found = bars(axis)
    for row, model in enumerate(order):
        contextual = 8 / 20 if model == models[0] else 12 / 20
        assert [bar for bar in found["parametric"] if bar[2] == row] == [
            pytest.approx((0, 16 / 20 - contextual, row))
        ]
        assert [bar for bar in found["other"] if bar[2] == row] == [
            pytest.approx((16 / 20 - contextual, 3 / 20, row))
        ]
        assert [bar for bar in found["empty"] if bar[2] == row] == [
            pytest.approx((19 / 20 - contextual, 1 / 20, row))
        ]
        assert [bar for bar in found["contextual"] if bar[2] == row] == [
            pytest.approx((1 - contextual, contextual, row))
        ]
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["parametric", "other", "empty", "contextual"]


def test_models_without_a_look_stand_as_in_the_table(check):
    table = counts(["z-large", "gemma-3-270m", "a-small"])
    axis = check(context.source_shares(table), axes=1).axes[0]
    order = ["gemma-3-270m", "z-large", "a-small"]
    assert labels(axis) == [f"{model}\nn = 60 questions" for model in order]
    fig = check(context.source_by_category(counts(order, ("model", "category"))), axes=3)
    assert [axis.get_title() for axis in fig.axes] == order


def test_intervals_of_the_outer_sources(check):
    table = counts(["m"])
    axis = check(context.source_shares(table), axes=1).axes[0]
    own = table.set_index("source")
    memory, contextual = (lines.get_segments()[0] for lines in axis.collections)
    assert memory[:, 0] == pytest.approx(own.loc["parametric", ["low", "high"]].to_list())
    assert contextual[:, 0] == pytest.approx(
        [1 - own.loc["contextual", x] for x in ("high", "low")]
    )
    assert memory[0, 1] < 0 < contextual[0, 1]  # one above the other


def test_shares_are_written_where_intervals_leave_room(check):
    table = counts(["m"])
    bounds = {
        "parametric": (0.35, 0.45),
        "contextual": (0.1, 0.7),
        "other": (0, 1),
        "empty": (0, 1),
    }
    table["low"], table["high"] = zip(*table["source"].map(bounds), strict=True)
    axis = check(context.source_shares(table), axes=1).axes[0]
    assert [text.get_text() for text in axis.texts] == ["40%", "40%"]  # the others' is too narrow
    table["low"], table["high"] = table["share"] - 0.01, table["share"] + 0.01
    axis = check(context.source_shares(table), axes=1).axes[0]
    assert [text.get_text() for text in axis.texts] == ["40%", "15%", "40%"]


def test_sources_without_intervals(check):
    table = counts(["m"]).assign(low=np.nan, high=np.nan)
    axis = check(context.source_shares(table), axes=1).axes[0]
    ends = [lines.get_segments()[0][:, 0].tolist() for lines in axis.collections]
    assert ends == [pytest.approx([0.4, 0.4]), pytest.approx([0.6, 0.6])]


def test_the_published_rule_knows_no_empty_answers(check):
    fig = check(context.source_shares(counts(["m"], rule="published")), axes=1)
    names = [text.get_text() for text in fig.legends[0].get_texts()]
    assert names == ["parametric", "other", "contextual"]


def test_source_by_category(check, models):
    table = counts(models, ("model", "category"))
    table = table[~((table["model"] == models[-1]) & (table["category"] == "city"))]
    fig = check(context.source_by_category(table), axes=len(models))
    for axis, model in zip(fig.axes, style.looks(models), strict=True):
        own = table[(table["model"] == model) & (table["source"] == "contextual")]
        groups = list(dict.fromkeys(table["category"]))
        expected = [(1 - s, s, groups.index(c)) for c, s in own[["category", "share"]].values]
        assert bars(axis)["contextual"] == [pytest.approx(bar) for bar in expected]
        assert axis.get_title() == style.model_name(model)
    expected = CATEGORIES if len(models) > 1 else ["person", "historical event"]
    assert sorted(labels(fig.axes[0])) == sorted(f"{name} (n = 20)" for name in expected)
    assert fig.axes[0].get_ylabel() == "category"


def test_sources_by_another_column(check):
    table = counts(["m"], ("model", "base_id"))
    axis = check(context.source_by_category(table, "base_id"), axes=1).axes[0]
    assert labels(axis) == [f"{name} (n = 20)" for name in CATEGORIES]
    with pytest.raises(KeyError, match="category"):
        context.source_by_category(table)


def test_two_rules_or_another_value_are_refused():
    table = counts(["m"])
    with pytest.raises(ValueError, match="several rows for model m, source parametric"):
        context.source_shares(pd.concat([table, table]))
    with pytest.raises(ValueError, match="draws no source 'tie'"):
        context.source_shares(table.replace("empty", "tie"))


def test_kinds(check, models):
    table = counts(models, value="kind")
    fig = check(context.kinds(table.sample(frac=1, random_state=0)), axes=1)
    axis = fig.axes[0]
    assert len(labels(axis)) == 7
    assert labels(axis)[0] == "1 parametric answer, phrased otherwise"
    for model, look in style.looks(models).items():
        own = table[table["model"] == model].set_index("kind")
        (line,) = [x for x in axis.lines if x.get_color() == look.colour and len(x.get_xdata())]
        at = {round(y) + 1: x for x, y in line.get_xydata()}
        assert at == own["share"].to_dict()
        assert own["count"].sum() == 9
        texts = {
            round(t.get_position()[1]) + 1: t for t in axis.texts if t.get_color() == look.colour
        }
        assert {kind: int(t.get_text()) for kind, t in texts.items()} == own["count"].to_dict()
    assert f"{style.model_name(models[0])} (n = 9)" in [
        text.get_text() for text in fig.legends[0].get_texts()
    ]


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="draws no kind 9: write one of 1 to 7"):
        context.kinds(counts(["m"], value="kind").replace({"kind": {7: 9}}))


def right(models, groups=("known", "unknown")):
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product(
        [models, ["false", "none", "true", "irrelevant"], groups, range(20)],
        names=["model", "context", "facts", "fact_id"],
    )
    table = index.to_frame(index=False)
    return table.assign(right=rng.integers(0, 2, len(table)).astype(float))


def test_truth(check, models):
    table = interval_table(right(models), ["model", "context", "facts"], "right", n_boot=50)
    fig = check(context.truth(table.sample(frac=1, random_state=0)), axes=2)
    assert labels(fig.axes[0]) == ["no", "true", "irrelevant", "false"]
    for axis, group in zip(fig.axes, ("known", "unknown"), strict=True):
        for model, look in style.looks(models).items():
            own = table[(table["model"] == model) & (table["facts"] == group)]
            own = own.set_index("context")["mean"]
            (line,) = [x for x in axis.lines if x.get_color() == look.colour and len(x.get_xdata())]
            at = {context.CONTEXTS[round(y)]: x for x, y in line.get_xydata()}
            assert at == own.to_dict()
        assert "n = 20 facts" in axis.get_title()
    assert fig.axes[1].get_title().startswith("not right without context")


def test_truth_of_all_facts(check, models):
    table = interval_table(right(models, ["all"]), ["model", "context"], "right", n_boot=50)
    fig = check(context.truth(table), axes=1)
    assert fig.axes[0].get_title().startswith("all facts\nn = 20 facts")
    with pytest.raises(ValueError, match="draws no context 'wrong'"):
        context.truth(table.replace("false", "wrong"))


def test_by_popularity(check, models):
    rows = marked(models)
    rows = rows[rows["source"].isin(["parametric", "contextual"])]
    rows = rows.assign(
        hit=(rows["source"] == "contextual").astype(float),
        popularity=rows["category"].map({"person": 4.5, "city": 2.5, "historical event": 3.5}),
    )
    table = interval_table(rows, ["model", "popularity"], "hit", "question_id", n_boot=50)
    fig = check(context.by_popularity(table.sample(frac=1, random_state=0)), axes=1)
    axis = fig.axes[0]
    for line, band, (model, look) in zip(
        axis.lines, axis.collections, style.looks(models).items(), strict=True
    ):
        own = table[table["model"] == model]
        assert line.get_xydata().tolist() == own[["popularity", "mean"]].values.tolist()
        assert line.get_color() == look.colour
        ys = band.get_paths()[0].vertices[:, 1]
        assert (ys.min(), ys.max()) == pytest.approx((own["low"].min(), own["high"].max()))
    assert axis.get_title() == "n = 16 questions a bin"
    assert axis.get_ylabel() == "share from the context"
