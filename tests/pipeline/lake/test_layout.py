"""Folders of a lake."""

from __future__ import annotations

import attrs
import pytest

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.layout import LakePartition, date_of, day


@pytest.mark.parametrize(
    ("time_ns", "date"),
    [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (86_400 * 10**9, "1970-01-02"),
        (1 << 63, "2262-04-11"),
        (10**30, "1970-01-01"),
    ],
)
def test_days_are_utc(time_ns: int, date: str) -> None:
    assert day(time_ns) == date


def test_folders_contain_the_day_and_escaped_names() -> None:
    place = LakePartition(RowKind.OBJECTS, "a/b=c", "x y", "", "2030-01-31")
    assert place.folder == "objects/qmf_package=a%2Fb%3Dc/qmf_class=x%20y/qmf_hash=none/qmf_date=2030-01-31"
    assert date_of(place.folder) == "2030-01-31"
    assert attrs.evolve(place, kind=RowKind.GAPS).folder == "gaps/qmf_date=2030-01-31"
