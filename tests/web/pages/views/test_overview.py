"""The first page: what there is, and the connection."""

from __future__ import annotations

import time

from support.waiting import until
from web.pages.world import World

from qmf.console.aio import ObjectId
from qmf.schema import Kind
from qmf.web.pages.views.overview import connection_text, overview

AGENT = "example.org:store:1"
SHELF = ObjectId("org.example.store:shelf:a/1", AGENT)


async def test_the_overview(opened: World) -> None:
    site = opened.site
    before = overview(site, time.time())
    assert before.objects is None
    await site.catalogue.count()
    found = overview(site, time.time())
    assert (found.objects, found.classes, found.event_classes, found.packages) == (4, 2, 2, 1)
    [agent] = found.agents
    assert (agent.key, agent.cells[4].text) == (AGENT, "4")
    summaries = {item.title: item for item in site.catalogue.classes()}
    assert summaries["Shelf"].total == 3
    assert summaries["sale"].kind is Kind.EVENT
    await opened.agent.close()
    await until(lambda: overview(site, time.time()).gone == 1)
    assert "goodbye" in overview(site, time.time()).agents[0].cells[-1].text


async def test_the_loss_of_the_broker_is_told(opened: World) -> None:
    assert connection_text(opened.site.connection, time.time()) == ""
    opened.exchange.stop("it was stopped")
    await until(lambda: not opened.site.connection.connected)
    text = connection_text(opened.site.connection, time.time())
    assert "was lost" in text
    assert "it was stopped" in text
    opened.exchange.start()
    await until(lambda: opened.site.connection.connected)
    assert connection_text(opened.site.connection, time.time()) == ""
