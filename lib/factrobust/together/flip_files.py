"""What flips are told in: a page, JSON, a table, JUnit's XML, and the facts lost, to be asked elsewhere."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd

from factrobust import tables
from factrobust.paths import DATA, write_atomically
from factrobust.together import page
from factrobust.together.flips import Answer, Fact, Flips, Share, Side
from factrobust.together.opened import short_name

FOLDER = DATA / "cards"
PAGE = "flips.html.jinja"
TASKS = ("lost_lm_eval.yaml", "lost_lm_eval.py", "lost_inspect.py")  # copied as they are
LOST = ["question", "answer", "aliases", "relation", "prompt", "message", "before", "after"]
LONG = 60  # letters of names in a folder's
SHOWN = 20  # facts lost that are shown on a screen


def write(found: Flips, folder: Path) -> list[Path]:
    """Write all files into folder/STEM, where STEM is of these models, data and settings alone."""
    place = folder / stem(found)
    files = {
        "index.html": html(found).encode(),
        "flips.json": (found.model_dump_json(indent=1) + "\n").encode(),
        "flips.csv": found.table.to_csv(index=False).encode(),
        "junit.xml": junit(found),
        "lost.csv": lost_csv(found).encode(),
    }
    files |= {name: (FOLDER / "tasks" / name).read_bytes() for name in TASKS}
    place.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        write_atomically(place / name, content)
    return [place / name for name in files]


def stem(found: Flips) -> str:
    """The names of the models without their folders, and eight digits of all that was asked."""
    sides = [
        [s.name, s.fingerprint, s.prompt_format, s.claim and s.claim.margin, sorted(s.answers)]
        for s in found.sides
    ]
    about = [
        found.a,
        found.fingerprint,
        found.prompt_format,
        found.data_sha256,
        found.condition,
        sides,
    ]
    digits = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:8]
    first, *rest = (
        tables.slug(short_name(name)) for name in (found.a, *(s.name for s in found.compared_sides))
    )
    return f"{first[:LONG]}-to-{'-'.join(rest)[:LONG]}-{digits}"


def share_in_words(share: Share) -> str:
    """ "12 in 100 [5, 23], n = 67 of 67", or that nothing was asked."""
    if share.value is None or share.low is None or share.high is None:
        return "none to ask"
    values = (100 * x for x in (share.value, share.low, share.high))
    return "{:.0f}% [{:.0f}, {:.0f}], n = {} of {}".format(*values, share.n, share.of)


def headline(found: Flips) -> str:
    """The sentence that answers: is it still fine?"""
    nulls = [s for s in found.sides if s.role == "null" and s.lost.value is not None]
    most = max((side.lost.value or 0 for side in nulls), default=0)
    again = " or ".join("again" if s.name.endswith("once more") else "at 8 bits" for s in nulls)
    beside = (
        f"; asking {short_name(found.a)} {again} loses at most {100 * most:.0f}%" if nulls else ""
    )
    if found.nothing_known:
        verdict = f"Cannot tell: {short_name(found.a)} knows none of these facts"
    elif found.condition:
        verdict = _of_condition(found)
    elif any(side.claim for side in found.compared_sides):
        verdict = _of_claims(found.compared_sides)
    elif all(side.lost.value == 0 for side in found.compared_sides):
        verdict = "Yes, as far as was asked: no known fact is lost"
    else:
        worst = max(found.compared_sides, key=lambda side: side.lost.value or 0)
        sure = (worst.lost.low or 0) > most
        answer = "No" if sure else "Too few facts to tell"
        lost = share_in_words(worst.lost)
        verdict = f"{answer}: of the known facts {short_name(worst.name)} loses {lost}"
    return f"{verdict}{beside}."


def _of_condition(found: Flips) -> str:
    """Of which models the condition is true, and of which the interval leaves that open."""
    names = ", ".join(map(short_name, found.met))
    verdict = f"No: {found.condition} is true of {names}" if names else ""
    verdict = verdict or f"Yes: {found.condition} is true of none"
    open_yet = ", ".join(map(short_name, found.unclear))
    return f"{verdict}, but the interval of {open_yet} holds the limit" if open_yet else verdict


def _of_claims(compared: Sequence[Side]) -> str:
    """The claim on each model, beside what it lost: gains make a share right the same, and no loss
    good."""
    verdicts = {side.claim.verdict for side in compared if side.claim}
    answer = "No" if "worse" in verdicts else "Cannot tell" if "cannot tell" in verdicts else "Yes"
    claims = []
    for side in compared:
        lost = f"of the known facts lost: {share_in_words(side.lost)}"
        claims.append(f"{short_name(side.name)}: {claim_in_words(side)}; {lost}")
    return f"{answer}; {'; '.join(claims)}"


def claim_in_words(side: Side) -> str:
    """What `pairs.equivalence` says of the share right, or "" without a margin."""
    if side.claim is None:
        return ""
    claim = side.claim
    points = f"{100 * claim.margin:g} points"
    risen = f"share right {100 * (0 - claim.drop):+.0f} points"
    p = f"p = {claim.p_value:.3f}"  # of the two one-sided tests; of worse and better it is McNemar's
    sentences = {
        "equivalent": f"equivalent within {points} ({risen}, {p})",
        "worse": f"worse ({risen})",
        "better": f"better ({risen})",
        "cannot tell": f"cannot tell whether equivalent within {points}, ask {claim.more:,} more ({risen}, {p})",
    }
    return sentences[claim.verdict]


def html(found: Flips) -> str:
    """The page, without a link to another host."""
    template = page.templates().get_template(PAGE)
    return template.render(
        found=found,
        headline=headline(found),
        title=f"{short_name(found.a)} and what became of it",
        turned={"lost": _turned(found, known=True), "gained": _turned(found, known=False)},
        by_all=found.lost_by_all if len(found.compared_sides) > 1 else [],
        short=short_name,
        words=share_in_words,
        claim=claim_in_words,
    )


def _turned(found: Flips, *, known: bool) -> list[tuple[str, Fact, Answer]]:
    """`Flips.turned` of all models compared, with their names; the likeliest answers first."""
    rows = [
        (short_name(side.name), fact, answer)
        for side in found.compared_sides
        for fact, answer in found.turned(side, known=known)
    ]
    return sorted(rows, key=lambda row: -(row[1].probability or 0))


def junit(found: Flips) -> bytes:
    """JUnit's XML: a test a model compared, failed where the condition is met."""
    suite = ElementTree.Element("testsuite", name=f"flips of {short_name(found.a)}")
    suite.set("tests", str(len(found.compared_sides)))
    suite.set("failures", str(len(found.met)))
    for side in found.compared_sides:
        named = {
            "classname": "factrobust.flips",
            "name": f"{short_name(side.name)}: {found.condition or 'lost'}",
        }
        case = ElementTree.SubElement(suite, "testcase", named)
        report = f"lost {share_in_words(side.lost)}; gained {share_in_words(side.gained)}"
        report += f"; {claim_in_words(side)}" if side.claim else ""
        if side.name in found.met:
            failure = ElementTree.SubElement(
                case, "failure", message=f"{found.condition} is true: {report}"
            )
            failure.text = "\n".join(
                f"{fact.question} {fact.answer!r} became {answer.text!r}"
                for fact, answer in found.turned(side, known=True)
            )
        ElementTree.SubElement(case, "system-out").text = report
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True) + b"\n"


def lost_csv(found: Flips) -> str:
    """The facts that a model compared lost, each once: a CSV that `factrobust`, and the task files beside
    it, can ask."""
    after: dict[str, dict[str, str]] = {}
    for side in found.compared_sides:
        for fact, answer in found.turned(side, known=True):
            after.setdefault(fact.fact_id, {})[short_name(side.name)] = answer.text
    rows = [
        (
            fact.question,
            fact.accepted[0],
            json.dumps(fact.accepted[1:], ensure_ascii=False),
            fact.relation,
            fact.prompt,
            fact.message,
            fact.answer,
            json.dumps(after[fact.fact_id], ensure_ascii=False),
        )
        for fact in found.facts
        if fact.fact_id in after
    ]
    return pd.DataFrame(rows, columns=LOST).to_csv(index=False)


def screen_table(found: Flips) -> str:
    """The table for a screen (p: McNemar's, where all were asked), then the facts lost."""
    rows = [
        (
            short_name(side.name),
            side.role,
            share_in_words(side.lost),
            share_in_words(side.gained),
            share_in_words(side.churn),
            "" if side.mcnemar is None else f"{side.mcnemar:.3g}",
            claim_in_words(side),
        )
        for side in found.sides
    ]
    header = (
        "model",
        "",
        "lost, of the known",
        "gained, of the others",
        "wrong otherwise",
        "p",
        "",
    )
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    for lost in found.losses.head(SHOWN).to_dict("records"):
        change = f"{lost['before']!r} became {lost['after']!r}"
        lines.append(f"lost by {short_name(lost['model'])}: {lost['question']} {change}")
    if len(found.losses) > SHOWN:
        lines.append(f"and {len(found.losses) - SHOWN} more, on the page")
    return "\n".join(lines)
