"""How notebook 5.1 starts. The other notebooks of part 5 use the studies of parts 1 to 4."""

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from factrobust import load_model, models, study
from factrobust.datasets import world
from factrobust.datasets.facts import answers
from factrobust.decoding import probe
from factrobust.exposure import corpus
from factrobust.models.records import Call, Records, ask_all, open_records
from factrobust.tables import stacked
from factrobust.text import exact_match


class Training(study.Study):
    """Part 5: a tiny decoder reads the invented world's sentences about one `relation` once.

    Holds the `world`, the `facts` of the relation with the corpus's counts, and the `sentences`. In
    JupyterLab it really trains, whatever the records hold.
    """

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        super().__init__(notebook)
        self.world = world.load_world()
        told = world.with_counts_in_corpus(self.world.facts)
        chosen = told["relation"] == self.parameters["relation"]
        self.facts = told[chosen]
        some = self.world._replace(facts=self.world.facts[chosen])
        self.sentences = corpus.corpus(some, self.parameters["seed"])

    def train(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The loss (step, loss, read) and the facts at `moments` (share read, right); read is the
        share of sentences that was read."""
        in_lab = "FACTROBUST_RECORDS" not in os.environ
        asked = world.loaded().table
        asked = asked[asked["relation"] == self.parameters["relation"]]
        trained = self._trained(asked, None if in_lab else open_records())
        loss = pd.DataFrame(trained["loss"], columns=["step", "loss"])
        moments = {int(step): texts for step, texts in trained["texts"].items()}
        accepted, known = answers(asked), {}
        for step in sorted(moments):
            right = asked.loc[list(map(exact_match, moments[step], accepted)), "fact_id"]
            known[step / max(moments)] = self.facts.assign(right=self.facts["fact_id"].isin(right))
        return loss.assign(read=loss["step"] / loss["step"].max()), stacked(known, "share")

    def _trained(self, asked: pd.DataFrame, records: Records | None) -> dict[str, Any]:
        """What `models.grow.watched` returns: losses, and the texts of all answers at each moment.

        The record's key holds all that decides them: sentences, questions, parameters, the world's
        files, the code of the training and torch's version.
        """
        v = self.parameters
        files = [*world.FILES, Path(models.__file__).with_name("grow.py")]
        told = [*self.sentences["text"], *asked["question"], *asked["prefix"]]
        versions = [version("torch").partition("+")[0], version("transformers")]
        made_by = [sha256(file.read_bytes()).hexdigest() for file in files]
        how = json.dumps(
            {"parameters": v, "versions": versions, "made_by": made_by}, sort_keys=True
        )
        call = Call("tiny", "training", sha256("\n".join(told).encode()).hexdigest(), how)

        def train(_: Any) -> Iterator[Any]:
            from factrobust.models import grow  # torch, which a replay does without

            def ask(folder: str) -> list[str]:
                return list(probe.greedy(load_model(folder), asked)["text"])

            plan = grow.Plan("decoder", v["seed"], v["width"], v["layers"])
            tokenizer = grow.tokenizer_of(self.world, corpus.LAYOUTS.values())
            texts = map(grow.learned, self.sentences.to_dict("records"))
            options = {"moments": v["moments"], "disable_tqdm": records is not None}
            yield [0], [grow.watched(plan, texts, tokenizer, v["rate"], ask, **options)]

        [found] = ask_all(records, [call], train, label="training")
        return dict(found)
