"""Numbers that a network gives for a call, computed once: then they are read from the records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from factrobust.progress import progress_bar
from factrobust.records import Call, Records

Computed = Iterator[tuple[list[int], list[float]]]  # numbers of the calls done, and their values


def once(
    records: Records | None,
    calls: Sequence[Call],
    compute: Callable[[list[int]], Computed],
    *,
    label: str,
) -> list[float]:
    """The value of each call: from the records, and what is missing from `compute`.

    `compute` is given the numbers of the calls that are missing, equal calls once, and yields them
    batch by batch with their values; each batch is committed as it arrives, so that an interrupted
    run keeps what it had. It is not called if nothing is missing. Without records everything is.
    `label` names the work in the progress bar.
    """
    known = records.get(calls) if records else [None] * len(calls)
    found: dict[Call, float] = {
        call: value for call, value in zip(calls, known, strict=True) if value is not None
    }
    missing: dict[Call, list[int]] = {}
    for i, call in enumerate(calls):
        if call not in found:
            missing.setdefault(call, []).append(i)
    with progress_bar(label, len(calls)) as advance:
        advance(len(calls) - sum(map(len, missing.values())))
        batches = compute([places[0] for places in missing.values()]) if missing else ()
        for numbers, values in batches:
            done = [calls[i] for i in numbers]
            if records:
                records.put(done, values)
            found |= zip(done, values, strict=True)
            advance(sum(len(missing[call]) for call in done))
    return [found[call] for call in calls]
