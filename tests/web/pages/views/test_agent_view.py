"""The page of an agent; names of agents lead to it."""

from __future__ import annotations

import time

import attrs
from support.waiting import until
from web.pages.world import World, awaited

from qmf.console.aio import AgentRemoved, HeartbeatSeen, Removal
from qmf.web.pages.views.agent_view import agent_classes, agent_facts
from qmf.web.pages.views.event_view import event_rows
from qmf.web.pages.views.graph import bus_graph
from qmf.web.pages.views.object_table import ClassTable
from qmf.web.pages.views.overview import overview
from qmf.web.pages.views.page_urls import EventsUrl, ObjectsUrl, agent_url

AGENT = "example.org:store:1"
PAGE = "/agent/example.org:store:1"


def test_the_page_of_an_agent_has_an_address() -> None:
    assert agent_url(AGENT) == PAGE
    assert agent_url("a/b:c:") == "/agent/a~2Fb:c:"


async def test_names_of_agents_are_links_to_their_page(opened: World) -> None:
    site = opened.site
    await until(lambda: site.agents.get(AGENT) is not None)
    opened.agent.raise_event("broken", shelf="a/2")
    await until(lambda: site.events.total == 1)
    await site.catalogue.count()
    row = overview(site, time.time()).agents[0]
    assert row.cells[0].href == PAGE
    event = event_rows(site.events.newest_first(), EventsUrl())[0]
    assert event.cells[-1].href == PAGE
    objects, _ = site.follow_class("org.example.store", "shelf")
    await until(lambda: len(objects) == 3)
    table = ClassTable(site, objects, "org.example.store", "shelf")
    url = ObjectsUrl("org.example.store", "shelf", columns=("agent",))
    page = await awaited(lambda: table.page(url), lambda found: found.rows)
    assert [cell.href for cell in page.rows[0].cells][1:] == [PAGE]
    assert {node.label: node.href for node in bus_graph(site).nodes}[AGENT] == PAGE


async def test_what_is_known_of_an_agent(opened: World) -> None:
    site = opened.site
    await until(lambda: site.agents.get(AGENT) is not None)
    presence = site.agents.get(AGENT)
    assert presence is not None
    site.agents.notice(HeartbeatSeen(presence.agent, 0), presence.found)
    facts = dict(agent_facts(attrs.evolve(presence, heartbeat=100.0), 107.0))
    assert (facts["Vendor"], facts["Product"], facts["Instance"]) == ("example.org", "store", "1")
    assert (facts["State"], facts["Last heartbeat"], facts["Restarts since then"]) == ("alive", "7s", "0")
    assert facts["Interval of heartbeats"] == "10s"
    site.agents.notice(AgentRemoved(presence.agent, Removal.GOODBYE), 200.0)
    gone = site.agents.get(AGENT)
    assert gone is not None
    facts = dict(agent_facts(gone, 207.0))
    assert facts["State"].startswith("gone: ")
    assert "Gone since" in facts


async def test_the_classes_of_an_agent_lead_to_its_objects_and_events(opened: World) -> None:
    site = opened.site
    await site.catalogue.count()
    used = (await opened.client.classes(agent=AGENT)).items
    rows = {row.cells[0].text: row.cells for row in agent_classes(site.catalogue.classes(), used, AGENT)}
    assert (rows["Shelf"][1].text, rows["Shelf"][3].text) == ("3", "objects")
    assert rows["Shelf"][0].href == "/objects/org.example.store/shelf?agent=example.org%3Astore%3A1"
    assert rows["sale"][0].href == "/events?class=org.example.store%3Asale&agent=example.org%3Astore%3A1"
    assert {row.cells[0].text for row in agent_classes(site.catalogue.classes(), (), AGENT)} == {"Shelf", "Store"}
    assert agent_classes(site.catalogue.classes(), (), "other:agent:1") == []
