"""The fields of a class, and sorting by them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.objects.fields import fields_of, find_field, sorted_by
from shell.fakes import FILESYSTEM


def test_slots() -> None:
    fields = fields_of(FILESYSTEM)
    assert fields["bytesRead"].counter
    assert fields["openFilesHigh"].element == "openFiles"
    assert not fields["label"].is_number
    assert fields["parent"].is_reference
    assert find_field([FILESYSTEM], "LATENCY").name == "latencyAvg"


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text()), max_size=20))
def test_sorting_takes_any_values(values: list[object]) -> None:
    for down in (False, True):
        result = sorted_by(values, lambda value: value, descending=down)
        assert sorted(map(repr, result)) == sorted(map(repr, values))
        missing = values.count(None)
        assert all(value is None for value in result[len(result) - missing :])
