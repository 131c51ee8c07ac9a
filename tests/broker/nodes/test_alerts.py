"""Thresholds of queues."""

from __future__ import annotations

from typing import Any

import pytest
from broker.nodes.parts import put, queue

from qmf.broker.nodes.alerts import Alerts, Crossing, thresholds
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits, QueueSettings, Threshold


def watched(up: Threshold, down: Threshold) -> tuple[Queue, list[Crossing]]:
    it, _, _ = queue(count=None, size=None)
    crossings: list[Crossing] = []
    it.contents.observers.add(Alerts(up, down, it.contents.depth, crossings.append))
    return it, crossings


def test_a_queue_is_reported_once_until_it_has_drained() -> None:
    it, crossings = watched(Threshold(4), Threshold())
    put(it, "abcdef")
    it.contents.purge(3)
    assert crossings == [Crossing(True, True, 4, 4)]
    it.contents.purge(1)
    put(it, "abcd")
    assert crossings[1:] == [Crossing(False, False, 2, 2), Crossing(True, True, 4, 4)]


def test_bytes_have_thresholds_of_their_own_and_draining_too() -> None:
    it, crossings = watched(Threshold(None, 5), Threshold(None, 1))
    put(it, "abcde")
    it.contents.purge(3)
    assert crossings == [Crossing(True, False, 5, 5)]
    it.contents.purge(1)
    assert crossings[1:] == [Crossing(False, False, 1, 1)]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"arguments": {"qpid.max_count": 100}, "limits": QueueLimits(100, None)}, Threshold(80, None)),
        ({"arguments": {"qpid.max_size": 50}, "limits": QueueLimits(None, 50)}, Threshold(None, 40)),
        (
            {"arguments": {"qpid.max_count": 100}, "limits": QueueLimits(100), "alert_up": Threshold(5)},
            Threshold(5, None),
        ),
        ({}, Threshold()),
    ],
)
def test_the_thresholds_are_given_or_part_of_limits_that_were_asked_for(
    settings: dict[str, Any], expected: Threshold
) -> None:
    assert thresholds(QueueSettings(**settings)) == expected


def test_observers_of_the_broker_are_notified() -> None:
    seen: list[tuple[str, bool]] = []

    class Observer(BrokerObserver):
        def on_threshold(self, queue: Queue, crossing: Crossing) -> None:
            seen.append((queue.name, crossing.upward))

    registry = NodeRegistry()
    registry.observer = Observer()
    it = registry.declare_queue("q", QueueSettings(alert_up=Threshold(2)))
    put(it, "ab")
    it.contents.purge()
    assert seen == [("q", True), ("q", False)]
