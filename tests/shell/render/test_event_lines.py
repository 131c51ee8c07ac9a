"""Events as lines."""

from __future__ import annotations

import json

from qmf_shell.render.event_lines import EventLineFormatter
from shell.fakes import BETA, NOON, full_event

from qmf.views.events import EventView, LostEvents
from qmf.views.objects import ObjectKey


def line(event: EventView | None = None, *, json: bool = False) -> str:
    return EventLineFormatter(json=json).line(event or full_event("/a b"))


def test_a_line_is_as_the_old_tool_printed_it() -> None:
    event = EventView(
        "p:c", NOON, 6, {"name": "a b", "on": True, "of": ObjectKey("p:q:x", "a"), "n": 7}, BETA, None, "mq1"
    )
    assert line(event) == 'Wed May  1 12:00:00 2024 INFO  p:c broker=mq1 name="a b" on=T of=p:q:x n=7'
    assert line(full_event("\x1b[31m")).endswith("mountPoint=\\x1b[31m size=2048")
    assert "INV-9" in line(full_event(severity=9))


def test_a_line_of_json() -> None:
    assert json.loads(line(json=True)) == {
        "time": "2024-05-01T12:00:00.000000000Z",
        "severity": "warn",
        "event": "org.example:filesystemFull",
        "broker": "",
        "agent": "example.org:host:alpha",
        "arguments": {"mountPoint": "/a b", "size": 2048},
    }


def test_events_that_did_not_arrive_are_a_warning_among_the_others() -> None:
    lost = LostEvents(BETA, 12, NOON, "mq1")
    assert line(lost) == f"Wed May  1 12:00:00 2024 WARN  qmf:lost broker=mq1 12 events of agent {BETA} did not arrive"
    assert "\x1b[33mWARN \x1b[0m qmf:lost" in EventLineFormatter(colour=True).line(lost)
    assert json.loads(line(lost, json=True)) == {
        "time": "2024-05-01T12:00:00.000000000Z",
        "severity": "warn",
        "event": "qmf:lost",
        "broker": "mq1",
        "agent": BETA,
        "arguments": {"count": 12},
    }
