"""Runs the notebooks, and says what moved."""

import sys

# jsonschema, which nbformat imports, compiles a grammar of addresses in any script where it finds
# this package: three seconds at each start. No notebook's schema asks for one.
if "rfc3987_syntax" not in sys.modules:
    sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
