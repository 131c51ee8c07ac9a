"""Receivers that begin at the head, the tail, a time or a sequence number: browsing and consuming ones."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from broker.federation.federated import FederatedBroker, send
from support.waiting import until

from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.principal import BROKER
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Message

#: Kinds of queues, by their arguments.
KINDS: dict[str, dict[str, object]] = {
    "plain": {},
    "ring": {"qpid.policy_type": "ring", "qpid.max_count": 100},
    "last value": {"qpid.last_value_queue_key": "k"},
    "priorities": {"qpid.priorities": 3},
}
MODES = ["browse", "consume"]


async def received(broker: FederatedBroker, start: str, mode: str, *more: str) -> list[object]:
    """What a receiver gets that begins somewhere, with messages that are sent when it is there."""
    async with aio.Connection(broker.url) as connection:
        session = await connection.session()
        receiver = await session.receiver(f"q; {{mode: {mode}, link: {{start: {start}}}}}", capacity=20)
        sender = await session.sender("q")
        for content in (*more, "end"):
            await sender.send(Message(content, properties={"k": content}))
        found = [(await receiver.fetch(timeout=30)).content]
        while found[-1] != "end":
            found.append((await receiver.fetch(timeout=30)).content)
        return found


async def fill(broker: FederatedBroker, arguments: dict[str, object] | None = None, count: int = 4) -> None:
    broker.operations.create(BROKER, "q", read_node_declaration(("queue",), arguments or {}))
    for number in range(1, count + 1):
        await send(broker, "q", str(number), properties={"k": str(number)})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("head", ["1", "2", "3", "4", "new", "end"]),
        ("tail", ["new", "end"]),
        ("{sequence: 3}", ["3", "4", "new", "end"]),
        ("{sequence: 99}", ["new", "end"]),
    ],
)
async def test_all_kinds_of_queues(kind: str, mode: str, start: str, expected: list[str]) -> None:
    async with FederatedBroker(port=0) as broker:
        await fill(broker, KINDS[kind])
        if start == "{sequence: 99}":  # what comes has these numbers
            broker.queue("q").contents.position = 100
        assert await received(broker, start, mode, "new") == expected


async def test_what_a_consumer_passes_over_is_for_others() -> None:
    async with FederatedBroker(port=0) as broker:
        await fill(broker)
        await received(broker, "tail", "consume")
        await until(lambda: not broker.queue("q").contents.acquired_count, "what it had, and has not accepted, is back")
        async with aio.Connection(broker.url) as connection:
            receiver = await (await connection.session()).receiver("q", capacity=5)
            assert [(await receiver.fetch(timeout=30)).content for _ in range(5)] == [*"1234", "end"]


async def test_a_message_that_comes_back_lies_before_the_start_all_the_same() -> None:
    async with FederatedBroker(port=0) as broker, aio.Connection(broker.url) as connection:
        await fill(broker)
        session = await connection.session()
        other = await session.receiver("q", capacity=1)
        await other.fetch(timeout=30)
        receiver = await (await connection.session()).receiver("q; {link: {start: tail}}", capacity=5)
        await other.close()
        await until(lambda: broker.queue("q").contents.acquired_count == 0, "it is back")
        await send(broker, "q", "new")
        assert (await receiver.fetch(timeout=30)).content == "new"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("timestamps", [True, False], ids=["of the broker", "of the sender"])
async def test_a_time(mode: str, timestamps: bool) -> None:
    async with FederatedBroker(port=0, timestamps=timestamps) as broker:
        made = [1_000_000, 2_000_000, 3_000_000]
        await fill(broker, count=0)
        for number in made:
            await send(broker, "q", str(number), properties={"x-amqp-creation-time": number})
        now = datetime.fromtimestamp(time.time() + 60, UTC).isoformat()
        start = f"{{time: '{now}'}}" if timestamps else "{time: 2000000}"
        async with aio.Connection(broker.url) as connection:
            receiver = await (await connection.session()).receiver(
                f"q; {{mode: {mode}, link: {{start: {start}}}}}", capacity=5
            )
            await send(broker, "q", "end")
            found = [(await receiver.fetch(timeout=30)).content]
            while found[-1] != "end":
                found.append((await receiver.fetch(timeout=30)).content)
        assert found == (["end"] if timestamps else ["2000000", "3000000", "end"])


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("q; {link: {start: middle}}", "filter start: must be head, tail, .*, not 'middle'"),
        ("q; {link: {start: {time: noon}}}", "filter start: time: 'noon' is no time of ISO 8601"),
        ("amq.topic; {link: {start: tail}}", "filter start: 'amq.topic' is an exchange"),
        ("amq.topic; {link: {name: s, durable: true, start: tail}}", "filter start: 'amq.topic' is an exchange"),
    ],
)
async def test_what_is_wrong_is_named(address: str, text: str) -> None:
    async with FederatedBroker(port=0) as broker, aio.Connection(broker.url) as connection:
        await fill(broker)
        with pytest.raises(MessagingError, match=text):
            await (await connection.session()).receiver(address)


async def test_sequence_numbers_outlast_a_restart(tmp_path: Path) -> None:
    async with FederatedBroker(port=0, data_dir=tmp_path) as broker:
        broker.operations.create(
            BROKER, "q", read_node_declaration(("queue",), {"durable": True, "qpid.queue_msg_sequence": "n"})
        )
        await send(broker, "q", "1", "2", "3", "4", durable=True)
        async with aio.Connection(broker.url) as connection:
            session = await connection.session()
            receiver = await session.receiver("q")
            for _ in range(2):
                await receiver.fetch(timeout=30)
            await session.acknowledge()
    async with FederatedBroker(port=0, data_dir=tmp_path) as broker:
        assert await received(broker, "{sequence: 4}", "browse") == ["4", "end"]
        assert broker.queue("q").contents.position == 5
