"""How a notebook of part 4 starts: study = context.Study(globals())."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import schemas, study
from factrobust.context import attribution, facts, following, metrics, probe, rules
from factrobust.datasets import named
from factrobust.models.interface import Model
from factrobust.models.records import open_records
from factrobust.models.sentences import Entailment


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


class KnownContexts(Study):
    """Part 4: `n_facts` facts of `data` (else `questions`, or the embedded facts) with true, false
    and irrelevant `contexts`, or those kinds that the parameter names."""

    def _ask(self) -> pd.DataFrame:
        seed, self.pool = self.parameters["seed"], facts.facts_as_questions(self._facts())
        self.questions = self._drawn(self.parameters["n_facts"])
        return self._with_contexts(seed)

    def _with_contexts(self, seed: int) -> pd.DataFrame:
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
        """Of `n_asked` facts those that a model answers rightly, with their `rivals` (`probe.gaps`) and
        the `margin` (nats), the gap of the likeliest: model, question_id, popularity, prefix."""
        asked = self._drawn(self.parameters["n_asked"])

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
            contexts = facts.dosed_contexts(own, seed=self.parameters["seed"])
            return probe.ask_known(model, self.pool, contexts, perplexities=False)

        about = sure[["model", "question_id", "popularity"]]
        answered = metrics.measured(self.concat_over_models(ask)).merge(about)
        return following.followed(metrics.mark_sources(answered, self.pool))


class Passages(KnownContexts):
    """Part 4: `n_facts` facts with `facts.PASSAGES` of 3 to 10 sentences each (`passages`), and the same
    with their answers exchanged. `cases` are the marked answers with their cause (`attribution.caused`)."""

    def _with_contexts(self, seed: int) -> pd.DataFrame:
        self.passages = facts.passages(self.questions, self.pool, seed=seed)
        found = self.concat_over_models(
            lambda model: probe.swapped(model, self.questions, self.passages)
        )
        return found.assign(counterfactual=found["stated"]) if len(found) else found

    @cached_property
    def cases(self) -> pd.DataFrame:
        cases = attribution.caused(self.marked)
        if not (name := self.parameters.get("nli_model")):
            return cases
        prefixes = self.questions.set_index("question_id")["prefix"].loc[cases["question_id"]]
        said = prefixes.to_numpy() + " " + cases["contextual"]
        nli = Entailment(name, open_records())
        self.others = [nli]
        return cases.assign(entailed=nli.probability(zip(cases["sentence"], said, strict=True)))
