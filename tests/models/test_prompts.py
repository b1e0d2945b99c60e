"""The exact text of every prompt format."""

import pytest

from factrobust.models.prompts import DATED_EXAMPLES, EXAMPLES, FORMATS, render
from factrobust.paths import DATA

ASKED = (["What is the capital of Kenya?"], ["The capital of Kenya is"])
CHAT = ("<user>", "</user><assistant>")
TEXTS = {
    "two-shot": "Q: Which planet is known as the Red Planet?\nA: Mars\n\n"
    "Q: Who painted the Mona Lisa?\nA: Leonardo da Vinci\n\n"
    "Q: What is the capital of Kenya?\nA:",
    "zero-shot": "Q: What is the capital of Kenya?\nA:",
    "question": "What is the capital of Kenya?",
    "dated-few-shot": "In 2005, who was the chief executive of Apple? Steve Jobs\n"
    "In March 1985, which show did Johnny Carson host? The Tonight Show\n"
    "On June 6, 1984, who was the Archbishop of Canterbury? Robert Runcie\n"
    "What is the capital of Kenya?",
    "question-answer": "Question:What is the capital of Kenya?\n Answer:",
    "prefix": "What is the capital of Kenya? The capital of Kenya is",
    "chat": "<user>What is the capital of Kenya?</user><assistant>",
    "chat-prefix": "<user>What is the capital of Kenya?</user><assistant>The capital of Kenya is",
    "instruction": "<user>What is the capital of Kenya?\nAnswer with the name, word or number only."
    "</user><assistant>",
}


def test_render():
    assert {form: render(form, *ASKED, CHAT) for form in FORMATS} == {
        form: [text] for form, text in TEXTS.items()
    }
    assert render("two-shot", *ASKED, None) == [TEXTS["two-shot"]]
    with pytest.raises(ValueError, match="'chat' needs a chat template, and this model has none"):
        render("chat", *ASKED, None)


def test_examples_are_not_asked():
    facts = (DATA / "facts.csv").read_text(encoding="utf-8")
    assert not [question for question, _ in EXAMPLES if question in facts]
    dated = (DATA / "temporal_facts.csv").read_text(encoding="utf-8")
    assert not [answer for _, answer in DATED_EXAMPLES if answer in dated]
