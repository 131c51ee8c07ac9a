"""The columns of routes between brokers by default."""

from __future__ import annotations

from pathlib import Path

from support.waiting import until
from web.pages.world import opened_world

from qmf.bus import MemoryExchange
from qmf.schema import parse_schema
from qmf.testing import FakeAgent
from qmf.web.pages.views.object_table import ClassTable
from qmf.web.pages.views.page_urls import ObjectsUrl

ROOT = Path(__file__).resolve().parents[4]
ROUTES = ObjectsUrl("qmf.federation", "route")


async def test_the_columns_of_routes_are_state_lag_rate_and_error() -> None:
    exchange = MemoryExchange()
    schema = parse_schema((ROOT / "schemas/federation.xml").read_bytes(), "federation.xml")
    fake = FakeAgent(exchange, schema, interval=0.05)
    for name, up in (("a", True), ("b", False)):
        texts = {"kind": "bridge", "link": "l", "broker": "here", "source": "q", "target": "q", "key": ""}
        route = fake.add("Route", name=name, outgoing=False, dynamic=False, durable=False, **texts)
        route.state, route.up, route.place = "Operational" if up else "Waiting", up, "hq:5672"
        route.lastError = "" if up else "connection refused"
    async with fake, opened_world(exchange, fake) as found:
        objects, _ = found.site.follow_class(ROUTES.package, ROUTES.name)
        await until(lambda: len(objects) == 2 and objects.complete)
        page = await ClassTable(found.site, objects, ROUTES.package, ROUTES.name).page(ROUTES)
    titles = [column.title for column in page.columns]
    assert titles == ["Object", "place", "state", "backlog", "behind", "transfers/s", "credit", "lastError", "since"]
    states = {row.cells[0].text: row.cells[2] for row in page.rows}
    assert [(cell.text, cell.kind) for cell in states.values()] == [("Operational", ""), ("Waiting", "warn")]


async def test_the_columns_of_relays_and_links_between_queues() -> None:
    exchange = MemoryExchange()
    schema = parse_schema((ROOT / "schemas/forwarding.xml").read_bytes(), "forwarding.xml")
    fake = FakeAgent(exchange, schema, interval=0.05)
    relay = fake.add("Relay", name="office", domain="d", durable=False, transmissionQueue="q", deadLetters="l")
    relay.state = "Paused"
    relay.waiting.set(3)
    texts = {"source": "a", "target": "b", "mode": "copy", "selector": "", "creator": ""}
    link = fake.add("QueueLink", name="keep", durable=False, maxCount=0, maxSize=0, maxRate=0, **texts)
    link.state = "Operational"
    titles: dict[str, list[str]] = {}
    async with fake, opened_world(exchange, fake) as found:
        for name in ("relay", "queuelink"):
            url = ObjectsUrl("qmf.forwarding", name)
            objects, _ = found.site.follow_class(url.package, url.name)
            await until(lambda objects=objects: len(objects) == 1 and objects.complete)  # type: ignore[misc]
            page = await ClassTable(found.site, objects, url.package, url.name).page(url)
            titles[name] = [column.title for column in page.columns]
            (row,) = page.rows
            state = row.cells[titles[name].index("state")]
            assert (state.text, state.kind) == (("Paused", "notice") if name == "relay" else ("Operational", ""))
    assert titles["relay"] == [
        *("Object", "state", "waiting", "forwarded", "forwarded/s", "retried", "deadLettered", "lastError", "since"),
    ]
    assert titles["queuelink"] == [
        *("Object", "source", "target", "mode", "state", "passed", "passed/s", "lastError", "since"),
    ]
