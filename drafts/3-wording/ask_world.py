import sys, numpy as np
from factrobust import wording
from factrobust.wording import prediction, probe
def nb(models):
    g={'models':models,'data':'world','n_facts':480,'n_samples':10,'max_new_tokens':20,'sentence_encoder':'all-MiniLM-L6-v2','seed':0,'n_boot':2000}
    g['__annotations__']={k:type(v) for k,v in g.items() if k!='__annotations__'}
    return g
s=wording.Study(nb(sys.argv[1:]))
print(s.formats, s.marked.groupby('model')['correct'].mean(), s.marked['first'].value_counts().to_dict(), flush=True)
g=s.groups; print(g.groupby('model')[['correct','scons','scons_bare','cert']].mean().round(3).to_string(), flush=True)
g=probe.predictable(g,s.models).dropna(subset=['logprob_sum'])
named={'SCons':'scons','bare SCons':'scons_bare','sum':'logprob_sum','Cert':'cert'}
for ref in ('SCons','sum'):
    t=prediction.compared(g,['model'],named,reference=ref); print(ref); print(t[t.measure=='auc_within'].round(3).to_string(), flush=True)
