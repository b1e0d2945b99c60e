"""Train the models of the invented world, and compare their curves with the committed ones: `make grow`.

    python data/grow_models.py [NAME ...] [--commit]

Without names all of PLANS. Any other NAME is a decoder whose weights are here (a name of data/models.csv, a
folder, a .gguf file): it is taught the town as SmolLM2 is, and becomes build/grow/models/NAME-taught. Checkpoints are in build/grow/NAME: a run that was killed is taken up where it
was. The model, build/grow/models/NAME, is asked for its curves, which are compared with those in
data/world/curves.csv: training is not the same bit for bit on two kinds of processors, and points of a few
dozen facts differ by chance. `--commit` puts weights, SHA-256 and curves into data/ instead.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors import safe_open
from schooling import context, listed, relations, sentences

from factrobust import load_model
from factrobust.context.probe import context_prompts
from factrobust.datasets import facts as fact_tables
from factrobust.datasets import world as w
from factrobust.exposure import corpus as c
from factrobust.models import grow as g
from factrobust.models import load
from factrobust.models.interface import Model, ModelError
from factrobust.models.prompts import CHATS, FORMATS, prompts
from factrobust.paths import DATA, ROOT
from factrobust.text import normalise

CURVES, READS = DATA / "world" / "curves.csv", DATA / "world" / "reads.csv"
CROSSED = DATA / "world" / "sizes.csv"  # sizes crossed with rates of learning
BUILD = ROOT / "build" / "grow"
KNOWN = 300  # facts of data/facts.csv that tell what teaching does to what was known before
SIZES = {
    64: "world-s",
    128: "world-m",
    192: "world-l",
}  # whose rates of learning all of a width have
CHOSEN = DATA / "world" / "rates.csv"
TRIED = {  # of the corpus
    "world-s": (7.5e-4, 1.5e-3, 3e-3, 6e-3, 1.2e-2),
    "world-m": (1.5e-3, 3e-3),
}
CROSSED_MODELS = ("world-s", "world-s-1", "world-m", "world-m-1")
CROSSED_RATES = (1.5e-3, 3e-3, 6e-3)
HELD_OUT = 9  # the draw of chance on which rates are chosen: no model that is kept reads it
TUNED = 16  # a chat model is tuned with each 16th sentence of the corpus that is a question
CHAT = "{{ '%s' + messages[0]['content'] + '%s' }}" % CHATS["world"]  # noqa: UP031
TAUGHT = "smollm2-135m-instruct"


class Recipe(NamedTuple):
    """How a model is taught the town."""

    rate: float  # of learning
    rank: int  # of the adapter
    parts: str  # of the network that it is added to
    row: int  # tokens of a row, which holds whole texts; 0: each has a row
    size: int  # rows a step
    recalled: int  # answers of its own to other facts, spread over the town's sentences
    whole: bool  # whole sentences are learned, or their objects


TAUGHT_BY = DATA / "world" / "taught.csv"
RECIPES = {
    "recalling": Recipe(5e-4, 4, "all-linear", g.ROW, 2, 300, True),
    "faster": Recipe(1e-3, 4, "all-linear", g.ROW, 2, 300, True),
}
KEEPS = 0.8  # a recipe that is chosen keeps so much of what was known

PLANS = {
    "world-s": g.Plan("decoder", width=64),
    "world-s-1": g.Plan("decoder", 1, width=64),
    "world-s-2": g.Plan("decoder", 2, width=64),
    "world-s-draw-1": g.Plan("decoder", width=64),
    "world-s-draw-2": g.Plan("decoder", width=64),
    "world-m": g.Plan("decoder"),
    "world-m-1": g.Plan("decoder", 1),
    "world-m-2": g.Plan("decoder", 2),
    "world-l": g.Plan("decoder", width=192, layers=4),
    "world-l-1": g.Plan("decoder", 1, width=192, layers=4),
    "world-s-later": g.Plan("decoder", width=64),
    "world-m-later": g.Plan("decoder"),
    "world-m-chat": g.Plan("chat"),
    "world-t5": g.Plan("encoder-decoder"),
    "smollm2-taught": g.Plan("taught"),
    "smollm2-taught-1": g.Plan("taught", 1),
    "smollm2-taught-2": g.Plan("taught", 2),
}
DRAWS = {"world-s-draw-1": 1, "world-s-draw-2": 2}  # of chance; the others read draw 0
LATER = {"world-s-later": "world-s", "world-m-later": "world-m"}  # what they were before
SCHOOL = {"1-lists": 3200, "2-contexts": 16000, "3-names": 6000}  # its courses, and their texts
Corpora = Mapping[str, pd.DataFrame]  # by name, read one after the other
TOWN = (TAUGHT, *(name for name, plan in PLANS.items() if plan.kind == "taught"))


# -- training --------------------------------------------------------------------------------------


def courses(
    plan: g.Plan, world: w.World, corpora: Corpora, tokenizer: Any, rates: tuple[float, float]
) -> Iterator[g.Course]:
    """What a grown model learns, one after the other; made when it is its turn.

    `rates` are those of schooling and of the corpora.
    """
    rng, tests = (random.Random(f"{plan.seed} {name}") for name in ("texts", "tests"))
    by_name, kind = relations(world), plan.kind
    known, objects = list(by_name.values()), {name: r.objects for name, r in by_name.items()}
    encodes = kind == "encoder-decoder"
    names = [*world.spare["name"], *world.facts["subject"].str.split().str[-1]]
    words = sorted({*names, *world.objects["object"]})
    asked = [context(tests, known, kind) for _ in range(200)]
    shown = g.pairs(asked, tokenizer) if encodes else g.rows(asked, tokenizer, size=0)

    def course(name: str, texts: list[g.Text], rate: float) -> g.Course:
        """Of texts, in as many steps for both architectures."""
        data, size = g.rows(texts, tokenizer), 8
        if encodes:
            size = round(size * len(texts) / len(data))
            data = g.pairs(texts, tokenizer)
        return g.Course(name, data, rate, shown, size)

    def some(n: int, lists: float = 0.0, own: float = 0.0) -> list[g.Text]:
        shares = rng.choices((True, False), (lists, 1 - lists), k=n)
        return [listed(rng, words) if x else context(rng, known, kind, own) for x in shares]

    def among(table: pd.DataFrame, share: int) -> list[g.Text]:
        """The sentences in their order, and a context about spare subjects to each `share` of them."""
        texts = list(sentences(rng, table, kind, objects))
        more = some(len(texts) // share)
        places = [*range(len(texts)), *(rng.random() * len(texts) for _ in more)]
        return [
            text for _, text in sorted(zip(places, texts + more, strict=True), key=itemgetter(0))
        ]

    school, own = rates
    if kind == "chat":  # what its pretrained twin was told, in the forms of a chat
        [told] = corpora.values()
        again = told.iloc[::TUNED].query("form == 'question'")
        yield course("tuning", among(again, 1), own / 3)
        return
    rate = f"-{school}"
    yield course(f"1-lists{rate}", some(SCHOOL["1-lists"], lists=1.0), school)
    yield course(f"2-contexts{rate}", some(SCHOOL["2-contexts"], lists=0.2), school)
    yield course(f"3-names{rate}", some(SCHOOL["3-names"], own=0.7), school / 3)
    for name, told in corpora.items():
        yield course(f"{name}-{school}-{own}", among(told, 10), own)


def learn(
    plan: g.Plan, world: w.World, corpora: Corpora, rates: tuple[float, float], work: Path,
    base: Path | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """A network, which learned its courses, and its tokenizer.

    `work` keeps checkpoints, and by each course what was logged: a run that was killed is taken up where
    it was. A chat model begins with the weights in `base`.
    """
    tokenizer = g.tokenizer_of(world, c.TEXTS)
    network = g.network_of(plan, tokenizer)
    if plan.kind == "chat":
        network = type(network).from_pretrained(base, dtype=torch.float32)
        tokenizer.chat_template = CHAT
    for course in courses(plan, world, corpora, tokenizer, rates):
        done = work / course.name / "done"
        if not done.is_dir():
            print(f"{work.name}: {course.name}, {len(course.data)} rows", flush=True)
            log = g.study(network, course, work / course.name, tokenizer)
            (work / course.name / "log.json").write_text(json.dumps(log))
            network.save_pretrained(done)
        network = type(network).from_pretrained(done)
    return network, tokenizer


def grow(name: str, world: w.World, work: Path, out: Path, base: Path | None = None) -> None:
    """Train the model `name` of PLANS and write it to the folder `out`, float16. KeyError for an
    unknown name."""
    plan = PLANS[name]
    if plan.kind == "taught":
        teach(TAUGHT, plan.seed, world, recipe(), work, out)
        return
    told = {"world": c.corpus(world, plan.seed)}
    if name in LATER:
        told["later"] = c.corpus(world._replace(facts=c.later_facts(world)), plan.seed)
    network, tokenizer = learn(plan, world, told, rates_of(plan), work, base)
    network.half().save_pretrained(out)
    tokenizer.save_pretrained(out)


def held_out() -> w.World:
    """The world with the facts of the HELD_OUT draw."""
    from build_world import build  # which needs the lists of names

    facts = build(HELD_OUT)[0].reset_index(drop=True)
    facts["wordings"] = facts["wordings"].str.split("|").map(lambda ks: [*map(int, ks)])
    return w.load_world()._replace(facts=facts)


def choose_rates(names: list[str]) -> None:
    """Train models on the HELD_OUT draw, and put lines into data/world/rates.csv: of schooling the share of
    contexts that are read at its end, of the corpus the share of facts without dates, told 1 to 64 times,
    that are right in the wordings 0 and 8.

    Of the rates of TRIED that of the largest share is taken. Schooling's is tried on the smallest size.
    """
    world, some = w.load_world(), held_out()
    facts = some.facts
    told = {"held-out": c.corpus(some)}
    asked = facts["relation"].isin(["birthplace", "trade", "dish", "product"])
    known = facts[asked & facts["exposure"].between(1, 64)].reset_index(drop=True)

    def keep(name: str, course: str, value: Callable[[float], float], n: int) -> None:
        rates = TRIED[name] if course == "corpus" else TRIED[name][1:4]
        new = pd.DataFrame({"rate": rates, "value": [round(value(x), 4) for x in rates]})
        new = new.assign(model=name, course=course, n=n)
        print(new.to_string(index=False), flush=True)
        tried = pd.read_csv(CHOSEN) if CHOSEN.exists() else new[:0]
        tried = pd.concat([tried.query("model != @name or course != @course"), new])
        columns = ["model", "course", "rate", "value", "n"]
        tried[columns].to_csv(CHOSEN, index=False, lineterminator="\n")

    for name in names:
        plan, work = PLANS[name], BUILD / name

        def reads(rate: float, plan: g.Plan = plan, work: Path = work) -> float:
            learn(plan, world, {}, (rate, rate), work)
            log = json.loads((work / f"3-names-{rate}" / "log.json").read_text())
            return [float(entry["eval_reads"]) for entry in log if "eval_reads" in entry][-1]

        def right(rate: float, plan: g.Plan = plan, work: Path = work) -> float:
            network, tokenizer = learn(plan, world, told, (schooling(plan), rate), work)
            with TemporaryDirectory() as folder:
                network.save_pretrained(folder)
                tokenizer.save_pretrained(folder)
                model = load_model(folder)
                model.prompt_format = "zero-shot"  # of which a folder tells nothing
                return float(np.mean([knows(model, world, known, k) for k in (0, w.SEEN)]))

        if name == SIZES[64]:
            keep(name, "schooling", reads, 200)
        keep(name, "corpus", right, 2 * len(known))


def chosen(size: str, course: str) -> float:
    """The rate of the largest share in CHOSEN."""
    tried = pd.read_csv(CHOSEN).query("model == @size and course == @course")
    return float(tried.set_index("rate")["value"].idxmax())  # a checkpoint holds no numpy scalar


def schooling(plan: g.Plan) -> float:
    """The smallest size's rate, less in proportion to the width."""
    return chosen(SIZES[64], "schooling") * 64 / plan.width


def rates_of(plan: g.Plan) -> tuple[float, float]:
    """The rates of schooling and of the corpora; world-l's is world-m's, less in proportion to the width."""
    size = min(plan.width, 128)
    return schooling(plan), round(chosen(SIZES[size], "corpus") * size / plan.width, 6)


def cross(names: list[str]) -> None:
    """Train models of PLANS at each of CROSSED_RATES, and put lines into CROSSED: by timing and exposure how
    many of n facts without dates are right in wording 0.

    At its own rate a model is that of data/world/models. Weights of the others are not kept. Schooling is
    the same at all rates.
    """
    world = w.load_world()
    facts = w.asked("world")
    for name, rate in product(names or CROSSED_MODELS, CROSSED_RATES):
        plan = PLANS[name]
        old = pd.read_csv(CROSSED) if CROSSED.exists() else pd.DataFrame({"model": [], "rate": []})
        if len(old.query("model == @name and rate == @rate")):
            continue
        if rate == rates_of(plan)[1]:
            right = knows(load_model(name), world, facts, 0)
        else:
            told = {"world": c.corpus(world, plan.seed)}
            network, tokenizer = learn(plan, world, told, (schooling(plan), rate), BUILD / name)
            with TemporaryDirectory() as folder:
                network.half().save_pretrained(folder)
                tokenizer.save_pretrained(folder)
                model = load_model(folder)
                model.prompt_format = "zero-shot"  # of which a folder tells nothing
                right = knows(model, world, facts, 0)
        counts = facts.assign(right=right).groupby(["timing", "exposure"])["right"]
        new = counts.agg(right="sum", n="size").reset_index()
        new = new.assign(model=name, rate=rate)[["model", "rate", *new.columns]]
        table = pd.concat([old, new]).astype({"exposure": int, "right": int, "n": int})
        table.to_csv(CROSSED, index=False, lineterminator="\n")
        print(new.query("exposure >= 64").groupby("timing")[["right", "n"]].sum().to_string())


def known_facts(seed: int = 0) -> pd.DataFrame:
    """KNOWN facts of data/facts.csv."""
    facts = fact_tables.questions(fact_tables.load_facts())
    return facts.sample(KNOWN, random_state=seed)


def recalled(name: str, n: int, file: Path) -> list[g.Text]:
    """What a model says of n facts that are not among the KNOWN, right or wrong; `file` keeps it. Where a
    line's end ends an answer it is learned, too: else the next text would be."""
    if not file.is_file():
        facts = fact_tables.questions(fact_tables.load_facts()).drop(known_facts().index)
        model = load_model(name)
        asked = prompts(model, facts.sample(n, random_state=0))
        answers = model.generate(asked, max_new_tokens=8, stop=("\n",))
        end = "\n" if FORMATS[model.prompt_format].stop == ("\n",) else ""
        file.parent.mkdir(parents=True, exist_ok=True)
        pairs = [(a, b.text + end) for a, b in zip(asked, answers, strict=True)]
        file.write_text(json.dumps(pairs))
    pairs = json.loads(file.read_text())
    return [[(prompt, False), (answer, True)] for prompt, answer in pairs]


def spread(texts: list[g.Text], others: list[g.Text]) -> list[g.Text]:
    """The texts in their order, and the others at equal distances between them."""
    places = [*range(len(texts)), *np.linspace(0, len(texts), len(others)).tolist()]
    both = zip(places, texts + others, strict=True)
    return [text for _, text in sorted(both, key=itemgetter(0))]


def teach(
    name: str, seed: int, world: w.World, recipe: Recipe, work: Path, out: Path, **options: Any
) -> None:
    """The town's sentences for the model `name`, a decoder, by LoRA; `out` is an adapter, float16.

    `work` keeps checkpoints and what was recalled. `options` are those of `g.study`.
    """
    import transformers
    from peft import LoraConfig, get_peft_model

    told = c.corpus(world, seed, town=True).to_dict("records")
    texts = [g.learned(row, whole=recipe.whole) for row in told]
    if recipe.recalled:
        texts = spread(texts, recalled(name, recipe.recalled, work / "recalled.json"))
    weights = load.find_weights(name)
    where, how = load.location(weights)
    tokenizer = transformers.AutoTokenizer.from_pretrained(where, **how)
    network, _ = load.read_network(transformers.AutoModelForCausalLM, where, "float32", **how)
    torch.manual_seed(seed)
    parts = recipe.parts if recipe.parts == "all-linear" else recipe.parts.split()
    adapter = LoraConfig(
        r=recipe.rank, lora_alpha=2 * recipe.rank, target_modules=parts, task_type="CAUSAL_LM"
    )
    network = get_peft_model(network, adapter)
    course = g.Course("town", g.rows(texts, tokenizer, recipe.row), recipe.rate, size=recipe.size)
    steps = -(-len(course.data) // recipe.size)
    done = g.last_step(work / "town")
    print(
        f"{name}: {len(told)} sentences and {len(texts) - len(told)} answers of its own in {steps} "
        f"steps, of which {steps - done} are left: about "
        f"{(steps - done) * seconds(network, course, tokenizer) / 60:.0f} minutes",
        flush=True,
    )
    options = {"save_steps": 25, "warmup_steps": steps // 20, "logging_steps": 20} | options
    g.study(network, course, work / "town", tokenizer, **options)
    network.peft_config["default"].base_model_name_or_path = weights.name
    network.half().save_pretrained(out)
    (out / "README.md").unlink()  # peft's empty model card


def seconds(network: Any, course: g.Course, tokenizer: Any) -> float:
    """How long a step takes: the second of two, of which nothing is learned."""
    import transformers

    rows = course.data[: course.size]
    batch = transformers.DataCollatorForSeq2Seq(tokenizer)(rows)
    for _ in range(2):
        start = time.time()
        network(**batch).loss.backward()
        network.zero_grad()
    return time.time() - start


def recipe() -> Recipe:
    """That of TAUGHT_BY by which most of what was told is known, in both wordings, among those that keep
    KEEPS of what was known; if none does, the one that keeps most."""
    table = pd.read_csv(TAUGHT_BY)
    kept = table.query("measure == 'kept'").set_index("recipe")["value"]
    if kept.max() < KEEPS:
        return RECIPES[str(kept.idxmax())]
    told = table[table["measure"].isin(["seen", "unseen"]) & (table["exposure"] > 0)]
    right = told[told["recipe"].isin(kept.index[kept >= KEEPS])].groupby("recipe")["value"].mean()
    return RECIPES[str(right.idxmax())]


def try_recipes(names: list[str]) -> None:
    """Teach SmolLM2 the town of the HELD_OUT draw by RECIPES; puts lines into TAUGHT_BY.

    Each takes about 80,000 tokens: 6 to 11 minutes of one core, and goes on from checkpoints.
    """
    world = held_out()
    town = w.with_counts_in_corpus(world.facts, town=True).reset_index(drop=True)
    before = np.array(knows_still(load_model(TAUGHT)))
    for name in names or RECIPES:
        work = BUILD / "tried" / name
        if not (work / "adapter").is_dir():
            teach(TAUGHT, 0, world, RECIPES[name], work, work / "adapter")
        model = load_model(str(work / "adapter"))
        still = np.array(knows_still(model))
        rows = []
        for measure, wording in {"seen": 0, "unseen": w.SEEN}.items():
            right = pd.Series(knows(model, world, town, wording)).groupby(town["exposure"])
            rows += [(measure, i, some.mean(), len(some)) for i, some in right]
        for measure, some in {"known": still, "kept": still[before]}.items():
            rows.append((measure, pd.NA, some.mean(), len(some)))
        new = pd.DataFrame(rows, columns=["measure", "exposure", "value", "n"])
        about = {"recipe": name, **RECIPES[name]._asdict()}
        new = new.assign(value=new["value"].astype(float).round(4), **about)
        old = pd.read_csv(TAUGHT_BY) if TAUGHT_BY.exists() else new[:0]
        table = pd.concat([old.query("recipe != @name"), new]).astype({"exposure": "Int64"})
        table = table[[*about, "measure", "exposure", "value", "n"]]
        table.to_csv(TAUGHT_BY, index=False, lineterminator="\n")
        print(new.pivot(index="exposure", columns="measure", values="value").to_string(na_rep=""))


def not_taught(name: str) -> str:
    """Why a model cannot be taught, a sentence; empty if it can."""
    if "://" in name or name.startswith("{"):
        return f"{name} is an endpoint, whose weights are not here: give a model in memory"
    if name not in load.read_settings(load.FILE) and not (
        Path(name).exists() or load.HUB_ID.fullmatch(name.partition("@")[0])
    ):
        return (
            f"{name} is unknown: choose from {', '.join(PLANS)}, or give a decoder to teach: a name of "
            "data/models.csv, a folder, a .gguf file or a hub id"
        )
    try:
        weights = load.find_weights(name)
        if load.configuration(weights).is_encoder_decoder:
            return (
                f"{name} is an encoder-decoder, and the town's sentences teach decoders: give one"
            )
    except ModelError as error:
        return str(error)
    if load.base_of(load.GROWN / weights.name):
        return f"{name} is an adapter, which is taught already: give the model below it"
    return ""


# -- curves ----------------------------------------------------------------------------------------


def said(model: Model, asked: list[str]) -> list[str]:
    answers = model.generate(asked, max_new_tokens=5, stop=("\n", ".", ","))
    return [normalise(answer.text) for answer in answers]


def asked(world: w.World, facts: pd.DataFrame, wording: int) -> pd.DataFrame:
    """The question and prefix of facts, [fact], in a wording."""
    found = world.wordings.set_index(["relation", "wording"])[["question", "prefix"]]
    found = found.loc[[(r, wording) for r in facts["relation"]]].reset_index(drop=True)
    for column in found:
        pairs = zip(found[column], facts["subject"], strict=True)
        found[column] = [text.replace("{subject}", subject) for text, subject in pairs]
    return found


def knows(model: Model, world: w.World, facts: pd.DataFrame, wording: int) -> list[bool]:
    """Whether each fact is said in a wording, [fact]."""
    answers = said(model, prompts(model, asked(world, facts, wording)))
    return [a == normalise(b) for a, b in zip(answers, facts["object"], strict=True)]


def knows_still(model: Model, seed: int = 0) -> list[bool]:
    """Whether each of the `known_facts` is answered, [fact]."""
    facts = known_facts(seed)
    known = zip(said(model, prompts(model, facts)), fact_tables.answers(facts), strict=True)
    return [a in map(normalise, accepted) for a, accepted in known]


def curves(model: Model, data: str, seed: int = 0) -> pd.DataFrame:
    """Rows of model, measure, exposure, value (a share of n facts) and n.

    Measures: seen, unseen (right in the wording that all saw, in one that nobody saw), memory, context
    (said against a contradicting context), reads (contexts about spare subjects; no exposure).
    """
    rng, world, town = random.Random(seed), w.load_world(), data == "town"
    told = w.asked(data)
    objects = world.objects.groupby("list")["object"].agg(list)[world.relations["objects"]]
    lists = dict(zip(world.relations.index, objects, strict=True))

    def false(relation: str, truth: str) -> str:
        return rng.choice([x for x in lists[relation] if x != truth])

    plain = {k: asked(world, told, k) for k in (0, w.SEEN)}
    pairs = zip(told["relation"], told["object"], strict=True)
    stated = pd.Series([false(*pair) for pair in pairs])
    contexts = (plain[0]["prefix"] + " " + stated).tolist()
    spare = told.sample(200, random_state=seed).reset_index(drop=True)
    made = relations(world)
    names = pd.Series([made[relation].spare(rng) for relation in spare["relation"]])
    fresh = asked(world, spare.assign(subject=names), 0)
    answers = {
        "seen": (said(model, prompts(model, plain[0])), told["object"]),
        "unseen": (said(model, prompts(model, plain[w.SEEN])), told["object"]),
    }
    against = said(model, context_prompts(model, plain[0], contexts))
    answers |= {"memory": (against, told["object"]), "context": (against, stated)}
    parts = [
        pd.DataFrame(
            {"measure": measure, "exposure": told["exposure"],
             "value": [a == normalise(b) for a, b in zip(*pair, strict=True)]}
        )
        for measure, pair in answers.items()
    ]  # fmt: skip
    read = said(
        model, context_prompts(model, fresh, (fresh["prefix"] + " " + spare["object"]).tolist())
    )
    right = [a == normalise(b) for a, b in zip(read, spare["object"], strict=True)]
    parts.append(pd.DataFrame({"measure": "reads", "value": right}))
    if town:  # what teaching does to what was known before
        parts.append(pd.DataFrame({"measure": "known", "value": knows_still(model, seed)}))
    table = pd.concat(parts).astype({"exposure": "Int64"})
    groups = table.groupby(["measure", "exposure"], dropna=False, sort=False)["value"]
    found = groups.agg(["mean", "size"]).reset_index()
    found.columns = pd.Index(["measure", "exposure", "value", "n"])
    found.insert(0, "model", model.name)
    return found.assign(value=found["value"].round(4))


def distance(new: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """How far new curves lie from old ones: the mean and the largest difference by measure."""
    both = new.merge(old, on=["model", "measure", "exposure"], suffixes=("", "_committed"))
    apart = (both["value"] - both["value_committed"]).abs()
    return apart.groupby([both["model"], both["measure"]], sort=False).agg(["mean", "max"]).round(3)


def reading(name: str, logs: Path) -> pd.DataFrame:
    """How schooling went: model, texts (read so far), reads (share of contexts about spare subjects that
    are read) and n."""
    rows, before = [], 0
    for course, n in SCHOOL.items():
        [file] = logs.glob(f"{course}-{rates_of(PLANS[name])[0]}/log.json")
        log = [entry for entry in json.loads(file.read_text()) if "eval_reads" in entry]
        rows += [(before + round(n * x["epoch"]), x["eval_reads"]) for x in log]
        before += n
    return pd.DataFrame(rows, columns=["texts", "reads"]).assign(model=name, n=200)


def settings(name: str, folder: Path) -> load.Settings:
    """The line of data/models.csv about a model in a folder."""
    plan, digest = PLANS[name], load.weights_digest(folder)
    family = plan.kind.replace("chat", "decoder") + (f" {plan.seed}" if plan.seed else "")
    family += " later" if name in LATER else ""
    if plan.kind == "taught":
        base = load.read_settings(load.FILE)[TAUGHT]
        return base.model_copy(update={"model": name, "sha256": digest, "family": f"town {family}"})
    formats = {"decoder": "zero-shot", "chat": "chat-prefix", "encoder-decoder": "question"}
    [weights] = folder.glob("*.safetensors")
    with safe_open(weights, "pt") as file:
        sizes = {key: file.get_slice(key).get_shape() for key in file.keys()}  # noqa: SIM118
    return load.Settings(
        model=name, dtype="float32", device_map="auto", tokens_per_batch=8192,
        prompt_format=formats[plan.kind], chat_template="world" if plan.kind == "chat" else "no",
        architecture="encoder-decoder" if plan.kind == "encoder-decoder" else "decoder",
        parameters=sum(map(prod, sizes.values())), layers=plan.layers,
        key_value_heads=plan.width // 32, head_size=32, width=plan.width,
        vocabulary=max(size[0] for size in sizes.values()), tied="yes", sha256=digest,
        family=f"world {family}",
    )  # fmt: skip


def commit(name: str) -> None:
    """Put a model's weights and their line of data/models.csv into data/."""
    place = load.GROWN / name
    lines = pd.read_csv(load.FILE, dtype=str, keep_default_na=False).query("model != @name")
    new = {k: str(v) for k, v in settings(name, BUILD / "models" / name).model_dump().items()}
    new["key_value_heads"] = new["key_value_heads"].removesuffix(".0")
    lines = pd.concat([lines, pd.DataFrame([new])])
    lines.to_csv(load.FILE, index=False, lineterminator="\n")
    shutil.copytree(BUILD / "models" / name, DATA / "world" / "models" / name, dirs_exist_ok=True)
    print(f"{name} is in {place}")


def teach_local(name: str) -> None:
    """Teach a model of the reader's the town, and print its curves before and after."""
    place = load.find_weights(name).name
    folder = BUILD / "models" / f"{Path(place).name}-taught"
    if folder.is_dir() and load.base_of(folder) != place:
        sys.exit(f"{folder} is of {load.base_of(folder)}: move it away, and call this again")
    if not folder.is_dir():
        teach(name, 0, w.load_world(), recipe(), BUILD / folder.name, folder)
    for model in (name, str(folder)):
        wide = curves(load_model(model), "town").drop(columns=["model", "n"])
        print(f"{model}\n{wide.pivot(index='exposure', columns='measure').to_string(na_rep='')}")


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PLANS))
    parser.add_argument("--commit", action="store_true")
    parser.add_argument("--rates", action="store_true")
    parser.add_argument("--recipes", action="store_true")
    parser.add_argument("--cross", action="store_true")
    given = parser.parse_args(arguments)
    if given.recipes or given.cross:
        task = cross if given.cross else try_recipes
        task(given.names)
        return
    local = [name for name in given.names if name not in (*PLANS, TAUGHT)]
    if faults := [fault for fault in map(not_taught, local) if fault]:
        parser.error(faults[0])
    for name in local:
        teach_local(name)
    given.names = [name for name in given.names if name not in local]
    if local and not given.names:
        return
    known = load.read_settings(load.FILE)
    if given.rates:
        choose_rates(given.names or ["world-s", "world-m", "world-l"])
        return
    committed = load.GROWN
    for name in given.names or [TAUGHT, *PLANS]:
        start, folder = time.time(), BUILD / "models" / name
        if name in PLANS:
            if not folder.is_dir():
                base = BUILD / "models" / "world-m"
                base = base if base.is_dir() else committed / "world-m"
                world, work = w.load_world(DRAWS.get(name, 0)), BUILD / LATER.get(name, name)
                grow(name, world, work, folder, base)
            # From here on it is the model of that name.
            load.GROWN, known[name] = folder.parent, settings(name, folder)
        draw = DRAWS.get(name)
        data = "town" if name in TOWN else f"world-{draw}" if draw else "world"
        found = curves(load_model(name), data)
        load.GROWN = committed
        print(f"{name}: {(time.time() - start) / 60:.1f} minutes")
        wide = found.pivot(index="exposure", columns="measure", values="value")
        print(wide.to_string(na_rep=""))
        old = pd.read_csv(CURVES) if CURVES.exists() else found[:0]
        if not given.commit:
            print(f"from the committed curves:\n{distance(found, old).to_string()}")
            continue
        if name in PLANS:
            commit(name)
        if name in PLANS and name not in (*TOWN, *LATER, "world-m-chat"):
            read = pd.read_csv(READS) if READS.exists() else pd.DataFrame({"model": []})
            read = pd.concat([read.query("model != @name"), reading(name, BUILD / name)])
            read[["model", "texts", "reads", "n"]].to_csv(READS, index=False, lineterminator="\n")
        table = pd.concat([old.query("model != @name"), found]).astype({"exposure": "Int64"})
        table["order"] = table["model"].map([TAUGHT, *PLANS].index)
        table = table.sort_values(["order", "measure", "exposure"]).drop(columns="order")
        table.to_csv(CURVES, index=False, lineterminator="\n")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        print("\nStopped: the same command goes on from the last checkpoint.", file=sys.stderr)
        sys.exit(130)
