"""Train the models of the invented world, and compare their curves with the committed ones: `make grow`.

    python data/grow_models.py [NAME ...] [--commit]

Without names all of PLANS. Any other NAME is a decoder whose weights are here (a name of
data/models.csv, a folder, a .gguf file): it is taught the town as SmolLM2 is, and becomes
build/grow/models/NAME-taught. Checkpoints are in build/grow/NAME: a run that was killed is taken up
where it was. The model, build/grow/models/NAME, is asked for its curves, which are compared with
those in data/world/curves.csv: training is not the same bit for bit on two kinds of processors, and
points of a few dozen facts differ by chance. `--commit` puts weights, SHA-256 and curves into data/
instead. `--rates`, `--recipes` and `--cross` try rates of learning, and ways to teach
(data/world/README.md).
"""

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from itertools import product
from math import ceil, prod
from pathlib import Path
from tempfile import TemporaryDirectory
from timeit import repeat
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from safetensors import safe_open
from schooling import Corpora, context, lessons, merged, relations

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

CURVES = DATA / "world" / "curves.csv"
CROSSED = DATA / "world" / "sizes.csv"  # sizes crossed with rates of learning
CHOSEN = DATA / "world" / "rates.csv"
TAUGHT_BY = DATA / "world" / "taught.csv"
BUILD = ROOT / "build" / "grow"
KNOWN = 300  # facts of data/facts.csv that tell what teaching does to what was known before
# By width, the models whose rates of learning all of that width have.
SIZES = {
    64: "world-s",
    128: "world-m",
}
TRIED = {  # rates of learning the corpus
    "world-s": (7.5e-4, 1.5e-3, 3e-3, 6e-3, 1.2e-2),
    "world-m": (1.5e-3, 3e-3),
}
TRIED_AT_SCHOOL = (1.5e-3, 3e-3, 6e-3)  # of the smallest size
CROSSED_MODELS = ("world-s", "world-s-1", "world-m", "world-m-1")
CROSSED_RATES = (1.5e-3, 3e-3, 6e-3)
HELD_OUT = 9  # the draw of chance on which rates are chosen: no model that is kept reads it
CHAT = "{{ '%s' + messages[0]['content'] + '%s' }}" % CHATS["world"]  # noqa: UP031
TAUGHT = "smollm2-135m-instruct"


class Recipe(NamedTuple):
    """How a model is taught the town."""

    rate: float  # of learning
    rank: int = 4  # of the adapter
    size: int = 2  # rows a step
    recalled: int = 300  # answers of its own to other facts, spread over the town's sentences


RECIPES = {
    "recalling": Recipe(5e-4),
    "faster": Recipe(1e-3),
}
PARTS = "all-linear"  # of the network, that an adapter is added to
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
TOWN = [TAUGHT, *(name for name, plan in PLANS.items() if plan.kind == "taught")]


# -- training --------------------------------------------------------------------------------------


def courses(
    plan: g.Plan,
    world: w.World,
    corpora: Corpora,
    tokenizer: Any,
    rates: tuple[float, float],
) -> Iterator[g.Course]:
    """The `schooling.lessons` of a grown model as its tokens, in as many steps for both
    architectures."""
    rng = random.Random(f"{plan.seed} tests")
    known = [*relations(world).values()]
    tests = [context(rng, known, plan.kind) for _ in range(200)]
    if plan.kind == "encoder-decoder":
        shown = g.pairs(tests, tokenizer)
    else:
        shown = g.rows(tests, tokenizer, size=0)
    for lesson in lessons(plan, world, corpora, rates):
        data = g.rows(lesson.texts, tokenizer)
        size = 8
        if plan.kind == "encoder-decoder":
            texts_a_row = len(lesson.texts) / len(data)
            size = round(size * texts_a_row)
            data = g.pairs(lesson.texts, tokenizer)
        yield g.Course(lesson.name, data, lesson.rate, shown, size)


def learn(
    plan: g.Plan,
    world: w.World,
    corpora: Corpora,
    rates: tuple[float, float],
    work: Path,
    base: Path | None = None,
) -> tuple[Any, Any]:
    """A network, which learned its courses, and its tokenizer.

    `work` keeps checkpoints, and by each course what was logged: a run that was killed is taken up
    where it was. A chat model begins with the weights in `base`.
    """
    tokenizer = g.tokenizer_of(world, c.TEXTS)
    network = g.network_of(plan, tokenizer)
    if plan.kind == "chat":
        network = type(network).from_pretrained(base, dtype=torch.float32)
        tokenizer.chat_template = CHAT
    for course in courses(plan, world, corpora, tokenizer, rates):
        folder = work / course.name
        done = folder / "done"
        if not done.is_dir():
            print(f"{work.name}: {course.name}, {len(course.data)} rows", flush=True)
            log = g.study(network, course, folder, tokenizer)
            (folder / "log.json").write_text(json.dumps(log))
            network.save_pretrained(done)
        network = type(network).from_pretrained(done)
    return network, tokenizer


def grow(name: str, out: Path) -> None:
    """Train the model `name` of PLANS and write it to the folder `out`, float16."""
    plan = PLANS[name]
    world = w.load_world(DRAWS.get(name, 0))
    work = BUILD / LATER.get(name, name)
    if plan.kind == "taught":
        teach(TAUGHT, plan.seed, world, recipe(), work, out)
        return
    corpora = {"world": c.corpus(world, plan.seed)}
    if name in LATER:
        later = world._replace(facts=c.later_facts(world))
        corpora["later"] = c.corpus(later, plan.seed)
    base = BUILD / "models" / "world-m"
    if not base.is_dir():
        base = load.GROWN / "world-m"
    rates = rates_of(plan)
    network, tokenizer = learn(plan, world, corpora, rates, work, base)
    network.half().save_pretrained(out)
    tokenizer.save_pretrained(out)


# -- rates of learning -----------------------------------------------------------------------------


def chosen(size: str, course: str) -> float:
    """The rate of the largest share in CHOSEN."""
    tried = pd.read_csv(CHOSEN).query("model == @size and course == @course")
    best: Any = tried.set_index("rate")["value"].idxmax()
    return float(best)  # a checkpoint holds no numpy scalar


def schooling(plan: g.Plan) -> float:
    """The smallest size's rate, less in proportion to the width."""
    rate = chosen(SIZES[64], "schooling")
    return rate * 64 / plan.width


def rates_of(plan: g.Plan) -> tuple[float, float]:
    """The rates of schooling and of the corpora; world-l's is world-m's, less in proportion to the
    width."""
    size = min(plan.width, 128)
    rate = chosen(SIZES[size], "corpus")
    corpus = rate * size / plan.width
    return schooling(plan), round(corpus, 6)


def held_out() -> w.World:
    """The world with the facts of the HELD_OUT draw."""
    from build_world import build  # which needs the lists of names

    facts, _ = build(HELD_OUT)
    facts = facts.reset_index(drop=True)
    numbers = facts["wordings"].str.split("|")
    facts["wordings"] = numbers.map(lambda each: [*map(int, each)])
    world = w.load_world()
    return world._replace(facts=facts)


def choose_rates(names: list[str]) -> None:
    """Train models on the HELD_OUT draw, and put lines into data/world/rates.csv: of schooling the
    share of contexts that are read at its end, of the corpus the share of facts without dates, told
    1 to 64 times, that are right in the wordings 0 and 8.

    Of the rates of TRIED that of the largest share is taken. Schooling's is tried on the smallest
    size.
    """
    for name in names:
        if name == SIZES[64]:
            read = [read_after(name, rate) for rate in TRIED_AT_SCHOOL]
            keep_tried(name, "schooling", read, 200)
        shares = []
        for rate in TRIED[name]:
            right = right_after(name, rate)
            shares.append((rate, float(np.mean(right))))
        keep_tried(name, "corpus", shares, np.size(right))


def read_after(name: str, rate: float) -> tuple[float, float]:
    """The rate, and the share of contexts that a model reads after schooling at it."""
    work = BUILD / name
    learn(PLANS[name], w.load_world(), {}, (rate, rate), work)
    log = json.loads((work / f"3-names-{rate}" / "log.json").read_text())
    *_, last = [entry["eval_reads"] for entry in log if "eval_reads" in entry]
    return rate, last


def right_after(name: str, rate: float) -> list[list[bool]]:
    """Which facts of the HELD_OUT draw are right after its corpus at a rate: [wording, fact]."""
    plan = PLANS[name]
    world = w.load_world()
    some = held_out()
    is_asked = some.facts["relation"].isin(["birthplace", "trade", "dish", "product"])
    is_told = some.facts["exposure"].between(1, 64)
    facts = some.facts[is_asked & is_told].reset_index(drop=True)
    corpora = {"held-out": c.corpus(some)}
    rates = schooling(plan), rate
    network, tokenizer = learn(plan, world, corpora, rates, BUILD / name)
    return knows_now(network, tokenizer, world, facts, (0, w.SEEN))


def knows_now(
    network: Any,
    tokenizer: Any,
    world: w.World,
    facts: pd.DataFrame,
    wordings: tuple[int, ...],
) -> list[list[bool]]:
    """`knows` of a network that is in no folder, in each of some wordings."""
    with TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        model = load_model(folder)
        model.prompt_format = "zero-shot"  # of which a folder tells nothing
        return [knows(model, world, facts, wording) for wording in wordings]


def keep_tried(
    name: str,
    course: str,
    shares: list[tuple[float, float]],
    n: int,
) -> None:
    """Put the share (of n) at each rate into CHOSEN."""
    new = pd.DataFrame(shares, columns=["rate", "value"])
    new = new.round({"value": 4})
    new = new.assign(model=name, course=course, n=n)
    write(CHOSEN, with_rows(CHOSEN, new, ["model", "course"]))


def with_rows(file: Path, new: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The table of a file, where new rows stand in the place of those with the same keys."""
    old = pd.read_csv(file)
    replaced = pd.MultiIndex.from_frame(new[keys])
    is_replaced = pd.MultiIndex.from_frame(old[keys]).isin(replaced)
    table = pd.concat([old[~is_replaced], new])
    return table[[*old.columns]]


def write(file: Path, table: pd.DataFrame) -> None:
    if "exposure" in table:
        table = table.astype({"exposure": "Int64"})
    table.to_csv(file, index=False, lineterminator="\n")


def cross(names: list[str]) -> None:
    """Train models of PLANS at each of CROSSED_RATES, and put lines into CROSSED: by timing and
    exposure how many of n facts without dates are right in wording 0.

    At its own rate a model is that of data/world/models. Weights of the others are not kept.
    Schooling is the same at all rates.
    """
    world = w.load_world()
    facts = w.asked("world")
    for name, rate in product(names or CROSSED_MODELS, CROSSED_RATES):
        if len(pd.read_csv(CROSSED).query("model == @name and rate == @rate")):
            continue
        plan = PLANS[name]
        if rate == rates_of(plan)[1]:
            right = knows(load_model(name), world, facts, 0)
        else:
            corpora = {"world": c.corpus(world, plan.seed)}
            rates = schooling(plan), rate
            network, tokenizer = learn(plan, world, corpora, rates, BUILD / name)
            [right] = knows_now(network.half(), tokenizer, world, facts, (0,))
        marked = facts.assign(right=right)
        groups = marked.groupby(["timing", "exposure"])["right"]
        counts = groups.agg(right="sum", n="size").reset_index()
        new = counts.assign(model=name, rate=rate)
        write(CROSSED, with_rows(CROSSED, new, ["model", "rate"]))


# -- teaching --------------------------------------------------------------------------------------


def known_facts() -> pd.DataFrame:
    """KNOWN facts of data/facts.csv."""
    facts = fact_tables.with_questions(fact_tables.load_facts())
    return facts.sample(KNOWN, random_state=0)


def recalled(name: str, n: int, file: Path) -> list[g.Text]:
    """What a model says of n facts that are not among the KNOWN, right or wrong; `file` keeps it.
    Where a line's end ends an answer it is learned, too: else the next text would be."""
    if not file.is_file():
        facts = fact_tables.with_questions(fact_tables.load_facts())
        others = facts.drop(known_facts().index).sample(n, random_state=0)
        model = load_model(name)
        asked = prompts(model, others)
        answers = model.generate(asked, max_new_tokens=8, stop=("\n",))
        stop = FORMATS[model.prompt_format].stop
        end = "\n" if stop == ("\n",) else ""
        texts = [answer.text + end for answer in answers]
        pairs = list(zip(asked, texts, strict=True))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(pairs))
    texts = []
    for prompt, answer in json.loads(file.read_text()):
        texts.append([(prompt, False), (answer, True)])
    return texts


def teach(
    name: str,
    seed: int,
    world: w.World,
    recipe: Recipe,
    work: Path,
    out: Path,
    **options: Any,
) -> None:
    """The town's sentences for the model `name`, a decoder, by LoRA; `out` is an adapter, float16.

    `work` keeps checkpoints and what was recalled. `options` are those of `g.study`.
    """
    import transformers
    from peft import LoraConfig, get_peft_model

    # 1. What is read. A model that knows its language keeps it better if it learns whole sentences.
    corpus = c.corpus(world, seed, town=True).to_dict("records")
    lessons = [g.learned(row, whole=True) for row in corpus]
    answers = recalled(name, recipe.recalled, work / "recalled.json")
    places = np.linspace(0, len(lessons), len(answers))
    texts = merged(lessons, answers, places.tolist())
    # 2. The network, with an adapter.
    weights = load.find_weights(name)
    where, how = load.location(weights)
    tokenizer = transformers.AutoTokenizer.from_pretrained(where, **how)
    network, _ = load.read_network(transformers.AutoModelForCausalLM, where, "float32", **how)
    torch.manual_seed(seed)
    adapter = LoraConfig(
        r=recipe.rank,
        lora_alpha=2 * recipe.rank,
        target_modules=PARTS,
        task_type="CAUSAL_LM",
    )
    network = get_peft_model(network, adapter)
    # 3. How long it will take.
    data = g.rows(texts, tokenizer)
    course = g.Course("town", data, recipe.rate, size=recipe.size)
    steps = ceil(len(data) / recipe.size)
    left = steps - g.last_step(work / "town")
    seconds_each = seconds(network, course, tokenizer)
    minutes = left * seconds_each / 60
    print(
        f"{name}: {len(lessons)} sentences and {len(answers)} answers of its own in {steps} steps, of "
        f"which {left} are left: about {minutes:.0f} minutes",
        flush=True,
    )
    # 4. The course.
    usual = {
        "save_steps": 25,
        "warmup_steps": steps // 20,
        "logging_steps": 20,
    }
    g.study(network, course, work / "town", tokenizer, **(usual | options))
    network.peft_config["default"].base_model_name_or_path = weights.name
    network.half().save_pretrained(str(out))
    (out / "README.md").unlink()  # peft's empty model card


def seconds(network: Any, course: g.Course, tokenizer: Any) -> float:
    """How long a step takes: the second of two, of which nothing is learned."""
    import transformers

    rows = course.data[: course.size]
    batch = transformers.DataCollatorForSeq2Seq(tokenizer)(rows)

    def step() -> None:
        network(**batch).loss.backward()
        network.zero_grad()

    _, second = repeat(step, number=1, repeat=2)
    return second


def recipe() -> Recipe:
    """That of TAUGHT_BY by which most of what was told is known, in both wordings, among those that
    keep KEEPS of what was known; if none does, the one that keeps most."""
    table = pd.read_csv(TAUGHT_BY)
    kept = table.query("measure == 'kept'").set_index("recipe")["value"]
    if kept.max() < KEEPS:
        return RECIPES[str(kept.idxmax())]
    with_exposure = table.query("measure in ('seen', 'unseen') and exposure > 0")
    right = with_exposure.groupby("recipe")["value"].mean()
    keeping = right[kept >= KEEPS]
    return RECIPES[str(keeping.idxmax())]


def try_recipes(names: list[str]) -> None:
    """Teach SmolLM2 the town of the HELD_OUT draw by RECIPES; puts lines into TAUGHT_BY.

    Each takes about 80,000 tokens: 6 to 11 minutes of one core, and goes on from checkpoints.
    """
    world = held_out()
    town = w.with_counts_in_corpus(world.facts, town=True)
    town = town.sort_values("exposure", kind="stable", ignore_index=True)
    before = np.array(knows_still(load_model(TAUGHT)))
    for name in names or RECIPES:
        work = BUILD / "tried" / name
        adapter = work / "adapter"
        if not adapter.is_dir():
            teach(TAUGHT, 0, world, RECIPES[name], work, adapter)
        model = load_model(str(adapter))
        still = np.array(knows_still(model))
        seen = knows(model, world, town, 0)
        unseen = knows(model, world, town, w.SEEN)
        parts = [
            by_exposure("seen", town, seen),
            by_exposure("unseen", town, unseen),
            pd.DataFrame({"measure": "known", "value": still}),
            pd.DataFrame({"measure": "kept", "value": still[before]}),
        ]
        new = shares(pd.concat(parts)).assign(
            recipe=name,
            **RECIPES[name]._asdict(),
            parts=PARTS,
            row=g.ROW,
            whole=True,
        )
        write(TAUGHT_BY, with_rows(TAUGHT_BY, new, ["recipe"]))


def not_taught(name: str) -> str:
    """Why a model cannot be taught, a sentence; empty if it can."""
    if "://" in name or name.startswith("{"):
        return f"{name} is an endpoint, whose weights are not here: give a model in memory"
    is_listed = name in load.read_settings(load.FILE)
    is_on_hub = load.HUB_ID.fullmatch(name.partition("@")[0])
    if not (is_listed or Path(name).exists() or is_on_hub):
        return (
            f"{name} is unknown: choose from {', '.join(PLANS)}, or give a decoder to teach: a name "
            "of data/models.csv, a folder, a .gguf file or a hub id"
        )
    try:
        weights = load.find_weights(name)
        encodes = load.configuration(weights).is_encoder_decoder
    except ModelError as error:
        return str(error)
    if encodes:
        return f"{name} is an encoder-decoder, and the town's sentences teach decoders: give one"
    if load.base_of(load.GROWN / weights.name):
        return f"{name} is an adapter, which is taught already: give the model below it"
    return ""


def teach_local(name: str) -> None:
    """Teach a model of the reader's the town, and print its curves before and after."""
    place = load.find_weights(name).name
    folder = BUILD / "models" / f"{Path(place).name}-taught"
    if not folder.is_dir():
        work = BUILD / folder.name
        teach(name, 0, w.load_world(), recipe(), work, folder)
    elif load.base_of(folder) != place:
        below = load.base_of(folder)
        sys.exit(f"{folder} is of {below}: move it away, and call this again")
    for model in (name, str(folder)):
        found = curves(load_model(model), "town")
        print(f"{model}\n{as_text(found)}")


def as_text(found: pd.DataFrame) -> str:
    """Shares by exposure and measure."""
    wide = found.pivot(index="exposure", columns="measure", values="value")
    return wide.to_string(na_rep="")


# -- curves ----------------------------------------------------------------------------------------


def answers_of(model: Model, asked: list[str]) -> list[str]:
    """Greedy answers, normalised."""
    answers = model.generate(asked, max_new_tokens=5, stop=("\n", ".", ","))
    return [normalise(answer.text) for answer in answers]


def same(texts: list[str], objects: pd.Series) -> list[bool]:
    """Whether each text is the object."""
    names = map(normalise, objects)
    return [text == name for text, name in zip(texts, names, strict=True)]


def asked(world: w.World, facts: pd.DataFrame, wording: int) -> pd.DataFrame:
    """The question and prefix of facts, [fact], in a wording."""
    in_wording = world.wordings["wording"] == wording
    templates = world.wordings[in_wording].set_index("relation")
    found = {}
    for column in ("question", "prefix"):
        texts = facts["relation"].map(templates[column])
        pairs = zip(texts, facts["subject"], strict=True)
        found[column] = [text.replace("{subject}", subject) for text, subject in pairs]
    return pd.DataFrame(found)


def knows(
    model: Model,
    world: w.World,
    facts: pd.DataFrame,
    wording: int,
) -> list[bool]:
    """Whether each fact is said in a wording, [fact]."""
    texts = answers_of(model, prompts(model, asked(world, facts, wording)))
    return same(texts, facts["object"])


def knows_still(model: Model) -> list[bool]:
    """Whether each of the `known_facts` is answered, [fact]."""
    facts = known_facts()
    texts = answers_of(model, prompts(model, facts))
    right = []
    for text, accepted in zip(texts, fact_tables.accepted_answers(facts), strict=True):
        right.append(text in map(normalise, accepted))
    return right


def by_exposure(measure: str, facts: pd.DataFrame, right: list[bool]) -> pd.DataFrame:
    return pd.DataFrame({"measure": measure, "exposure": facts["exposure"], "value": right})


def shares(rows: pd.DataFrame) -> pd.DataFrame:
    """Of rows with a measure, an exposure (or none) and a value, which is true or not: measure,
    exposure, value (the share that is true) and n."""
    rows = rows.astype({"exposure": "Int64"})
    groups = rows.groupby(["measure", "exposure"], dropna=False, sort=False)
    table = groups["value"].agg(value="mean", n="size").reset_index()
    return table.round({"value": 4})


def curves(model: Model, data: str) -> pd.DataFrame:
    """Rows of model, measure, exposure, value (a share of n facts) and n.

    Measures: seen, unseen (right in the wording that all saw, in one that nobody saw), memory,
    context (said against a contradicting context), reads (contexts about spare subjects; no
    exposure).
    """
    rng = random.Random(0)
    world = w.load_world()
    in_corpus = w.asked(data)
    # 1. Another object of each fact's list, and spare subjects in place of those of some facts.
    lists = world.objects.groupby("list")["object"].agg(list)
    stated = []
    of_relation = in_corpus["relation"].map(world.relations["objects"])
    for name, truth in zip(of_relation, in_corpus["object"], strict=True):
        others = [other for other in lists[name] if other != truth]
        stated.append(rng.choice(others))
    false = pd.Series(stated)
    some = in_corpus.sample(200, random_state=0).reset_index(drop=True)
    made = relations(world)
    names = [made[relation].spare_name(rng) for relation in some["relation"]]
    spare = some.assign(subject=names)
    # 2. What is said.
    contradicting = in_corpus["prefix"] + " " + false
    against = answers_of(model, context_prompts(model, in_corpus, contradicting.tolist()))
    fresh = asked(world, spare, 0)
    sentences = fresh["prefix"] + " " + spare["object"]
    read = answers_of(model, context_prompts(model, fresh, sentences.tolist()))
    # 3. What of it is right.
    parts = [
        by_exposure("seen", in_corpus, knows(model, world, in_corpus, 0)),
        by_exposure("unseen", in_corpus, knows(model, world, in_corpus, w.SEEN)),
        by_exposure("memory", in_corpus, same(against, in_corpus["object"])),
        by_exposure("context", in_corpus, same(against, false)),
        pd.DataFrame({"measure": "reads", "value": same(read, spare["object"])}),
    ]
    if data == "town":  # what teaching does to what was known before
        still = knows_still(model)
        parts.append(pd.DataFrame({"measure": "known", "value": still}))
    found = shares(pd.concat(parts))
    found.insert(0, "model", model.name)
    return found


def distance(new: pd.DataFrame, old: pd.DataFrame) -> pd.DataFrame:
    """How far new curves lie from old ones: the mean and the largest difference by measure."""
    both = new.merge(old, on=["model", "measure", "exposure"], suffixes=("", "_committed"))
    moves = both["value"] - both["value_committed"]
    both["difference"] = moves.abs()
    groups = both.groupby(["model", "measure"], sort=False)["difference"]
    return groups.agg(["mean", "max"]).round(3)


# -- what is kept ----------------------------------------------------------------------------------


def settings(name: str, folder: Path) -> load.Settings:
    """The line of data/models.csv about a model in a folder."""
    plan = PLANS[name]
    digest = load.weights_digest(folder)
    encodes = plan.kind == "encoder-decoder"
    family = "encoder-decoder" if encodes else plan.kind.replace("chat", "decoder")
    if plan.seed:
        family += f" {plan.seed}"
    if name in LATER:
        family += " later"
    if plan.kind == "taught":
        base = load.read_settings(load.FILE)[TAUGHT]
        about = {
            "model": name,
            "sha256": digest,
            "family": f"town {family}",
        }
        return base.model_copy(update=about)
    formats = {
        "decoder": "zero-shot",
        "chat": "chat-prefix",
        "encoder-decoder": "question",
    }
    [weights] = folder.glob("*.safetensors")
    with safe_open(weights, "pt") as file:
        shapes = [file.get_slice(key).get_shape() for key in file.keys()]  # noqa: SIM118
    return load.Settings(
        model=name,
        dtype="float32",
        device_map="auto",
        tokens_per_batch=8192,
        prompt_format=formats[plan.kind],
        chat_template="world" if plan.kind == "chat" else "no",
        architecture="encoder-decoder" if encodes else "decoder",
        parameters=sum(map(prod, shapes)),
        layers=plan.layers,
        key_value_heads=plan.width // 32,
        head_size=32,
        width=plan.width,
        vocabulary=max(shape[0] for shape in shapes),
        tied="yes",
        sha256=digest,
        family=f"world {family}",
    )


def commit(name: str) -> None:
    """Put a model's weights and their line of data/models.csv into data/."""
    folder = BUILD / "models" / name
    lines = pd.read_csv(load.FILE, dtype=str, keep_default_na=False)
    others = lines.query("model != @name")
    cells = settings(name, folder).model_dump()
    new = {key: str(value) for key, value in cells.items()}
    new["key_value_heads"] = new["key_value_heads"].removesuffix(".0")
    line = pd.DataFrame([new])
    write(load.FILE, pd.concat([others, line]))
    shutil.copytree(folder, load.GROWN / name, dirs_exist_ok=True)


def asked_for_curves(name: str) -> pd.DataFrame:
    """The curves of a model of PLANS, which is trained unless it was, or of the one that is
    taught."""
    data = "town" if name in TOWN else "world"
    if name in DRAWS:
        data = f"world-{DRAWS[name]}"
    if name not in PLANS:
        return curves(load_model(name), data)
    folder = BUILD / "models" / name
    if not folder.is_dir():
        grow(name, folder)
    # The model of that name is the one that was trained here, while it is asked.
    committed = load.GROWN
    load.GROWN = folder.parent
    load.read_settings(load.FILE)[name] = settings(name, folder)
    found = curves(load_model(name), data)
    load.GROWN = committed
    return found


def compare(name: str, *, commits: bool) -> None:
    """Print a model's curves and how far they are from the committed ones, or commit all of it."""
    found = asked_for_curves(name)
    print(f"{name}\n{as_text(found)}")
    if not commits:
        differences = distance(found, pd.read_csv(CURVES))
        print(f"from the committed curves:\n{differences.to_string()}")
        return
    if name in PLANS:
        commit(name)
    table = with_rows(CURVES, found, ["model"])
    places = table["model"].map([TAUGHT, *PLANS].index)
    table = table.assign(place=places).sort_values(["place", "measure", "exposure"])
    write(CURVES, table.drop(columns="place"))


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PLANS))
    for option in ("--commit", "--rates", "--recipes", "--cross"):
        parser.add_argument(option, action="store_true")
    given = parser.parse_args(arguments)
    if given.cross:
        cross(given.names)
    elif given.recipes:
        try_recipes(given.names)
    elif given.rates:
        choose_rates(given.names or [*TRIED])
    else:
        local = [name for name in given.names if name not in (*PLANS, TAUGHT)]
        if faults := [fault for fault in map(not_taught, local) if fault]:
            parser.error(faults[0])
        for name in given.names or [TAUGHT, *PLANS]:
            if name in local:
                teach_local(name)
            else:
                compare(name, commits=given.commit)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        print("\nStopped: the same command goes on from the last checkpoint.", file=sys.stderr)
        sys.exit(130)
