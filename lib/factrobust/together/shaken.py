"""Part 6: a known fact is shaken in several ways, and each way stands beside its placebo.

| way | an arm that should lose facts | its placebo |
| --- | --- | --- |
| temperature | hot: samples at HEAT times the model's median t_b | cold: samples at COLD times it |
| date | a year outside the fact's time, after its own question | the same years, a wrong subject |
| wording | other words | no word changed |
| context | a false sentence | its nonsense twin; a filler, which names no rival |
| weights | rounded to 4 bits | rounded to 8 bits |

Everything is asked in the prompt format that a model has. An answer of at most probe.LONG tokens is
right if it states an accepted name, since a change makes models answer in sentences.
"""

from collections.abc import Sequence

import pandas as pd

from factrobust.context import facts as contexts
from factrobust.context import meter
from factrobust.datasets.facts import accepted_answers
from factrobust.decoding import probe
from factrobust.draws import ranks
from factrobust.models.damage import Damage, damaged
from factrobust.models.interface import Model
from factrobust.temporal import dates, facts
from factrobust.temporal import metrics as timed
from factrobust.temporal import probe as timing
from factrobust.together import spine
from factrobust.together.opened import in_format
from factrobust.wording import facts as worded
from factrobust.wording import floor
from factrobust.wording.metrics import stated

HEAT = 0.5  # of a model's own median t_b
COLD = 0.005
SAMPLES = 5
FORMS = 2  # wordings of a fact, and versions without a changed word
# For t_b in a second version of the question: fewer temperatures than part 1's, of which each costs.
COARSE = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.3, 1.7, 2.2, 3.0, 4.5, 7.0)
FRAMES = tuple(frame for frame in spine.FRAMES if "{question}" in frame)
SENTENCES = pd.DataFrame(
    [
        ("asserted", "subject", "false"),
        ("asserted", "nonsense", "nonsense"),
        ("filler", "subject", "filler"),
    ],
    columns=["mode", "about", "arm"],
)
ABOUT = ["model", "fact_id", "relation", "arm", "form", "text", "right"]
Table = pd.DataFrame


def other_words(asked: Table, seed: int = 0) -> Table:
    """FORMS wordings of each fact by lot: part 3's paraphrases where its relation has them, else the
    FRAMES around the question. The facts' columns with the changed question; arm, and form (1, 2,
    ...)."""
    has_paraphrases = asked["relation"].isin(worded.load_paraphrases()["relation"])
    with_paraphrases = asked[has_paraphrases]
    without = asked[~has_paraphrases]
    parts = []
    for frame in FRAMES:
        framed = [frame.format(question=question) for question in without["question"]]
        parts.append(without.assign(question=framed, version=frame))
    if len(with_paraphrases):
        every = worded.paraphrased(with_paraphrases).table
        every = every[every["variant"] > 0].rename(columns={"question_id": "version"})
        parts.append(_asked_as(with_paraphrases, every.assign(fact_id=every["group_id"])))
    return _by_lot(pd.concat(parts, ignore_index=True), "other words", seed)


def no_word_changed(asked: Table, seed: int = 0) -> Table:
    """FORMS of the versions of part 3 in which no word changes, by lot; as `other_words`."""
    originals = asked[["fact_id", "question"]]
    originals = originals.assign(group_id=asked["fact_id"], variant=0)
    versions = floor.unworded(originals).rename(columns={"typography": "version"})
    return _by_lot(_asked_as(asked, versions), "no word changed", seed)


def _asked_as(asked: Table, versions: Table) -> Table:
    """The facts with the questions of `versions` [fact_id] in place of theirs."""
    texts = versions[["fact_id", "question", "version"]]
    return asked.drop(columns="question").merge(texts, on="fact_id")


def _by_lot(every: Table, arm: str, seed: int) -> Table:
    """The first FORMS versions of each fact, in an order by lot."""
    names = every["fact_id"] + "/" + every["version"]
    place = ranks(names, every["fact_id"], seed)
    return every[place < FORMS].assign(
        arm=arm,
        form=place + 1,
    )


def sentences(asked: Table, pool: Table, seed: int = 0) -> Table:
    """Each fact behind the sentences of part 4's copy meter that are in the question's words: false,
    nonsense, filler. As `other_words`, with names, the accepted spellings of the rival: the answer
    that the first two state and the filler does not. Facts of the `pool` lend theirs. Left out are
    facts of relations without a sentence, or without a rival."""
    every = contexts.facts_as_questions(pool)
    mine = every[every["question_id"].isin(asked["fact_id"])]
    texts = meter.contexts(mine, every, meter.load_sentences(), seed=seed)
    texts = texts[texts["words"] == "question"].merge(SENTENCES, on=["mode", "about"])
    texts = texts.rename(columns={"question_id": "fact_id"})
    rows = asked.merge(texts[["fact_id", "arm", "sentence", "names"]], on="fact_id")
    return rows.assign(
        question=rows["sentence"] + ". " + rows["question"],
        form=1,
    )


def changed_answers(model: Model, asked: Table, pool: Table, seed: int = 0) -> Table:
    """The answers to facts in `other_words`, with `no_word_changed` and behind `sentences`
    (`spine.marked_answers`; t_b of the first version without a changed word alone), with arm, form,
    and `says`: whether the answer states the rival (None without one)."""
    plain = no_word_changed(asked, seed)
    is_first = plain["form"] == 1
    parts = [
        other_words(asked, seed),
        plain[~is_first],
        sentences(asked, pool, seed),
    ]
    rest = pd.concat(parts, ignore_index=True)
    first = spine.marked_answers(model, plain[is_first], COARSE, free=True)
    others = spine.marked_answers(model, rest, free=True)
    answers = pd.concat([first, others], ignore_index=True)
    says = []
    for text, names in zip(answers["text"], answers["names"], strict=True):
        says.append(stated(text, names) if isinstance(names, list) else None)
    return answers.assign(says=pd.Series(says, answers.index, dtype=object))


def hot_and_cold(model: Model, asked: Table, median: float, seed: int = 0) -> Table:
    """SAMPLES answers to each fact at HEAT and COLD times a model's `median` t_b: ABOUT."""
    doses = {
        round(HEAT * median, 6): "hot",
        round(COLD * median, 6): "cold",
    }
    drawn = probe.sampled_answers(
        model,
        asked,
        temperatures=[*doses],
        n=SAMPLES,
        max_new_tokens=probe.LONG,
        seed=seed,
    )
    pairs = zip(drawn["text"], accepted_answers(drawn), strict=True)
    drawn["right"] = [stated(text, names) for text, names in pairs]
    drawn["arm"] = drawn["temperature"].map(doses)
    drawn["form"] = drawn["sample"] + 1
    return drawn.merge(asked[["fact_id", "relation"]], on="fact_id")[ABOUT]


def damaged_answers(model: Model, asked: Table, ways: Sequence[Damage]) -> Table:
    """The answers to facts after each change of a model's weights: ABOUT, with the change's label as
    arm, and way, dose, draw."""
    parts = []
    for way in ways:
        other = in_format(damaged(model.name, way), model.prompt_format)
        answers = spine.marked_answers(other, asked, free=True)
        answers = answers.assign(
            model=model.name,
            arm=way.label,
            form=1,
            way=way.way,
            dose=way.dose,
            draw=way.seed,
        )
        parts.append(answers)
    return pd.concat(parts, ignore_index=True)[[*ABOUT, "way", "dose", "draw"]]


def dated_statements(n: int, seed: int = 0) -> Table:
    """What is asked about n facts that held for a time: `schemas.Statements` at two years inside it
    and one on each side, after the question of its own subject (`asked_of` 0) and of a wrong one
    (1)."""
    every = facts.with_wording(facts.load_temporal_facts())
    every = facts.other_objects(every, 0)
    every = facts.other_subjects(every, 1, seed=seed)
    # 1. The years.
    sampled = dates.sample_dates(every, seed=seed)
    sampled = dates.thinned(sampled, n_correct=2, n_incorrect=1)
    years = sampled[sampled["precision"] == "year"]
    years = years[years["label"] != "transitional"]
    # 2. The facts that have one outside, and a wrong subject.
    outside = years.loc[years["label"] == "incorrect", "fact_id"]
    usable = every[every["fact_id"].isin(outside)]
    usable = usable[usable["other_subjects"].map(len) > 0]
    table = facts.sample_facts(usable.reset_index(drop=True), n, seed)
    years = years[years["fact_id"].isin(table["fact_id"])]
    return timing.statements(facts.of_all_subjects(table), years)


def lost_years(model: Model, statements: Table) -> Table:
    """In what share of the pairs of a year inside and one outside the fact's time the fact is lost:
    its object is no likelier inside. A row a fact of `dated_statements` and arm: model, fact_id,
    relation, arm, lost."""
    scores = timing.scored_statements(model, statements)
    parts = []
    for asked_of, arm in enumerate(("own subject", "wrong subject")):
        found = timed.matches(scores[scores["asked_of"] == asked_of])
        found = found[found["precision"] == "year"]
        parts.append(found.assign(arm=arm))
    rows = pd.concat(parts, ignore_index=True).dropna(subset="win_rate")
    rows["lost"] = 1 - rows["win_rate"]
    rows["relation"] = rows["fact_id"].str.partition("/")[0]
    return rows[["model", "fact_id", "relation", "arm", "lost"]]
