"""How a notebook of part 4 starts: study = context.Study(models=models, questions=questions, ...)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import schemas, study
from factrobust.context import attribution, facts, following, metrics, probe, rules
from factrobust.datasets import named
from factrobust.models.interface import Model
from factrobust.models.records import Records
from factrobust.models.sentences import Entailment


class _Marked(study.Study):
    """Questions that are asked without and with a context: the `questions`, the `pool` of those that
    contexts are taken from, the `results` of asking, the same `marked`, and `counts` of what was asked and
    left out, a row a model."""

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
    (`context.facts.load_named_context`). Results that were computed elsewhere, the file `results`, stand
    beside. `seed` draws objects and counterfactuals."""

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
        own = {
            "questions": questions,
            "results": results,
            "n_objects": n_objects,
            "seed": seed,
            "n_boot": n_boot,
        }
        parameters = own | dict(other_parameters or {})
        super().__init__(models=models, parameters=parameters, records=records)
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
    `contexts`. `n_asked` facts are asked for those that are `known`. `seed` draws facts and contexts."""

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_facts: int,
        n_asked: int | None = None,
        contexts: Sequence[str] | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        own = {
            "data": data,
            "n_facts": n_facts,
            "n_asked": n_asked,
            "contexts": contexts,
            "seed": seed,
            "n_boot": n_boot,
        }
        parameters = own | dict(other_parameters or {})
        super().__init__(models=models, parameters=parameters, records=records)
        self.pool = facts.facts_as_questions(_known(data))
        self.questions = _drawn(self.pool, data, n_facts, seed)
        every = facts.known_contexts(self.questions, self.pool, seed=seed)
        kinds = facts.CONTEXTS if contexts is None else contexts
        self.contexts = every[every["context"].isin(kinds)]
        self.results = self.concat_over_models(
            lambda model: probe.ask_known(model, self.questions, self.contexts)
        )
        self._mark()

    @cached_property
    def known(self) -> pd.DataFrame:
        """Of `n_asked` facts those that a model answers rightly, with their `rivals` (`probe.gaps`) and
        the `margin` (nats), the gap of the likeliest: model, question_id, popularity, prefix."""
        data, seed = self.parameter("data"), self.parameter("seed")
        asked = _drawn(self.pool, data, self.parameter("n_asked"), seed)

        def ask(model: Model) -> pd.DataFrame:
            texts = probe.greedy(model, asked)["text"]
            known = asked[list(map(rules.right, texts, asked["answers"]))]
            ranked = probe.gaps(model, known, facts.rivals(known, self.pool))
            table = known[["question_id", "popularity", "prefix"]].assign(model=model.name)
            ranks = pd.Series(ranked, table.index, dtype=object)
            return table.assign(rivals=ranks, margin=[pairs[0][1] for pairs in ranked])

        return self.concat_over_models(ask)

    @cached_property
    def dosed(self) -> pd.DataFrame:
        """The facts `known` by `context.following.MARGIN`, each with two false contexts of varied dose
        (`facts.dosed_contexts`), marked."""
        sure = self.known[self.known["margin"] >= following.MARGIN]

        def ask(model: Model) -> pd.DataFrame:
            own = sure[sure["model"] == model.name]
            contexts = facts.dosed_contexts(own, seed=self.parameter("seed"))
            return probe.ask_known(model, self.pool, contexts, perplexities=False)

        about = sure[["model", "question_id", "popularity"]]
        answered = metrics.measured(self.concat_over_models(ask)).merge(about)
        return following.followed(metrics.mark_sources(answered, self.pool))


class Passages(_Marked):
    """Part 4: `n_facts` facts of `data` with `facts.PASSAGES` of 3 to 10 sentences each (`passages`), and the
    same with their answers exchanged. `cases` are the marked answers with their cause
    (`attribution.caused`), and whether `nli_model`, if there is one, says that the passage entails them.
    `seed` draws facts and passages."""

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_facts: int,
        nli_model: str | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        own = {
            "data": data,
            "n_facts": n_facts,
            "nli_model": nli_model,
            "seed": seed,
            "n_boot": n_boot,
        }
        parameters = own | dict(other_parameters or {})
        super().__init__(models=models, parameters=parameters, records=records)
        self.pool = facts.facts_as_questions(_known(data))
        self.questions = _drawn(self.pool, data, n_facts, seed)
        self.passages = facts.passages(self.questions, self.pool, seed=seed)
        found = self.concat_over_models(
            lambda model: probe.swapped(model, self.questions, self.passages)
        )
        self.results = found.assign(counterfactual=found["stated"]) if len(found) else found
        self._mark()

    @cached_property
    def cases(self) -> pd.DataFrame:
        cases = attribution.caused(self.marked)
        if not (name := self.parameters.get("nli_model")):
            return cases
        prefixes = self.questions.set_index("question_id")["prefix"].loc[cases["question_id"]]
        said = prefixes.to_numpy() + " " + cases["contextual"]
        nli = Entailment(name, self.records)
        self.others = [nli]
        return cases.assign(entailed=nli.probability(zip(cases["sentence"], said, strict=True)))
