"""Asks all that part 3 needs, so that it is in the records."""
import sys,time,numpy as np,pandas as pd
from factrobust import load_model
from factrobust.models.records import open_records
from factrobust.wording import facts,probe,metrics
from factrobust.datasets import facts as ft
import resource
def cpu(): return resource.getrusage(resource.RUSAGE_SELF).ru_utime
rec=open_records()
every=facts.load_named_questions('embedded').table
q=facts.sample(every,480,0)
pop=facts.load_named_questions('popqa:data/popqa.csv').table
firsts=pop[pop.variant==0]
p200=facts.sample(pop,200,0)
new=facts.paraphrased(ft.load_facts(relations=facts.load_paraphrases()['relation']),facts.NEW).table
new=facts.sample(new,160,0)
H=dict(max_new_tokens=20)
def step(name,f):
    t,c=time.time(),cpu(); r=f(); print(f'{name}: wall {time.time()-t:.0f} cpu {cpu()-c:.0f}',flush=True); return r
which=sys.argv[1:]
for m in which:
    model=load_model(m,records=rec); fmt=probe.paper_format(model.prompt_format,model.chat)
    H['prompt_format']=fmt
    a=step(m+' greedy',lambda: probe.greedy(model,q,**H))
    print(a['first'].value_counts().to_dict(),(a.text.str.strip()=='').sum(),flush=True)
    step(m+' sampled',lambda: probe.sampled(model,q[q.variant==0],n=10,seed=0,**H))
    b=step(m+' popqa200',lambda: probe.greedy(model,p200,**H))
    print('popqa200 right', metrics.mark_by_rules(b[b.variant==0],pop)['correct'].mean(),flush=True)
    step(m+' popqa sampled',lambda: probe.sampled(model,p200[p200.variant==0],n=10,seed=0,**H))
    step(m+' new',lambda: probe.greedy(model,new,**H))
    step(m+' popqa1000',lambda: probe.greedy(model,firsts,**H))
    step(m+' ptrue',lambda: probe.probability_true(model,a[a.variant==0].reset_index(drop=True)))
    if fmt=='chat':
        H['prompt_format']='question-answer'
        s=facts.sample(every,160,0)
        x=step(m+' question-answer',lambda: probe.greedy(model,s,**H))
        print(x['first'].value_counts().to_dict(),(x.text.str.strip()=='').sum(),flush=True)
