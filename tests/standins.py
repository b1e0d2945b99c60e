"""Stand-ins for what profiles name and no test can fetch: tiny models in a cache of the hub, and data.

    python tests/standins.py FOLDER

writes a cache of the hub with a model for every name in profiles/*.yaml (as on the hub: architecture,
configuration, tokenizer, chat template, dtype, one in shards, one as .bin) and the papers' data sets in
their official layouts. HF_HUB_CACHE=FOLDER HF_HUB_OFFLINE=1 then runs a profile on them. The weights are
random, so that most know nothing: a stand-in says whether a profile runs, and nothing about a model. Some
have those of an embedded model (KNOWING), without which a notebook on known facts would ask nothing.
"""

import hashlib
import json
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
import transformers as hf
from safetensors.torch import save_file
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from factrobust import load_model
from factrobust.datasets import facts as fact_tables
from factrobust.datasets.official import SETS
from factrobust.models.load import settings_of
from factrobust.paths import DATA, ROOT
from factrobust.reproduce.profiles import parameters
from factrobust.temporal import dates as dating
from factrobust.temporal import facts as temporal
from factrobust.wording import facts as wordings

SPECIAL = ("<pad>", "</s>", "<unk>", "<s>", "<|user|>", "<|assistant|>", "<|end|>")
VOCABULARY = 640
WIDTH = 32
LAYERS = 2
HEADS = 4
SPREAD = 0.3  # of random weights: wide, so that answers differ
SHARD = "60KB"
SMALLER = 2000  # times fewer weights than in data/models.csv, which a CPU's memory is checked for

# As the families' own: Llama's begins with the BOS and prints a date, Gemma refuses system messages.
LLAMA_CHAT = (
    "{{ bos_token }}{% if not date_string is defined %}{% set date_string = strftime_now('%d %b %Y') %}"
    "{% endif %}<|user|>Today Date: {{ date_string }}\n{% for m in messages %}"
    "{{ m['role'] }}: {{ m['content'] | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
GEMMA_CHAT = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{{ raise_exception('System role not supported') }}{% endif %}{% for m in messages %}"
    "<|user|>{{ m['role'] }}\n{{ m['content'] | trim }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>model\n{% endif %}"
)
MISTRAL_CHAT = (
    "{{ bos_token }}{% for m in messages %}{% if m['role'] == 'user' %}"
    "{{ '[INST] ' + m['content'] + '[/INST]' }}{% else %}{{ ' ' + m['content'] + eos_token }}"
    "{% endif %}{% endfor %}"
)
CHATML = (
    "{% for m in messages %}<|user|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)


class Kind(NamedTuple):
    """How the models of a family are made: network, tokenizer, template of those that are tuned."""

    network: Callable[..., Any]
    tokenizer: str  # a key of TOKENIZERS
    chat: str | None = None


# ---- networks --------------------------------------------------------------------------------------


def decoder(config: type, network: type, **options: Any) -> Any:
    sizes: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "hidden_size": WIDTH,
        "intermediate_size": 2 * WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS // 2,
        "initializer_range": SPREAD,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": 3,
    }
    return network(config(**(sizes | options)))


def gemma(**options: Any) -> Any:
    """With its soft caps, heads that are wider than their share, and a sliding window in every other layer."""
    return decoder(
        hf.Gemma2Config,
        hf.Gemma2ForCausalLM,
        head_dim=16,
        query_pre_attn_scalar=16,
        sliding_window=24,
        **options,
    )


def mpt(tie_word_embeddings: bool) -> Any:
    sizes = hf.MptConfig(
        d_model=WIDTH,
        n_heads=HEADS,
        n_layers=LAYERS,
        vocab_size=VOCABULARY,
        max_seq_len=2048,
        eos_token_id=1,
        bos_token_id=3,
        initializer_range=SPREAD,
    )
    return hf.MptForCausalLM(sizes)


def t5(
    config: type = hf.T5Config, network: type = hf.T5ForConditionalGeneration, **options: Any
) -> Any:
    """Flan-T5, UL2 and mT0: a gated layer."""
    sizes = config(
        vocab_size=VOCABULARY,
        d_model=WIDTH,
        d_kv=8,
        d_ff=2 * WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
        feed_forward_proj="gated-gelu",
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
        initializer_factor=1.5,
        **options,
    )
    return network(sizes)


def openelm(**options: Any) -> Any:
    """A network of ours: `write` puts it down as Apple does."""
    from factrobust.models.extra import OpenELMConfig, OpenELMForCausalLM

    return OpenELMForCausalLM(OpenELMConfig(**apple_config(), initializer_range=SPREAD, **options))


def apple_config() -> dict[str, Any]:
    return {
        "architectures": ["OpenELMForCausalLM"],
        "auto_map": {"AutoModelForCausalLM": "modeling_openelm.OpenELMForCausalLM"},
        "bos_token_id": 3,
        "eos_token_id": 1,
        "ffn_dim_divisor": 16,
        "ffn_multipliers": [0.5, 2.0],
        "ffn_with_glu": True,
        "head_dim": 8,
        "max_context_length": 2048,
        "model_dim": WIDTH,
        "model_type": "openelm",
        "normalize_qk_projections": True,
        "num_kv_heads": [1, 2],
        "num_query_heads": [2, 4],
        "num_transformer_layers": LAYERS,
        "rope_freq_constant": 10000,
        "share_input_output_layers": True,
        "vocab_size": VOCABULARY,
    }


llama = partial(decoder, hf.LlamaConfig, hf.LlamaForCausalLM)
qwen = partial(decoder, hf.Qwen2Config, hf.Qwen2ForCausalLM)
mistral = partial(decoder, hf.MistralConfig, hf.MistralForCausalLM, sliding_window=None)
neox = partial(decoder, hf.GPTNeoXConfig, hf.GPTNeoXForCausalLM, num_key_value_heads=HEADS)
mt5 = partial(t5, hf.MT5Config, hf.MT5ForConditionalGeneration)

# By the beginning of a name, the longest first. All that a profile names must have one.
KINDS: dict[str, Kind] = {
    "meta-llama/Llama": Kind(llama, "bytes with <s>", LLAMA_CHAT),
    "Qwen/": Kind(qwen, "bytes", CHATML),
    "HuggingFaceTB/SmolLM2": Kind(llama, "bytes", CHATML),
    "apple/OpenELM": Kind(openelm, ""),  # which has none of its own
    "google/gemma-2": Kind(gemma, "sentencepiece", GEMMA_CHAT),
    "mistralai/Mistral-7B": Kind(mistral, "sentencepiece", MISTRAL_CHAT),
    "mistralai/Mistral-Nemo": Kind(mistral, "bytes with <s>", MISTRAL_CHAT),
    "google/flan": Kind(t5, "unigram"),
    "bigscience/mt0": Kind(mt5, "unigram"),
    "EleutherAI/gpt-neox": Kind(neox, "bytes"),
    "ibm-research/mpt": Kind(mpt, "bytes"),
}
TUNED = ("Instruct", "-it", "instruct")
IN_SHARDS = "meta-llama/Llama-3.1-70B"
AS_BIN = "google/flan-ul2"
KNOWING = {
    "HuggingFaceTB/SmolLM2-360M",
    "HuggingFaceTB/SmolLM2-360M-Instruct",
    "meta-llama/Llama-3.2-3B-Instruct",
    "meta-llama/Llama-3.1-8B-Instruct",
}
KNOWN = "smollm2-135m-instruct"  # of Llama's architecture

# ---- tokenizers ------------------------------------------------------------------------------------


@cache
def tokenizer_of(kind: str) -> Tokenizer:
    """A tokenizer of a family's form, learnt from questions and answers of data/facts.csv."""
    rows = pd.read_csv(DATA / "facts.csv", nrows=400)
    texts = [*rows["subject"].astype(str), *rows["object"].astype(str)]
    relations = ["capital", "author"] * (len(texts) // 2)
    texts = [
        f"Q: What is the {r} of {s}?\nA: {o}"
        for s, o, r in zip(texts, texts[::-1], relations, strict=True)
    ]
    how: dict[str, Any] = {
        "vocab_size": VOCABULARY,
        "special_tokens": [*SPECIAL],
        "show_progress": False,
    }
    if kind == "unigram":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        made.decoder = decoders.Metaspace()
        trainer: Any = trainers.UnigramTrainer(unk_token="<unk>", **how)
        end = [("</s>", 1)]
        after = "$A </s>"
    elif kind == "sentencepiece":
        made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
        made.normalizer = normalizers.Replace(" ", "▁")
        made.decoder = decoders.Sequence(
            [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        )
        how["special_tokens"] += [f"<0x{byte:02X}>" for byte in range(256)]
        trainer = trainers.BpeTrainer(**how)
        end = [("<s>", 3)]
        after = "<s> $A"
    else:
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), **how)
        end = [("<s>", 3)]
        after = "<s> $A" if kind.endswith("<s>") else "$A"
    made.train_from_iterator(texts, trainer)
    made.post_processor = processors.TemplateProcessing(
        single=after,
        pair="$A $B",
        special_tokens=end,
    )
    return made


def tokenizer(kind: str, chat: str | None) -> Any:
    ends: dict[str, str] = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    ends["bos_token"] = "<s>"
    if kind == "bytes":  # GPT-NeoX, MPT and Qwen have no unknown token and no beginning
        ends = {"eos_token": "</s>", "pad_token": "<pad>"}
    made = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(kind), **ends)
    made.chat_template = chat
    return made


# ---- what a profile names, and a cache with it -----------------------------------------------------


def named() -> list[str]:
    """The hub ids in profiles, and those of tokenizers that their models take from elsewhere."""
    names: list[Any] = []
    for file in sorted((ROOT / "profiles").glob("*.yaml")):
        for values in parameters(ROOT, file.stem).values():
            names += [*values.get("models", []), values.get("sentence_encoder")]
    found = dict.fromkeys(name for name in names if isinstance(name, str) and "/" in name)
    lines = [settings_of(name) for name in found]
    found |= dict.fromkeys(line.tokenizer for line in lines if line and line.tokenizer)
    return [*found]


def kind_of(name: str) -> Kind:
    return next(kind for start, kind in KINDS.items() if name.startswith(start))


def commit_of(name: str) -> str:
    return hashlib.sha1(name.encode()).hexdigest()


def place_of(cache_folder: Path, name: str, what: str = "models") -> Path:
    """The folder in a cache of the hub for the default branch, or for the commit behind an @."""
    repository, _, commit = name.partition("@")
    folder = cache_folder / f"{what}--{repository.replace('/', '--')}"
    (folder / "refs").mkdir(parents=True, exist_ok=True)
    if len(commit) != 40:
        branch = commit or "main"
        commit = commit_of(name)
        (folder / "refs" / branch).write_text(commit)
    place = folder / "snapshots" / commit
    place.mkdir(parents=True, exist_ok=True)
    return place


def write_model(cache_folder: Path, name: str) -> Path:
    """A stand-in of that name, as its repository on the hub has it."""
    place = place_of(cache_folder, name)
    if "Llama-2" in name:  # whose tokenizer OpenELM takes
        tokenizer("sentencepiece", None).save_pretrained(place)
        hf.LlamaConfig(vocab_size=VOCABULARY).save_pretrained(place)
        return place
    kind = kind_of(name)
    line = settings_of(name)
    if name in KNOWING:
        model: Any = load_model(KNOWN, dtype=line.dtype if line else "float32")
        model.network.save_pretrained(place)
        model.tokenizer.save_pretrained(place)
        return place
    torch.manual_seed(int(commit_of(name)[:8], 16))
    network = kind.network(tie_word_embeddings=bool(line) and line.tied == "yes")
    network.to(getattr(torch, line.dtype if line else "float32"))
    if name == AS_BIN:
        network.config.save_pretrained(place)
        network.generation_config.save_pretrained(place)
        torch.save(network.state_dict(), place / "pytorch_model.bin")
    elif kind.network is openelm:
        (place / "config.json").write_text(json.dumps(apple_config()))
        save_file(apple_weights(network), place / "model.safetensors", metadata={"format": "pt"})
    else:
        network.save_pretrained(place, **({"max_shard_size": SHARD} if name == IN_SHARDS else {}))
    if kind.tokenizer:
        tuned = any(word in name for word in TUNED)
        tokenizer(kind.tokenizer, kind.chat if tuned else None).save_pretrained(place)
    return place


def apple_weights(network: Any) -> dict[str, torch.Tensor]:
    """The weights of OpenELM under Apple's names: queries, keys and values are one matrix."""
    weights = {}
    for i, layer in enumerate(network.model.layers):
        attention = layer.self_attn
        mlp = layer.mlp
        start = f"transformer.layers.{i}."
        heads = [attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight]
        weights |= {
            f"{start}attn.qkv_proj.weight": torch.cat(heads),
            f"{start}attn.q_norm.weight": attention.q_norm.weight,
            f"{start}attn.k_norm.weight": attention.k_norm.weight,
            f"{start}attn.out_proj.weight": attention.o_proj.weight,
            f"{start}attn_norm.weight": layer.input_layernorm.weight,
            f"{start}ffn_norm.weight": layer.post_attention_layernorm.weight,
            f"{start}ffn.proj_1.weight": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            f"{start}ffn.proj_2.weight": mlp.down_proj.weight,
        }
    weights["transformer.token_embeddings.weight"] = network.model.embed_tokens.weight
    weights["transformer.norm.weight"] = network.model.norm.weight
    return {key: weight.detach().contiguous() for key, weight in weights.items()}


def smaller(table: Path) -> str:
    """data/models.csv with fewer weights for what profiles name: their order and pairs stay."""
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    ours = rows["model"].isin(named())
    rows.loc[ours, "parameters"] = [str(int(n) // SMALLER) for n in rows.loc[ours, "parameters"]]
    return rows.to_csv(index=False)


def few_questions(root: Path, name: str) -> dict[str, Any]:
    """The profile `name` of the repository at `root` with as few questions as `smoke` asks.

    Each notebook has a line of its own: the values of `smoke`, behind those of the profile; of two
    numbers n_... the lower. What neither sets is the notebook's own."""
    smoke = parameters(root, "smoke")
    asked = {}
    for notebook, values_of_profile in parameters(root, name).items():
        values = smoke[notebook] | values_of_profile
        for key, most in smoke[notebook].items():
            if key.startswith("n_"):
                values[key] = min(values[key], most)
        asked[notebook.removeprefix("notebooks/")] = values
    return {"notebooks": asked}


# ---- data sets, as the hub has them ----------------------------------------------------------------

ROWS = 48  # of a set


def asked_facts(n: int = ROWS) -> pd.DataFrame:
    """Embedded facts of every relation in turn, with their questions."""
    facts = fact_tables.with_questions(fact_tables.load_facts())
    turn = facts.groupby("relation").cumcount()
    return facts.assign(turn=turn).sort_values("turn", kind="stable").head(n)


def squad(facts: pd.DataFrame) -> pd.DataFrame:
    return facts[["question"]].assign(
        id=[f"{i:024x}" for i in facts.index],
        title=facts["subject"].str.replace(" ", "_"),
        answers=[{"text": [name] * 3} for name in facts["object"]],
    )


def trivia_qa(facts: pd.DataFrame) -> pd.DataFrame:
    answers = []
    for name, aliases in zip(facts["object"], facts["aliases"], strict=True):
        names = [name, *aliases]
        normal = [name.lower() for name in names]
        answers.append({"value": name, "aliases": names, "normalized_aliases": normal})
    ids = [f"tc_{i}" for i in facts.index]
    return facts[["question"]].assign(question_id=ids, answer=answers)


def hotpot_qa(facts: pd.DataFrame) -> pd.DataFrame:
    ids = [f"5a{i:022x}" for i in facts.index]
    return facts[["question"]].assign(id=ids, answer=facts["object"])


def popqa_rows() -> pd.DataFrame:
    """Facts of PopQA's own relations, with its numbers."""
    facts = asked_facts(1000)
    ours = facts["relation"].isin(fact_tables.load_relations().query("popqa").index)
    return facts[ours].head(2 * ROWS).reset_index(drop=True)


def popqa(facts: pd.DataFrame) -> pd.DataFrame:
    pairs = zip(facts["object"], facts["aliases"], strict=True)
    return facts[["question"]].assign(
        id=facts.index + 1,
        subj=facts["subject"],
        prop=facts["relation"].str.replace("_", " "),
        obj=facts["object"],
        s_pop=10 * (facts.index + 1),
        possible_answers=[json.dumps([first, *more]) for first, more in pairs],
    )


def popqa_tp(facts: pd.DataFrame) -> pd.DataFrame:
    """The original question as template 0, and the embedded paraphrases as the others."""
    asked = wordings.paraphrased(facts).table.sort_values(["group_id", "variant"])
    beside = popqa(facts).set_index(facts["fact_id"])[["prop", "possible_answers", "id"]]
    rows = asked.join(beside, on="group_id").rename(
        columns={"question": "paraphrase", "variant": "template_id"}
    )
    return rows[["paraphrase", "template_id", "prop", "possible_answers", "id"]]


def timestress() -> pd.DataFrame:
    """Years, months and days around facts of the paper's six relations, twelve of each."""
    facts = temporal.with_wording(temporal.load_temporal_facts())
    facts = facts[facts["relation"].isin(temporal.PAPER_RELATIONS)].groupby("relation").head(12)
    rows = []
    for fact in facts.itertuples():
        first = int(fact.start[:4])
        last = int(fact.end[:4])
        ask = f"{fact.question} {fact.object}"
        about = {
            "SubjectLabel": fact.subject,
            "RelationLabel": fact.relation.replace("_", " "),
            "ObjectLabel": fact.object,
            "StartDate": str(first),
            "EndDate": str(last),
            "SubjectID": f"Q{fact.Index}",
            "RelationID": "P1",
            "ObjectID": f"Q9{fact.Index}",
            "FactPop": 100 + fact.Index,
        }
        rows.append(about | {"Time": None, "IsCorrect": "No context", "Statement": ask})
        for year in range(first - 5, min(last + 6, 2021)):
            dates = [f"{year}", f"{year}-05", f"{year}-05-17"]
            label = "Correct" if first < year < last else "Incorrect"
            if year in (first, last):
                label = "Transitional"
                dates = dates[:1]
            for date in dates:
                statement = f"{dating.verbalise(date)}, {ask}"
                rows.append(about | {"Time": date, "IsCorrect": label, "Statement": statement})
    return pd.DataFrame(rows)


def write_data(cache_folder: Path) -> None:
    """The papers' sets, under the revisions that data/official.csv pins."""
    facts = asked_facts()
    popular = popqa_rows()
    in_parts = "-00000-of-00001.parquet"
    made = {
        "squad": (squad(facts), f"plain_text/validation{in_parts}"),
        "trivia_qa": (trivia_qa(facts.iloc[::-1]), f"unfiltered.nocontext/validation{in_parts}"),
        "hotpot_qa": (hotpot_qa(facts.iloc[::2]), f"distractor/validation{in_parts}"),
        "popqa": (popqa(popular), "test.tsv"),
        "popqa_tp": (popqa_tp(popular), "popQA_template_paraphrases.csv"),
        "timestress": (timestress(), "data/train-00000-of-00001.parquet"),
    }
    for name, (table, file) in made.items():
        path = place_of(cache_folder, str(SETS[name].hub), "datasets") / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".parquet":
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")


def write_thesis(folder: Path) -> None:
    """The two files of the thesis's author: our base questions in their form, and our objects."""
    folder.mkdir(exist_ok=True)
    base = pd.read_csv(DATA / "context" / "base_questions.csv")
    lines = []
    for row in base.itertuples():
        line = f"{row.question} {row.prefix}"
        lines.append(line.replace("{object}", f"{{{row.category}}}"))
    (folder / "base_questions.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    shutil.copy(DATA / "context" / "objects.csv", folder)


# ---- a server that refuses what OpenAI's refuses ---------------------------------------------------

CHAT = {
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "n",
    "stop",
    "seed",
    "logprobs",
    "top_logprobs",
    "frequency_penalty",
    "presence_penalty",
    "user",
    "response_format",
}
COMPLETIONS = CHAT - {"messages", "max_completion_tokens", "top_logprobs", "response_format"} | {
    "prompt",
    "echo",
}


BOUNDS = {"temperature": (0, 2), "top_p": (0, 1), "n": (1, 128)}


def refusal(
    path: str, body: Mapping[str, Any], authorisation: str | None
) -> tuple[int, str] | None:
    """The status and message with which OpenAI's server refuses such a request, if it does."""
    chats = path.endswith("/chat/completions")
    if not (authorisation or "").startswith("Bearer sk-"):
        return 401, "You didn't provide an API key."
    if not path.endswith("/completions"):
        return 404, f"Invalid URL (POST {path})"
    if strange := sorted({*body} - (CHAT if chats else COMPLETIONS)):
        return 400, f"Unrecognized request argument supplied: {strange[0]}"
    if len(body.get("stop") or []) > 4:
        return 400, "Invalid 'stop': array too long. Expected an array with maximum length 4."
    bounds = BOUNDS | ({"top_logprobs": (0, 20)} if chats else {"logprobs": (0, 5)})
    for name, (least, most) in bounds.items():
        if not least <= body.get(name, least) <= most:
            return 400, f"Invalid '{name}': expected a value from {least} to {most}."
    if "top_logprobs" in body and body.get("logprobs") is not True:
        return 400, "The 'logprobs' parameter must be set to true when 'top_logprobs' is set."
    return None


def known_facts() -> dict[str, str]:
    """Questions and answers of three in four of the facts in `write_data`."""
    facts = asked_facts(3 * ROWS // 4)
    return dict(zip(facts["question"], facts["object"], strict=True))


def answer_to(prompt: str, draw: object, temperature: float, facts: Mapping[str, str]) -> str:
    """The answer to the last question of a prompt, the same for the same prompt and draw. A fact that is
    known is lost in no draw at temperature 0 and in all at 2; what is lost is an answer by lot."""
    question = prompt.rpartition("Q: ")[2].partition("\n")[0]
    lot = int(hashlib.sha256(f"{prompt} {draw}".encode()).hexdigest()[:8], 16)
    if question in facts and lot / 16**8 >= temperature / 2:
        return facts[question]
    names = sorted(set(facts.values()))
    return names[lot % len(names)]


def openai_reply(
    path: str,
    body: Mapping[str, Any],
    authorisation: str | None,
    facts: Mapping[str, str],
) -> tuple[int, Any]:
    """The status and body of an answer of a model that knows these facts (question to answer), with the
    log-probabilities of its words if asked for."""
    if refused := refusal(path, body, authorisation):
        status, message = refused
        error = {"message": message, "type": "invalid_request_error", "code": None}
        return status, {"error": error}
    chats = "messages" in body
    prompt = body["messages"][-1]["content"] if chats else body["prompt"]
    temperature = body.get("temperature", 1)
    choices = []
    for index in range(body.get("n", 1)):
        draw = (index, body.get("seed")) if temperature > 0 else "greedy"
        text = answer_to(prompt, draw, temperature, facts)
        words = [text[:2], text[2:]] if len(text) > 2 else [text]
        tokens = [word_of(word, -0.1 - 0.2 * k, body) for k, word in enumerate(words)]
        logprobs = {"content": tokens} if chats and body.get("logprobs") else None
        message = {"message": {"role": "assistant", "content": text}} if chats else {"text": text}
        choice = {"index": index, "logprobs": logprobs, "finish_reason": "stop"}
        choices.append(choice | message)
    reply = {"id": "a", "object": "chat.completion", "choices": choices, "model": body["model"]}
    return 200, reply


def word_of(word: str, logprob: float, body: Mapping[str, Any]) -> dict[str, Any]:
    others = [
        {"token": f"{word}{k or ''}", "logprob": logprob - k, "bytes": None}
        for k in range(body.get("top_logprobs", 0))
    ]
    return {
        "token": word,
        "logprob": logprob,
        "bytes": [*word.encode()],
        "top_logprobs": others,
    }


@contextmanager
def strict_server(facts: Mapping[str, str]) -> Iterator[str]:
    """The URL at which such a server answers as a model that knows these facts."""
    faulty = runpy.run_path(str(ROOT / "tests" / "models" / "faulty_server.py"))
    with faulty["faulty_server"]() as server:

        def reply(path: str, body: dict[str, Any], authorisation: str | None) -> Any:
            status, answer = openai_reply(path, body, authorisation, facts)
            return faulty["Reply"](answer, status)

        server.reply = reply
        yield server.url


def main(folder: str) -> None:
    hf.utils.logging.disable_progress_bar()
    for name in named():
        write_model(Path(folder), name)
    write_data(Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
