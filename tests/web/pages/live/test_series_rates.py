"""Rates of counters in tables: those of objects that are followed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from qmf.console.aio import ChangeKind, ObjectId
from qmf.schema import TYPES
from qmf.web.pages.live.followed import LiveObjects
from qmf.web.pages.live.series import SeriesStore

ID = ObjectId("org.example.shop:shelf:a", "agent")


class FollowOfOne:
    """An object whose counter has a value each second."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self.values = values
        self.begin = int(time.time())

    async def __aiter__(self) -> AsyncIterator[Any]:
        for at, value in enumerate(self.values):
            about = SimpleNamespace(update=(self.begin + at) * 10**9)
            found = SimpleNamespace(object_id=ID, data=SimpleNamespace(values={"sold": value}), timestamps=about)
            yield SimpleNamespace(kind=ChangeKind.CHANGED, object=found)

    async def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(
    ("values", "kind", "rate"),
    [
        ((1000, 1010), "uint32", 10),
        ((50_000, 4_000), "uint32", 4_000),  # reset
        ((1000, 900), "uint32", -100),  # decreased
        ((2**32 - 6, 4), "uint32", 10),  # wrapped around
    ],
)
async def test_rates_are_those_of_the_shell(values: tuple[int, ...], kind: str, rate: float) -> None:
    follow: Any = FollowOfOne(values)
    objects = LiveObjects(follow, SeriesStore(time.monotonic), 600.0, lambda: True)
    objects.track_rate("sold", TYPES[kind])
    await objects.run()
    assert objects.rate("sold", ID) == rate
