"""A model against itself loses nothing, in whatever form it comes; and what a comparison refuses."""

import os
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from factrobust import load_model
from factrobust.models.interface import ModelError
from factrobust.models.load import GROWN, find_weights, location
from factrobust.tables import FactsError
from factrobust.together import card as cards
from factrobust.together import compare

faulty = SimpleNamespace(
    **runpy.run_path(str(Path(__file__).parents[1] / "models/faulty_server.py"))
)
ruled = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ruled.py"))))
CAPITALS, Rule, knows = ruled.CAPITALS, ruled.Rule, ruled.knows
pytestmark = pytest.mark.usefixtures("new_records")
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


@pytest.fixture
def easy(tmp_path):
    path = tmp_path / "easy.csv"
    path.write_text(EASY)
    return path


def assert_nothing_changed(found, *, exactly=True):
    assert len(found.changes) == 0
    assert {"known", "wordings", "logprob", "kept"} <= {*found.table["name"]}
    far = found.table["drop"].abs().max()
    assert far == 0 if exactly else far < 1e-4  # other batches
    assert (found.table["low"] <= 1e-4).all()
    assert (found.table["high"] >= -1e-4).all()
    assert found.a.prompt_format == found.b.prompt_format
    asked = [
        [
            (fact.question, fact.contexts and next(iter(fact.contexts.values()))[0])
            for fact in made.facts
        ]
        for made in (found.a, found.b)
    ]
    assert asked[0] == asked[1]
    assert [*map(dict, found.a.facts)] == [*map(dict, found.b.facts)] or not exactly


@pytest.mark.parametrize("name", ["gemma-3-270m", "smollm2-135m-instruct"])
def test_a_model_and_its_own_saved_folder(name, easy, tmp_path):
    """A base model, and a chat model whose folder alone would be asked in another format."""
    found = compare.diff(name, name, easy, all_facts=True)
    assert_nothing_changed(found)
    assert sum(fact.known for fact in found.a.facts) >= 4
    folder = tmp_path / "saved"
    os.symlink(location(find_weights(name))[0], folder)
    assert_nothing_changed(compare.diff(name, str(folder), easy, all_facts=True), exactly=False)
    assert_nothing_changed(compare.diff(str(folder), name, easy, all_facts=True), exactly=False)


def test_a_chat_model_and_its_folder_on_our_facts(tmp_path, capsys, monkeypatch):
    """With beginnings of answers the name is asked in chat-prefix; a folder alone in instruction."""
    monkeypatch.setattr(cards, "CHUNK", 16)
    name, folder = "smollm2-135m-instruct", tmp_path / "saved"
    os.symlink(location(find_weights(name))[0], folder)
    found = compare.diff(name, str(folder), known=4)
    assert_nothing_changed(found, exactly=False)
    assert found.b.prompt_format == "chat-prefix"
    said = capsys.readouterr().out
    assert f"{name} is asked in the prompt format chat-prefix\n" in said
    assert f"{folder} is asked in the prompt format chat-prefix, not chat\n" in said


def test_a_grown_model_and_its_folder(tmp_path):
    shutil.copytree(GROWN / "world-s", tmp_path / "mine")
    assert_nothing_changed(compare.diff("world-s", "world-s"))
    assert_nothing_changed(compare.diff("world-s", str(tmp_path / "mine")), exactly=False)
    model = load_model("world-s")
    assert_nothing_changed(compare.diff(model, model))


def served(body):
    """Capitals in a sentence, with log-probabilities of its words; behind a context what that says."""
    asked = body["messages"][0]["content"]
    city = next((CAPITALS[name] for name in CAPITALS if name.lower() in asked.lower()), "Paris")
    words = ["The", " capital", " is", f" {city}"]
    content = [
        {"token": word, "logprob": -0.1, "bytes": [*word.encode()], "top_logprobs": [
            {"token": word if k == 0 else f"other{k}", "logprob": -0.1 if k == 0 else -3.0 - k}
            for k in range(10)
        ]} for word in words
    ]  # fmt: skip
    message = {"role": "assistant", "content": "".join(words)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    choice |= {"logprobs": {"content": content}} if body.get("logprobs") else {}
    return faulty.Reply({"choices": [choice | {"index": i} for i in range(body.get("n") or 1)]})


def test_an_endpoint(mine):
    with faulty.faulty_server() as server:
        server.answer = served
        endpoint = {"url": server.url, "model": "llama", "format": "instruction"}
        found = compare.diff(endpoint, endpoint, mine)
    assert_nothing_changed(found)
    assert [fact.known for fact in found.a.facts] == [True] * 5
    logprobs = [fact.numbers["logprob"] for fact in found.a.facts]
    assert logprobs == pytest.approx([-0.1] * 5)  # of the name, not of the four words


def test_diff_by_hand(mine):
    one, other = (
        Rule(knows("Kenya", "Peru", "Italy"), "one"),
        Rule(knows("Kenya", "Norway"), "other"),
    )
    found = compare.diff(one, other, mine)
    known = found.table.set_index("name").loc["known"]
    assert known[["a", "b", "drop", "n"]].tolist() == pytest.approx([0.6, 0.4, 0.2, 5])
    assert known["p_value"] == 1  # two lost, one gained: (1 + 3) / 8 on each side
    assert sorted(found.changes["accepted"].str[0]) == ["Lima", "Oslo", "Rome"]
    assert found.table.set_index("name").loc["wordings", "n"] == 1  # of what both know
    assert found.fails("known_drop>0.05")
    assert found.fails(" known_drop >= 1.9e-1 ")
    assert not found.fails("known_drop > 0.2001")
    assert found.fails("wordings_drop<=0")
    assert not found.fails("kept_drop < -.5")
    bare = found._replace(table=found.table[found.table["name"] == "known"])
    with pytest.raises(ValueError, match="kept was not measured of both models"):
        bare.fails("kept_drop>0")


@pytest.mark.parametrize(
    "text",
    ["known", "", "melted_drop>1", "known_drop>>1", "known_drop>0.1 or 1", "known_drop>1)",
     "known_drop==0", "known_drop>x", "known_drop>1e", "known_drop>nan", "1>known_drop",
     "__import__('os').system('touch ran')>0", "known_drop>__import__('os').getpid()"],
)  # fmt: skip
def test_a_condition_is_a_name_a_sign_and_a_number(text):
    with pytest.raises(ValueError, match=r"is no condition; write one such as known_drop>0\.05"):
        compare.read_condition(text)


def test_a_chosen_format_is_kept_and_both_are_printed(mine, capsys):
    def rule(**about):
        return Rule(knows("Kenya"), **about)

    one, other = rule(name="one"), rule(name="other", prompt_format="zero-shot")
    found = compare.diff(one, other, mine)
    assert (found.a.prompt_format, found.b.prompt_format) == ("two-shot", "two-shot")
    assert (one.prompt_format, other.prompt_format) == ("two-shot", "zero-shot")
    found = compare.diff("world-s#two-shot", "world-s#zero-shot", known=5)
    assert (found.a.prompt_format, found.b.prompt_format) == ("two-shot", "zero-shot")
    said = capsys.readouterr().out
    assert "other is asked in the prompt format two-shot, not zero-shot\n" in said
    assert (
        "world-s#zero-shot is asked in the prompt format zero-shot; the other in two-shot" in said
    )


def test_what_cannot_be_compared_is_refused_before_anything_is_asked(mine, tmp_path):
    talks = Rule(knows("Kenya"), "talks", prompt_format="instruction", chat=("<", ">"))
    plain = Rule(knows("Kenya"), "plain")
    with pytest.raises(
        ModelError, match="plain has no chat template and cannot be asked in instruct"
    ):
        compare.diff(talks, plain, mine)
    with pytest.raises(ModelError, match="no model is called 'gemma-3-270n'"):
        compare.diff(plain, "gemma-3-270n", mine)
    with pytest.raises(ModelError, match="no model is named"):
        compare.diff(plain, "", mine)
    with pytest.raises(FactsError, match="is no file"):
        compare.diff(plain, talks, tmp_path / "none.csv")
    assert talks.asked == plain.asked == 0
    one = cards.card(talks, mine)
    other = cards.card(plain, mine)
    with pytest.raises(
        ModelError, match="talks was asked in instruction and plain in two-shot; ask"
    ):
        compare.diff(one, other)
    other_data = tmp_path / "more.csv"
    other_data.write_text(mine.read_text() + "Who?,x,capital\n")
    with pytest.raises(
        ModelError, match=r"the card of plain was made of mine.csv, which more.csv is no"
    ):
        compare.diff(other, plain, other_data)
    with pytest.raises(ModelError, match="have other data; make both anew"):
        compare.diff(other, cards.card(plain, other_data))


def test_a_card_and_a_model(mine):
    """The model is asked the facts of the card, whichever of the two comes first."""
    one, other = Rule(knows("Kenya", "Peru"), "one"), Rule(knows("Kenya"), "other")
    made = cards.card(one, mine)
    whole = compare.diff(one, other, mine)
    for found, sign in (
        (compare.diff(made, other, mine), 1),
        (compare.diff(other, made, mine), -1),
    ):
        drop = found.table.set_index("name").loc["known", "drop"]
        assert drop == pytest.approx(sign * whole.table.set_index("name").loc["known", "drop"])
    assert made.digest == whole.a.digest


def test_a_comparison_has_files_of_its_own(mine, tmp_path):
    found = [
        compare.diff(Rule(knows("Kenya"), a), Rule(knows("Peru"), b), mine)
        for a, b in (("x", "y"), ("y", "x"), ("x", "x/y"))
    ]
    files = [path for one in found for path in one.save(tmp_path / "diffs")]
    assert len({*files}) == 6
    assert all(path.stat().st_size for path in files)
