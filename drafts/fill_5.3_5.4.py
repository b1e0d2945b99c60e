"""Fill {{table; query; format}} in the markdown cells of a built notebook: fill.py SRC.txt NB.ipynb (keeps outputs)."""
import json, re, sys
import pandas as pd
src, nbf = sys.argv[1:]
from pathlib import Path
FIG = str(Path(nbf).resolve().parents[2] / "figures/5-exposure") + "/"
def num(x, d): 
    s = f"{x:.{d}f}"
    return s if float(s) else f"{0:.{d}f}"
def pct(x): 
    s = f"{100*x:.0f}"; return s if float(s) else "0"
def fmt(row, f):
    if f[0] == "i": d = int(f[1]); return f"{num(row['mean'],d)} [{num(row['low'],d)}, {num(row['high'],d)}]"
    if f == "p": return f"{pct(row['mean'])}% [{pct(row['low'])}, {pct(row['high'])}]"
    if f == "pi": return f"{pct(row['mean'])} points [{pct(row['low'])}, {pct(row['high'])}]"
    if f[0] == "m": return num(row["mean"], int(f[1]))
    if f == "%": return f"{pct(row['mean'])}%"
    if f == "pp": return pct(row["mean"])
    if f == "pv": return f"{row['p']:.3f}"
    if f == "n": return f"{int(row['n'])}"
    raise ValueError(f)
def sub(m):
    name, query, f = (x.strip() for x in m[1].split(";"))
    t = pd.read_csv(FIG + name + ".csv", keep_default_na=False)
    for c in ("mean","low","high","n","p"):
        if c in t: t[c] = pd.to_numeric(t[c])
    t = t.query(query) if query else t
    if f == "none":
        assert not len(t), (m[0], t)
        return ""
    assert len(t), m[0]
    if "model" in t: t = t.sort_values("model", key=lambda c: c.map(ORDER), kind="stable")
    if f.startswith("~"):
        f = f[1:]; t = t.sort_values("mean"); a, b = fmt(t.iloc[0], f), fmt(t.iloc[-1], f)
        return a if a == b else f"{a.rstrip('%')} to {b}"
    v = [fmt(r, f) for _, r in t.iterrows()]
    return v[0] if len(v) == 1 else ", ".join(v[:-1]) + " and " + v[-1]
SIZES = ["world-s","world-s-1","world-s-2","world-m","world-m-1","world-m-2","world-l","world-l-1","mean of grown","smollm2-taught","smollm2-taught-1","smollm2-taught-2","mean of taught"]
ORDER = {m:i for i,m in enumerate(SIZES)}
import textwrap
def wrap(text):
    out = []
    for para in text.split("\n\n"):
        if para.startswith(("#", "|", "$$", "!", "- ", "    ")) : 
            if para.startswith("- "):
                items = re.split(r"\n(?=- )", para)
                out.append("\n".join("\n".join(textwrap.wrap(" ".join(i.split()), 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)) for i in items))
            else: out.append(para)
        else: out.append("\n".join(textwrap.wrap(" ".join(para.split()), 118, break_long_words=False, break_on_hyphens=False)))
    return "\n\n".join(out)
parts = re.split(r"(?m)^### ", open(src).read())[1:]
nb = json.load(open(nbf)); assert len(nb["cells"]) == len(parts), (len(nb["cells"]), len(parts))
words = 0
for cell, part in zip(nb["cells"], parts):
    head, _, body = part.partition("\n")
    if head.startswith("md"):
        text = re.sub(r"\{\{(.*?)\}\}", sub, " ".join([body.strip("\n")]), flags=re.S)
        text = wrap(text); words += len(text.split())
        cell["source"] = text.splitlines(keepends=True)
    else:
        assert "".join(cell["source"]) == body.strip("\n"), cell["id"]
open(nbf, "w").write(json.dumps(nb, indent=1, ensure_ascii=False) + "\n")
print(nbf.split("/")[-1], words, "words", len(parts), "cells")
