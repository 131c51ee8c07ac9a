"""Messages sent to an exchange that evaluates queries: in their order, and others go on meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from broker.raw_clients import usable
from broker.visible_broker import VisibleBroker
from support.waiting import until

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.settings import ExchangeSettings, QueueSettings
from qmf.broker.nodes.xml_exchange import XmlExchange
from qmf.messaging import LinkClosed, Message
from qmf.messaging.aio import Connection

pytest.importorskip("saxonche")


def furnish(broker: VisibleBroker, *queries: str) -> XmlExchange:
    """An exchange, and a durable queue for each query."""
    registry = broker.registry
    exchange = registry.create("x", NodeDeclaration(ExchangeSettings("xml")))
    assert isinstance(exchange, XmlExchange)
    for number, query in enumerate(queries):
        queue = registry.declare_queue(f"q{number}", QueueSettings(durable=True))
        registry.bind(exchange, queue, BindingSpec("k", {"xquery": query} if query else {}))
    return exchange


async def test_messages_are_routed_by_their_queries_in_order(tmp_path: Path) -> None:
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        exchange = furnish(broker, "", "number(/n) mod 3 = 0")
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session()
        sender = await session.sender("x/k", capacity=200)
        for number in range(100):
            await sender.send(Message(f"<n>{number}</n>", durable=number % 2 == 0), sync=False)
        await sender.send(Message("other", subject="none matches"))
        await session.sync()
        for name, step in (("q0", 1), ("q1", 3)):
            receiver = await session.receiver(name, capacity=200)
            expected = [f"<n>{number}</n>" for number in range(0, 100, step)]
            assert [(await receiver.fetch(timeout=30)).content for _ in expected] == expected
        await session.acknowledge()
        assert exchange.counters.received == 101
        assert exchange.counters.discarded == 1
        await connection.close()


async def test_others_go_on_while_queries_are_evaluated() -> None:
    async with VisibleBroker(port=0, queues=["other"]) as broker:
        process = child_of(lambda: furnish(broker, "//b", ""))
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session()
        slow, quick = await session.sender("x/k"), await session.sender("other")
        process.suspend()
        await slow.send(Message("<b/>"), sync=False)
        await until(is_asking, "the query")
        await quick.send(Message("quick"))
        (exchange,) = [each for each in broker.registry.exchanges if each.name == "x"]
        assert exchange.counters.received == 0
        process.resume()
        await session.sync()
        for name in ("q0", "q1"):
            assert (await (await session.receiver(name)).fetch(timeout=30)).content == "<b/>"
        await connection.close()


async def test_what_has_come_before_the_link_ended_is_published() -> None:
    async with VisibleBroker(port=0) as broker:
        process = child_of(lambda: furnish(broker, "//b"))
        connection = await Connection.establish(broker.url, timeout=30)
        sender = await (await connection.session()).sender("x/k; {link: {reliability: unreliable}}")
        process.suspend()
        for _ in range(5):
            await sender.send(Message("<b/>"))
        await until(is_asking, "the query")
        await connection.close()
        await until(lambda: not broker.connections, "the end of the connection")
        process.resume()
        (queue,) = broker.registry.queues
        await until(lambda: len(queue.contents) == 5, "the messages")


async def test_a_deleted_exchange_does_not_wait_for_its_queries() -> None:
    async with VisibleBroker(port=0, queues=["other"]) as broker:
        process = child_of(lambda: furnish(broker, "//b"))
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session()
        sender = await session.sender("x/k")
        process.suspend()
        for _ in range(20):
            await sender.send(Message("<b/>"), sync=False)
        await until(is_asking, "the query")
        (exchange,) = [each for each in broker.registry.exchanges if each.name == "x"]
        broker.registry.delete(exchange)
        assert not process.is_running()
        assert not is_asking()
        with pytest.raises(LinkClosed, match="'x' was deleted"):
            await connection.close()
        await usable(broker)


def child_of(start: Callable[[], object]) -> psutil.Process:
    """The process that something starts."""
    before = set(psutil.Process().children())
    start()
    (process,) = set(psutil.Process().children()) - before
    return process


def is_asking() -> bool:
    """A query was given to the thread that waits for the answer."""
    return any(thread.name.startswith("qmf-broker-queries") for thread in threading.enumerate())
