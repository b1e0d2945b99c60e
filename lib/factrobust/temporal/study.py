"""How a notebook of part 2 starts: study = temporal.Study(models=models, data=data, ...)."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import schemas, study
from factrobust.models.interface import Model, need
from factrobust.models.records import Records
from factrobust.temporal import facts, metrics, probe


class Study(study.Study):
    """Part 2: the object of the facts of `data` is scored under every date, in each of `formats`.

    `n_facts` facts, of `fact_ids` where these are named, are asked at the year, `n_fine` of them (None: all) at the month and the day, too;
    n_correct and n_incorrect thin the dates (`temporal.dates.thinned`). Beside each object `n_others` wrong
    names are scored; for `crossed`, after the questions of `n_subjects` wrong subjects, too. `seed` draws
    facts, names, subjects and dates. With `tuned`, only models with a chat template are asked
    (LacksError if there is none). Holds the `facts`, the `dates` and `statements` about them, and their
    `scores`.
    """

    cluster = "subject"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        data: str,
        n_facts: int | None = None,
        n_fine: int | None = None,
        fact_ids: Collection[str] | None = None,
        n_correct: int,
        n_incorrect: int,
        n_others: int | None = None,
        n_subjects: int | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
        formats: Sequence[str] = ("question",),
        tuned: bool = False,
    ) -> None:
        parameters = {
            "data": data,
            "n_facts": n_facts,
            "n_fine": n_fine,
            "n_correct": n_correct,
            "n_incorrect": n_incorrect,
            "n_others": n_others,
            "n_subjects": n_subjects,
            "seed": seed,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        self.formats = formats
        if tuned:
            chats = [model for model in self.models if model.chat]
            why = "no chat template here to compare with; name a model that has one"
            need(chats, self.models, why)
            self.models = chats
        self.facts, _, self.dates = facts.load_named_temporal(
            data,
            limit=n_facts,
            fact_ids=fact_ids,
            n_fine=n_fine,
            n_correct=n_correct,
            n_incorrect=n_incorrect,
            n_others=n_others or 0,
            n_subjects=n_subjects or 0,
            seed=seed,
        )
        self.statements = probe.statements(self.facts, self.dates)
        schemas.TemporalFacts.validate(self.facts)
        schemas.Statements.validate(self.statements)
        self.scores = self._scored(self.statements)
        if self.models:
            schemas.Scores.validate(self.scores)
        self.print_counts(f"{len(self.facts)} facts, {len(self.statements)} dated questions")

    def _scored(self, statements: pd.DataFrame) -> pd.DataFrame:
        def ask(model: Model) -> pd.DataFrame:
            return pd.concat(
                probe.scored_statements(model, statements, name) for name in self.formats
            )

        return self.concat_over_models(ask)

    @cached_property
    def crossed(self) -> pd.DataFrame:
        """Scores of the object and the wrong names after the questions of all subjects, at the dates
        that play matches: `schemas.CubeScores`."""
        tested = self.dates[self.dates["label"] != "transitional"]
        found = self._scored(probe.statements(facts.of_all_subjects(self.facts), tested))
        return schemas.CubeScores.validate(found)

    @cached_property
    def as_published(self) -> pd.DataFrame:
        """Scores of the years of `n_fine` facts as the paper samples them, 2 `n_incorrect`
        incorrect ones."""
        asked, _, dates = facts.load_named_temporal(
            self.parameter("data"),
            sampling="published",
            limit=self.parameter("n_fine"),
            seed=self.parameter("seed"),
            n_correct=self.parameter("n_correct"),
            n_incorrect=2 * self.parameter("n_incorrect"),
        )
        asked = asked.drop(columns="others")
        return self._scored(probe.statements(asked, dates[dates["precision"] == "year"]))

    @cached_property
    def matched(self) -> pd.DataFrame:
        """`temporal.metrics.matches` of the scores."""
        return metrics.matches(self.scores)

    @property
    def defined(self) -> pd.DataFrame:
        """The rows of `matched` that have a win rate and a robustness."""
        return self.matched.dropna(subset=["robust"]).astype({"robust": float})


class Successions(study.Study):
    """Part 2: who held an office? All holders are scored, for `n_moments` years of each term.
    `offices` names the chains, [] all (ValueError for a wrong name). Holds the `terms`, the
    `moments` that are asked for, and the `scores`."""

    cluster = "chain"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName] = (),
        offices: Sequence[str],
        n_moments: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "offices": offices,
            "n_moments": n_moments,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        self.terms = facts.load_successions(offices=offices)
        self.moments = facts.moments(self.terms, n_moments)
        self.scores = self.concat_over_models(
            lambda model: probe.holders(model, self.terms, self.moments)
        )
        schemas.HolderScores.validate(self.scores)
        chains = self.moments["chain"].nunique()
        self.print_counts(f"{chains} offices, {len(self.moments)} moments")

    def _complete(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table with its moments as facts."""
        return table.assign(fact_id=table["chain"] + " " + table["year"].astype(str))
