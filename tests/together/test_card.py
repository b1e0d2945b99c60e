"""Cards of models that only say what a rule says, so that every number is known."""

import json
import re
import runpy
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import matplotlib.style
import numpy as np
import pandas as pd
import pytest

from factrobust import command
from factrobust.datasets.named import load_named
from factrobust.models.damage import Damage, damaged
from factrobust.models.interface import ModelError
from factrobust.paths import DATA
from factrobust.plots import style
from factrobust.tables import FactsError
from factrobust.text import contains
from factrobust.together import card as cards
from factrobust.together import page, spine

ruled = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("ruled.py"))))
CAPITALS, Rule, knows, copies = ruled.CAPITALS, ruled.Rule, ruled.knows, ruled.copies


def values(card):
    return {m.name: (m.value, m.n) for m in card.measures}


def test_a_model_that_knows_three_of_five(mine, capsys):
    found = cards.card(Rule(knows("Kenya", "Peru", "Italy")), mine)
    numbers = values(found)
    assert numbers["known"] == (0.6, 5)
    assert numbers["right in other wordings"] == (1, 3)
    assert numbers["right behind a false context"] == (1, 3)
    assert numbers["kept by the decoder"] == (pytest.approx(np.exp(-0.2 * 0.7)), 3)
    [kenya] = [fact for fact in found.facts if fact.accepted == ["Nairobi"]]
    assert kenya.numbers["t_b"] == pytest.approx(np.log(2) / 0.2, rel=1e-3)
    assert (kenya.numbers["wordings"], kenya.numbers["false"], kenya.numbers["true"]) == (1, 1, 1)
    assert (kenya.verdicts, len(kenya.wordings), {*kenya.contexts}) == (
        ["holds"], 5, {"true", "irrelevant", "false"},
    )  # fmt: skip
    unread = "unknown, and does not read it"
    assert sorted(v for f in found.facts for v in f.verdicts) == ["holds"] * 3 + [unread] * 2
    known = found.measures[0]
    low, high = known.low, known.high
    least = (1.96 + 0.8416) * 2**0.5 * (high - low) / 3.92
    assert known.smallest_difference == pytest.approx(least, rel=1e-3)
    assert (known.baseline, known.n) == (0, 5)  # five different answers
    assert all((m.smallest_difference or 0) < 1 for m in found.measures)
    assert "fewer than 60 known facts" in found.notes[1]
    assert "questions" in capsys.readouterr().out  # the forecast


def test_a_model_that_always_copies(mine):
    found = cards.card(Rule(copies), mine)
    assert values(found)["right behind a false context"] == (0, 5)
    assert values(found)["right behind an irrelevant context"] == (0, 5)
    # Whomever the sentence is about: so it is no false context that overrules it.
    told = {v for fact in found.facts for v in fact.verdicts}
    assert "lost behind a sentence" in told
    assert "overruled by a false context" not in told


@pytest.mark.parametrize("rule", [knows(), lambda question: ""], ids=["wrong", "empty"])
def test_a_model_that_knows_nothing_or_says_nothing(mine, rule, tmp_path):
    found = cards.card(Rule(rule), mine)
    assert values(found) == {"known": (0, 5), "unknown facts read from a true sentence": (0, 5)}
    assert found.notes[0] == "5 facts were asked and 0 of them are known"
    told = {v for fact in found.facts for v in fact.verdicts}
    assert told == {"unknown, and does not read it"}
    assert len(found.save(tmp_path)) == 4


def test_a_model_that_cannot_be_tempered_is_sampled(mine):
    lacks = {"temper": "cannot be tempered here", "score": "cannot score here"}
    found = cards.card(Rule(knows("Kenya", "Peru"), lacks=lacks), mine)
    assert values(found)["kept by the decoder"] == (1, 2)
    assert found.missing[:2] == ["cannot be tempered here", "cannot score here"]
    assert "FRS" not in values(found)
    assert {fact.numbers["t_b"] for fact in found.facts if fact.known} == {99}


def test_a_budget_that_ends_halfway_is_one_sentence(mine):
    with pytest.raises(ModelError, match="the budget of 7 requests is used up"):
        cards.card(Rule(knows(*CAPITALS), fails_after=7), mine)


def test_an_endpoint_that_is_down_is_one_sentence(mine):
    down = {"url": "http://127.0.0.1:1/v1", "model": "llama", "retries": 0}
    with pytest.raises(ModelError, match="APIConnectionError"):
        cards.card(down, mine)


def test_known_in_this_wording_only(mine):
    rule = knows("Kenya")
    found = cards.card(
        Rule(lambda q: rule(q) if re.fullmatch("What[^.]*[?]", q) else "Paris"), mine
    )
    [kenya] = [fact for fact in found.facts if fact.known]
    # Behind any sentence it says Paris, which no context states: nothing overrules it.
    assert kenya.verdicts == ["known in this wording only", "lost behind a sentence"]


@pytest.mark.parametrize(
    ("numbers", "verdicts"),
    [
        ({"wordings": 1, "irrelevant": 1, "false": 1, "overruled": 0, "kept": 0.5}, ["holds"]),
        ({"wordings": 0.8, "kept": 1}, ["lost in some wordings"]),
        ({"wordings": 0, "kept": 0.49}, ["known in this wording only", "lost at these decoder settings"]),
        ({"irrelevant": 1, "false": 0, "overruled": 1}, ["overruled by a false context"]),
        # It was wrong behind the irrelevant sentence as well, or says something that nobody stated.
        ({"irrelevant": 0, "false": 0, "overruled": 1}, ["lost behind a sentence"]),
        ({"irrelevant": 1, "false": 0, "overruled": 0}, ["lost behind a sentence"]),
        ({"irrelevant": 1, "false": 0, "overruled": 1, "yours": 0}, ["overruled by a false context", "lost behind a sentence"]),
    ],
)  # fmt: skip
def test_holds_means_right_in_every_answer_that_was_asked(numbers, verdicts):
    assert cards.verdicts(numbers) == verdicts
    assert {*verdicts} <= {*cards.VERDICTS.index}


def test_a_model_that_repeats_a_false_context_is_overruled_by_it(mine):
    """It knows all else, also behind a sentence about another country."""
    found = cards.card(Rule(ruled.repeats), mine)
    overruled = {
        fact.fact_id for fact in found.facts if "overruled by a false context" in fact.verdicts
    }
    assert overruled == {fact.fact_id for fact in found.facts if fact.contexts}


def test_an_unknown_fact_is_read_from_a_true_sentence_or_not(mine):
    """It knows Kenya alone, and repeats what stands before a question, but nothing of Cuba."""

    def rule(question):
        return knows("Kenya")(question) if "Cuba" in question else copies(question)

    found = cards.card(Rule(lambda q: rule(q) if ". What" in q else knows("Kenya")(q)), mine)
    told = {fact.accepted[0]: fact.verdicts for fact in found.facts if not fact.known}
    assert told == {
        "Lima": ["unknown, but reads it"],
        "Rome": ["unknown, but reads it"],
        "Oslo": ["unknown, but reads it"],
        "Havana": ["unknown, and does not read it"],
    }
    [peru] = [fact for fact in found.facts if fact.accepted == ["Lima"]]
    sentence, answer = peru.contexts["true"]
    assert "Lima" in sentence
    assert answer == "Lima"
    [read] = [m for m in found.measures if m.name == "unknown facts read from a true sentence"]
    assert (read.value, read.n, read.baseline) == (0.75, 4, 0)


def test_other_words_stand_beside_a_wording_in_which_no_word_changes(mine):
    """It answers whatever ends with a question mark: four of five wordings do not but one does."""
    rule = knows("Kenya", "Peru")
    found = cards.card(Rule(lambda q: rule(q) if q.endswith("?") else "Paris"), mine)
    [kenya] = [fact for fact in found.facts if fact.accepted == ["Nairobi"]]
    assert (kenya.numbers["wordings"], kenya.numbers["typography"]) == (0.75, 0)
    assert kenya.verdicts[0] == "lost in some wordings"
    [words] = [m for m in found.measures if m.name == "right in other wordings"]
    assert (words.value, words.baseline, words.n) == (0.75, 0, 2)


def test_survival_of_4_bits_is_that_of_the_rounded_model_beside_8():
    """Counted anew of that model's own answers."""
    made = cards.card("world-s", known=10)
    known = [fact for fact in made.facts if fact.known]
    assert len(known) >= 10
    for bits in (4, 8):
        other = damaged("world-s", Damage("round", bits))
        sent = [f"Q: {fact.question}\nA:" for fact in known]
        said = other.generate(sent, max_new_tokens=8, stop=["\n"])
        right = [contains(g.text, fact.accepted) for g, fact in zip(said, known, strict=True)]
        assert [fact.numbers[f"bits{bits}"] for fact in known] == right
    [kept] = [m for m in made.measures if m.name == "right at 4 bits"]
    assert kept.baseline_is == "at 8 bits"
    assert "the weights in the file are float16" in made.notes


def test_what_was_not_asked_is_listed(tmp_path):
    """Three relations of one fact each: no sentence can state another answer."""
    rows = [f"What is number {i}?,n{i},r{i}" for i in range(3)]
    (tmp_path / "few.csv").write_text("\n".join(["question,answer,relation", *rows]))
    model = Rule(lambda question: "n" + question.rpartition("number ")[2].partition("?")[0])
    made = cards.card(model, tmp_path / "few.csv")
    assert "3 known facts were not asked behind a sentence" in made.notes
    assert not any("in other words" in note for note in made.notes)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("question,answer\nWho?,\n", "line 2: the answer cell is empty; write the right answer"),
        ("question,answer\nWho?,A\nwho?,B\n", "already in line 2"),
        ("question,anwser\nWho?,A\n", "rename 'anwser'"),
        ("question,answer\n", "no rows"),
    ],
)  # fmt: skip
def test_a_bad_csv_is_one_sentence(tmp_path, text, fault):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(FactsError, match=fault):
        cards.card(Rule(knows("Kenya")), path)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("gemma-3-270n", "no model is called 'gemma-3-270n'"),
        ("gemma-3-270m#two-shots", "is no name of a model; write NAME"),
        ("gemma-3-270m~round four", "is no name of a model; write NAME"),
        ("gemma-3-270m~melt 4", "weights cannot be changed by 'melt 4'"),
        ("gemma-3-270m~round 1", "round from 2 to 16"),
    ],
)
def test_a_model_that_cannot_be_had_is_one_sentence(name, fault):
    with pytest.raises(ModelError, match=fault):
        cards.opened(name)


def test_a_model_keeps_its_prompt_format_and_the_one_it_is_asked_in_is_printed(mine, capsys):
    model = Rule(knows("Kenya"), prompt_format="prefix")
    made = cards.card(model, mine)  # its questions have no beginnings of answers
    assert (model.prompt_format, made.prompt_format) == ("prefix", "two-shot")
    assert "rule is asked in the prompt format two-shot, not prefix" in capsys.readouterr().out


def test_a_csv_is_sampled_and_the_card_says_of_how_many(tmp_path):
    """300 rows sorted by relation, all known: 60 are asked, of nearly all 20 relations."""
    rows = [f"What is number {i}?,n{i},r{i // 15:02d}" for i in range(300)]
    path = tmp_path / "sorted.csv"
    path.write_text("\n".join(["question,answer,relation", *rows]))
    model = Rule(lambda question: "n" + question.rpartition("number ")[2].partition("?")[0])
    made = cards.card(model, path)
    assert len({fact.relation for fact in made.facts}) >= 17
    assert made.notes == [
        "60 of 300 facts were asked and 60 of them are known",
        "60 known facts were not asked under years of another time",
        "60 known facts were not asked with weights of 4 bits",
    ]
    path.write_text("\n".join(["question,answer,relation", *rows[::-1]]))
    assert cards.card(model, path).facts == made.facts  # whatever their order
    every = cards.card(model, path, all_facts=True)
    assert every.notes[0] == "300 facts were asked and 300 of them are known"


def test_contexts_are_those_of_all_facts_whichever_are_asked(mine):
    model = Rule(knows(*CAPITALS))
    whole = {fact.fact_id: fact.contexts for fact in cards.card(model, mine).facts}
    some = [*whole][:2]
    few = cards.card(model, mine, facts=some)
    assert {fact.fact_id: fact.contexts for fact in few.facts} == {n: whole[n] for n in some}


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
    assert sorted(fact.question for fact in made.facts)[0] == f"In 2001, w{FRANCE[1:]}"
    assert {question.partition(", ")[2] for question in model.years} == {f"w{FRANCE[1:]}\nA:"}
    years = {fact.accepted[0]: fact.numbers.get("years") for fact in made.facts}
    assert years["Macron"] is None
    assert "years: 1 known facts still hold, so that no year is after them" in made.missing
    assert years["Chirac"] == years["Sarkozy"] == 0  # ties lose


def test_dates_are_checked_before_anything_is_asked(tmp_path):
    path = tmp_path / "bad.csv"
    path.write_text("question,answer,start,end\nWho?,A,1995,1990\n")
    model = Rule(knows("Kenya"))
    with pytest.raises(FactsError, match=r"line 2: the end .* is before the start"):
        cards.card(model, path)
    assert model.asked == 0


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
    monkeypatch.chdir(tmp_path)
    made = []
    for name in NAMES:
        (tmp_path / name).mkdir(parents=True)
        made.append(cards.card(Rule(knows("Kenya"), name, fingerprint="same"), mine))
    monkeypatch.chdir(tmp_path / NAMES[0])
    made.append(cards.card(Rule(knows("Kenya"), ".", fingerprint="same"), mine))
    other = tmp_path / "other.csv"
    other.write_text(mine.read_text() + "Who?,x,capital\n")
    made.append(cards.card(Rule(knows("Kenya"), ".", fingerprint="same"), other))
    made.append(cards.card(Rule(knows("Kenya"), ".", fingerprint="tuned"), other))
    files = [path for card in made for path in card.save(tmp_path / "cards")]
    assert len({*files}) == 4 * len(made)
    assert not any(path.name.startswith((".", "-")) for path in files)
    assert made[-3].stem.startswith("checkpoint-500-mine-")
    assert made[-2].stem.startswith("checkpoint-500-other-")
    assert all(cards.Card.read(path) == card for path, card in zip(files[::4], made, strict=True))


def test_the_folder_one_is_in_is_told_from_another_such(mine, tmp_path, monkeypatch):
    made = cards.card(Rule(knows("Kenya"), ".", fingerprint="same"), mine)
    stems = []
    for run in ("run1", "run2"):
        (tmp_path / run / "checkpoint-500").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / run / "checkpoint-500")
        stems.append(made.stem)
    assert stems[0] != stems[1]
    assert {stem.rpartition("-")[0] for stem in stems} == {"checkpoint-500-mine"}


def test_a_model_of_the_table_that_is_asked_as_usual_has_its_name_alone():
    card = cards.Card.read(DATA / "cards" / "world-s.json")
    assert card.stem == "world-s"
    assert card.model_copy(update={"decoder": {"temperature": 1}}).stem.startswith("world-s-world-")
    assert card.model_copy(update={"data": "embedded"}).stem.startswith("world-s-embedded-")
    assert card.model_copy(update={"prompt_format": "prefix"}).stem.startswith("world-s-world-")


def test_a_folder_without_weights(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(SystemExit) as stopped:
        command.main(["card", str(tmp_path)])
    assert stopped.value.code == 2
    assert "holds no tokenizer" in capsys.readouterr().err
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(
        ModelError, match=r"the tokenizer of .* cannot be read .*; fetch its files anew"
    ):
        cards.opened(str(tmp_path))


def test_a_card_comes_back_from_its_file_unless_it_was_changed(mine, tmp_path):
    made = cards.card(Rule(knows("Kenya", "Peru")), mine)
    path, *_ = made.save(tmp_path / "cards")
    assert cards.Card.read(path) == made
    changed = json.loads(path.read_text())
    changed["facts"][0]["answer"] = "Nairobi!"
    path.write_text(json.dumps(changed))
    with pytest.raises(ModelError, match="does not match its digest"):
        cards.Card.read(path)


def test_the_page_is_one_file_and_holds_every_fact(mine, tmp_path):
    made = cards.card(Rule(lambda q: knows("Kenya")(q) + "<b>" * ("Peru" in q)), mine)
    text = page.html(made)
    assert "://" not in text
    assert all(fact.question in text for fact in made.facts)
    assert "Paris&lt;b&gt;" in text
    assert "temperature 0.7, top_p 0.9" in text
    assert "{&#39;" not in text  # no dict as Python prints it
    assert page.picture(made).startswith(b"\x89PNG")
    with matplotlib.style.context(style.STYLE):
        fig = page.drawn(made)
        fig.draw_without_rendering()
        drawn = [axis.get_tightbbox() for axis in fig.axes]
    assert all(fig.bbox.x0 <= box.x0 and box.x1 <= fig.bbox.x1 for box in drawn)  # no name is cut
    assert all(fig.bbox.y0 <= box.y0 and box.y1 <= fig.bbox.y1 for box in drawn)
    assert "revision: " + made.data_sha256 in page.model_index(made)


@pytest.mark.skipif(not shutil.which("chromium"), reason="Debian's chromium is not installed")
def test_the_page_opens_in_a_browser(mine, tmp_path):
    _, _, path, _ = cards.card(Rule(knows("Kenya")), mine).save(tmp_path)
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        path.as_uri(),
    ]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout
    assert "What this card cannot say" in shown
    assert "rule knows 1 of 5 facts that were asked" in shown


def test_a_free_answer_may_be_a_sentence_that_states_the_name():
    facts = load_named(["embedded"], limit=1740).table
    asked = facts[facts["fact_id"] == "capital/kenya"]
    for text, bare, stated in (
        ("Nairobi", True, True), ("Nairobi is the capital of Kenya", False, True),
        ("The capital of Kenya is Lima", False, False),
    ):  # fmt: skip
        model = Rule(lambda question, text=text: text)
        assert spine.greedy(model, asked)["right"].tolist() == [bare]
        assert spine.greedy(model, asked, free=True)["right"].tolist() == [stated]


def test_a_measure_of_few_known_facts_is_no_number(tmp_path):
    """Eleven known facts; two alone share a relation, so that a context can state another answer."""
    relations = ["capital", "capital", *(f"r{i}" for i in range(9))]
    rows = [f"What is number {i}?,n{i},{name}" for i, name in enumerate(relations)]
    (tmp_path / "few.csv").write_text("\n".join(["question,answer,relation", *rows]))
    model = Rule(lambda question: "n" + question.rpartition("number ")[2].partition("?")[0])
    made = cards.card(model, tmp_path / "few.csv")
    assert {m.name: m.n for m in made.measures}["right in other wordings"] == 11
    assert not any("context" in m.name for m in made.measures)
    assert "false: too few facts, 2, for a number" in made.missing


def test_the_commonest_answer_of_a_relation():
    def fact(relation, answer):
        texts = {"fact_id": "x", "question": "?", "answer": "", "known": False, "verdicts": []}
        return cards.Fact(relation=relation, accepted=[answer], **texts)

    facts = [fact("r", "Yes"), fact("r", "yes"), fact("r", "no"), fact("s", "A")]
    # Of the others of r, "yes" is as common as "no" for each yes; the only no, and A, are alone.
    assert cards.commonest(facts) == 0.5


def test_cards_follow_the_committed_schema():
    schema = json.loads((DATA / "cards" / "schema.json").read_text("utf-8"))
    assert schema == cards.Card.model_json_schema()


def test_every_verdict_and_measure_has_a_number_that_cards_hold(mine):
    found = cards.card(Rule(knows("Kenya")), mine)
    [kenya] = [fact for fact in found.facts if fact.known]
    others = {"known", "years", "bits4", "reads"}  # of no known fact of a rule
    assert {*cards.MEASURES["number"]} <= {*kenya.numbers} | others
    assert cards.VERDICTS["advice"].str.len().min() > 0


@pytest.mark.parametrize("path", sorted((DATA / "cards").glob("*-*.json")), ids=lambda p: p.stem)
def test_a_committed_card_is_whole_and_its_page_is_that_of_its_json(path):
    card = cards.Card.read(path)
    assert sum(fact.known for fact in card.facts) >= cards.KNOWN or "taught" in path.stem
    assert all(measure in cards.measured(card) for measure in card.measures)
    written = path.with_suffix(".html").read_text(encoding="utf-8")
    picture = re.compile(r"base64,[^\"]+")  # pixels may differ between processors
    assert picture.sub("", written) == picture.sub("", page.html(card))
    assert path.with_suffix(".yaml").read_text(encoding="utf-8") == page.model_index(card)


class Slow(Rule):
    """The first answer takes a second more, as if something were loaded, and each 20 ms."""

    def answer(self, job):
        time.sleep(0 if self.asked else 1)
        for each in super().answer(job):
            time.sleep(0.02 if job.operation == "generate" else 0)
            yield each


def test_a_forecast_is_taken_when_the_model_is_loaded(tmp_path, capsys):
    """Of 200 facts half are right: 60 known ones take 120 questions, of which 96 are left after the first
    24, and twelve more each are 816. At 20 ms that is .3 minutes; with the loading it were above .8."""
    rows = [f"What is number {i}?,n{i}" for i in range(200)]
    (tmp_path / "half.csv").write_text("\n".join(["question,answer", *rows]))
    every = cards.questions(tmp_path / "half.csv", "rule")
    odd = {q: i % 2 for i, q in enumerate(every.table["question"])}
    model = Slow(lambda q: "n" + q.rpartition(" ")[2].rstrip("?") if odd[q] else "no")
    said = cards._until(model, every.table, 60)
    assert (len(said), said["right"].sum()) == (120, 60)
    told = re.fullmatch(
        r"rule: about (.+) minutes for 816 questions; what is recorded takes no time\n",
        capsys.readouterr().out,
    )
    assert 0.25 < float(told[1]) < 0.8


def test_chunks_hold_every_row_once():
    table = pd.DataFrame({"row": range(130)})
    parts = [part["row"].tolist() for part in cards.chunks(table, 60)]
    assert [len(part) for part in parts] == [4, 20, 36, 60, 10]
    assert [row for part in parts for row in part] == [*range(130)]
    assert [len(part) for part in cards.chunks(table.head(3), 60)] == [3]
    assert [len(part) for part in cards.chunks(table.head(7), 3)] == [3, 3, 1]
