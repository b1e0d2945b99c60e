"""How notebook 5.1 starts. The other notebooks of part 5 use the studies of parts 1 to 4."""

import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factrobust import load_model, models, study
from factrobust.datasets import world
from factrobust.datasets.facts import answers
from factrobust.decoding import probe
from factrobust.draws import need_count
from factrobust.exposure import corpus
from factrobust.models.records import Call, Records, ask_all, open_records
from factrobust.tables import stacked
from factrobust.text import exact_match


class Training(study.Study):
    """Part 5: a tiny decoder reads the invented world's sentences about one `relation` once.

    One fact is followed (`follow`, a fact_id) and told as often as `exposure` says. Holds the `world`
    as it was drawn, the `facts` of the relation with the counts of this corpus, and its `sentences` in
    the order in which they are read. In JupyterLab it really trains, whatever the records hold.
    """

    def __init__(self, notebook: Mapping[str, Any]) -> None:
        super().__init__(notebook)
        v, self.world = self.parameters, world.load_world()
        facts = self.world.facts[self.world.facts["relation"] == v["relation"]].copy()
        followed = facts["fact_id"] == v["follow"]
        if not followed.any():
            raise ValueError(
                f"follow is {v['follow']!r}, which is no {v['relation']} of the invented world: give a "
                f"fact_id of data/world/facts-0.csv, such as {facts['fact_id'].iloc[0]}."
            )
        need_count("exposure", v["exposure"], 0)
        facts.loc[followed, "exposure"] = v["exposure"]
        self.facts = world.with_counts_in_corpus(facts)
        self.sentences = corpus.corpus(self.world._replace(facts=facts), v["seed"])

    def train(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The facts at `moments` (right; share: of the sentences that were read), and the followed fact
        at each: share, sentences (about it, so far), says, and P (of the truth)."""
        in_lab = "FACTROBUST_RECORDS" not in os.environ
        asked = world.loaded().table
        asked = asked[asked["relation"] == self.parameters["relation"]].reset_index(drop=True)
        trained = self._trained(asked, None if in_lab else open_records())
        moments = {int(step): answers for step, answers in trained["texts"].items()}
        accepted, known, rows = answers(asked), {}, []
        [i] = asked.index[asked["fact_id"] == self.parameters["follow"]]
        places = np.flatnonzero(self.sentences["fact_id"] == self.parameters["follow"])
        for step in sorted(moments):
            texts, share = moments[step]["texts"], step / max(moments)
            right = asked.loc[list(map(exact_match, texts, accepted)), "fact_id"]
            known[share] = self.facts.assign(right=self.facts["fact_id"].isin(right))
            told = int((places < share * len(self.sentences)).sum())
            rows.append((share, told, texts[i].strip(), np.exp(moments[step]["truth"])))
        followed = pd.DataFrame(rows, columns=["share", "sentences", "says", "P"])
        return stacked(known, "share"), followed

    def _trained(self, asked: pd.DataFrame, records: Records | None) -> dict[str, Any]:
        """What `models.grow.watched` returns, with texts and truth (log P of the followed fact's
        object) at each moment. The record's key holds all that decides them: sentences, questions,
        parameters, the world's files, the code of the training and torch's version."""
        v = self.parameters
        files = [*world.files(), Path(models.__file__).with_name("grow.py")]
        told = [*self.sentences["text"], *asked["question"], *asked["prefix"]]
        versions = [version("torch").partition("+")[0], version("transformers")]
        made_by = [sha256(file.read_bytes()).hexdigest() for file in files]
        how = json.dumps(
            {"parameters": v, "versions": versions, "made_by": made_by}, sort_keys=True
        )
        call = Call("tiny", "training", sha256("\n".join(told).encode()).hexdigest(), how)

        def train(_: Any) -> Iterator[Any]:
            from factrobust.models import grow  # torch, which a replay does without

            def ask(folder: str) -> dict[str, Any]:
                model = load_model(folder)
                model.prompt_format = "zero-shot"  # as data/models.csv says of its larger kin
                said = probe.greedy(model, asked)
                [truth] = probe.truths(model, said[said["fact_id"] == v["follow"]])
                return {"texts": [*said["text"]], "truth": truth}

            plan = grow.Plan("decoder", v["seed"], v["width"], v["layers"])
            tokenizer = grow.tokenizer_of(self.world, corpus.TEXTS)
            texts = map(grow.learned, self.sentences.to_dict("records"))
            options = {"moments": v["moments"], "disable_tqdm": records is not None}
            yield [0], [grow.watched(plan, texts, tokenizer, v["rate"], ask, **options)]

        [found] = ask_all(records, [call], train, label="training")
        return dict(found)
