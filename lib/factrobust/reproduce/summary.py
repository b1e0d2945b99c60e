"""How far the results are from the committed ones.

python -m factrobust.reproduce.summary
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from factrobust.paths import ROOT
from factrobust.reproduce.compare import RTOL, Move, align, compare_tables

Files = Mapping[str, bytes]  # path relative to the root -> content


@dataclass
class Summary:
    """Differences between two versions of the tables and of the notebooks' text outputs."""

    tables: int = 0
    notebooks: int = 0
    numbers: int = 0
    moves: list[tuple[str, Move]] = field(default_factory=list)  # file, move
    others: dict[str, list[str]] = field(default_factory=dict)  # file -> what else changed in it
    new: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)  # notebooks whose text outputs changed


def present(root: Path) -> dict[str, bytes]:
    """The tables (figures/**/*.csv) and notebooks as they are now."""
    paths = [*root.glob("figures/**/*.csv"), *root.glob("notebooks/**/*.ipynb")]
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(paths)
        if ".ipynb_checkpoints" not in path.parts
    }


def committed(root: Path) -> tuple[str, dict[str, bytes]] | None:
    """The last commit's short name and the same files in it; None without a commit or git."""
    try:
        # --show-prefix is empty only if the root is the top of the checkout.
        if _git(root, "rev-parse", "--show-prefix").strip():
            return None
        name = _git(root, "rev-parse", "--short", "HEAD").decode().strip()
        listed = _git(root, "ls-tree", "-r", "-z", "HEAD", "figures", "notebooks")
    except (OSError, subprocess.CalledProcessError):
        return None
    entries = [entry.split("\t", 1) for entry in listed.decode().split("\0") if entry]
    blobs = {
        path: about.split()[-1]
        for about, path in entries
        if (path.startswith("figures/") and path.endswith(".csv")) or path.endswith(".ipynb")
    }
    return name, dict(zip(blobs, _contents(root, list(blobs.values())), strict=True))


def _contents(root: Path, blobs: list[str]) -> list[bytes]:
    """What git holds under these ids: one call, since each takes milliseconds to start."""
    output = _git(root, "cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in blobs))
    contents, at = [], 0
    for _ in blobs:
        start = output.index(b"\n", at) + 1
        size = int(output[at:start].split()[-1])  # "<id> blob <size>"
        contents.append(output[start : start + size])
        at = start + size + 1
    return contents


def summarise(old: Files, new: Files) -> Summary:
    """Compare every table and notebook of two versions."""
    result = Summary(gone=sorted(old.keys() - new.keys()), new=sorted(new.keys() - old.keys()))
    for path in sorted(old.keys() & new.keys()):
        if path.endswith(".csv"):
            found = compare_tables(new[path].decode(), old[path].decode())
            result.tables += 1
            result.numbers += found.numbers
            result.moves += [(path, move) for move in found.moves]
            if found.others:
                result.others[path] = found.others
        else:
            result.notebooks += 1
            if _texts_differ(new[path], old[path]):
                result.texts.append(path)
    return result


def describe(summary: Summary, against: str) -> list[str]:
    """A few lines for a reader."""
    lines = [
        f"Compared with {against}: {_count(summary.numbers, 'number')} in "
        f"{_count(summary.tables, 'table')}, {_count(summary.notebooks, 'notebook')}."
    ]
    if not summary.moves:
        lines.append(f"No number moved by more than {RTOL:g} (relative).")
    else:
        files = sorted({path for path, _ in summary.moves})
        lines.append(
            f"{_count(len(summary.moves), 'number')} in {_count(len(files), 'table')} moved by "
            f"more than {RTOL:g} (relative): {_some(files)}."
        )
        # A number that was zero has no relative move: it can only be the largest absolute one.
        finite = [pair for pair in summary.moves if math.isfinite(pair[1].relative)]
        if finite:
            path, move = max(finite, key=lambda pair: pair[1].relative)
            lines.append(f"Largest relative move: {path}, {move}.")
        path, move = max(summary.moves, key=lambda pair: pair[1].absolute)
        lines.append(f"Largest absolute move: {path}, {move}.")
    if summary.others:
        first = next(iter(summary.others))
        lines.append(
            f"Other cells changed in {_some(list(summary.others))}; the first: {first}, "
            f"{summary.others[first][0]}."
        )
    if summary.texts:
        lines.append(f"Text outputs changed: {_some(summary.texts)}.")
    for files, what in [(summary.new, "New"), (summary.gone, "No longer there")]:
        if files:
            lines.append(f"{what}: {_some(files)}.")
    return lines


def _texts_differ(new: bytes, old: bytes) -> bool:
    now, was = _texts(new), _texts(old)
    return len(now) != len(was) or any(align(a, b) != b for a, b in zip(now, was, strict=True))


def _texts(notebook: bytes) -> list[str]:
    """Everything that a notebook's code cells print or display as text, cell by cell."""
    texts = []
    for cell in json.loads(notebook)["cells"]:
        parts = [_joined(output.get("text", "")) for output in cell.get("outputs", [])]
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            parts += [_joined(data[mime]) for mime in sorted(data) if mime.startswith("text/")]
        texts.append("\n".join(parts))
    return texts


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(text)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _git(root: Path, *arguments: str, stdin: str = "") -> bytes:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, input=stdin.encode()
    ).stdout


def main(root: Path = ROOT) -> int:
    """Print the summary of the working tree against the last commit."""
    baseline = committed(root)
    if baseline is None:
        print("This folder is no git checkout with a commit: there is nothing to compare with.")
        return 1
    name, files = baseline
    print("\n".join(describe(summarise(files, present(root)), f"commit {name}")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
