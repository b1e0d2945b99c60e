"""How a notebook of part 6 starts: study = together.Study(models=models, data=data, ...)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import load_model, study
from factrobust.datasets.named import load_named
from factrobust.decoding import probe
from factrobust.draws import hash48
from factrobust.models.damage import Damage
from factrobust.models.interface import Model
from factrobust.models.records import Records
from factrobust.together import metrics, shaken, spine
from factrobust.together.opened import in_format

PLACEBO, CHANGE = Damage("round", 8), Damage("round", 4)


class Study(study.Study):
    """Part 6: the same facts, in the same prompt, shaken in every way beside its placebo (`shaken`).

    The facts are the first `n_known` by lot of those of `data` (`n_questions` at most) that the first of
    the `models` knows in the `prompt_format`. Each model is asked about those of them that it knows; the
    `larger` ones about the first `n_larger`, and about `n_larger` that they know and the first does
    not. Beside these `n_dated` facts that held for a time are scored. `seed` draws all.

    Holds the `facts`, and `known`, the answers to the questions as they are: a row a model and fact,
    with `whose`, the model by which the fact was chosen.
    """

    cluster = "relation"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName],
        larger: Sequence[study.ModelName] = (),
        data: str,
        prompt_format: str,
        n_questions: int,
        n_known: int,
        n_larger: int | None = None,
        n_dated: int | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        own = {
            "data": data,
            "prompt_format": prompt_format,
            "n_questions": n_questions,
            "n_known": n_known,
            "n_larger": n_larger,
            "n_dated": n_dated,
            "seed": seed,
            "n_boot": n_boot,
        }
        parameters = own | {"larger": larger} | dict(other_parameters or {})
        every = [*models, *larger]
        super().__init__(models=every, parameters=parameters, records=records)
        self.models = [in_format(model, prompt_format) for model in self.models]
        self.facts = load_named([data], limit=n_questions, seed=seed).table
        lots = self.facts["fact_id"].map(lambda name: hash48(seed, name))
        by_lot = self.facts.iloc[lots.argsort()]
        first, *others = self.models
        said = spine.greedy(first, by_lot, probe.GRID)
        chosen = said[said["right"]].head(n_known)
        parts = [chosen.assign(whose=first.name)]
        for place, model in enumerate(others, start=1):
            few = n_larger if place >= len(models) else None
            parts += self._known_to(model, by_lot, said, chosen["fact_id"], few)
        self.known = pd.concat(parts, ignore_index=True)
        counts = self.known.groupby(["model", "whose"], sort=False).size()
        told = ", ".join(f"{model} {n} of {whose}'s" for (model, whose), n in counts.items())
        self.print_counts(f"{len(self.facts)} facts (known and taken: {told})")

    def _known_to(
        self, model: Model, by_lot: pd.DataFrame, first: pd.DataFrame, chosen: pd.Series, few: int | None
    ) -> list[pd.DataFrame]:
        """What a further model says of the `chosen` facts, where it is right; a larger one of a `few` of
        them, and of as many that the `first` answered wrongly."""
        same = by_lot[by_lot["fact_id"].isin(chosen)]
        sets = {first["model"].iloc[0]: same}
        if few:
            unknown = first.loc[~first["right"], "fact_id"]
            sets[model.name] = by_lot[by_lot["fact_id"].isin(unknown)]
        parts = []
        for whose, facts in sets.items():
            said = spine.greedy(model, facts, probe.GRID)
            right = said[said["right"]]
            parts.append(right.head(few or len(right)).assign(whose=whose))
        return parts

    def _of(self, model: Model, known: pd.DataFrame) -> pd.DataFrame:
        """The facts of `known` that are the model's own, as they are asked."""
        names = known.loc[known["model"] == model.name, "fact_id"]
        return self.facts[self.facts["fact_id"].isin(names)]

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers to the known facts in other words, without a changed word and behind sentences
        (`shaken.answered`)."""
        seed = self.parameter("seed")
        return self.concat_over_models(
            lambda model: shaken.answered(model, self._of(model, self.known), self.facts, seed)
        )

    @cached_property
    def medians(self) -> pd.Series:
        """Each model's median t_b over the facts known that were chosen by the first model."""
        same = self.known[self.known["whose"] == self.models[0].name]
        return same.groupby("model")["t_b"].median()

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Samples of the known facts, hot and cold (`shaken.sampled`)."""
        seed = self.parameter("seed")
        return self.concat_over_models(
            lambda model: shaken.sampled(
                model, self._of(model, self.known), self.medians[model.name], seed
            )
        )

    def rounded(self, ways: Sequence[Damage], known: pd.DataFrame | None = None) -> pd.DataFrame:
        """The answers to facts `known` (default: all) after each change of the weights
        (`shaken.rounded`)."""
        taken = self.known if known is None else known
        return self.concat_over_models(
            lambda model: shaken.rounded(model, self._of(model, taken), ways)
        )

    @cached_property
    def years(self) -> pd.DataFrame:
        """The dated facts lost to a year (`shaken.years`)."""
        statements = shaken.dated(self.parameter("n_dated"), self.parameter("seed"))
        return self.concat_over_models(lambda model: shaken.years(model, statements))

    @cached_property
    def lost(self) -> pd.DataFrame:
        """The share of its forms in which each known fact is lost: a row a model, fact and arm, with
        `whose`; and the dated facts, whose is "dated"."""
        rows = [self.answers, self.samples, self.rounded([PLACEBO, CHANGE])]
        shares = metrics.lost(pd.concat(rows, ignore_index=True))
        shares = shares.merge(self.known[[*metrics.KEY, "whose"]], on=metrics.KEY)
        return pd.concat([shares, self.years.assign(whose="dated")], ignore_index=True)
