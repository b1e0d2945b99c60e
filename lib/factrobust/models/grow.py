"""Small models trained from random weights on the invented world (`datasets.world`).

data/schooling.py and data/grow_models.py say what they read, and in which order. transformers'
Trainer does all training. A course that was killed continues at the same text with the same
weights. Between kinds of processors weights differ in their last digits, and more at the end.
"""

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

ROW = 128  # tokens of a decoder's row, which holds whole texts
IGNORED = -100  # the label of a token that is not learned
SPECIAL = ("<s>", "</s>", "<|user|>", "<|assistant|>")
MONTHS = "January February March April May June July August September October November December"


@dataclass(frozen=True)
class Plan:
    """A model's architecture and size, and the seed of its weights and texts."""

    kind: str  # "decoder", "chat" (a decoder with a chat template), "encoder-decoder" or "taught"
    seed: int = 0
    width: int = 128
    layers: int = 3


World = Any  # the tables of `datasets.world.load_world`: models import no datasets
Row = dict[str, list[int]]  # input_ids and labels
Log = list[dict[str, float]]  # of the Trainer: step, loss, eval_reads
Text = list[tuple[str, bool]]  # pieces, and whether each is learned


def learned(row: Mapping[Any, str], before: str = "", *, whole: bool = False) -> Text:
    """A sentence of a corpus after a text. Its object is learned, or the `whole` of it."""
    end = f" {row['object']}{'.' if row['form'] == 'statement' else ''}"
    return [(before + row["text"].removesuffix(end), whole), (f"{end}\n", True)]


def tokenizer_of(world: World, layouts: Iterable[str]) -> Any:
    """A tokenizer for the world: a word with the space before it is a token; other words are bytes.

    `layouts` are those of the corpus. A name is the same token everywhere: a space is inserted
    after the signs that it may follow.
    """
    from tokenizers import (
        Regex,
        Tokenizer,
        decoders,
        models,
        normalizers,
        pre_tokenizers,
    )
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    texts = [
        *world.facts["subject"],
        *world.objects["object"],
        *world.spare["name"],
        MONTHS,
    ]
    texts += [*world.wordings["question"], *world.wordings["prefix"]]
    texts += [f"\n{layout}" for layout in layouts]
    texts += [f"{' '.join(map(str, span))}," for span in (range(1, 32), range(1900, 2000))]
    texts = [re.sub(r"\{subject\}|[{}]", "", text) for text in texts]
    signs = {r"\n": "\n ", r"\[": "[ ", ":": ": "}
    normal = normalizers.Sequence(
        [normalizers.Replace(Regex(rf"{sign}(?=\w)"), new) for sign, new in signs.items()]
    )
    cut = pre_tokenizers.ByteLevel(add_prefix_space=True)
    words = set()
    for text in texts:
        words |= {word for word, _ in cut.pre_tokenize_str(normal.normalize_str(text))}
    letters = sorted(cut.alphabet())
    vocabulary = [*SPECIAL, *letters, *sorted(words - {*letters})]
    bpe = models.BPE(
        {word: i for i, word in enumerate(vocabulary)},
        [],
        ignore_merges=True,
    )
    tokenizer = Tokenizer(bpe)
    tokenizer.normalizer = normal
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = TemplateProcessing(
        single="<s> $A",
        special_tokens=[("<s>", 0)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="</s>",
        additional_special_tokens=[*SPECIAL[2:]],
    )


def pieces(
    texts: Iterable[Text],
    tokenizer: Any,
) -> Iterator[tuple[list[int], list[int]]]:
    """Token ids and labels of each text."""
    texts = list(texts)
    options = {"add_special_tokens": False, "return_attention_mask": False}
    flat = [piece for text in texts for piece, _ in text]
    ids = iter(tokenizer(flat, **options).input_ids)
    for text in texts:
        tokens: list[int] = []
        labels: list[int] = []
        for _, is_learned in text:
            piece = next(ids)
            tokens += piece
            labels += piece if is_learned else [IGNORED] * len(piece)
        yield tokens, labels


def rows(texts: Iterable[Text], tokenizer: Any, size: int = ROW) -> list[Row]:
    """Texts packed into rows of `size` tokens without cutting any; with size 0 each has a row."""
    start = tokenizer("").input_ids
    found: list[Row] = []
    room = 0
    for ids, labels in pieces(texts, tokenizer):
        if len(ids) > room or not size:
            found.append({"input_ids": [*start], "labels": [IGNORED] * len(start)})
            room = size - len(start)
        found[-1]["input_ids"] += ids
        found[-1]["labels"] += labels
        room -= len(ids)
    return found


def pairs(texts: Iterable[Text], tokenizer: Any) -> list[Row]:
    """Of each text, what the encoder reads, and its last piece, which the decoder learns."""
    start = tokenizer("").input_ids
    end = tokenizer.eos_token_id
    # 1. Each text in two pieces, of which the second is learned.
    halves: list[Text] = []
    for text in texts:
        read = "".join(piece for piece, _ in text[:-1])
        written, _ = text[-1]
        halves.append([(read, False), (written.strip(), True)])
    # 2. Their tokens.
    found = []
    for ids, labels in pieces(halves, tokenizer):
        unlearned = [i for i, label in zip(ids, labels, strict=True) if label == IGNORED]
        targets = [label for label in labels if label != IGNORED]
        found.append({"input_ids": [*start, *unlearned], "labels": [*targets, end]})
    return found


class Course(NamedTuple):
    name: str
    data: list[Row]
    rate: float  # of learning, the same until it falls to 0 in the last tenth
    tests: list[Row] = []  # noqa: RUF012
    size: int = 8  # rows a step


def last_checkpoint(folder: Path) -> str | None:
    """The place of the last checkpoint in a folder of `study`."""
    from transformers.trainer_utils import get_last_checkpoint

    return get_last_checkpoint(folder) if folder.is_dir() else None


def last_step(folder: Path) -> int:
    """The step of the last checkpoint in a folder of `study`; 0 without one."""
    last = last_checkpoint(folder)
    return int(last.rpartition("-")[2]) if last else 0


def trainer_of_labels() -> Any:
    """transformers' Trainer, which applies the head of a Llama only where there is a label."""
    import transformers

    class OfLabels(transformers.Trainer):
        def compute_loss(self, model: Any, inputs: Any, *more: Any, **options: Any) -> Any:
            inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # LoRA
            if not model.training or not isinstance(inner, transformers.LlamaForCausalLM):
                return super().compute_loss(model, inputs, *more, **options)
            labels = inputs["labels"][:, 1:]
            known = labels != IGNORED
            hidden = inner.model(input_ids=inputs["input_ids"]).last_hidden_state[:, :-1]
            logits = inner.lm_head(hidden[known])
            return torch.nn.functional.cross_entropy(logits.float(), labels[known])

    return OfLabels


def study(
    network: Any,
    course: Course,
    folder: Path,
    tokenizer: Any,
    **options: Any,
) -> Log:
    """Train on a course from the last checkpoint in `folder`; returns the log.

    `options` go to transformers' TrainingArguments. eval_reads is the share of the tests in which
    the first token of the answer is the likeliest.
    """
    import numpy as np
    import transformers

    encodes = network.config.is_encoder_decoder

    def answered(predicted: Any) -> dict[str, float]:
        tokens = predicted.predictions
        labels = predicted.label_ids
        if not encodes:
            tokens = tokens[:, :-1]
            labels = labels[:, 1:]
        first = (np.arange(len(labels)), (labels != IGNORED).argmax(axis=1))
        return {"reads": float((tokens == labels)[first].mean())}

    steps = -(-len(course.data) // course.size)
    arguments = {
        "output_dir": str(folder),
        "num_train_epochs": 1,
        "use_cpu": True,
        "report_to": [],
        "per_device_train_batch_size": course.size,
        "train_sampling_strategy": "sequential",
        "learning_rate": course.rate,
        "warmup_steps": 50,
        "optim": "adamw_torch_fused",
        "lr_scheduler_type": "warmup_stable_decay",
        "lr_scheduler_kwargs": {"num_decay_steps": steps // 10, "decay_type": "linear"},
        "adam_beta2": 0.98,
        "weight_decay": 0.01,
        "eval_strategy": "steps" if course.tests else "no",
        "eval_steps": 100,
        "logging_steps": 100,
        "save_steps": 500,
        "save_total_limit": 1,
        "dataloader_pin_memory": False,
    }
    trainer = trainer_of_labels()(
        network,
        transformers.TrainingArguments(**arguments | options),
        train_dataset=course.data,
        eval_dataset=course.tests,
        data_collator=transformers.DataCollatorForSeq2Seq(tokenizer),
        compute_metrics=answered,
        preprocess_logits_for_metrics=lambda x, _: (x[0] if encodes else x).argmax(-1),
    )
    trainer.train(resume_from_checkpoint=last_checkpoint(folder))
    return trainer.state.log_history


def watched(
    plan: Plan,
    texts: Iterable[Text],
    tokenizer: Any,
    rate: float,
    ask: Callable[[str], Any],
    moments: int,
    **options: Any,
) -> dict[str, Any]:
    """Train a new network on texts once, and `ask` it at so many moments.

    Returns "loss", pairs of a step and the mean loss since the pair before, and "texts", by the
    step of each moment the result of `ask(folder)` for the model in a folder. `options` are those
    of `study`.
    """
    torch.set_num_threads(1)  # the network is so small that more would wait for each other
    course = Course("once", rows(texts, tokenizer), rate)
    options |= {
        "save_steps": 1 / moments,
        "save_total_limit": moments,
        "logging_steps": 0.05,
    }
    with TemporaryDirectory() as folder, redirect_stdout(sys.stderr):
        network = network_of(plan, tokenizer)
        log = study(network, course, Path(folder), tokenizer, **options)
        found = {}
        for place in Path(folder).glob("checkpoint-*"):
            tokenizer.save_pretrained(place)
            found[place.name.removeprefix("checkpoint-")] = ask(str(place))
    loss = [[entry["step"], entry["loss"]] for entry in log if "loss" in entry]
    return {"loss": loss, "texts": found}


def network_of(plan: Plan, tokenizer: Any) -> Any:
    """A network of random weights."""
    import transformers

    torch.manual_seed(plan.seed)
    width, heads = plan.width, plan.width // 32
    both = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    if plan.kind == "encoder-decoder":
        t5 = transformers.T5Config(
            d_model=width,
            d_ff=2 * width,
            d_kv=32,
            num_heads=heads,
            num_layers=plan.layers,
            dropout_rate=0.0,
            decoder_start_token_id=tokenizer.pad_token_id,
            **both,
        )
        network = transformers.T5ForConditionalGeneration(t5)
        attentions = [
            (part.q, part.k, part.v, part.o)
            for part in network.modules()
            if hasattr(part, "relative_attention_num_buckets")
        ]
        return copying(network, attentions)
    llama = transformers.LlamaConfig(
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=plan.layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=width**-0.5,
        **both,
    )
    network = transformers.LlamaForCausalLM(llama)
    parts = (layer.self_attn for layer in network.model.layers)
    return copying(
        network,
        [(part.q_proj, part.k_proj, part.v_proj, part.o_proj) for part in parts],
    )


def copying(network: Any, attentions: list[tuple[Any, ...]]) -> Any:
    """The network, in whose attentions (queries, keys, values, outputs) a token at first looks at
    similar ones and copies them."""
    with torch.no_grad():
        for queries, keys, values, outputs in attentions:
            keys.weight.copy_(queries.weight)
            outputs.weight.copy_(values.weight.T)
    return network
