"""Write notebooks 4.0 to 4.6 from their sources (python drafts/part4/build.py), with the prose's numbers as
«...». Run them (factrobust.reproduce --only 'notebooks/4-context/*'), then drafts/part4/fill.py."""

import sys
from pathlib import Path

import nbformat

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
import notebooks_a as a  # noqa: E402
import notebooks_b as b  # noqa: E402

FOLDER = HERE.parents[1] / "notebooks" / "4-context"
new = [a.N40, a.N41, a.N42, b.N43, b.N44, b.N45, b.N46]
only = [x for x in sys.argv[1:] if x != "--without-t5"]
if "--without-t5" in sys.argv:  # 4.2 as it is before world-t5 is there
    cells = [c for c in a.N42[1] if "alike = context" not in c[1]]
    cells[0:0] = []
    kept = []
    for kind, source in cells:
        if "## An encoder-decoder beside a decoder" in source:
            source = source.split("## An encoder-decoder beside a decoder")[0].rstrip()
        if source.startswith("Of what they know, `world-m`"):
            source = source[source.index("## What we saw") :]
        if kind == "params":
            lines = source.splitlines()
            source = "\n".join(
                x for x in lines if not x.startswith(("grown", "n_facts", "contexts"))
            )
        kept.append((kind, source))
    short = []  # nor the thesis's wordings, which ask the models anew
    for kind, source in kept:
        if "theirs = context.Study" in source or source.startswith("«I('table-wordings'"):
            continue
        if "## The thesis's own words" in source:
            source = source.split("## The thesis's own words")[0].rstrip()
        if kind == "params":
            source = "\n".join(x for x in source.splitlines() if not x.startswith("wordings"))
        short.append((kind, source))
    kept = short
    new[2] = (a.N42[0], kept)
words = code = 0
for name, cells in new:
    node = nbformat.v4.new_notebook()
    node.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                     "language_info": {"name": "python"}}  # fmt: skip
    for i, (kind, source) in enumerate(cells):
        cell = (
            nbformat.v4.new_markdown_cell(source)
            if kind == "md"
            else nbformat.v4.new_code_cell(source)
        )
        cell.id = f"cell-{i:02d}"
        if kind == "params":
            cell.metadata["tags"] = ["parameters"]
        words += len(source.split()) * (kind == "md")
        code += len(source.splitlines()) * (kind != "md")
        node.cells.append(cell)
    print(name, len(cells), "cells")
    if not only or any(x in name for x in only):
        nbformat.write(node, FOLDER / f"{name}.ipynb")
print(words, "words", code, "lines of code")
