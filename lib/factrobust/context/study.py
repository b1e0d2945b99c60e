"""How a notebook of part 4 starts: study = context.Study(globals())."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import draws, schemas, study
from factrobust.context import facts, following, grounding, metrics, probe, rules
from factrobust.datasets import named
from factrobust.models.interface import Model


class Study(study.Study):
    """Part 4: the thesis's questions (`n_objects` a base question) with counterfactual contexts.

    Holds the `questions` of `data` or `questions` (`context.facts.load_named_context`), the
    `results` of asking them without and with a context (with those of the file `results`), the same
    `marked`, the `pool` of questions that contexts are taken from, and `counts` of what was asked
    and left out, a row a model.
    """

    questions: pd.DataFrame
    unit = "question_id"

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        super().__init__(notebook)
        self.results = self._ask()
        if not self.models:  # a notebook that only looks at the questions
            return
        names = [model.name for model in self.models]
        schemas.ContextQuestions.validate(self.questions)
        self.results = metrics.measured(self.results)
        self.counts = metrics.answer_counts(self.results, self.questions, names)
        if self.parameters.get("results"):
            theirs = facts.read_results(self.parameters["results"])  # whose truth is unknown
            new = theirs[~theirs["question_id"].isin(self.questions["question_id"])]
            new = new[["question_id", "base_id"]].drop_duplicates("question_id")
            empty: Any = pd.Series([[]] * len(new), new.index, dtype=object)
            new = new.assign(right_answers="", answers=empty)
            self.questions = pd.concat([self.questions, new], ignore_index=True)
            self.results = pd.concat([self.results, theirs], ignore_index=True)
        marked = metrics.mark_sources(self.results, self.questions)
        self.marked = schemas.MarkedContext.validate(marked)
        print(f"{len(self.questions)} questions, {len(self.results)} answered with a context")

    def _ask(self) -> pd.DataFrame:
        v = self.parameters
        self.questions = facts.load_named_context(
            self._data(), limit=v["n_objects"], seed=v["seed"]
        )
        self.pool = self.questions
        return self.concat_over_models(
            lambda model: probe.ask(model, self.questions, seed=v["seed"])
        )

    def _data(self) -> str:
        return self.parameters.get("data") or self.parameters.get("questions", "embedded")

    @cached_property
    def again(self) -> pd.DataFrame:
        """One question of each base question with `n_draws` draws of counterfactuals
        (`context.probe.ask_again`), marked."""
        seed, names = self.parameters["seed"], self.pool["question_id"]
        few = names[draws.ranks(names, self.pool["base_id"], seed) == 0]
        seeds = range(seed, seed + self.parameters["n_draws"])
        found = self.concat_over_models(lambda model: probe.ask_again(model, self.pool, few, seeds))
        return metrics.mark_sources(metrics.measured(found), self.pool)


class KnownContexts(Study):
    """Part 4: `n_facts` facts of `data` (else `questions`, or the embedded facts) with true, false
    and irrelevant `contexts`, or those kinds that the parameter names."""

    def _ask(self) -> pd.DataFrame:
        seed, self.pool = self.parameters["seed"], facts.facts_as_questions(self._facts())
        self.questions = self._drawn(self.parameters["n_facts"])
        contexts = facts.known_contexts(self.questions, self.pool, seed=seed)
        kinds = self.parameters.get("contexts", facts.CONTEXTS)
        self.contexts = contexts[contexts["context"].isin(kinds)]
        return self.concat_over_models(
            lambda model: probe.ask_known(model, self.questions, self.contexts)
        )

    def _drawn(self, n: int) -> pd.DataFrame:
        drawn = self._facts(limit=n, seed=self.parameters["seed"])["fact_id"]
        return self.pool[self.pool["question_id"].isin(drawn)]

    def _facts(self, **which: Any) -> pd.DataFrame:
        thesis = self._data().startswith("thesis:")  # whose truth is not known
        return named.load_named([named.EMBEDDED if thesis else self._data()], **which).table

    @cached_property
    def known(self) -> pd.DataFrame:
        """Of `n_asked` facts those that a model answers rightly, with the `margin` (nats) of the
        right answer over `context.facts.rivals`: model, question_id, popularity, margin."""
        asked = self._drawn(self.parameters["n_asked"])

        def ask(model: Model) -> pd.DataFrame:
            texts = probe.greedy(model, asked)["text"]
            known = asked[list(map(rules.right, texts, asked["answers"]))]
            rivals = facts.rivals(known, self.pool)
            margin = probe.margins(model, known, rivals)
            return known[["question_id", "popularity"]].assign(model=model.name, margin=margin)

        return self.concat_over_models(ask)

    @cached_property
    def varied(self) -> pd.DataFrame:
        """The facts `known` by `context.following.MARGIN`, each with `n_contexts` varied contexts,
        marked."""
        sure = self.known[self.known["margin"] >= following.MARGIN]
        how = {"n": self.parameters["n_contexts"], "seed": self.parameters["seed"]}

        def ask(model: Model) -> pd.DataFrame:
            names = sure.loc[sure["model"] == model.name, "question_id"]
            asked = self.pool[self.pool["question_id"].isin(names)]
            contexts = facts.varied_contexts(asked, self.pool, **how)
            return probe.ask_known(model, asked, contexts)

        answered = metrics.measured(self.concat_over_models(ask))
        answered = answered.merge(sure, on=["model", "question_id"])
        return following.followed(metrics.mark_sources(answered, self.pool))

    @cached_property
    def cases(self) -> pd.DataFrame:
        """What `grounding` tells the source of: the questions with their `contexts`, and the first
        `n_retrieved` with what a retriever finds; kind says which."""
        few = self._drawn(self.parameters["n_retrieved"])
        contexts = pd.concat([self.contexts, grounding.retrieved(few, self.pool)])
        return self.concat_over_models(
            lambda model: grounding.cases(model, self.questions, contexts)
        )
