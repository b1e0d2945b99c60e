"""Remove what lies in figures/4-context and no notebook of part 4 saves."""

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
sources = "".join(
    "".join(cell["source"])
    for path in (ROOT / "notebooks" / "4-context").glob("*.ipynb")
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
)
for path in sorted((ROOT / "figures" / "4-context").iterdir()):
    name = f"4-context/{path.stem}"
    looped = path.stem in ("table-09", "table-10")  # saved in a loop
    if f'"{name}"' not in sources and not looped:
        print(path.name)
        path.unlink()
