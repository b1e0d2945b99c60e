"""Keys of calls."""

from __future__ import annotations

from dataclasses import replace

import pytest

from factrobust.records import Call, key_of

CALL = Call("m", "o", "p", "{}")


@pytest.mark.parametrize("field", ["model", "operation", "prompt", "parameters"])
def test_every_field_is_part_of_the_key(field: str) -> None:
    assert key_of(replace(CALL, **{field: "other"})) != key_of(CALL)


def test_fields_do_not_run_into_each_other() -> None:
    assert key_of(Call("a", "bc", "", "")) != key_of(Call("ab", "c", "", ""))


def test_a_change_of_keys_needs_a_change_of_schema() -> None:
    # sha256sum of: [2, "m", "o", "p", "{}"]
    expected = "416c4eaa9f38534f70610a35af2bfec333e8a3351d7a7d47c6fa6878f278375f"
    assert key_of(CALL).hex() == expected
