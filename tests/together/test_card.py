"""Cards of models that only say what a rule says, so that every number is known."""

import json
import re
import runpy
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import matplotlib.style
import numpy as np
import pandas as pd
import pytest

from factrobust import command
from factrobust.models.interface import ModelError
from factrobust.paths import DATA
from factrobust.plots import style
from factrobust.tables import FactsError
from factrobust.together import card as cards
from factrobust.together import page

ruled = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ruled.py"))))
CAPITALS, Rule, knows, copies = ruled.CAPITALS, ruled.Rule, ruled.knows, ruled.copies
UNREAD = "unknown, and does not read it"
TRUE = "unknown facts right behind a true sentence"
TWIN = "unknown facts right behind its nonsense twin"
READ = "the difference: read and not copied"
IRRELEVANT = "right behind an irrelevant context"
FALSE = "right behind a false context"
WORDS = "right in other wordings"


def values(card):
    return {m.name: (m.value, m.n) for m in card.measures}


def told(card):
    """How many facts have each verdict, or several."""
    return Counter("; ".join(fact.verdicts) for fact in card.facts)


def only_kenya(question):
    """It knows Kenya, in this wording alone."""
    bare = re.fullmatch("What[^.]*[?]", question)
    return knows("Kenya")(question) if bare else "Paris"


def marked(question):
    """It knows two, where the question ends with its mark."""
    return knows("Kenya", "Peru")(question) if question.endswith("?") else "Paris"


def some_read(question):
    """It knows Kenya, copies where Norway is asked, and reads what is said of Peru and Italy."""
    before, stated, asked = question.rpartition(". What")
    reads = any(name in asked and name in before for name in ("Peru", "Italy"))
    if stated and (reads or "Norway" in asked):
        return copies(question)
    return knows("Kenya")(question)


def number(question):
    """It knows all that asks for a number."""
    return "n" + question.rpartition("number ")[2].partition("?")[0]


CASES = {
    "knows three": (
        knows("Kenya", "Peru", "Italy"),
        {"known": (0.6, 5), WORDS: (1, 3), FALSE: (1, 3)},
        {"holds": 3, UNREAD: 2},
    ),
    "knows nothing": (
        knows(),
        {
            "known": (0, 5),
            TRUE: (0, 5),
            TWIN: (0, 5),
            READ: (0, 5),
        },
        {UNREAD: 5},
    ),
    "says nothing": (
        lambda question: "",
        {"known": (0, 5), TRUE: (0, 5)},
        {UNREAD: 5},
    ),
    # It repeats one of the four wordings, and what any sentence states, whomever that is about: so
    # it is no false context that overrules it.
    "copies": (
        copies,
        {WORDS: (0.75, 5), FALSE: (0, 5), IRRELEVANT: (0, 5)},
        {"lost in some wordings; lost behind a sentence": 5},
    ),
    "repeats what is said of the country": (
        ruled.repeats,
        {WORDS: (1, 5), FALSE: (0, 5), IRRELEVANT: (1, 5)},
        {"overruled by a false context": 5},
    ),
    # Behind any sentence it says Paris, which none states: nothing overrules it.
    "one wording": (
        only_kenya,
        {"known": (0.2, 5), WORDS: (0, 1)},
        {"known in this wording only; lost behind a sentence": 1, UNREAD: 4},
    ),
    "question marks": (
        marked,
        {WORDS: (0.75, 2)},
        {"lost in some wordings": 2, UNREAD: 3},
    ),
    "reads and copies": (
        some_read,
        {TRUE: (0.75, 4), TWIN: (0.25, 4), READ: (0.5, 4)},
        {
            "holds": 1,
            "unknown, but reads it": 2,
            "unknown, and copies it": 1,
            UNREAD: 1,
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_card_of_a_rule(mine, case):
    rule, measures, verdicts = CASES[case]
    made = cards.card(Rule(rule), mine)
    assert {name: values(made)[name] for name in measures} == measures
    assert told(made) == verdicts


def test_numbers_by_hand(mine, capsys):
    made = cards.card(Rule(knows("Kenya", "Peru", "Italy")), mine)
    assert values(made)["kept by the decoder"] == (pytest.approx(np.exp(-0.2 * 0.7)), 3)
    [kenya] = [fact for fact in made.facts if fact.accepted == ["Nairobi"]]
    assert kenya.numbers["t_b"] == pytest.approx(np.log(2) / 0.2, rel=1e-3)
    assert len(kenya.wordings) == 5
    assert {*kenya.contexts} == {"true", "irrelevant", "false"}
    known = made.measures[0]
    least = (1.96 + 0.8416) * 2**0.5 * (known.high - known.low) / 3.92
    assert known.smallest_difference == pytest.approx(least, rel=1e-3)
    assert known.baseline == 0  # five different answers
    assert "fewer than 60 known facts" in made.notes[1]
    assert f"{TRUE}: too few facts, 2, for a number" in made.missing
    assert "questions" in capsys.readouterr().out  # the forecast


def test_a_number_stands_beside_its_placebo(mine):
    """In small letters without a mark nothing is right; behind the nonsense twin one of four is."""
    words = {m.name: m for m in cards.card(Rule(marked), mine).measures}[WORDS]
    assert (words.value, words.baseline) == (0.75, 0)
    made = cards.card(Rule(some_read), mine)
    found = {m.name: m for m in made.measures}
    assert (found[TRUE].value, found[TRUE].baseline) == (0.75, 0.25)
    assert found[READ].baseline == 0
    [peru] = [fact for fact in made.facts if fact.accepted == ["Lima"]]
    assert peru.contexts == {
        "true": ('The answer to "What is the capital of Peru?" is Lima', "Lima"),
        "nonsense": ('The answer to "Blorp" is Lima', "Paris"),
    }


def test_where_nothing_is_read_the_difference_may_be_as_rare_in_either_direction(mine):
    [read] = [m for m in cards.card(Rule(knows()), mine).measures if m.name == READ]
    assert read.value == 0
    assert read.low == -read.high < 0


def test_survival_of_4_bits_stands_beside_that_of_8(mine, monkeypatch):
    """Of three known facts the model of 4 bits knows one, that of 8 bits two."""
    forms = {4: knows("Kenya"), 8: knows("Kenya", "Peru")}
    monkeypatch.setattr(cards, "rounded", lambda name, bits, *_: Rule(forms[bits]))
    monkeypatch.setattr(cards, "stored_as", lambda name: "float16")
    made = cards.card(Rule(knows("Kenya", "Peru", "Italy")), mine)
    [kept] = [m for m in made.measures if m.name == "right at 4 bits"]
    assert kept.value == pytest.approx(1 / 3)
    assert kept.baseline == pytest.approx(2 / 3)
    assert kept.baseline_is == "at 8 bits"
    assert "the weights in the file are float16" in made.notes


def test_a_model_that_cannot_be_tempered_is_sampled(mine):
    lacks = {"temper": "cannot be tempered here", "score": "cannot score here"}
    made = cards.card(Rule(knows("Kenya", "Peru"), lacks=lacks), mine)
    assert values(made)["kept by the decoder"] == (1, 2)
    assert "FRS" not in values(made)
    assert made.missing[:2] == ["cannot be tempered here", "cannot score here"]


@pytest.mark.parametrize(
    ("numbers", "verdicts"),
    [
        (
            {
                "wordings": 1,
                "irrelevant": 1,
                "false": 1,
                "overruled": 0,
                "kept": 0.5,
            },
            "holds",
        ),
        ({"wordings": 0.8, "kept": 1}, "lost in some wordings"),
        ({"kept": 0.49}, "lost at these decoder settings"),
        ({"false": 0, "overruled": 1}, "overruled by a false context"),
        # It was wrong behind the irrelevant sentence as well, or says what nobody stated.
        ({"irrelevant": 0, "false": 0, "overruled": 1}, "lost behind a sentence"),
        ({"irrelevant": 1, "false": 0, "overruled": 0}, "lost behind a sentence"),
        (
            {
                "wordings": 0,
                "false": 0,
                "overruled": 1,
                "yours": 0,
            },
            "known in this wording only; overruled by a false context; lost behind a sentence",
        ),
    ],
)
def test_holds_means_right_in_every_answer_that_was_asked(numbers, verdicts):
    assert "; ".join(cards.verdicts(numbers)) == verdicts


def test_every_verdict_has_an_advice_and_every_measure_a_number_that_cards_hold(mine):
    given = {
        verdict for *_, told in CASES.values() for joined in told for verdict in joined.split("; ")
    }
    assert {*cards.VERDICTS.index} == given | {"unknown", "lost at these decoder settings"}
    assert cards.VERDICTS["advice"].str.len().min() > 0
    made = cards.card(Rule(some_read), mine)
    assert {*cards.MEASURES["number"]} <= {*made.numbers} | {"years", "bits4", "reading"}


# -- what cannot be asked ----------------------------------------------------------------------------


def test_a_budget_that_ends_halfway_is_one_sentence(mine):
    with pytest.raises(ModelError, match="the budget of 7 requests is used up"):
        cards.card(Rule(knows(*CAPITALS), fails_after=7), mine)


def test_an_endpoint_that_is_down_is_one_sentence(mine):
    down = {"url": "http://127.0.0.1:1/v1", "model": "llama", "retries": 0}
    with pytest.raises(ModelError, match=r"no server answers at http://127\.0\.0\.1:1/v1"):
        cards.card(down, mine)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("question,answer\nWho?,\n", "line 2: the answer cell is empty; write the right answer"),
        ("question,answer\n", "no rows"),
        (
            "question,answer,start,end\nWho?,A,1995,1990\n",
            r"line 2: the end .* is before the start",
        ),
    ],
)
def test_a_bad_csv_is_one_sentence_before_anything_is_asked(tmp_path, text, fault):
    (tmp_path / "bad.csv").write_text(text)
    model = Rule(knows("Kenya"))
    with pytest.raises(FactsError, match=fault):
        cards.card(model, tmp_path / "bad.csv")
    assert model.asked == 0


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gemma-3-270n", "no model is called 'gemma-3-270n'"),
        ("gemma-3-270m~melt 4", "weights cannot be changed by 'melt 4'"),
        ("gemma-3-270m~round 1", "round from 2 to 16"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(name, fault):
    with pytest.raises(ModelError, match=fault):
        cards.card(name)


def test_a_folder_without_weights(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(SystemExit) as stopped:
        command.main(["card", str(tmp_path)])
    assert stopped.value.code == 2
    assert "holds no tokenizer" in capsys.readouterr().err


def test_a_model_keeps_its_prompt_format_and_the_one_it_is_asked_in_is_printed(mine, capsys):
    model = Rule(knows("Kenya"), prompt_format="prefix")
    made = cards.card(model, mine)  # its questions have no beginnings of answers
    assert (model.prompt_format, made.prompt_format) == ("prefix", "two-shot")
    assert "rule is asked in the prompt format two-shot, not prefix" in capsys.readouterr().out


# -- which facts are asked ---------------------------------------------------------------------------


def numbered(path, relations):
    """A CSV of facts that `number` knows, of these relations."""
    rows = [f"What is number {i}?,n{i},{name}" for i, name in enumerate(relations)]
    path.write_text("\n".join(["question,answer,relation", *rows]))
    return rows


def test_a_csv_is_sampled_and_the_card_says_of_how_many(tmp_path):
    """120 rows sorted by relation, all known: 60 are asked, of nearly all 20 relations."""
    path = tmp_path / "sorted.csv"
    rows = numbered(path, [f"r{i // 6:02d}" for i in range(120)])
    made = cards.card(Rule(number), path)
    assert len({fact.relation for fact in made.facts}) >= 17
    assert made.notes == [
        "60 of 120 facts were asked and 60 of them are known",
        "60 known facts were not asked under years of another time",
        "60 known facts were not asked with weights of 4 bits",
    ]
    path.write_text("\n".join(["question,answer,relation", *rows[::-1]]))
    assert cards.card(Rule(number), path).facts == made.facts  # whatever their order
    every = cards.card(Rule(number), path, all_facts=True)
    assert every.notes[0] == "120 facts were asked and 120 of them are known"


def test_what_was_not_asked_is_listed_and_a_measure_of_few_is_no_number(tmp_path):
    """Eleven known facts; two share a relation, so that a sentence can state another answer."""
    numbered(tmp_path / "few.csv", ["capital", "capital", *(f"r{i}" for i in range(9))])
    made = cards.card(Rule(number), tmp_path / "few.csv")
    assert values(made)[WORDS] == (1, 11)
    assert not any("context" in m.name for m in made.measures)
    assert f"{FALSE}: too few facts, 2, for a number" in made.missing
    assert "9 known facts were not asked behind a sentence" in made.notes
    assert not any("in other words" in note for note in made.notes)


FRANCE = "Who was the president of France?"


def test_dates_distinguish_questions_and_what_still_holds_has_no_year_after_it(tmp_path):
    path = tmp_path / "dated.csv"
    rows = ["Chirac,1995,2007-05-16", "Sarkozy,2007-05-16,2012", "Macron,2017,"]
    path.write_text("\n".join(["question,answer,start,end", *(f"{FRANCE},{row}" for row in rows)]))
    said = {"In 2001": "Chirac", "In 2009": "Sarkozy", "In 2018": "Macron"}

    class Scores(Rule):
        """An answer in a year inside a time is as likely as one outside."""

        def answer(self, job):
            if job.operation != "score":
                yield from super().answer(job)
                return
            self.years = [request["prompt"].rpartition("Q: ")[2] for request in job.requests]
            yield list(range(len(job.requests))), [np.array([-1.0])] * len(job.requests)

    model = Scores(lambda q: next((a for year, a in said.items() if year in q), "nobody"))
    made = cards.card(model, path)
    assert [fact.known for fact in made.facts] == [True] * 3
    assert min(fact.question for fact in made.facts) == f"In 2001, w{FRANCE[1:]}"
    assert {question.partition(", ")[2] for question in model.years} == {f"w{FRANCE[1:]}\nA:"}
    years = {fact.accepted[0]: fact.numbers.get("years") for fact in made.facts}
    assert years == {"Chirac": 0, "Sarkozy": 0, "Macron": None}  # ties lose
    assert "1 known facts were not asked under years of another time" in made.notes


def test_a_sentence_of_ones_own_stands_before_the_question(mine):
    rows = mine.read_text().splitlines()
    own = [f"{rows[0]},context", *(f"{row},Nobody lives there." for row in rows[1:])]
    mine.write_text("\n".join(own))
    made = cards.card(Rule(lambda q: "" if "Nobody" in q else knows(*CAPITALS)(q)), mine)
    assert {fact.numbers["yours"] for fact in made.facts} == {0}
    assert {fact.contexts["yours"] for fact in made.facts} == {("Nobody lives there.", "")}
    assert {tuple(fact.verdicts) for fact in made.facts} == {("lost behind a sentence",)}


class Slow(Rule):
    """The first answer takes a second more, as if something were loaded, and each 20 ms."""

    now = 0.0

    def answer(self, job):
        self.now += 0 if self.asked else 1
        for each in super().answer(job):
            self.now += 0.02 if job.operation == "generate" else 0
            yield each


def test_a_forecast_is_taken_when_the_model_is_loaded(tmp_path, capsys, monkeypatch):
    """Of 200 facts half are right: 60 known ones take 120 questions, of which 96 are left after the first
    24, and twelve more each are 816. At 20 ms that is .27 minutes; with the loading it were above .8."""
    numbered(tmp_path / "half.csv", ["r"] * 200)
    every = cards.questions(tmp_path / "half.csv", "rule")
    odd = {q: i % 2 for i, q in enumerate(every.table["question"])}
    model = Slow(lambda q: number(q) if odd[q] else "no")
    monkeypatch.setattr(cards, "time", SimpleNamespace(monotonic=lambda: model.now))
    said = cards._until(model, every.table, 60)
    assert (len(said), said["right"].sum()) == (120, 60)
    told = "rule: about 0.3 minutes for 816 questions; what is recorded takes no time"
    assert capsys.readouterr().out.strip() == told


@pytest.mark.parametrize(
    ("rows", "size", "sizes"),
    [(130, 60, [4, 20, 36, 60, 10]), (3, 60, [3]), (7, 3, [3, 3, 1])],
)
def test_chunks_hold_every_row_once(rows, size, sizes):
    parts = [*cards.chunks(pd.DataFrame({"row": range(rows)}), size)]
    assert [*map(len, parts)] == sizes
    assert pd.concat(parts)["row"].tolist() == [*range(rows)]


def test_the_commonest_answer_of_a_relation():
    texts = {
        "fact_id": "x",
        "question": "?",
        "answer": "",
        "known": False,
        "verdicts": [],
    }
    pairs = [("r", "Yes"), ("r", "yes"), ("r", "no"), ("s", "A")]
    facts = [
        cards.Fact(
            relation=name,
            accepted=[answer],
            **texts,
        )
        for name, answer in pairs
    ]
    # Of the others of r, "yes" is as common as "no" for each yes; the only no, and A, are alone.
    assert cards.commonest(facts) == 0.5


# -- files -------------------------------------------------------------------------------------------

NAMES = [
    "run1/checkpoint-500",
    "run2/checkpoint-500",
    "a#b",
    "a~b",
    "it's",
    "modèle",
    "#",
    '"',
    "a b",
    "a-b",
]


def test_every_card_has_files_of_its_own(mine, tmp_path, monkeypatch):
    """Folders of the same last name, names of signs, the folder one is in; and other data."""
    made = cards.card(Rule(knows("Kenya"), "x"), mine)
    stems = {}
    for name in NAMES:
        (tmp_path / name).mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        stems[name] = made.model_copy(update={"model": name}).stem
        monkeypatch.chdir(tmp_path / name)
        stems[name, "."] = made.model_copy(update={"model": "."}).stem
    other = made.model_copy(update={"model": ".", "data": "other.csv", "data_sha256": "2"})
    stems["other data"] = other.stem
    stems["tuned"] = other.model_copy(update={"fingerprint": "tuned"}).stem
    assert len({*stems.values()}) == len(stems)
    assert not any(stem.startswith((".", "-")) for stem in stems.values())
    for run in NAMES[:2]:
        assert stems[run].startswith("checkpoint-500-mine-")
        assert stems[run, "."].startswith("checkpoint-500-mine-")


def test_a_model_of_the_table_that_is_asked_as_usual_has_its_name_alone():
    card = cards.Card.read(DATA / "cards" / "world-s.json")
    assert card.stem == "world-s"
    assert card.model_copy(update={"data": "embedded"}).stem.startswith("world-s-embedded-")
    assert card.model_copy(update={"prompt_format": "prefix"}).stem.startswith("world-s-world-")


def test_a_card_comes_back_from_its_file_unless_it_was_changed(mine, tmp_path):
    made = cards.card(Rule(knows("Kenya", "Peru")), mine)
    path, *_ = made.save(tmp_path / "cards")
    assert cards.Card.read(path) == made
    changed = json.loads(path.read_text())
    changed["facts"][0]["answer"] = "Nairobi!"
    path.write_text(json.dumps(changed))
    with pytest.raises(ModelError, match="does not match its digest"):
        cards.Card.read(path)


def test_a_card_that_says_the_same_is_the_committed_one(mine, tmp_path):
    before = cards.card(Rule(knows("Kenya")), mine).model_copy(update={"commit": "earlier"})
    before = before.model_copy(update={"digest": before.digested()})
    file = tmp_path / "rule.json"
    file.write_text(before.model_dump_json())
    assert cards.card(Rule(knows("Kenya")), mine)._as_committed(file) == before
    other = cards.card(Rule(knows("Peru")), mine)
    assert other._as_committed(file) is other


def test_the_page_is_one_file_and_holds_every_fact(mine):
    made = cards.card(Rule(lambda q: knows("Kenya")(q) + "<b>" * ("Peru" in q)), mine)
    text = page.html(made)
    assert "rule knows 1 of 5 facts that were asked, and 1 of these hold in every answer." in text
    assert "://" not in text
    assert all(fact.question in text for fact in made.facts)
    assert "Paris&lt;b&gt;" in text
    assert "temperature 0.7, top_p 0.9" in text
    assert "revision: " + made.data_sha256 in page.model_index(made)
    with matplotlib.style.context(style.STYLE):
        fig = page.drawn(made)
        fig.draw_without_rendering()
        drawn = [axis.get_tightbbox() for axis in fig.axes]
    assert all(fig.bbox.x0 <= box.x0 and box.x1 <= fig.bbox.x1 for box in drawn)  # no name is cut
    assert all(fig.bbox.y0 <= box.y0 and box.y1 <= fig.bbox.y1 for box in drawn)


@pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's chromium is not installed")
def test_a_click_on_the_page_filters_and_sorts(mine, tmp_path):
    """Five unknown facts, of which the four with a verdict of more words are no plain "unknown"."""
    made = cards.card(Rule(some_read), mine)
    made.facts[0].verdicts = ["unknown"]
    clicks = (
        "<script>only('unknown'); const shown = [...document.querySelectorAll('#facts tbody tr')]"
        ".filter(row => !row.hidden).length;"
        "sort(document.querySelector('#facts th:nth-child(2) button'));"
        "document.title = shown + ' ' + [...document.querySelectorAll('#facts tbody tr')]"
        ".map(row => row.cells[1].textContent).join(' ')</script></html>"
    )
    path = tmp_path / "card.html"
    path.write_text(page.html(made).replace("</html>", clicks), encoding="utf-8")
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    run = subprocess.run(
        [*command, path.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert "<title>1 Havana Lima Nairobi Oslo Rome</title>" in run.stdout


def test_cards_follow_the_committed_schema():
    schema = json.loads((DATA / "cards" / "schema.json").read_text("utf-8"))
    assert schema == cards.Card.model_json_schema()


@pytest.mark.parametrize("path", sorted((DATA / "cards").glob("*-*.json")), ids=lambda p: p.stem)
def test_a_committed_card_is_whole_and_its_page_is_that_of_its_json(path):
    card = cards.Card.read(path)
    assert sum(fact.known for fact in card.facts) >= cards.KNOWN or "taught" in path.stem
    assert all(measure in cards.measured(card) for measure in card.measures)
    written = path.with_suffix(".html").read_text(encoding="utf-8")
    picture = re.compile(r"base64,[^\"]+")  # pixels may differ between processors
    assert picture.sub("", written) == picture.sub("", page.html(card))
    assert path.with_suffix(".yaml").read_text(encoding="utf-8") == page.model_index(card)
