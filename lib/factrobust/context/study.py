"""How a notebook of part 4 starts: study = context.Study(models=models, questions=questions,
...)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import draws, schemas, study
from factrobust.context import attribution, facts, meter, metrics, probe, rules
from factrobust.datasets import named
from factrobust.models.interface import Model
from factrobust.models.records import Records


class _Marked(study.Study):
    """Questions that are asked without and with a context: the `questions`, the `pool` of those
    that contexts are taken from, the `results` of asking, the same `marked`, and `counts` of what
    was asked and left out, a row a model."""

    questions: pd.DataFrame
    pool: pd.DataFrame
    results: pd.DataFrame
    unit = "question_id"

    def _mark(self, theirs: pd.DataFrame | None = None) -> None:
        """Mark the results, with those computed elsewhere, whose truth is unknown."""
        if not self.models:  # a notebook that only looks at the questions
            return
        names = [model.name for model in self.models]
        schemas.ContextQuestions.validate(self.questions)
        self.results = metrics.measured(self.results)
        self.counts = metrics.answer_counts(self.results, self.questions, names)
        if theirs is not None:
            new = theirs[~theirs["question_id"].isin(self.questions["question_id"])]
            new = new[["question_id", "base_id"]].drop_duplicates("question_id")
            empty: Any = pd.Series([[]] * len(new), new.index, dtype=object)
            new = new.assign(right_answers="", answers=empty)
            self.questions = pd.concat([self.questions, new], ignore_index=True)
            self.results = pd.concat([self.results, theirs], ignore_index=True)
        marked = metrics.mark_sources(self.results, self.questions)
        self.marked = schemas.MarkedContext.validate(marked)
        print(f"{len(self.questions)} questions, {len(self.results)} answered with a context")


class Study(_Marked):
    """Part 4: the thesis's `questions`, `n_objects` a base question, with counterfactual contexts
    (`context.facts.load_named_context`). Results that were computed elsewhere, the file `results`,
    stand beside. `seed` draws objects and counterfactuals."""

    cluster = "base_id"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        questions: str,
        results: str | None = None,
        n_objects: int,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "questions": questions,
            "results": results,
            "n_objects": n_objects,
            "seed": seed,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        self.questions = facts.load_named_context(questions, limit=n_objects, seed=seed)
        self.pool = self.questions
        self.results = self.concat_over_models(
            lambda model: probe.ask(model, self.questions, seed=seed)
        )
        self._mark(facts.read_results(results) if results else None)


def _known(data: str, **which: Any) -> pd.DataFrame:
    """Facts of `data`; of a set of the thesis, whose truth is not known, the embedded facts."""
    name = named.EMBEDDED if data.startswith("thesis:") else data
    return named.load_named([name], **which).table


def _drawn(pool: pd.DataFrame, data: str, n: int, seed: int) -> pd.DataFrame:
    """Of a pool of all questions about `data`, those about n facts."""
    names = _known(data, limit=n, seed=seed)["fact_id"]
    return pool[pool["question_id"].isin(names)]


class KnownContexts(_Marked):
    """Part 4: `n_facts` facts of `data` with true, false and irrelevant contexts, or the kinds in
    `contexts`. `seed` draws facts and contexts."""

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_facts: int,
        contexts: Sequence[str] | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "data": data,
            "n_facts": n_facts,
            "contexts": contexts,
            "seed": seed,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        self.pool = facts.facts_as_questions(_known(data))
        self.questions = _drawn(self.pool, data, n_facts, seed)
        every = facts.known_contexts(self.questions, self.pool, seed=seed)
        kinds = facts.CONTEXTS if contexts is None else contexts
        self.contexts = every[every["context"].isin(kinds)]
        self.results = self.concat_over_models(
            lambda model: probe.ask_known(model, self.questions, self.contexts)
        )
        self._mark()


class Meter(study.Study):
    """Part 4, the copy meter: `n_asked` facts of `data` are asked without a context, and `n_facts`
    of those that a model knows behind the sentences of `meter.contexts`. `seed` draws facts and
    sentences.

    Holds the `facts` asked, the answers from `memory` (with right, 1 or 0), and the `answers` to
    the sentences, a row each, as `meter.marked` has them.
    """

    unit, cluster = "question_id", "base_id"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_asked: int,
        n_facts: int,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "data": data,
            "n_asked": n_asked,
            "n_facts": n_facts,
            "seed": seed,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        self.pool = facts.facts_as_questions(_known(data))
        drawn = _drawn(self.pool, data, n_asked, seed)
        templates = meter.load_sentences()
        self.facts = drawn[drawn["base_id"].isin([relation for relation, *_ in templates])]
        self.contexts = meter.contexts(self.facts, self.pool, templates, seed=seed)
        self.memory = self.concat_over_models(self._remembered)
        self.answers = self.concat_over_models(self._answered)
        if self.models:
            known = self.answers.groupby("model", sort=False)["question_id"].nunique().to_dict()
            print(f"{len(self.facts)} facts asked; known, and asked behind sentences: {known}")

    def _remembered(self, model: Model) -> pd.DataFrame:
        """The answers without a context."""
        given = probe.greedy(model, self.facts, scored=False)
        pairs = zip(given["text"], self.facts["answers"], strict=True)
        return given.assign(right=[float(rules.right(*pair)) for pair in pairs])

    def _answered(self, model: Model) -> pd.DataFrame:
        """The answers to all sentences about the first known facts by lot."""
        of_model = self.memory["model"] == model.name
        known = self.memory[of_model & (self.memory["right"] == 1)]
        place = draws.ranks(
            known["question_id"],
            known["model"],
            self.parameter("seed"),
        )
        names = known.loc[place < self.parameter("n_facts"), "question_id"]
        return self.behind(model, self.contexts[self.contexts["question_id"].isin(names)])

    @cached_property
    def grounded(self) -> pd.DataFrame:
        """The answers behind the false sentence about the subject, in the question's words, of all
        facts asked; with `known`, 1 or 0."""
        false = self.contexts.query(
            "mode == 'asserted' and about == 'subject' and words == 'question'"
        )
        rows = self.concat_over_models(lambda model: self.behind(model, false))
        known = self.memory[["model", "question_id", "right"]].rename(columns={"right": "known"})
        return rows.merge(known, on=["model", "question_id"])

    def behind(self, model: Model, sentences: pd.DataFrame) -> pd.DataFrame:
        """A model's answers behind some of the `contexts`, marked."""
        asked = self.facts.set_index("question_id", drop=False).loc[sentences["question_id"]]
        given = probe.greedy(model, asked, sentences["sentence"].tolist(), scored=False)
        about = sentences.drop(columns="question_id").reset_index(drop=True)
        return meter.marked(given.join(about), self.facts)


class Passages(_Marked):
    """Part 4: `n_facts` facts of `data` with `facts.PASSAGES` of 3 to 10 sentences each
    (`passages`), and the same with answers exchanged. `cases` are the marked answers with their
    cause (`attribution.caused`). `seed` draws facts and passages."""

    cluster = "base_id"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_facts: int,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "data": data,
            "n_facts": n_facts,
            "seed": seed,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        self.pool = facts.facts_as_questions(_known(data))
        self.questions = _drawn(self.pool, data, n_facts, seed)
        self.facts = self.questions
        self.passages = facts.passages(self.questions, self.pool, seed=seed)
        found = self.concat_over_models(
            lambda model: probe.swapped(model, self.questions, self.passages)
        )
        self.results = found.assign(counterfactual=found["stated"]) if len(found) else found
        self._mark()

    @cached_property
    def cases(self) -> pd.DataFrame:
        return attribution.caused(self.marked)
