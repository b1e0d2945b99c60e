"""`python -m factrobust.records export` writes the calls that the notebooks used to data/records/."""

from __future__ import annotations

import sys

from factrobust.records import RecordsError, places
from factrobust.records.export import export


def main() -> None:
    """Write the committed records anew, and say how large they are."""
    if sys.argv[1:] != ["export"]:
        sys.exit(__doc__)
    working, committed = places()
    try:
        files = export(working, committed)
    except RecordsError as error:
        sys.exit(str(error))
    size = sum(file.stat().st_size for file in files) / 1e6
    print(f"{len(files)} files, {size:.1f} MB, in {committed}")


if __name__ == "__main__":
    main()
