import re
import prose
def fill(name, cells):
    table=getattr(prose,'P'+name,{}); out=[]
    for c in cells:
        if c[0]=='md':
            t=c[1]
            for k in sorted(table,key=len,reverse=True): t=re.sub(rf'(?<![\w-]){re.escape(k)}(?![\w-])',lambda m:table[k],t)
            out.append((c[0],t,*c[2:]))
        else: out.append(c)
    return out
