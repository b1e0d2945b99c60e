"""Names that data/build_world.py makes: nobody has them."""

import pandas as pd


def test_names_are_no_words(world_builder):
    """Words, places, people and firms of our lists are known there, and none of them is a name."""
    known = world_builder.known_words()
    assert {"table", "nairobi", "gorbachev", "toyota", "oslo", "wien"} <= known
    facts, spare = world_builder.build(0)
    of_subjects = facts["subject"].str.split().explode()
    names = pd.concat([of_subjects, spare["name"]])
    assert names.str.fullmatch("[A-Z][a-z]{3,10}").all()
    assert not names.str.casefold().isin(known).any()
    people = facts.query("relation == 'birthplace'")["subject"]
    last = people.str.split().str[1]
    assert last.is_unique
