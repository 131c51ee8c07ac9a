"""What clients of STOMP do: sending, subscriptions, acknowledgements, transactions, and messages from and to AMQP."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.protocols.stomp.stomp_wire import WireClient, dial, stomp_broker
from support.waiting import until

from qmf.messaging import Message, aio

VERSIONS = ("1.0", "1.1", "1.2")


def ack_headers(version: str, message_headers: dict[str, str]) -> dict[str, str]:
    """What acknowledges a message."""
    if version == "1.2":
        return {"id": message_headers["ack"]}
    found = {"message_id": message_headers["message-id"]}
    return found if version == "1.0" else {**found, "subscription": message_headers["subscription"]}


@pytest.mark.parametrize("version", VERSIONS)
async def test_queues(version: str) -> None:
    async with stomp_broker() as broker:
        client = await dial(broker, version)
        await client.ask("SEND", b"one", destination="/queue/jobs", color="red")
        await client.ask("SUBSCRIBE", destination="/queue/jobs", id="a", ack="client-individual")
        message = await client.message()
        assert message.body == b"one"
        assert message.headers["color"] == "red"
        assert message.headers["destination"] == "/queue/jobs"
        assert message.headers["subscription"] == "a"
        await client.ask("ACK", **ack_headers(version, dict(message.headers)))
        await client.ask("UNSUBSCRIBE", id="a")
        await client.ask("DISCONNECT")
        assert await client.at_end()


async def test_a_subscription_of_1_0_without_an_id() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker, "1.0")
        await client.ask("SUBSCRIBE", destination="/queue/jobs")
        client.send("SEND", b"x", destination="/queue/jobs")
        assert (await client.message()).headers["subscription"] == "/queue/jobs"
        await client.ask("UNSUBSCRIBE", destination="/queue/jobs")


async def test_topics_and_exchanges() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await client.ask("SUBSCRIBE", destination="/topic/a.*", id="t")
        await client.ask("SUBSCRIBE", destination="/exchange/amq.direct/k", id="d")
        await client.ask("SUBSCRIBE", destination="b.#", id="m", subscription_type="MULTICAST")
        await client.ask("SUBSCRIBE", destination="amq.fanout", id="f")
        for destination in ("/topic/a.b.c", "/topic/a.b", "/exchange/amq.direct/k", "/topic/b", "/exchange/amq.fanout"):
            client.send("SEND", b"x", destination=destination)
        messages = [await client.message() for _ in range(4)]
        found = {message.headers["subscription"]: message.headers["destination"] for message in messages}
        assert found == {"t": "/topic/a.b", "d": "/exchange/amq.direct/k", "m": "/topic/b", "f": "amq.fanout"}


async def test_a_subscription_ends_with_its_connection() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        before = set(broker.registry.queues)
        await client.ask("SUBSCRIBE", destination="/topic/a", id="t")
        await client.ask("SEND", b"", destination="/temp-queue/me")
        assert len(set(broker.registry.queues) - before) == 2
        client.close()
        await until(lambda: set(broker.registry.queues) == before)


async def test_replies_come_to_a_temporary_queue() -> None:
    async with stomp_broker() as broker:
        asking, serving = await dial(broker), await dial(broker)
        await serving.ask("SUBSCRIBE", destination="/queue/service", id="s")
        await asking.ask("SUBSCRIBE", destination="/temp-queue/me", id="me")
        await asking.ask("SEND", b"?", destination="/queue/service", reply_to="/temp-queue/me", correlation_id="7")
        request = await serving.message()
        serving.send("SEND", b"!", destination=request.headers["reply-to"], correlation_id="7")
        answer = await asking.message()
        assert (answer.body, answer.headers["correlation-id"]) == (b"!", "7")
        assert answer.headers["destination"] == "/temp-queue/me"


async def send(client: WireClient, *bodies: bytes) -> None:
    for body in bodies:
        await client.ask("SEND", body, destination="/queue/jobs")


async def test_acknowledgements_of_those_before() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await send(client, b"1", b"2", b"3")
        await client.ask("SUBSCRIBE", destination="/queue/jobs", id="a", ack="client")
        messages = [await client.message() for _ in range(3)]
        await client.ask("ACK", id=messages[1].headers["ack"])
        client.close()
        other = await dial(broker)
        await other.ask("SUBSCRIBE", destination="/queue/jobs", id="a")
        again = await other.message()
        assert (again.body, again.headers["redelivered"]) == (b"3", "true")


async def test_a_rejected_message_goes_to_the_alternate_exchange() -> None:
    async with stomp_broker() as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        options = "{create: always, node: {x-declare: {alternate-exchange: amq.fanout}}}"
        await (await session.sender(f"jobs; {options}")).send("bad")
        dead = await session.receiver("amq.fanout")
        client = await dial(broker)
        await client.ask("SUBSCRIBE", destination="jobs", id="a", ack="client-individual")
        await client.ask("NACK", id=(await client.message()).headers["ack"])
        assert (await dead.fetch(timeout=10)).content == "bad"


async def test_no_more_is_sent_than_the_client_wants() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await send(client, b"1", b"2", b"3")
        client.send("SUBSCRIBE", destination="/queue/jobs", id="a", ack="client-individual", prefetch_count="2")
        messages = [await client.message(), await client.message()]
        await client.ask("SEND", b"", destination="/queue/other")  # nothing came before its receipt
        client.send("ACK", id=messages[0].headers["ack"])
        assert (await client.message()).body == b"3"


async def test_selectors() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await client.ask("SUBSCRIBE", destination="/topic/a", id="a", selector="color = 'red'")
        client.send("SEND", b"1", destination="/topic/a", color="blue")
        client.send("SEND", b"2", destination="/topic/a", color="red")
        assert (await client.message()).body == b"2"


async def test_transactions() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await send(client, b"1", b"2")
        await client.ask("SUBSCRIBE", destination="/queue/jobs", id="a", ack="client-individual")
        first, second = await client.message(), await client.message()
        for transaction, end, ack in (("t1", "ABORT", first), ("t2", "COMMIT", second)):
            await client.ask("BEGIN", transaction=transaction)
            await client.ask("SEND", transaction.encode(), destination="/queue/out", transaction=transaction)
            await client.ask("ACK", id=ack.headers["ack"], transaction=transaction)
            await client.ask(end, transaction=transaction)
        await client.ask("ACK", id=first.headers["ack"])  # it is as it was before the transaction
        await client.ask("SUBSCRIBE", destination="/queue/out", id="out")
        assert (await client.message()).body == b"t2"
        jobs = broker.registry.queue("jobs")
        assert jobs is not None
        assert len(jobs.contents) == 0


async def test_a_transaction_ends_with_its_connection() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        await send(client, b"1")
        await client.ask("SUBSCRIBE", destination="/queue/jobs", id="a", ack="client-individual")
        message = await client.message()
        await client.ask("BEGIN", transaction="t")
        await client.ask("ACK", id=message.headers["ack"], transaction="t")
        await client.ask("SEND", b"2", destination="/queue/jobs", transaction="t")
        client.close()
        other = await dial(broker)
        await other.ask("SUBSCRIBE", destination="/queue/jobs", id="a")
        assert (await other.message()).body == b"1"


async def test_durable_subscriptions() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker, client_id="me")
        durable = {"destination": "/topic/a", "durable_subscription_name": "news"}
        await client.ask("SUBSCRIBE", id="1", **durable)
        await client.ask("DISCONNECT")
        other = await dial(broker)
        await other.ask("SEND", b"kept", destination="/topic/a")
        again = await dial(broker, client_id="me")
        await again.ask("SUBSCRIBE", id="1", **durable)
        assert (await again.message()).body == b"kept"
        await again.ask("UNSUBSCRIBE", id="1", durable_subscription_name="news")
        assert broker.registry.queue("me.news") is None


async def test_what_is_confirmed_is_stored(tmp_path: Path) -> None:
    async with stomp_broker(data_dir=tmp_path) as broker:
        client = await dial(broker)
        await client.ask("SEND", b"kept", destination="/queue/jobs", persistent="true")
        await client.ask("BEGIN", transaction="t")
        await client.ask("SEND", b"too", destination="/queue/jobs", persistent="true", transaction="t")
        await client.ask("COMMIT", transaction="t")
        await client.ask("DISCONNECT")
    async with stomp_broker(data_dir=tmp_path) as broker:
        client = await dial(broker)
        await client.ask("SUBSCRIBE", destination="/queue/jobs", id="a", ack="client")
        assert [(await client.message()).body for _ in range(2)] == [b"kept", b"too"]


async def test_between_stomp_and_amqp() -> None:
    async with stomp_broker(queues=["jobs", "back"]) as broker, aio.Connection(broker.url) as connection:
        session, client = await connection.session(), await dial(broker)
        receiver, sender = await session.receiver("jobs"), await session.sender("back")
        client.send("SEND", "é".encode(), destination="jobs", content_type="text/plain", color="red", type="order")
        message = await receiver.fetch(timeout=10)
        assert (message.content, message.properties["color"], message.subject) == ("é", "red", "order")
        await client.ask("SUBSCRIBE", destination="/queue/back", id="b")
        await sender.send(Message({"a": 1}, subject="answer"))
        frame = await client.message()
        assert (frame.body, frame.headers["type"]) == (b'{"a": 1}', "answer")


@pytest.mark.parametrize(
    ("command", "headers", "reason"),
    [
        ("NOSUCH", {}, "unknown command NOSUCH"),
        ("SEND", {}, "SEND needs the header destination"),
        ("SEND", {"destination": "/queue/"}, "has no name"),
        ("SEND", {"destination": "/exchange/nosuch"}, "no exchange 'nosuch'"),
        ("SEND", {"destination": "/queue/a", "priority": "x"}, "priority is no number: 'x'"),
        ("SEND", {"destination": "/queue/a", "transaction": "t"}, "no transaction 't' has begun"),
        ("SUBSCRIBE", {"destination": "/queue/a"}, "SUBSCRIBE needs the header id"),
        ("SUBSCRIBE", {"destination": "/queue/a", "id": "1", "ack": "x"}, "ack is auto, client or client-individual"),
        ("SUBSCRIBE", {"destination": "/queue/a", "id": "1", "selector": "="}, "selector: "),
        ("SUBSCRIBE", {"destination": "/queue/a", "id": "1", "prefetch_count": "0"}, "prefetch-count is a number"),
        ("SUBSCRIBE", {"destination": "/topic/a", "id": "1", "durable_subscription_name": "n"}, "the header client-id"),
        ("UNSUBSCRIBE", {"id": "1"}, "there is no subscription '1'"),
        ("ACK", {"id": "1-1"}, "no message '1-1' waits for an acknowledgement"),
        ("ACK", {"id": "x"}, "no message 'x' waits for an acknowledgement"),
        ("COMMIT", {"transaction": "t"}, "no transaction 't' has begun"),
        ("BEGIN", {}, "BEGIN needs the header transaction"),
    ],
)
async def test_errors_name_what_is_wrong(command: str, headers: dict[str, str], reason: str) -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
        client.send(command, receipt="r", **headers)
        frame = await client.frame()
        assert (frame.command, frame.headers["receipt-id"]) == ("ERROR", "r")
        assert reason in frame.headers["message"]
        assert f"The frame was {command}:".encode() in frame.body
        assert await client.at_end()


async def test_a_queue_that_is_deleted() -> None:
    async with stomp_broker(queues=["jobs"]) as broker, aio.Connection(broker.url) as connection:
        client = await dial(broker)
        await client.ask("SUBSCRIBE", destination="jobs", id="a")
        session = await connection.session()
        await (await session.sender("jobs; {delete: always}")).close()
        assert await client.error() == "'jobs' was deleted"
