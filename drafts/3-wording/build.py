"""python build.py ROOT n2 n3 ...: writes the notebooks of part 3; «table|query|column:digits» in the prose is filled
from figures/3-wording/table.csv ("mean:2" gives mean [low, high], "=mean:2" the mean alone, % percents)."""
import ast, sys, re, csv, json, importlib, pathlib, textwrap
HERE=pathlib.Path(__file__).parent; sys.path.insert(0,str(HERE))
ROOT=pathlib.Path(sys.argv[1]); OUT=ROOT/'notebooks/3-wording'; FIG=ROOT/'figures/3-wording'
G,S='gemma-3-270m','smollm2-135m-instruct'
bad=[]
def rows(table,query):
    with open(FIG/f'{table}.csv') as f: all_=list(csv.DictReader(f))
    for part in filter(None,query.split('&')):
        part=part.strip()
        if part in 'GS' : part=f'model={G if part=="G" else S}'
        k,v=part.split('=',1); all_=[r for r in all_ if r[k].strip()==v.strip()]
    return all_
def one(m):
    try:
        table,query,fmt=m[1].split('|'); found=rows(table,query)
        if len(found)!=1: raise ValueError(f'{len(found)} rows')
        r=found[0]; col,_,dig=fmt.partition(':'); alone=col.startswith('='); col=col.lstrip('='); pc=dig.endswith('%'); d=int(dig.rstrip('%') or 0); k=100 if pc else 1
        def n(x): 
            v=round(float(x)*k,d)+0.0
            return f'{v:.{d}f}'
        pre='' if col in('mean','odds_ratio','share','r') else col+'_'
        v=n(r[col])+('%' if pc else '')
        return v if alone else f"{v} [{n(r[pre+'low'])}, {n(r[pre+'high'])}]"
    except Exception as e:
        bad.append(f'{m[1]}: {e}'); return '??'
def wrap(t):
    out=[]
    for par in t.split('\n\n'):
        if par.startswith(('#','|','$$')) or '$$' in par: out.append(par); continue
        items=re.split(r'\n(?=(?:- |\d\. ))',par)
        out.append('\n'.join(textwrap.fill(' '.join(i.split()),120,subsequent_indent='  ' if i.startswith('- ') else '',break_long_words=False,break_on_hyphens=False) for i in items))
    return '\n\n'.join(out)
def build(mod):
    m=importlib.import_module(mod); m.CELLS=__import__('apply').fill(mod[1:],m.CELLS); path=OUT/f'{m.NAME}.ipynb'; old={}; meta={"kernelspec":{"display_name":"Python 3","language":"python","name":"python3"},"language_info":{"name":"python"}}
    if path.exists():
        nb=json.load(open(path)); meta=nb['metadata']; old={ast.dump(ast.parse(''.join(c['source']))):c for c in nb['cells'] if c['cell_type']=='code'}
    cells=[]; words=code=0
    for k,c in enumerate(m.CELLS):
        text=c[1].strip('\n'); cell={'cell_type':'markdown' if c[0]=='md' else 'code','id':f'cell-{k+1:02d}','metadata':{}}
        if c[0]=='md':
            text=wrap(re.sub(r'«([^»]*)»',one,text)); words+=len(text.split())
        else:
            was=old.get(ast.dump(ast.parse(text)),{}); text=''.join(was['source']) if was else text; cell['execution_count']=was.get('execution_count'); cell['outputs']=was.get('outputs',[]); code+=len(text.splitlines())
            if len(c)>2: cell['metadata']={'tags':[c[2]]}
        cell['source']=text.splitlines(keepends=True); cells.append(cell)
    json.dump({'cells':cells,'metadata':meta,'nbformat':4,'nbformat_minor':5},open(path,'w'),indent=1,ensure_ascii=False); open(path,'a').write('\n')
    print(mod,len(cells),'cells',words,'words',code,'code lines')
for m in sys.argv[2:]: build(m)
for b in bad: print('??',b)
