"""Are the recorded answers what the models say? A random sample of them is asked again.

Everything that determines an answer is in its record, so any record can be asked again by itself.
The sample is drawn by notebook, model and operation: of each, the same share."""

import gc
import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from factrobust.models.damage import Damage, apply
from factrobust.models.interface import Job, Model, ModelError, to_record
from factrobust.models.load import load_model, pinned_names
from factrobust.models.records import (
    COLUMNS,
    NOTEBOOKS,
    Call,
    Records,
    decode,
    encode,
    read_columns,
    read_index,
)
from factrobust.models.sentences import MINILM, Encoder

# Another kind of processor adds the same numbers in another order. With all answers asked again on
# one without AVX-512, log-probabilities moved by at most 0.0018 (sums over 20 tokens) and curves by
# at most 0.004 (at t = 0.01, which multiplies what the logits moved by a hundred). A hundredth is
# above these and still means that a probability is the same to one per cent.
TOLERANCE = 0.01
SAME = ("equal", "close", "near tie")
# Operations that train a network first, or need two: one question costs as much as all.
TRAINED = {
    "classify": "its classifier is trained for half a minute first",
    "divergence": "it takes two models, one after the other, for one number",
    "training": "it is a training, whose rounding grows with every step",
}
# Of a call's parameters; the others are a job's settings.
OF_REQUEST = ("answer", "temperature")
SHOW_SECONDS = 5
AT_ONCE = 10_000  # records that are compared


class Recorded(NamedTuple):
    """A committed answer."""

    call: Call
    notebook: str  # the first that uses it
    value: Any


class Compared(NamedTuple):
    """A recorded answer, and what the model said now."""

    recorded: Recorded
    now: Any
    verdict: str  # "equal", "close", "near tie", "other words" or "other numbers"
    difference: float  # the largest of two log-probabilities (or cosines); infinite for other words


# -- which records ---------------------------------------------------------------------------------


Stratum = tuple[str, str, str]  # notebook, model and operation
Place = tuple[str, int]  # a file, and a row of it


def _strata(folder: Path, notebooks: Collection[str]) -> dict[Stratum, list[Place]]:
    """Where the committed answers are that these notebooks use. One that several use belongs to the
    first of them."""
    strata: dict[Stratum, list[Place]] = {}
    for name, about in read_index(folder)["files"].items():
        [users] = read_columns(folder / name, about["sha256"], [NOTEBOOKS])
        for row, used_by in enumerate(users):
            wanted = [notebook for notebook in used_by.split("\n") if notebook in notebooks]
            if wanted:
                stratum = min(wanted), about["model"], about["operation"]
                strata.setdefault(stratum, []).append((name, row))
    return strata


def draw(
    folder: Path,
    share: float,
    seed: int,
    notebooks: Collection[str],
) -> list[Recorded]:
    """A random sample of the committed answers in `folder` that these notebooks use.

    Of each notebook, model and operation the same share is drawn, rounded up. Equal seeds draw the
    same."""
    # 1. Draw.
    generator = np.random.default_rng(seed)
    drawn: dict[str, dict[int, str]] = {}  # file -> row -> notebook
    for (notebook, _, _), places in sorted(_strata(folder, notebooks).items()):
        size = math.ceil(share * len(places) - 1e-9)  # 0.02 * 50 is 1, whatever its last digit
        for i in generator.choice(len(places), size=size, replace=False):
            name, row = places[i]
            drawn.setdefault(name, {})[row] = notebook
    # 2. Read them.
    files = read_index(folder)["files"]
    found = []
    for name, rows in drawn.items():
        columns = read_columns(folder / name, files[name]["sha256"], COLUMNS)
        for row, notebook in sorted(rows.items()):
            *call, text = (column[row] for column in columns)
            found.append(Recorded(Call(*call), notebook, decode(text)))
    return found


def count(folder: Path, notebooks: Collection[str]) -> int:
    """How many committed answers these notebooks use."""
    return sum(map(len, _strata(folder, notebooks).values()))


# -- asking ----------------------------------------------------------------------------------------


def name_of(fingerprint: str) -> str:
    """What a reader calls the model of a fingerprint: "gemma-3-270m round 4"."""
    if fingerprint == Encoder().fingerprint:
        return MINILM
    identity, *about = fingerprint.split()
    changed = about[1:]  # after the dtype; a model that is trained on the spot has none
    return " ".join([pinned_names().get(identity, identity), *changed])


def load(fingerprint: str) -> Model | Encoder:
    """The model of a fingerprint, such as "sha256:a5fd3b62230aa5ec float32 round 4". ModelError if
    it cannot be had here."""
    if fingerprint == Encoder().fingerprint:
        return Encoder()
    plain = fingerprint.removesuffix(" again")  # asked once more: the same model
    identity, dtype, *changed = plain.split()
    name = pinned_names().get(identity)
    if name is None:
        raise ModelError(f"no model in data/models.csv has the fingerprint {fingerprint}")
    change = None
    if changed:
        way, dose, *draw_of = changed
        seed = int(draw_of[-1]) if draw_of else 0
        damage = Damage(way, float(dose), seed)
        change = damage.label, partial(apply, damage=damage)
    model = load_model(name, dtype=dtype, change=change)
    if model.fingerprint != plain:
        raise ModelError(f"{name} is {model.fingerprint} here, and was {fingerprint}")
    return model


def ask_again(
    drawn: Iterable[Recorded],
    show: Callable[[str], None],
    load: Callable[[str], Model | Encoder] = load,
) -> tuple[list[Compared], dict[str, str]]:
    """What the models say now, and the reasons why some models or operations were left out.

    Each model is loaded once. `show` is told every five seconds how far it is, and how long the
    model at hand still takes at its pace.
    """
    wanted = []
    left_out = {}
    for recorded in drawn:
        operation = recorded.call.operation
        if operation in TRAINED:
            left_out[operation] = TRAINED[operation]
        else:
            wanted.append(recorded)
    wanted.sort(key=lambda recorded: recorded.call)
    total = len(wanted)
    compared: list[Compared] = []
    by_model = itertools.groupby(wanted, key=lambda recorded: recorded.call.model)
    for fingerprint, group in by_model:
        name = name_of(fingerprint)
        records = list(group)
        show(f"asking again: {len(compared):,} of {total:,} answers, loading {name}")
        try:
            model = load(fingerprint)
        except ModelError as error:
            left_out[name] = str(error)
            total -= len(records)
            show(f"asking again: {name} is left out, {error}")
            continue
        began = shown = time.monotonic()
        try:
            for done, (recorded, answer) in enumerate(_asked(model, records), start=1):
                compared.append(_compared(recorded, answer))
                now = time.monotonic()
                if now > shown + SHOW_SECONDS:
                    shown = now
                    left = (now - began) / done * (len(records) - done)
                    show(
                        f"asking again: {len(compared):,} of {total:,} answers, {name} for about "
                        f"{left:.0f} s more"
                    )
        except ModelError as error:
            left_out[name] = str(error)
        gc.collect()  # before the next one takes its memory
    return compared, left_out


def _asked(
    model: Model | Encoder,
    records: list[Recorded],
) -> Iterator[tuple[Recorded, Any]]:
    """The records of one model, and what it says now, as a record would hold it."""
    if isinstance(model, Encoder):
        groups = [json.loads(recorded.call.prompt) for recorded in records]
        yield from zip(records, model.similarity(groups).tolist(), strict=True)
        return
    # 1. Calls of one operation with the same settings are one job.
    jobs: dict[tuple[str, str], Job] = {}
    records_of: dict[tuple[str, str], list[Recorded]] = {}
    for recorded in records:
        settings = json.loads(recorded.call.parameters)
        request = {"prompt": recorded.call.prompt}
        for name in OF_REQUEST:
            if name in settings:
                request[name] = settings.pop(name)
        operation = recorded.call.operation
        key = operation, json.dumps(settings)
        job = jobs.setdefault(key, Job(operation, [], settings))
        job.requests.append(request)
        records_of.setdefault(key, []).append(recorded)
    # 2. Ask.
    for key, job in jobs.items():
        for positions, values in model.answer(job):
            for position, value in zip(positions, values, strict=True):
                text = encode(to_record(value))
                yield records_of[key][position], decode(text)


# -- comparing -------------------------------------------------------------------------------------


def _compared(recorded: Recorded, now: Any) -> Compared:
    verdict, difference = compare(recorded.value, now)
    return Compared(recorded, now, verdict, difference)


def compare(recorded: Any, now: Any) -> tuple[str, float]:
    """The verdict on what was said now, and the largest difference of two numbers.

    A greedy answer that differs is a near tie if, where it first does, the record has both words as
    equally likely within TOLERANCE: rounding may turn it.
    """
    numbers = _numbers_of_tops(recorded)
    difference = _gap(numbers, _numbers_of_tops(now))
    if difference == 0:
        return "equal", 0.0
    if difference <= TOLERANCE:
        return "close", difference
    if math.isfinite(difference):
        return "other numbers", difference
    if _near_tie(recorded, now):
        return "near tie", difference
    return "other words", difference


def _numbers_of_tops(value: Any) -> Any:
    """A greedy answer's likeliest tokens without their names: two that are equally likely may have
    changed places."""
    if not isinstance(value, dict) or "top_logprobs" not in value:
        return value
    logprobs = []
    for pairs in value["top_logprobs"]:
        logprobs.append([logprob for _, logprob in pairs])
    return value | {"top_logprobs": logprobs}


def _gap(recorded: Any, now: Any) -> float:
    """The largest difference of two floats in nested values; infinite if anything else differs."""
    if recorded == now:
        return 0.0
    if isinstance(recorded, float) and isinstance(now, float):
        return abs(recorded - now)
    if isinstance(recorded, dict) and isinstance(now, dict) and recorded.keys() == now.keys():
        gaps = [_gap(recorded[key], now[key]) for key in recorded]
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        gaps = list(map(_gap, recorded, now))
    else:
        return math.inf
    return max(gaps, default=0.0)


def _near_tie(recorded: Any, now: Any) -> bool:
    """Whether two greedy answers first differ where the record has both words as equally likely."""
    if not (isinstance(recorded, dict) and isinstance(now, dict)):
        return False
    alternatives = recorded.get("top_logprobs") or []
    alternatives_now = now.get("top_logprobs")
    pairs = zip(recorded["token_ids"], now["token_ids"], strict=False)
    different = [place for place, (old, new) in enumerate(pairs) if old != new]
    if not different or different[0] >= len(alternatives) or not alternatives_now:
        return False
    place = different[0]
    logprobs = dict(alternatives[place])
    word_now = alternatives_now[place][0][0]
    likeliest = alternatives[place][0][1]
    return word_now in logprobs and likeliest - logprobs[word_now] <= TOLERANCE


def compare_stores(
    folder: Path,
    asked: Records,
    notebooks: Collection[str],
) -> list[Compared]:
    """Every committed answer that these notebooks use and that `asked` holds, too, compared."""
    every = draw(folder, 1.0, 0, notebooks)
    wanted = [recorded for recorded in every if recorded.call.operation not in TRAINED]
    found = []
    for start in range(0, len(wanted), AT_ONCE):
        batch = wanted[start : start + AT_ONCE]
        values = asked.get([recorded.call for recorded in batch])
        for recorded, now in zip(batch, values, strict=True):
            if now is not None:
                found.append(_compared(recorded, now))
    return found


# -- what a reader learns --------------------------------------------------------------------------


def summary(compared: list[Compared], total: int) -> list[str]:
    """Sentences about a sample of `total` recorded answers."""
    counts = Counter(each.verdict for each in compared)
    same = sum(counts[verdict] for verdict in SAME)
    largest = max(
        (each.difference for each in compared if each.verdict == "close"),
        default=0.0,
    )
    lines = [
        f"Asked again: {len(compared):,} of {total:,} recorded answers. {same:,} came out the "
        f"same: {counts['equal']:,} bit for bit, {counts['close']:,} within {TOLERANCE:g} of a "
        f"log-probability (the largest difference is {largest:.2g}), {counts['near tie']:,} near "
        "ties that rounding turned."
    ]
    if same == len(compared) < total and compared:
        lines.append(
            f"Had {detectable(len(compared), total):,} recorded answers been wrong, this sample "
            "would have shown one with a probability of 95%."
        )
    return lines


def detectable(drawn: int, total: int) -> int:
    """How many wrong answers among `total` a sample of `drawn` misses altogether with a probability
    of at most 5%: the least w with (1 - drawn / total) ** w <= 0.05."""
    missed = 1 - drawn / total  # the chance that a wrong answer is not drawn
    return math.ceil(math.log(0.05) / math.log(missed))


def words(value: Any) -> Any:
    """What a record says, as short as it can be shown."""
    if isinstance(value, dict):
        return value.get("text", value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [each["text"] for each in value]
    return value


def worst(compared: list[Compared]) -> list[Compared]:
    """Those that did not come out the same, the largest differences first."""
    different = [each for each in compared if each.verdict not in SAME]
    return sorted(different, key=lambda each: -each.difference)


def save(compared: list[Compared], file: Path) -> None:
    """All that did not come out the same, and near ties, as a CSV: a row a call."""
    rows: list[dict[str, Any]] = []
    for each in compared:
        if each.verdict in ("equal", "close"):
            continue
        rows.append(
            {
                "notebook": each.recorded.notebook,
                "verdict": each.verdict,
                "difference": each.difference,
                **each.recorded.call._asdict(),
                "recorded": encode(each.recorded.value),
                "now": encode(each.now),
            }
        )
    columns = ["notebook", "verdict", "difference", *Call._fields, "recorded", "now"]
    file.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows, columns=columns).to_csv(file, index=False, lineterminator="\n")
