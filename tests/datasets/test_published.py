"""What the papers print adds up where it should, so that it was copied rightly."""

import pandas as pd
import pytest

from factrobust.datasets.published import load_published
from factrobust.paths import DATA


def values(name: str, *keys: str) -> pd.Series:
    """The column `value` of a table by these keys."""
    return load_published(name).set_index([*keys])["value"]


def test_table_1_of_paper_1():
    """FRS falls with d, least for the two models that the text names, by what it says."""
    table = load_published("1-decoding-table-1")
    wide = table.pivot(index="d", columns="model", values="frs")
    assert wide.shape == (5, 5)
    assert wide.loc[1, "LLaMA-3b"] == 0.761
    assert wide.loc[5, "Qwen-3b"] == 0.799
    assert wide.loc[10, "Qwen-14b"] == 0.898
    assert wide.loc[50, "GPT-4o-mini"] == 0.875
    assert wide.index.tolist() == [1, 2, 5, 10, 50]
    steps = wide.diff().dropna()
    assert (steps < 0).all().all()
    drop = wide.loc[50] - wide.loc[1]
    text = values("1-decoding-text", "quantity", "model")
    printed = text["frs_drop_d1_to_d50"]
    named = ["LLaMA-3b", "LLaMA-8b"]
    assert drop.nsmallest(2).index.tolist() == named
    assert drop[named].tolist() == pytest.approx(printed[named].tolist())


def test_table_2_of_paper_1_is_its_training():
    """Numbers of the text are those that tests/decoding/test_quoted.py quotes."""
    text = values("1-decoding-text", "quantity", "model")
    assert text["pearson_entropy_breaking_temperature", "GPT-4o-mini"] == -0.24
    settings = values("1-decoding-table-2", "hyperparameter").to_dict()
    training = {"learning rate": 2e-5, "batch size": 16, "epochs": 3, "weight decay": 0.01}
    assert settings == training


def test_the_text_of_paper_2_contradicts_itself_and_says_so():
    text = load_published("2-time-text")
    llama = text[(text["quantity"] == "robustness") & (text["model"] == "Llama-3.1-70B")]
    assert llama["value"].tolist() == [0.26, 0.23]
    assert llama["note"].str.contains("of the same model").all()


def test_table_1_of_paper_3_adds_up_but_for_author():
    table = load_published("3-wording-table-1").set_index("relation")
    text = values("3-wording-text", "quantity", "dataset")["questions"]
    assert table["questions"].sum() == text["PopQA"] == 14267
    assert table["total_questions"].sum() == text["PopQA-TP"] == 118643
    product = table["questions"] * (1 + table["alternatives"])
    is_off = product != table["total_questions"]
    assert table.index[is_off].tolist() == ["author"]
    assert is_off.equals(table["check"] != "ok")
    assert table.loc["author", "total_questions"] == 1514 * (1 + 5)


def test_coefficients_of_paper_3_have_lost_rows_and_some_that_do_not_add_up():
    """Tables 10 to 14: a model each, of 16 categories with four terms."""
    table = pd.concat([load_published(f"3-wording-table-{number}") for number in range(10, 15)])
    assert not table.duplicated(["model", "term"]).any()
    lost = values("3-wording-text", "quantity", "model")["coefficient_rows_lost"]
    rows = table.groupby("model").size() + lost
    assert rows.eq(4 * 16).all()
    assert table["check"].str.match(r"ok$|restored: |does not add up: ").all()
    as_printed = table[table["check"] == "ok"]
    middle = as_printed[["ci_low", "ci_high"]].mean(axis=1)
    assert (middle - as_printed["coefficient"]).abs().max() < 0.0015
    assert table["check"].str.startswith("does not add up").sum() == 8


@pytest.mark.parametrize(
    "path", sorted((DATA / "published").glob("*.csv")), ids=lambda path: path.stem
)
def test_every_table_says_where(path):
    table = load_published(path.stem)
    _, is_table, number = path.stem.partition("-table-")
    where = table["where"]
    assert where.ne("").all()
    if is_table:
        assert where.eq(f"table {number}").all()
    if "check" in table:
        assert table["check"].ne("").all()


def test_the_recount_is_of_the_thesiss_answers():
    """Its verdicts by the thesis's code are table 13's, which the published answers were counted
    for."""
    recount = load_published("4-context-recount")
    answers = recount.groupby("model")["count"].sum()
    assert answers.eq(4760).all()
    others = recount[recount["published"] == "other"]
    found = others.groupby("model")["count"].sum()
    table13 = load_published("4-context-table-13")
    assert found.to_dict() == dict(zip(table13["model"], table13["count"], strict=True))
    flan = recount[recount["model"] == "flan-t5-xl"]
    says_nothing = flan["ours"].isin(["none", "same"])
    assert flan.loc[says_nothing, "count"].sum() > 4760 / 2
