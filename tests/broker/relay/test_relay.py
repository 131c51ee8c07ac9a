"""Relays between two brokers in this process: what is forwarded, refused, tried again and given up."""

from __future__ import annotations

import re

import pytest
from broker.federation.federated import receive, send
from broker.relay.relaying import DOMAIN, LETTERS, NOWHERE, ORDERS, AnonymousSender, reason_in, relaying
from support.waiting import until

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.relay_addresses import RelayTable
from qmf.broker.nodes.settings import QueueLimits, QueueSettings
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.principal import BROKER
from qmf.broker.relay.options import RelayOptions, UnknownDomains
from qmf.broker.relay.relays import BrokerRelays
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message


async def test_messages_wait_until_there_is_a_way_and_arrive_in_order() -> None:
    async with relaying() as (here, there):
        relay = here.relay()
        await send(here, ORDERS, "one", "two")
        assert here.depth(f"relay.{DOMAIN}") == 2
        assert (relay.state_name, relay.reason) == ("Waiting", "the other broker takes the messages")
        here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
        here.relay(domain="peer")
        await send(here, ORDERS, "three")
        assert await receive(there, "orders", 3) == ["one", "two", "three"]
        await here.has(f"relay.{DOMAIN}", 0)
        assert here.found_relay().forwarded == 3


async def test_a_message_keeps_its_identity() -> None:
    async with relaying() as (here, there):
        here.relay(domain="peer")
        async with aio.Connection(here.url) as connection:
            sender = await (await connection.session()).sender(ORDERS)
            sent = Message({"n": 1}, id="order-17", subject="new", properties={"colour": "red"}, durable=True)
            await sender.send(sent)
        async with aio.Connection(there.url) as connection:
            got = await (await (await connection.session()).receiver("orders")).fetch(timeout=30)
        assert (got.id, got.subject, got.content, got.properties["colour"]) == ("order-17", "new", {"n": 1}, "red")


async def test_without_the_option_such_a_name_is_a_name_like_others() -> None:
    async with relaying(options=RelayOptions()) as (here, _):
        with pytest.raises(MessagingError, match="no exchange or queue 'orders@office"):
            await send(here, ORDERS, "one")
        with pytest.raises(ForwardingError, match="does not relay"):
            here.relay(domain="peer")


async def test_an_unknown_domain_is_refused_by_both_kinds_of_links() -> None:
    async with relaying() as (here, _):
        here.relay(domain="peer")
        text = r"no relay to the domain 'nowhere\.example' of 'orders@Nowhere\.example'"
        with pytest.raises(MessagingError, match=text):
            await send(here, "orders@Nowhere.example", "one")
        ((condition, description),) = await AnonymousSender(here).send("orders@Nowhere.example")
        assert (condition, re.search(text, description) is not None) == ("amqp:not-found", True)


async def test_a_message_that_names_its_node_itself_is_relayed() -> None:
    async with relaying() as (here, there):
        here.relay(domain="peer")
        assert await AnonymousSender(here).send(ORDERS, "orders@OFFICE.example.") == [("", ""), ("", "")]
        await there.has("orders", 2)


@pytest.mark.parametrize("address", ["orders@", "orders@localhost", "orders@shop.example"])
async def test_a_domain_of_this_broker_stands_for_it(address: str) -> None:
    options = RelayOptions(enabled=True, local_domains=["Shop.example"])
    async with relaying(options=options, queues=["orders"]) as (here, _):
        await send(here, address, "one")
        assert await receive(here, address, 1) == ["one"]
        with pytest.raises(ForwardingError, match=r"'shop\.example' is this broker's own"):
            here.relay("shop.example", domain="peer")


async def test_nothing_can_be_received_from_another_domain() -> None:
    async with relaying() as (here, _):
        here.relay(domain="peer")
        with pytest.raises(MessagingError, match="is in another domain: messages can only be sent to it"):
            await receive(here, ORDERS, 1)


async def test_nobody_but_the_relay_puts_messages_into_its_queue() -> None:
    async with relaying() as (here, _):
        relay = here.relay()
        with pytest.raises(MessagingError, match=r"only the relay to office\.example puts messages into it"):
            await send(here, relay.queue.name, "forged")
        exchange = here.registry.exchange("amq.topic")
        assert isinstance(exchange, Exchange)
        with pytest.raises(BindingRefused, match="only the relay"):
            here.operations.bind(BROKER, exchange, relay.queue, BindingSpec("#"))


async def test_parked_messages_go_on_when_their_domain_gets_a_relay() -> None:
    options = RelayOptions(enabled=True, unknown_domains=UnknownDomains.PARK)
    async with relaying(options=options) as (here, there):
        await send(here, ORDERS, "one", "two")
        await send(here, "orders@elsewhere.example", "other")
        assert here.depth("relay.parked") == 3
        here.relay(domain="peer")
        assert await receive(there, "orders", 2) == ["one", "two"]
        assert here.depth("relay.parked") == 1


async def test_a_parked_message_whose_time_is_over_is_a_dead_letter() -> None:
    options = RelayOptions(enabled=True, unknown_domains=UnknownDomains.PARK, timeout=0.05)
    async with relaying(options=options) as (here, _):
        await send(here, ORDERS, "one")
        await here.has(LETTERS, 1)
        assert "there is no relay to the domain of 'orders@office.example'" in reason_in(here)


async def test_what_the_other_broker_rejects_is_a_dead_letter_with_the_reason() -> None:
    async with relaying() as (here, there):
        relay = here.relay(domain="peer")
        await send(here, f"nothing@{DOMAIN}", "lost")
        await send(here, ORDERS, "one")
        assert await receive(there, "orders", 1) == ["one"]
        await here.has(LETTERS, 1)
        assert "amqp:not-found: no exchange or queue 'nothing'" in reason_in(here)
        assert relay.dead_lettered == 1
        there.operations.create(BROKER, "nothing", NodeDeclaration())
        assert here.operations.forwarding.retry_dead_letters(BROKER, DOMAIN, 0) == 1
        await there.has("nothing", 1)


async def test_a_message_waits_no_longer_than_its_time() -> None:
    async with relaying() as (here, _):
        here.domain(NOWHERE, "away")
        here.relay(domain="away")
        await send(here, ORDERS, "late", ttl=0.05)
        await send(here, ORDERS, "kept")
        await here.has(LETTERS, 1)
        assert "its time was over before it could be forwarded" in reason_in(here)
        assert here.depth(f"relay.{DOMAIN}") == 1


async def test_a_full_queue_is_tried_again_until_there_is_room() -> None:
    async with relaying(other=()) as (here, there):
        settings = QueueSettings(limits=QueueLimits(count=1))
        there.operations.create(BROKER, "orders", NodeDeclaration(queue=settings))
        relay = here.relay(domain="peer", retries=1_000)
        await send(here, ORDERS, "one", "two")
        text = "the other broker takes no message now: amqp:resource-limit-exceeded"
        await until(lambda: relay.retried > 2 and text in relay.reason, lambda: f"{relay.retried}: {relay.reason}")
        assert await receive(there, "orders", 2) == ["one", "two"]
        assert not here.depth(LETTERS)


async def test_a_message_is_not_tried_for_ever() -> None:
    async with relaying(other=()) as (here, there):
        settings = QueueSettings(limits=QueueLimits(count=1))
        there.operations.create(BROKER, "orders", NodeDeclaration(queue=settings))
        here.relay(domain="peer", retries=2)
        await send(here, ORDERS, "one", "two")
        await here.has(LETTERS, 1)
        assert reason_in(here).startswith("refused 3 times, at last: amqp:resource-limit-exceeded")


async def test_dead_letters_that_find_no_room_make_the_relay_wait() -> None:
    async with relaying() as (here, _):
        settings = QueueSettings(limits=QueueLimits(count=1))
        here.operations.create(BROKER, "small", NodeDeclaration(queue=settings))
        relay = here.relay(domain="peer", dead_letters="small")
        await send(here, f"nothing@{DOMAIN}", "one", "two")
        await here.has("small", 1)
        await until(lambda: "dead letters: queue 'small' is full" in relay.reason, lambda: relay.reason)
        await until(lambda: here.depth(f"relay.{DOMAIN}") == 1, "the other one waits")


async def test_a_relay_can_be_paused() -> None:
    async with relaying() as (here, there):
        relay = here.relay(domain="peer")
        here.operations.forwarding.pause(BROKER, "relay", DOMAIN)
        assert relay.state_name == "Paused"
        await send(here, ORDERS, "one")
        here.operations.forwarding.resume(BROKER, "relay", DOMAIN)
        assert await receive(there, "orders", 1) == ["one"]


async def test_a_deleted_relay_ends_the_links_of_its_senders_and_keeps_messages() -> None:
    async with relaying() as (here, _):
        here.relay()
        async with aio.Connection(here.url, reconnect=False) as connection:
            sender = await (await connection.session()).sender(ORDERS)
            await sender.send(Message("one"))
            with pytest.raises(ForwardingError, match="No such relay"):
                here.operations.forwarding.delete(BROKER, "relay", "other.example")
            here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
            with pytest.raises(MessagingError, match="was deleted"):
                await sender.send(Message("two"))
        assert here.depth(f"relay.{DOMAIN}") == 1


async def test_a_relay_whose_queue_is_deleted_has_failed() -> None:
    async with relaying() as (here, _):
        relay = here.relay(domain="peer")
        here.operations.delete(BROKER, relay.queue)
        assert (relay.state_name, relay.reason) == ("Failed", "queue 'relay.office.example' was deleted")


async def test_messages_that_would_go_in_a_circle_are_dead_letters() -> None:
    async with relaying(other=()) as (here, there):
        here.relay(domain="peer", full_address=True)
        there.registry.relay = RelayTable([], there.registry.clock)
        relays = BrokerRelays(there.operations, there.federation, RelayOptions(enabled=True))
        there.operations.forwarding.relays = relays
        relays.start()
        there.operations.forwarding.create(BROKER, "domain", "back", {"url": here.url})
        there.operations.forwarding.create(BROKER, "relay", DOMAIN, {"domain": "back"}, strict=True)
        await send(here, ORDERS, "one")
        await there.has(LETTERS, 1)
        assert "it has left the other broker by a link before" in reason_in(there)
        await relays.close()


@pytest.mark.parametrize(
    ("name", "properties", "text"),
    [
        ("a@b", {}, "'a@b' is no domain"),
        ("x.example", {"domain": "none"}, "No such domain: none"),
        ("x.example", {"domain": "peer", "srv": True}, "srv: the broker is the domain's, or is looked up; not both"),
        ("x.example", {"username": "me"}, "username: belongs to the domain, unless srv is set"),
        ("x.example", {"timeout": 0}, "timeout: must be 1 second or more, not 0"),
        ("x.example", {"timeout": "soon"}, "timeout: must be a number from 0, not 'soon'"),
        ("x.example", {"srv": True}, r"domain 'x\.example' is not among those that may be looked up"),
        ("x.example", {"domain": "peer", "durable": True}, "domain peer is not durable"),
        ("x.example", {"colour": 1}, "colour: unknown"),
        ("x.example", {"qpid.max_count": "many"}, r"queue 'relay\.x\.example' cannot be created"),
        ("Office.Example.", {}, "object already exists: office.example"),
    ],
)
async def test_what_is_wrong_is_named(name: str, properties: dict[str, object], text: str) -> None:
    async with relaying() as (here, _):
        here.relay(domain="peer")
        with pytest.raises(ForwardingError, match=text):
            here.relay(name, **properties)


async def test_a_domain_that_a_relay_needs_cannot_be_deleted() -> None:
    async with relaying() as (here, _):
        here.relay(domain="peer")
        with pytest.raises(ForwardingError, match=r"domain peer is in use by the relay office\.example"):
            here.operations.forwarding.delete(BROKER, "domain", "peer")
