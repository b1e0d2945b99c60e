"""How a question becomes a prompt: every format in one place.

`two-shot` is paper 1's: two worked examples, then the question. Small tuned models answer in
sentences: for them `chat-prefix` begins the assistant's turn ("The capital of Kenya is")."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from factrobust.models.interface import Model

# Prompts at a time: an answer with its alternatives takes 30 kB until they are dropped.
CHUNK = 4096
# Not in data/facts.csv: an example must not be asked.
EXAMPLES = (
    ("Which planet is known as the Red Planet?", "Mars"),
    ("Who painted the Mona Lisa?", "Leonardo da Vinci"),
)
SHOTS = "".join(f"Q: {question}\nA: {answer}\n\n" for question, answer in EXAMPLES)
# For section 4.6 of paper 2: an example of each precision, none from data/temporal_facts.csv. They
# are ours: the paper gives no prompt, and its code has only one that is commented out (an
# instruction line and two examples).
DATED_EXAMPLES = (
    ("In 2005, who was the chief executive of Apple?", "Steve Jobs"),
    ("In March 1985, which show did Johnny Carson host?", "The Tonight Show"),
    ("On June 6, 1984, who was the Archbishop of Canterbury?", "Robert Runcie"),
)
DATED_SHOTS = "".join(f"{question} {answer}\n" for question, answer in DATED_EXAMPLES)


@dataclass(frozen=True)
class Format:
    """`before` + question + `after` (+ the start of an answer), in the chat template if `chat`."""

    before: str
    after: str
    separator: str  # between prompt and answer, when the answer is given
    stop: tuple[str, ...]
    chat: bool = False
    prefix: bool = False  # the prompt ends with the start of an answer


SENTENCE_END = (".", ",", "\n", "(", ";")
CHAT_END = (".", "\n")

FORMATS = {
    "two-shot": Format(f"{SHOTS}Q: ", "\nA:", " ", ("\n",)),
    "zero-shot": Format("Q: ", "\nA:", " ", ("\n",)),
    "question": Format("", "", " ", ("\n",)),  # papers 2 and 3: the question as it is
    "dated-few-shot": Format(DATED_SHOTS, "", " ", ("\n",)),
    "question-answer": Format("Question:", "\n Answer:", " ", ("\n",)),  # paper 3, section 3.1
    "prefix": Format("", " ", " ", SENTENCE_END, prefix=True),
    "chat": Format("", "", "", CHAT_END, chat=True),
    "chat-prefix": Format("", "", " ", SENTENCE_END, chat=True, prefix=True),
    "instruction": Format(
        "",
        "\nAnswer with the name, word or number only.",
        "",
        CHAT_END,
        chat=True,
    ),
}

# The text around a user's message, by its name in data/models.csv: for models without a chat
# template (paper 2 asks OpenELM-Instruct by Zephyr's), and for embedded ones, so that a replay
# loads no tokenizer.
CHATS = {
    "smollm2": (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
        "Face<|im_end|>\n<|im_start|>user\n",
        "<|im_end|>\n<|im_start|>assistant\n",
    ),
    "qwen": (
        "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful "
        "assistant.<|im_end|>\n<|im_start|>user\n",
        "<|im_end|>\n<|im_start|>assistant\n",
    ),
    "world": ("<|user|>", "<|assistant|>"),  # of the models that are grown here
    "zephyr": ("<|user|>\n", "</s>\n<|assistant|>\n"),
}


def render(
    format: str,
    questions: Sequence[str],
    prefixes: Sequence[str],
    chat: tuple[str, str] | None = None,
) -> list[str]:
    """The prompt of each question. `chat` is the model's text around a user's message, which has no
    white space around it (many templates trim it). Raises ValueError for an unknown format, or a
    chat format without a template."""
    if format not in FORMATS:
        raise ValueError(f"prompt format {format!r} is unknown; choose one of {', '.join(FORMATS)}")
    f = FORMATS[format]
    if f.chat and chat is None:
        raise ValueError(f"the format {format!r} needs a chat template, and this model has none")
    texts = [f"{f.before}{question}{f.after}" for question in questions]
    if f.chat and chat:
        texts = [f"{chat[0]}{text.strip()}{chat[1]}" for text in texts]
    pairs = zip(texts, prefixes, strict=True)
    return [f"{text}{prefix if f.prefix else ''}" for text, prefix in pairs]


def prompts(model: Model, questions: pd.DataFrame, prompt_format: str | None = None) -> list[str]:
    """The exact text sent for each question (columns question, prefix), in the model's own format
    unless one is given; errors as for `render`."""
    return render(
        prompt_format or model.prompt_format,
        questions["question"].tolist(),
        questions["prefix"].tolist(),
        model.chat,
    )


def as_asked(
    model: Model,
    questions: pd.DataFrame,
    prompt_format: str | None = None,
) -> pd.DataFrame:
    """The questions with model and prompt format before their columns."""
    table = questions.assign(
        model=model.name,
        prompt_format=prompt_format or model.prompt_format,
    )
    return table[["model", "prompt_format", *questions]].reset_index(drop=True)


def in_chunks(prompts: Sequence[str]) -> Iterator[list[str]]:
    """The distinct prompts in their order, CHUNK at a time."""
    distinct = list(dict.fromkeys(prompts))
    return (distinct[i : i + CHUNK] for i in range(0, len(distinct), CHUNK))
