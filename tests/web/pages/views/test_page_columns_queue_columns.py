"""The columns of queues by default, made from the statistics of brokers' queues."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from support.waiting import until
from web.pages.world import opened_world

from qmf.bus import MemoryExchange
from qmf.schema import parse_schema
from qmf.testing import FakeAgent
from qmf.web.pages.views.data_rows import Cell
from qmf.web.pages.views.object_table import ClassTable, TablePage
from qmf.web.pages.views.page_urls import ObjectsUrl

ROOT = Path(__file__).resolve().parents[4]
QUEUES = ObjectsUrl("org.apache.qpid.broker", "queue")
#: What is set of a queue; and what is shown in its row, without its rates.
CASES: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "idle": ({}, ("idle", "0", "0", "0")),
    "waiting": ({"msgTotalEnqueues": 7}, ("no consumer", "7", "0", "0")),
    "running": (
        {"msgTotalEnqueues": 7, "consumerCount": 2, "unackedMessages": 3},
        ("running", "4", "3", "2"),
    ),
    # As qpidd's: 9 acquired, 1 given back, 2 acknowledged, 3 expired and 4 dropped without having been acquired.
    "uncounted": (
        {
            "msgTotalEnqueues": 19,
            "msgTotalDequeues": 9,
            "acquires": 9,
            "releases": 1,
            "discardsTtl": 3,
            "discardsRing": 4,
            "consumerCount": 1,
        },
        ("running", "4", "6", "1"),
    ),
    # Messages were moved away, which nothing counts.
    "moved": ({"msgTotalEnqueues": 5, "msgTotalDequeues": 4}, ("no consumer", "1", "0", "0")),
    "full": ({"flowStopped": True, "consumerCount": 1}, ("flow stopped", "0", "0", "1")),
    "redirected": ({"redirectSource": True, "redirectPeer": "x"}, ("redirected", "0", "0", "0")),
}


async def page_of(url: ObjectsUrl = QUEUES) -> TablePage:
    """The page of a broker with the queues of `CASES`."""
    exchange = MemoryExchange()
    fake = FakeAgent(exchange, parse_schema((ROOT / "schemas/broker.xml").read_bytes(), "broker.xml"), interval=0.05)
    vhost = fake.add("Vhost", name="/")
    for name, (values, _) in CASES.items():
        queue = fake.add("Queue", name=name, vhostRef=vhost, durable=True, autoDelete=False, exclusive=False)
        for statistic, value in values.items():
            accessor: Any = getattr(queue, statistic)
            if isinstance(value, bool | str):
                setattr(queue, statistic, value)
            else:
                accessor.set(value)
    async with fake, opened_world(exchange, fake) as found:
        objects, _ = found.site.follow_class(url.package, url.name)
        await until(lambda: len(objects) == len(CASES) and objects.complete)
        return await ClassTable(found.site, objects, url.package, url.name).page(url)


def row(page: TablePage, name: str) -> tuple[Cell, ...]:
    return next(row.cells for row in page.rows if row.cells[0].text.endswith(name))


async def test_the_columns_of_queues_are_state_messages_consumers_and_flow() -> None:
    page = await page_of()
    titles = [column.title for column in page.columns]
    assert titles == ["Object", "state", "ready", "unacknowledged", "consumers", "in/s", "out/s"]
    shown = {name: tuple(cell.text for cell in row(page, name)[1:5]) for name in CASES}
    assert shown == {name: expected for name, (_, expected) in CASES.items()}
    assert row(page, "full")[1].kind == "warn"
    assert row(page, "running")[1].kind == ""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("unacknowledged>0", {"running", "uncounted"}),
        ("state='no consumer' ready<2", {"moved"}),
        ("stopped", {"full"}),
    ],
)
async def test_they_can_be_asked_for(text: str, found: set[str]) -> None:
    page = await page_of(attrs.evolve(QUEUES, filter=text, columns=("state",)))
    assert page.problem == ""
    assert {next(name for name in CASES if item.cells[0].text.endswith(name)) for item in page.rows} == found
