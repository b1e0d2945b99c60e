"""What a profile asks and costs: by hand, and as the records of a laptop run hold it."""

import functools
import re

import pandas as pd
import pytest
import yaml
from export_records import count_calls

from factrobust import paths
from factrobust.models.load import Settings
from factrobust.models.records import Call, read_index
from factrobust.reproduce import plan, profiles
from factrobust.reproduce.plan import collect, cost

FEW = 1000  # calls of an operation by a model
COLUMNS = ["notebook", "model", "operation", *plan.NUMBERS]
LAPTOP_CALLS = pd.DataFrame(
    [
        ("1.1-a", "small", "generate", 10.0, 370.0, 50.0),
        ("1.1-a", "large", "generate", 30.0, 740.0, 150.0),
        ("1.1-a", "judge", "generate", 4.0, 37.0, 20.0),
        ("1.2-b", "small", "sample", 6.0, 100.0, 60.0),
        ("1.2-b", "small", "temper", 2.0, 100.0, 0.0),
    ],
    columns=COLUMNS,
)
LAPTOP_CALLS["notebook"] = "notebooks/1-part/" + LAPTOP_CALLS["notebook"] + ".ipynb"
ASKED = 'models: list = ["small", "large"]\nn_questions: int = 9\n'
FURTHER = 'further: list = ["judge"]\nn_correct: int = 3\nn_incorrect: int = 1'


@pytest.fixture
def planned(root, write, monkeypatch):
    """The calls of a profile, by notebook, model and operation, in a repository of two
    notebooks."""
    write("1-part/1.1-a.ipynb", parameters=f"{ASKED}{FURTHER}")
    write("1-part/1.2-b.ipynb", parameters=f"{ASKED}n_known: int = 5")
    monkeypatch.setattr(plan, "recorded", lambda: LAPTOP_CALLS)

    def calls(profile: str) -> dict[tuple[str, str, str], float]:
        (root / "profiles" / "mine.yaml").write_text(f"defaults: {profile}")
        found = collect(root, "mine").assign(notebook=lambda rows: rows["notebook"].str[17:20])
        return found.set_index(["notebook", "model", "operation"])["calls"].to_dict()

    return calls


def test_calls_grow_with_the_number_that_is_new_and_with_dates(planned):
    generated = {"small": 10, "large": 30, "judge": 4}
    unchanged = {("1.1", name, "generate"): n for name, n in generated.items()}
    unchanged |= {("1.2", "small", "sample"): 6, ("1.2", "small", "temper"): 2}
    assert planned("{}") == unchanged
    # 18 questions for 9: twice as many in 1.1; in 1.2 what is new is n_known.
    more = [20, 60, 8, 6, 2]
    assert planned("{n_questions: 18}") == dict(zip(unchanged, more, strict=True))
    # 15 for 5 is thrice in 1.2. In 1.1 5 + 2 x 5 dates for 3 + 2 x 1 are so, too.
    thrice = {key: 3 * n for key, n in unchanged.items()}
    assert planned("{n_known: 15, n_correct: 5, n_incorrect: 5}") == pytest.approx(thrice)
    # All the dates there are: 8.83 + 2 x 27.8.
    every = planned("{n_correct: 100000, n_incorrect: 100000}")
    assert every["1.1", "small", "generate"] == pytest.approx(10 * (8.83 + 2 * 27.8) / 5)


SETTINGS = Settings(
    model="m",
    dtype="bfloat16",
    device_map="auto",
    tokens_per_batch=60,
    prompt_format="two-shot",
    chat_template="no",
    architecture="decoder",
    parameters=1000,
    layers=2,
    key_value_heads=1,
    head_size=4,
    width=10,
    vocabulary=20,
    tied="yes",
)


@pytest.mark.parametrize(
    ("device", "seconds"),
    [
        # 1,000 operations a second, 2 x 1,000 a token: 120 tokens of prompts and 36 of answers.
        ((1e-9, 1e9), 2 * (120 + 36)),
        # Twelve prompts of 10 tokens are two batches of 6. Both are read in a pass, and write 3
        # tokens an answer in a pass each. A pass fetches 2,000 bytes at 1,000 a second.
        ((1e6, 1e-6), (2 + 2 * 3) * 2),
        # On any device a layer of a pass takes a millisecond.
        ((1e6, 1e6), (2 + 2 * 3) * 2e-3),
    ],
)
def test_cost(device, seconds):
    calls = pd.DataFrame([(12, 120 * 3.7, 36)], columns=plan.NUMBERS)
    memory, hours = cost(calls, SETTINGS, *device)
    # 2 bytes a weight, and for 60 tokens keys and values of 2 layers x 4 numbers.
    assert memory * 1e9 == pytest.approx(2 * 1000 + 60 * 2 * 2 * 4 * 2)
    assert hours * 3600 == pytest.approx(seconds)


def test_the_laptops_plan_is_what_the_records_hold():
    """All calls by their number; characters and answers of the operations with few calls."""
    folder = paths.DATA / "records"
    by = ["model", "operation"]
    planned = pd.read_csv(folder / "calls.csv").groupby(by)[plan.NUMBERS].sum()
    files = pd.DataFrame.from_dict(read_index(folder)["files"], orient="index")
    held = files.groupby(by)["calls"].sum()
    pd.testing.assert_series_equal(planned["calls"], held)
    few = held.index[held < FEW]
    names = files.index[files.set_index(by).index.isin(few)]
    calls = pd.concat(pd.read_parquet(folder / name, columns=[*Call._fields]) for name in names)
    marked = calls.assign(value="", notebook="").itertuples(index=False, name=None)
    pd.testing.assert_frame_equal(
        planned.loc[few], count_calls(marked).groupby(by)[plan.NUMBERS].sum()
    )
    asked = collect(paths.ROOT, "laptop")
    others = ["int_sim", "classify", "training"]  # calls of no language model
    assert asked["calls"].sum() == held.drop(others, level="operation").sum()


def test_the_repositorys_profiles_are_planned_whole(monkeypatch, capsys):
    read_once = functools.cache(profiles.declared_parameters)
    for module in (plan, profiles):
        monkeypatch.setattr(module, "declared_parameters", read_once)
    for name in ("laptop", *(path.stem for path in (paths.ROOT / "profiles").glob("*.yaml"))):
        assert plan.main(["--profile", name]) == 0
        rows = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\d-", line)]
        assert {row[0] for row in rows} == set("0123456"), name
        assert [row for row in rows if "unknown" in row and "://" not in row] == []


def test_a_bad_request_is_one_sentence(root, capsys):
    assert plan.main(["--profile", "mine"], root) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.match(r"There is no profile 'mine': known are .*\n$", output.err)


def test_the_papers_models_are_all_there():
    sections = yaml.safe_load((paths.ROOT / "profiles" / "paper.yaml").read_text())["notebooks"]
    # Paper 1's fifth is an endpoint, which the notebooks that temper cannot ask.
    models = {glob: section["models"] for glob, section in sections.items() if "models" in section}
    assert {glob: len(names) for glob, names in models.items()} == {
        "1-decoding/*": 4,
        "1-decoding/1.[136]-*": 5,
        "2-time/*": 18,
        "3-wording/*": 5,
        "3-wording/3.5-*": 2,
        "4-context/*": 2,
    }
