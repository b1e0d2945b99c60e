"""About what a profile asks of each model, and what it costs; no model is loaded or looked up.

    python -m factrobust.reproduce.plan --profile paper --tflops 200

data/records/calls.csv counts the calls of the laptop profile, each in the first notebook that makes
it. Here a notebook's calls grow with one of its numbers n_...: the first that is new in its part,
or else its first; and with the dates that are asked of a fact. A model that did not run on the
laptop gets the mean of those that did."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from tabulate import tabulate

from factrobust.models.endpoint import read_endpoint
from factrobust.models.load import BYTES, Settings, pinned_names, settings_of
from factrobust.paths import DATA, ROOT
from factrobust.reproduce import needs
from factrobust.reproduce.needs import CHARACTERS_A_TOKEN
from factrobust.reproduce.profiles import LAPTOP, declared_parameters, parameters

NUMBERS = ["calls", "characters", "written"]  # columns of calls.csv that grow
HEADERS = ["part", "model", "calls", "M tokens", "GB memory", "hours"]
# What the papers' data hold: a larger number in a profile means all of it. Dates: a fact's mean.
ALL = {
    "n_questions": 29_288,
    "n_facts": 14_267,
    "n_objects": 47.6,
    "n_correct": 8.83,
    "n_incorrect": 27.8,
}
NEED_TOKEN_IDS = r"/(?:4\.|5\.5|5\.6)"  # notebooks
# What is achieved, not promised: TFLOP/s and GB of memory a second. Two cores of a laptop, in
# float32; about a third of the peak of an A100 with 80 GB.
CPU, GPU = (0.15, 15.0), (100.0, 1000.0)


def recorded() -> pd.DataFrame:
    """The calls of the laptop profile, with the models' names: a row a notebook, model, operation,
    of models that have a line in data/models.csv."""
    calls = pd.read_csv(DATA / "records" / "calls.csv")
    identities = calls["model"].str.split().str[0]
    calls["model"] = identities.map(pinned_names())
    return calls.dropna().astype(dict.fromkeys(NUMBERS, float))


def collect(root: Path, profile: str) -> pd.DataFrame:
    """The calls of a profile: the columns of `recorded`, and `part`; ProfileError as
    `parameters`."""
    calls = recorded()
    found = []
    seen: set[tuple[str, str]] = set()  # parts, and their numbers so far
    for notebook, overrides in parameters(root, profile).items():
        usual = declared_parameters(root / notebook)
        values = usual | overrides
        part = notebook.split("/")[1].removesuffix(".ipynb")
        rows = calls[calls["notebook"] == notebook].assign(part=part)
        if rows.empty:
            continue
        # 1. Other models.
        if "models" in overrides:
            among_usual = rows["model"].isin(usual["models"])
            tables = [rows[~among_usual]]
            for model in values["models"]:
                tables.append(_asked(rows[among_usual], usual["models"], model))
            rows = pd.concat(tables)
        # 2. Further models, which a profile may leave out.
        lists = [key for key, value in usual.items() if isinstance(value, list) and key != "models"]
        left_out = [name for key in lists for name in usual[key] if name not in values[key]]
        rows = rows[~rows["model"].isin(left_out) | rows["model"].isin(values.get("models", []))]
        # 3. More questions: of a notebook's numbers the first that is new in its part.
        counts = [key for key in usual if key.startswith("n_")]
        new = [key for key in counts if (part, key) not in seen]
        seen |= {(part, key) for key in counts}
        if counts:
            key = new[0] if new else counts[0]
            rows[NUMBERS] *= _size(values, key) / _size(usual, key)
        found.append(rows)
    return pd.concat(found)


def _size(values: Mapping[str, Any], key: str) -> float:
    """What the calls of a notebook with these parameters grow with: the number `key`, and dates."""
    if key == "n_objects" and values.get("questions") == "world":
        return float(values[key]) * 4 / 100  # of its 4 base questions; the embedded data have 100
    held = {}
    for name, value in values.items():
        if name in ALL:
            held[name] = min(value, ALL[name])
    size = float(held.get(key, values[key]))
    if "n_correct" in held:
        size *= held["n_correct"] + 2 * held["n_incorrect"]
    return size


class Cost(NamedTuple):
    """GB of memory, and hours on one device."""

    memory: float | None
    hours: float | None


def _asked(
    rows: pd.DataFrame,
    usual: Sequence[str],
    model: str | Mapping[str, Any],
) -> pd.DataFrame:
    """What a notebook asks of a model. `rows` is what it asks of its `usual` models."""
    if model in usual:
        return rows[rows["model"] == model]
    means = rows.groupby(["notebook", "part", "operation"], as_index=False)[NUMBERS].sum()
    means[NUMBERS] /= len(usual)
    if isinstance(model, str):
        return means.assign(model=model)
    endpoint = read_endpoint(model)
    lacking = means["operation"].isin([*endpoint.lacks])
    if "token_ids" in endpoint.lacks:
        lacking |= means["notebook"].str.contains(NEED_TOKEN_IDS)
    return means[~lacking].assign(model=endpoint.name)


def cost(calls: pd.DataFrame, model: Settings, tflops: float, bandwidth: float) -> Cost:
    """What rows of calls cost.

    Memory holds the weights, and keys and values of a batch. Every token takes two operations a
    parameter. Every batch, and every token of its answers, takes a pass: the weights are fetched,
    and Python needs a millisecond a layer. The slower of the two counts."""
    bytes_each = BYTES[model.dtype]
    weights = model.parameters * bytes_each
    keys_of_token = 2 * model.layers * model.key_value_heads * model.head_size * bytes_each
    memory = weights + keys_of_token * model.tokens_per_batch

    read = calls["characters"] / CHARACTERS_A_TOKEN
    written = calls["written"]
    computing = 2 * model.parameters * (read + written) / (tflops * 1e12)
    passes = (read + written * read / calls["calls"]) / model.tokens_per_batch
    of_pass = max(weights / (bandwidth * 1e9), model.layers * 1e-3)
    seconds = computing.clip(lower=passes * of_pass).sum()
    return Cost(memory / 1e9, float(seconds / 3600))


def costs(calls: pd.DataFrame, tflops: float, bandwidth: float) -> pd.DataFrame:
    """A row a part and model; memory and hours are missing where the model's sizes are unknown."""
    rows = []
    for (part, name), asked in calls.groupby(["part", "model"]):
        tokens = asked["characters"].sum() / CHARACTERS_A_TOKEN + asked["written"].sum()
        known = Cost(None, None)
        model = settings_of(str(name))
        if model and model.sized:
            known = cost(asked, model, tflops, bandwidth)
        rows.append([part, name, asked["calls"].sum(), tokens / 1e6, *known])
    return pd.DataFrame(rows, columns=HEADERS)


def as_table(costs: pd.DataFrame) -> str:
    """The costs, a line each, and their sum."""
    sums = costs[["calls", "M tokens", "hours"]].sum()
    total = pd.DataFrame([{"part": "all", "model": "", "GB memory": "", **sums}])
    table = pd.concat([costs.astype(object), total])
    return tabulate(
        table.where(table.notna(), None).values.tolist(),
        HEADERS,
        "plain",
        floatfmt=("", "", ",.0f", ",.2f", ".1f", ".2g"),
        numalign="right",
        missingval="unknown",
    )


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Command line. Exit status: 0, or 2 for a bad request."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--profile",
        default=LAPTOP,
        help="a file of that name in profiles/",
    )
    parser.add_argument(
        "--tflops",
        type=float,
        help="10^12 operations a second, achieved",
    )
    parser.add_argument(
        "--bandwidth",
        type=float,
        help="10^9 bytes of memory a second, achieved",
    )
    parser.add_argument(
        "--gpus",
        type=int,
        default=1,
        help="how many GPUs there are",
    )
    parser.add_argument(
        "--gpu-memory",
        type=float,
        default=80.0,
        help="GB of each",
    )
    options = parser.parse_args(arguments)
    usual_tflops, usual_bandwidth = CPU if options.profile in (LAPTOP, "smoke") else GPU
    tflops = options.tflops or usual_tflops
    bandwidth = options.bandwidth or usual_bandwidth
    try:
        calls = collect(root, options.profile)
        of_models = costs(calls, tflops, bandwidth)
        gpus = needs.Gpus(options.gpus, options.gpu_memory)
        machines = needs.text(calls, of_models, gpus)
    except (ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    table = as_table(of_models)
    print(
        f"What the profile {options.profile} asks: an order of magnitude, from the laptop's "
        f"calls.\n\n{table}\n\nAssumed: {tflops:g} TFLOP/s and {bandwidth:g} GB of memory a "
        "second, achieved (--tflops, --bandwidth). Memory and hours are unknown for an endpoint, "
        "whose calls are its requests, and for a model without a complete line in data/models.csv. "
        f"Sentence encoders do not count.\n\n{machines}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
