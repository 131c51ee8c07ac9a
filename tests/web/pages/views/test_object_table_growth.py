"""Pages of objects take as much work for each object, however many there are."""

from __future__ import annotations

import attrs
import pytest
from support.growth import instructions_of
from support.waiting import until
from web.pages.world import opened_world, world

from qmf.bus import MemoryExchange
from qmf.schema import parse_schema
from qmf.testing import FakeAgent
from qmf.web.pages.views.object_table import ClassTable
from qmf.web.pages.views.page_urls import ObjectsUrl

PACKAGE = "org.example.store"
FEW, FACTOR = 50, 8
#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0


async def _work(count: int, url: ObjectsUrl) -> int:
    async with world(shelves=count) as opened:
        objects, _ = opened.site.follow_class(PACKAGE, "shelf")
        await until(lambda: len(objects) == count and objects.complete)
        table = ClassTable(opened.site, objects, PACKAGE, "shelf")
        await table.page(attrs.evolve(url, page=2))  # makes what is made once
        # Another order than the one that is kept.
        return await instructions_of(table.page(url))


@pytest.mark.parametrize(
    "url",
    [ObjectsUrl(PACKAGE, "shelf", sort="sold"), ObjectsUrl(PACKAGE, "shelf", filter="a/")],
    ids=["sort", "filter"],
)
async def test_a_page_of_objects(url: ObjectsUrl) -> None:
    few, many = await _work(FEW, url), await _work(FEW * FACTOR, url)
    assert many < MOST * few


#: As few, since a page has five of them.
FEW_OF_BROKER = 16

#: What pages read of the classes of a broker.
BROKER = b"""<schema package="org.apache.qpid.broker">
  <class name="Queue">
    <property name="name" type="sstr" access="RC" index="y"/>
    <property name="durable" type="bool" access="RC"/>
    <statistic name="msgDepth" type="count64"/>
    <statistic name="msgTotalEnqueues" type="uint64" unit="message"/>
    <statistic name="msgTotalDequeues" type="uint64" unit="message"/>
    <statistic name="consumerCount" type="uint32"/>
  </class>
  <class name="Connection">
    <property name="address" type="sstr" access="RC" index="y"/>
    <property name="remoteProcessName" type="lstr" access="RO" optional="y"/>
  </class>
  <class name="Session">
    <property name="name" type="sstr" access="RC" index="y"/>
    <property name="connectionRef" type="objId" access="RO" references="Connection"/>
  </class>
</schema>"""


async def _broker_work(count: int, name: str) -> int:
    exchange = MemoryExchange()
    fake = FakeAgent(exchange, parse_schema(BROKER, "broker.xml"), interval=10.0)
    for number in range(count):
        if name == "queue":
            fake.add("Queue", name=f"queue-{number}")
        else:
            connection = fake.add("Connection", address=f"192.0.2.7:{number}")
        if name == "session":
            fake.add("Session", name=f"session-{number}", connectionRef=connection)
    async with fake, opened_world(exchange, fake) as opened:
        connections, _ = opened.site.follow_class("org.apache.qpid.broker", "connection")
        objects, _ = opened.site.follow_class("org.apache.qpid.broker", name)
        await until(lambda: len(objects) == count and objects.complete and connections.complete)
        table = ClassTable(opened.site, objects, "org.apache.qpid.broker", name)
        url = ObjectsUrl("org.apache.qpid.broker", name, descending=True, size=5)
        await table.page(attrs.evolve(url, page=2))
        return await instructions_of(table.page(attrs.evolve(url, sort="agent")))


@pytest.mark.parametrize("name", ["queue", "connection", "session"])
async def test_a_page_of_a_broker(name: str) -> None:
    few, many = await _broker_work(FEW_OF_BROKER, name), await _broker_work(FEW_OF_BROKER * FACTOR, name)
    assert many < MOST * few
