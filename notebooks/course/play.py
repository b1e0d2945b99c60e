"""What the playground calls: each function says in a sentence what it saw, and draws it.

Recorded answers of data/teaching/ come at once. Anything else is asked of the model, which is loaded
once; without the models one sentence says what is missing.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from course import data
from ipywidgets import Layout
from matplotlib.ticker import FixedLocator, NullFormatter, ScalarFormatter

from factrobust import ground, load_model
from factrobust.models.interface import Model, ModelError
from factrobust.models.prompts import render
from factrobust.models.records import open_records
from factrobust.plots import style
from factrobust.temporal.facts import with_wording
from factrobust.wording.probe import paper_format

MODELS = {"Gemma": "gemma-3-270m", "SmolLM2": "smollm2-135m-instruct"}
WIDE = {"layout": Layout(width="95%"), "style": {"description_width": "90px"}}
SIZE = (6, 2.6)  # of a figure, inches
TEMPERATURES = np.geomspace(0.2, 5, 25)
YEARS = np.arange(1960, 2021, 5)  # under which a question of yours is asked
SOURCES = {
    "parametric": "That is what it says from memory.",
    "contextual": "That is what the sentence states.",
    "same": "Memory and sentence say the same.",
    "other": "That is neither its memory nor the sentence.",
    "memory": "That is from memory.",
    "context": "That is from the sentence.",
    "both": "Memory and sentence say the same.",
    "moved": "That is neither its memory nor the sentence.",
    "none": "That says nothing.",
}
loaded = set()


def or_says_what_is_missing(shown: Callable[..., None]) -> Callable[..., None]:
    """The function; where a model is missing it prints the sentence of the error."""

    @wraps(shown)
    def careful(*chosen: Any, **named: Any) -> None:
        try:
            shown(*chosen, **named)
        except ModelError as missing:
            print(missing)

    return careful


@cache
def opened(name: str) -> Model:
    return load_model(name, records=open_records())


def model_of(name: str) -> Model:
    """The model, with a word that the first answer takes long."""
    if name not in loaded:
        print(f"loading {name}, half a minute")
    loaded.add(name)
    return opened(name)


def prompt_of(model: Model, question: str) -> str:
    form = "two-shot" if model.chat is None else "chat"
    return render(form, [question], [""], model.chat)[0]


def greedy(model: Model, prompt: str) -> str:
    [answer] = model.generate([prompt], max_new_tokens=12, stop=("\n",))
    return answer.text.strip()


def colour_of(name: str) -> str:
    return style.looks([name])[name].colour


def ticks(axis: Any, values: Any) -> None:
    axis.xaxis.set_major_locator(FixedLocator(values))
    axis.xaxis.set_major_formatter(ScalarFormatter())
    axis.xaxis.set_minor_formatter(NullFormatter())


@cache
def recorded_curves() -> pd.DataFrame:
    """One row a model, question and temperature: text and logprob."""
    answers = data("answers")[["model", "fact_id", "question", "text"]]
    return data("curves").merge(answers)


@cache
def curve_of(name: str, question: str) -> tuple[str, np.ndarray, np.ndarray]:
    """The greedy answer, the temperatures, and its probability at each."""
    recorded = recorded_curves().query("model == @name and question == @question")
    if len(recorded):
        probability = np.exp(recorded["logprob"].to_numpy())
        return recorded["text"].iloc[0].strip(), recorded["temperature"].to_numpy(), probability
    model = model_of(name)
    prompt = prompt_of(model, question)
    text = greedy(model, prompt)
    logs = model.temper([prompt], [f" {text}"], TEMPERATURES)[0]
    return text, TEMPERATURES, np.exp(logs)


@or_says_what_is_missing
def temperature(model: str, question: str, t: float) -> None:
    """How often a model says its greedy answer when words are drawn at temperature t."""
    text, heats, probability = curve_of(model, question)
    here = np.interp(np.log(t), np.log(heats), probability)
    print(f"At temperature {t:.2f} the model says “{text}” in {100 * here:.0f} of 100 draws.")
    _, axis = plt.subplots(figsize=SIZE)
    axis.semilogx(heats, probability, color=colour_of(model))
    axis.plot(t, here, "o", color=colour_of(model), ms=9)
    axis.set(xlabel="temperature", ylabel="probability", xlim=(0.2, 5), ylim=(0, 1.02))
    ticks(axis, [0.2, 0.5, 1, 2, 5])
    plt.show()


@cache
def recorded_years() -> pd.DataFrame:
    """One row a model, question and year; a question says {year} in place of it."""
    table = with_wording(data("years"))
    return table.assign(question="In {year}, " + table["question"])


@cache
def by_year(name: str, question: str, answer: str) -> tuple[np.ndarray, np.ndarray]:
    """Years, and the log-probability of the answer after each."""
    same = "model == @name and question == @question and object == @answer"
    recorded = recorded_years().query(same)
    if len(recorded):
        return recorded["year"].to_numpy(), recorded["logprob"].to_numpy()
    model = model_of(name)
    prompts = [prompt_of(model, question.replace("{year}", str(year))) for year in YEARS]
    scores = model.score(prompts, [f" {answer}"] * len(YEARS))
    return YEARS, np.array([tokens.sum() for tokens in scores])


@or_says_what_is_missing
def years(model: str, question: str, answer: str, true: tuple[int, int]) -> None:
    """Whether an answer is likelier in the years of `true`, first and last, than in others."""
    if "{year}" not in question:
        print(
            "This question has no date: write {year} where the year belongs, as in "
            "“In {year}, who …?”"
        )
        return
    when, scores = by_year(model, question, answer)
    right = (when >= true[0]) & (when <= true[1])
    if right.all() or not right.any():
        print("There is nothing to compare: choose years of which some, and not all, were asked.")
        return
    share = np.mean(scores[right][:, None] > scores[~right][None, :])
    print(
        f"“{answer}” is likelier after a year of yours than after another in {share:.0%} of the "
        "pairs."
    )
    _, axis = plt.subplots(figsize=SIZE)
    axis.axvspan(*true, color="0.88")
    axis.plot(when, scores, "o-", color=colour_of(model))
    axis.set(xlabel="year in the question", ylabel="log-probability")
    plt.show()


@cache
def answer_to(name: str, question: str) -> str:
    """The greedy answer, recorded in part 3 or asked in its prompt."""
    recorded = data("wordings").fillna("").query("model == @name and question == @question")
    if len(recorded):
        return recorded["text"].iloc[0].strip()
    model = model_of(name)
    form = paper_format(model.prompt_format, model.chat)
    return greedy(model, render(form, [question], [""], model.chat)[0])


@or_says_what_is_missing
def wordings(model: str, questions: str, n: int) -> None:
    """How many different answers the first n lines get."""
    lines = [line.strip() for line in questions.splitlines() if line.strip()][:n]
    said = [answer_to(model, line) for line in lines]
    print(f"{len(said)} wordings get {len(set(said))} different answers.\n")
    for question, answer in zip(lines, said, strict=True):
        print(f"{question}\n    {answer}")


@cache
def source_of(name: str, question: str, sentence: str) -> tuple[str, str, str]:
    """The answer from memory, the answer behind the sentence, and where that came from."""
    same = "model == @name and question == @question and sentence == @sentence"
    recorded = data("contexts").query(same)
    if len(recorded):
        row = recorded.iloc[0]
        return row["memory"], row["answer"], row["source"]
    found = ground(model_of(name), question, sentence)
    return found.memory, found.answer, found.source


@or_says_what_is_missing
def context(model: str, question: str, sentence: str) -> None:
    """Whether a model answers from memory or from the sentence before the question."""
    memory, answer, source = source_of(model, question, sentence)
    print(f"From memory the model says “{memory}”; behind the sentence it says “{answer}”.")
    print(SOURCES[source])


def exposure(model: str, sentences: int, false: float) -> None:
    """What a model of the invented world knows and keeps of facts told in so many sentences, of
    which the share `false` said something else."""
    rows = data("world").query("model == @model")
    rows = rows[np.isclose(rows["contradicted"], false)]
    counts = rows.groupby("exposure")[["n", "known", "kept"]].sum()
    n, known, kept = counts.loc[sentences]
    print(
        f"Told in {sentences} sentences, the model knows {known} of {n} facts; {kept} survive a "
        "false sentence."
    )
    _, axis = plt.subplots(figsize=SIZE)
    colour = colour_of(model)
    for name, line in (("known", "o-"), ("kept", "s--")):
        axis.plot(counts.index + 0.5, counts[name] / counts["n"], line, color=colour, label=name)
    axis.axvline(sentences + 0.5, ls=":", color="0.5")
    axis.set(xscale="log", xlabel="sentences (and one half)", ylabel="share of facts", ylim=(0, 1))
    axis.legend()
    ticks(axis, [0.5, 1.5, 4.5, 16.5, 64.5, 256.5])
    plt.show()


style.setup()
