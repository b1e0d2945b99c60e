"""Fit the coefficients of data/ground.json, by which `factrobust.ground` tells where an answer is from.

    python data/fit_ground.py            write them
    python data/fit_ground.py --check    write nothing; exit 1 if they differ

The cases are those of notebook 4.5: embedded facts with contexts that are true, false, about another
subject, or retrieved, asked of both embedded models.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np

from factrobust import context
from factrobust.context import grounding

PARAMETERS = {"models": ["gemma-3-270m", "smollm2-135m-instruct"], "n_facts": 80}
PARAMETERS |= {"n_retrieved": 40, "seed": 0}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 on difference")
    check = parser.parse_args(arguments).check
    cases = context.KnownContexts(PARAMETERS | {"__annotations__": PARAMETERS}).cases
    about = PARAMETERS | {"cases": len(cases), "from_context": int(cases["from_context"].sum())}
    about["coefficients"] = {name: round(x, 6) for name, x in grounding.fit(cases).items()}
    if check:
        old = json.loads(grounding.FILE.read_text(encoding="utf-8"))
        pairs = [(d["cases"], *d["coefficients"].values()) for d in (old, about)]
        same = np.allclose(*pairs, atol=1e-3)
        print(f"{grounding.FILE.name} {'is up to date' if same else 'differs from the fit'}")
        return int(not same)
    grounding.FILE.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
