"""How a notebook of part 6 starts: study = together.Study(globals())."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import load_model, study
from factrobust.decoding import probe
from factrobust.decoding.metrics import mark_samples
from factrobust.models import sentences
from factrobust.models.interface import Model
from factrobust.models.records import open_records
from factrobust.time import metrics as timed
from factrobust.together import metrics, spine
from factrobust.together.damage import Damage, damaged


class Study(study.Study):
    """Part 6: the facts of `data` that each of `models` knows in its own prompt, at most `n_known`,
    shaken in every way there.

    Of `n_questions` facts, and `n_dated` that held for a time, those that are known to most of the
    models come first. Holds the facts asked, `marked` (the answers to them) and `known`.
    """

    cluster = "relation"

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        super().__init__(notebook)
        v = self.parameters
        self.facts = spine.static_facts(v["data"], v["n_questions"], v["seed"])
        if v.get("n_dated"):
            self.dated = spine.dated_facts(v["n_dated"], v["seed"])
            self.facts = pd.concat([self.facts, self.dated], ignore_index=True)
        self.pool = self.facts
        self.marked = self.concat_over_models(
            lambda model: spine.greedy(model, self.facts, probe.GRID)
        )
        self.known = metrics.most_shared(self.marked, v["n_known"])
        counts = self.known["model"].value_counts()
        known = ", ".join(f"{counts.get(m.name, 0)} of {m.name}" for m in self.models)
        self.print_counts(f"{len(self.facts)} facts (known and taken: {known})")

    def _ask(self, ask: Callable[..., Any], known: pd.DataFrame, **how: Any) -> pd.DataFrame:
        """What `ask` returns for each model and the facts of `known` that are its own."""

        def of(model: Model) -> pd.DataFrame:
            names = known.loc[known["model"] == model.name, "fact_id"]
            facts = self.facts[self.facts["fact_id"].isin(names)]
            return ask(model, facts, **how) if len(facts) else pd.DataFrame()

        return self.concat_over_models(of)

    @cached_property
    def changed(self) -> pd.DataFrame:
        """The answers to the known facts in other wordings and behind contexts (`spine.ask`)."""

        def ask(model: Model, facts: pd.DataFrame) -> pd.DataFrame:
            return spine.ask(model, spine.changed(facts, self.pool, self.parameters["seed"]))

        return self._ask(ask, self.known)

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Marked samples of the known facts, as part 3 draws them."""
        return mark_samples(self._ask(spine.samples, self.known, seed=self.parameters["seed"]))

    @cached_property
    def encoder(self) -> sentences.Encoder:
        encoder = sentences.Encoder(self.parameters["sentence_encoder"], open_records())
        self.others = [*self.others, encoder]
        return encoder

    @cached_property
    def prompts(self) -> pd.DataFrame:
        """`n_prompts` of the known facts in the prompt of each part (`spine.in_prompts`)."""
        few = metrics.most_shared(self.known, self.parameters["n_prompts"])
        return self._ask(spine.in_prompts, few)

    @cached_property
    def years(self) -> pd.DataFrame:
        """`time.metrics.matches` of the known dated facts under years, at the year."""
        known = self.known[self.known["domain"] == "dated"]
        scores = self._ask(spine.years, known, seed=self.parameters["seed"])
        if scores.empty:
            return pd.DataFrame(columns=["model", "fact_id", "win_rate"])
        table = timed.matches(scores)
        return table[table["precision"] == "year"]

    @cached_property
    def measures(self) -> pd.DataFrame:
        """`metrics.measures`: a row a model and known fact."""
        return metrics.measures(self.known, self.changed, self.samples, self.encoder.similarity)

    def after(self, ways: Sequence[Damage], taught: Mapping[str, Sequence[str]]) -> pd.DataFrame:
        """Whether `n_damaged` known facts are right after each change of the weights: model, fact_id,
        relation, text, right, logprob, way, dose, draw. `taught` names what a model became by being
        taught something else."""
        few, records = metrics.most_shared(self.known, self.parameters["n_damaged"]), open_records()
        parts = []
        for model in self.models:
            names = few.loc[few["model"] == model.name, "fact_id"]
            mine = self.facts[self.facts["fact_id"].isin(names)]
            others = [(*way, damaged(model.name, way)) for way in ways]
            for draw, name in enumerate(taught.get(model.name, [])):
                others.append(("taught", 1.0, draw, load_model(name, records=records)))
            for way, dose, draw, other in others:
                said = spine.greedy(other, mine)
                said = said[["fact_id", "relation", "text", "right", "logprob"]]
                parts.append(said.assign(model=model.name, way=way, dose=dose, draw=draw))
        return pd.concat(parts, ignore_index=True)
