"""Rows of events: filtered, and those about an object."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from support.waiting import until
from web.pages.world import World

from qmf.console.aio import Client, Listener, Missed, ObjectId
from qmf.schema import Severity
from qmf.views.objects import object_view
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.event_view import event_rows, events_about
from qmf.web.pages.views.page_urls import EventsUrl

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_events_are_filtered_and_found_for_objects(opened: World) -> None:
    site = opened.site
    opened.agent.raise_event("sale", shelf="a/1", count=3)
    opened.agent.raise_event("broken", shelf="a/2")
    await opened.agent.publish()
    await until(lambda: site.events.total == 2)

    def names(url: EventsUrl) -> list[str]:
        return [row.cells[2].text for row in event_rows(site.events.newest_first(), url)]

    assert names(EventsUrl()) == ["broken", "sale"]
    assert names(EventsUrl(Severity.ERROR)) == ["broken"]
    assert names(EventsUrl(classes="store:sale")) == ["sale"]
    assert names(EventsUrl(classes="sale, broken")) == ["broken", "sale"]
    assert names(EventsUrl(text="count=3 a/1")) == ["sale"]
    assert names(EventsUrl(agent="other")) == []
    [row] = events_about(site.events.newest_first(), object_view(await opened.shelf(1)), 10)
    assert [cell.text for cell in row.cells[1:3]] == ["notice", "sale"]
    assert [(item.name, item.text) for item in row.cells[3].parts] == [("shelf", "a/1"), ("count", "3")]
    assert row.key == "1"
    assert [item.number for item in site.events.since(1)] == [2]
    now = time.time()
    assert sum(site.events.per_minute(now)) == 2
    assert site.events.by_severity(now)[Severity.ERROR] == 1


async def test_events_that_did_not_arrive_are_shown_where_they_are_missing(
    opened: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    listeners: list[Listener] = []
    listen = Client.listen

    def note(client: Client, listener: Listener) -> Callable[[], None]:
        listeners.append(listener)
        return listen(client, listener)

    monkeypatch.setattr(Client, "listen", note)
    site, agent = SharedState(opened.client, 0.05), opened.client.agents[0]
    site.start()
    opened.agent.raise_event("sale", shelf="a/1", count=3)
    await opened.agent.publish()
    await until(lambda: site.events.total == 1)
    (publish,) = listeners
    publish(Missed(agent, "agent.ind.event.x", 2, events=31))
    publish(Missed(agent, "agent.ind.data.x", 5))
    await site.close()
    newest, _ = rows = event_rows(site.events.newest_first(), EventsUrl())
    assert [cell.text for cell in newest.cells[2:]] == [
        "lost",
        f"31 events of agent {AGENT} did not arrive",
        AGENT,
    ]
    assert len(rows) == 2
    # They may have been any event; they are not counted as events that came.
    assert len(event_rows(site.events.newest_first(), EventsUrl(Severity.EMERG, classes="broken"))) == 1
    assert event_rows(site.events.newest_first(), EventsUrl(agent="other")) == []
    log = site.events
    assert (log.total, log.gaps, log.lost, sum(log.per_minute(time.time()))) == (2, 1, 31, 1)
