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


def facts(*prefixes):
    return pd.DataFrame({"prefix": [*prefixes]})


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("gemma-3-270m", ("gemma-3-270m", None, "")),
        ("gemma-3-270m#chat", ("gemma-3-270m", None, "chat")),
        ("a/b~round 4#two-shot", ("a/b", Damage("round", 4), "two-shot")),
        ("~/models/x", ("~/models/x", None, "")),
        ("~/x~noise .05", ("~/x", Damage("noise", 0.05), "")),
        ("org/model@0123abc", ("org/model@0123abc", None, "")),
    ],
)
def test_what_a_name_says(name, read):
    assert names.read_name(name) == read


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


@pytest.mark.parametrize("name", ["x#chats", "x~round", "x~round four", "x~round 4~", "a#b#c"])
def test_what_is_no_name(name):
    with pytest.raises(
        ModelError, match="is no name of a model; write NAME, NAME~round 4 or NAME#"
    ):
        names.read_name(name)


def test_no_name_and_an_empty_folder(tmp_path):
    with pytest.raises(ModelError, match="no model is named; give a name"):
        names.opened(" ")
    with pytest.raises(ModelError, match="is empty; give one that holds a model"):
        names.opened(str(tmp_path))


def test_home_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "x").mkdir()
    with pytest.raises(ModelError, match="the folder ~/x is empty"):
        names.opened("~/x")


def test_a_model_is_asked_in_its_own_format_unless_that_cannot_be():
    begun, bare = facts("It is", "It was"), facts("It is", "")
    chat = ("<", ">")
    assert names.format_for(model("two-shot"), bare) == "two-shot"
    assert names.format_for(model("chat-prefix", chat), begun) == "chat-prefix"
    assert names.format_for(model("chat-prefix", chat), bare) == "instruction"
    assert names.format_for(model("chat", chat), begun) == "instruction"
    assert names.format_for(model("prefix"), bare) == "two-shot"


def test_a_chosen_format_is_kept_or_refused():
    assert names.format_for(model("two-shot", ("<", ">")), facts(""), "chat") == "chat"
    with pytest.raises(
        ModelError, match="m has no chat template and cannot be asked in instruction"
    ):
        names.format_for(model("two-shot"), facts("It is"), "instruction")
    with pytest.raises(ModelError, match="prefix begins the answers, and these facts have no such"):
        names.format_for(model("two-shot"), facts(""), "prefix")


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


def test_what_another_library_says_of_a_folder_is_one_sentence(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"cannot be read \(KeyError: .*\); fetch its files anew"):
        names.opened(str(tmp_path))
