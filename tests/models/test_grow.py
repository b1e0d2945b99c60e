"""Growing models: what they are told, that a kill changes nothing, what is committed."""

import json
from pathlib import Path

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
    rare = world.facts[world.facts["exposure"] < 16]
    return world._replace(facts=rare.iloc[::32])


def test_every_name_and_object_is_one_token_wherever_it_stands(world, tokenizer):
    places = ("{}", " {}", "Q: {}", "A:{}", "x\n{}", "[{}", "<|assistant|>{}", "In 1934, {}")
    names = {word for name in world.facts["subject"] for word in name.split()}
    for word in [*names, *world.objects["object"], *world.spare["name"]]:
        last = {tokenizer(place.format(word)).input_ids[-1] for place in places}
        assert len(last) == 1, word


TEXT = [("Q: Where?\nA:", False), (" Lisbon\n", True)]


def learned(table):
    return list(map(grow.learned, table.to_dict("records")))


def test_answers_alone_are_learned(tokenizer):
    [row] = grow.rows([TEXT], tokenizer)
    targets = [label for label in row["labels"] if label != grow.IGNORED]
    assert tokenizer.decode(targets) == " Lisbon\n"
    assert row["input_ids"][-len(targets) :] == targets
    [pair] = grow.pairs([TEXT], tokenizer)
    assert tokenizer.decode(pair["labels"]) == " Lisbon</s>"
    assert tokenizer.decode(pair["input_ids"]) == "<s> Q: Where?\n A:"


def test_rows_hold_whole_texts_in_their_order(world_sentences, tokenizer):
    texts = learned(world_sentences.iloc[::1000])
    whole = [token for ids, _ in grow.pieces(texts, tokenizer) for token in ids]
    found = []
    for row in grow.rows(texts, tokenizer):
        assert len(row["input_ids"]) <= grow.ROW
        found += row["input_ids"][1:]
    assert found == whole


def test_a_row_is_full_before_the_next_one_begins(tokenizer):
    [row] = grow.rows([TEXT], tokenizer)
    both = 2 * len(row["input_ids"]) - 1  # the start stands once
    assert len(grow.rows([TEXT, TEXT], tokenizer, both)) == 1
    assert len(grow.rows([TEXT, TEXT], tokenizer, both - 1)) == 2


def network(kind, tokenizer):
    return grow.network_of(grow.Plan(kind, width=32, layers=1), tokenizer)


class Rows(list):
    """Rows that note which of them were read. Whoever reads the row `last` is killed."""

    last = None

    def __init__(self, rows):
        super().__init__(rows)
        self.read = []

    def __getitem__(self, i):
        if i == self.last:
            raise KeyboardInterrupt
        self.read.append(i)
        return super().__getitem__(i)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_a_killed_course_goes_on_at_the_same_text_with_the_same_weights(
    kind, small, tokenizer, tmp_path
):
    texts = learned(corpus(small))
    made = grow.pairs(texts, tokenizer)
    if kind == "decoder":
        made = grow.rows(texts, tokenizer, 32)
    data = Rows(made[:40])

    def study(folder):
        data.read.clear()
        student = network(kind, tokenizer)
        grow.study(
            student,
            grow.Course(
                "any",
                data,
                1e-2,
                size=2,
            ),
            tmp_path / folder,
            tokenizer,
            save_steps=5,
            disable_tqdm=True,
        )
        return student.state_dict()

    whole = study("whole")
    data.last = 27
    with pytest.raises(KeyboardInterrupt):
        study("killed")
    data.last = None
    resumed = study("killed")
    for name, weights in whole.items():
        assert torch.equal(weights, resumed[name])
    assert data.read[-20:] == list(range(20, 40))  # from the checkpoint after step 10 on


def test_a_course_is_read_to_its_end_at_a_rate_that_falls_in_the_last_tenth(tokenizer, tmp_path):
    data = grow.rows([TEXT] * 400, tokenizer, 0)
    log = grow.study(
        network("decoder", tokenizer),
        grow.Course(
            "easy",
            data,
            1e-2,
            data[:4],
            size=2,
        ),
        tmp_path,
        tokenizer,
        eval_steps=20,
        logging_steps=10,
        disable_tqdm=True,
    )
    read = [entry["eval_reads"] for entry in log if "eval_reads" in entry]
    assert read[-1] == 1.0
    rates = {entry["step"]: entry["learning_rate"] for entry in log if "learning_rate" in entry}
    assert max(rates) == 200
    assert {rates[step] for step in range(60, 181, 10)} == {1e-2}
    # The rate of the step before: 20 steps from 1e-2 to 0.
    assert rates[190] == pytest.approx(1e-2 * 11 / 20)
    assert rates[200] == pytest.approx(1e-2 / 20)


def adapter_of(name):
    """The shapes of an adapter's weights by their names, and its configuration."""
    folder = load.GROWN / name
    config = json.loads((folder / "adapter_config.json").read_text())
    weights = load_file(folder / "adapter_model.safetensors")
    return config | {key: weight.shape for key, weight in weights.items()}


COMMITTED = sorted(folder.name for folder in load.GROWN.iterdir())


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_model_is_loaded_by_name(name, tmp_path):
    """Of three that are taught by one recipe one is loaded, and all have the same weights' names."""
    twin = name in ("smollm2-taught-1", "smollm2-taught-2")
    model = load_model(name, records=Records(tmp_path / "none.sqlite") if twin else None)
    tokenizer = load._tokenizer(load.find_weights(name)) if twin else model.tokenizer
    if twin:
        assert adapter_of(name) == adapter_of("smollm2-taught")
    digest = load.weights_digest(load.GROWN / name)
    assert model.fingerprint.startswith(f"sha256:{digest[:16]}")
    if load.settings_of(name).chat_template in ("yes", "world"):
        assert load.chat_frame(tokenizer) == model.chat


def test_weights_are_at_most_40_mb_and_changed_ones_are_refused(tmp_path, monkeypatch):
    files = filter(Path.is_file, load.GROWN.rglob("*"))
    assert sum(file.stat().st_size for file in files) <= 40e6
    monkeypatch.setattr(load, "GROWN", tmp_path)
    with pytest.raises(ModelError, match=r"weights of world-s are in the repository alone"):
        load_model("world-s")
    (tmp_path / "world-s").mkdir()
    with pytest.raises(ModelError, match=r"weights of world-s in .*git checkout"):
        load_model("world-s")


def test_control_facts_are_at_chance_in_every_model():
    curves = pd.read_csv(DATA / "world" / "curves.csv")
    control = curves[curves["exposure"] == 0]
    control = control[control["measure"].isin(["seen", "unseen"])]
    for _, some in control.groupby("measure"):
        assert {*some["model"]} >= {*COMMITTED}
    # 836 of 1,430 facts have 22 objects, the others 27. Two-sided, exact, with Holm's correction. A
    # taught model was not told which cities there are: it need not guess one of them.
    chance = (836 / 22 + 594 / 27) / 1430
    grown = control[~control["model"].str.startswith("smollm2")]
    p = []
    for share, n in zip(grown["value"], grown["n"], strict=True):
        p.append(binomtest(round(share * n), n, chance).pvalue)
    for rank, value in enumerate(sorted(p)):
        assert value * (len(p) - rank) > 0.05
