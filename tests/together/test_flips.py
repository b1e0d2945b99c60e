"""Facts lost and gained by models of which every answer is known, and by real ones."""

import os
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import factrobust
from factrobust.datasets.named import load_named
from factrobust.intervals import Interval
from factrobust.models.damage import Damage, damaged
from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.load import EMBEDDED, GROWN, find_weights, load_model, location
from factrobust.models.records import Records
from factrobust.tables import FactsError
from factrobust.text import contains
from factrobust.together import flips

ruled = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ruled.py"))))
CAPITALS, Rule, knows = ruled.CAPITALS, ruled.Rule, ruled.knows
pytestmark = pytest.mark.usefixtures("new_records")


def answers(known, wrong, logprobs=()):
    """Answers to k0, k1, ... that are right, with these log-probabilities, and w0, w1, ... that are not."""
    names = [f"k{i}" for i in range(known)] + [f"w{i}" for i in range(wrong)]
    logs = [*logprobs] + [-1.0] * (len(names) - len(logprobs))
    return pd.DataFrame(
        {"fact_id": names, "right": [n[0] == "k" for n in names], "logprob": logs, "text": "x"}
    )


def test_the_third_of_the_lowest_probability_is_asked_for_sure_and_the_rest_by_lot():
    before = answers(9, 4, [-0.1, -5.0, -0.2, np.nan, -3.0, -0.3, -0.4, -0.5, -4.0])
    planned = flips.plan(before, seed=1)
    # Of eight whose probability is known a third, rounded up, is three; and that which nobody told.
    assert planned.sure == ["k3", "k1", "k8", "k4"]
    assert sorted(planned.rest) == ["k0", "k2", "k5", "k6", "k7"]
    assert sorted(planned.wrong) == ["w0", "w1", "w2", "w3"]
    assert planned.upto(0.5) == [*planned.sure, *planned.rest[:3], *planned.wrong[:2]]
    assert planned.upto(1.0) == [*planned.sure, *planned.rest, *planned.wrong]
    assert flips.plan(before, seed=1).rest == planned.rest != flips.plan(before, seed=2).rest
    whole = flips.plan(before, seed=1, all_facts=True)
    assert (len(whole.sure), whole.rest) == (9, [])


def test_shares_by_hand_are_weighted_by_stratum():
    """Of nine known facts three were asked for sure, two lost; three of six others, one lost: 2/9 + 6/9 x 1/3.
    Of four wrong ones two were asked, one gained, and one became another wrong answer."""
    before = answers(9, 4)
    planned = flips.Plan(
        ["k0", "k1", "k2"], [f"k{i}" for i in range(3, 9)], ["w0", "w1", "w2", "w3"]
    )
    after = pd.DataFrame(
        [("k0", False), ("k1", False), ("k2", True), ("k3", False), ("k4", True), ("k5", True),
         ("w0", True), ("w1", False)], columns=["fact_id", "right"],
    ).assign(text="y", logprob=np.log(0.25))  # fmt: skip
    model = Rule(knows(), "later")
    before = before.assign(relation=["a"] * 5 + ["b"] * 8)
    side = flips.side_of(model, before, after, planned)
    assert side.lost.value == pytest.approx(2 / 9 + 6 / 9 * 1 / 3)
    assert (side.lost.n, side.lost.of) == (6, 9)
    assert (side.gained.value, side.gained.n, side.gained.of) == (0.5, 2, 4)
    assert (side.churn.value, side.churn.n) == (1.0, 1)
    assert side.mcnemar is None  # not all were asked
    weights = {name: answer.weight for name, answer in side.answers.items()}
    assert (weights["k0"], weights["k3"], weights["w0"]) == (1, 2, 2)
    assert side.answers["k0"].probability == pytest.approx(0.25)
    assert [(r.relation, r.lost, r.asked) for r in side.relations] == [("a", 3, 5), ("b", 0, 1)]


def test_two_models_by_hand(mine):
    one = Rule(knows("Kenya", "Peru", "Italy"), "one")
    other = Rule(knows("Kenya", "Norway"), "other")
    found = flips.flips(one, [other, Rule(knows("Kenya", "Peru"), "third")], mine, all_facts=True)
    side, third, again = found.sides
    assert (side.lost.value, side.lost.n) == (pytest.approx(2 / 3), 3)
    assert (side.gained.value, side.gained.n) == (0.5, 2)
    assert side.mcnemar == 1  # two lost, one gained
    assert (again.role, again.lost.value, again.gained.value) == ("null", 0, 0)
    lost = found.losses
    assert sorted(zip(lost["model"], lost["before"], lost["after"], strict=True)) == [
        ("other", "Lima", "Paris"), ("other", "Rome", "Paris"), ("third", "Rome", "Paris"),
    ]  # fmt: skip
    assert lost["probability"].tolist() == pytest.approx([np.exp(-0.2)] * 3)
    assert [fact.accepted for fact in found.lost_by_all] == [["Rome"]]
    assert third.lost.value == pytest.approx(1 / 3)


def test_a_condition_is_of_the_share_lost_and_not_of_a_net_change(mine):
    """As many are gained as are lost."""
    one, other = Rule(knows("Kenya", "Peru"), "one"), Rule(knows("Kenya", "Cuba"), "other")
    for condition, met in (
        ("lost>0.4", ["other"]),
        ("lost > .5", []),
        ("gained>=0.3", ["other"]),
        ("churn>0", []),
    ):
        assert flips.flips(one, [other], mine, fail_if=condition).met == met
    claim = flips.flips(one, [other], mine, margin=0.02).sides[0].claim
    assert (claim.verdict, claim.drop) == ("cannot tell", 0)
    assert claim.more > 0


@pytest.mark.parametrize(
    "text",
    ["lost", "loss>0.05", "lost>>1", "lost>0.1 or 1", "lost==0", "lost>x", "lost>5", "1>lost", "lost>nan",
     "", "lost>1", "lost>=0", "gained<0", "churn<=1",
     "__import__('os').system('touch ran')>0", "lost>__import__('os').getpid()"],
)  # fmt: skip
def test_a_condition_is_a_name_a_sign_and_a_share(text):
    with pytest.raises(ValueError, match=r"is no condition.* write one such as lost>0\.05"):
        flips.read_condition(text)


def test_asking_stops_once_the_interval_is_clear_of_the_condition(tmp_path):
    """All that is known is lost: after the first look at 60 known facts nobody can doubt 10%."""
    lines = [f"What is number {i}?,n{i}" for i in range(60)]
    (tmp_path / "many.csv").write_text("question,answer\n" + "\n".join(lines))
    one = Rule(lambda q: "n" + q.rpartition(" ")[2].rstrip("?"), "one")
    none, same = Rule(lambda _: "no", "none"), Rule(one.rule, "same")
    found = flips.flips(one, [none], tmp_path / "many.csv", fail_if="lost>0.1")
    assert found.sides[0].lost.n == none.asked == 20 + 10  # a third, and a quarter of the rest
    assert found.sides[0].level == pytest.approx(1 - 0.05 / 3)
    assert found.met == ["none"]
    close = flips.flips(one, [same], tmp_path / "many.csv", fail_if="lost>0.01")
    assert close.sides[0].lost.n == same.asked == 60  # nothing lost of 60 may still be 1%


def test_an_interval_on_the_limit_is_not_clear():
    condition = flips.read_condition("lost>0.1")
    assert condition.is_clear(Interval(0.3, 0.2, 0.4, 9))
    assert condition.is_clear(Interval(0.05, 0.0, 0.1, 9))
    assert not condition.is_clear(Interval(0.3, 0.05, 0.4, 9))
    assert not condition.is_clear(Interval(np.nan, np.nan, np.nan, 0))  # none was asked yet


def test_what_cannot_be_done_is_refused_before_anything_is_asked(mine, tmp_path):
    plain = Rule(knows("Kenya"), "plain")
    talks = Rule(knows("Kenya"), "talks", prompt_format="instruction", chat=("<", ">"))
    for arguments, how, error, said in (
        ((plain, []), {}, ModelError, "no model is named to compare with"),
        ((plain, ["gemma-3-270n"]), {}, ModelError, "no model is called 'gemma-3-270n'"),
        ((plain, [""]), {}, ModelError, "no model is named"),
        ((plain, [talks], tmp_path / "none.csv"), {}, FactsError, "is no file"),
        ((plain, [talks]), {"fail_if": "known_drop>0.05"}, ValueError, "is no condition"),
        ((plain, [talks]), {"margin": 2}, ValueError, "the margin 2 is no share"),
        ((talks, [plain], mine), {}, ModelError, "plain has no chat template"),
        (
            (plain, ["llama.cpp:none.gguf"]),
            {},
            ModelError,
            "is no .gguf file; give llama.cpp:FILE.gguf",
        ),
    ):
        with pytest.raises(error, match=said):
            flips.flips(*arguments, **how)
    assert talks.asked == plain.asked == 0


def test_once_more_is_asked_in_the_opposite_order_in_other_batches():
    asked = []
    one = Rule(lambda q: asked.append(q) or knows("Kenya")(q), "one")
    again = flips.Again(one)
    assert (again.fingerprint, again.name) == ("one again", "one, once more")
    said = again.generate([f"Q: {name}\nA:" for name in CAPITALS])
    assert asked == [*CAPITALS][::-1]
    assert [s.prompt for s in said] == [f"Q: {name}\nA:" for name in CAPITALS]


def test_once_more_is_asked_of_the_model_that_is_in_memory(tmp_path):
    """It is loaded once, and its answers are recorded under a name of their own."""
    loads = []
    rule = Rule(knows("Kenya"), "rule")
    about = {name: getattr(rule, name) for name in ("name", "fingerprint", "chat", "prompt_format")}
    records = Records(tmp_path / "records.sqlite")
    one = RecordedModel(records, lambda: loads.append(1) or rule, **about)
    again = flips.Again(one)
    sent = [f"Q: {name}\nA:" for name in CAPITALS]
    assert [said.text for said in one.generate(sent)] == [
        said.text for said in again.generate(sent)
    ]
    assert (loads, rule.asked) == ([1], 2 * len(CAPITALS))


def test_an_answer_in_other_words_that_states_the_name_is_no_loss():
    """Part 1's rule asks that a short answer be the name; a tuned model may say more. A name in another word is none."""
    facts = load_named(["embedded"], limit=1740).table
    kenya = facts[facts["fact_id"] == "capital/kenya"].reset_index(drop=True)
    for text, right in (
        ("Nairobi", True),
        ("the city of Nairobi", True),
        ("Nairobistan", False),
        ("Lima", False),
    ):
        assert flips.answered(Rule(lambda _, text=text: text), kenya)["right"].tolist() == [right]


EASY = """question,answer,aliases,relation
What is the capital of France?,Paris,,capital
What is the capital of Italy?,Rome,,capital
What is the capital of Japan?,Tokyo,,capital
What is the capital of Kenya?,Nairobi,,capital
What is the currency of Japan?,yen,Japanese yen,currency
What is the currency of the United States?,dollar,US dollar,currency
Which planet is the largest?,Jupiter,,planet
Which planet is closest to the Sun?,Mercury,,planet
"""


def test_a_model_and_its_own_saved_folder_lose_nothing_and_its_file_next_to_nothing(tmp_path):
    """A chat model whose folder alone would be asked in another format, and the file that ships, of
    which llama.cpp itself is asked."""
    pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    name = "smollm2-135m-instruct"
    (tmp_path / "easy.csv").write_text(EASY)
    folder, file = tmp_path / "saved", tmp_path / "small.gguf"
    os.symlink(location(find_weights(name))[0], folder)
    [(package, weights)] = EMBEDDED[name].parts
    [place] = find_spec(package).submodule_search_locations
    shutil.copy(Path(place) / weights, file)
    others = [name, str(folder), f"llama.cpp:{file}"]
    found = factrobust.flips(name, others, tmp_path / "easy.csv", all_facts=True)
    assert sum(fact.known for fact in found.facts) >= 4
    one, saved, served, again, at_8 = found.sides
    assert [side.role for side in found.sides] == [*["compared"] * 3, "null", "null"]
    assert at_8.name == f"{name}~round 8"
    assert {side.prompt_format for side in found.sides} == {found.prompt_format}
    for side in (one, saved, again):
        assert (side.lost.value, side.gained.value or 0) == (0, 0)
    assert " llama.cpp " in served.fingerprint
    assert served.lost.n >= 4
    assert served.lost.value <= 0.25  # activations of 8 bits may tip a near tie


def test_a_grown_chat_model_and_its_own_folder_lose_nothing(tmp_path):
    """It learned with BOS before its template, which writes none: its folder alone is sent none."""
    folder = tmp_path / "copied"
    os.symlink(GROWN / "world-m-chat", folder)
    alone = load_model(str(folder))
    listed = load_model("world-m-chat")
    assert alone.chat == listed.chat
    assert (
        alone._encode("<|user|>Who?<|assistant|>")
        == listed._encode("<|user|>Who?<|assistant|>")[1:]
    )
    found = factrobust.flips("world-m-chat", [str(folder)], n=24)
    [side] = [side for side in found.sides if side.role == "compared"]
    assert sum(fact.known for fact in found.facts) >= 4
    assert (side.lost.value, side.gained.value) == (0, 0)
    answers = {fact.fact_id: fact.answer for fact in found.facts}
    assert all(said.text == answers[name] for name, said in side.answers.items())


def test_a_grown_model_whose_weights_were_rounded_loses_what_it_answers_otherwise(tmp_path):
    """Counted anew of both models' own answers; its own folder, a base model's, loses nothing."""
    others = ["world-s~round2", str(GROWN / "world-s")]
    found = factrobust.flips("world-s", others, margin=0.02, n=60)
    assert len(found.facts) == 60
    before, after = load_model("world-s"), damaged("world-s", Damage("round", 2))
    texts = [
        [g.text for g in m.generate([f.prompt for f in found.facts], max_new_tokens=8, stop=["\n"])]
        for m in (before, after)
    ]
    right = [
        [contains(text, fact.accepted) for text, fact in zip(said, found.facts, strict=True)]
        for said in texts
    ]
    lost = sum(a and not b for a, b in zip(*right, strict=True))
    rounded, saved = found.compared
    assert rounded.lost.value == pytest.approx(lost / sum(right[0]))
    assert lost > 5
    assert (saved.lost.value, saved.gained.value) == (0, 0)
    assert saved.prompt_format == found.prompt_format
    assert saved.fingerprint != found.fingerprint
