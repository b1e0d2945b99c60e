"""What a model lost on the way to another form of it: each fact, beside what asking twice loses.

found = factrobust.flips("base.gguf", ["q4.gguf", "lora/"])            # names (`together.opened`)
found = factrobust.flips("before.jsonl", ["after.jsonl"])               # logs (`datasets.logs`)
found.save("build/flips")                                               # `together.flip_files`

The first model, A, is asked first. Of its known facts the third with the lowest probability, where losses
lie, is asked of each other model; of the rest, and of the facts that A gets wrong, a share drawn by lot.
"""

import copy
import operator
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel

from factrobust import __version__, draws, pairs
from factrobust.datasets import logs
from factrobust.datasets.facts import accepted_answers
from factrobust.decoding import probe
from factrobust.intervals import Interval
from factrobust.models.interface import Model, ModelError, RecordedModel
from factrobust.models.prompts import FORMATS, prompts, render
from factrobust.pairs import Stratum
from factrobust.text import normalise
from factrobust.together.card import (
    QuestionSet,
    chunks,
    named_or_stated,
    number_or_none,
    question_set,
    tell_forecast,
    tell_format,
)
from factrobust.together.opened import (
    alike,
    chosen_format,
    format_for_facts,
    in_format,
    open_model,
    rounded_model,
    short_name,
)

FACTS = 240  # asked of A, unless all are
SURE = 1 / 3  # of the known facts: those of the lowest probability are asked for sure
LOOKS = (0.25, 0.5, 1.0)  # shares of the others after which a condition is looked at
ONCE = (0.5,)  # without a condition
CHUNK = 60  # questions at a time
CHUNK_AGAIN = 23  # questions at a time when A is asked once more, in the opposite order
SIGNS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}
CONDITION = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*(\d+\.?\d*|\.\d+)\s*")
GATED = ("lost", "gained", "churn")
AFTER = ["fact_id", "text", "right", "logprob"]  # of the answers of another model
LOSSES = [  # the columns of `Flips.losses`
    "model",
    "relation",
    "question",
    "accepted",
    "before",
    "probability",
    "after",
    "its_probability",
    "fact_id",
]


class Condition(NamedTuple):
    """NAME OP NUMBER: that a share is above or below a number."""

    name: str  # of GATED
    sign: str  # of SIGNS
    number: float

    def holds(self, share: float | None) -> bool:
        return share is not None and bool(SIGNS[self.sign](share, self.number))

    def is_clear(self, share: "Interval | Share") -> bool:
        """Whether the whole interval lies on one side of the number; of no fact, none does."""
        return share.n > 0 and self.holds(share.low) == self.holds(share.high)


def read_condition(text: str) -> Condition:
    """A condition such as "lost>0.05". ValueError for any other text: nothing of it is run."""
    found = CONDITION.fullmatch(text)
    if not found or found[1] not in GATED or float(found[3]) > 1:
        raise ValueError(
            f"{text!r} is no condition; write one such as lost>0.05, of {', '.join(GATED)}, with one of "
            f"{' '.join(SIGNS)} and a share from 0 to 1"
        )
    condition = Condition(found[1], found[2], float(found[3]))
    if condition.holds(0) == condition.holds(0.5) == condition.holds(1):
        raise ValueError(
            f"{text!r} is no condition: it is {str(condition.holds(0)).lower()} of every share; write "
            "one such as lost>0.05, where 0.05 is 5%"
        )
    return condition


# -- what is told ------------------------------------------------------------------------------------


class Share(BaseModel):
    """A share with its exact interval; n facts were asked of the `of` that it stands for."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    of: int


class Fact(BaseModel):
    """A fact as A was asked it. probability and t_b are those of the name in A's right answer; a
    wrong one has the probability of the whole answer."""

    fact_id: str
    relation: str
    question: str
    accepted: list[str]
    prompt: str
    message: str  # what stands in the user's message, where a prompt is a chat's
    answer: str
    known: bool
    probability: float | None
    t_b: float | None


class Answer(BaseModel):
    """What another model said to a fact, and how many facts of A that stands for.

    probability: of the name in a right answer, else of the whole answer; None where it is not told.
    """

    text: str
    right: bool
    weight: float
    probability: float | None


class Relation(BaseModel):
    """The known facts of one relation that were asked, and how many of them were lost."""

    relation: str
    asked: int
    lost: int


class Side(BaseModel):
    """A model beside A. lost: of A's known facts; gained: of the others; churn: of the facts that both
    get wrong, those with another wrong answer. mcnemar and claim are missing where not all were asked."""

    name: str
    role: Literal["compared", "null"]
    fingerprint: str
    prompt_format: str
    lost: Share
    gained: Share
    churn: Share
    level: float  # of the intervals: above 95% where a condition was looked at several times
    mcnemar: float | None
    claim: pairs.Claim | None
    relations: list[Relation]
    answers: dict[str, Answer]  # by fact_id


class Flips(BaseModel):
    """What other models lost and gained beside A, as the JSON holds it."""

    schema_version: Literal[1] = 1
    made_by: str = f"factrobust {__version__}"
    a: str
    fingerprint: str
    prompt_format: str
    data: str
    data_sha256: str
    condition: str = ""
    notes: list[str]
    facts: list[Fact]
    sides: list[Side]

    @property
    def compared_sides(self) -> list[Side]:
        return [side for side in self.sides if side.role == "compared"]

    @property
    def table(self) -> pd.DataFrame:
        """A row a model and share: model, role, share (of GATED), mean, low, high, n, of."""
        rows = []
        for side in self.sides:
            for name in GATED:
                about = {"model": side.name, "role": side.role, "share": name}
                share: Share = getattr(side, name)
                rows.append(about | share.model_dump())
        return pd.DataFrame(rows).rename(columns={"value": "mean"})

    def turned(self, side: Side, *, known: bool) -> list[tuple[Fact, Answer]]:
        """The facts that a model lost (`known` to A), or gained, with what it said."""
        found = []
        for fact in self.facts:
            answer = side.answers.get(fact.fact_id)
            if answer and fact.known == known and answer.right != known:
                found.append((fact, answer))
        return found

    @property
    def losses(self) -> pd.DataFrame:
        """The facts lost by the models compared, those of the highest probability first: LOSSES."""
        rows = []
        for side in self.compared_sides:
            for fact, answer in self.turned(side, known=True):
                row = (
                    side.name,
                    fact.relation,
                    fact.question,
                    fact.accepted,
                    fact.answer,
                    fact.probability,
                    answer.text,
                    answer.probability,
                    fact.fact_id,
                )
                rows.append(row)
        table = pd.DataFrame(rows, columns=LOSSES)
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    @property
    def lost_by_all(self) -> list[Fact]:
        """The facts that every model compared lost."""
        counts = Counter(self.losses["fact_id"])
        return [fact for fact in self.facts if counts[fact.fact_id] == len(self.compared_sides)]

    @property
    def nothing_known(self) -> bool:
        """Whether A knows none of the facts, so that nothing can be told of what was lost."""
        return not any(fact.known for fact in self.facts)

    @property
    def unclear(self) -> list[str]:
        """The names of the models compared whose interval holds the condition's number."""
        return [name for name, limit, share in self._gated() if not limit.is_clear(share)]

    @property
    def met(self) -> list[str]:
        """The names of the models compared of which the condition is true."""
        return [name for name, limit, share in self._gated() if limit.holds(share.value)]

    def _gated(self) -> Iterator[tuple[str, Condition, Share]]:
        """Each model compared, the condition, and the share that it is about."""
        for side in self.compared_sides if self.condition else ():
            condition = read_condition(self.condition)
            yield side.name, condition, getattr(side, condition.name)

    def save(self, folder: str | Path = "build/flips") -> list[Path]:
        """Write the files of `together.flip_files` into a folder of their own below `folder`."""
        from factrobust.together import flip_files

        return flip_files.write(self, Path(folder).expanduser())


# -- which facts are asked ---------------------------------------------------------------------------


class AskingOrder(NamedTuple):
    """Fact ids in the order of asking: known facts that are asked for sure, then by lot the other
    known facts, and those that A gets wrong."""

    sure: list[str]
    rest: list[str]
    wrong: list[str]

    def upto(self, share: float) -> list[str]:
        """What has been asked once the share of `rest` and of `wrong` is reached."""
        return [*self.sure, *_first(self.rest, share), *_first(self.wrong, share)]


def asking_order(before: pd.DataFrame, seed: int, *, all_facts: bool = False) -> AskingOrder:
    """Which facts are asked of the others, of A's answers (fact_id, right, logprob). Facts whose
    probability nobody told are asked for sure; of `all_facts`, each is."""
    known = before[before["right"]].sort_values("logprob", na_position="first", kind="stable")
    names = known["fact_id"].tolist()
    wrong = before.loc[~before["right"], "fact_id"].tolist()
    n = len(names)
    if not all_facts:
        n_with_logprob = int(known["logprob"].count())
        n_without = n - n_with_logprob
        n = n_without + int(np.ceil(SURE * n_with_logprob))
    return AskingOrder(names[:n], _by_lot(names[n:], seed), _by_lot(wrong, seed))


def _by_lot(names: Sequence[str], seed: int) -> list[str]:
    return sorted(names, key=lambda name: draws.hash48("flips", seed, name))


def _first(names: list[str], share: float) -> list[str]:
    return names[: int(np.ceil(share * len(names)))]


# -- two models in pairs -----------------------------------------------------------------------------


def asked_of_both(before: pd.DataFrame, after: pd.DataFrame) -> pd.DataFrame:
    """The answers of A (_a) and of another model (_b) to the facts that both were asked, [fact_id]."""
    return before.merge(after, on="fact_id", suffixes=("_a", "_b")).set_index("fact_id")


def flip_shares(both: pd.DataFrame, order: AskingOrder, level: float) -> dict[str, Interval]:
    """Lost, gained and churn, of the answers of `asked_of_both` to facts in the order of asking."""
    changed = both["right_a"] != both["right_b"]

    def stratum(names: list[str]) -> Stratum:
        asked = both.index.intersection(names)
        return Stratum(len(names), len(asked), int(changed[asked].sum()))

    known = [stratum(order.sure), stratum(order.rest)]
    unknown = [stratum(order.wrong)]
    wrong = both[~(both["right_a"] | both["right_b"])]
    otherwise = wrong["text_a"].map(normalise) != wrong["text_b"].map(normalise)
    return {
        "lost": pairs.weighted_share(known, level=level),
        "gained": pairs.weighted_share(unknown, level=level),
        "churn": pairs.clopper_pearson(int(otherwise.sum()), len(wrong), level=level),
    }


def side_of(
    model: Any,
    before: pd.DataFrame,
    after: pd.DataFrame,
    order: AskingOrder,
    *,
    role: Literal["compared", "null"] = "compared",
    level: float = 1 - pairs.ALPHA,
    margin: float | None = None,
) -> Side:
    """What a model (its name, fingerprint, prompt_format) lost and gained, of the answers before, and
    after."""
    both = asked_of_both(before, after)
    found = flip_shares(both, order, level)
    both["lost"] = both["right_a"] & ~both["right_b"]
    gained = both["right_b"] & ~both["right_a"]
    counts = int(both["lost"].sum()), int(gained.sum())
    mcnemar: float | None = None
    claim: pairs.Claim | None = None
    if len(both) == len(before):
        mcnemar = pairs.mcnemar(*counts)
        if margin is not None:
            claim = pairs.equivalence(*counts, len(both), margin)
    return Side(
        name=model.name,
        role=role,
        fingerprint=model.fingerprint,
        prompt_format=model.prompt_format,
        lost=_share(found["lost"], len(order.sure) + len(order.rest)),
        gained=_share(found["gained"], len(order.wrong)),
        churn=_share(found["churn"], found["churn"].n),
        level=level,
        mcnemar=mcnemar,
        claim=claim,
        relations=_relations(both[both["right_a"]]),
        answers=_answers(both, order),
    )


def _share(found: Interval, of: int) -> Share:
    value, low, high = map(number_or_none, found[:3])
    return Share(value=value, low=low, high=high, n=found.n, of=of)


def _relations(known: pd.DataFrame) -> list[Relation]:
    """The relations of known facts, that with the most losses first."""
    counts = known.groupby("relation")["lost"].agg(asked="size", lost="sum").reset_index()
    counts = counts.sort_values("lost", ascending=False, kind="stable")
    return [Relation.model_validate(row) for row in counts.to_dict("records")]


def _answers(both: pd.DataFrame, order: AskingOrder) -> dict[str, Answer]:
    weights: dict[str, float] = {}
    for names in order:
        asked = both.index.intersection(names)
        weight = len(names) / max(len(asked), 1)
        weights |= dict.fromkeys(asked, weight)
    found = {}
    for row in both.reset_index().to_dict("records"):
        name = row["fact_id"]
        found[name] = Answer(
            text=row["text_b"].strip(),
            right=row["right_b"],
            weight=weights[name],
            probability=number_or_none(np.exp(row["logprob_b"])),
        )
    return found


def facts_of(before: pd.DataFrame) -> list[Fact]:
    """The facts of A's answers (fact_id, relation, question, object, aliases, prompt, message, text,
    right, logprob)."""
    found = []
    for row, accepted in zip(before.to_dict("records"), accepted_answers(before), strict=True):
        fact = Fact(
            fact_id=row["fact_id"],
            relation=row["relation"],
            question=row["question"],
            accepted=accepted,
            prompt=row["prompt"],
            message=row["message"],
            answer=row["text"].strip(),
            known=row["right"],
            probability=number_or_none(np.exp(row["logprob"])),
            t_b=number_or_none(row["t_b"]) if row["right"] else None,
        )
        found.append(fact)
    return found


# -- models ------------------------------------------------------------------------------------------


def flips(
    a: Any,
    others: Sequence[Any],
    data: str | Path | None = None,
    *,
    fail_if: str = "",
    margin: float | None = None,
    all_facts: bool = False,
    n: int = FACTS,
    seed: int = 0,
    dtype: str | None = None,
) -> Flips:
    """Ask A and each of the `others` the same facts in the same prompt, and tell what was lost and gained.

    Models are names (`together.opened`), models, or all of them logs of runs already made
    (`datasets.logs`): then nothing is asked. `data` is a CSV of one's own
    (`datasets.user_questions`); of longer ones, and of the embedded facts, `n` are drawn by lot,
    unless `all_facts` are asked. `fail_if` is a condition (`read_condition`): each model is asked
    until its interval is clear of it; the intervals allow for the looks. With a `margin` (a share)
    all facts drawn are asked of each model, and a claim is made (`pairs.equivalence`). Beside the
    models stand nulls: A once more in other batches and in the opposite order, and A with weights
    of 8 bits. Raises ModelError, FactsError or ValueError, one sentence, all that can be checked
    before anything is asked.
    """
    condition = read_condition(fail_if) if fail_if.strip() else None
    if margin is not None and not 0 < margin < 1:
        raise ValueError(f"the margin {margin} is no share; give one between 0 and 1, such as 0.02")
    if not others:
        raise ModelError("no model is named to compare with; name one or more behind the first")
    if any(logs.is_log(name) for name in (a, *others)):
        found = _of_logs(a, others, data, margin)
        return found.model_copy(update={"condition": fail_if.strip()})
    # 1. Who is asked what.
    first = open_model(a, dtype)
    every = question_set(data, first.name, seed)
    leading = format_for_facts(first, every.table, chosen_format(a))
    models = []
    for name in others:
        other = open_model(name, dtype)
        chosen = format_for_facts(other, every.table, chosen_format(name) or leading)
        models.append(in_format(other, chosen))
    first = in_format(first, leading)
    models = [alike(model, first) for model in models]
    nulls = [*_nulls(a, first, dtype)]
    notes = _prompt_notes(first, models, every)
    print(*notes, sep="\n")
    # 2. What A knows, and what is asked of the others.
    table = every.table if all_facts else every.table.head(n)
    before = _before(first, table, len(models) + len(nulls))
    is_whole = all_facts or margin is not None
    order = asking_order(before, seed, all_facts=is_whole)
    looks: Sequence[float] = ONCE if condition is None else LOOKS
    if is_whole:
        looks = (1.0,)
    # 3. The others, and then the nulls, of which as much is asked.
    sides = []
    for model in models:
        after, level = _after(model, before, table, order, looks, condition)
        sides.append(side_of(model, before, after, order, level=level, margin=margin))
    most = max(len(side.answers) for side in sides)
    share = next(look for look in looks if len(order.upto(look)) >= most)
    known = int(before["right"].sum())
    asked = [f"{len(table):,} of {len(every.table):,} facts were asked, and {known} are known"]
    if not known:
        asked.append(
            f"{short_name(first.name)} knows none of these facts, so that none can be lost"
        )
    for null in nulls:
        try:
            after, _ = _after(null, before, table, order, (share,), None)
        except ModelError as error:  # such as weights that are no plain numbers: found once loaded
            asked.append(f"{short_name(null.name)} is no null here: {error}")
        else:
            sides.append(side_of(null, before, after, order, role="null", margin=margin))
    print(*asked, sep="\n")
    return Flips(
        a=first.name,
        fingerprint=first.fingerprint,
        prompt_format=first.prompt_format,
        data=every.called,
        data_sha256=every.digest,
        condition=fail_if.strip(),
        notes=[*notes, *asked],
        facts=facts_of(before),
        sides=sides,
    )


def _prompt_notes(first: Model, models: Sequence[Model], every: QuestionSet) -> list[str]:
    """A line about each model: whether its prompts are A's. ModelError if no fact is there."""
    if every.table.empty:
        raise ModelError(f"{every.called} holds no question; write one")
    one = every.table.head(1)
    [sent] = prompts(first, one)
    tell_format(first, first.prompt_format)
    lines = [f"first prompt, as {short_name(first.name)} is sent it: {sent!r}"]
    for model in models:
        [its_own] = prompts(model, one)
        how = "the same prompts and chat template"
        if its_own != sent or first.chat != model.chat:
            how = f"OTHER prompts: {its_own!r}"
        lines.append(
            f"{short_name(model.name)} is sent {how}, with the same settings, in the format "
            f"{model.prompt_format}"
        )
    return lines


def _before(first: Model, table: pd.DataFrame, others: int) -> pd.DataFrame:
    """A's answers. From its second chunk on, when it is loaded, a forecast is printed."""
    parts: list[pd.DataFrame] = []
    left = len(table) * (1 + others * 2 / 3)
    for number, some in enumerate(chunks(table, CHUNK)):
        start = time.monotonic()
        parts.append(named_or_stated(first, some, probe.GRID))
        seconds = (time.monotonic() - start) / len(some)
        left -= len(some)
        if number == 1:
            tell_forecast("if the others are as fast as A", left, seconds)
    asked = pd.concat(parts, ignore_index=True)
    asked["message"] = messages(first.prompt_format, asked)
    return asked.astype({"right": bool})


def messages(prompt_format: str, asked: pd.DataFrame) -> list[str]:
    """What stands in the user's message of a chat, or the whole prompt of other formats."""
    chat = ("", "") if FORMATS[prompt_format].chat else None
    beginnings = [""] * len(asked) if chat else asked["prefix"].tolist()
    return render(prompt_format, asked["question"].tolist(), beginnings, chat)


def _after(
    model: Model,
    before: pd.DataFrame,
    table: pd.DataFrame,
    order: AskingOrder,
    looks: Sequence[float],
    condition: Condition | None,
) -> tuple[pd.DataFrame, float]:
    """The answers of another model, and the level of the intervals. It is asked look by look until the
    interval is clear of the condition; a level of 1 - 5% / looks holds at all looks together."""
    level = 1 - pairs.ALPHA / len(looks)
    parts: list[pd.DataFrame] = []
    done: set[str] = set()
    for look in looks:
        names = [name for name in order.upto(look) if name not in done]
        done.update(names)
        answers = named_or_stated(model, _rows(table, names))
        parts.append(answers[AFTER].astype({"right": bool}))
        found = pd.concat(parts, ignore_index=True)
        now = flip_shares(asked_of_both(before, found), order, level)
        if condition and condition.is_clear(now[condition.name]):
            break
    return found, level


def _rows(table: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The facts of these names, in their order."""
    return table.set_index("fact_id", drop=False).loc[[*names]].reset_index(drop=True)


class Again(Model):
    """A model asked once more: in the opposite order, CHUNK_AGAIN prompts at a time, and recorded
    apart."""

    def __init__(self, model: Model) -> None:
        super().__init__(
            name=f"{model.name}, once more",
            fingerprint=f"{model.fingerprint} again",
            prompt_format=model.prompt_format,
            chat=model.chat,
            listed_chat=model.listed_chat,
            weight_bytes=model.weight_bytes,
            stored_as=model.stored_as,
            lacks=model.lacks,
        )
        self._model = copy.copy(model)
        self._model.fingerprint = self.fingerprint
        if isinstance(self._model, RecordedModel) and isinstance(model, RecordedModel):
            self._model.load = model.loaded  # what is in memory already

    def answer(self, job: Any) -> Iterator[tuple[list[int], list[Any]]]:
        backwards = [*reversed(range(len(job.requests)))]
        for start in range(0, len(backwards), CHUNK_AGAIN):
            chunk = backwards[start : start + CHUNK_AGAIN]
            for indices, values in self._model.answer(job.subset(chunk)):
                yield [chunk[i] for i in indices], list(values)


def _nulls(a: Any, first: Model, dtype: str | None) -> Iterator[Model]:
    """A once more, and A at 8 bits where it has weights that have more."""
    yield Again(first)
    if (at_8 := rounded_model(a, 8, first.prompt_format, dtype)) is not None:
        yield at_8


# -- logs --------------------------------------------------------------------------------------------


def _of_logs(a: Any, others: Sequence[Any], data: Any, margin: float | None) -> Flips:
    """The same of logs: all their common questions are there, so that nothing is sampled."""
    if not all(logs.is_log(name) for name in (a, *others)):
        raise ModelError("a log can be compared with logs only; give a log for each model")
    if data is not None:
        raise ModelError("logs bring their own questions; leave the data out")
    first, *rest = (logs.read_log(name) for name in (a, *others))
    common = logs.common([first, *rest])
    before = _rows(first.table, common)
    order = asking_order(before, 0, all_facts=True)
    sides = []
    for log in rest:
        after = log.table.loc[log.table["fact_id"].isin(common), AFTER]
        sides.append(side_of(log, before, after, order, margin=margin))
    every = max(len(log.table) for log in (first, *rest))
    notes = [
        f"{len(common):,} of {every:,} questions are in all logs, with the same prompts and settings",
        f"right is what the logs mark as {first.metric}; no model was asked, so that no null stands beside",
    ]
    print(*notes, sep="\n")
    return Flips(
        a=first.name,
        fingerprint=first.fingerprint,
        prompt_format="as logged",
        data=first.task,
        data_sha256="",
        notes=notes,
        facts=facts_of(before),
        sides=sides,
    )
