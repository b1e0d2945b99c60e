"""Command line: `python -m factrobust.records export|verify|info|repair`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from factrobust.records import RecordsError, places
from factrobust.records.export import export, info, repair, verify


def main(arguments: Sequence[str] | None = None) -> int:
    """Look after the recorded model calls; returns 1 after an error."""
    working, committed = places()
    parser = argparse.ArgumentParser(prog="python -m factrobust.records", description=__doc__)
    parser.add_argument("--store", type=Path, default=working, help="working SQLite file")
    parser.add_argument("--folder", type=Path, default=committed, help="committed parquet files")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("export", help="write what the notebooks used to --folder")
    commands.add_parser("verify", help="read every row and compare it with its checksum")
    commands.add_parser("info", help="count what is stored")
    commands.add_parser("repair", help="save the sound rows of a damaged working file")
    given = parser.parse_args(arguments)
    try:
        if given.command == "export":
            files = export(given.store, given.folder)
            size = sum(file.stat().st_size for file in files) / 1e6
            print(f"{len(files)} files, {size:.1f} MB, in {given.folder}")
        elif given.command == "verify":
            for place, count in verify(given.store, given.folder).items():
                print(f"{place}: {count} calls, all sound")
        elif given.command == "repair":
            saved, aside = repair(given.store)
            print(f"{saved} calls saved in {given.store}; the damaged file is {aside}")
        else:
            print(info(given.store, given.folder))
    except RecordsError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
