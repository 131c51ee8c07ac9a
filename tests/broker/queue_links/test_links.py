"""Links between queues of a broker: what they take, how much, for whom, and what they do when they cannot."""

from __future__ import annotations

from typing import Any

import pytest
from broker.federation.federated import receive, send
from broker.operations.rules import Rules, refusing
from broker.queue_links.linked import linking
from support.waiting import until

from qmf.broker.nodes.bindings import BindingSpec
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.policy import Action, ObjectType, OperationRefused
from qmf.broker.operations.principal import BROKER, Principal
from qmf.messaging import aio

BOB = Principal("bob", protocol="AMQP 1.0")


async def test_messages_are_moved_in_their_order_those_that_wait_and_those_that_come() -> None:
    async with linking() as broker:
        await send(broker, "in", "one", "two")
        link = broker.connect_queues()
        await send(broker, "in", "three")
        assert await receive(broker, "out", 3) == ["one", "two", "three"]
        await broker.has(**{"in": 0})
        assert (link.passed, link.state_name, link.reason) == (3, "Operational", "")
        assert link.octets > 0


async def test_a_copy_stays_and_begins_with_what_comes() -> None:
    async with linking() as broker:
        await send(broker, "in", "before")
        broker.connect_queues(mode="copy")
        await send(broker, "in", "one", "two")
        assert await receive(broker, "out", 2) == ["one", "two"]
        assert await receive(broker, "in", 3) == ["before", "one", "two"]


@pytest.mark.parametrize(("mode", "start", "expected"), [("copy", "head", 2), ("move", "tail", 1), ("copy", "tail", 1)])
async def test_where_a_link_begins(mode: str, start: str, expected: int) -> None:
    async with linking() as broker:
        await send(broker, "in", "before")
        broker.connect_queues(mode=mode, start=start)
        await send(broker, "in", "after")
        await broker.has(out=expected)


async def test_a_copy_is_made_whoever_receives_the_message_meanwhile() -> None:
    async with linking() as broker, aio.Connection(broker.url) as connection:
        broker.connect_queues(mode="copy")
        receiver = await (await connection.session()).receiver("in; {link: {reliability: unreliable}}", capacity=10)
        await send(broker, "in", *map(str, range(20)))
        assert [(await receiver.fetch(timeout=30)).content for _ in range(20)] == [*map(str, range(20))]
        await broker.has(out=20)


@pytest.mark.parametrize("mode", ["move", "copy"])
async def test_a_selector_and_a_limit_of_size(mode: str) -> None:
    async with linking() as broker:
        broker.connect_queues(mode=mode, selector="colour = 'red'", max_size=300)
        await send(broker, "in", "kept", properties={"colour": "red"})
        await send(broker, "in", "blue", properties={"colour": "blue"})
        await send(broker, "in", "x" * 400, properties={"colour": "red"})
        await send(broker, "in", "kept, too", properties={"colour": "red"})
        assert await receive(broker, "out", 2) == ["kept", "kept, too"]
        await broker.has(**{"in": 2 if mode == "move" else 4})


@pytest.mark.parametrize("mode", ["move", "copy"])
async def test_a_limit_of_the_whole_ends_the_link(mode: str) -> None:
    async with linking() as broker:
        link = broker.connect_queues(mode=mode, max_count=2, start="head")
        await send(broker, "in", "one", "two", "three")
        await broker.has(out=2)
        await until(lambda: link.state_name == "Completed", lambda: link.state_name)
        await send(broker, "in", "four")
        assert (broker.depth("out"), link.passed) == (2, 2)


@pytest.mark.parametrize("mode", ["move", "copy"])
async def test_a_rate_makes_messages_wait_and_loses_none(mode: str) -> None:
    async with linking() as broker:
        broker.connect_queues(mode=mode, max_rate=500, start="head")
        await send(broker, "in", *map(str, range(60)))
        assert await receive(broker, "out", 60) == [*map(str, range(60))]


@pytest.mark.parametrize("mode", ["move", "copy"])
async def test_a_full_target_makes_the_link_wait(mode: str) -> None:
    async with linking() as broker:
        broker.small_queue("small", 2)
        link = broker.connect_queues(mode=mode, target="small")
        await send(broker, "in", "one", "two", "three", "four")
        await until(lambda: link.state_name == "Waiting", lambda: link.state_name)
        assert link.reason == "queue 'small' is full"
        assert await receive(broker, "small", 4) == ["one", "two", "three", "four"]
        await until(lambda: (link.state_name, link.reason) == ("Operational", ""), lambda: link.reason)


async def test_one_name_fans_out_to_many_queues_by_links_and_by_an_exchange() -> None:
    async with linking("a", "b", "c") as broker:
        for name in ("a", "b"):
            broker.operations.bind(BROKER, broker.exchange("amq.fanout"), broker.queue(name), BindingSpec(name))
        broker.connect_queues("to-exchange", target="amq.fanout", mode="copy")
        broker.connect_queues("to-queue", target="c", mode="copy", selector="amqp.subject = 'new'")
        broker.connect_queues("rest", target="out")
        await send(broker, "in", "x", subject="new")
        await send(broker, "in", "y", subject="old")
        await broker.has(a=2, b=2, c=1, out=2, **{"in": 0})


async def test_what_an_exchange_would_drop_stays() -> None:
    async with linking() as broker:
        broker.operations.bind(BROKER, broker.exchange("amq.topic"), broker.queue("out"), BindingSpec("news.*"))
        link = broker.connect_queues(target="amq.topic")
        await send(broker, "in", "weather", subject="weather")
        await send(broker, "in", "news", subject="news.today")
        await broker.has(out=1, **{"in": 1})
        assert link.skipped == 1


async def test_receivers_and_a_link_that_moves_share_the_messages() -> None:
    async with linking() as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        receiver = await session.receiver("in", capacity=5)
        broker.connect_queues()
        await send(broker, "in", *map(str, range(20)))
        await until(lambda: broker.depth("out") and receiver.available(), "both have some")
        await connection.close()
        await broker.has(out=20, **{"in": 0})


async def test_a_link_can_be_paused() -> None:
    async with linking() as broker:
        link = broker.connect_queues()
        broker.operations.forwarding.pause(BROKER, "queuelink", "link")
        await send(broker, "in", "one")
        assert (link.state_name, broker.depth("in"), broker.depth("out")) == ("Paused", 1, 0)
        broker.operations.forwarding.resume(BROKER, "queuelink", "link")
        await broker.has(out=1)


async def test_a_deleted_link_takes_nothing_more_and_keeps_nothing() -> None:
    async with linking() as broker:
        broker.small_queue("small", 1)
        for name, mode in (("moves", "move"), ("copies", "copy")):
            broker.connect_queues(name, mode=mode, target="small")
            await send(broker, "in", "x", "y")
            broker.operations.forwarding.delete(BROKER, "queuelink", name)
        contents = broker.queue("in").contents
        assert contents.acquired_count == 0
        assert not broker.queue("in").delivery.consumers.all
        with pytest.raises(ForwardingError, match="No such link between queues: moves"):
            broker.operations.forwarding.delete(BROKER, "queuelink", "moves")


@pytest.mark.parametrize("gone", ["in", "out"])
async def test_a_link_whose_node_is_deleted_has_failed(gone: str) -> None:
    async with linking() as broker:
        link = broker.connect_queues()
        broker.operations.delete(BROKER, broker.queue(gone))
        assert (link.state_name, link.reason) == ("Failed", f"queue '{gone}' was deleted")
        broker.operations.forwarding.delete(BROKER, "queuelink", "link")


async def test_circles_are_refused_also_those_that_are_made_later() -> None:
    async with linking("middle") as broker:
        broker.connect_queues("one", target="middle")
        broker.connect_queues("two", source="middle")
        with pytest.raises(ForwardingError, match="messages would come back to queue 'out' by link one, two"):
            broker.connect_queues("three", source="out", target="in")
        broker.connect_queues("four", source="out", target="amq.fanout", mode="copy")
        broker.operations.bind(BROKER, broker.exchange("amq.fanout"), broker.queue("in"), BindingSpec("k"))
        await send(broker, "in", "x")
        first = broker.queue_link("one")
        await until(lambda: first.state_name == "Failed", lambda: first.state_name)
        assert first.reason == "its messages come back to queue 'in' by link two, four"
        await broker.has(out=0, middle=0, **{"in": 1})


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"source": ""}, "source: is missing"),
        ({"source": "none"}, "source: no queue 'none'"),
        ({"target": "none"}, "target: no exchange or queue 'none'"),
        ({"target": "in"}, "target: is the source"),
        ({"mode": "steal"}, "mode: must be move, copy, not 'steal'"),
        ({"selector": "colour ="}, "selector: "),
        ({"start": "middle"}, "start: must be head, tail, .*, not 'middle'"),
        ({"max_rate": -1}, "max_rate: must be a number from 0"),
        ({"durable": True}, "durable: its source and its target must be durable as well"),
        ({"colour": 1}, "colour: unknown"),
    ],
)
async def test_what_is_wrong_is_named(properties: dict[str, Any], text: str) -> None:
    async with linking() as broker:
        with pytest.raises(ForwardingError, match=text):
            broker.connect_queues(**properties)
        assert not broker.operations.forwarding.types["queuelink"]


async def test_names_are_used_once() -> None:
    async with linking() as broker:
        broker.connect_queues()
        with pytest.raises(ForwardingError, match="object already exists: link"):
            broker.connect_queues()


@pytest.mark.parametrize(
    ("mode", "action", "object_type", "name"),
    [
        ("move", Action.CONSUME, ObjectType.QUEUE, "in"),
        ("copy", Action.BROWSE, ObjectType.QUEUE, "in"),
        ("move", Action.PUBLISH, ObjectType.EXCHANGE, ""),
        ("move", Action.CREATE, ObjectType.LINK, "link"),
    ],
)
async def test_a_link_acts_for_its_creator(mode: str, action: Action, object_type: ObjectType, name: str) -> None:
    wanted = {"source": "in", "target": "out", "mode": mode}
    async with linking() as broker:
        broker.operations.policy = refusing(action, object_type, name)
        with pytest.raises(OperationRefused, match="may not"):
            broker.operations.forwarding.create(BOB, "queuelink", "link", wanted)
        broker.operations.policy = Rules()
        broker.operations.forwarding.create(BOB, "queuelink", "link", wanted)
        if action is not Action.CREATE:
            broker.operations.policy = refusing(action, object_type, name)
            link = broker.queue_link()
            assert (link.state_name, "may not" in link.reason) == ("Failed", True)
            broker.operations.policy = Rules()
            await send(broker, "in", "x")
            assert broker.depth("in") == 1


async def test_sources_of_other_kinds() -> None:
    async with linking() as broker:
        kinds: dict[str, dict[str, object]] = {
            "ring": {"qpid.policy_type": "ring", "qpid.max_count": 2},
            "last": {"qpid.last_value_queue_key": "k"},
        }
        for name, argument in kinds.items():
            broker.operations.create(BROKER, name, read_node_declaration(("queue",), argument))
            broker.connect_queues(name, source=name, mode="copy")
        for number in range(4):
            await send(broker, "ring", str(number))
            await send(broker, "last", str(number), properties={"k": "one"})
        assert sorted(map(str, await receive(broker, "out", 8))) == sorted([*map(str, range(4))] * 2)
