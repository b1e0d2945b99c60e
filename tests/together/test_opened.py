"""Names of models, and the prompt format that they are asked in."""

import pandas as pd
import pytest

from factrobust.models.damage import Damage
from factrobust.models.interface import Model, ModelError
from factrobust.together import opened as names


class Still(Model):
    def answer(self, job):
        raise AssertionError("nothing is asked here")


def model(prompt_format, chat=None):
    return Still(name="m", fingerprint="m", prompt_format=prompt_format, chat=chat)


@pytest.mark.parametrize(
    ("name", "text", "change", "prompt_format"),
    [
        ("gemma-3-270m", "gemma-3-270m", None, ""),
        ("gemma-3-270m#chat", "gemma-3-270m", None, "chat"),
        ("a/b~round 4#two-shot", "a/b", Damage("round", 4), "two-shot"),
        ("~/models/x", "~/models/x", None, ""),
        ("~/x~noise .05", "~/x", Damage("noise", 0.05), ""),
        ("org/model@0123abc", "org/model@0123abc", None, ""),
    ],
)
def test_what_a_name_says(name, text, change, prompt_format):
    assert names.read_name(name) == (text, change, prompt_format)


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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("/home/me/models/x", "x"),
        ("~/models/x~round 4", "x~round 4"),
        ("llama.cpp:/home/me/x.gguf", "llama.cpp:x.gguf"),
        ("runs/x, once more", "x, once more"),  # a folder that is there
        ("org/model#two-shot", "org/model#two-shot"),  # no folder, a name of the hub
        ("http://host/v1 llama, once more", "llama, once more"),
    ],
)
def test_a_page_names_no_folder(tmp_path, monkeypatch, name, shown):
    (tmp_path / "runs" / "x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert names.short(name) == shown


NO_NAME = "is no name of a model; write NAME, NAME~round 4 or NAME#"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("x#chats", NO_NAME),
        ("x~round", NO_NAME),
        ("x~round four", NO_NAME),
        ("x~round 4~", NO_NAME),
        ("a#b#c", NO_NAME),
        (" ", "no model is named; give a name"),
        ("gemma-3-270n", "no model is called 'gemma-3-270n'"),
        ("gemma-3-270m~melt 4", "weights cannot be changed by 'melt 4'"),
        ("gemma-3-270m~round 1", "round from 2 to 16"),
        ("~/empty", "the folder ~/empty is empty; give one that holds a model"),
        ("~/broken", r"cannot be read \(KeyError: .*\); fetch its files anew"),
    ],
)
def test_what_cannot_be_opened_is_one_sentence(tmp_path, monkeypatch, name, fault):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=fault):
        names.opened(name)


CHAT = ("<", ">")


@pytest.mark.parametrize(
    ("own", "chat", "prefixes", "chosen", "found"),
    [
        ("two-shot", None, ["It is", ""], "", "two-shot"),
        ("chat-prefix", CHAT, ["It is", "It was"], "", "chat-prefix"),
        ("chat-prefix", CHAT, ["It is", ""], "", "instruction"),
        ("chat", CHAT, ["It is"], "", "instruction"),
        ("prefix", None, ["It is", ""], "", "two-shot"),
        ("two-shot", CHAT, [""], "chat", "chat"),
    ],
)
def test_a_model_is_asked_in_its_own_format_or_the_chosen_one(own, chat, prefixes, chosen, found):
    facts = pd.DataFrame({"prefix": prefixes})
    assert names.format_for(model(own, chat), facts, chosen) == found


@pytest.mark.parametrize(
    ("chosen", "prefix", "fault"),
    [
        ("instruction", "It is", "m has no chat template and cannot be asked in instruction"),
        ("prefix", "", "prefix begins the answers, and these facts have no such"),
    ],
)
def test_a_format_that_cannot_be_is_refused(chosen, prefix, fault):
    with pytest.raises(ModelError, match=fault):
        names.format_for(model("two-shot"), pd.DataFrame({"prefix": [prefix]}), chosen)


def test_the_form_at_other_bits_is_of_a_name_whose_weights_can_be_had():
    found = names.rounded("world-s#zero-shot", 4, "two-shot")
    assert (found.name, found.prompt_format) == ("world-s~round 4", "two-shot")
    assert found.fingerprint.endswith(" round 4")
    for none in (model("two-shot"), "https://host/v1 m", "llama.cpp:m.gguf", "world-s~round 8"):
        assert names.rounded(none, 4, "two-shot") is None


def test_the_given_model_keeps_its_format():
    given = model("two-shot")
    assert names.in_format(given, "two-shot") is given
    assert names.in_format(given, "zero-shot").prompt_format == "zero-shot"
    assert given.prompt_format == "two-shot"
    assert names.opened(given) is given
