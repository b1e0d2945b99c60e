"""How a notebook starts: one call loads the data and the models, asks every question, marks answers.

    study = start.decoding(globals())

`globals()` hands over the notebook's parameters: its annotated variables (`seed: int = 0`). What
comes back holds the part's tables, and saves figures and tables with these parameters, the models
and the files read as their provenance. Nothing here is more than calls of datasets, probes and
metrics in their order, so that what a notebook leaves out can be read in a few lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from factrobust import load_model, schemas
from factrobust.provenance import save_figure, save_table
from factrobust.records import open_records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from factrobust.models.interface import Model
    from factrobust.models.sentences import Encoder, Entailment

PACKAGES = ("factrobust", "numpy", "pandas", "matplotlib")


@dataclass
class Study:
    """Parameters, models and input files of a notebook: the provenance of what it saves."""

    parameters: dict[str, Any]
    models: list[Model]
    inputs: Sequence[str | Path]

    def save_figure(self, fig: Figure, name: str, data: pd.DataFrame, **other: Any) -> Figure:
        """`provenance.save_figure` with this study's provenance; returns the figure, to be shown."""
        save_figure(fig, name, data, **self.about | other)
        return fig

    def save_table(self, table: pd.DataFrame, name: str, **other: Any) -> pd.DataFrame:
        """`provenance.save_table` with this study's provenance; returns the table, to be shown."""
        return save_table(table, name, **self.about | other)

    @property
    def about(self) -> dict[str, Any]:
        """What `save_figure` and `save_table` of factrobust.provenance need."""
        return {"parameters": self.parameters, "models": self.models, "inputs": self.inputs}


@dataclass
class Decoding(Study):
    """Part 1: `facts`, what was left out of them (`counts`), and the `marked` greedy answers."""

    facts: pd.DataFrame
    counts: Mapping[str, Any]
    marked: pd.DataFrame

    @cached_property
    def known(self) -> pd.DataFrame:
        """The answers that match exactly: facts that a model knows. LacksError if there is none."""
        from factrobust.metrics.decoding import select_known
        from factrobust.probes.decoding import need_known

        known = select_known(self.marked)
        need_known(known, self.models)
        return known

    @property
    def few_known(self) -> pd.DataFrame:
        """Up to `n_known` of them for each model and domain, drawn: those that are sampled."""
        from factrobust.metrics.decoding import select_known

        return select_known(self.known, per_domain=self.parameters["n_known"])

    def sampled(self) -> pd.DataFrame:
        """`n_samples` samples of `few_known` at each temperature, from the model that knows them."""
        from factrobust.probes import decoding as probe

        known, n, seed = self.few_known, self.parameters["n_samples"], self.parameters["seed"]
        return pd.concat(
            probe.sampled(model, known[known["model"] == model.name], n=n, seed=seed)
            for model in self.models
        )

    def curves(self) -> pd.DataFrame:
        """log P_t of the known answers on a fine grid, from the models that can be tempered."""
        from factrobust.probes import decoding as probe

        return probe.curves([m for m in self.models if "temper" not in m.lacks], self.known)


def decoding(notebook: Mapping[str, Any], *, tempered: bool = False) -> Decoding:
    """Part 1: ask each of `models` the `n_questions` facts of `data` greedily.

    With `tempered`, only models that can be tempered (LacksError if there is none).
    """
    from factrobust.datasets.named import load_named
    from factrobust.metrics.decoding import mark_greedy
    from factrobust.probes import decoding as probe

    parameters, models = _start(notebook)
    seed = parameters["seed"]
    models = probe.temperable(models) if tempered else models
    facts, counts, inputs, _ = load_named(
        parameters["data"], limit=parameters["n_questions"], seed=seed
    )
    if (facts["answer_type"] == "").any():
        from factrobust.classify import with_types
        from factrobust.datasets.facts import load_question_types

        train = load_question_types("train")
        facts = with_types(open_records(), facts, train, epochs=10, seed=seed)
    answers = [probe.greedy(model, facts) for model in models]
    marked = mark_greedy(pd.concat(answers, ignore_index=True))
    schemas.AskedFacts.validate(facts)
    schemas.MarkedAnswers.validate(marked)
    print(f"{len(facts)} facts, asked of {_names(models)}")
    return Decoding(parameters, models, inputs, facts, counts, marked)


@dataclass
class Time(Study):
    """Part 2: `facts`, the `dates` and `statements` about them, and their `scores`."""

    facts: pd.DataFrame
    dates: pd.DataFrame
    statements: pd.DataFrame
    scores: pd.DataFrame

    @cached_property
    def matched(self) -> pd.DataFrame:
        """Every match of a correct with an incorrect date, summed up by `metrics.time.matches`."""
        from factrobust.metrics.time import matches

        return matches(self.scores)

    @property
    def defined(self) -> pd.DataFrame:
        """The rows of `matched` that have a win rate and a robustness."""
        return self.matched.dropna(subset=["robust"]).astype({"robust": float})


def time(
    notebook: Mapping[str, Any],
    *,
    limit: str = "n_facts",
    formats: Sequence[str] = ("question",),
    tuned: bool = False,
) -> Time:
    """Part 2: score the object of the facts of `data` under every date, in each prompt format.

    `limit` names the parameter that says how many facts; with `tuned`, only models that have a chat
    template (LacksError if there is none).
    """
    from factrobust.datasets.named import load_named_temporal
    from factrobust.probes import time as probe

    parameters, models = _start(notebook)
    models = probe.tuned(models) if tuned else models
    facts, _, inputs, dates = load_named_temporal(
        parameters["data"],
        limit=parameters[limit],
        **{name: parameters[name] for name in ("n_correct", "n_incorrect", "seed")},
    )
    statements = probe.statements(facts, dates)
    schemas.TemporalFacts.validate(facts)
    schemas.Statements.validate(statements)
    scores = pd.DataFrame()
    if models:
        asked = [(model, name) for model in models for name in formats]
        parts = [probe.scored(model, statements, prompt_format=name) for model, name in asked]
        scores = schemas.Scores.validate(pd.concat(parts, ignore_index=True))
    print(f"{len(facts)} facts, {len(statements)} dated questions, asked of {_names(models)}")
    return Time(parameters, models, inputs, facts, dates, statements, scores)


@dataclass
class Wording(Study):
    """Part 3: `questions` with their paraphrases, and the `encoder` that tells how alike texts are.

    `formats` is the prompt format of each model; `responses` are the greedy answers, `marked` the
    same with right or wrong, `answer_sets` those of a question together with their `int_sim`.
    """

    questions: pd.DataFrame
    encoder: Encoder
    nli: Entailment | None = None
    formats: dict[str, str] = field(default_factory=dict)
    responses: pd.DataFrame = field(default_factory=pd.DataFrame)
    marked: pd.DataFrame = field(default_factory=pd.DataFrame)
    answer_sets: pd.DataFrame = field(default_factory=pd.DataFrame)

    @property
    def about(self) -> dict[str, Any]:
        """Of the study, with the models that tell how alike answers are."""
        judges = [self.encoder, *([self.nli] if self.nli else [])]
        return super().about | {"models": [*self.models, *judges]}

    @cached_property
    def sample_sets(self) -> pd.DataFrame:
        """The `n_samples` samples of each original question together, with their `int_sim`."""
        from factrobust.metrics.wording import text_groups
        from factrobust.probes import wording as probe

        originals = self.questions[self.questions["variant"] == 0]
        options = {name: self.parameters[name] for name in ("max_new_tokens", "seed")}
        options["n"] = self.parameters["n_samples"]
        samples = [
            probe.sampled(m, originals, prompt_format=self.formats[m.name], **options)
            for m in self.models
        ]
        sets = text_groups(pd.concat(samples, ignore_index=True))
        return sets.assign(int_sim=probe.consistency(self.encoder, sets))

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row a model and question: right or not, and the predictors (`metrics.wording.predictors`).

        Questions without a popularity are left out; where none has one it is the constant 0.
        """
        from factrobust.metrics.wording import predictors

        table = predictors(self.marked, self.answer_sets, self.sample_sets)
        schemas.Groups.validate(table)
        missing = table["log_popularity"].isna()
        return table.assign(log_popularity=0.0) if missing.all() else table[~missing]


def wording(notebook: Mapping[str, Any]) -> Wording:
    """Part 3: ask each of `models` the questions of `n_facts` of `data` in all their wordings."""
    from factrobust.datasets.named import load_named_questions
    from factrobust.datasets.wordings import sample
    from factrobust.metrics.wording import mark_by_rules, text_groups
    from factrobust.models.sentences import Encoder, Entailment
    from factrobust.probes import wording as probe

    parameters, models = _start(notebook)
    every, _, inputs, _ = load_named_questions(parameters["data"])
    questions = sample(every, parameters["n_facts"], parameters["seed"])
    schemas.Questions.validate(questions)
    encoder = Encoder(parameters["sentence_encoder"], records=open_records())
    named = parameters.get("nli_model")
    nli = Entailment(named, records=open_records()) if named else None
    part = Wording(parameters, models, inputs, questions, encoder, nli)
    groups = questions["group_id"].nunique()
    print(f"{groups} facts, {len(questions)} questions, asked of {_names(models)}")
    if models:
        length = parameters["max_new_tokens"]
        part.formats = {m.name: probe.paper_format(m.prompt_format, m.chat) for m in models}
        answers = [
            probe.greedy(m, questions, prompt_format=part.formats[m.name], max_new_tokens=length)
            for m in models
        ]
        part.responses = pd.concat(answers, ignore_index=True)
        part.marked = schemas.MarkedResponses.validate(mark_by_rules(part.responses))
        sets = text_groups(part.responses)
        sets = sets.assign(int_sim=probe.consistency(encoder, sets))
        part.answer_sets = schemas.AnswerSets.validate(sets)
    return part


@dataclass
class Context(Study):
    """Part 4: `questions`, the `results` of asking them without and with a context, and `marked`.

    `pool` holds the questions that contexts are taken from, `counts` what was asked and left out, a
    row a model; `contexts` are those of known facts.
    """

    questions: pd.DataFrame
    pool: pd.DataFrame
    contexts: pd.DataFrame = field(default_factory=pd.DataFrame)
    results: pd.DataFrame = field(default_factory=pd.DataFrame)
    marked: pd.DataFrame = field(default_factory=pd.DataFrame)
    counts: pd.DataFrame = field(default_factory=pd.DataFrame)

    def take(self, answers: Sequence[pd.DataFrame]) -> Context:
        """This study with the answers of its models, one table each, marked."""
        from factrobust.metrics.context import answer_counts, mark_sources, measured

        if not self.models:  # a notebook that only looks at the questions
            return self
        names = [model.name for model in self.models]
        schemas.ContextQuestions.validate(self.questions)
        self.results = measured(pd.concat(answers, ignore_index=True))
        self.counts = answer_counts(self.results, self.questions, names)
        self.marked = schemas.MarkedContext.validate(mark_sources(self.results, self.questions))
        print(f"{len(self.questions)} questions, {len(self.results)} answered with a context")
        return self


def context(notebook: Mapping[str, Any]) -> Context:
    """Part 4: ask the thesis's questions (`n_objects` a base question) with counterfactual contexts."""
    from factrobust.datasets.contexts import FILES, load_context_questions
    from factrobust.probes.context import ask

    parameters, models = _start(notebook)
    seed = parameters["seed"]
    questions = load_context_questions(limit=parameters["n_objects"], seed=seed)
    study = Context(parameters, models, FILES, questions, pool=questions)
    return study.take([ask(model, questions, seed=seed) for model in models])


def known_contexts(notebook: Mapping[str, Any]) -> Context:
    """Part 4: ask `n_facts` embedded facts with true, false and irrelevant contexts."""
    from factrobust.datasets.contexts import facts_as_questions
    from factrobust.datasets.facts import FILES, load_facts
    from factrobust.metrics.context import right
    from factrobust.probes import context as probe

    parameters, models = _start(notebook)
    seed = parameters["seed"]
    pool = facts_as_questions(load_facts())
    drawn = load_facts(limit=parameters["n_facts"], seed=seed)["fact_id"]
    questions = pool[pool["question_id"].isin(drawn)]
    contexts = probe.known_contexts(questions, pool, right, seed=seed)
    study = Context(parameters, models, FILES, questions, pool, contexts)
    return study.take([probe.ask_known(model, questions, contexts) for model in models])


def _start(notebook: Mapping[str, Any]) -> tuple[dict[str, Any], list[Model]]:
    """The notebook's parameters and the models that they name; prints the versions."""
    pd.set_option("display.max_colwidth", 90)
    print(", ".join(f"{package} {metadata.version(package)}" for package in PACKAGES))
    parameters = {name: notebook[name] for name in notebook["__annotations__"]}
    names = parameters.pop("models", [])
    return parameters, [load_model(name, records=open_records()) for name in names]


def _names(models: Sequence[Model]) -> str:
    return ", ".join(model.name for model in models) or "no model"
