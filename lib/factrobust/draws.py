"""Random draws that depend only on names and a seed.

A hash of the name is used, and no random generator. So a row's draw does not change with the order
of rows, with other rows, or with the version of a library, and a larger sample contains every
smaller one. Prompts, records and figures rest on these draws: another hash would change their
numbers."""

import functools
import hashlib

import pandas as pd


def hash48(*key: object) -> int:
    """A whole number below 2^48 drawn from the key: a name, or a seed and a name."""
    text = "/".join(str(part) for part in key)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return int(digest[:12], 16)


def hash64(key: str, size: int = 8) -> int:
    """A whole number drawn from the key, of `size` bytes. The smallest number draws one of several
    keys."""
    digest = hashlib.blake2b(key.encode(), digest_size=size).digest()
    return int.from_bytes(digest)


@functools.lru_cache(maxsize=10_000)  # worlds of several draws have the same names
def by_lot(key: str, names: tuple[str, ...]) -> list[int]:
    """Places of the names in the order of `hash64` of the key and each name."""
    return sorted(range(len(names)), key=lambda place: hash64(key + names[place]))


def sample_key(seed: int, prompt: str, temperature: float, index: int) -> bytes:
    """What determines the random numbers of the index-th sample of a prompt, in any batch."""
    return f"{seed}\n{temperature!r}\n{index}\n{prompt}".encode()


def ranks(names: pd.Series, groups: pd.Series, seed: int) -> pd.Series:
    """Place of each name in its group, 0, 1, ..., in an order drawn from the seed and the names."""
    drawn = names.map(lambda name: hash48(seed, name)).sort_values()
    return drawn.groupby(groups).cumcount().reindex(names.index)


def need_count(name: str, count: int | None, least: int = 1) -> None:
    """Raise ValueError unless a parameter is None (for all) or a whole number from `least` up."""
    if count is not None and (int(count) != count or count < least):
        raise ValueError(
            f"{name} is {count!r}; give a whole number from {least} up, or None for all"
        )


def in_turns(
    frame: pd.DataFrame,
    limit: int,
    seed: int,
    groups: list[str],
) -> pd.DataFrame:
    """All rows in a random order in which every group comes once before any group comes twice.
    `limit` is what a caller takes of them: ValueError if it is not a count."""
    need_count("limit", limit)
    drawn = [hash48(seed, name) for name in frame["fact_id"]]
    order = frame.assign(draw=drawn).sort_values("draw")
    order["turn"] = order.groupby(groups).cumcount()
    return order.sort_values(["turn", "draw"])


def sample_evenly(frame: pd.DataFrame, limit: int, seed: int) -> pd.DataFrame:
    """A random sample of `limit` rows, spread evenly over domains and, within each, over relations.
    Rows keep the order of the frame. Raises ValueError for a limit that is not a count."""
    order = in_turns(frame, limit, seed, ["domain", "relation"])
    order["turn"] = order.groupby("domain").cumcount()
    order = order.sort_values(["turn", "domain"])  # every domain once before any twice
    return frame.loc[order.index[:limit].sort_values()]
