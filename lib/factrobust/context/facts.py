"""Part 4's questions: base questions with a slot, the objects of a category that fill it.

The answers for the other objects of a base question have the same form, so one of them can stand in
the context of a question as a counterfactual (the thesis, section 3.1). Facts, whose truth is
known, are questions of the same form (`facts_as_questions`), with contexts of one sentence
(`known_contexts`).
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from factrobust import draws, schemas, tables
from factrobust.context.rules import right
from factrobust.datasets import facts as fact_tables
from factrobust.datasets.named import EMBEDDED, WORLDS
from factrobust.paths import DATA, ROOT

TRAITS = DATA / "context" / "base_question_traits.csv"
# For the provenance of results.
FILES = (
    DATA / "context" / "base_questions.csv",
    DATA / "context" / "objects.csv",
    TRAITS,
)
COLUMNS = tuple(schemas.ContextQuestions.columns)
CONTEXTS = ("true", "irrelevant", "false")
Fact = dict[Any, Any]  # a row of `facts_as_questions`
Names = list[str]  # accepted spellings of an answer, the one that is written first


_HAS_SLOT = pa.Check.str_contains(
    r"\{object\}",
    error="has no slot; write {object} where the name of an object shall stand",
)
_IS_QUESTION = pa.Check.str_endswith(
    "?",
    error="has no question mark at its end; write one",
)
_NO_OTHER_BRACES = pa.Check.str_matches(
    r"([^{}]|\{object\})*$",
    error="has braces other than those of {object}; remove them",
)
_LINE = r"^(?P<question>[^?]*\??)\s*(?P<prefix>.*)$"  # of the thesis's file
_BEGINS = tables.filled("write the beginning of a sentence that the answer completes")
BASE_SCHEMA = tables.csv_schema(
    ("category", "question", "prefix"),
    category=tables.filled("name the category whose objects are asked about"),
    base_id=tables.filled("write a short unique name, or drop the column"),
    attribute=None,
    question=[_HAS_SLOT, _IS_QUESTION, _NO_OTHER_BRACES],
    prefix=[_BEGINS, _NO_OTHER_BRACES],
    right_answers=tables.one_of(["", "one", "several"], "leave it empty, or write"),
)
OBJECTS_SCHEMA = tables.csv_schema(
    ("object", "category"),
    object=tables.filled("write its name, or delete the line"),
    category=tables.filled("name its category"),
)


def load_context_questions(
    base_path: str | Path = FILES[0],
    objects_path: str | Path = FILES[1],
    *,
    limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Every base question about every object of its category: `schemas.ContextQuestions`.

    `base_path` is a file for `read_base_questions`, `objects_path` a CSV with object and category;
    by default the embedded 100 base questions and 411 objects. answers are empty, because the truth
    is not known. `limit` keeps a seeded sample of so many objects (2 or more) of each base
    question.

    Raises FactsError with file, line and remedy for a base question without a slot or a question
    mark, or a category of fewer than two objects; ValueError for a bad limit.
    """
    draws.need_count("limit", limit, 2)
    base = read_base_questions(base_path)
    if base_path == FILES[0]:
        base["right_answers"] = base["base_id"].map(load_base_question_traits()["right_answers"])
    objects = tables.read_checked(objects_path, OBJECTS_SCHEMA)
    objects = tables.complete_table(objects, OBJECTS_SCHEMA)
    objects["name"] = objects["object"].map(tables.slug)
    tables.check_unique(objects, ["category", "name"], objects_path)
    sizes = base["category"].map(objects["category"].value_counts()).fillna(0).astype(int)
    tables.refuse(
        base.assign(n=sizes, file=str(objects_path)),
        sizes < 2,
        base_path,
        "the category {category!r} has {n} objects in {file}, and a counterfactual is the answer "
        "for another one; add some, or delete its base questions",
    )
    table = base.merge(objects, on="category")
    table["question_id"] = table["base_id"] + "/" + table["name"]
    for column in ("question", "prefix"):
        pairs = zip(table[column], table["object"], strict=True)
        table[column] = [template.replace("{object}", name) for template, name in pairs]
    table["answers"] = [[] for _ in range(len(table))]
    if limit is not None:
        table = table[draws.ranks(table["question_id"], table["base_id"], seed) < limit]
    return table[list(COLUMNS)].reset_index(drop=True)


def load_named_context(
    name: str,
    *,
    limit: int | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Questions by name: "embedded", one of the invented world's sets (`datasets.world`: relations
    as base questions), or "thesis:FOLDER" with base_questions.txt and objects.csv. ValueError for
    another name."""
    if name in WORLDS:
        from factrobust.datasets.world import loaded

        questions = facts_as_questions(loaded(name).table)
        ranks = draws.ranks(questions["question_id"], questions["base_id"], seed)
        return questions[ranks < (limit or len(questions))].reset_index(drop=True)
    if name == EMBEDDED:
        return load_context_questions(limit=limit, seed=seed)
    folder = name.removeprefix("thesis:")
    if folder in ("", name):
        known = ", ".join(map(repr, (EMBEDDED, *WORLDS)))
        raise ValueError(f"questions is {name!r}; write {known} or 'thesis:FOLDER'")
    place = ROOT / Path(folder).expanduser()  # as other paths of profiles: not the kernel's folder
    return load_context_questions(
        place / "base_questions.txt",
        place / "objects.csv",
        limit=limit,
        seed=seed,
    )


def read_base_questions(path: str | Path) -> pd.DataFrame:
    """Return base questions with the columns of `BASE_SCHEMA`, indexed by line.

    A CSV has category, question and prefix, {object} in the question and usually in the prefix;
    base_id ("city-01") may be left out, and so may attribute and right_answers ("one" or
    "several"). A .txt file has lines as the thesis's: "What country is {city} in? {city} is in",
    the category in braces, split at the first question mark. Raises FactsError with file, line and
    remedy.
    """
    path = Path(path)
    base = _thesis_lines(path) if path.suffix == ".txt" else tables.read_checked(path, BASE_SCHEMA)
    numbers = base.groupby("category").cumcount() + 1
    names = base["category"] + "-" + numbers.map("{:02d}".format)
    base = tables.complete_table(base, BASE_SCHEMA, base_id=names)
    tables.check_unique(base, ["base_id"], path)
    return base[list(BASE_SCHEMA.columns)]


def _thesis_lines(path: Path) -> pd.DataFrame:
    lines = pd.Series(tables.read_text(path).splitlines(), dtype=str).str.strip()
    lines.index = pd.RangeIndex(1, len(lines) + 1, name="line")
    lines = lines[lines != ""]
    category = lines.str.extract(r"\{([^{}]*)\}", expand=False).fillna("")
    pairs = zip(lines, category, strict=True)
    slotted = [line.replace(f"{{{name}}}", "{object}") for line, name in pairs]
    base = pd.Series(slotted, index=lines.index, dtype=str).str.extract(_LINE)
    base["category"] = category
    tables.check_table(base, BASE_SCHEMA, path)
    return base


def load_base_question_traits() -> pd.DataFrame:
    """Return traits of the embedded base questions, indexed by base_id: attribute, answer_kind
    ("date", "person", ...), unit (of a number), right_answers ("one", "several")."""
    return tables.read_csv(
        TRAITS,
        dtype=str,
        keep_default_na=False,
        index_col="base_id",
    )


def facts_as_questions(facts: pd.DataFrame) -> pd.DataFrame:
    """Return facts (`datasets.facts.load_facts`) as questions of this part, whose truth is known. A
    relation is a base question, its subjects are the objects. answers are the accepted ones, the
    canonical one first; answer_type is added."""
    facts = facts if "question" in facts else fact_tables.with_questions(facts)
    table = facts.assign(
        question_id=facts["fact_id"],
        category=facts["domain"],
        base_id=facts["relation"],
        attribute=facts["relation"],
        answers=pd.Series(fact_tables.accepted_answers(facts), index=facts.index, dtype=object),
        object=facts["subject"],
        right_answers="",
    )
    return table[[*COLUMNS, "answer_type"]].reset_index(drop=True)


def known_contexts(
    questions: pd.DataFrame,
    pool: pd.DataFrame,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """The CONTEXTS of each question, three rows each: question_id, context, sentence (without a
    full stop), stated (the answer in it).

    "irrelevant" and "false" state the same answer of another fact of the relation, about its own
    subject or about the one asked for: so a model that reads whom a context is about is told from
    one that repeats it. The other fact is drawn from the `pool` (of `facts_as_questions`),
    uniformly among those with the same base_id of which neither accepts the other's answer, by the
    seed and these facts alone. Questions without such a fact are left out.
    """
    alike = facts_by(pool, "base_id")
    rows = []
    for question in questions.to_dict("records"):
        other = another(question, alike.get(question["base_id"], []), seed)
        if other is None:
            continue
        truth = question["answers"][0]
        stated = other["answers"][0]
        contents = {
            "true": (question["prefix"], truth),
            "irrelevant": (other["prefix"], stated),
            "false": (question["prefix"], stated),
        }
        for kind in CONTEXTS:
            prefix, answer = contents[kind]
            rows.append((question["question_id"], kind, f"{prefix} {answer}", answer))
    return pd.DataFrame(rows, columns=["question_id", "context", "sentence", "stated"])


def facts_by(pool: pd.DataFrame, column: str) -> dict[Any, list[Fact]]:
    """The facts of each value of a column."""
    found: dict[Any, list[Fact]] = {}
    for fact in pool.to_dict("records"):
        found.setdefault(fact[column], []).append(fact)
    return found


def another(question: Fact, alike: Sequence[Fact], seed: int) -> Fact | None:
    """Of the facts alike the first by lot of which neither accepts the other's answer."""
    names = tuple(fact["question_id"] for fact in alike)
    lots = draws.by_lot(f"{seed}\n{question['question_id']}\n", names)
    others = (alike[place] for place in lots)
    return next((fact for fact in others if differ(fact["answers"], question["answers"])), None)


def differ(names: Names, others: Names) -> bool:
    """Whether neither of two answers is accepted for the other."""
    return not right(names[0], others) and not right(others[0], names)


# The thesis's names of a result's columns.
THESIS = {
    "Category": "category",
    "Base_Question": "base_id",
    "Thing": "object",
    "Object": "object",
    "base_proba": "p0",
    "base_cf_proba": "p1",
    "ctx_param_proba": "p2",
    "ctx_cf_proba": "p3",
    "ctx_proba": "p4",
}
SCORED = {  # the answer that each perplexity is of
    "p0": "parametric",
    "p1": "counterfactual",
    "p2": "parametric",
    "p3": "counterfactual",
    "p4": "contextual",
}


def read_results(path: str | Path) -> pd.DataFrame:
    """Return results that were computed elsewhere as `schemas.ContextResults`.

    `path` is a CSV with category, base_id, object, parametric, counterfactual, contextual and p0 to
    p3, or the thesis's names for them (THESIS); of Thing and Object the filled one counts. p4, the
    further numbers, model (else the file's name) and question_id may be left out; other columns are
    dropped. In the thesis's older layout the model ends the columns' names ("parametric-llama"),
    and a file may hold several. Raises FactsError with file, line and remedy for a missing column,
    and for a perplexity below 1 of an answer that says something.
    """
    path = Path(path)
    parts = [_results(table, path) for table in _by_model(tables.read_table(path))]
    return pd.concat(parts, ignore_index=True)


def _by_model(table: pd.DataFrame) -> list[pd.DataFrame]:
    """The results of each model whose name ends columns' names, with plain names and a column
    model; the whole table if there is none."""
    columns = table.columns.astype(str).tolist()
    begins = "parametric-"
    models = [name.removeprefix(begins) for name in columns if name.startswith(begins)]
    plain: dict[str, dict[str, str]] = {}  # by model, then by the name in the file
    for model in models:
        ended = {f"{name}-{model}": name for name in (*THESIS, *SCORED.values())}
        plain[model] = {name: ended[name] for name in columns if name in ended}
    of_a_model = {name for names in plain.values() for name in names}
    shared = table[[name for name in columns if name not in of_a_model]]
    parts = []
    for model, names in plain.items():
        numbers = table[list(names)].rename(columns=names)
        parts.append(shared.join(numbers).assign(model=model))
    return parts or [table]


def _results(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The results of one table, as `read_results` gives them."""
    # 1. Our names.
    for name in [name for name in THESIS if name in table]:
        if THESIS[name] in table or table[name].eq("").all():
            table = table.drop(columns=name)
        else:
            table = table.rename(columns={name: THESIS[name]})
    texts = [
        "category",
        "base_id",
        "object",
        "parametric",
        "counterfactual",
        "contextual",
    ]
    missing = [name for name in (*texts, "p0", "p1", "p2", "p3") if name not in table]
    if missing:
        what = f"these columns are missing: {', '.join(missing)}"
        raise tables.FactsError(f"{path}: {what}; add them, by our name or the thesis's.")
    # 2. Perplexities of answers that say something are numbers from 1 up.
    for name in [name for name in SCORED if name in table]:
        answer = SCORED[name]
        numbers = pd.to_numeric(table[name], errors="coerce")
        is_low = ~(numbers >= 1 - 1e-6)  # 1 but for rounding
        says_something = table[answer].str.contains(r"[^\W_]")
        tables.refuse(
            table,
            is_low & says_something,
            path,
            f"the perplexity {name} of the answer {{{answer}!r}} is {{{name}!r}}, and not a number "
            "from 1 up; compute it, or delete the row",
        )
    # 3. What may be left out.
    if "model" not in table:
        table["model"] = path.stem
    if "question_id" not in table:
        table["question_id"] = table["base_id"] + "/" + table["object"].map(tables.slug)
    table = table.reindex(columns=list(schemas.ContextResults.columns)).reset_index(drop=True)
    for name in table.columns.difference(["model", "question_id", *texts]):
        table[name] = pd.to_numeric(table[name], errors="coerce")
    return table


def with_questions_of(questions: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """The questions, and those that results computed elsewhere are answers to, whose truth is not
    known."""
    new = results[~results["question_id"].isin(questions["question_id"])]
    new = new[["question_id", "base_id"]].drop_duplicates("question_id")
    no_answers: Any = pd.Series([[]] * len(new), new.index, dtype=object)
    new = new.assign(right_answers="", answers=no_answers)
    return pd.concat([questions, new], ignore_index=True)
