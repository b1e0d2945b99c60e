import json, re
def build(path, cells):
    nb = json.load(open(path)); old = {''.join(c['source']): c for c in nb['cells'] if c['cell_type']=='code'}
    new, ids = [], set()
    for n, (kind, text, *tags) in enumerate(cells):
        text = text.strip('\n')
        if kind == 'markdown':
            if '{' in text and re.search(r'\{[A-Z]+\}', text):
                import fill_names; text = re.sub(r'\{([A-Z]+)\}', lambda m: str(fill_names.g.get(m[1], '??'+m[1])), text)
            new.append({'cell_type':'markdown','id':f'm{n:02d}-dose','metadata':{},'source':text.splitlines(keepends=True)})
        else:
            c = old.get(text)
            if c is None:
                c = {'cell_type':'code','execution_count':None,'id':f'c{n:02d}-dose','metadata':{'tags':list(tags)} if tags else {},'outputs':[],'source':text.splitlines(keepends=True)}
            new.append(c)
    nb['cells'] = new
    open(path,'w').write(json.dumps(nb, indent=1, ensure_ascii=False)+'\n')
