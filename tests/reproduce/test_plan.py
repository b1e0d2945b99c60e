"""What a profile asks and costs: by hand, and as the records of a laptop run hold it."""

import re
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
import yaml

from factrobust import paths
from factrobust.datasets.facts import load_facts
from factrobust.datasets.official import SETS
from factrobust.models import load
from factrobust.models.load import COLUMNS, Settings
from factrobust.reproduce import plan
from factrobust.reproduce.plan import CHARACTERS_A_TOKEN, Asked, Demand, asked_model, cost, demands

ALL = 100_000
PRETRAINED = Asked("gemma-3-270m")
TUNED = Asked("smollm2-135m-instruct", "chat-prefix", True)
MODELS = {"models": ["gemma-3-270m", "smollm2-135m-instruct"], "data": "embedded"}
DECODING = MODELS | {"data": ["embedded"], "n_questions": 900, "n_known": 25, "n_samples": 10}
TIME = MODELS | {"n_facts": 281, "n_fine": 48, "n_correct": 3, "n_incorrect": 3, "n_others": 2}
TIME |= {"n_formats": 24, "n_decoded": 24}
# 13 presidents, and 7 popes, one of them without a whole year.
OFFICES = MODELS | {"n_moments": 1, "offices": ["us-president", "pope"]}
WORDING = MODELS | {"n_facts": 480, "n_samples": 10, "max_new_tokens": 20}
CONTEXT = MODELS | {"n_objects": 4, "n_facts": 80}


def asked(part: str, values: dict[str, Any], model: Asked) -> dict[str, float]:
    """Calls of a part by operation."""
    found = pd.DataFrame(demands(part, values, model))
    return found.groupby("operation")["calls"].sum().to_dict() if len(found) else {}


# What the records of a run of the laptop profile hold (tempering with the share really known).
@pytest.mark.parametrize(
    ("part", "values", "model", "held"),
    [
        ("1-decoding", DECODING, PRETRAINED, {"generate": 900, "sample": 750}),
        # Balanced dates with others, published years, the grid, examples, and the chat template.
        ("2-time", TIME, PRETRAINED, {"score": 8324 + 229 + 1439 + 689}),
        ("2-time", TIME, TUNED, {"score": 8324 + 229 + 1439 + 2 * 689}),
        ("2-time", OFFICES, TUNED, {"score": 13 * 13 + 13 + 6 * 7 + 7}),
        ("2-time", OFFICES | {"offices": []}, TUNED, {"score": 3762 + 344}),
        ("3-wording", WORDING, PRETRAINED, {"generate": 3510, "sample": 480}),
        ("3-wording", WORDING, TUNED, {"generate": 2 * 3510, "sample": 480}),  # in two formats
        ("4-context", CONTEXT, TUNED, {"generate": 800 + 80 * 4, "score": 800 + 80 * 4}),
    ],
)
def test_a_run_held_as_many(part, values, model, held):
    found = asked(part, values, model)
    # Not every fact has as many dates as are asked for at most.
    share = 0.08 if part == "2-time" else 0.015
    assert {op: found[op] for op in held} == pytest.approx(held, rel=share)


def test_the_embedded_facts_are_as_many():
    facts = load_facts()
    domains = facts["domain"].value_counts(sort=False).sort_values()
    sizes = plan.SIZES.set_index(["set", "part"])["facts"]
    assert sizes.loc["embedded", 1].tolist() == domains.tolist()
    assert sizes.loc["facts", 4] == len(facts)
    assert set(SETS) == set(plan.SIZES["set"]) - {"embedded", "thesis", "facts", "world"}


def test_known_facts_are_sampled_by_data_set_and_tempered_all():
    values = DECODING | {"data": ["squad@abc", "hotpot_qa:dev.json"], "n_questions": ALL}
    found = asked("1-decoding", values | {"n_known": 4000}, PRETRAINED)
    # Of SQuAD's 10,570 two in five are known, and 4,000 of them sampled at ten temperatures; of
    # HotpotQA's 7,405 they are 2,962.
    assert found == {"generate": 17_975, "sample": (4000 + 2962) * 10, "temper": 7_190}
    # Of 9,000 questions each gives half; of 16,000 HotpotQA gives what it has.
    assert asked("1-decoding", values | {"n_questions": 9000}, PRETRAINED)["generate"] == 9000
    found = demands("1-decoding", values | {"n_questions": 16_000}, PRETRAINED)
    assert [d.calls for d in found if d.operation == "generate"] == [7_405, 8_595]
    assert "sample" not in asked("1-decoding", values | {"n_known": 0}, PRETRAINED)


def test_papers_data_are_as_large_as_published():
    popqa = DECODING | {"data": ["popqa"], "n_questions": ALL}
    assert asked("1-decoding", popqa, PRETRAINED)["generate"] == 14_267
    time = {"models": [], "data": "timestress_paper", "n_facts": ALL, "n_correct": ALL}
    time |= {"n_incorrect": ALL, "n_fine": ALL}
    # Of the incorrect dates half are balanced, at three precisions; of the years the others, too.
    dates = 3 * (8.83 + 55.59 / 2 + 1.74) + 55.59 / 2
    assert asked("2-time", time, TUNED)["score"] == pytest.approx(600 * dates)
    # Other objects at the years alone, balanced ones and those of the grid, after the same question.
    others = time | {"n_others": 2, "n_decoded": 7}
    more = 2 * 600 * (8.83 + 55.59 / 2 + 1.74) + 3 * 7 * 24
    assert asked("2-time", others, TUNED)["score"] == pytest.approx(600 * dates + more)
    first = demands("2-time", others, TUNED)[0]
    assert (first.calls / first.prompts, first.answers) == (3, 3)
    # Years of the first model, in bfloat16.
    dtype = MODELS | {"n_incorrect": 3, "n_dtype": 2}
    assert asked("2-time", dtype, PRETRAINED)["score"] == pytest.approx(2 * 7.11)
    assert asked("2-time", dtype, TUNED) == {}
    wording = WORDING | {"data": "popqa_tp", "n_facts": ALL}
    found = asked("3-wording", wording, PRETRAINED)
    assert found == {"generate": pytest.approx(118_643), "sample": 14_267}
    assert asked("4-context", {"n_objects": ALL}, PRETRAINED) == {"generate": 9_520, "score": 9_520}
    varied = {"n_asked": 240, "n_contexts": 2}  # of which two in five are known
    found = asked("4-context", varied, PRETRAINED)
    assert found == pytest.approx(dict.fromkeys(("generate", "score"), 240 * (1 + 0.4 * 2)))


def test_tokens_of_a_prompt():
    time = {
        "models": [],
        "data": "timestress_paper",
        "n_facts": 9,
        "n_correct": 3,
        "n_incorrect": 3,
    }
    score, *_ = demands("2-time", time, PRETRAINED)
    # 78 characters of a question, nothing around it, and an answer of 12 after a space.
    assert (score.prompt, score.shared) == (78 / CHARACTERS_A_TOKEN, 0)
    assert score.tokens == pytest.approx(score.calls * 91 / CHARACTERS_A_TOKEN)
    generate, sample, _ = demands("1-decoding", DECODING | {"data": ["squad"]}, PRETRAINED)
    # Two examples ("Q: ", "\nA: ", an empty line) of 40 + 4 and 26 + 17 characters, then "Q: ".
    examples = (3 + 40 + 4 + 4 + 2) + (3 + 26 + 4 + 17 + 2)
    assert generate.shared * CHARACTERS_A_TOKEN == pytest.approx(examples + 3)
    assert generate.prompt * CHARACTERS_A_TOKEN == pytest.approx(examples + 3 + 60 + 3)
    assert sample.tokens == pytest.approx(sample.calls * (sample.prompt + 10 * 5))


def test_how_models_are_asked_and_what_they_lack():
    assert [asked_model(m.name) for m in (PRETRAINED, TUNED)] == [PRETRAINED, TUNED]
    assert asked_model("org/unknown") == Asked("org/unknown")
    endpoint = {"url": "http://localhost:8000/v1", "model": "llama"}
    chat = asked_model(endpoint)
    assert asked("1-decoding", DECODING, chat) == {"generate": 900, "sample": 750}
    assert asked("2-time", TIME, chat) == asked("4-context", CONTEXT, chat) == {}
    assert asked("2-time", TIME, asked_model(endpoint | {"api": "completions"})).keys() == {"score"}


SETTINGS = Settings(
    model="m", dtype="bfloat16", device_map="auto", tokens_per_batch=60, prompt_format="two-shot",
    chat_template="no", architecture="decoder", parameters=1000, layers=2, key_value_heads=1,
    head_size=4, width=10, vocabulary=20, tied="yes",
)  # fmt: skip


def changed(**fields: Any) -> Settings:
    return SETTINGS.model_copy(update=fields)


TWO_PARTS, UNTIED = changed(architecture="encoder-decoder"), changed(tied="no")
# A prompt of 12 tokens, of which 4 are shared, has answers of 5 tokens.
GENERATE = Demand("generate", 12, 12, 12, 4, 5)
SCORE = Demand("score", 12, 12, 12, 4, 2)
SAMPLE = Demand("sample", 20, 10, 12, 4, 5, answers=6)


@pytest.mark.parametrize(
    ("demand", "settings", "memory"),
    [
        # 8 + 1 tokens a prompt: 60 // 9 = 6 prompts a batch, each with 12 + 5 keys and values of
        # 2 layers x (key + value) x 4 numbers x 2 bytes.
        (GENERATE, SETTINGS, 2000 + 6 * 17 * 32),
        # 8 + 2 tokens a prompt: 6 prompts a batch with 14 keys each; twice as much in float32.
        (SCORE, SETTINGS, 2000 + 6 * 14 * 32),
        (SCORE, changed(dtype="float32"), 4000 + 6 * 14 * 64),
        # 2 calls of 3 samples a prompt: 8 + 6 tokens, 4 prompts a batch, each 12 + 6 x 5 keys.
        (SAMPLE, SETTINGS, 2000 + 4 * 42 * 32),
        # Each of the 6 answers has a copy of the prompt: (12 + 1) x 6 tokens are more than a batch
        # may have, so it is 1 prompt, with 6 x (12 + 5) keys.
        (SAMPLE, TWO_PARTS, 2000 + 102 * 32),
        # One prompt at least, and no more than there are.
        (SCORE, changed(tokens_per_batch=3), 2000 + 14 * 32),
        (SCORE, changed(tokens_per_batch=10**6), 2000 + 12 * 14 * 32),
    ],
)
def test_memory(demand, settings, memory):
    assert cost(demand, settings, 1, 1)[0] == memory


@pytest.mark.parametrize(
    ("demand", "settings", "device", "seconds"),
    [
        # 1,000 operations a second. The body has 1000 - 20 x 10 parameters: it reads 12 x 8 tokens
        # and makes 12 x 5 with the head.
        (GENERATE, SETTINGS, (1e-9, 1e9), (2 * 800 * 96 + 2 * 1000 * 60) / 1000),
        # An embedding of its own is no arithmetic: the body has 600, the head 200 as before.
        (GENERATE, UNTIED, (1e-9, 1e9), (2 * 600 * 96 + 2 * 800 * 60) / 1000),
        # The encoder (half the body) reads whole prompts, the decoder (the other) makes answers.
        (GENERATE, TWO_PARTS, (1e-9, 1e9), (2 * 400 * 144 + 2 * 600 * 60) / 1000),
        # Two batches of 6 prompts: a pass each to read them, and 4 more each for 5 tokens. A pass
        # fetches 2,000 bytes at 1,000 a second; scoring is reading.
        (GENERATE, SETTINGS, (1e6, 1e-6), (2 + 8) * 2),
        (SCORE, SETTINGS, (1e6, 1e-6), 2 * 2),
        # On any device a layer of a pass takes a millisecond.
        (GENERATE, SETTINGS, (1e6, 1e6), (2 + 8) * 2e-3),
    ],
)
def test_time(demand, settings, device, seconds):
    assert cost(demand, settings, *device)[1] == pytest.approx(seconds)


NOTEBOOK = """models: list = ["tiny"]
data: str = "timestress_paper"
n_facts: int = 72
n_correct: int = 3
n_incorrect: int = 3
n_fine: int = 100
seed: int = 0
"""
LINE = "tiny,float32,auto,512,two-shot,no,decoder,1000000000,4,2,64,1000,10000,yes,,,"


@pytest.fixture
def small(root, write, monkeypatch):
    """A repository with two notebooks and a table of two models, one without its sizes."""
    write("2-time/2.2-win-rate.ipynb", parameters=NOTEBOOK)
    write("2-time/2.3-robustness.ipynb", parameters="n_facts: int = 5")
    part = LINE.replace("tiny,", "part,").replace(",1000000000,", ",,")
    monkeypatch.setattr(load, "FILE", root / "models.csv")
    load.FILE.write_text(f"{','.join(COLUMNS)}\n{LINE}\n{part}\n")
    return root


def lines(out: str) -> dict[str, list[str]]:
    """The cells of each line of the table after its model."""
    cells = [re.split(r"\s{2,}", line) for line in out.splitlines() if line.startswith("2-time")]
    return {name: row for _, name, *row in cells}


def test_a_tiny_profile(small, capsys):
    endpoint = "http://localhost:8000/v1 llama api=completions"
    (small / "profiles" / "mine.yaml").write_text(
        "defaults:\n  n_facts: 100\n  models: [tiny, org/new, part, "
        "{url: http://localhost:8000/v1, model: llama, api: completions}]\n"
    )
    assert plan.main(["--profile", "mine", "--tflops", "0.001", "--bandwidth", "1e6"], small) == 0
    out = capsys.readouterr().out
    # 100 facts x 3 precisions x (3 + 6 + 1.74) dates, of (78 + 13) / 3.7 tokens, and of 6 incorrect
    # years that fall anywhere those that are not balanced: 6 x (1 - 6 / 55.59).
    # Memory: 4 GB of weights; 512 // 24.6 = 20 prompts with 24.6 keys of 2 x 4 x 2 x 64 x 4 bytes
    # are 2 MB.
    # Time: 2 x 0.99e9 x 3,757 x 21.08 operations and 2 x 1e9 x 3,757 x 3.51 at 1e9 a second
    # are 156,822 s and 26,374 s.
    calls = ["0", "0", "3,757", "0", "0.1"]
    assert lines(out) == {
        "tiny": [*calls, "51", "4.0"],
        **{name: [*calls, "unknown", "unknown"] for name in ("org/new", "part", endpoint)},
    }
    assert "0.001 TFLOP/s and 1e+06 GB of memory a second" in out


def test_a_bad_request_is_one_sentence(small, capsys):
    (small / "profiles" / "mine.yaml").write_text("defaults:\n  data: mine\n")
    assert plan.main(["--profile", "mine"], small) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert re.match(r"The size of 'mine' is not known.*timestress.*\n$", output.err)


@pytest.mark.parametrize(
    "name", ["laptop", *sorted(p.stem for p in (paths.ROOT / "profiles").glob("*.yaml"))]
)
def test_the_repositorys_profiles_are_planned_whole(name, capsys):
    assert plan.main(["--profile", name]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if re.match(r"\d-", line)]
    assert {row[0] for row in rows} == set("12345")
    assert [row for row in rows if "unknown" in row and "://" not in row] == []


def test_the_papers_models_are_all_there():
    sections = yaml.safe_load((paths.ROOT / "profiles" / "paper.yaml").read_text())["notebooks"]
    # Paper 1's fifth is an endpoint, which the notebooks that temper cannot ask.
    models = {glob: section["models"] for glob, section in sections.items() if "models" in section}
    assert {glob: len(names) for glob, names in models.items()} == {
        "1-decoding/*": 4,
        "1-decoding/1.[1-4]-*": 5,
        "2-time/*": 18,
        "3-wording/*": 5,
        "3-wording/3.6-*": 2,
        "4-context/*": 4,
    }


def test_neither_torch_nor_transformers_is_imported():
    code = "import sys; from factrobust.reproduce.plan import main; main([]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not {"torch", "transformers", "huggingface_hub"} & loaded
