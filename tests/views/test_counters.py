"""Which values are counters."""

from __future__ import annotations

import pytest

from qmf.schema import TYPES, Statistic
from qmf.views.counters import is_counter


def statistic(name: str, kind: str, **more: str) -> Statistic:
    return Statistic(name=name, type=TYPES[kind], **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("package", "item", "counter"),
    [
        ("org.example", statistic("in", "count64"), True),
        ("org.example", statistic("depth", "count64", assign="in - out"), False),
        ("org.example", statistic("depth", "uint64"), False),
        ("org.apache.qpid.broker", statistic("msgTotalEnqueues", "uint64"), True),
        ("org.apache.qpid.broker", statistic("msgDepth", "uint64"), False),
        ("org.apache.qpid.broker", statistic("msgDepth", "count64"), False),
        ("org.apache.qpid.broker", statistic("queueCount", "uint64"), False),
        ("org.apache.qpid.broker", statistic("flowStopped", "bool"), False),
        ("org.apache.qpid.broker", statistic("bindingCount", "hilo32"), False),
    ],
)
def test_which_values_are_counters(package: str, item: Statistic, counter: bool) -> None:
    assert is_counter(package, item) is counter
