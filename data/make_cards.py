"""What `make card`, `make diff` and `make answers` run.

The exit status is 1 if a condition of --fail-if holds, and 2, with one sentence, for what cannot be done.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import factrobust
from factrobust.models.records import RecordsError


def write_answers(folder: Path) -> list[Path]:
    """Write the answers of all parts, as texts, to answers.parquet and answers.csv; lists are JSON."""
    folder.mkdir(parents=True, exist_ok=True)
    table = factrobust.answers().astype(object)
    table = table.map(lambda x: x if np.isscalar(x) else json.dumps(x, default=list)).astype(str)
    table.to_parquet(folder / "answers.parquet")
    table.to_csv(folder / "answers.csv", index=False)
    return [folder / "answers.parquet", folder / "answers.csv"]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make", description=__doc__)
    parser.add_argument("command", choices=["card", "diff", "answers"])
    parser.add_argument("models", nargs="*")
    for option in ("--data", "--out", "--fail-if"):
        parser.add_argument(option, default="")
    given = parser.parse_args(arguments)
    if len(given.models) != {"card": 1, "diff": 2, "answers": 0}[given.command]:
        parser.error("make card needs MODEL=..., make diff A=... and B=...")
    try:
        if given.command == "card":
            made = factrobust.card(given.models[0], given.data or None)
            print(*made.notes, *made.save(given.out or "build/cards"), sep="\n")
        elif given.command == "answers":
            print(*write_answers(Path(given.out or "build/answers")), sep="\n")
        else:
            before, after = given.models
            found = factrobust.diff(before, after, given.data or None)
            table, changes = found.table.round(3).to_string(index=False), found.changes.to_string()
            print(table, changes, sep="\n\n")
            if given.fail_if and found.fails(given.fail_if):
                sys.exit(f"{given.fail_if}: {after} against {before}")
    except (ValueError, RecordsError, OSError) as error:  # all of the library's own are ValueErrors
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
