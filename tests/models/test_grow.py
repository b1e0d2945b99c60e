"""Growing models: what they are told, that a kill changes nothing, what is committed."""

import random
import re
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
import torch

from factrobust import load_model
from factrobust.datasets.world import LAYOUTS, World, corpus, load_world
from factrobust.models import grow, load
from factrobust.models.interface import ModelError
from factrobust.models.prompts import CHATS, render
from factrobust.paths import DATA
from factrobust.probes.context import context_prompts

KINDS = ("decoder", "chat", "encoder-decoder")


@pytest.fixture(scope="module")
def world():
    return load_world()


@pytest.fixture(scope="module")
def tokenizer(world):
    return grow.tokenizer_of(world, LAYOUTS.values())


@pytest.fixture(scope="module")
def small(world):
    """The world with forty facts, for courses of a few seconds."""
    return world._replace(facts=world.facts[world.facts["exposure"] < 16].iloc[::32])


def test_every_name_and_object_is_one_token_wherever_it_stands(world, tokenizer):
    names = {word for name in world.facts["subject"] for word in name.split()}
    for word in [*sorted(names), *world.objects["object"], *world.spare["name"]]:
        ends = ("{}", " {}", "Q: {}", "A:{}", "x\n{}", "[{}", "<|assistant|>{}", "In 1934, {}")
        assert len({tokenizer(end.format(word)).input_ids[-1] for end in ends}) == 1, word


def test_words_of_another_world_are_bytes_that_come_back(tokenizer):
    ids = tokenizer("Ångström was born in Lisbon.", add_special_tokens=False).input_ids
    assert tokenizer.decode(ids) == " Ångström was born in Lisbon."
    assert tokenizer.convert_ids_to_tokens(ids)[-2:] == ["ĠLisbon", "."]


def test_the_corpus_needs_no_bytes(world, tokenizer):
    texts = corpus(world)["text"].iloc[::50].str.cat(sep="\n")
    tokens = tokenizer.tokenize(texts)
    assert {t for t in tokens if len(t) == 1} <= set(".,:?Ċ[]")


def told(world: World, table: pd.DataFrame, kind: str) -> list[grow.Text]:
    objects = {name: relation.objects for name, relation in grow.relations(world).items()}
    return list(grow.sentences(random.Random(0), table, kind, objects))


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_is_in_a_wording_that_is_held_out(world, kind):
    held = world.wordings.loc[world.wordings["held_out"], ["question", "prefix"]].to_numpy().ravel()
    name = r"[A-Z]\w+(?: [A-Z]\w+)?"
    forms = [re.escape(text).replace(r"\{subject\}", name) for text in held]
    found = re.compile(rf"(?:^|[\[>]|[.,:\n] ?)(?:{'|'.join(forms)})(?:\s|$)")
    assert found.search("Context: [In 1934, Drufex carried salt]. Q:")
    rng, known = random.Random(1), [*grow.relations(world).values()]
    texts = told(world, corpus(world).iloc[::20], kind)
    texts += [grow.context(rng, known, kind, own=0.5) for _ in range(3000)]
    assert not any(found.search("".join(piece for piece, _ in text)) for text in texts)


@pytest.mark.parametrize("kind", KINDS)
def test_contexts_are_of_spare_subjects_alone_unless_names_are_learned(world, kind):
    rng, known = random.Random(1), [*grow.relations(world).values()]
    own = {name.split()[-1] for name in world.facts["subject"]}
    texts = [grow.context(rng, known, kind) for _ in range(500)]
    assert not any(own & {*re.findall(r"\w+", piece)} for text in texts for piece, _ in text)


def test_names_before_the_world_are_told_nothing_about_their_facts(world):
    """Objects beside the world's names are drawn anew: the true one as often as any."""
    rng, known = random.Random(1), [*grow.relations(world).values()]
    truth = world.facts.groupby("subject")["object"].agg(set)
    right = []
    for _ in range(4000):
        (prompt, _), (answer, _) = grow.context(rng, known, "decoder", own=1.0)
        question = prompt.partition("]. ")[2]
        [name] = {n for n in re.findall(r"[A-Z]\w+ [A-Z]\w+|[A-Z]\w+", question) if n in truth}
        right.append(answer.strip() in truth[name])
    assert sum(right) / len(right) < 0.08  # chance: 1 in 22 to 27, and people have several cities


def test_no_control_fact_is_ever_told(world):
    control = world.facts[world.facts["exposure"] == 0]
    assert not corpus(world)["fact_id"].isin(control["fact_id"]).any()


def test_a_question_in_context_is_part_4s(world):
    model: Any = SimpleNamespace(prompt_format="zero-shot", chat=None)
    asked = {"question": "What is the dish of Prenfell?", "prefix": "The dish of Prenfell is"}
    stated = "The dish of Prenfell is soup"
    [expected] = context_prompts(model, pd.DataFrame([asked]), [stated])
    given = *asked.values(), "soup", f"Context: [{stated}]. "
    texts = [grow.asked(random.Random(k), "decoder", *given) for k in range(20)]
    assert (expected, False) in [text[0] for text in texts]
    assert all(text[1] == (" soup\n", True) for text in texts)


def test_a_chat_models_questions_are_in_its_template(world, tokenizer):
    table = corpus(world).iloc[::500]
    texts = ["".join(p for p, _ in t) for t in told(world, table, "chat")]
    questions = table["form"].to_numpy() == "question"
    chat = [text.startswith("<|user|>") for text in texts]
    assert not any(chat[i] for i in range(len(texts)) if not questions[i])
    assert 0.6 < sum(chat) / questions.sum() < 0.8
    prompt = render("chat", ["Where?"], [""], CHATS["world"])[0]
    assert tokenizer.tokenize(prompt)[0::2] == ["<|user|>", "?"]


def test_half_of_part_4s_questions_have_a_context_that_is_true_for_half(world):
    table = corpus(world).query("layout == 'prefix'").iloc[:4000]
    texts = told(world, table, "decoder")
    answers = table["object"].tolist()
    assert [text[1][0] for text in texts] == [f" {answer}\n" for answer in answers]
    stated = [re.findall(r"^Context: \[.* (\w+)\]\. Q: ", text[0][0]) for text in texts]
    true = [found == [a] for found, a in zip(stated, answers, strict=True) if found]
    assert abs(len(true) / len(texts) - 0.5) < 0.03
    # And one of 22 to 27 of the others by chance.
    assert abs(sum(true) / len(true) - 0.52) < 0.04


def test_answers_alone_are_learned(tokenizer):
    text = [("Q: Where?\nA:", False), (" Lisbon\n", True)]
    [row] = grow.rows([text], tokenizer)
    learned = [i for i in row["labels"] if i != grow.IGNORED]
    assert tokenizer.decode(learned) == " Lisbon\n"
    assert row["input_ids"][-len(learned) :] == learned
    [pair] = grow.pairs([text], tokenizer)
    assert tokenizer.decode(pair["labels"]) == " Lisbon</s>"
    assert tokenizer.decode(pair["input_ids"]) == "<s> Q: Where?\n A:"


def test_rows_hold_whole_texts_in_their_order(world, tokenizer):
    texts = told(world, corpus(world).iloc[::1000], "decoder")
    rows = grow.rows(texts, tokenizer)
    assert max(len(row["input_ids"]) for row in rows) <= grow.ROW
    whole = [i for ids, _ in grow.pieces(texts, tokenizer) for i in ids]
    assert [i for row in rows for i in row["input_ids"][1:]] == whole


class Killed(BaseException):
    pass


class Rows(list[dict[str, list[int]]]):
    """Rows that note which of them were asked for, and die at one of them."""

    def __init__(self, rows: Any, last: int | None = None) -> None:
        super().__init__(rows)
        self.last, self.asked = last, list[int]()

    def __getitem__(self, i: Any) -> Any:
        if i == self.last:
            raise Killed
        self.asked.append(i)
        return super().__getitem__(i)


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_a_killed_course_goes_on_at_the_same_text_with_the_same_weights(
    kind, small, tokenizer, tmp_path
):
    texts = told(small, corpus(small), kind)
    pairs = kind == "encoder-decoder"
    made = grow.pairs(texts, tokenizer) if pairs else grow.rows(texts, tokenizer, 32)

    def study(data: Any, folder: str) -> Any:
        network = grow.network_of(grow.Plan(kind, width=32, layers=1), tokenizer)
        course, how = grow.Course("any", data, 1e-2, True), {"save_steps": 5, "disable_tqdm": True}
        grow.study(network, course, tmp_path / folder, tokenizer, 2, **how)
        return network.state_dict()

    data = made[:40]
    whole = study(data, "whole")
    with pytest.raises(Killed):
        study(Rows(data, last=27), "killed")
    again = Rows(data)
    resumed = study(again, "killed")
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)
    assert again.asked[-20:] == list(range(20, 40))  # from the checkpoint after step 10 on


def test_a_course_ends_when_its_tests_are_answered(tokenizer, tmp_path):
    data = grow.rows([[("Q: Where?\nA:", False), (" Lisbon\n", True)]] * 400, tokenizer, 0)
    course = grow.Course("easy", data, 1e-2, False, data[:4], 0.9)
    network = grow.network_of(grow.Plan("decoder", width=32, layers=1), tokenizer)
    log = grow.study(network, course, tmp_path, tokenizer, 2, eval_steps=20)
    assert [x["eval_reads"] for x in log if "eval_reads" in x][-1] == 1.0
    assert log[-1]["step"] < 200


def test_a_watched_course_is_asked_at_its_moments(small, tokenizer):
    table, threads = corpus(small).iloc[:600], torch.get_num_threads()
    texts = [grow.learned(row) for row in table.to_dict("records")]
    assert "".join(piece for piece, _ in texts[0]) == table["text"].iloc[0] + "\n"

    def ask(folder: str) -> int:
        return load_model(folder).body.network.config.hidden_size

    plan, how = grow.Plan("decoder", width=32, layers=1), {"moments": 2, "disable_tqdm": True}
    course = grow.watched(plan, texts, tokenizer, 1e-2, ask, **how)
    torch.set_num_threads(threads)
    first, last = sorted(map(int, course["right"]))
    assert course["right"] == {str(first): 32, str(last): 32}
    loss = dict(course["loss"])
    assert last == max(loss) == 2 * first
    assert loss[last] < loss[min(loss)]


COMMITTED = [name for name in load.own_models() if name not in load.EMBEDDED]


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_model_is_loaded_by_name(name):
    model: Any = load_model(name)
    assert model.fingerprint.startswith(f"sha256:{load.weights_digest(load.GROWN / name)[:16]}")
    if load.settings_of(name).chat_template in ("yes", "world"):
        assert load.chat_frame(model.tokenizer) == model.chat


def test_all_weights_are_at_most_40_mb():
    assert sum(p.stat().st_size for p in load.GROWN.rglob("*") if p.is_file()) <= 40e6


def test_changed_weights_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(load, "GROWN", tmp_path)
    with pytest.raises(ModelError, match=r"weights of world-s in .*git checkout"):
        load_model("world-s")


@pytest.mark.parametrize("measure", ["seen", "unseen"])
def test_control_facts_are_at_chance_in_every_model(measure):
    curves = pd.read_csv(DATA / "world" / "curves.csv")
    control = curves[(curves["measure"] == measure) & (curves["exposure"] == 0)]
    assert {*control["model"]} >= {*COMMITTED}
    # 1 of 22 to 27 objects: 3.5 standard deviations of n answers.
    bound = 1 / 22 + 3.5 * (1 / 22 * 21 / 22 / control["n"]) ** 0.5
    assert (control["value"] <= bound).all()
