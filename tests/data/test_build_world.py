"""What data/build_world.py makes: the committed bytes, and names that nobody has."""

import pandas as pd

from factrobust.paths import DATA


def test_a_build_equals_the_committed_files_and_a_check_notices_a_change(
    world_builder, tmp_path, capsys
):
    assert world_builder.main([], tmp_path) == 0
    for name in ("facts-0.csv", "facts-1.csv", "facts-2.csv", "spare.csv"):
        built = (tmp_path / name).read_bytes()
        committed = (DATA / "world" / name).read_bytes()
        assert built == committed, name
    path = tmp_path / "facts-1.csv"
    text = path.read_text(encoding="utf-8")
    changed = text.replace("1902-", "1903-", 1)
    path.write_text(changed, encoding="utf-8")
    capsys.readouterr()
    assert world_builder.main(["--check"], tmp_path) == 1
    said = capsys.readouterr().out
    assert said == "facts-1.csv differ; run python data/build_world.py\n"


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
