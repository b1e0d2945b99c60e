"""How a notebook of part 4 starts: study = context.Study(models=models, questions=questions,
...)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import draws, schemas, study
from factrobust.context import attribution, facts, meter, metrics, passages, probe, rules
from factrobust.datasets import named
from factrobust.models.interface import Model
from factrobust.models.records import Records


class _Study(study.Study):
    """What the studies of this part share: how they are made, and their questions.

    `study_parameters` are those of one study alone. Beside them stand n_boot and the parameters of
    later cells."""

    unit = "question_id"

    def __init__(
        self,
        study_parameters: Mapping[str, Any],
        *,
        models: Sequence[study.ModelName] = (),
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {**study_parameters, "n_boot": n_boot, **(other_parameters or {})}
        super().__init__(models=models, parameters=parameters, records=records)

    def _of_facts(self, data: str, n: int, seed: int) -> None:
        """Hold the `pool` of all facts of `data` as questions, and `questions` about n of them. Of
        a set of the thesis, whose truth is not known, it is the embedded facts."""
        name = named.EMBEDDED if data.startswith("thesis:") else data
        drawn = named.load_named([name], limit=n, seed=seed).table["fact_id"]
        self.pool = facts.facts_as_questions(named.load_named([name]).table)
        self.questions = self.pool[self.pool["question_id"].isin(drawn)]

    def _mark(self, results: pd.DataFrame, theirs: pd.DataFrame | None = None) -> None:
        """Hold answers without and with a context, `marked`, with `theirs`, computed elsewhere."""
        if not self.models:  # a notebook that only looks at the questions
            return
        schemas.ContextQuestions.validate(self.questions)
        answered = metrics.measured(results)
        if theirs is not None:
            self.questions = facts.with_questions_of(self.questions, theirs)
            answered = pd.concat([answered, theirs], ignore_index=True)
        marked = metrics.mark_sources(answered, self.questions)
        self.marked = schemas.MarkedContext.validate(marked)
        print(f"{len(self.questions)} questions, {len(marked)} answered with a context")


class Study(_Study):
    """Part 4: the thesis's `questions`, `n_objects` a base question, with counterfactual contexts
    (`context.facts.load_named_context`). Results that were computed elsewhere, the file `results`,
    stand beside. `seed` draws objects and counterfactuals."""

    cluster = "base_id"

    def __init__(
        self,
        *,
        questions: str,
        results: str = "",
        n_objects: int,
        seed: int,
        **how: Any,
    ) -> None:
        parameters = {
            "questions": questions,
            "results": results,
            "n_objects": n_objects,
            "seed": seed,
        }
        super().__init__(parameters, **how)
        self.questions = facts.load_named_context(questions, limit=n_objects, seed=seed)
        answered = self.concat_over_models(
            lambda model: probe.ask_counterfactual(model, self.questions, seed=seed)
        )
        self._mark(answered, facts.read_results(results) if results else None)


class KnownContexts(_Study):
    """Part 4: `n_facts` facts of `data` with true, false and irrelevant contexts, or the kinds in
    `contexts`. `seed` draws facts and contexts."""

    def __init__(
        self,
        *,
        data: str,
        n_facts: int,
        contexts: Sequence[str] | None = None,
        seed: int,
        **how: Any,
    ) -> None:
        parameters = {"data": data, "n_facts": n_facts, "contexts": contexts, "seed": seed}
        super().__init__(parameters, **how)
        self._of_facts(data, n_facts, seed)
        every = facts.known_contexts(self.questions, self.pool, seed=seed)
        asked = every[every["context"].isin(contexts or facts.CONTEXTS)]
        self._mark(
            self.concat_over_models(lambda model: probe.ask_known(model, self.questions, asked))
        )


class Passages(_Study):
    """Part 4: `n_facts` facts of `data` with passages of 3 to 10 sentences each
    (`context.passages`), and the same with answers exchanged. `cases` are the marked answers with
    their cause (`attribution.caused`). `seed` draws facts and passages."""

    cluster = "base_id"

    def __init__(
        self,
        *,
        data: str,
        n_facts: int,
        seed: int,
        **how: Any,
    ) -> None:
        parameters = {"data": data, "n_facts": n_facts, "seed": seed}
        super().__init__(parameters, **how)
        self._of_facts(data, n_facts, seed)
        self.facts = self.questions
        made = passages.passages(self.questions, self.pool, seed=seed)
        self._mark(self.concat_over_models(lambda model: probe.swapped(model, self.facts, made)))
        if self.models:
            self.cases = attribution.caused(self.marked)


class Meter(_Study):
    """Part 4, the copy meter: `n_asked` facts of `data` are asked without a context, and `n_facts`
    of those that a model knows behind the sentences of `meter.contexts`. `seed` draws facts and
    sentences.

    Holds the `facts` asked, the answers from `memory` (with right, 1 or 0), and the `answers` to
    the sentences, a row each, as `meter.marked` has them.
    """

    cluster = "base_id"

    def __init__(
        self,
        *,
        data: str,
        n_asked: int,
        n_facts: int,
        seed: int,
        **how: Any,
    ) -> None:
        parameters = {"data": data, "n_asked": n_asked, "n_facts": n_facts, "seed": seed}
        super().__init__(parameters, **how)
        self._of_facts(data, n_asked, seed)
        templates = meter.load_sentences()
        relations = [relation for relation, *_ in templates]
        self.facts = self.questions[self.questions["base_id"].isin(relations)]
        self.contexts = meter.contexts(self.facts, self.pool, templates, seed=seed)
        self.memory = self.concat_over_models(self._remembered)
        self.answers = self.concat_over_models(self._answered)
        if self.models:
            known = self.answers.groupby("model", sort=False)["question_id"].nunique().to_dict()
            print(f"{len(self.facts)} facts asked; known, and asked behind sentences: {known}")

    def _remembered(self, model: Model) -> pd.DataFrame:
        """The answers without a context."""
        given = probe.answer_questions(model, self.facts, scored=False)
        pairs = zip(given["text"], self.facts["answers"], strict=True)
        return given.assign(right=[float(rules.right(*pair)) for pair in pairs])

    def _answered(self, model: Model) -> pd.DataFrame:
        """The answers to all sentences about the first known facts by lot."""
        known = self.memory[self.memory["right"] == 1]
        known = known[known["model"] == model.name]
        place = draws.ranks(known["question_id"], known["model"], self.parameter("seed"))
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
        given = probe.answer_questions(model, asked, sentences["sentence"].tolist(), scored=False)
        about = sentences.drop(columns="question_id").reset_index(drop=True)
        return meter.marked(given.join(about), self.facts)
