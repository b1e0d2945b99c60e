"""How data/build_facts.py compares its sources."""

import pandas as pd
import pytest

from factrobust.paths import DATA
from factrobust.tables import FactsError

NOTHING = pd.DataFrame(columns=["check", "subject", "reason"])


def test_a_disagreement_stops_the_build_unless_it_is_resolved(facts_builder):
    checks = facts_builder.Checks(NOTHING)
    assert checks.agree("capital:x", "Brazil", ["Brasília"], ["brasilia"])
    assert not checks.agree("capital:x", "Kenya", ["Nairobi"], ["Mombasa"])
    with pytest.raises(FactsError, match=r"capital:x,Kenya: ours Nairobi, theirs Mombasa"):
        checks.finish()
    row = {"check": "capital:x", "subject": "Kenya", "reason": "theirs is wrong"}
    resolved = pd.DataFrame([row])
    checks = facts_builder.Checks(resolved)
    with pytest.raises(FactsError, match=r"stale: capital:x,Kenya"):
        checks.finish()
    assert not checks.agree("capital:x", "Kenya", ["Nairobi"], ["Mombasa"])
    checks.finish()


def test_every_resolved_disagreement_has_a_reason():
    resolved = pd.read_csv(DATA / "sources/resolved.csv", keep_default_na=False)
    lengths = resolved["reason"].str.len()
    assert lengths.min() > 10
