"""Outcomes and settlement modes, credit, drain, and heartbeats, with clients that use all of them."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import proton
import pytest
from broker.nodes.parts import depth_of
from broker.raw_clients import AMQP, Client, connect, dropped, frame, usable
from broker.visible_broker import VisibleBroker
from support.recording import message, text
from support.waiting import until

from qmf.broker import AmqpOptions, Broker
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.recorder import OnStored
from qmf.broker.operations.principal import BROKER
from qmf.bus.engine.events import (
    CreditChanged,
    Delivery,
    Drained,
    LinkAttached,
    OutcomeConfirmed,
    OutcomeReceived,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome, Terminus
from qmf.codec import Described, UInt8, UInt32, UInt64
from qmf.codec.amqp10 import decode
from qmf.codec.message import decode_message


@contextlib.asynccontextmanager
async def client_of(broker: Broker) -> AsyncIterator[Client]:
    client = Client(*await connect(broker))
    yield client
    client.writer.close()


async def sender(client: Client, *, second: bool = False) -> Link:
    link = client.engine.links.attach("out", is_sender=True, terminus=Terminus("q"))
    if second:
        link.raw.rcv_settle_mode = proton.Link.RCV_SECOND
    await client.exchange(CreditChanged)
    return link


async def receiver(client: Client, credit: int, name: str = "in", *, second: bool = False) -> Link:
    attached = sum(isinstance(event, LinkAttached) for event in client.seen)
    link = client.engine.links.attach(name, is_sender=False, terminus=Terminus("q"), credit=credit)
    if second:
        link.raw.rcv_settle_mode = proton.Link.RCV_SECOND
    await client.exchange(LinkAttached, attached + 1)
    return link


def deliveries(client: Client, link: Link | None = None) -> list[Delivery]:
    return [event for event in client.seen if isinstance(event, Delivery) and (link is None or event.link is link)]


def tag_of(delivery: Delivery) -> int:
    assert delivery.delivery_tag is not None
    return delivery.delivery_tag


async def publish(client: Client, *texts: str) -> None:
    link = await sender(client)
    for each in texts:
        client.engine.deliveries.send(link, message("q", "x", each))
    await client.exchange(OutcomeReceived, len(texts))


async def test_a_sender_that_settles_second_gets_outcomes_first_and_credit_after_it_has_settled() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        link = await sender(client, second=True)
        assert link.raw.remote_rcv_settle_mode == proton.Link.RCV_SECOND
        sent = 0
        while sent < 1_500:
            for _ in range(min(client.engine.links.credit(link), 1_500 - sent)):
                client.engine.deliveries.send(link, message("q", "x", str(sent)))
                sent += 1
            await client.exchange(OutcomeReceived, sent)
            if sent < 1_500 and client.engine.links.credit(link) <= 0:
                known = sum(isinstance(event, CreditChanged) for event in client.seen)
                await client.exchange(CreditChanged, known + 1)
        outcomes = {event.outcome for event in client.seen if isinstance(event, OutcomeReceived)}
        assert outcomes == {Outcome.ACCEPTED}
        (queue,) = broker.registry.queues
        assert queue.contents.depth.count == 1_500


@pytest.mark.parametrize("stored", [False, True])
async def test_a_receiver_that_settles_second_waits_for_the_broker(stored: bool, tmp_path: Path) -> None:
    folder = tmp_path if stored else None
    async with VisibleBroker(port=0, queues=["q"], data_dir=folder) as broker, client_of(broker) as client:
        link = await receiver(client, 10, second=True)
        await publish(client, "a")
        await client.exchange(Delivery)
        (delivery,) = deliveries(client)
        client.engine.decisions.set_outcome(link, tag_of(delivery), Outcome.ACCEPTED)
        await client.exchange(OutcomeConfirmed)
        (queue,) = broker.registry.queues
        assert depth_of(queue) == (0, 0)


async def test_acceptances_that_come_together_are_written_together(tmp_path: Path) -> None:
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker, client_of(broker) as client:
        broker.operations.create(BROKER, "q", read_node_declaration(("queue",), {"durable": True}))
        recorder = broker.registry.recorder
        assert recorder is not None
        link = await receiver(client, 10, second=True)
        await publish(client, "a", "b", "c")
        await client.exchange(Delivery, 3)
        with pytest.MonkeyPatch.context() as patch:
            waiters: list[OnStored] = []
            close_unit = recorder.close_unit

            def close(on_stored: OnStored | None) -> bool:
                if on_stored is not None:
                    waiters.append(on_stored)
                return close_unit(on_stored)

            patch.setattr(recorder, "close_unit", close)
            for delivery in deliveries(client):
                client.engine.decisions.set_outcome(link, tag_of(delivery), Outcome.ACCEPTED)
            await client.exchange(OutcomeConfirmed, 3)
        assert len(waiters) == 1
        (queue,) = broker.registry.queues
        assert depth_of(queue) == (0, 0)


async def test_a_message_that_is_undeliverable_here_goes_to_another_link() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await publish(client, "a", "b")
        first = await receiver(client, 10)
        await client.exchange(Delivery, 2)
        one, two = deliveries(client)
        client.engine.decisions.modify(first, tag_of(one), failed=True, undeliverable=True)
        client.engine.decisions.modify(first, tag_of(two), failed=True, undeliverable=False)
        await client.exchange(Delivery, 3)
        again = deliveries(client)[2]
        assert (text(again.data), decode_message(again.data).delivery_count) == ("b", 1)
        (queue,) = broker.registry.queues
        assert len(queue.contents) == 1
        second = await receiver(client, 10, "other")
        await client.exchange(Delivery, 4)
        (other,) = deliveries(client, second)
        assert (text(other.data), decode_message(other.data).delivery_count) == ("a", 1)
        client.engine.decisions.settle(second, tag_of(other))
        client.engine.decisions.settle(first, tag_of(again))
        await publish_more(client, "c", "d")
        await client.exchange(Delivery, 6)
        assert {text(each.data) for each in deliveries(client)[4:]} == {"c", "d"}


async def publish_more(client: Client, *texts: str) -> None:
    link = client.engine.links.attach("more", is_sender=True, terminus=Terminus("q"))
    known = sum(isinstance(event, CreditChanged) for event in client.seen)
    await client.exchange(CreditChanged, known + 1)
    for each in texts:
        client.engine.deliveries.send(link, message("q", "x", each))
    client.writer.write(client.engine.output())


@pytest.mark.parametrize(("outcome", "count"), [(Outcome.RELEASED, 0), (Outcome.MODIFIED, 0)])
async def test_what_is_given_back_has_its_place_again(outcome: Outcome, count: int) -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await publish(client, "a", "b")
        link = await receiver(client, 2)
        await client.exchange(Delivery, 2)
        for delivery in deliveries(client)[::-1]:
            client.engine.decisions.settle(link, tag_of(delivery), outcome)
        client.writer.write(client.engine.output())
        (queue,) = broker.registry.queues
        await until(lambda: len(queue.contents) == 2, "both messages")
        client.engine.links.add_credit(link, 2)
        await client.exchange(Delivery, 4)
        again = deliveries(client)[2:]
        assert [text(each.data) for each in again] == ["a", "b"]
        assert {decode_message(each.data).delivery_count for each in again} == {count}


async def test_a_rejected_message_leaves_the_queue() -> None:
    async with VisibleBroker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await publish(client, "a", "b")
        link = await receiver(client, 1)
        await client.exchange(Delivery)
        client.engine.decisions.settle(link, tag_of(deliveries(client)[0]), Outcome.REJECTED, "my:error", "no good")
        client.engine.links.add_credit(link, 1)
        await client.exchange(Delivery, 2)
        (queue,) = broker.registry.queues
        assert (queue.counters.rejected, queue.contents.depth.count) == (1, 1)


async def test_a_drain_is_answered_when_nothing_waits_any_more() -> None:
    async with Broker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await publish(client, "a", "b")
        link = await receiver(client, 0)
        client.engine.links.drain(link, 5)
        await client.exchange(Drained)
        assert [text(each.data) for each in deliveries(client)] == ["a", "b"]
        assert client.engine.links.credit(link) == 0
        await publish_more(client, "c")
        client.engine.links.add_credit(link, 1)
        await client.exchange(Delivery, 3)


@pytest.mark.parametrize("second", [False, True])
async def test_the_broker_settles_first_or_leaves_that_to_the_sender(second: bool) -> None:
    async with Broker(port=0, queues=["q"]) as broker:
        reader, writer = await connect(broker)
        fields = ["out", UInt32(0), False, UInt8(0), UInt8(second), Described(UInt64(0x28), []), TARGET, None, None]
        writer.write(OPEN_AND_BEGIN + frame(Described(UInt64(0x12), [*fields, UInt32(0)])))
        await read_until(reader, b"\x00\x53\x13")  # credit
        body = b"\x00\x53\x77\xa1\x04text"
        writer.write(frame(Described(UInt64(0x14), [UInt32(0), UInt32(0), b"t", UInt32(0), False, False]), body))
        data = await read_until(reader, b"\x00\x53\x24")  # accepted
        disposition, _ = decode(data, data.index(b"\x00\x53\x15"))
        assert isinstance(disposition, Described)
        assert isinstance(disposition.value, list)
        assert bool(disposition.value[3]) is not second
        writer.close()


TARGET = Described(UInt64(0x29), ["q"])
ATTACH = Described(
    UInt64(0x12),
    ["in", UInt32(0), True, None, None, Described(UInt64(0x28), ["q"]), Described(UInt64(0x29), [])],
)
OPEN_AND_BEGIN = (
    AMQP
    + frame(Described(UInt64(0x10), ["raw"]))
    + frame(Described(UInt64(0x11), [None, UInt32(0), UInt32(1000), UInt32(1000)]))
)


def flow(credit: int, *, count: int = 0, drain: bool = False) -> bytes:
    fields = [UInt32(0), UInt32(1000), UInt32(0), UInt32(1000), UInt32(0), UInt32(count), UInt32(credit), None, drain]
    return frame(Described(UInt64(0x13), fields))


async def read_until(reader: asyncio.StreamReader, wanted: bytes) -> bytes:
    data = b""
    async with asyncio.timeout(30):
        while wanted not in data:
            received = await reader.read(65536)
            assert received, data
            data += received
    return data


@pytest.mark.parametrize("credit", [0xFFFFFFFF, 0x80000000, 0xFFFFFF00])
async def test_credit_that_overflows_is_refused_with_the_link(credit: int) -> None:
    async with Broker(port=0, queues=["q"]) as broker:
        reader, writer = await connect(broker)
        writer.write(OPEN_AND_BEGIN + frame(ATTACH) + flow(credit))
        answer = await read_until(reader, b"link-credit: must be a number from 0 to 2147483647")
        assert b"amqp:invalid-field" in answer
        writer.close()
        await usable(broker)


async def test_the_most_credit_and_a_count_at_its_end_are_no_error() -> None:
    async with Broker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        reader, writer = await connect(broker)
        writer.write(OPEN_AND_BEGIN + frame(ATTACH) + flow(0x7FFFFFFF) + flow(0) + flow(5))
        await publish(client, "the text")
        await read_until(reader, b"the text")
        writer.close()


async def test_credit_that_was_taken_back_after_its_use_is_no_error() -> None:
    async with Broker(port=0, queues=["q"]) as broker, client_of(broker) as client:
        await publish(client, "first", "second", "the third")
        reader, writer = await connect(broker)
        writer.write(OPEN_AND_BEGIN + frame(ATTACH) + flow(3))
        await read_until(reader, b"the third")
        writer.write(flow(0) + flow(3, count=3))
        await publish_more(client, "one more")
        await read_until(reader, b"one more")
        writer.close()


async def test_the_broker_sends_the_heartbeats_that_a_client_asks_for() -> None:
    async with Broker(port=0) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + frame(Described(UInt64(0x10), ["raw", None, None, None, UInt32(200)])))
        empty = struct.pack(">IBBH", 8, 2, 0, 0)
        data = b""
        async with asyncio.timeout(30):
            while data.count(empty) < 3:
                data += await reader.read(65536)
        writer.close()


async def test_a_silent_client_is_told_and_dropped() -> None:
    async with Broker(port=0, amqp=AmqpOptions(idle_timeout=0.2)) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + frame(Described(UInt64(0x10), ["raw"])))
        await read_until(reader, b"amqp:resource-limit-exceeded")
        await dropped(reader, writer)
        assert broker.counters.failures == 1
        await usable(broker)
