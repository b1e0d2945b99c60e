"""Names of models, and the prompt format that they are asked in."""

import pandas as pd
import pytest
from frames import cells

from factrobust.models.damage import Damage
from factrobust.models.interface import Model, ModelError
from factrobust.together import opened as names


class Still(Model):
    def answer(self, job):
        raise AssertionError("nothing is asked here")


def model(prompt_format, chat=None):
    return Still(name="m", fingerprint="m", prompt_format=prompt_format, chat=chat)


# "-" stands for none.
NAMES = cells("""
    gemma-3-270m          gemma-3-270m       -      -
    gemma-3-270m#chat     gemma-3-270m       -      chat
    a/b~round 4#two-shot  a/b                round  two-shot
    ~/models/x            ~/models/x         -      -
    ~/x~noise .05         ~/x                noise  -
    org/model@0123abc     org/model@0123abc  -      -
""")
CHANGES = {"-": None, "round": Damage("round", 4), "noise": Damage("noise", 0.05)}


@pytest.mark.parametrize(("name", "text", "change", "prompt_format"), NAMES)
def test_what_a_name_says(name, text, change, prompt_format):
    found = names.read_name(name)
    assert found.text == text
    assert found.change == CHANGES[change]
    assert found.prompt_format == prompt_format.strip("-")


@pytest.mark.parametrize(
    "folder", ["a#b", "a~round 4", 'it\'s #1 ~ "ok"', "modèle-é", "#", "a#chat"]
)
def test_a_folder_is_itself_whatever_signs_it_has(tmp_path, monkeypatch, folder):
    (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path)
    for name in (folder, str(tmp_path / folder)):
        assert names.read_name(name) == (name, None, "")
        assert names.read_name(f"{name}#prefix") == (name, None, "prefix")
        assert names.read_name(f"{name}~prune 0.5") == (name, Damage("prune", 0.5), "")


# runs/x is a folder that is there; org/model is none, but a name of the hub.
SHOWN = cells("""
    /home/me/models/x                x
    ~/models/x~round 4               x~round 4
    llama.cpp:/home/me/x.gguf        llama.cpp:x.gguf
    runs/x, once more                x, once more
    org/model#two-shot               org/model#two-shot
    http://host/v1 llama, once more  llama, once more
""")


@pytest.mark.parametrize(("name", "shown"), SHOWN)
def test_a_page_names_no_folder(tmp_path, monkeypatch, name, shown):
    (tmp_path / "runs" / "x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert names.short_name(name) == shown


FAULTS = cells(r"""
    x#chats               'x#chats' is no name of a model; write NAME, NAME~round 4 or NAME#
    x~round               is no name of a model
    x~round four          is no name of a model
    x~round 4~            is no name of a model
    a#b#c                 is no name of a model
    gemma-3-270n          no model is called 'gemma-3-270n'
    gemma-3-270m~melt 4   weights cannot be changed by 'melt 4'
    gemma-3-270m~round 1  round from 2 to 16
    ~/empty               the folder ~/empty is empty; give one that holds a model
    ~/broken              cannot be read \(KeyError: .*\); fetch its files anew
""")


@pytest.mark.parametrize(("name", "fault"), [*FAULTS, (" ", "no model is named; give a name")])
def test_what_cannot_be_opened_is_one_sentence(tmp_path, monkeypatch, name, fault):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=fault):
        names.open_model(name)


CHAT = ("<", ">")


# Its own format, its template, beginnings of answers (some facts may have none), and what is chosen.
FORMATS = cells("""
    two-shot     none  some  -     two-shot
    chat-prefix  chat  all   -     chat-prefix
    chat-prefix  chat  some  -     instruction
    chat         chat  all   -     instruction
    prefix       none  some  -     two-shot
    two-shot     chat  some  chat  chat
""")


@pytest.mark.parametrize(("usual", "template", "begins", "chosen", "found"), FORMATS)
def test_a_model_is_asked_in_its_own_format_or_the_chosen_one(
    usual, template, begins, chosen, found
):
    chat = CHAT if template == "chat" else None
    last = "It was" if begins == "all" else ""
    facts = pd.DataFrame({"prefix": ["It is", last]})
    asked = names.format_for_facts(model(usual, chat), facts, chosen.strip("-"))
    assert asked == found


@pytest.mark.parametrize(
    ("chosen", "prefix", "fault"),
    [
        ("instruction", "It is", "m has no chat template and cannot be asked in instruction"),
        ("prefix", "", "prefix begins the answers, and these facts have no such"),
    ],
)
def test_a_format_that_cannot_be_is_refused(chosen, prefix, fault):
    with pytest.raises(ModelError, match=fault):
        names.format_for_facts(model("two-shot"), pd.DataFrame({"prefix": [prefix]}), chosen)


def test_the_form_at_other_bits_is_of_a_name_whose_weights_can_be_had():
    found = names.rounded_model("world-s#zero-shot", 4, "two-shot")
    assert (found.name, found.prompt_format) == ("world-s~round 4", "two-shot")
    assert found.fingerprint.endswith(" round 4")
    for none in (model("two-shot"), "https://host/v1 m", "llama.cpp:m.gguf", "world-s~round 8"):
        assert names.rounded_model(none, 4, "two-shot") is None


def test_the_given_model_keeps_its_format():
    given = model("two-shot")
    assert names.in_format(given, "two-shot") is given
    assert names.in_format(given, "zero-shot").prompt_format == "zero-shot"
    assert given.prompt_format == "two-shot"
    assert names.open_model(given) is given
