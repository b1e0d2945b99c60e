"""Fit the detectors of data/ground.json, by which `factrobust.ground` tells where an answer is
from.

    python data/fit_ground.py                                  write them
    python data/fit_ground.py --check                          write nothing; exit 1 if they differ
    python data/fit_ground.py --models NAME --out mine.json    fit them to a model of your own

The cases are those of notebook 4.5: embedded facts, each with five passages of 3 to 10 sentences,
whose answers are exchanged to see what follows. `ground(...,
detector=grounding.load(file="mine.json"))` then uses yours; notebook 4.5 with your model in
`models` tests it on other relations."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from factrobust import context
from factrobust.context import attribution, grounding
from factrobust.datasets import named

PARAMETERS = {"models": ["gemma-3-270m", "smollm2-135m-instruct"], "n_facts": 60, "seed": 0}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    parser.add_argument("--models", nargs="+", default=PARAMETERS["models"], help="to fit to")
    parser.add_argument("--facts", type=int, default=PARAMETERS["n_facts"], help="facts asked")
    parser.add_argument("--out", type=Path, default=grounding.FILE, help="the file to write")
    given = parser.parse_args(arguments)
    about = PARAMETERS | {"models": given.models, "n_facts": given.facts}
    study = context.Passages(
        models=given.models, data=named.EMBEDDED, n_facts=given.facts, seed=PARAMETERS["seed"]
    )
    cases = study.cases[study.cases["defined"]]
    about |= {"cases": len(cases), "from_context": int(cases["from_context"].sum())}
    fits = {name: attribution.fit(cases, names) for name, names in grounding.FITTED.items()}
    about["detectors"] = {k: {x: round(b, 6) for x, b in fit.items()} for k, fit in fits.items()}
    if given.check:
        old = json.loads(given.out.read_text(encoding="utf-8"))
        numbers = [
            [d["cases"], *(b for fit in d["detectors"].values() for b in fit.values())]
            for d in (old, about)
        ]
        same = np.allclose(*numbers, atol=1e-3)
        print(f"{given.out.name} {'is up to date' if same else 'differs from the fit'}")
        return int(not same)
    given.out.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
