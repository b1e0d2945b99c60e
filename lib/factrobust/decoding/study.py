"""How a notebook of part 1 starts: study = decoding.Study(models=models, data=data, ...)."""

import functools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pandas as pd

from factrobust import schemas, study
from factrobust.datasets import named
from factrobust.decoding import metrics, probe
from factrobust.models.interface import Model, need
from factrobust.models.prompts import FORMATS
from factrobust.models.records import Records
from factrobust.tables import stacked


class Study(study.Study):
    """Part 1: `models` are asked the `n_questions` facts of `data` greedily. Holds the `facts`, the
    `counts` of those left out and the `marked` answers.

    `seed` draws the facts and the samples' random numbers. Of the known facts, `n_known` a model and
    domain are sampled `n_samples` times at each temperature, of the models that `sampled` names; of all,
    if it names none of them. Facts without a type get a classifier's,
    trained on `types` (None: the embedded ones). `tempered`: only models that can be (LacksError for none).
    """

    cluster = "relation"

    def __init__(
        self,
        *,
        models: Sequence[study.ModelName],
        data: Sequence[str],
        n_questions: int,
        seed: int,
        n_known: int | None = None,
        n_samples: int | None = None,
        sampled: Sequence[str] = (),
        types: str | None = None,
        n_boot: int | None = None,
        other_parameters: Mapping[str, Any] | None = None,
        records: Records | None = None,
        tempered: bool = False,
    ) -> None:
        parameters = {
            "data": data,
            "n_questions": n_questions,
            "seed": seed,
            "n_known": n_known,
            "n_samples": n_samples,
            "sampled": list(sampled) or None,
            "types": types,
            "n_boot": n_boot,
            **(other_parameters or {}),
        }
        super().__init__(
            models=models,
            parameters=parameters,
            records=records,
        )
        if tempered:
            able = [model for model in self.models if "temper" not in model.lacks]
            for model in self.models if not able else ():
                model.require("temper")  # which says why not
            self.models = able
        loaded = named.load_named(data, limit=n_questions, seed=seed)
        self.facts, self.counts, _ = loaded
        if (self.facts["answer_type"] == "").any():
            from factrobust.decoding import (
                classify,
            )  # embedded facts have types

            types = types or named.EMBEDDED
            train, _ = named.load_named_types(types)
            longer = {"epochs": 10} if types == named.EMBEDDED else {}  # see fine_tune
            self.facts = classify.with_types(
                self.records,
                self.facts,
                train,
                seed=seed,
                **longer,
            )
        answers = self.concat_over_models(lambda model: probe.greedy_answers(model, self.facts))
        self.marked = schemas.MarkedAnswers.validate(metrics.mark_greedy(answers))
        schemas.AskedFacts.validate(self.facts)
        self.print_counts(f"{len(self.facts)} facts")

    @cached_property
    def known(self) -> pd.DataFrame:
        """The facts that a model knows: answers that match exactly. LacksError if there is none."""
        known: pd.DataFrame = metrics.select_known(self.marked)
        why = "none of the greedy answers is right, so there is no known fact to shake; ask easier "
        need(
            len(known),
            self.models,
            f"{why}questions, or a model that knows some",
        )
        return known

    @cached_property
    def measures(self) -> pd.DataFrame:
        """The marked answers with right (1 or 0), logprob (of the answer), truth
        (`decoding.probe.truths`), the exact t_b and its frs."""
        curves = probe.answer_curves(self.marked)
        rows = self.marked.merge(metrics.exact_breaking(curves), how="left")
        frs = metrics.frs(rows["entropy"], rows["t_b"], unbroken=None)
        rows["truth"] = pd.concat([probe.truths(model, rows) for model in self.models])
        right = rows["exact_match"].astype(float)
        logprob = rows["logprobs"].map(sum)
        return rows.assign(right=right, logprob=logprob, frs=frs)

    @property
    def known_sample(self) -> pd.DataFrame:
        """At most `n_known` of `known` for each model and domain: those that are sampled."""
        named = self.known[self.known["model"].isin(self.parameters.get("sampled", ()))]
        known = named if len(named) else self.known
        return metrics.select_known(known, per_domain=self.parameter("n_known"))

    def _ask_each(
        self,
        known: pd.DataFrame,
        ask: Callable[..., Any],
        **how: Any,
    ) -> pd.DataFrame:
        """What `ask` returns for each model and its answers, if there are any."""
        asked = {model: known[known["model"] == model.name] for model in self.models}
        tables = [ask(model, rows, **how) for model, rows in asked.items() if len(rows)]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()

    def sampled(self, **cuts: Any) -> pd.DataFrame:
        """`n_samples` samples of `known_sample` at each temperature; `cuts` truncate (top_k, top_p,
        min_p)."""
        n = self.parameter("n_samples")
        seed = self.parameter("seed")
        return self._ask_each(
            self.known_sample,
            probe.sampled_answers,
            n=n,
            seed=seed,
            **cuts,
        )

    def curves(self) -> pd.DataFrame:
        """log P_t of the known answers on the fine grid."""
        return probe.answer_curves(self.known)

    def longer(self, responses: pd.DataFrame, max_new_tokens: int) -> pd.DataFrame:
        """The marked answers to the same prompts with more tokens."""
        answers = self._ask_each(
            responses,
            probe.greedy_answers,
            max_new_tokens=max_new_tokens,
            temperatures=(),
        )
        return metrics.mark_greedy(answers)

    def cut(self, temperatures: Sequence[float], **cuts: Any) -> pd.DataFrame:
        """log P_t of `known_sample` at temperatures where `cuts` truncate (top_k, top_p, min_p), of the
        models that can be tempered. LacksError if none of these knows a fact."""
        able = [model.name for model in self.models if "temper" not in model.lacks]
        known = self.known_sample[self.known_sample["model"].isin(able)]
        why = "only models that cannot be tempered know a fact here, and what a cut leaves of an "
        need(len(known), self.models, f"{why}answer is found by tempering; add one that knows some")
        return self._ask_each(
            known,
            probe.truncated_curves,
            temperatures=temperatures,
            **cuts,
        )

    def in_formats(self, kinds: Sequence[str], facts: pd.DataFrame) -> pd.DataFrame:
        """The marked answers to facts in prompt formats (column format), with exact t_b and frs. A
        model's own format stands for one if both, or neither, begin the answer: so "chat-prefix" is
        asked for "prefix"."""

        def ask(model: Model, kind: str) -> pd.DataFrame:
            usual = model.prompt_format
            begins_alike = FORMATS[usual].prefix == FORMATS[kind].prefix
            answers = probe.greedy_answers(
                model,
                facts,
                prompt_format=usual if begins_alike else kind,
            )
            return answers.merge(
                metrics.exact_breaking(probe.answer_curves(answers)),
                how="left",
            )

        tables = {k: self.concat_over_models(functools.partial(ask, kind=k)) for k in kinds}
        marked = metrics.mark_greedy(stacked(tables, "format"))
        return marked.assign(frs=metrics.frs(marked["entropy"], marked["t_b"], unbroken=None))

    @cached_property
    def exact(self) -> pd.DataFrame:
        """The exact t_b of the known answers: where P_t falls to one half."""
        return metrics.exact_breaking(self.curves())

    @cached_property
    def per_token(self) -> pd.DataFrame:
        """Their length-neutral t_b: where the mean of a token's probability falls to one half."""
        tokens = self.known.set_index(metrics.KEY)["tokens"]
        return metrics.exact_breaking(metrics.per_token(self.curves(), tokens))

    @cached_property
    def held(self) -> pd.DataFrame:
        """The known answers with their exact t_b, that per token, and logprob, the answer's; those of models
        that cannot be tempered, and ties, are left out."""
        per_token = self.per_token.rename(columns={"t_b": "t_b_per_token"})
        rows = self.known.merge(self.exact.dropna()).merge(per_token)
        return rows.assign(logprob=rows["logprobs"].map(sum))

    @cached_property
    def breaking_on_grid(self) -> pd.DataFrame:
        """Their t_b on the paper's temperatures, from P_t."""
        return metrics.grid_breaking(self.curves(), probe.TEMPERATURES)

    @cached_property
    def by_samples(self) -> pd.DataFrame:
        """t_b of `known_sample` as the paper finds it: samples at each temperature, half of them right."""
        marked = metrics.mark_samples(self.sampled())
        return metrics.sampled_breaking(metrics.sampled_accuracy(marked))

    @cached_property
    def breaking(self) -> tuple[pd.DataFrame, str]:
        """t_b on the paper's temperatures, and what figures call the way it was found: from P_t of
        all known answers, or `by_samples` if one of the models cannot be tempered."""
        if any("temper" in model.lacks for model in self.models):
            return self.by_samples, "by samples"
        return self.breaking_on_grid, "from $P_t$"
