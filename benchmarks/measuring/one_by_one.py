"""Peak memory of asking models one after the other, as a study does.

python -m measuring.one_by_one FOLDER ...     # in benchmarks/; prints JSON, in GB of 10^9 bytes
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from factrobust import load_model
from factrobust.models.records import Records
from measuring.memory import peak_bytes

PROMPTS = [f"The capital of {country} is" for country in ("Japan", "Kenya", "Peru", "Norway")]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Records(Path(folder, "records.sqlite"))
        models = [load_model(name, records=store) for name in sys.argv[1:]]
        for model in models:
            model.generate(PROMPTS, max_new_tokens=5)
            model.score(PROMPTS, [" Paris"] * len(PROMPTS))
    print(json.dumps({"peak_gigabytes": peak_bytes() / 1e9}))


if __name__ == "__main__":
    main()
