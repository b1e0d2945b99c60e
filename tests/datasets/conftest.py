"""A hub cache of the tests' own: what the hub's client left on disk, and no network."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

Put = Callable[..., Path]


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """put(repo, commit, name, content, ref="main") lays a file into an offline hub cache."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)

    def put(
        repo: str, commit: str, name: str, content: pd.DataFrame | bytes, ref: str | None = None
    ) -> Path:
        folder = tmp_path / "hub" / f"datasets--{repo.replace('/', '--')}"
        file = folder / "snapshots" / commit / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            content.to_parquet(file)
        if ref:
            (folder / "refs").mkdir(exist_ok=True)
            (folder / "refs" / ref).write_text(commit)
        return file

    return put
