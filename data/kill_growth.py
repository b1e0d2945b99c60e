"""Grow a model undisturbed, and again killed ten times at random moments; compare the weights.

    python data/kill_growth.py [NAME]    # of the PLANS of grow_models.py; world-s

Exit status 1 if they differ in a bit.
"""

from __future__ import annotations

import random
import shutil
import sys
from multiprocessing import get_context
from pathlib import Path

from grow_models import BUILD, grow

from factrobust.datasets.world import load_world
from factrobust.models.load import weights_digest

KILLS = 10
SECONDS = (5, 30)  # between a start and a kill


def grown(name: str, place: Path, kills: int) -> str:
    """The SHA-256 of the weights of a model that was killed so often while it grew in a folder."""
    shutil.rmtree(place, ignore_errors=True)
    rng = random.Random(name)
    arguments = name, load_world(), place / "work", place / "model"
    for kill in [*range(1, kills + 1), None]:
        process = get_context("spawn").Process(target=grow, args=arguments)
        process.start()
        process.join(rng.uniform(*SECONDS) if kill else None)
        if process.is_alive():
            process.kill()  # as a power cut does
            process.join()
            print(f"{name}: killed {kill} of {kills}", flush=True)
        elif process.exitcode:
            sys.exit(f"{name} could not be grown (exit status {process.exitcode})")
    return weights_digest(place / "model")


if __name__ == "__main__":
    [name] = sys.argv[1:] or ["world-s"]
    once, killed = (grown(name, BUILD / "kills" / str(n), n) for n in (0, KILLS))
    print(f"{name}: the weights are {'the same' if once == killed else 'not the same'}")
    sys.exit(once != killed)
