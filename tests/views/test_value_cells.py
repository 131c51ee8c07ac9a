"""What values mean, by their schema."""

from __future__ import annotations

from uuid import UUID

import pytest

from qmf.protocol import ObjectId
from qmf.schema import TYPES, Statistic
from qmf.views.cells import Cell, Collection, Duration, HiLoCell, Instant, MinMaxMeanCell, Quantity
from qmf.views.objects import ObjectKey
from qmf.views.value_cells import free_cell, statistic_cell, value_cell


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("absTime", 12, Instant(12)),
        ("deltaTime", 12, Duration(12)),
        ("uint16", 5672, 5672),
        ("float", 0.10000000149011612, 0.1),
        ("uint64", None, None),
        ("bool", True, True),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("sstr", "a\n", "a\n"),
        ("map", {"a": 1}, Collection({"a": 1})),
        ("objId", ObjectId("p:queue:a", "x"), "p:queue:a"),
        ("objId", ObjectId("", "x"), None),
        # An agent may send what its schema does not say.
        ("uint16", "many", "many"),
    ],
)
def test_values_of_a_type(kind: str, value: object, cell: Cell) -> None:
    assert value_cell(TYPES[kind], value) == cell


def test_only_measurements_and_what_has_a_unit_are_quantities() -> None:
    assert value_cell(TYPES["uint32"], 7, measured=True) == Quantity(7)
    assert value_cell(TYPES["uint32"], 7, "octet") == Quantity(7, "octet")
    assert value_cell(None, 7, "octet") == 7


def test_values_without_a_schema() -> None:
    assert [free_cell(item) for item in (None, b"\x01\xff", [1], 0.5)] == [None, "01 ff", Collection([1]), 0.5]


def test_the_caller_says_what_a_reference_is() -> None:
    assert value_cell(TYPES["objId"], ObjectKey("p:queue:a", "x"), reference=lambda key: key.agent_name) == "x"


def test_statistics_with_several_values() -> None:
    hilo = Statistic(name="depth", type=TYPES["hilo32"], unit="message")
    assert statistic_cell(hilo, {"depth": 3, "depthHigh": 9}) == HiLoCell(3, 9, None, "message")
    assert statistic_cell(hilo, {}) is None
    assert statistic_cell(hilo, {}, complete=True) == HiLoCell(None, None, None, "message")
    mma = Statistic(name="latency", type=TYPES["mmaTime"])
    values = {entry.name: number for number, entry in enumerate(mma.entries, 1)}
    assert statistic_cell(mma, values) == MinMaxMeanCell(1, 2, 3, 4, duration=True)
    assert statistic_cell(Statistic(name="free", type=TYPES["uint64"], unit="octet"), {"free": 1}) == Quantity(
        1, "octet"
    )
