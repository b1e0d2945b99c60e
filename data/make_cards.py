"""What `make card`, `make diff` and `make answers` run.

The exit status is 1 if the condition of --fail-if holds, 2, with one sentence, for what cannot be done,
and 130 after Ctrl-C.
"""

import argparse
import json
import sys
import traceback
from pathlib import Path
from typing import Any

NEEDED = {
    "card": (1, "make card MODEL=NAME"),
    "diff": (2, "make diff A=NAME B=NAME"),
    "answers": (0, "make answers"),
}
TRACEBACK = Path("build/failed/make-cards.txt")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="make", description=__doc__)
    parser.add_argument("command", choices=[*NEEDED])
    parser.add_argument("models", nargs="*", help="names of models, as profiles/README.md has them")
    parser.add_argument("--data", default="", help="a CSV with question and answer")
    parser.add_argument("--all", action="store_true", help="ask all facts of the data")
    parser.add_argument("--fail-if", default="", help="such as known_drop>0.05")
    parser.add_argument("--out", default="", help="the folder to write to")
    given = parser.parse_args(arguments)
    count, usage = NEEDED[given.command]
    named = [name for name in given.models if name.strip()]
    try:
        if len(named) != count or len(given.models) > count:
            raise ValueError(f"{usage} takes {count} names of models and got {len(named)}: {named}")
        run(given)
    except KeyboardInterrupt:
        print(
            "\nStopped. The answers so far are kept: the same command goes on there.",
            file=sys.stderr,
        )
        sys.exit(130)
    except Exception as error:
        print(explained(error), file=sys.stderr)
        sys.exit(2)


def run(given: Any) -> None:
    """The command; what takes long to import is imported here, so that Ctrl-C finds somebody."""
    if given.command == "card":
        make_card(given)
    elif given.command == "diff":
        make_diff(given)
    else:
        print(*write_answers(Path(given.out or "build/answers")), sep="\n")


def make_card(given: Any) -> None:
    import factrobust

    made = factrobust.card(given.models[0], given.data or None, all_facts=given.all)
    print(*made.notes, *made.missing, *made.save(given.out or "build/cards"), sep="\n")


def make_diff(given: Any) -> None:
    from factrobust.together.compare import diff, read_condition

    if given.fail_if.strip():
        read_condition(given.fail_if)  # before anything is asked
    before, after = given.models
    found = diff(before, after, given.data or None, all_facts=given.all)
    print(found.a.notes[0], found.table.round(3).to_string(index=False), sep="\n\n")
    print(f"\n{len(found.changes)} facts that one alone knows")
    if len(found.changes):
        print(found.changes.to_string())
    print(*found.save(given.out or "build/diffs"), sep="\n")
    if given.fail_if.strip() and found.fails(given.fail_if):
        sys.exit(f"{given.fail_if}: {after} against {before}")


def write_answers(folder: Path) -> list[Path]:
    """Write the answers of all parts, as texts, to answers.parquet and answers.csv; lists are JSON, and
    what is missing is empty."""
    import factrobust

    folder.mkdir(parents=True, exist_ok=True)
    table = factrobust.answers().astype(object).map(as_text)
    table.to_parquet(folder / "answers.parquet")
    table.to_csv(folder / "answers.csv", index=False)
    return [folder / "answers.parquet", folder / "answers.csv"]


def as_text(cell: Any) -> str:
    """A cell of a table as a text: a list, a set or an array as JSON, what is missing as nothing."""
    import pandas as pd

    if pd.api.types.is_list_like(cell):
        return json.dumps(cell, default=plain)
    return "" if pd.isna(cell) else str(cell)


def plain(value: Any) -> Any:
    """What JSON can hold of a value: NumPy's numbers and arrays as Python's, a set as a list; nothing for
    pandas' mark of what is missing."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return sorted(value) if isinstance(value, set | frozenset) else None


def explained(error: Exception) -> str:
    """One sentence about an error. One that is not ours (ours are ValueErrors, and RecordsError) is a
    fault of this project or of another library: its traceback is kept."""
    if isinstance(error, ValueError | OSError) or type(error).__name__ == "RecordsError":
        return str(error)
    TRACEBACK.parent.mkdir(parents=True, exist_ok=True)
    TRACEBACK.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first} (the whole of it is in {TRACEBACK})"


if __name__ == "__main__":
    main()
