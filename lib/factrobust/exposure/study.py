"""How notebook 5.1 starts. The other notebooks of part 5 use the studies of parts 1 to 4."""

import json
import os
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd

from factrobust import load_model, study
from factrobust.datasets import world
from factrobust.datasets.facts import accepted_answers
from factrobust.decoding import probe
from factrobust.draws import need_count
from factrobust.exposure import corpus
from factrobust.models.records import Call, Records, ask_all
from factrobust.tables import stacked
from factrobust.text import exact_match

# Add 1 when `models.grow` trains otherwise, or facts are asked otherwise: what was recorded is not
# found then.
TRAINING = 1


class Training(study.Study):
    """Part 5: a tiny decoder reads the invented world's sentences about one `relation` once.

    One fact is followed (`follow`, a fact_id) and told as often as `exposure` says. The decoder has
    so many `layers` of a `width`, a multiple of 32, learns at a `rate`, and is asked all facts at
    so many `moments`; `seed` is of the sentences and of its first weights. Holds the `world` as it
    was drawn, the `facts` of the relation with the counts of this corpus, and its `sentences` in
    the order in which they are read. In JupyterLab it really trains, whatever the records hold, if
    torch is there.
    """

    def __init__(
        self,
        *,
        relation: str,
        follow: str,
        exposure: int,
        width: int,
        layers: int,
        rate: float,
        moments: int,
        seed: int,
        records: Records | None = None,
    ) -> None:
        parameters = {
            "relation": relation,
            "follow": follow,
            "exposure": exposure,
            "width": width,
            "layers": layers,
            "rate": rate,
            "moments": moments,
            "seed": seed,
        }
        super().__init__(parameters=parameters, records=records)
        self.world = world.load_world()
        facts = self.world.facts[self.world.facts["relation"] == relation].copy()
        followed = facts["fact_id"] == follow
        if not followed.any():
            raise ValueError(
                f"follow is {follow!r}, which is no {relation} of the invented world: give a "
                f"fact_id of data/world/facts-0.csv, such as {facts['fact_id'].iloc[0]}."
            )
        need_count("exposure", exposure, 0)
        facts.loc[followed, "exposure"] = exposure
        self.facts = world.with_counts_in_corpus(facts)
        self.sentences = corpus.corpus(self.world._replace(facts=facts), seed)

    def train(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The facts at `moments` (right; share: of the sentences that were read), and the followed
        fact at each: share, sentences (about it, so far), says, and P (of the truth)."""
        # 1. Train, and ask all facts at each moment.
        in_lab = "FACTROBUST_RECORDS" not in os.environ and find_spec("torch") is not None
        asked = world.loaded().table
        asked = asked[asked["relation"] == self.parameter("relation")].reset_index(drop=True)
        trained = self._trained(asked, None if in_lab else self.records)
        moments = {int(step): found for step, found in trained["texts"].items()}
        # 2. Mark what is said.
        accepted = accepted_answers(asked)
        follow = self.parameter("follow")
        [i] = asked.index[asked["fact_id"] == follow]
        places = np.flatnonzero(self.sentences["fact_id"] == follow)
        known = {}
        followed = []
        for step in sorted(moments):
            texts = moments[step]["texts"]
            share = step / max(moments)
            is_right = list(map(exact_match, texts, accepted))
            right = asked.loc[is_right, "fact_id"]
            known[share] = self.facts.assign(right=self.facts["fact_id"].isin(right))
            row = {
                "share": share,
                "sentences": int((places < share * len(self.sentences)).sum()),
                "says": texts[i].strip(),
                "P": np.exp(moments[step]["truth"]),
            }
            followed.append(row)
        return stacked(known, "share"), pd.DataFrame(followed)

    def _call(self, asked: pd.DataFrame) -> Call:
        """The training's record, whose key holds all that decides the result: sentences, questions,
        parameters, the world's files (the tokenizer's words) and TRAINING."""
        texts = [*self.sentences["text"], *asked["question"], *asked["prefix"]]
        prompt = sha256("\n".join(texts).encode()).hexdigest()
        options = {
            "parameters": self.parameters,
            "world": [sha256(file.read_bytes()).hexdigest() for file in world.files()],
            "training": TRAINING,
        }
        return Call("tiny", "training", prompt, json.dumps(options, sort_keys=True))

    def _trained(self, asked: pd.DataFrame, records: Records | None) -> dict[str, Any]:
        """What `models.grow.watched` returns, with texts and truth (log P of the followed fact's
        object) at each moment."""

        def train(_: Any) -> Iterator[Any]:
            from factrobust.models import grow  # torch, which a replay does without

            plan = grow.Plan(
                "decoder",
                self.parameter("seed"),
                self.parameter("width"),
                self.parameter("layers"),
            )
            found = grow.watched(
                plan,
                map(grow.learned, self.sentences.to_dict("records")),
                grow.tokenizer_of(self.world, corpus.TEXTS),
                self.parameter("rate"),
                partial(self._answers, asked),
                moments=self.parameter("moments"),
                disable_tqdm=records is not None,
            )
            yield [0], [found]

        [found] = ask_all(records, [self._call(asked)], train, label="training")
        return dict(found)

    def _answers(self, asked: pd.DataFrame, folder: str) -> dict[str, Any]:
        """What the decoder of a folder says of each fact, and log P of the followed fact's
        object."""
        model = load_model(folder)
        model.prompt_format = "zero-shot"  # as data/models.csv says of its larger kin
        answers = probe.greedy_answers(model, asked)
        followed = answers[answers["fact_id"] == self.parameter("follow")]
        [truth] = probe.truths(model, followed)
        return {"texts": answers["text"].tolist(), "truth": truth}
