"""What a profile asks and costs: by hand, and as the records of a laptop run hold it."""

import functools
import re

import pandas as pd
import pytest
import yaml
from frames import frame

from factrobust import paths
from factrobust.models.load import Settings
from factrobust.models.records import read_index
from factrobust.reproduce import plan, profiles
from factrobust.reproduce.plan import collect, cost

LAPTOP_CALLS = frame("""
    notebook                      model  operation  calls  characters  written
    notebooks/1-part/1.1-a.ipynb  small  generate   10     370         50
    notebooks/1-part/1.1-a.ipynb  large  generate   30     740         150
    notebooks/1-part/1.1-a.ipynb  judge  generate   4      37          20
    notebooks/1-part/1.2-b.ipynb  small  sample     6      100         60
    notebooks/1-part/1.2-b.ipynb  small  temper     2      100         0
""")
ASKED = 'models: list = ["small", "large"]\nn_questions: int = 9\n'
FURTHER = 'further: list = ["judge"]\nn_correct: int = 3\nn_incorrect: int = 1'


@pytest.fixture
def planned(root, write, monkeypatch):
    """The numbers of calls of a profile, in the order of LAPTOP_CALLS, in a repository of two
    notebooks."""
    write("1-part/1.1-a.ipynb", parameters=f"{ASKED}{FURTHER}")
    write("1-part/1.2-b.ipynb", parameters=f"{ASKED}n_known: int = 5")
    monkeypatch.setattr(plan, "recorded", lambda: LAPTOP_CALLS)

    def calls(profile):
        (root / "profiles" / "mine.yaml").write_text(f"defaults: {profile}")
        found = collect(root, "mine")
        key = ["notebook", "model", "operation"]
        return LAPTOP_CALLS[key].merge(found, on=key)["calls"].tolist()

    return calls


def test_calls_grow_with_the_number_that_is_new_and_with_dates(planned):
    assert planned("{}") == [10, 30, 4, 6, 2]
    # 18 questions for 9: twice as many in 1.1; in 1.2 what is new is n_known.
    assert planned("{n_questions: 18}") == [20, 60, 8, 6, 2]
    # 15 for 5 is thrice in 1.2. In 1.1 5 + 2 x 5 dates for 3 + 2 x 1 are so, too.
    thrice = [30, 90, 12, 18, 6]
    assert planned("{n_known: 15, n_correct: 5, n_incorrect: 5}") == pytest.approx(thrice)
    # All the dates there are: 8.83 + 2 x 27.8.
    first, *_ = planned("{n_correct: 100000, n_incorrect: 100000}")
    assert first == pytest.approx(10 * (8.83 + 2 * 27.8) / 5)


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
    weights = 2 * 1000
    cache = 60 * 2 * 2 * 4 * 2  # keys and values of 60 tokens, of 2 layers x 4 numbers
    assert memory * 1e9 == pytest.approx(weights + cache)
    assert hours * 3600 == pytest.approx(seconds)


def test_the_laptops_plan_is_what_the_records_hold():
    folder = paths.DATA / "records"
    by = ["model", "operation"]
    planned = pd.read_csv(folder / "calls.csv").groupby(by)["calls"].sum()
    files = pd.DataFrame.from_dict(read_index(folder)["files"], orient="index")
    held = files.groupby(by)["calls"].sum()
    pd.testing.assert_series_equal(planned, held)
    asked = collect(paths.ROOT, "laptop")
    others = ["int_sim", "classify", "training"]  # calls of no language model
    assert asked["calls"].sum() == held.drop(others, level="operation").sum()


def test_the_repositorys_profiles_are_planned_whole(monkeypatch, capsys):
    read_once = functools.cache(profiles.declared_parameters)
    for module in (plan, profiles):
        monkeypatch.setattr(module, "declared_parameters", read_once)
    names = [path.stem for path in (paths.ROOT / "profiles").glob("*.yaml")]
    for name in ("laptop", *names):
        assert plan.main(["--profile", name]) == 0
        out = capsys.readouterr().out
        rows = re.findall(r"^\d-.*", out, re.MULTILINE)
        assert {row[0] for row in rows} == set("0123456"), name
        assert not [row for row in rows if "unknown" in row and "://" not in row]


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
