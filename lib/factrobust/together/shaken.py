"""Part 6: known facts in other wordings, behind contexts, and in the prompts of other parts."""

from typing import Any

import pandas as pd

from factrobust.context import facts as contexts
from factrobust.context import probe as in_context
from factrobust.context import rules
from factrobust.decoding import probe
from factrobust.models.interface import Model
from factrobust.tables import stacked
from factrobust.text import exact_match
from factrobust.together.spine import behind, greedy
from factrobust.wording import metrics as worded
from factrobust.wording import probe as paraphrased

# For t_b in a second wording: fewer temperatures than part 1's, of which each costs.
COARSE = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.3, 1.7, 2.2, 3.0, 4.5, 7.0)
PROMPTS = ("this part's", "part 3's", "part 4's")  # part 2 asks for no text


def ask(model: Model, table: pd.DataFrame) -> pd.DataFrame:
    """`greedy` of facts `changed`, free. The first wording has a t_b, by COARSE temperatures."""
    first = (table["way"] == "wording") & (table["form"] == 1)
    rest = table[~first].assign(question=behind(table[~first]))
    parts = [greedy(model, table[first], COARSE, free=True), greedy(model, rest, free=True)]
    return pd.concat(parts, ignore_index=True)


def in_prompts(model: Model, asked: pd.DataFrame) -> pd.DataFrame:
    """The facts in the PROMPTS, each marked as its part does: model, fact_id, prompt_of, text, right."""
    questions = contexts.facts_as_questions(asked)
    rows = asked.assign(question_id=asked["fact_id"], group_id=asked["fact_id"], variant=0)
    paper = paraphrased.paper_format(model.prompt_format, model.chat)
    ways = (
        (greedy(model, asked, probe.GRID), exact_match),
        (paraphrased.greedy(model, rows, prompt_format=paper), worded.stated),
        (in_context.greedy(model, questions), rules.right),
    )
    tables = {}
    for name, (said, rule) in zip(PROMPTS, ways, strict=True):
        right = [*map(rule, said["text"], questions["answers"])]
        found: dict[str, Any] = {
            "model": model.name,
            "text": said["text"].to_numpy(),
            "right": right,
        }
        tables[name] = asked[["fact_id"]].assign(**found)
    return stacked(tables, "prompt_of")
