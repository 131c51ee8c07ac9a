"""Relays without a domain: the other broker takes the messages itself, to the nodes in their addresses."""

from __future__ import annotations

import asyncio

import pytest
from broker.federation.federated import IN, pair, receive, send
from broker.operations.rules import REASON, refusing
from broker.relay.relaying import DOMAIN, LETTERS, ORDERS, RelayingBroker, reason_in, relaying
from support.waiting import until

from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.policy import Action, ObjectType
from qmf.broker.operations.principal import BROKER, Principal
from qmf.messaging import aio
from qmf.messaging.message import Message

WAITING = f"relay.{DOMAIN}"


def pull(here: RelayingBroker, there: RelayingBroker, principal: Principal = BROKER, **properties: object) -> None:
    """Let the other broker take the messages of a relay that waits."""
    there.domain(here.url, "branch")
    wanted = {"domain": "branch", "source": WAITING, "by_address": True, **properties}
    there.operations.forwarding.create(principal, IN.value, "pull", wanted, strict=True)


async def test_messages_go_to_the_nodes_of_their_addresses() -> None:
    async with relaying(other=["orders", "bills"]) as (here, there):
        here.relay()
        await send(here, ORDERS, "one")
        await send(here, f"bills@{DOMAIN}", "two")
        pull(here, there)
        await send(here, ORDERS, "three")
        assert await receive(there, "orders", 2) == ["one", "three"]
        assert await receive(there, "bills", 1) == ["two"]
        await here.has(WAITING, 0)


async def test_a_message_keeps_its_identity_and_names_its_node() -> None:
    async with relaying() as (here, there):
        here.relay()
        pull(here, there)
        async with aio.Connection(here.url) as connection:
            sender = await (await connection.session()).sender(ORDERS)
            await sender.send(Message({"n": 1}, id="order-17", subject="new", properties={"colour": "red"}))
        async with aio.Connection(there.url) as connection:
            got = await (await (await connection.session()).receiver("orders")).fetch(timeout=30)
        assert (got.id, got.subject, got.content, got.properties["colour"]) == ("order-17", "new", {"n": 1}, "red")


async def test_a_message_leaves_with_what_is_left_of_its_time_to_live() -> None:
    """Whoever pulls it: a link, with resumption or without, and any other client, alone or with others."""
    async with relaying(other=["orders", "copies"]) as (here, there):
        here.relay()
        for number in range(4):
            await send(here, ORDERS, str(number), ttl=60)
        await send(here, ORDERS, "no end")
        loop = asyncio.get_running_loop()
        began = loop.time()
        await until(lambda: loop.time() > began + 0.05, "some of the time to live")
        async with aio.Connection(here.url) as connection:
            session = await connection.session()
            receiver = await session.receiver(f"{WAITING}; {{mode: browse}}", capacity=10)
            assert [left(await receiver.fetch(timeout=30)) for _ in range(5)] == [True] * 4 + [None]
            await receiver.close()
            receiver = await session.receiver(WAITING, capacity=1)
            assert left(await receiver.fetch(timeout=30))
            await session.acknowledge()
            await receiver.close()
        pull(here, there)
        async with aio.Connection(there.url) as connection:
            receiver = await (await connection.session()).receiver("orders", capacity=10)
            assert [left(await receiver.fetch(timeout=30)) for _ in range(4)] == [True] * 3 + [None]


def left(message: Message) -> bool | None:
    """A message has less than its time to live, which was a minute; None if it has none."""
    return None if message.ttl is None else 30 < message.ttl < 59.96


async def test_a_message_without_a_node_is_a_dead_letter_where_it_was_pulled() -> None:
    async with relaying() as (here, there):
        here.relay()
        pull(here, there)
        await send(here, f"nothing@{DOMAIN}", "lost")
        await send(here, ORDERS, "one")
        assert await receive(there, "orders", 1) == ["one"]
        await there.has(LETTERS, 1)
        assert reason_in(there) == "no exchange or queue 'nothing'"
        await here.has(WAITING, 0)


async def test_a_message_to_what_the_creator_of_the_link_may_not_use_is_a_dead_letter() -> None:
    async with relaying(other=["orders", "secret"]) as (here, there):
        here.relay()
        pull(here, there, dead_letters="odd", principal=Principal("ann", "127.0.0.1:1", "AMQP 1.0"))
        there.operations.policy = refusing(Action.ACCESS, ObjectType.QUEUE, "secret")
        await send(here, f"secret@{DOMAIN}", "lost")
        await there.has("odd", 1)
        assert REASON in reason_in(there, "odd")


async def test_messages_of_other_queues_go_to_the_node_in_their_to() -> None:
    async with pair(own=["here"], other=["there"]) as (here, there):
        link = {"domain": "peer", "source": "there", "by_address": True}
        here.operations.forwarding.create(BROKER, IN.value, "link", link, strict=True)
        async with aio.Connection(there.url) as connection:
            sender = await (await connection.session()).sender("there")
            await sender.send(Message("none"))
            await sender.send(Message("one", to="here"))
        assert await receive(here, "here", 1) == ["one"]
        await until(lambda: here.depth(LETTERS) == 1, "one has no address")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"by_address": True, "target": "q"}, "by_address: a link with it has no target"),
        ({"target": "q", "dead_letters": "d"}, "dead_letters: is for incoming links with by_address"),
        ({}, "target: is missing"),
    ],
)
async def test_what_is_wrong_is_named(properties: dict[str, object], text: str) -> None:
    async with pair() as (here, _):
        with pytest.raises(ForwardingError, match=text):
            here.operations.forwarding.create(BROKER, IN.value, "link", {"domain": "peer", "source": "s", **properties})
