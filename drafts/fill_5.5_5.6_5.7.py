"""p5c_fill.py NOTEBOOK: replace «table|query|format» in markdown by numbers of figures/5-exposure/table.csv."""
import json,sys,re
import numpy as np, pandas as pd
nb=json.load(open(sys.argv[1])); F="figures/5-exposure/"
def num(x,d,scale=1):
    if np.isinf(x): return "never"
    x=round(float(x)*scale,d)+0.0
    return f"{x:.{d}f}"
def one(m):
    table,query,fmt=(m[1].split("|")+["0"])[:3]
    t=pd.read_csv(F+table+".csv").query(query) if query else pd.read_csv(F+table+".csv")
    if len(t)!=1: return f"?? {len(t)} rows: {m[1]} ??"
    r=t.iloc[0]; c="r" if "r" in t and "mean" not in t else "auc" if "auc" in t else "difference" if "difference" in t else "mean"
    if fmt=="n": return str(int(r["n"]))
    if ":" in fmt: col,d=fmt.split(":"); return num(r[col],int(d))
    s=100 if "%" in fmt or "p" in fmt else 1
    d=int(re.sub(r"\D","",fmt) or 0)
    if "m" in fmt: return num(r[c],d,s)+("%" if "%" in fmt else "")
    return f"{num(r[c],d,s)}{'%' if '%' in fmt else ''} [{num(r['low'],d,s)}, {num(r['high'],d,s)}]"
import textwrap
for c in nb["cells"]:
    if c["cell_type"]!="markdown": continue
    t="".join(c["source"])
    t=re.sub(r"«([^»]*)»",one,t)
    out=[]
    for par in t.split("\n\n"):
        if par.startswith("#") or par.startswith("|") or "$$" in par: 
            head,_,rest=par.partition("\n"); out.append(par if not rest or par.startswith("|") else par); continue
        items=re.split(r"\n(?=- )",par)
        out.append("\n".join(textwrap.fill(" ".join(i.split()),120,subsequent_indent="  " if i.startswith("- ") else "",break_long_words=False,break_on_hyphens=False) for i in items))
    c["source"]="\n\n".join(out).splitlines(keepends=True)
open(sys.argv[1],"w").write(json.dumps(nb,indent=1,ensure_ascii=False)+"\n")
for c in nb["cells"]:
    for m in re.findall(r"\?\?[^?]*\?\?","".join(c["source"])): print(m)
words=sum(len("".join(c["source"]).split()) for c in nb["cells"] if c["cell_type"]=="markdown"); print(words,"words",len(nb["cells"]),"cells")
