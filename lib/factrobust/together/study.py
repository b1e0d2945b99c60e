"""How a notebook of part 6 starts: study = together.Study(models=models, data=data, ...)."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import load_model, study
from factrobust.datasets.named import load_named
from factrobust.decoding import probe
from factrobust.decoding.metrics import mark_samples
from factrobust.models import sentences
from factrobust.models.damage import Damage, damaged
from factrobust.models.interface import Model
from factrobust.models.records import Records
from factrobust.tables import stacked
from factrobust.time import metrics as timed
from factrobust.together import metrics, shaken, spine
from factrobust.wording import probe as paraphrased

HOT = 0.9  # the share of samples from which on a fact holds in heat


class Study(study.Study):
    """Part 6: the facts of `data` that each of `models` knows in its own prompt, at most `n_known`,
    shaken in every way there.

    Of `n_questions` facts, and `n_dated` that held for a time, those that are known to most of the
    models come first. Of the known, `n_prompts` are asked in every part's prompt and `n_damaged` after
    changes of the weights; `sentence_encoder` tells how alike answers are. `seed` draws facts, contexts
    and samples. Holds the facts asked, `marked` (the answers to them) and `known`.
    """

    cluster = "relation"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName],
        data: str,
        n_questions: int,
        n_dated: int,
        n_known: int,
        n_prompts: int | None = None,
        n_damaged: int | None = None,
        sentence_encoder: str,
        seed: int,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
    ) -> None:
        own = {
            "data": data,
            "n_questions": n_questions,
            "n_dated": n_dated,
            "n_known": n_known,
            "n_prompts": n_prompts,
            "n_damaged": n_damaged,
            "sentence_encoder": sentence_encoder,
            "seed": seed,
            "n_boot": n_boot,
        }
        parameters = own | dict(other_parameters or {})
        super().__init__(models=models, parameters=parameters, records=records)
        self.facts = load_named([data], limit=n_questions, seed=seed).table
        if n_dated:
            dated = spine.dated_facts(n_dated, seed)
            self.facts = pd.concat([self.facts, dated], ignore_index=True)
        self.marked = self.concat_over_models(
            lambda model: spine.greedy(model, self.facts, probe.GRID)
        )
        self.known = metrics.most_shared(self.marked, n_known)
        counts = self.known["model"].value_counts()
        known = ", ".join(f"{counts.get(m.name, 0)} of {m.name}" for m in self.models)
        self.print_counts(f"{len(self.facts)} facts (known and taken: {known})")

    def _of(self, model: Model, known: pd.DataFrame) -> pd.DataFrame:
        """The facts of `known` that are the model's own, as they are asked."""
        names = known.loc[known["model"] == model.name, "fact_id"]
        return self.facts[self.facts["fact_id"].isin(names)]

    def _ask(self, ask: Callable[..., Any], known: pd.DataFrame, **how: Any) -> pd.DataFrame:
        """What `ask` returns for each model and the facts of `known` that are its own."""

        def of(model: Model) -> pd.DataFrame:
            facts = self._of(model, known)
            return ask(model, facts, **how) if len(facts) else pd.DataFrame()

        return self.concat_over_models(of)

    @cached_property
    def changed(self) -> pd.DataFrame:
        """The answers to the known facts in other wordings and behind contexts (`shaken.ask`)."""

        def ask(model: Model, facts: pd.DataFrame) -> pd.DataFrame:
            return shaken.ask(model, spine.changed(facts, self.facts, self.parameter("seed")))

        return self._ask(ask, self.known)

    @property
    def answers(self) -> pd.DataFrame:
        """All answers in the models' own prompts: `marked`, as way "question", and `changed`."""
        return pd.concat([self.marked.assign(way="question"), self.changed], ignore_index=True)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Marked samples of the known facts, as many and as hot as part 3 draws them for Cert."""
        drawn = self._ask(
            probe.sampled,
            self.known,
            seed=self.parameter("seed"),
            temperatures=[paraphrased.TEMPERATURE],
            n=paraphrased.SAMPLES,
        )
        return mark_samples(drawn)

    @cached_property
    def prompts(self) -> pd.DataFrame:
        """`n_prompts` of the known facts in the prompt of each part (`shaken.in_prompts`)."""
        few = metrics.most_shared(self.known, self.parameter("n_prompts"))
        return self._ask(shaken.in_prompts, few)

    @cached_property
    def years(self) -> pd.DataFrame:
        """`time.metrics.matches` of the known dated facts under years, at the year, if there are any."""
        known = self.known[self.known["domain"] == "dated"]
        scores = self._ask(spine.years, known, seed=self.parameter("seed"))
        if scores.empty:
            return pd.DataFrame(columns=["model", "fact_id", "win_rate"])
        table = timed.matches(scores)
        return table[table["precision"] == "year"]

    @cached_property
    def measures(self) -> pd.DataFrame:
        """`metrics.measures`: a row a model and known fact."""
        encoder = sentences.Encoder(self.parameter("sentence_encoder"), self.records)
        self.others = [*self.others, encoder]
        return metrics.measures(self.known, self.changed, self.samples, encoder.similarity)

    def after(
        self, ways: Sequence[Damage], taught: Mapping[str, Sequence[str]] | None = None
    ) -> pd.DataFrame:
        """Whether `n_damaged` known facts are right after each change of the weights: model, fact_id,
        relation, text, right, way, dose, draw. `taught` names what a model became by being taught
        something else, in several draws."""
        few, parts = metrics.most_shared(self.known, self.parameter("n_damaged")), []
        for model in self.models:
            facts, names = self._of(model, few), (taught or {}).get(model.name, [])
            others = {way: damaged(model.name, way) for way in ways}
            others |= {
                Damage("taught", 1, draw): load_model(name, records=self.records)
                for draw, name in enumerate(names)
            }
            for (way, dose, draw), other in others.items():
                said = spine.greedy(other, facts)[["fact_id", "relation", "text", "right"]]
                parts.append(said.assign(model=model.name, way=way, dose=dose, draw=draw))
        return pd.concat(parts, ignore_index=True)

    def failures(self, weights: Sequence[Damage]) -> pd.DataFrame:
        """Which facts hold in each way of failing, beside their measures, a row a model, fact and
        `failure`: in all other wordings (words), behind a false context (context), in HOT of the samples
        (heat), after all changes of the `weights`, and in every part's prompt (prompt), if `n_prompts`
        are asked there."""
        table = self.measures.set_index(metrics.KEY)
        holds = {"words": table["wordings"] == 1, "heat": table["heat"] >= HOT}
        holds["context"] = table["false"].dropna() == 1
        holds["weights"] = self.after(weights).groupby(metrics.KEY)["right"].all()
        if self.parameters.get("n_prompts"):
            holds["prompt"] = self.prompts.groupby(metrics.KEY)["right"].all()
        long = stacked(
            {way: x.rename("holds").reset_index() for way, x in holds.items()}, "failure"
        )
        return long.astype({"holds": float}).merge(self.measures, on=metrics.KEY)
