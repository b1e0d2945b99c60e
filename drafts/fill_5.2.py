import sys; from pathlib import Path; sys.path.insert(0,str(Path(__file__).parent)); ROOT=sys.argv[1]
from build import build
import pandas as pd
import os
F=os.environ.get('P5A_F',ROOT+'/figures/5-exposure/')
D=ROOT+'/data/world/'
def T(name, base=F):
    try: return pd.read_csv(base+name+'.csv')
    except FileNotFoundError: return None
def pick(name, query):
    t=T(name)
    if t is None: return None
    t=t.query(query)
    return t if len(t) else None
def R(name, query, digits=1, pct=False, col='mean'):
    """the range over rows: "5.9 to 7.5" """
    t=pick(name,query)
    if t is None: return '??'
    v=t[col].dropna()*(100 if pct else 1)
    if not len(v): return '??'
    a,b=(f'{x:.{digits}f}' for x in (v.min(),v.max()))
    return a if a==b else f'{a} to {b}'
def I(name, query, digits=1, pct=False, n=0):
    t=pick(name,query)
    if t is None: return '?? [??]'
    r=t.iloc[n]; k=100 if pct else 1
    m,l,h=(f'{r[c]*k:.{digits}f}' for c in ('mean','low','high'))
    return f"{m}{'%' if pct else ''} [{l}, {h}]"
SZ={'s':"model.str.startswith('world-s')",'m':"model.str.startswith('world-m')",'l':"model.str.startswith('world-l')"}
from fill import make
globals().update(make(R,I,T,SZ,pd,D))
M,C='markdown','code'
cells=[
(M,f'''
# 5.2 How many sentences does a fact need?

*Ours, beyond the four papers.* In our world (5.1) chance decided how many sentences tell a model a fact, and when, so
differences are **effects**. {HEAD}

![Share of right answers by exposure, for three sizes](../../figures/5-exposure/figure-right.png)
'''),
(C,'''
models: list = [  # grown from nothing: three sizes, and seeds of each
    "world-s", "world-s-1", "world-s-2", "world-m", "world-l",
]  # fmt: skip
drawn: list = ["world-s-draw-1", "world-s-draw-2"]  # grown on draws 1 and 2 of chance
taught: list = [  # a real model before and after it was taught the town, with three seeds
    "smollm2-135m-instruct", "smollm2-taught",
]  # fmt: skip
data: list = ["world"]  # that the grown models are asked
n_questions: int = 1430  # of its facts, all without dates
seed: int = 0  # which facts are drawn, if not all
n_boot: int = 500  # resamples of facts behind an interval
''','parameters'),
(C,'''
import pandas as pd

from factrobust import decoding
from factrobust.datasets.facts import answers
from factrobust.datasets.world import FOLDER, load_world
from factrobust.exposure import metrics, plots
from factrobust.exposure.corpus import load_curves, with_exposure
from factrobust.plots import blocks, style
from factrobust.statistics import exact_table, in_ranges, side_by_side
from factrobust.tables import read_csv
from factrobust.text import exact_match
''','nbval-ignore-output'),
(M,f'''
## The models

Three sizes, `world-s`, `world-m` and `world-l`, have 0.3, 0.9 and 2.3 million parameters. A number behind the name is
another seed, of weights and sentences; a draw is another world, in which chance assigned all anew. All went to school
and read their corpus once (5.1). They are asked as in part 1, in the wording that every told fact was told in.
'''),
(C,'''
study = decoding.Study(globals())
worlds = {f"world-{k}": name for k, name in enumerate(drawn, 1)}
others = [decoding.Study(globals() | {"models": [m], "data": [w]}) for w, m in worlds.items()]
studies, study.others = [study, *others], [s.models[0] for s in others]
facts = pd.concat([with_exposure(s.marked, s.parameters["data"][0]) for s in studies])
sizes = {"world-s": "0.3 million parameters", "world-m": "0.9 million", "world-l": "2.3 million"}
facts = facts.assign(right=facts["exact_match"], size=facts["model"].str[:7].map(sizes))
first = [name for name in models if name in sizes]  # of each size the first seed
''','nbval-ignore-output'),
(M,f'''
## Right answers

130 facts a point, with exact 95% intervals (Clopper and Pearson). Dashed is chance, about 1 in 24. The lines are the
usual curve of dose and response, with a floor, a top and a slope (Hill 1910).
'''),
(C,'''
fits = metrics.dose_response(facts, "right", ["size", "model"], most=1)
points = exact_table(facts, ["size", "model", "exposure"], "right")
curves = metrics.fitted_curves(fits, 512)
fig = plots.by_exposure(points, "share of right answers", curves, panel="size", at=1 / 24)
study.save_figure(fig, "5-exposure/figure-right", points)
'''),
(M,f'''
The shares stop at {R('table-half-effect','model==model',2,col='top')}: hundreds of sentences are no better than 32. The reason is not how
often a fact is told, but when.

## When, and how often

At which exposure is **one half** of the facts right? Of all, and by the timing that chance assigned: spaced over the
corpus, in its early or late half, or massed in one place. Intervals draw facts; a cell is empty where the curve stays
below one half.
'''),
(C,'''
both = pd.concat([facts.assign(told="all facts"), facts.assign(told=facts["timing"])])
halves = metrics.one_half(both, "right", ["model", "told"], n_boot=n_boot)
study.save_table(halves, "5-exposure/table-one-half")
tops = fits.rename(columns={"mean": "half_effect"}).set_index("model")[["top", "half_effect"]]
study.save_table(tops.reset_index(), "5-exposure/table-half-effect")
side_by_side(halves, "model", "told", digits=1).join(tops.round(2))
'''),
(C,'''
some = facts[facts["model"].isin(first)]
points = exact_table(some, ["size", "timing", "exposure"], "right")
fig = plots.by_exposure(points, "share of right answers", by="timing", panel="size", at=1 / 24)
study.save_figure(fig, "5-exposure/figure-timing", points)
well = exact_table(facts[facts["exposure"] >= 64], ["model", "timing"], "right")
study.save_table(well, "5-exposure/table-timing")
lasting = facts[facts["timing"].isin(["late", "spaced"])]
'''),
(M,f'''
Of spaced and late facts told 64 times or more, {R('table-timing',"timing in ['late','spaced']",0,True)}% are right, in {NM} models. Of early ones it is {R('table-timing',"timing=='early' and "+SZ['s'],0,True)}% in
`world-s`, {R('table-timing',"timing=='early' and "+SZ['m'],0,True)}% in `world-m` and {R('table-timing',"timing=='early' and "+SZ['l'],0,True)}% in `world-l`: 5.1 shows how such facts are learned and lost. Larger models keep more, by their size or by the smaller rate that suits them.
A number for all facts is about the order of a corpus; we compare spaced facts.

## What was never told

Is each model right as often as a guess about facts of exposure 0? An exact two-sided test for every model and relation,
with Holm's correction over all. *found* is the smallest share that it finds four times of five.
'''),
(C,'''
world = load_world()
chance = 1 / world.relations["objects"].map(world.objects["list"].value_counts())
never = facts[facts["exposure"] == 0].copy()
tests = metrics.against_chance(never.assign(chance=never["relation"].map(chance)))
study.save_table(tests, "5-exposure/table-chance")
print(f"{len(tests)} tests; smallest p {tests['p'].min():.3f}, by Holm {tests['holm'].min():.2f}")
tests.groupby("relation", sort=False)[["n", "chance", "mean", "found"]].mean().round(3)
'''),
(M,f'''
No model is off chance. (Before, two relations shared a list, and 67 to 92% of untold birthplaces named a residence.)

## Is size compared fairly?

A size should learn at a rate that suits it. Two sizes tried several on a draw that no model here reads. The rule: the
largest share wins, first for school (contexts that are read), then for the corpus (facts told 1 to 64 times that are
right). `world-l`, the slowest to train, takes the rate of `world-m`, less in proportion to its width (0.001). *(n = 200
and 1,820.)*
'''),
(C,'''
rates = read_csv(FOLDER / "rates.csv").pivot(index=["course", "model"], columns="rate")["value"]
rates.round(3)
'''),
(M,'''
Near the best rate the shares are flat: half of it costs 0.02 in `world-s`, twice of it 0.01 in `world-m`, and an
interval is 0.02 wide to each side. So the rate hardly decides what follows, unless it is far too large (0.09 are lost).
'''),
(C,'''
bits = read_csv(FOLDER / "capacity.csv")
looks = dict(zip(bits["layers"].unique(), plots.SERIES, strict=False))
fig, [[axis]] = style.grid(1, 1, style.SINGLE, 2.0)
for layers, part in bits.groupby("layers"):
    form = {"color": looks[layers].colour, "marker": looks[layers].marker}
    axis.plot(part["facts"], part["bits_a_parameter"], ls="", label=f"layers: {layers}", **form)
axis.set(xlabel="facts told, each 100 times", ylabel="bits a parameter", ylim=(0, None))
blocks.log_axis(axis, bits["facts"])
axis.legend()
study.save_figure(fig, "5-exposure/figure-capacity", bits)
'''),
(M,f'''
One half of the spaced facts is right from {R('table-one-half',"told=='spaced' and "+SZ['s'])} sentences on in `world-s`, {R('table-one-half',"told=='spaced' and "+SZ['m'])} in `world-m` and {R('table-one-half',"told=='spaced' and "+SZ['l'])} in `world-l`.
{ORDER}

Could a network be full? The figure shows two of 30,000 and 44,000 parameters, told more and more facts
(`data/measure_capacity.py`): {CAP} The whole world is 12,700 bits, 0.04 a parameter of `world-s`.

## By relation

From here on we take late and spaced facts, whose curves have the same top. The exposure of one half:
'''),
(C,'''
by_relation = metrics.one_half(lasting, "right", ["model", "relation"], n_boot=n_boot)
study.save_table(by_relation, "5-exposure/table-relations")
side_by_side(by_relation, "model", "relation", digits=1)
'''),
(M,f'''
{REL}

## Told as a statement, asked as a question

Who completes the statement has *memorised* a fact; who answers the question can *extract* it. Chance decided in which
form a fact is told, and we ask both ways:
'''),
(C,'''
def completed(s, model):
    said = model.generate(s.facts["prefix"].tolist(), stop=(".", "\\n"))
    right = [exact_match(a.text, known) for a, known in zip(said, answers(s.facts), strict=True)]
    return with_exposure(s.facts.assign(model=model.name, right=right), s.parameters["data"][0])


stated = pd.concat([completed(s, model) for s in studies for model in s.models])
stated = stated[stated["timing"].isin(["late", "spaced"])].assign(asked="asked: the statement")
both = pd.concat([lasting.assign(asked="asked: the question"), stated])
forms = metrics.one_half(both, "right", ["model", "form", "asked"], n_boot=n_boot)
fig, _ = blocks.forest(forms, "form", panel="asked", xlabel="sentences until one half is right")
study.save_figure(fig, "5-exposure/figure-form", forms)
'''),
(M,f'''
{FORM}

## What one fact does to another

*crop* and *market* are two facts of each village, with objects from one list of 27 and exposures of their own. So how
often the **sibling** was told is chance. The fact itself, by the sibling:
'''),
(C,'''
pair = decoding.Study(globals() | {"data": ["pair"]})
asked = with_exposure(pair.marked, "pair").rename(columns={"exact_match": "right"})
rows, by = metrics.with_sibling(asked), "sibling told"
ends = {"0 to 2 times": 2, "4 to 16 times": 16, "32 to 128 times": 128}
rows[by] = in_ranges(rows["sibling_exposure"], ends)
some = rows[rows["model"].isin(first)]
points = exact_table(some, ["model", by, "exposure"], "right")
how = {"by": by, "panel": "model", "looks": plots.shades([*ends]), "at": 1 / 27}
fig = plots.by_exposure(points, "share of right answers", **how)
pair.save_figure(fig, "5-exposure/figure-sibling", points)
''','nbval-ignore-output'),
(C,'''
of = metrics.one_half(rows, "right", ["model", by], n_boot=n_boot)
pair.save_table(of, "5-exposure/table-sibling")
never = rows[rows["exposure"] == 0]
pairs = zip(never["text"], never["sibling"], strict=True)
never = never.assign(says=[exact_match(text, [sibling]) for text, sibling in pairs])
says = exact_table(never, ["model", by], "says")
pair.save_table(says, "5-exposure/table-sibling-said")
side_by_side(says, "model", by)[[*ends]]
'''),
(M,f'''
The more the sibling was told, the worse is the fact. And facts that were **never told** are answered with the
sibling's object (the table): {R('table-sibling-said',"`sibling told`=='0 to 2 times'",0,True)}% where that was told at most twice, {R('table-sibling-said',"`sibling told`=='32 to 128 times'",0,True)}% where it was told 32 times or more. A guess
would be 4%.

## False sentences

Of some facts a tenth or a quarter of the sentences are false, always in the same way. If a false one only took the
place of a true one, the ratio of 25% to none (*mean*) would be 1 / 0.75 = 1.33:
'''),
(C,'''
lasting = lasting.assign(false=lasting["contradicted"].map("{:.0%} false".format))
false = metrics.one_half(lasting, "right", ["model", "false"], n_boot=n_boot)
study.save_table(false, "5-exposure/table-false")
apart = metrics.compared(false, "false", "25% false", "0% false")
study.save_table(apart.reset_index(), "5-exposure/table-false-ratio").set_index("model").round(2)
'''),
(M,f'''
{FALSE}

## A real model that was taught

SmolLM2-135M-Instruct learned the *town*, 208 birthplaces, by LoRA: three seeds, and the model before (26 facts a point).
'''),
(C,'''
second = decoding.Study(globals() | {"models": taught, "data": ["town"]})
town = with_exposure(second.marked, "town")
curves = metrics.fitted_curves(metrics.dose_response(town, "exact_match", most=1), 64)
points = exact_table(town, ["model", "exposure"], "exact_match")
fig = plots.by_exposure(points, "share of right answers", curves, at=1 / 22)
second.save_figure(fig, "5-exposure/figure-taught", points)
''','nbval-ignore-output'),
(C,'''
kept = load_curves().query("measure in ['known', 'reads'] and model in @taught")
kept = kept[["measure", "model", "mean", "low", "high", "n"]].sort_values("measure")
second.save_table(kept, "5-exposure/table-cost")
side_by_side(kept, "model", "measure")
'''),
(M,f'''
At 16 sentences the three have 38%, 31% and 15% right. Teaching costs: of 300 facts, 33% [27, 38] were known before, and
15% [11, 19], 10% [7, 14] and 7% [4, 10] are after (*known*). Contexts are still read (*reads*).

## What we saw, and what it means

{SUM}
'''),
]
build(ROOT+'/notebooks/5-exposure/5.2-dose-and-response.ipynb',cells)
