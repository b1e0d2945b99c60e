"""How notebook 5.1 starts: a tiny model that is told the facts of one relation. The other notebooks of
part 5 ask grown models by the studies of parts 1 to 4."""

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

import pandas as pd

from factrobust import load_model, study
from factrobust.datasets import world
from factrobust.decoding import probe
from factrobust.decoding.metrics import mark_greedy
from factrobust.exposure import corpus
from factrobust.models.records import Call, ask_all, open_records
from factrobust.tables import stacked


class Training(study.Study):
    """Part 5: a tiny decoder reads the invented world's sentences about one `relation` once.

    Holds the `world`, the `facts` of the relation with what the corpus holds of each, and the
    `sentences`. In JupyterLab it really trains, whatever the records hold.
    """

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        super().__init__(notebook)
        self.inputs, self.world = world.FILES, world.load_world()
        told = world.with_counts_in_corpus(self.world.facts)
        chosen = told["relation"] == self.parameters["relation"]
        self.facts = told[chosen]
        some = self.world._replace(facts=self.world.facts[chosen])
        self.sentences = corpus.corpus(some, self.parameters["seed"])

    def train(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Of a decoder of `layers` of a `width` at a `rate`: step and loss, with the share that was read;
        and the facts at so many `moments`, with the share that was read and whether the answer is right."""
        from factrobust.models import grow  # torch, which a replay does without

        v, in_lab = self.parameters, "FACTROBUST_RECORDS" not in os.environ
        read = sha256("\n".join(self.sentences["text"]).encode()).hexdigest()
        call = Call("tiny", "training", read, json.dumps(v, sort_keys=True))

        def train(_: Any) -> Iterator[Any]:
            plan = grow.Plan("decoder", v["seed"], v["width"], v["layers"])
            tokenizer = grow.tokenizer_of(self.world, corpus.LAYOUTS.values())
            texts = map(grow.learned, self.sentences.to_dict("records"))
            how = {"moments": v["moments"], "disable_tqdm": not in_lab}
            yield [0], [grow.watched(plan, texts, tokenizer, v["rate"], self._right, **how)]

        [found] = ask_all(None if in_lab else open_records(), [call], train, label="training")
        loss = pd.DataFrame(found["loss"], columns=["step", "loss"])
        steps = {int(step): ids for step, ids in found["right"].items()}
        known = {
            step / max(steps): self.facts.assign(right=self.facts["fact_id"].isin(steps[step]))
            for step in sorted(steps)
        }
        return loss.assign(read=loss["step"] / loss["step"].max()), stacked(known, "share")

    def _right(self, folder: str) -> list[str]:
        """The facts that a model answers as part 1 asks them."""
        facts = world.loaded().table
        facts = facts[facts["relation"] == self.parameters["relation"]]
        answers = probe.greedy(load_model(folder), facts)
        marked = mark_greedy(answers)
        return list(marked.loc[marked["exact_match"], "fact_id"])
