"""Relaying under rules: who may relay, who may create relays, and whose name a message has at the other broker."""

from __future__ import annotations

import asyncio

import pytest
from broker.operations.rules import Rules, refusing
from broker.relay.relaying import DOMAIN, LETTERS, ORDERS, RelayingBroker, reason_in, relaying

from qmf.broker.operations.policy import Action, ObjectType, OperationRefused
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.relay.options import RelayOptions
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message

BOB = Principal("bob", protocol="AMQP 1.0")
USERS = {"alice": "a", "agent": "b"}


async def send_as(broker: RelayingBroker, user: str, password: str, address: str, **properties: object) -> None:
    async with aio.Connection(broker.url, username=user, password=password) as connection:
        sender = await (await connection.session()).sender(address)
        await sender.send(Message("x", **properties), timeout=30)  # type: ignore[arg-type]


async def received(broker: RelayingBroker) -> Message:
    async with aio.Connection(broker.url, username="agent", password="b") as connection:
        return await (await (await connection.session()).receiver("orders")).fetch(timeout=30)


async def chain(agents: tuple[str, ...]) -> tuple[RelayingBroker, RelayingBroker]:
    there = RelayingBroker(port=0, queues=["orders"], users=USERS, relay=RelayOptions(agents=frozenset(agents)))
    await there.start()
    here = RelayingBroker(port=0, users=USERS, relay=RelayOptions(enabled=True))
    await here.start()
    here.domain(there.url, username="agent", password="b", sasl_mechanisms="PLAIN")
    here.relay(domain="peer")
    return here, there


@pytest.mark.parametrize("named", ["alice", None])
async def test_the_other_broker_learns_who_has_sent_a_message(named: str | None) -> None:
    here, there = await chain(("agent",))
    await send_as(here, "alice", "a", ORDERS, user_id=named)
    assert (await received(there)).user_id == "alice"
    await asyncio.gather(here.close(), there.close())


async def test_without_that_right_an_agent_names_nobody_else() -> None:
    here, there = await chain(())
    await send_as(here, "alice", "a", ORDERS)
    await here.has(LETTERS, 1)
    assert "amqp:unauthorized-access: the message names the user b'alice', and the client is 'agent'" in reason_in(here)
    await asyncio.gather(here.close(), there.close())


async def test_a_client_that_has_not_logged_in_is_named_as_nobody() -> None:
    async with relaying() as (here, there):
        here.relay(domain="peer")
        async with aio.Connection(here.url) as connection:
            sender = await (await connection.session()).sender(ORDERS)
            await sender.send(Message("x", user_id="root"))
        async with aio.Connection(there.url) as connection:
            assert (await (await (await connection.session()).receiver("orders")).fetch(timeout=30)).user_id is None


async def test_a_right_is_asked_for_the_domain_and_for_the_address() -> None:
    async with relaying() as (here, _):
        here.relay()
        for rules in (
            Rules(lambda _, asked: asked.action is Action.PUBLISH and asked.name == f"@{DOMAIN}"),
            Rules(lambda _, asked: asked.action is Action.ACCESS and asked.name == ORDERS),
        ):
            here.operations.policy = rules
            async with aio.Connection(here.url) as connection:
                session = await connection.session()
                with pytest.raises(MessagingError, match="may not"):
                    await (await session.sender(ORDERS)).send(Message("x"))
        here.operations.policy = Rules()
        async with aio.Connection(here.url) as connection:
            await (await (await connection.session()).sender(ORDERS)).send(Message("x"))


async def test_relays_are_created_by_those_who_may_create_links() -> None:
    async with relaying() as (here, _):
        user = BOB
        here.operations.policy = refusing(Action.CREATE, ObjectType.LINK)
        for call in (
            lambda: here.operations.forwarding.create(user, "relay", DOMAIN, {"domain": "peer"}),
            lambda: here.operations.forwarding.delete(user, "relay", DOMAIN),
            lambda: here.operations.forwarding.pause(user, "relay", DOMAIN),
            lambda: here.operations.forwarding.resume(user, "relay", DOMAIN),
            lambda: here.operations.forwarding.retry_dead_letters(user, DOMAIN, 0),
        ):
            with pytest.raises(OperationRefused, match="may not create link"):
                call()


async def test_a_relay_acts_for_its_creator_as_long_as_that_may() -> None:
    async with relaying() as (here, _):
        here.operations.policy = refusing(Action.CONSUME, ObjectType.QUEUE)
        with pytest.raises(OperationRefused, match=r"may not consume queue 'relay\.office\.example'"):
            here.operations.forwarding.create(BOB, "relay", DOMAIN, {"domain": "peer"})
        here.operations.policy = Rules()
        here.operations.forwarding.create(BOB, "relay", DOMAIN, {"domain": "peer"})
        here.operations.policy = refusing(Action.CONSUME, ObjectType.QUEUE)
        relay = here.found_relay()
        assert relay.state_name == "Failed"
        assert "may not consume queue" in relay.reason
        here.operations.policy = Rules()
        here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
