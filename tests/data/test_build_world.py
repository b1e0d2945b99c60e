"""What data/build_world.py makes: the committed bytes, and names that nobody has."""

import re

from factrobust.paths import DATA


def test_a_build_equals_the_committed_files_and_a_check_notices_a_change(
    world_builder, tmp_path, capsys
):
    assert world_builder.main([], tmp_path) == 0
    for name in ("facts-0.csv", "facts-1.csv", "facts-2.csv", "spare.csv"):
        assert (tmp_path / name).read_bytes() == (DATA / "world" / name).read_bytes(), name
    path = tmp_path / "facts-1.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("1902-", "1903-", 1), encoding="utf-8")
    capsys.readouterr()
    assert world_builder.main(["--check"], tmp_path) == 1
    assert capsys.readouterr().out == "facts-1.csv differ; run python data/build_world.py\n"


def test_names_are_no_words(world_builder):
    """Words, places, people and firms of our lists are known there, and none of them is a name."""
    known = world_builder.known_words()
    assert {"table", "nairobi", "gorbachev", "toyota", "oslo", "wien"} <= known
    facts, spare = world_builder.build(0)
    names = {name for subject in facts["subject"] for name in subject.split()} | {*spare["name"]}
    assert not {name.casefold() for name in names} & known
    assert all(re.fullmatch("[A-Z][a-z]{3,10}", name) for name in names)
    last = facts.loc[facts["relation"] == "birthplace", "subject"].str.split().str[1]
    assert last.is_unique
