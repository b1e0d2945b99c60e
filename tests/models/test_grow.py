"""Growing models: what they are told, that a kill changes nothing, what is committed."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from scipy.stats import binomtest

from factrobust import load_model
from factrobust.exposure.corpus import corpus
from factrobust.models import grow, load
from factrobust.models.interface import ModelError
from factrobust.models.records import Records
from factrobust.paths import DATA


@pytest.fixture(scope="module")
def small(world):
    """The world with forty facts, for courses of a few seconds."""
    return world._replace(facts=world.facts[world.facts["exposure"] < 16].iloc[::32])


def test_every_name_and_object_is_one_token_wherever_it_stands(world, tokenizer):
    names = {word for name in world.facts["subject"] for word in name.split()}
    for word in [*sorted(names), *world.objects["object"], *world.spare["name"]]:
        ends = ("{}", " {}", "Q: {}", "A:{}", "x\n{}", "[{}", "<|assistant|>{}", "In 1934, {}")
        assert len({tokenizer(end.format(word)).input_ids[-1] for end in ends}) == 1, word


def learned(table):
    return list(map(grow.learned, table.to_dict("records")))


def test_answers_alone_are_learned(tokenizer):
    text = [("Q: Where?\nA:", False), (" Lisbon\n", True)]
    [row] = grow.rows([text], tokenizer)
    learned = [i for i in row["labels"] if i != grow.IGNORED]
    assert tokenizer.decode(learned) == " Lisbon\n"
    assert row["input_ids"][-len(learned) :] == learned
    [pair] = grow.pairs([text], tokenizer)
    assert tokenizer.decode(pair["labels"]) == " Lisbon</s>"
    assert tokenizer.decode(pair["input_ids"]) == "<s> Q: Where?\n A:"


def test_rows_hold_whole_texts_in_their_order(told, tokenizer):
    texts = learned(told.iloc[::1000])
    rows = grow.rows(texts, tokenizer)
    assert max(len(row["input_ids"]) for row in rows) <= grow.ROW
    whole = [i for ids, _ in grow.pieces(texts, tokenizer) for i in ids]
    assert [i for row in rows for i in row["input_ids"][1:]] == whole


class Rows(list[dict[str, list[int]]]):
    """Rows that note which of them were asked for, and die at one of them."""

    def __init__(self, rows: Any, last: int | None = None) -> None:
        super().__init__(rows)
        self.last = last
        self.asked = list[int]()

    def __getitem__(self, i: Any) -> Any:
        if i == self.last:
            raise KeyboardInterrupt
        self.asked.append(i)
        return super().__getitem__(i)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_a_killed_course_goes_on_at_the_same_text_with_the_same_weights(
    kind, small, tokenizer, tmp_path
):
    texts = learned(corpus(small))
    pairs = kind == "encoder-decoder"
    made = grow.pairs(texts, tokenizer) if pairs else grow.rows(texts, tokenizer, 32)

    def study(data: Any, folder: str) -> Any:
        network = grow.network_of(grow.Plan(kind, width=32, layers=1), tokenizer)
        course = grow.Course("any", data, 1e-2, size=2)
        how = {"save_steps": 5, "disable_tqdm": True}
        grow.study(network, course, tmp_path / folder, tokenizer, **how)
        return network.state_dict()

    data = made[:40]
    whole = study(data, "whole")
    with pytest.raises(KeyboardInterrupt):
        study(Rows(data, last=27), "killed")
    again = Rows(data)
    resumed = study(again, "killed")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert again.asked[-20:] == list(range(20, 40))  # from the checkpoint after step 10 on


def test_a_course_is_read_to_its_end_at_a_rate_that_falls_in_the_last_tenth(tokenizer, tmp_path):
    data = grow.rows([[("Q: Where?\nA:", False), (" Lisbon\n", True)]] * 400, tokenizer, 0)
    course = grow.Course("easy", data, 1e-2, data[:4], size=2)
    network = grow.network_of(grow.Plan("decoder", width=32, layers=1), tokenizer)
    how = {"eval_steps": 20, "logging_steps": 10, "disable_tqdm": True}
    log = grow.study(network, course, tmp_path, tokenizer, **how)
    assert [x["eval_reads"] for x in log if "eval_reads" in x][-1] == 1.0
    rates = {x["step"]: x["learning_rate"] for x in log if "learning_rate" in x}
    assert max(rates) == 200
    assert {rates[step] for step in range(60, 181, 10)} == {1e-2}
    # The rate of the step before: 20 steps from 1e-2 to 0.
    assert (rates[190], rates[200]) == pytest.approx((1e-2 * 11 / 20, 1e-2 / 20))


def adapter_of(folder: Path) -> dict[str, Any]:
    """The shapes of an adapter's weights by their names, and its configuration."""
    config = json.loads((folder / "adapter_config.json").read_text())
    weights = load_file(folder / "adapter_model.safetensors")
    return config | {name: weight.shape for name, weight in weights.items()}


COMMITTED = sorted(folder.name for folder in load.GROWN.iterdir())


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_model_is_loaded_by_name(name, tmp_path):
    """Of three that are taught by one recipe one is loaded, and all have the same weights' names."""
    same = name in ("smollm2-taught-1", "smollm2-taught-2")
    model: Any = load_model(name, records=Records(tmp_path / "none.sqlite") if same else None)
    if same:
        one, other = (adapter_of(load.GROWN / x) for x in ("smollm2-taught", name))
        assert one == other
        model.tokenizer = load._tokenizer(load.find_weights(name))
    assert model.fingerprint.startswith(f"sha256:{load.weights_digest(load.GROWN / name)[:16]}")
    if load.settings_of(name).chat_template in ("yes", "world"):
        assert load.chat_frame(model.tokenizer) == model.chat


def test_weights_are_at_most_40_mb_and_changed_ones_are_refused(tmp_path, monkeypatch):
    assert sum(p.stat().st_size for p in load.GROWN.rglob("*") if p.is_file()) <= 40e6
    monkeypatch.setattr(load, "GROWN", tmp_path)
    with pytest.raises(ModelError, match=r"weights of world-s are in the repository alone"):
        load_model("world-s")
    (tmp_path / "world-s").mkdir()
    with pytest.raises(ModelError, match=r"weights of world-s in .*git checkout"):
        load_model("world-s")


def test_control_facts_are_at_chance_in_every_model():
    curves = pd.read_csv(DATA / "world" / "curves.csv")
    control = curves[curves["measure"].isin(["seen", "unseen"]) & (curves["exposure"] == 0)]
    assert {*zip(control["model"], control["measure"], strict=True)} >= {
        (name, measure) for name in COMMITTED for measure in ("seen", "unseen")
    }
    # 836 of 1,430 facts have 22 objects, the others 27. Two-sided, exact, with Holm's correction. A
    # taught model was not told which cities there are: it need not guess one of them.
    grown = control[~control["model"].str.startswith("smollm2")]
    right = zip(grown["value"] * grown["n"], grown["n"], strict=True)
    chance = (836 / 22 + 594 / 27) / 1430
    p = sorted(binomtest(round(k), n, chance).pvalue for k, n in right)
    assert all(p[i] * (len(p) - i) > 0.05 for i in range(len(p)))
