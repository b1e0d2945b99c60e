"""Runs the notebooks, and says what moved."""

import sys

# nbformat imports jsonschema, which imports this if it is there (JupyterLab brings it), and this
# compiles a grammar for every kind of internet address: more than a second, for nothing here.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
