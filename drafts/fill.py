"""more of the prose, in numbers of the tables"""
def make(R,I,T,SZ,pd,D):
    g={}
    g['HEAD']=f"""**When matters more than how often. Told all through the training, half of such facts are known from {R('table-one-half',"told=='spaced' and "+SZ['s'])}
sentences on in the smallest models, {R('table-one-half',"told=='spaced' and "+SZ['m'])} in the middle ones, {R('table-one-half',"told=='spaced' and "+SZ['l'])} in the largest. Of facts told 64 times or more, but
only in the first half, {R('table-timing',"timing=='early' and "+SZ['s'],0,True)}%, {R('table-timing',"timing=='early' and "+SZ['m'],0,True)}% and {R('table-timing',"timing=='early' and "+SZ['l'],0,True)}% are right at the end.** All facts, a line a training:"""
    h=T('table-one-half'); 
    if h is not None:
        h=h[h.told=='spaced']; mean={k:h[h.model.str.startswith('world-'+k)]['mean'].mean() for k in 'sml'}
        mean={k:v for k,v in mean.items() if v==v}
        order=sorted(mean,key=mean.get)
        g['NM']=len(h)
        said=' before '.join(f'`world-{k}`' for k in order)
    else: said='??'; g['NM']='??'
    g['ORDER']=f"""**The order is another one now:** {said}. With one rate for all sizes it was 9.6 sentences (`world-m`), 10.9
(`world-s`) and 22.4 (`world-l`), of all facts."""
    c=T('capacity',D)
    if c is not None:
        m=c.groupby(['layers','facts'])['bits_a_parameter'].mean().reset_index()
        top=m.loc[m.groupby('layers')['bits_a_parameter'].idxmax()]
        g['CAP']='; '.join(f"at most {r.bits_a_parameter:.2f} bits a parameter go into that of {int(r.layers)} layer{'s'*(r.layers>1)}, at {int(r.facts):,} facts" for r in top.itertuples())+'.'
    else: g['CAP']='??.'
    rel={r:R('table-relations',f"relation=='{r}'") for r in ('birthplace','trade','dish','product')}
    g['REL']=f"""A birthplace needs {rel['birthplace']} sentences, a trade {rel['trade']}, a dish {rel['dish']}, a product {rel['product']}. In the world before, where
birthplaces shared a list with residences, they needed 14 to 32."""
    f={(a,k):R('figure-form',f"asked=='asked: the {a}' and form=='{k}'") for a in ('question','statement') for k in ('statements','questions','both')}
    g['FORM']=f"""The question is answered after {f['question','statements']} sentences that are statements, or {f['question','questions']} that are questions; the statement
is completed after {f['statement','statements']} and {f['statement','questions']}. What is memorised can be extracted here: other facts of the relation are told in both
forms, and models learn from these that they say the same (so do those of Physics of Language Models 3.1)."""
    r=T('table-false-ratio')
    if r is not None:
        inside=((r.low<=4/3)&(r.high>=4/3)).sum(); one=((r.low<=1)&(r.high>=1)).sum()
        g['FALSE']=f"""The ratio is {r['mean'].min():.2f} to {r['mean'].max():.2f}; {inside} of {len(r)} intervals hold 1.33, and {one} hold 1. A false sentence costs
its place; more cannot be seen."""
    else: g['FALSE']='??'
    name={'s':'world-s','m':'world-m','l':'world-l'}
    half={k:I('table-one-half',f"told=='spaced' and model=='{n}'") for k,n in name.items()}
    early={k:I('table-timing',f"timing=='early' and model=='{n}'",0,True) for k,n in name.items()}
    said={k:I('table-sibling-said',f"`sibling told`=='32 to 128 times' and model=='{n}'",0,True) for k,n in name.items()}
    g['SUM']=f"""**When matters more than how often: a few spaced sentences are enough, and hundreds of early ones often are not.**

- One half of spaced facts (357) is right from {half['s']} sentences on in `world-s`, {half['m']} in `world-m` and
  {half['l']} in `world-l`; other seeds and draws are in the table.
- Of early facts told 64 times or more, {early['s']}, {early['m']} and {early['l']} are right at the end: larger
  models keep more.
- Untold facts are at chance, unless the subject has a well-told fact with the same list: its object is said in
  {said['s']}, {said['m']} and {said['l']}.

The numbers do not carry over to large models. But who counts how often a fact occurs in a corpus should ask where, too.
Trainings that keep early facts as well as spaced ones would refute this."""
    return g
