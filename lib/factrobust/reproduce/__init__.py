"""Runs the notebooks, and says what moved."""

import sys

# Reading a notebook imports jsonschema, which would build the grammar of web addresses for a second;
# notebooks have no addresses to check, and jsonschema does without.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
