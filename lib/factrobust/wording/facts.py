"""Questions that ask for the same thing in other words: paraphrases of facts, and groups of your
own."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pandera.pandas as pa

from factrobust import schemas, tables
from factrobust.datasets import facts as fact_tables
from factrobust.datasets import named, official, world
from factrobust.draws import hash48, in_turns
from factrobust.paths import DATA

COLUMNS = tuple(schemas.Questions.columns)
QUESTIONS_SCHEMA = tables.csv_schema(
    ("group_id", "question", "answers"),
    group_id=tables.filled("give the questions that belong together one name"),
    question=tables.filled("write the question, or delete the line"),
    answers=pa.Check.str_contains(
        "[^| ]",
        error="is no answer; write accepted ones, joined by |",
    ),
    question_id=None,
    prefix=None,
    relation=tables.filled("name a category, or drop the column"),
    popularity=tables.number("write one such as 1200, or leave it empty"),
)


def load_paraphrases() -> pd.DataFrame:
    """Return the templates of PopQA's 16 relations, 3 to 10 each: relation, paraphrase
    (with {subject} once)."""
    return tables.read_csv(DATA / "paraphrases.csv")


def paraphrased(facts: pd.DataFrame) -> tables.Loaded:
    """Each fact's own question (variant 0), then its paraphrases (1, 2, ...), `question_groups`.
    The prefix is the fact's, and a question of its own is kept. Popularity is NaN, unless the facts
    have a log_popularity (the frequency of a name of several words, `facts.csv`'s, is a guess)."""
    # 1. The facts' own questions.
    originals = facts if "question" in facts else fact_tables.with_questions(facts)
    if "log_popularity" not in facts:
        originals = originals.assign(popularity=np.nan, log_popularity=np.nan)
    originals = originals.assign(
        group_id=originals["fact_id"],
        variant=0,
        answers=pd.Series(
            fact_tables.accepted_answers(originals),
            index=originals.index,
            dtype=object,
        ),
    )
    originals = originals[["subject", *COLUMNS[1:]]]
    # 2. The same in other words.
    wordings = load_paraphrases()
    wordings = wordings.assign(variant=wordings.groupby("relation").cumcount() + 1)
    rows = originals.drop(columns="variant").merge(wordings, on="relation")
    # "Name the father of Martin Luther King Jr." has one full stop.
    ends_twice = rows["subject"].str.endswith(".") & rows["paraphrase"].str.endswith("{subject}.")
    texts = rows["paraphrase"].mask(
        ends_twice,
        rows["paraphrase"].str.removesuffix("."),
    )
    rows["question"] = list(map(fact_tables.worded, texts, rows["subject"]))
    return question_groups(pd.concat([originals, rows], ignore_index=True))


def load_questions(path: str | Path | None = None) -> tables.Loaded:
    """Return your own questions, as `question_groups` does; without a path the embedded facts with
    paraphrases.

    The CSV needs group_id, question and answers (joined by |, the canonical one first). It may have
    relation ("own" without it), popularity (such as page views), prefix and question_id. A group's
    first question is variant 0; its rows agree in answers, relation and popularity. log_popularity
    is NaN for 0 or none. Raises FactsError with file and line for a bad row, and for a group of one
    question.
    """
    if path is None:
        return paraphrased(fact_tables.load_facts(relations=load_paraphrases()["relation"]))
    frame = tables.read_checked(path, QUESTIONS_SCHEMA)
    frame["variant"] = frame.groupby("group_id").cumcount()
    names = _names(frame)
    frame = tables.complete_table(
        frame,
        QUESTIONS_SCHEMA,
        question_id=names,
        relation="own",
    )
    check_agreement(frame, ["answers", "relation", "popularity"], path)
    tables.check_unique(frame, ["question_id"], path)
    frame["answers"] = frame["answers"].map(_accepted)
    frame["popularity"] = pd.to_numeric(frame["popularity"]).astype(float)
    frame["log_popularity"] = fact_tables.log_or_nan(frame["popularity"])
    return question_groups(frame)


def _accepted(cell: str) -> list[str]:
    """The answers of a cell, each once."""
    answers = map(str.strip, cell.split("|"))
    return list(dict.fromkeys(filter(None, answers)))


def check_agreement(
    frame: pd.DataFrame,
    columns: Sequence[str],
    path: str | Path,
) -> None:
    """Raise FactsError for the first row that differs from its group's first in one of the
    columns."""
    for name in columns:
        differs = frame[name] != frame.groupby("group_id")[name].transform("first")
        what = f"the {name} {{{name}!r}} differs from that of the first question of {{group_id!r}}"
        tables.refuse(
            frame,
            differs,
            path,
            f"{what}; make them equal, or split the group",
        )


def _names(frame: pd.DataFrame) -> pd.Series:
    return frame["group_id"] + "#" + frame["variant"].astype("str")


def question_groups(frame: pd.DataFrame) -> tables.Loaded:
    """The table `schemas.Questions`, group by group as they first come, then by variant. A missing
    question_id is made of the group's and the variant. Counts: repeated_questions (left out) and
    no_popularity (groups). Raises FactsError for a group of one question."""
    place = frame.groupby("group_id", sort=False).ngroup()
    frame = frame.assign(place=place).sort_values(["place", "variant"])
    if "question_id" not in frame:
        frame["question_id"] = _names(frame)
    is_repeated = frame.duplicated(["group_id", "question"])
    table = frame.loc[~is_repeated, list(COLUMNS)].reset_index(drop=True)
    sizes = table.groupby("group_id", sort=False).size()
    single = sizes[sizes == 1].index
    if single.size:
        raise tables.FactsError(
            f"{single.size} of {sizes.size} groups have one question only, {single[0]!r} first: "
            "give each a paraphrase in other words, or leave them out."
        )
    is_unknown = table["log_popularity"].isna()
    counts = {
        "repeated_questions": int(is_repeated.sum()),
        "no_popularity": int(table.loc[is_unknown, "group_id"].nunique()),
    }
    return tables.Loaded(table, counts)


def sample_groups(questions: pd.DataFrame, limit: int, seed: int = 0) -> pd.DataFrame:
    """Keep `limit` whole groups, a seeded sample spread evenly over relations."""
    first = questions.drop_duplicates("group_id").rename(columns={"group_id": "fact_id"})
    names = in_turns(first, limit, seed, ["relation"])["fact_id"][:limit]
    return questions[questions["group_id"].isin(names)].reset_index(drop=True)


def describe(questions: pd.DataFrame) -> pd.DataFrame:
    """Table 1 of paper 3, a row a relation and "all": questions (groups), alternatives (at most),
    total."""
    sizes = questions.groupby(["relation", "group_id"]).size()
    table = sizes.groupby("relation").agg(["size", "max", "sum"])
    table.columns = ["questions", "alternatives", "total"]
    table["alternatives"] -= 1  # the original is none
    table.loc["all"] = table.sum().drop("alternatives")
    return table.astype("Int64")


def quality_pairs(questions: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    """Each original question beside its paraphrases, and beside two questions that are none.

    Columns: group_id, relation, pair, original, question. The pair "paraphrase" has a row a
    paraphrase; "other subject" asks the same about another subject of the relation; "other
    relation", of embedded facts only, asks something else about the subject, in a relation that
    shares a subject; where there is none, any other asks "nonsense". Draws go by names.
    """
    originals = questions[questions["variant"] == 0]
    paraphrases = questions[questions["variant"] > 0].assign(pair="paraphrase")
    pairs = pd.concat(
        [paraphrases, _unlike(originals, seed), _of_other_subjects(originals, seed)],
        ignore_index=True,
    )
    first = originals.set_index("group_id")["question"]
    pairs["original"] = pairs["group_id"].map(first)
    return pairs[["group_id", "relation", "pair", "original", "question"]]


def _of_other_subjects(originals: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Each original with the question about the next subject of its relation, in a drawn circle."""
    lots = [hash48(seed, name) for name in originals["group_id"]]
    order = originals.assign(at=lots).sort_values(["relation", "at"])
    relations = order.groupby("relation")["question"]
    others = order.assign(
        pair="other subject",
        question=relations.transform(lambda questions: np.roll(questions, 1)),
    )
    return others[others["question"] != order["question"]]  # not a relation's only group


def _unlike(originals: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Each original of an embedded fact with a question about its subject in another relation."""
    facts = fact_tables.load_facts(relations=load_paraphrases()["relation"])
    relations = facts["relation"].unique()
    wording = fact_tables.load_relations()["question"]
    # 1. The relations that share a subject with each.
    both = facts.merge(facts, on="subject").query("relation_x != relation_y")
    kin = both.groupby("relation_x")["relation_y"].unique()
    # 2. One of them by lot, or any other.
    subjects = facts.set_index("fact_id")["subject"]
    known = originals[originals["group_id"].isin(subjects.index)]
    drawn = []
    for name, relation in zip(known["group_id"], known["relation"], strict=True):
        others = {*kin.get(relation, relations)} - {relation}
        drawn.append(min(others, key=partial(hash48, seed, name)))
    elsewhere = map(
        fact_tables.worded,
        wording[drawn],
        subjects[known["group_id"]],
    )
    has_kin = known["relation"].isin(kin.index)
    return known.assign(
        pair=np.where(has_kin, "other relation", "nonsense"),
        question=list(elsewhere),
    )


def load_named_questions(name: str = named.EMBEDDED) -> tables.Loaded:
    """Return groups of paraphrased questions by the name of a set: `schemas.Questions`. ValueError
    for an unknown name."""
    return named.load_set(name, load_questions, _of_world, LOADERS)


def _of_world(name: str) -> tables.Loaded:
    """A set of the invented world: a group a fact, a variant a wording."""
    facts = world.asked(name, every_wording=True)
    groups = facts.assign(
        group_id=facts["fact_id"],
        prefix=facts.groupby("fact_id")["prefix"].transform("first"),
        answers=facts["object"].map(lambda answer: [answer]),
    )
    return question_groups(groups)


# What Mac OS Roman makes of the first bytes of the letters that are common in names: é becomes √©.
GARBLED = "¬√ƒ≈∆»·‚"
_POPQA_TP = official.SHARED | dict.fromkeys(("paraphrase", "template_id"), official.FILLED)


def popqa_tp(files: list[Path], source: str) -> tables.Loaded:
    """PopQA-TP (118,643 questions in 14,267 groups): a table `schemas.Questions`.

    prefix and popularity are PopQA's, of the hub or its cache; for a file those of popQA.tsv (or
    test.tsv) in its folder, which then also chooses the groups; else prefix is empty and popularity
    NaN.

    Two faults of the published file are mended: letters beyond ASCII are garbled (UTF-8 read as Mac
    OS Roman: "Deti√®ge" for Detiège), and template 4 of `country` repeats the original question.
    variant is the template_id. Counts: garbled_questions, repeated_questions, not_in_facts and
    no_popularity (groups).
    """
    (path,) = files
    # 1. The file's rows.
    rows = official.read_rows(path, _POPQA_TP)
    tables.check_unique(rows, ["prop", "id", "template_id"], path)
    rows["relation"] = rows["prop"].str.replace(" ", "_")
    rows["group_id"] = rows["relation"] + "/" + rows["id"]
    rows["variant"] = rows["template_id"].astype(int)
    check_agreement(rows, ["possible_answers"], path)
    # 2. What PopQA knows of them.
    facts = _popqa_beside(path, source, rows["group_id"])
    is_known = rows["group_id"].isin(facts.index)
    if not is_known.any():
        such = f"such as {facts.index[0]!r}"
        raise tables.FactsError(f"{path} has none of the facts of PopQA, {such}.")
    not_in_facts = int(rows.loc[~is_known, "group_id"].nunique())
    rows = rows[is_known].join(facts, on="group_id")
    # 3. Letters mended.
    rows["question"] = rows["paraphrase"].map(_mended)
    is_garbled = rows["question"] != rows["paraphrase"]
    rows["answers"] = [
        [_mended(text) for text in official.texts_of(cell)] for cell in rows["possible_answers"]
    ]
    loaded = question_groups(rows)
    counts = {
        "not_in_facts": not_in_facts,
        "garbled_questions": int(is_garbled.sum()),
    }
    return loaded._replace(counts=counts | loaded.counts)


def _popqa_beside(path: Path, source: str, groups: pd.Series) -> pd.DataFrame:
    """prefix, popularity and log_popularity by group_id: PopQA's, or empty ones."""
    beside = [path.with_name(name) for name in official.POPQA_FILES]
    beside = [file for file in beside if file.is_file()]
    of_hub = "@" in source.partition(",")[0]
    if beside or of_hub:
        facts = official.load_official("popqa", *beside[:1]).table.set_index("fact_id")
    else:
        facts = pd.DataFrame({"prefix": ""}, index=groups.unique())
    return facts.reindex(columns=["prefix", "popularity", "log_popularity"])


def _mended(text: str) -> str:
    """UTF-8 that was read as Mac OS Roman, read rightly: where the whole text is such, and has a
    typical letter or at least three wrong ones, since right texts may pass too ("L’État")."""
    try:
        whole = text.encode("mac_roman").decode()
    except UnicodeError:
        return text
    is_garbled = len(text) - len(whole) >= 3 or any(letter in text for letter in GARBLED)
    return whole if is_garbled else text


def popqa_paraphrased(files: list[Path], source: str) -> tables.Loaded:
    """PopQA's own questions (`official.popqa`) with our paraphrases."""
    facts, counts, *_ = official.popqa(files, source)
    loaded = paraphrased(facts)
    return loaded._replace(counts=counts | loaded.counts)


LOADERS = {"popqa_tp": popqa_tp, "popqa": popqa_paraphrased}
