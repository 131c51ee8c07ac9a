"""Filters of events and heartbeats."""

from __future__ import annotations

from shell.fakes import BETA

from qmf.views.event_filter import EventFilter


def test_heartbeats_count_as_inform() -> None:
    for severity, shown in ((7, True), (6, True), (5, False)):
        assert EventFilter(severity=severity).passes_heartbeat(BETA) is shown
    assert EventFilter(agent="HOST:beta").passes_heartbeat(BETA)
    assert not EventFilter(agent="alpha").passes_heartbeat(BETA)
