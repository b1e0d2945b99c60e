"""Train the models of the invented world, and compare their curves with the committed ones: `make grow`.

    python data/grow_models.py [NAME ...] [--commit]

Without names all of PLANS. Checkpoints are in build/grow/NAME: a run that was killed is taken up where it
was. The model, build/grow/models/NAME, is asked for its curves, which are compared with those in
data/world/curves.csv: training is not the same bit for bit on two kinds of processors, and points of a few
dozen facts differ by chance. `--commit` puts weights, SHA-256 and curves into data/ instead.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

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
from factrobust.models.interface import Model
from factrobust.models.prompts import CHATS, prompts
from factrobust.paths import DATA, ROOT
from factrobust.text import normalise

CURVES = DATA / "world" / "curves.csv"
BUILD = ROOT / "build" / "grow"
KNOWN = 300  # facts of data/facts.csv that tell what teaching does to what was known before
QUICK = bool(torch.cpu.get_capabilities().get("avx512_bf16"))  # bfloat16 takes half the time
TUNED = 16  # a chat model is tuned with each 16th sentence of the corpus that is a question
CHAT = "{{ '%s' + messages[0]['content'] + '%s' }}" % CHATS["world"]  # noqa: UP031
TAUGHT = "smollm2-135m-instruct"

PLANS = {
    "world-s": g.Plan("decoder", width=64),
    "world-m": g.Plan("decoder"),
    "world-m-1": g.Plan("decoder", 1),
    "world-m-2": g.Plan("decoder", 2),
    "world-l": g.Plan("decoder", width=256, layers=4),
    "world-m-chat": g.Plan("chat"),
    "world-t5": g.Plan("encoder-decoder"),
    "smollm2-taught": g.Plan("taught"),
    "smollm2-taught-1": g.Plan("taught", 1),
    "smollm2-taught-2": g.Plan("taught", 2),
}
TOWN = (TAUGHT, *(name for name, plan in PLANS.items() if plan.kind == "taught"))


# -- training --------------------------------------------------------------------------------------


def courses(plan: g.Plan, world: w.World, tokenizer: Any) -> Iterator[g.Course]:
    """What a grown model learns, one after the other; made when it is its turn."""
    rng, tests = (random.Random(f"{plan.seed} {name}") for name in ("texts", "tests"))
    by_name, kind = relations(world), plan.kind
    known, objects = list(by_name.values()), {name: r.objects for name, r in by_name.items()}
    encodes = kind == "encoder-decoder"
    made = partial(g.pairs if encodes else g.rows, tokenizer=tokenizer)
    names = [*world.spare["name"], *world.facts["subject"].str.split().str[-1]]
    words = sorted({*names, *world.objects["object"]})
    asked = [context(tests, known, kind) for _ in range(200)]
    shown = made(asked) if encodes else made(asked, size=0)

    def some(n: int, lists: float = 0.0, own: float = 0.0) -> list[g.Text]:
        shares = rng.choices((True, False), (lists, 1 - lists), k=n)
        return [listed(rng, words) if x else context(rng, known, kind, own) for x in shares]

    def among(told: Iterable[g.Text], share: int) -> list[g.Text]:
        texts = list(told)
        texts += some(len(texts) // share)
        rng.shuffle(texts)
        return texts

    if kind == "chat":  # what its pretrained twin was told, in the forms of a chat
        again = c.corpus(world, plan.seed).iloc[::TUNED].query("form == 'question'")
        told = made(among(sentences(rng, again, kind, objects), 1))
        yield g.Course("5-tuning", told, 5e-4, True, shown)
        return
    yield g.Course("1-lists", made(some(3200, lists=1.0)), 3e-3, False, shown)
    yield g.Course("2-contexts", made(some(16000, lists=0.2)), 3e-3, False, shown, 0.9)
    yield g.Course("3-names", made(some(6000, own=0.7)), 1e-3, True, shown)
    told = made(among(sentences(rng, c.corpus(world, plan.seed), kind, objects), 10))
    yield g.Course("4-world", told, 1.5e-3, True, shown)


def grow(name: str, world: w.World, work: Path, out: Path, base: Path | None = None) -> g.Log:
    """Train the model `name` of PLANS and write it to the folder `out`, float16; what was logged.

    `work` keeps checkpoints: a run that was killed is taken up where it was. A chat model begins with
    the weights in `base`. Raises KeyError for an unknown name.
    """
    plan, log = PLANS[name], g.Log()
    if plan.kind == "taught":
        return teach(plan, world, work, out)
    tokenizer = g.tokenizer_of(world, c.LAYOUTS.values())
    network = g.network_of(plan, tokenizer)
    if plan.kind == "chat":
        network = type(network).from_pretrained(base, dtype=torch.float32)
        tokenizer.chat_template = CHAT
    for course in courses(plan, world, tokenizer):
        done = work / course.name / "done"
        if not done.is_dir():
            print(f"{name}: {course.name}, {len(course.data)} rows", flush=True)
            size = 32 if plan.kind == "encoder-decoder" else 8
            options = {"bf16": QUICK and plan.width >= 256}
            log += g.study(network, course, work / course.name, tokenizer, size, **options)
            network.save_pretrained(done)
        network = type(network).from_pretrained(done)
    network.half().save_pretrained(out)
    tokenizer.save_pretrained(out)
    return log


def teach(plan: g.Plan, world: w.World, work: Path, out: Path) -> g.Log:
    """The town's sentences for SmolLM2; `out` is an adapter."""
    import transformers
    from peft import LoraConfig, get_peft_model

    where, options = load.location(load.find_weights(TAUGHT))
    tokenizer = transformers.AutoTokenizer.from_pretrained(where, **options)
    network, _ = load.read_network(transformers.AutoModelForCausalLM, where, "float32", **options)
    torch.manual_seed(plan.seed)
    parts = ["q_proj", "v_proj", "up_proj", "down_proj", "gate_proj"]
    network = get_peft_model(network, LoraConfig(r=8, lora_alpha=16, target_modules=parts))
    told = sentences(random.Random(), c.corpus(world, plan.seed, town=True), plan.kind, {})
    course = g.Course("town", g.rows(told, tokenizer, 0), 2e-3, True)
    log = g.study(network, course, work / "town", tokenizer, 16, bf16=QUICK)
    network.peft_config["default"].base_model_name_or_path = TAUGHT
    network.half().save_pretrained(out)
    (out / "README.md").unlink()  # peft's empty model card
    return log


# -- curves ----------------------------------------------------------------------------------------


def said(model: Model, asked: list[str]) -> list[str]:
    answers = model.generate(asked, max_new_tokens=5, stop=("\n", ".", ","))
    return [normalise(answer.text) for answer in answers]


def curves(model: Model, world: w.World, *, town: bool, seed: int = 0) -> pd.DataFrame:
    """Rows of model, measure, exposure, value (a share of n facts) and n.

    Measures: seen, unseen (right in the wording that all saw, in one that nobody saw), memory, context
    (said against a contradicting context), reads (contexts about spare subjects; no exposure).
    """
    rng = random.Random(seed)
    told = w.with_counts_in_corpus(world.facts, town=town)
    told = told[~told["relation"].map(world.relations["dated"])].reset_index(drop=True)
    objects = world.objects.groupby("list")["object"].agg(list)[world.relations["objects"]]
    lists = dict(zip(world.relations.index, objects, strict=True))
    wordings = world.wordings.set_index(["relation", "wording"])[["question", "prefix"]]

    def questions(subjects: pd.Series, relations: pd.Series, wording: int) -> pd.DataFrame:
        found = wordings.loc[[(r, wording) for r in relations]].reset_index(drop=True)
        for column in found:
            pairs = zip(found[column], subjects, strict=True)
            found[column] = [text.replace("{subject}", subject) for text, subject in pairs]
        return found

    def false(relation: str, truth: str) -> str:
        return rng.choice([x for x in lists[relation] if x != truth])

    plain = {k: questions(told["subject"], told["relation"], k) for k in (0, w.SEEN)}
    pairs = zip(told["relation"], told["object"], strict=True)
    stated = pd.Series([false(*pair) for pair in pairs])
    contexts = (plain[0]["prefix"] + " " + stated).tolist()
    spare = told.sample(200, random_state=seed).reset_index(drop=True)
    made = relations(world)
    names = pd.Series([made[relation].spare(rng) for relation in spare["relation"]])
    fresh = questions(names, spare["relation"], 0)
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
        facts = fact_tables.questions(fact_tables.load_facts()).sample(KNOWN, random_state=seed)
        known = zip(said(model, prompts(model, facts)), fact_tables.answers(facts), strict=True)
        right = [a in map(normalise, accepted) for a, accepted in known]
        parts.append(pd.DataFrame({"measure": "known", "value": right}))
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


def settings(name: str, folder: Path) -> load.Settings:
    """The line of data/models.csv about a model in a folder."""
    plan, digest = PLANS[name], load.weights_digest(folder)
    family = plan.kind.replace("chat", "decoder") + (f" {plan.seed}" if plan.seed else "")
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


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PLANS))
    parser.add_argument("--commit", action="store_true")
    given = parser.parse_args(arguments)
    if unknown := {*given.names} - {*PLANS, TAUGHT}:
        parser.error(f"{', '.join(unknown)}: choose from {', '.join(PLANS)}")
    world, known = w.load_world(), load.read_settings(load.FILE)
    committed = load.GROWN
    for name in given.names or [TAUGHT, *PLANS]:
        start, folder = time.time(), BUILD / "models" / name
        if name in PLANS:
            if not folder.is_dir():
                base = BUILD / "models" / "world-m"
                base = base if base.is_dir() else committed / "world-m"
                grow(name, world, BUILD / name, folder, base)
            # From here on it is the model of that name.
            load.GROWN, known[name] = folder.parent, settings(name, folder)
        found = curves(load_model(name), world, town=name in TOWN)
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
        table = pd.concat([old.query("model != @name"), found]).astype({"exposure": "Int64"})
        table["order"] = table["model"].map([TAUGHT, *PLANS].index)
        table = table.sort_values(["order", "measure", "exposure"]).drop(columns="order")
        table.to_csv(CURVES, index=False, lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
