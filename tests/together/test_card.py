"""Cards of models that only say what a rule says, so that every number is known."""

import json
import re
import shutil
import subprocess
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from frames import frame
from ruled import CAPITALS, Rule, copies, knows, number, repeats

from factrobust.models.interface import ModelError
from factrobust.paths import DATA
from factrobust.together import card as cards
from factrobust.together import page


@pytest.fixture
def card_of(mine):
    """A function for the card of a rule that is asked about five capitals."""
    return lambda rule, **about: cards.card(Rule(rule, **about), mine)


def measures(card):
    """Each in words: its value, its baseline (0 if there is none) and the number of facts."""
    return {
        f"{m.name}: {m.value:.4g} beside {m.baseline or 0:.4g}, n = {m.n}" for m in card.measures
    }


def verdicts(card):
    """How many facts have each verdict, or several."""
    together = ["; ".join(fact.verdicts) for fact in card.facts]
    return {f"{n} {verdict}" for verdict, n in Counter(together).items()}


def fact_of(card, answer):
    [fact] = [fact for fact in card.facts if fact.accepted == [answer]]
    return fact


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


CASES = [
    (
        knows("Kenya", "Peru", "Italy"),
        """
        known: 0.6 beside 0, n = 5
        right in other wordings: 1 beside 1, n = 3
        kept by the decoder: 0.8694 beside 1, n = 3
        right behind a false context: 1 beside 1, n = 3
        """,  # kept: e^(-0.2 x 0.7)
        """
        3 holds
        2 unknown, and does not read it
        """,
    ),
    (
        knows(),
        """
        known: 0 beside 0, n = 5
        unknown facts right behind a true sentence: 0 beside 0, n = 5
        unknown facts right behind its nonsense twin: 0 beside 0, n = 5
        the difference: read and not copied: 0 beside 0, n = 5
        """,
        "5 unknown, and does not read it",
    ),
    (
        lambda question: "",
        """
        known: 0 beside 0, n = 5
        unknown facts right behind a true sentence: 0 beside 0, n = 5
        """,
        "5 unknown, and does not read it",
    ),
    # It repeats one of the four wordings, and what any sentence states, whomever that is about: so
    # it is no false context that overrules it.
    (
        copies,
        """
        right in other wordings: 0.75 beside 1, n = 5
        right behind an irrelevant context: 0 beside 1, n = 5
        right behind a false context: 0 beside 0, n = 5
        """,
        "5 lost in some wordings; lost behind a sentence",
    ),
    (
        repeats,
        """
        right in other wordings: 1 beside 1, n = 5
        right behind an irrelevant context: 1 beside 1, n = 5
        right behind a false context: 0 beside 1, n = 5
        """,
        "5 overruled by a false context",
    ),
    # Behind any sentence it says Paris, which none states: nothing overrules it.
    (
        only_kenya,
        """
        known: 0.2 beside 0, n = 5
        right in other wordings: 0 beside 0, n = 1
        """,
        """
        1 known in this wording only; lost behind a sentence
        4 unknown, and does not read it
        """,
    ),
    # In small letters without a mark nothing is right.
    (
        marked,
        "right in other wordings: 0.75 beside 0, n = 2",
        """
        2 lost in some wordings
        3 unknown, and does not read it
        """,
    ),
    (
        some_read,
        """
        unknown facts right behind a true sentence: 0.75 beside 0.25, n = 4
        unknown facts right behind its nonsense twin: 0.25 beside 0, n = 4
        the difference: read and not copied: 0.5 beside 0, n = 4
        """,
        """
        1 holds
        2 unknown, but reads it
        1 unknown, and copies it
        1 unknown, and does not read it
        """,
    ),
]


def lines(text):
    return {line.strip() for line in text.strip().splitlines()}


@pytest.mark.parametrize(("rule", "numbers", "counts"), CASES)
def test_the_card_of_a_rule(card_of, rule, numbers, counts):
    made = card_of(rule)
    assert lines(numbers) <= measures(made)
    assert lines(counts) == verdicts(made)


def test_every_verdict_is_given_and_has_an_advice():
    given = {"unknown", "lost at these decoder settings"}
    for _, _, counts in CASES:
        for line in lines(counts):
            _, _, words = line.partition(" ")
            given |= {*words.split("; ")}
    assert {*cards.VERDICTS.index} == given
    assert cards.VERDICTS["advice"].str.len().min() > 0


def test_every_measure_is_of_a_number_that_cards_hold(card_of):
    held = {"years", "bits4", "reading", *card_of(some_read).numbers}
    assert held >= {*cards.MEASURES["number"]}


def test_numbers_by_hand(card_of, capsys):
    """Its questions have no beginnings of answers, as its own format has."""
    made = card_of(knows("Kenya", "Peru", "Italy"), prompt_format="prefix")
    kenya = fact_of(made, "Nairobi")
    assert kenya.numbers["t_b"] == pytest.approx(np.log(2) / 0.2, rel=1e-3)
    assert len(kenya.wordings) == 5
    assert {*kenya.contexts} == {"true", "irrelevant", "false"}
    known = made.measures[0]
    least = (1.96 + 0.8416) * 2**0.5 * (known.high - known.low) / 3.92
    assert known.smallest_difference == pytest.approx(least, rel=1e-3)
    assert "fewer than 60 known facts" in made.notes[1]
    few = "unknown facts right behind a true sentence: too few facts, 2, for a number"
    assert few in made.missing
    assert made.prompt_format == "two-shot"
    printed = capsys.readouterr().out
    assert "rule is asked in the prompt format two-shot, not prefix" in printed
    assert "questions" in printed  # the forecast


def test_what_is_read_stands_beside_its_nonsense_twin(card_of):
    peru = fact_of(card_of(some_read), "Lima")
    assert peru.contexts == {
        "true": ('The answer to "What is the capital of Peru?" is Lima', "Lima"),
        "nonsense": ('The answer to "Blorp" is Lima', "Paris"),
    }
    # Where nothing is read the difference may be as rare in either direction.
    read = card_of(knows()).measures[-1]
    assert read.name.startswith("the difference")
    assert read.low == -read.high < 0


def test_survival_of_4_bits_stands_beside_that_of_8(card_of, monkeypatch):
    """Of three known facts the model of 4 bits knows one, that of 8 bits two."""
    forms = {4: knows("Kenya"), 8: knows("Kenya", "Peru")}
    monkeypatch.setattr(cards, "rounded_model", lambda name, bits, *_: Rule(forms[bits]))
    monkeypatch.setattr(cards, "stored_as", lambda name: "float16")
    made = card_of(knows("Kenya", "Peru", "Italy"))
    assert "right at 4 bits: 0.3333 beside 0.6667, n = 3" in measures(made)
    assert "the weights in the file are float16" in made.notes


def test_a_model_that_cannot_be_tempered_is_sampled(card_of):
    lacks = {"temper": "cannot be tempered here", "score": "cannot score here"}
    made = card_of(knows("Kenya", "Peru"), lacks=lacks)
    assert "kept by the decoder: 1 beside 1, n = 2" in measures(made)
    assert not any("FRS" in line for line in measures(made))
    assert made.missing[:2] == ["cannot be tempered here", "cannot score here"]


GIVEN = frame("""
    wordings  irrelevant  false  overruled  kept  yours  given
    1         1           1      0          0.5   NaN    holds
    0.8       NaN         NaN    NaN        1     NaN    lost in some wordings
    NaN       NaN         NaN    NaN        0.49  NaN    lost at these decoder settings
    NaN       NaN         0      1          NaN   NaN    overruled by a false context
    NaN       0           0      1          NaN   NaN    lost behind a sentence
    NaN       1           0      0          NaN   NaN    lost behind a sentence
    0         NaN         0      1          NaN   0      known in this wording only; overruled by a false context; lost behind a sentence
""")


def test_holds_means_right_in_every_answer_that_was_asked():
    """Wrong behind the irrelevant sentence as well, or what nobody stated, is not overruled."""
    for _, row in GIVEN.iterrows():
        numbers = row.drop("given").dropna().to_dict()
        found = cards.verdicts(numbers)
        assert "; ".join(found) == row["given"]


# -- which facts are asked ---------------------------------------------------------------------------


def test_a_csv_is_sampled_and_the_card_says_of_how_many(numbered):
    """120 rows sorted by relation, all known: 60 are asked, of nearly all 20 relations."""
    path = numbered(f"r{i // 6:02d}" for i in range(120))
    made = cards.card(Rule(number), path)
    assert len({fact.relation for fact in made.facts}) >= 17
    assert made.notes == [
        "60 of 120 facts were asked and 60 of them are known",
        "60 known facts were not asked under years of another time",
        "60 known facts were not asked with weights of 4 bits",
    ]
    table = pd.read_csv(path)
    table[::-1].to_csv(path, index=False)
    assert cards.card(Rule(number), path).facts == made.facts  # whatever their order
    every = cards.card(Rule(number), path, all_facts=True)
    assert every.notes[0] == "120 facts were asked and 120 of them are known"


def test_what_was_not_asked_is_listed_and_a_measure_of_few_is_no_number(numbered):
    """Eleven known facts; two share a relation, so that a sentence can state another answer."""
    path = numbered(["capital", "capital", *range(9)])
    made = cards.card(Rule(number), path)
    assert "right in other wordings: 1 beside 1, n = 11" in measures(made)
    assert not any("context" in line for line in measures(made))
    assert "right behind a false context: too few facts, 2, for a number" in made.missing
    assert "9 known facts were not asked behind a sentence" in made.notes
    assert not any("in other words" in note for note in made.notes)


DATED = """question,answer,start,end
Who was the president of France?,Chirac,1995,2007-05-16
Who was the president of France?,Sarkozy,2007-05-16,2012
Who was the president of France?,Macron,2017,
"""


def president(question):
    middles = {"In 2001": "Chirac", "In 2009": "Sarkozy", "In 2018": "Macron"}
    for year, name in middles.items():
        if year in question:
            return name
    return "nobody"


class Scores(Rule):
    """An answer in a year inside a time is as likely as one outside."""

    def answer(self, job):
        if job.operation != "score":
            yield from super().answer(job)
            return
        self.scored = [request["prompt"].rpartition("Q: ")[2] for request in job.requests]
        n = len(job.requests)
        yield [*range(n)], [np.array([-1.0])] * n


def test_dates_distinguish_questions_and_what_still_holds_has_no_year_after_it(tmp_path):
    path = tmp_path / "dated.csv"
    path.write_text(DATED)
    model = Scores(president)
    made = cards.card(model, path)
    assert [fact.known for fact in made.facts] == [True] * 3
    asked = "who was the president of France?"
    assert min(fact.question for fact in made.facts) == f"In 2001, {asked}"
    assert {question.partition(", ")[2] for question in model.scored} == {f"{asked}\nA:"}
    years = {fact.accepted[0]: fact.numbers.get("years") for fact in made.facts}
    assert years == {"Chirac": 0, "Sarkozy": 0, "Macron": None}  # ties lose
    assert "1 known facts were not asked under years of another time" in made.notes


def test_a_sentence_of_ones_own_stands_before_the_question(mine):
    table = pd.read_csv(mine)
    table.assign(context="Nobody lives there.").to_csv(mine, index=False)

    def rule(question):
        return "" if "Nobody" in question else knows(*CAPITALS)(question)

    made = cards.card(Rule(rule), mine)
    for fact in made.facts:
        assert fact.numbers["yours"] == 0
        assert fact.contexts["yours"] == ("Nobody lives there.", "")
        assert fact.verdicts == ["lost behind a sentence"]


class Slow(Rule):
    """The first answer takes a second more, as if something were loaded, and each 20 ms."""

    now = 0.0

    def answer(self, job):
        if not self.asked:
            self.now += 1
        for each in super().answer(job):
            if job.operation == "generate":
                self.now += 0.02
            yield each


def test_a_forecast_is_taken_when_the_model_is_loaded(numbered, capsys, monkeypatch):
    """Of 200 facts half are right: 60 known ones take 120 questions, of which 96 are left after the
    first 24, and twelve more each are 816. At 20 ms that is .27 minutes; with the loading it were
    above .8."""
    table = cards.question_set(numbered(["r"] * 200), "rule").table
    known = {*table["question"][1::2]}
    model = Slow(lambda question: number(question) if question in known else "no")
    monkeypatch.setattr(cards, "time", SimpleNamespace(monotonic=lambda: model.now))
    answers = cards._until(model, table, 60)
    assert len(answers) == 120
    assert answers["right"].sum() == 60
    forecast = "rule: about 0.3 minutes for 816 questions; what is recorded takes no time"
    assert capsys.readouterr().out.strip() == forecast
    # Of recorded answers no time is told, which would be another in each run.
    cards.tell_forecast("rule", 816, cards.RECORDED)
    assert capsys.readouterr().out == "rule: 816 questions; so far all is recorded\n"


@pytest.mark.parametrize(
    ("rows", "size", "sizes"),
    [(130, 60, [4, 20, 36, 60, 10]), (3, 60, [3]), (7, 3, [3, 3, 1])],
)
def test_chunks_hold_every_row_once(rows, size, sizes):
    parts = [*cards.chunks(pd.DataFrame({"row": range(rows)}), size)]
    assert [*map(len, parts)] == sizes
    assert pd.concat(parts)["row"].tolist() == [*range(rows)]


def test_the_commonest_answer_of_a_relation():
    facts = []
    for text in ("r Yes", "r yes", "r no", "s A"):
        relation, answer = text.split()
        fact = cards.Fact.model_construct(relation=relation, accepted=[answer])
        facts.append(fact)
    # Of the others of r, "yes" is as common as "no" for each yes; the only no, and A, are alone.
    assert cards.commonest(facts) == 0.5


# -- files -------------------------------------------------------------------------------------------

NAMES = ["run1/checkpoint-500", "run2/checkpoint-500", "a#b", "a~b", "it's", "modèle", "#", "a-b"]


def test_every_card_has_files_of_its_own(card_of, tmp_path, monkeypatch):
    """Folders of the same last name, names of signs, the folder one is in; and other data."""
    made = card_of(knows("Kenya"), name="x")
    here = made.model_copy(update={"model": "."})
    stems = {}
    for name in NAMES:
        (tmp_path / name).mkdir(parents=True)
        monkeypatch.chdir(tmp_path)
        stems[name] = made.model_copy(update={"model": name}).stem
        monkeypatch.chdir(tmp_path / name)
        stems[name, "."] = here.stem
    other = here.model_copy(update={"data": "other.csv", "data_sha256": "2"})
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


def test_a_card_comes_back_from_its_file_unless_it_was_changed(card_of, tmp_path):
    made = card_of(knows("Kenya", "Peru"))
    path, *_ = made.save(tmp_path / "cards")
    assert cards.Card.read(path) == made
    changed = json.loads(path.read_text())
    changed["facts"][0]["answer"] = "Nairobi!"
    path.write_text(json.dumps(changed))
    with pytest.raises(ModelError, match="does not match its digest"):
        cards.Card.read(path)


def test_a_card_that_says_the_same_is_the_committed_one(card_of, tmp_path):
    before = card_of(knows("Kenya")).model_copy(update={"commit": "earlier"})
    before.digest = before.digested()
    file = tmp_path / "rule.json"
    file.write_text(before.model_dump_json())
    assert card_of(knows("Kenya"))._as_committed(file) == before
    other = card_of(knows("Peru"))
    assert other._as_committed(file) is other


def test_the_page_is_one_file_and_holds_every_fact(card_of):

    def rule(question):
        mark = "<b>" if "Peru" in question else ""
        return knows("Kenya")(question) + mark

    made = card_of(rule)
    text = page.html(made)
    assert "rule knows 1 of 5 facts that were asked, and 1 of these hold in every answer." in text
    assert "://" not in text
    assert all(fact.question in text for fact in made.facts)
    assert "Paris&lt;b&gt;" in text
    assert "temperature 0.7, top_p 0.9" in text
    assert "revision: " + made.data_sha256 in page.model_index(made)
    assert all(verdict in text for fact in made.facts for verdict in fact.verdicts)


CLICKS = """<script>
only('unknown');
const rows = () => [...document.querySelectorAll('#facts tbody tr')];
const shown = rows().filter(row => !row.hidden).length;
sort(document.querySelector('#facts th:nth-child(2) button'));
document.title = shown + ' ' + rows().map(row => row.cells[1].textContent).join(' ');
</script></html>"""


@pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's chromium is not installed")
def test_a_click_on_the_page_filters_and_sorts(card_of, tmp_path):
    """Five unknown facts, of which the four with a verdict of more words are no plain "unknown"."""
    made = card_of(some_read)
    made.facts[0].verdicts = ["unknown"]
    path = tmp_path / "card.html"
    path.write_text(page.html(made).replace("</html>", CLICKS), encoding="utf-8")
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
    assert all(measure in cards.measures_of(card) for measure in card.measures)
    written = path.with_suffix(".html").read_text(encoding="utf-8")
    picture = re.compile(r"base64,[^\"]+")  # pixels may differ between processors
    assert picture.sub("", written) == picture.sub("", page.html(card))
    assert path.with_suffix(".yaml").read_text(encoding="utf-8") == page.model_index(card)
