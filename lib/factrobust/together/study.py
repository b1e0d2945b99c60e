"""How a notebook of part 6 starts: study = together.Study(models=models, data=data, ...)."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import study
from factrobust.datasets.named import load_named
from factrobust.decoding import probe
from factrobust.draws import hash48
from factrobust.models.damage import Damage
from factrobust.models.interface import Model
from factrobust.models.records import Records
from factrobust.tables import TooFewError, stacked
from factrobust.together import metrics, shaken, spine
from factrobust.together.opened import in_format

FAILURES = {
    "other words": "other words",
    "false": "a false sentence",
    "hot": "heat",
    "round 4": "4 bits",
}
BITS = (Damage("round", 8), Damage("round", 4))  # the placebo, and the change


def _right(model: Model, asked: pd.DataFrame) -> pd.DataFrame:
    """The right answers of a model to facts."""
    answers = spine.marked_answers(model, asked, probe.GRID)
    return answers[answers["right"]]


class Study(study.Study):
    """Part 6: the same facts, in the same prompt, shaken in every way beside its placebo (`shaken`).

    The first of the `models`, and each of the `larger` ones, choose facts: the first `n_known` by lot
    that they know, of those of `data` (`n_questions` at most), in the `prompt_format`. Each model is
    asked about those of all chosen facts that it knows. Beside these `n_dated` facts that held for a
    time are scored. `seed` draws all. A model that knows none of the first one's facts is left out.
    TooFewError if the first knows none.

    Holds the `facts`; `known`, the answers to the questions as they are, a row a model and fact; and
    `chosen`, a row a model, fact it knows, and `whose`, the model that chose the fact.
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
        n_dated: int | None = None,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "data": data,
            "prompt_format": prompt_format,
            "n_questions": n_questions,
            "n_known": n_known,
            "n_dated": n_dated,
            "seed": seed,
            "n_boot": n_boot,
            "larger": larger,
            **(other_parameters or {}),
        }
        every = [*models, *larger]
        super().__init__(
            models=every,
            parameters=parameters,
            records=records,
        )
        self.models = [in_format(model, prompt_format) for model in self.models]
        self.facts = load_named([data], limit=n_questions, seed=seed).table
        lots = self.facts["fact_id"].map(lambda name: hash48(seed, name))
        by_lot = self.facts.iloc[lots.argsort()]
        # 1. Who chooses facts. A larger model is asked about twice as many as are wanted, not all.
        first = self.models[0]
        picks = {first.name: _right(first, by_lot)}
        if picks[first.name].empty:
            raise TooFewError(
                f"{first.name} knows none of {len(by_lot)} facts, so there is nothing to shake: ask "
                "more facts, or put a model first that knows some."
            )
        for model in self.models[len(models) :]:
            picks[model.name] = _right(model, by_lot.head(2 * n_known))
        names = {whose: right["fact_id"].head(n_known) for whose, right in picks.items()}
        # 2. Which of these each model knows.
        asked = by_lot[by_lot["fact_id"].isin(pd.concat([*names.values()]))]
        known = self.concat_over_models(lambda model: _right(model, asked))
        parts = {}
        for whose, facts in names.items():
            parts[whose] = known.loc[known["fact_id"].isin(facts), metrics.KEY]
        chosen = stacked(parts, "whose")
        # 3. Who is left out, and what is told.
        counts = chosen.groupby(["model", "whose"], sort=False).size().reset_index(name="n")
        taken = [
            f"{row['model']} {row['n']} of {row['whose']}'s" for row in counts.to_dict("records")
        ]
        able = set(chosen.loc[chosen["whose"] == first.name, "model"])
        for model in self.models:
            if model.name not in able:
                taken.append(f"{model.name} none of {first.name}'s, so it is left out")
        self.print_counts(f"{len(self.facts)} facts (known and taken: {', '.join(taken)})")
        self.models = [model for model in self.models if model.name in able]
        self.known = known[known["model"].isin(able)].reset_index(drop=True)
        is_able = chosen["model"].isin(able) & chosen["whose"].isin(able)
        self.chosen = chosen[is_able].reset_index(drop=True)

    def _of(self, model: Model, known: pd.DataFrame) -> pd.DataFrame:
        """The facts of `known` that are the model's own, as they are asked."""
        names = known.loc[known["model"] == model.name, "fact_id"]
        return self.facts[self.facts["fact_id"].isin(names)]

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answers to the known facts in other words, without a changed word and behind sentences
        (`shaken.changed_answers`)."""
        seed = self.parameter("seed")
        return self.concat_over_models(
            lambda model: shaken.changed_answers(
                model, self._of(model, self.known), self.facts, seed
            )
        )

    @cached_property
    def medians(self) -> pd.Series:
        """Each model's median t_b over the facts that it knows and the first model chose."""
        rows = self.known.merge(self.chosen, on=metrics.KEY)
        same = rows[rows["whose"] == self.models[0].name]
        return same.groupby("model")["t_b"].median()

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Samples of the known facts, hot and cold (`shaken.hot_and_cold`)."""
        seed = self.parameter("seed")
        return self.concat_over_models(
            lambda model: shaken.hot_and_cold(
                model,
                self._of(model, self.known),
                self.medians[model.name],
                seed,
            )
        )

    def rounded(self, ways: Sequence[Damage], known: pd.DataFrame | None = None) -> pd.DataFrame:
        """The answers to facts `known` (default: all) after each change of the weights
        (`shaken.damaged_answers`)."""
        taken = self.known if known is None else known
        return self.concat_over_models(
            lambda model: shaken.damaged_answers(model, self._of(model, taken), ways)
        )

    @cached_property
    def years(self) -> pd.DataFrame:
        """The dated facts lost to a year (`shaken.lost_years`)."""
        statements = shaken.dated_statements(self.parameter("n_dated"), self.parameter("seed"))
        return self.concat_over_models(lambda model: shaken.lost_years(model, statements))

    @cached_property
    def lost(self) -> pd.DataFrame:
        """The share of its forms in which each known fact is lost: a row a model, fact and arm, with
        relation."""
        return metrics.lost(pd.concat([self.shaken, self.rounded(BITS)], ignore_index=True))

    @cached_property
    def ways(self) -> pd.DataFrame:
        """What each way loses, its placebo loses, and their difference, paired by fact: a row a model,
        whose, way and `what`, with mean, low, high, n and relations. The dated facts stand with those
        chosen by the first model."""
        lost = self.lost.merge(self.chosen, on=metrics.KEY)
        dated = self.years.assign(whose=self.models[0].name)
        rows = metrics.beside_placebos(pd.concat([lost, dated], ignore_index=True))
        by = ["model", "whose", "way"]
        shares = self.means(rows, [*by, "side"], "lost")
        differences = self.paired(rows, by, "lost", "side", ("placebo", "change"))
        parts = {
            "lost": shares[shares["side"] == "change"].drop(columns="side"),
            "under its placebo": shares[shares["side"] == "placebo"].drop(columns="side"),
            "difference": differences.drop(columns=["placebo", "change"]),
        }
        table = stacked(parts, "what")
        places = table["way"].map([*metrics.WAYS].index)
        return table.iloc[places.argsort(kind="stable")].reset_index(drop=True)

    @cached_property
    def shaken(self) -> pd.DataFrame:
        """All answers to the known facts, but for changed weights: a row a model, fact, arm and form."""
        return pd.concat([self.answers, self.samples], ignore_index=True)

    @cached_property
    def failures(self) -> pd.DataFrame:
        """Which known facts hold in a way of failing, beside their measures (`metrics.measures`): a row a
        model, fact and `failure`. A fact holds in other words and behind a false sentence if all answers
        are right, in heat if at most one is wrong, at 4 bits if that answer is right."""
        wide = self.lost.pivot(
            index=metrics.KEY,
            columns="arm",
            values="lost",
        )
        allowed = {
            "other words": 0,
            "false": 0,
            "hot": 1 / shaken.SAMPLES,
            "round 4": 0,
        }
        measured = metrics.measures(self.known, self.shaken)
        parts = {}
        for arm, most in allowed.items():
            seen = wide[arm].dropna()
            holds = (seen <= most).astype(float).rename("holds").reset_index()
            parts[FAILURES[arm]] = holds.merge(measured, on=metrics.KEY)
        return stacked(parts, "failure")
