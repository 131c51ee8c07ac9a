"""Alerts by thresholds of queues, as receivers of the events of QMF see them."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import pytest

from qmf.client import EventHelper
from qmf.messaging import Empty, Receiver, Session

pytestmark = pytest.mark.only("embedded", "qpidd")

Crossed = Callable[[str], list[int]]


@pytest.fixture
def name() -> str:
    return f"alerts-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def crossed(session: Session, name: str) -> Crossed:
    """The depths with which a queue has raised events of a class; waits for `expected` of them, and for no other."""
    prefix = "qmf.default.topic/agent.ind.event.org_apache_qpid_broker"
    classes = ("queueThresholdCrossedUpward", "queueThresholdCrossedDownward", "queueThresholdExceeded")
    receivers = {kind: session.receiver(f"{prefix}.{kind}.#", capacity=50) for kind in classes}
    return lambda kind, expected=0: depths(receivers[kind], name, expected)  # type: ignore[misc]


def depths(receiver: Receiver, name: str, expected: int) -> list[int]:
    helper = EventHelper()
    found: list[int] = []
    while True:
        try:
            event = helper.event(receiver.fetch(timeout=20 if len(found) < expected else 0))
        except Empty:
            return found
        if event.qName == name:
            found.append(event.msgDepth)


def test_thresholds_that_are_crossed_both_ways(session: Session, name: str, crossed: Callable[..., list[int]]) -> None:
    arguments = "{'qpid.alert_count_up': 10, 'qpid.alert_count_down': 5}"
    sender = session.sender(
        f"{name}; {{create: always, delete: always, node: {{x-declare: {{arguments: {arguments}}}}}}}"
    )
    receiver = session.receiver(name, capacity=5)
    up, down = "queueThresholdCrossedUpward", "queueThresholdCrossedDownward"

    def change(by: int) -> None:
        for _ in range(by):
            sender.send("x")
        for _ in range(-by):
            receiver.fetch(timeout=10)
        session.acknowledge()

    for by, upward, downward in (
        (8, [], []),
        (-6, [], []),
        (8, [10], []),  # 10 messages
        (-1, [], []),
        (1, [], []),  # 10 again, but never 5 in between
        (10, [], []),
        (-5, [], []),
        (-12, [], [5]),  # 3 messages
        (3, [], []),
        (6, [10], []),  # 12 messages
        (-9, [], [5]),
        (-3, [], []),
    ):
        change(by)
        assert crossed(up, len(upward)) == upward
        assert crossed(down, len(downward)) == downward


def test_thresholds_of_bytes(session: Session, name: str, crossed: Callable[..., list[int]]) -> None:
    arguments = "{'qpid.alert_size_up': 3000, 'qpid.alert_size_down': 1000}"
    sender = session.sender(
        f"{name}; {{create: always, delete: always, node: {{x-declare: {{arguments: {arguments}}}}}}}"
    )
    receiver = session.receiver(name)
    for _ in range(4):
        sender.send("x" * 980)
    assert crossed("queueThresholdCrossedUpward", 1) == [3]
    for _ in range(4):
        receiver.fetch(timeout=10)
        session.acknowledge()
    assert crossed("queueThresholdCrossedDownward", 1) == [0]


def test_a_threshold_without_its_end_repeats(session: Session, name: str, crossed: Callable[..., list[int]]) -> None:
    """The older name of the event is raised as well."""
    sender = session.sender(
        f"{name}; {{create: always, delete: always, node: {{x-declare: {{arguments: {{'qpid.alert_count': 3}}}}}}}}"
    )
    for _ in range(4):
        sender.send("x")
    assert crossed("queueThresholdCrossedUpward", 1)[:1] == [3]
    assert crossed("queueThresholdExceeded", 1)[:1] == [3]
