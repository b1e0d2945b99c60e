"""The exact text of every prompt format."""

from __future__ import annotations

import pytest

from factrobust.models.prompts import EXAMPLES, FORMATS, render

ASKED = (["What is the capital of Kenya?"], ["The capital of Kenya is"])
CHAT = ("<user>", "</user><assistant>")


@pytest.mark.parametrize(
    ("format", "expected"),
    [
        (
            "two-shot",
            "Q: Which planet is known as the Red Planet?\nA: Mars\n\n"
            "Q: Who painted the Mona Lisa?\nA: Leonardo da Vinci\n\n"
            "Q: What is the capital of Kenya?\nA:",
        ),
        ("zero-shot", "Q: What is the capital of Kenya?\nA:"),
        ("prefix", "What is the capital of Kenya? The capital of Kenya is"),
        ("chat", "<user>What is the capital of Kenya?</user><assistant>"),
        (
            "chat-prefix",
            "<user>What is the capital of Kenya?</user><assistant>The capital of Kenya is",
        ),
        (
            "instruction",
            "<user>What is the capital of Kenya?\nAnswer with the name, word or number only."
            "</user><assistant>",
        ),
    ],
)
def test_render(format: str, expected: str) -> None:
    assert render(format, *ASKED, CHAT) == [expected]


def test_every_format_is_shown_above() -> None:
    assert len(FORMATS) == 6


def test_no_chat_frame_without_chat() -> None:
    assert render("two-shot", *ASKED, None) == render("two-shot", *ASKED, CHAT)
    with pytest.raises(ValueError, match="'chat' needs a chat template, and this model has none"):
        render("chat", *ASKED, None)


def test_examples_are_not_asked() -> None:
    from factrobust.paths import DATA

    facts = (DATA / "facts.csv").read_text(encoding="utf-8")
    for question, _ in EXAMPLES:
        assert question not in facts


def test_embedded_chat_frame_is_the_templates(smollm: object) -> None:
    from factrobust.models.registry import _chat

    assert _chat(smollm.tokenizer) == smollm.chat  # type: ignore[attr-defined]
