"""What a profile asks of each model, and about what it costs; no model is loaded or looked up.

    python -m factrobust.plan --profile paper --tflops 200

A call is what the records keep: an answer, an answer to score, the samples at one temperature.
Answers count with as many tokens as they may have. Hours are those of one device that holds the
model, or of several that hold a part each and take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from factrobust.models.endpoint import is_endpoint
from factrobust.models.load import Settings, settings_of
from factrobust.paths import ROOT
from factrobust.plan.cost import DEVICES, Device, memory, seconds
from factrobust.plan.demands import Demand, asked_model, demands, merged
from factrobust.plan.questions import UnknownSize
from factrobust.reproduce.profiles import LAPTOP, declared_parameters, parameters

OPERATIONS = ("generate", "sample", "score", "temper")
ON_CPU = (LAPTOP, "smoke")
KNOWN = 0.4  # the embedded models know 0.30 and 0.39 of the embedded facts

Wanted = dict[tuple[str, str], list[Demand]]  # by part and model


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Command line. Exit status: 0, or 2 for a bad request."""
    given = _parser().parse_args(arguments)
    usual = DEVICES[given.device or ("cpu" if given.profile in ON_CPU else "gpu")]
    device = Device(given.tflops or usual.tflops, given.bandwidth or usual.bandwidth)
    try:
        wanted, notes = collect(root, given.profile, given.known)
    except (ValueError, KeyError, OSError) as error:
        # str() of a KeyError is the repr of its text.
        print(error.args[0] if isinstance(error, KeyError) else error, file=sys.stderr)
        return 2
    print(f"What the profile {given.profile} asks, estimated without loading anything\n")
    print(describe(wanted, device))
    print(
        f"\nAssumed: a device that achieves {device.tflops:g} TFLOP/s and reads "
        f"{device.bandwidth:g} GB of memory a second (--device, --tflops, --bandwidth), and models that know "
        f"{given.known:.0%} of part 1's facts (--known). Answers count with the most tokens that they "
        "may have, and sentence encoders and NLI models not at all. Hours are rough: those of the "
        "laptop profile came within a factor of two."
    )
    for note in [*notes, *_about_models(wanted)]:
        print(f"- {note}")
    return 0


def collect(root: Path, profile: str, known: float) -> tuple[Wanted, list[str]]:
    """What the profile's notebooks ask of each model, and what could not be counted.

    Raises ProfileError for an unknown profile, one that does not fit the notebooks, or a notebook's
    parameters that cannot be read, ModelError for an endpoint's line that cannot be.
    """
    found: Wanted = {}
    notes: dict[str, None] = {}
    for notebook, overrides in parameters(root, profile).items():
        values = declared_parameters(root / notebook) | overrides
        for name in values.get("models", ()):
            try:
                asked = demands(notebook, values, asked_model(name), known)
            except UnknownSize as error:
                notes[f"{notebook} is left out: {error}."] = None
                continue
            if asked is None:
                notes[f"{notebook} is left out: no rule says what it asks (plan/demands.py)."] = (
                    None
                )
                continue
            found.setdefault((notebook.split("/")[1], name), []).extend(asked)
    return {key: merged(asked) for key, asked in sorted(found.items(), key=_part)}, list(notes)


def describe(wanted: Wanted, device: Device) -> str:
    """A table: a line a part and model, and the sum."""
    rows: list[list[str]] = []
    total = dict.fromkeys((*OPERATIONS, "tokens", "hours"), 0.0)
    last = ""
    for (part, name), asked in wanted.items():
        if part != last:
            rows += [[""], [f"{part}:"]]
            last = part
        calls = {op: sum(d.calls for d in asked if d.operation == op) for op in OPERATIONS}
        tokens = sum(d.tokens for d in asked)
        peak, hours = _cost(asked, None if is_endpoint(name) else settings_of(name), device)
        for column, value in (calls | {"tokens": tokens, "hours": hours or 0}).items():
            total[column] += value
        rows.append(
            [f"  {name}", *map(_count, calls.values()), _millions(tokens), peak, _hours(hours)]
        )
    rows.append([""])
    sums = [_count(total[op]) for op in OPERATIONS]
    rows.append(["all", *sums, _millions(total["tokens"]), "", _hours(total["hours"])])
    headers = ["", *OPERATIONS, "tokens", "memory", "hours"]
    return tabulate(
        rows, headers, tablefmt="plain", colalign=["left", *["right"] * 7], disable_numparse=True
    )


def _cost(
    asked: Sequence[Demand], settings: Settings | None, device: Device
) -> tuple[str, float | None]:
    if settings is None or settings.size is None:
        return "unknown", None
    size = settings.size
    peak = max((memory(d, settings, size) for d in asked), default=0.0)
    return f"{peak / 1e9:.1f} GB", sum(seconds(d, settings, size, device) for d in asked) / 3600


def _about_models(wanted: Wanted) -> list[str]:
    """A sentence on each reason why the plan, or the run, does not go as far as one would like."""
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for _, name in wanted):
        settings = settings_of(name)
        if is_endpoint(name):
            reason = "memory and hours are those of the server"
        elif settings is None:
            reason = (
                "memory and hours are unknown, and tokens those of a two-shot prompt, for "
                "data/models.csv has no line for it; add one"
            )
        elif settings.size is None:
            reason = (
                "memory and hours are unknown, for its sizes in data/models.csv are not complete"
            )
        else:
            continue
        reasons.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}." for reason, names in reasons.items()]


def _part(item: tuple[tuple[str, str], Any]) -> str:
    return item[0][0]


def _count(number: float) -> str:
    return f"{number:,.0f}" if number else "-"


def _millions(tokens: float) -> str:
    return f"{tokens / 1e6:,.1f} M"


def _hours(hours: float | None) -> str:
    return "unknown" if hours is None else f"{hours:.2g}" if hours < 10 else f"{hours:,.0f}"


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise ValueError
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m factrobust.plan",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--profile", default=LAPTOP, help="a file of that name in profiles/")
    parser.add_argument(
        "--device", choices=DEVICES, help=f"default: cpu for {' and '.join(ON_CPU)}, gpu for others"
    )
    parser.add_argument("--tflops", type=_positive, help="10^12 operations a second, achieved")
    parser.add_argument(
        "--bandwidth", type=_positive, help="10^9 bytes of memory a second, achieved"
    )
    parser.add_argument(
        "--known", type=_share, default=KNOWN, help="share of part 1's facts that models know"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
