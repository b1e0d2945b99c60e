"""How a notebook starts: one call loads the data and the models, asks every question, marks answers.

    study = start.decoding(globals())

`globals()` hands over the notebook's parameters: its annotated variables (`seed: int = 0`). What
comes back holds the part's tables, and saves figures and tables with these parameters, the models
and the files read as their provenance. Nothing here is more than calls of datasets, probes and
metrics in their order, so that what a notebook leaves out can be read in a few lines.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import pandas as pd

from factrobust import draws, schemas
from factrobust.models.interface import Model
from factrobust.models.records import open_records
from factrobust.study import Study
from factrobust.tables import Loaded


class _Module:
    """A module of the library that is imported when it is first used: no notebook needs all."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, function: str) -> Any:
        return getattr(import_module(f"factrobust.{self._name}"), function)


named, sentences = map(_Module, ("datasets.named", "models.sentences"))
grounding = _Module("grounding")


class Wording(Study):
    """Part 3: each of `models` is asked the questions of `n_facts` of `data` in all their wordings.

    Holds the `questions` with their paraphrases, the `encoder` that tells how alike texts are, and
    the NLI model `nli`, if one is named. `formats` is the prompt format of each model, the paper's or
    `prompt_format`; `responses` are the greedy answers, `marked` the same with right or wrong. All facts
    of the data, not only those asked, tell longer names. With a parameter `exposures`, facts of the
    invented world that were told so often; with `variants`, asked in these wordings alone.
    """

    data, metric, probe = map(_Module, ("datasets.wordings", "metrics.wording", "probes.wording"))
    plots, unit, cluster = _Module("plots.wording"), "group_id", "relation"

    def __init__(
        self, notebook: Mapping[str, Any], *, prompt_format: str = "", variants: Sequence[int] = ()
    ) -> None:
        super().__init__(notebook)
        v, records = self.parameters, open_records()
        every, _, self.inputs, _ = self.data.load_named_questions(v["data"])
        told = [math.log(1 + n) for n in v.get("exposures", [])]
        questions = every[every["log_popularity"].isin(told)] if told else every
        questions = self.data.sample(questions, v["n_facts"], v["seed"])
        questions = questions[questions["variant"].isin(variants)] if variants else questions
        self.questions = self.facts = schemas.Questions.validate(questions)
        self.encoder, nli = sentences.Encoder(v["sentence_encoder"], records), v.get("nli_model")
        self.nli = sentences.Entailment(nli, records) if nli else None
        self.others = [self.encoder, *([self.nli] if self.nli else [])]
        self.print_counts(f"{questions['group_id'].nunique()} facts, {len(questions)} questions")
        self.formats = {
            m.name: prompt_format or self.probe.paper_format(m.prompt_format, m.chat)
            for m in self.models
        }
        self.responses = self._ask(self.probe.greedy, self.questions)
        if self.models:
            marked = self.metric.mark_by_rules(self.responses, every)
            self.marked = schemas.MarkedResponses.validate(marked)

    def _ask(self, probe: Callable[..., Any], questions: pd.DataFrame, **how: Any) -> pd.DataFrame:
        def answers(model: Model) -> pd.DataFrame:
            how["max_new_tokens"] = self.parameters["max_new_tokens"]
            return probe(model, questions, prompt_format=self.formats[model.name], **how)

        return self.concat_over_models(answers)

    def _sets(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Their texts together (`metrics.wording.text_groups`), and how alike they are."""
        sets = self.metric.text_groups(rows)
        return sets.assign(int_sim=self.encoder.similarity(sets["texts"]))

    @cached_property
    def answer_sets(self) -> pd.DataFrame:
        """The answers to all wordings of a question together, with their `int_sim`."""
        return schemas.AnswerSets.validate(self._sets(self.responses))

    @cached_property
    def originals(self) -> pd.DataFrame:
        """`marked` of the original questions, each with the `answer_sets` of all its wordings and their
        `scons`, which is `int_sim` from 0 to 1."""
        sets = self.answer_sets.assign(scons=self.answer_sets["int_sim"].clip(0, 1))
        return self.marked[self.marked["variant"] == 0].merge(sets, on=self.metric.KEY)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """`n_samples` samples of each original question (`probes.wording.sampled`)."""
        originals = self.questions[self.questions["variant"] == 0]
        how = {"n": self.parameters["n_samples"], "seed": self.parameters["seed"]}
        draws.need_count("n_samples", how["n"], 2)  # whose likeness is measured
        return self._ask(self.probe.sampled, originals, **how)

    @cached_property
    def sample_sets(self) -> pd.DataFrame:
        """The `samples` of a question together, with their `int_sim` and `clusters` that say the same."""
        sets = self._sets(self.samples)
        return sets.assign(clusters=self.probe.meanings(sets["texts"], self.encoder, self.nli))

    @cached_property
    def bare_sets(self) -> pd.DataFrame:
        """`answer_sets` of the answers without the words of their questions."""
        return self._sets(self.metric.without_question(self.responses))

    @cached_property
    def control_sets(self) -> pd.DataFrame:
        """For each question answers to others, `metrics.wording.control_groups`, with `int_sim`."""
        return self._sets(self.metric.control_groups(self.responses, self.parameters["seed"]))

    @cached_property
    def groups(self) -> pd.DataFrame:
        """One row a model and question: right or not, and the predictors (`metrics.wording.predictors`).

        Questions without a popularity are left out; where none has one it is the constant 0.
        """
        sets = self.answer_sets, self.sample_sets, self.bare_sets
        table = schemas.Groups.validate(self.metric.predictors(self.marked, *sets))
        missing = table["log_popularity"].isna()
        return table.assign(log_popularity=0.0) if missing.all() else table[~missing]


class Context(Study):
    """Part 4: the thesis's questions (`n_objects` a base question) with counterfactual contexts.

    `questions` is "embedded", "world", "town" or "thesis:FOLDER" (`datasets.contexts.load_named_context`),
    unless there is a parameter `data`, which says the same. With a parameter `results`, those of that
    file (`datasets.contexts.read_results`) stand beside ours.
    Holds the `questions`, the `results` of asking them without and with a context, and the same
    `marked`. `pool` are the questions that contexts are taken from, `counts` what was asked and left
    out, a row a model.
    """

    questions: pd.DataFrame
    data, metric, probe = map(_Module, ("datasets.contexts", "metrics.context", "probes.context"))
    plots, unit = _Module("plots.context"), "question_id"

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        super().__init__(notebook)
        self.results = self._ask()
        if not self.models:  # a notebook that only looks at the questions
            return
        names = [model.name for model in self.models]
        schemas.ContextQuestions.validate(self.questions)
        self.results = self.metric.measured(self.results)
        self.counts = self.metric.answer_counts(self.results, self.questions, names)
        if self.parameters.get("results"):
            self.results, self.questions = self._with_results(self.parameters["results"])
        marked = self.metric.mark_sources(self.results, self.questions)
        self.marked = schemas.MarkedContext.validate(marked)
        print(f"{len(self.questions)} questions, {len(self.results)} answered with a context")

    def _ask(self) -> pd.DataFrame:
        v = self.parameters
        found = self.data.load_named_context(self._data(), limit=v["n_objects"], seed=v["seed"])
        self.questions, self.inputs = found
        self.pool = self.questions
        return self.concat_over_models(
            lambda model: self.probe.ask(model, self.questions, seed=v["seed"])
        )

    def _data(self) -> str:
        return self.parameters.get("data") or self.parameters.get("questions", "embedded")

    @cached_property
    def again(self) -> pd.DataFrame:
        """One question of each base question with `n_draws` draws of counterfactuals, and in the raw
        prompt (`probes.context.ask_again`), marked."""
        seed, names = self.parameters["seed"], self.pool["question_id"]
        few = names[draws.ranks(names, self.pool["base_id"], seed) == 0]
        seeds = range(seed, seed + self.parameters["n_draws"])
        found = self.concat_over_models(
            lambda model: self.probe.ask_again(model, self.pool, few, seeds)
        )
        return self.metric.mark_sources(self.metric.measured(found), self.pool)

    def _with_results(self, path: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Our results and those of a file below them; our questions and theirs, whose truth is unknown."""
        theirs = self.data.read_results(path)
        self.inputs = [*self.inputs, path]
        new = theirs[~theirs["question_id"].isin(self.questions["question_id"])]
        new = new[["question_id", "base_id"]].drop_duplicates("question_id")
        new = new.assign(right_answers="", answers=[[]] * len(new))
        both = pd.concat([self.questions, new], ignore_index=True)
        return pd.concat([self.results, theirs], ignore_index=True), both


class KnownContexts(Context):
    """Part 4: `n_facts` facts of `data` with true, false and irrelevant `contexts`.

    Without `data` they are the embedded facts, or those that `questions` names. A parameter `contexts`
    names the kinds that are asked, else all are. With a parameter `n_asked`, `varied` are those that a
    model knows of as many facts, asked with contexts that vary at random.
    """

    def _ask(self) -> pd.DataFrame:
        seed, loaded = self.parameters["seed"], self._facts()
        self.inputs, self.pool = loaded.files, self.data.facts_as_questions(loaded.table)
        self.questions = self._drawn(self.parameters["n_facts"])
        contexts = self.data.known_contexts(self.questions, self.pool, self.metric.right, seed=seed)
        kinds = self.parameters.get("contexts", self.data.CONTEXTS)
        self.contexts = contexts[contexts["context"].isin(kinds)]
        return self.concat_over_models(
            lambda model: self.probe.ask_known(model, self.questions, self.contexts)
        )

    def _drawn(self, n: int) -> pd.DataFrame:
        drawn = self._facts(limit=n, seed=self.parameters["seed"]).table["fact_id"]
        return self.pool[self.pool["question_id"].isin(drawn)]

    def _facts(self, **which: Any) -> Loaded:
        thesis = self._data().startswith("thesis:")  # whose truth is not known
        return named.load_named([named.EMBEDDED if thesis else self._data()], **which)

    @cached_property
    def known(self) -> pd.DataFrame:
        """Of `n_asked` facts those that a model answers rightly, with the `margin` of the right answer
        over `datasets.contexts.rivals` (nats; `probes.context.margins`): model, question_id, popularity,
        margin."""
        facts = self._drawn(self.parameters["n_asked"])

        def ask(model: Model) -> pd.DataFrame:
            texts = self.probe.greedy(model, facts)["text"]
            known = facts[list(map(self.metric.right, texts, facts["answers"]))]
            rivals = self.data.rivals(known, self.pool, self.metric.right)
            margin = self.probe.margins(model, known, rivals)
            return known[["question_id", "popularity"]].assign(model=model.name, margin=margin)

        return self.concat_over_models(ask)

    @cached_property
    def varied(self) -> pd.DataFrame:
        """The facts `known` by a margin of `metrics.following.MARGIN`, each with `n_contexts` of
        `datasets.contexts.varied_contexts`, marked."""
        following = _Module("metrics.following")
        sure = self.known[self.known["margin"] >= following.MARGIN]
        how = {"n": self.parameters["n_contexts"], "seed": self.parameters["seed"]}

        def ask(model: Model) -> pd.DataFrame:
            names = sure.loc[sure["model"] == model.name, "question_id"]
            facts = self.pool[self.pool["question_id"].isin(names)]
            contexts = self.data.varied_contexts(facts, self.pool, self.metric.right, **how)
            return self.probe.ask_known(model, facts, contexts)

        answered = self.metric.measured(self.concat_over_models(ask)).merge(
            sure, on=["model", "question_id"]
        )
        return following.followed(self.metric.mark_sources(answered, self.pool))

    @cached_property
    def cases(self) -> pd.DataFrame:
        """What `grounding` tells the source of: the questions with their `contexts`, and the first
        `n_retrieved` of them with what a retriever finds (`grounding.retrieved`); kind says which."""
        few = self._drawn(self.parameters["n_retrieved"])
        contexts = pd.concat([self.contexts, grounding.retrieved(few, self.pool)])
        return self.concat_over_models(
            lambda model: grounding.cases(model, self.questions, contexts)
        )


wording = Wording
context, known_contexts = Context, KnownContexts
