import numpy as np
import pandas as pd
import pytest

from factrobust.datasets.published import load_published
from factrobust.paths import DATA


def text_value(quantity: str, model: str) -> float:
    table = load_published("1-decoding-text").set_index(["quantity", "model"])
    return table.loc[(quantity, model), "value"]


def test_table_1():
    table = load_published("1-decoding-table-1").set_index(["d", "model"])["frs"]
    assert len(table) == 5 * 5
    corners = table[
        [
            (1, "LLaMA-3b"),
            (50, "GPT-4o-mini"),
            (10, "Qwen-14b"),
            (5, "Qwen-3b"),
        ]
    ]
    assert corners.tolist() == [0.761, 0.875, 0.898, 0.799]
    wide = table.unstack()
    assert wide.index.tolist() == [1, 2, 5, 10, 50]
    assert (wide.diff().dropna() < 0).all().all()
    drop = (wide.loc[50] - wide.loc[1]).nsmallest(2)
    assert drop.index.tolist() == ["LLaMA-3b", "LLaMA-8b"]
    assert drop.tolist() == pytest.approx([text_value("frs_drop_d1_to_d50", m) for m in drop.index])


def test_table_2_is_the_papers_training():
    """Numbers of the text are those that tests/decoding/test_quoted.py quotes."""
    assert text_value("pearson_entropy_breaking_temperature", "GPT-4o-mini") == -0.24
    table = load_published("1-decoding-table-2").set_index("hyperparameter")["value"]
    settings = {"learning rate": 2e-5, "batch size": 16, "epochs": 3, "weight decay": 0.01}
    assert table.to_dict() == settings


def test_time_tables_hold_the_papers_counts_and_pairs_of_models():
    counts = load_published("2-time-table-2").set_index("quantity")["value"]
    text = load_published("2-time-text")
    asked = text.drop_duplicates("quantity").set_index("quantity")["value"]
    assert asked["relations"] * asked["facts_per_relation"] == asked["facts"] == counts["facts"]
    # Subjects and objects overlap: there are fewer entities than the two together.
    assert counts["entities"] <= counts["subjects"] + counts["objects"]
    # Facts with many correct dates have many incorrect ones: more than the product of the means.
    product = counts["correct_dates_per_fact"] * counts["incorrect_dates_per_fact"]
    assert counts["tests_per_fact"] > product
    assert load_published("2-time-table-1")["label"].tolist() == ["incorrect"] * 4 + ["correct"] * 2
    models = load_published("2-time-models")
    assert len(models) == asked["models"]
    assert models["model"].is_unique
    kinds = models.groupby("pair")["kind"].apply(sorted)
    assert kinds.map(lambda kind: kind == ["instruction-tuned", "pretrained"]).all()
    assert models.groupby("pair")["parameters"].nunique().eq(1).all()
    # The text contradicts itself, and says so.
    llama = text[(text["quantity"] == "robustness") & (text["model"] == "Llama-3.1-70B")]
    assert llama["value"].tolist() == [0.26, 0.23]
    assert llama["note"].str.contains("of the same model").all()


def test_wording_table_1_adds_up_but_for_author():
    table = load_published("3-wording-table-1").set_index("relation")
    text = load_published("3-wording-text").set_index(["quantity", "dataset"])["value"]
    assert table["questions"].sum() == text["questions", "PopQA"] == 14267
    assert table["total_questions"].sum() == text["questions", "PopQA-TP"] == 118643
    product = table["questions"] * (1 + table["alternatives"])
    assert table.index[product != table["total_questions"]].tolist() == ["author"]
    assert table["check"].ne("ok").sum() == 1
    assert table.loc["author", "total_questions"] == 1514 * (1 + 5)


@pytest.mark.parametrize("number", [5, 6])
def test_wording_gains_are_over_the_majority(number):
    table = load_published(f"3-wording-table-{number}")
    gain = 100 * (table["accuracy"] / table["baseline"] - 1)
    assert (gain - table["gain_percent"]).abs().max() < 0.05  # one is printed with one decimal
    assert gain.gt(0).all()


def test_wording_table_7_is_of_odds_ratios():
    table = load_published("3-wording-table-7")
    assert table["scale"].eq("odds ratio").all()
    # A Wald interval is symmetric in the logarithm: the middle of exp(beta) is a geometric one.
    middle = np.sqrt(table["ci_low"] * table["ci_high"])
    assert (middle - table["estimate"]).abs().max() < 0.01
    assert ((table["ci_low"] + table["ci_high"]) / 2 - table["estimate"]).max() > 0.1


def test_wording_coefficients_add_up_where_they_are_said_to():
    # Tables 10 to 14 of paper 3: a model each.
    table = pd.concat([load_published(f"3-wording-table-{number}") for number in range(10, 15)])
    off = table["check"].str.startswith("does not add up")
    assert off.sum() == 8
    assert table["check"].str.match(r"ok$|restored: |does not add up: ").all()
    author = table[table["category"] == "author"].set_index(["model", "predictor"])["coefficient"]
    own = table["coefficient"].where(table["category"] != "author", 0)
    base = author.loc[list(zip(table["model"], table["predictor"], strict=True))].to_numpy()
    slack = (own + base - table["conditional_coefficient"]).abs()
    middle = ((table["ci_low"] + table["ci_high"]) / 2 - table["coefficient"]).abs()
    assert slack[~off].max() < 0.0015
    assert middle[~off].max() < 0.0015
    assert ((slack > 0.0015) | (middle > 0.0015))[off].all()
    # Of 16 categories, but for lost rows.
    assert not table.duplicated(["model", "term"]).any()
    text = load_published("3-wording-text")
    lost = text[text["quantity"] == "coefficient_rows_lost"].set_index("model")["value"]
    assert (table.groupby("model").size() + lost).eq(4 * 16).all()


@pytest.mark.parametrize("name", [path.stem for path in (DATA / "published").glob("*.csv")])
def test_every_table_says_where(name):
    table = load_published(name)
    _, is_table, number = name.partition("-table-")
    said = table["where"].eq(f"table {number}") if is_table else table["where"].ne("")
    assert said.all()
    assert "check" not in table or table["check"].ne("").all()


def test_the_recount_is_of_the_thesiss_answers():
    """Its verdicts by the thesis's code are table 13's, which the published answers were counted
    for."""
    recount = load_published("4-context-recount")
    assert recount.groupby("model")["count"].sum().eq(4760).all()
    others = recount[recount["published"] == "other"].groupby("model")["count"].sum()
    table13 = load_published("4-context-table-13").set_index("model")["count"]
    assert others.to_dict() == table13.to_dict()
    ours = recount[recount["model"] == "flan-t5-xl"].groupby("ours")["count"].sum()
    assert ours[["none", "same"]].sum() > 4760 / 2
