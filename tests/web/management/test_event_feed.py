"""The feed of events says how many did not arrive."""

from __future__ import annotations

from typing import Any, cast

import pytest

from qmf.console.aio import Dropped, Missed
from qmf.console.aio.agents import Agent, info_from_name
from qmf.console.aio.notifications import NotificationPublisher
from qmf.web.management.event_feed import EventFeed

AGENT = Agent(info_from_name("example.org:widgets:1"))
EVENTS, OBJECTS = "agent.ind.event.org_example.alarm.warn.example_org.widgets.1", "agent.ind.data.org_example.widget"


@pytest.mark.parametrize(
    ("item", "lost"),
    [
        pytest.param(Missed(AGENT, EVENTS, 2, 31), {"agent": AGENT.name, "count": 31}, id="events"),
        pytest.param(Missed(AGENT, EVENTS, 2), {"agent": AGENT.name, "count": 2}, id="messages"),
        pytest.param(Missed(AGENT, OBJECTS, 2), None, id="objects"),
        pytest.param(Dropped(5), {"agent": None, "count": 5}, id="dropped"),
    ],
)
def test_events_that_did_not_arrive_are_counted(item: Missed | Dropped, lost: dict[str, object] | None) -> None:
    publisher = NotificationPublisher()
    feed = EventFeed(cast(Any, publisher), 10)
    feed.open()
    publisher.publish(item)
    found = [(record.kind, record.data) for record in feed.log.records(10)]
    assert found == ([] if lost is None else [("lost", lost)])
