"""Draws that depend on names and a seed alone: a row's draw is its own.

A hash of the name takes the place of a generator's state, so what is drawn does not change with the
order of rows, with rows that come or go, or with a library's version, and a larger sample contains
every smaller one. What is drawn here stands in prompts, records and figures: another hash would move
their numbers.
"""

import hashlib

import pandas as pd


def hash48(*key: object) -> int:
    """A whole number below 2^48 drawn from the key: a name, or a seed and a name."""
    return int(hashlib.sha256("/".join(map(str, key)).encode()).hexdigest()[:12], 16)


def hash64(key: str, size: int = 8) -> int:
    """A whole number drawn from the key, of 64 bits or of `size` bytes. To draw one of several names,
    take the one with the smallest number: each is equally likely."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=size).digest())


def sample_key(seed: int, prompt: str, temperature: float, index: int) -> bytes:
    """What determines the random numbers of a prompt's index-th sample, whatever its batch."""
    return f"{seed}\n{temperature!r}\n{index}\n{prompt}".encode()


def ranks(names: pd.Series, groups: pd.Series, seed: int) -> pd.Series:
    """Place of each name in its group, 0, 1, ..., in an order drawn from the seed and the names."""
    drawn = names.map(lambda name: hash48(seed, name)).sort_values()
    return drawn.groupby(groups).cumcount().reindex(names.index)


def need_count(name: str, count: int | None, least: int = 1) -> None:
    """Raise ValueError unless a notebook's parameter is None, for all, or a whole number."""
    if count is not None and (int(count) != count or count < least):
        raise ValueError(
            f"{name} is {count!r}; give a whole number from {least} up, or None for all"
        )


def in_turns(frame: pd.DataFrame, limit: int, seed: int, groups: list[str]) -> pd.DataFrame:
    """The rows in a seeded order in which every group comes once before any comes twice.

    A row's place depends on its own fact_id and the seed only, never on the order of the rows.
    Raises ValueError for a limit that is no count, so that a bad one is met before it is used.
    """
    need_count("limit", limit)
    order = frame.assign(draw=[hash48(seed, name) for name in frame["fact_id"]]).sort_values("draw")
    order["turn"] = order.groupby(groups).cumcount()
    return order.sort_values(["turn", "draw"])


def sample_evenly(frame: pd.DataFrame, limit: int, seed: int) -> pd.DataFrame:
    """`limit` rows in the frame's order, a seeded sample spread over domains and, within each, over
    relations. Raises ValueError for a limit that is no count."""
    order = in_turns(frame, limit, seed, ["domain", "relation"])
    order["turn"] = order.groupby("domain").cumcount()
    order = order.sort_values(["turn", "domain"])  # every domain once before any twice
    return frame.loc[order.index[:limit].sort_values()]
