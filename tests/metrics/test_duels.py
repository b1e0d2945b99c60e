"""Two models fact by fact, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from factrobust.metrics.time import duel_shares, duels


def matched(values: dict[str, tuple], model: str, precision: str = "year") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "model": model,
            "prompt_format": "question",
            "fact_id": list(values),
            "precision": precision,
            "win_rate": [w for w, _ in values.values()],
            "robust": pd.array([r for _, r in values.values()], dtype="boolean"),
        }
    )


BASE = {
    "a": (0.5, False),
    "b": (0.9, False),
    "c": (1.0, True),
    "d": (np.nan, None),
    "e": (0.1, False),
}
TUNED = {"a": (0.7, False), "b": (1.0, True), "c": (0.8, False), "d": (1.0, True), "f": (1.0, True)}


def test_duels_by_hand() -> None:
    table = duels(matched(TUNED, "tuned"), matched(BASE, "base"))
    assert table[["first", "second"]].drop_duplicates().values.tolist() == [["tuned", "base"]]
    outcome = table.pivot(index="fact_id", columns="metric", values="outcome")
    assert outcome["win_rate"].to_dict() == {"a": "win", "b": "win", "c": "lose"}
    assert outcome["robust"].to_dict() == {"a": "tie", "b": "win", "c": "lose"}
    difference = table[table["metric"] == "win_rate"].set_index("fact_id")["difference"]
    assert difference.to_dict() == pytest.approx({"a": 0.2, "b": 0.1, "c": -0.2})


def test_shares_hold_all_outcomes() -> None:
    table = duels(matched(TUNED, "tuned"), matched(BASE, "base"))
    shares = duel_shares(table).set_index(["metric", "outcome"])
    assert shares["count"].to_dict() == {
        ("win_rate", "win"): 2,
        ("win_rate", "tie"): 0,
        ("win_rate", "lose"): 1,
        ("robust", "win"): 1,
        ("robust", "tie"): 1,
        ("robust", "lose"): 1,
    }
    assert shares.loc[("win_rate", "win"), "share"] == 2 / 3
    assert shares["n"].eq(3).all()


def test_precisions_are_apart() -> None:
    first = pd.concat([matched(TUNED, "t"), matched(BASE, "t", "day")])
    second = pd.concat([matched(BASE, "b"), matched(BASE, "b", "day")])
    shares = duel_shares(duels(first, second)).set_index(["precision", "metric", "outcome"])
    assert shares.loc[("day", "robust", "tie"), ["count", "share", "n"]].tolist() == [4, 1, 4]
    assert shares.loc[("year", "robust", "tie"), "count"] == 1


def test_two_formats_of_one_model() -> None:
    chat = matched(TUNED, "m").assign(prompt_format="chat")
    table = duels(chat, matched(BASE, "m"))
    assert table.loc[0, ["first", "first_format", "second", "second_format"]].tolist() == [
        *("m", "chat", "m", "question"),
    ]


def test_bad_tables() -> None:
    both = pd.concat([matched(BASE, "a"), matched(BASE, "b")])
    with pytest.raises(ValueError, match="second table holds 2 models and formats"):
        duels(matched(BASE, "c"), both)
    with pytest.raises(ValueError, match="first table holds 0 models"):
        duels(both[:0], matched(BASE, "c"))
    with pytest.raises(ValueError, match="no fact in common"):
        duels(matched({"x": (1.0, True)}, "a"), matched(BASE, "b"))
