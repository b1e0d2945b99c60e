"""How a notebook of part 3 starts: study = wording.Study(models=models, data=data, ...)."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import pandas as pd

from factrobust import draws, schemas, study
from factrobust.datasets.named import WORLDS
from factrobust.models import sentences
from factrobust.models.interface import Model
from factrobust.models.records import Records
from factrobust.wording import facts, metrics, probe


class Study(study.Study):
    """Part 3: each of `models` is asked the questions of `n_facts` of `data` in all their wordings.

    Holds the `questions`, the `encoder` (how alike texts are, by `sentence_encoder`), the prompt
    `formats` of the models (the paper's, or `prompt_format`), the greedy `responses` of at most
    `max_new_tokens`, and these `marked`; all facts of the data tell longer names. `exposures` takes
    facts of the invented world told so often; `variants` takes these wordings alone. `seed` draws
    facts and the `n_samples` samples of a question.
    """

    unit, cluster = "group_id", "relation"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_facts: int,
        n_samples: int | None = None,
        max_new_tokens: int | None = None,
        sentence_encoder: str,
        exposures: Sequence[int] | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
        prompt_format: str = "",
        variants: Sequence[int] = (),
    ) -> None:
        parameters = {
            "data": data,
            "n_facts": n_facts,
            "n_samples": n_samples,
            "max_new_tokens": max_new_tokens,
            "sentence_encoder": sentence_encoder,
            "exposures": exposures,
            "seed": seed,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        every = facts.load_named_questions(data).table
        questions = every
        if exposures:
            popularity = [math.log(1 + n) for n in exposures]
            questions = questions[questions["log_popularity"].isin(popularity)]
        questions = facts.sample_groups(questions, n_facts, seed)
        if variants:
            questions = questions[questions["variant"].isin(variants)]
        self.questions = self.facts = schemas.Questions.validate(questions)
        self.encoder = sentences.Encoder(sentence_encoder, self.records)
        self.others: list[Any] = [self.encoder]
        self.print_counts(f"{questions['group_id'].nunique()} facts, {len(questions)} questions")
        self.formats = {
            m.name: prompt_format or probe.paper_format(m.prompt_format, m.chat)
            for m in self.models
        }
        self._every = every
        # in the invented world a newline ends an answer
        skip = data not in WORLDS
        self._greedy = partial(probe.greedy_responses, skip_newlines=skip, go_on=skip)
        self._sampled = partial(probe.sampled_responses, skip_newlines=skip)
        self.responses = self._ask(self._greedy, self.questions)
        if self.models:
            marked = metrics.mark_by_rules(self.responses, every)
            self.marked = schemas.MarkedResponses.validate(marked)

    def ask_again(self, questions: pd.DataFrame) -> pd.DataFrame:
        """`marked` of other questions about the same facts, asked in the same way."""
        return metrics.mark_by_rules(self._ask(self._greedy, questions), self._every)

    def _ask(
        self,
        ask: Callable[..., Any],
        questions: pd.DataFrame,
        **options: Any,
    ) -> pd.DataFrame:
        def answers(model: Model) -> pd.DataFrame:
            return ask(
                model,
                questions,
                prompt_format=self.formats[model.name],
                max_new_tokens=self.parameter("max_new_tokens"),
                **options,
            )

        return self.concat_over_models(answers)

    def sets_of(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The texts of each model and question together, in the order of the rows:
        `schemas.AnswerSets`."""
        sets = rows.groupby(metrics.KEY, sort=False)["text"].agg(list)
        table = sets.rename("texts").reset_index()
        return table.assign(int_sim=self.encoder.similarity(table["texts"].tolist()))

    @cached_property
    def answer_sets(self) -> pd.DataFrame:
        """The answers to all wordings of a question together, with `int_sim`."""
        return schemas.AnswerSets.validate(self.sets_of(self.responses))

    @cached_property
    def originals(self) -> pd.DataFrame:
        """`marked` of the original questions with their `answer_sets` and `scons`, which is
        `int_sim` in 0 to 1."""
        sets = self.answer_sets.assign(scons=self.answer_sets["int_sim"].clip(0, 1))
        return self.marked[self.marked["variant"] == 0].merge(
            sets,
            on=metrics.KEY,
        )

    @cached_property
    def signs(self) -> pd.DataFrame:
        """`originals` with `scons_bare` and `logprob_sum`, log P of the greedy answer (NaN without
        a token): what may foretell a right answer without a sample."""
        table = self._beside(self.originals, self.bare_sets, "scons_bare")
        logprobs = table["logprobs"]
        return table.assign(logprob_sum=logprobs.map(sum).where(logprobs.map(len) > 0))

    @cached_property
    def samples(self) -> pd.DataFrame:
        """`n_samples` samples of each original question (`wording.probe.sampled_responses`)."""
        originals = self.questions[self.questions["variant"] == 0]
        n = self.parameter("n_samples")
        draws.need_count("n_samples", n, 2)  # whose likeness is measured
        return self._ask(
            self._sampled,
            originals,
            n=n,
            seed=self.parameter("seed"),
        )

    @cached_property
    def sample_sets(self) -> pd.DataFrame:
        """The `samples` of a question together, with `int_sim`."""
        return self.sets_of(self.samples)

    @cached_property
    def bare_sets(self) -> pd.DataFrame:
        """`answer_sets` of the answers without the words of their questions."""
        return self.sets_of(metrics.without_question(self.responses))

    @cached_property
    def predictors(self) -> pd.DataFrame:
        """`signs` with `cert`, which is `int_sim` of the `samples` in 0 to 1."""
        return self._beside(self.signs, self.sample_sets, "cert")

    def _beside(self, questions: pd.DataFrame, sets: pd.DataFrame, name: str) -> pd.DataFrame:
        """The questions with a column `name`: `int_sim` of their sets, in 0 to 1."""
        measured = sets[metrics.KEY].assign(**{name: sets["int_sim"].clip(0, 1)})
        return questions.merge(measured, on=metrics.KEY, validate="1:1")
