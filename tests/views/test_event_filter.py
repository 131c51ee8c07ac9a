"""Filters of events and heartbeats."""

from __future__ import annotations

from shell.fakes import BETA

from qmf.views.conditions import parse_condition
from qmf.views.event_filter import EventFilter
from qmf.views.events import LostEvents


def test_heartbeats_count_as_inform() -> None:
    for severity, shown in ((7, True), (6, True), (5, False)):
        assert EventFilter(severity=severity).passes_heartbeat(BETA) is shown
    assert EventFilter(agent="HOST:beta").passes_heartbeat(BETA)
    assert not EventFilter(agent="alpha").passes_heartbeat(BETA)


def test_events_that_did_not_arrive_may_have_been_any_of_their_agent() -> None:
    lost = LostEvents(BETA, 3, 0)
    assert EventFilter(severity=0, classes=["nosuch"], condition=parse_condition("size > 7")).passes(lost)
    assert EventFilter(agent="HOST:beta").passes(lost)
    assert not EventFilter(agent="alpha").passes(lost)
