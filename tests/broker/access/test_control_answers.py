"""Answers of the broker's agent go only where whoever has asked may receive or publish."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from broker.access.test_control import USERS, broker, control, session_of

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.console.aio import Client
from qmf.messaging import aio
from qmf.models.broker import console as remote
from qmf.protocol import Envelope, LocateRequest, SubscribeRequest, encode
from qmf.schema import ClassKey

#: What qpidd needs for a console that calls methods and queries: nothing about where its answers go.
ASKING = """acl allow ann@QPID all
acl allow bob@QPID access
acl allow bob@QPID create queue name=bob*
acl allow bob@QPID create queue name=qmf*
acl allow bob@QPID bind exchange name=qmf.default.direct queuename=bob*
acl allow bob@QPID bind exchange name=qmf.default.topic
acl allow bob@QPID consume queue name=bob*
acl allow bob@QPID consume queue name=qmf*
acl allow bob@QPID publish exchange name=qmf.default.direct routingkey=broker
acl allow bob@QPID publish exchange name=qmf.default.topic
acl allow bob@QPID publish exchange name=amq.default routingkey=theirs
{more}acl deny all all
"""
#: And of ours, whose queues have other names.
CONSOLE = """acl allow bob@QPID publish exchange name=qmf.default.direct routingkey=*
acl allow bob@QPID bind exchange queuename=qmf*
"""
LOCATE, SUBSCRIBE = LocateRequest(), SubscribeRequest(class_key=ClassKey("org.apache.qpid.broker", "queue"))


async def bus_of(made: Broker, user: str, container: str) -> AmqpBus:
    bus = AmqpBus(f"amqp://{user}:{USERS[user]}@127.0.0.1:{made.port}", container=container)
    await bus.open()
    return bus


async def ask(bus: AmqpBus, reply_to: str, content: LocateRequest | SubscribeRequest, to: str, key: str) -> None:
    await bus.send(
        encode(Envelope(content=content, to=to, subject=key, reply_to=reply_to, correlation_id="1")), confirm=True
    )


async def prepare(session: aio.Session) -> None:
    await session.sender("theirs; {create: always}")
    bindings = "x-bindings: [{exchange: qmf.default.direct, key: victim}, {exchange: amq.topic, key: secret}]"
    await session.sender(f"q; {{node: {{{bindings}}}}}")


#: Where bob has the answers sent, and whether they come there.
PLACES = {
    "q": False,
    "/q": False,
    "qmf.default.direct/victim": False,
    "amq.topic/secret": False,
    "qmf.default.direct/nobody": False,
    "later": False,
    "bob-own": True,
    "/bob-own": True,
    "qmf.default.direct/bob": True,
    "theirs": True,  # where he may send as well
}


@pytest.mark.slow
@pytest.mark.parametrize("content", [LOCATE, SUBSCRIBE], ids=["locate", "subscribe"])
async def test_where_answers_go(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: LocateRequest | SubscribeRequest
) -> None:
    caplog.set_level(logging.INFO, "qmf.broker")
    access = control(tmp_path, ASKING.format(more=""))
    async with broker(access, 3600.0) as made, session_of(made, "ann") as owner, session_of(made, "bob") as session:
        await prepare(owner)
        bindings = "x-bindings: [{exchange: qmf.default.direct, queue: bob-own, key: bob}]"
        own = await session.receiver(f"bob-own; {{create: always, link: {{{bindings}}}}}")
        theirs = await owner.receiver("theirs")
        bus = await bus_of(made, "bob", "bob-1")
        for place, allowed in PLACES.items():
            caplog.clear()
            await ask(bus, place, content, "qmf.default.direct", "broker")
            await ask(bus, "bob-own", LOCATE, "qmf.default.direct", "broker")
            if allowed:
                await (theirs if place == "theirs" else own).fetch(30)
            await own.fetch(30)  # that of the second request, which is handled after the first
            dropped = f"dropped a request whose answers would go to {place!r}: user 'bob' may not publish"
            assert (dropped in caplog.text) is not allowed, place
            assert own.available() == 0
            assert not await waiting(owner, "q"), place
        assert access.denials.requests
        await bus.close()


async def waiting(session: aio.Session, queue: str) -> int:
    """Messages in a queue."""
    receiver = await session.receiver(f"{queue}; {{mode: browse}}")
    try:
        return receiver.available()
    finally:
        await receiver.close()


async def test_a_console_needs_no_more_than_with_qpidd(tmp_path: Path) -> None:
    access = control(tmp_path, ASKING.format(more=CONSOLE))
    async with (
        broker(access, 3600.0) as made,
        Client(f"amqp://bob:{USERS['bob']}@127.0.0.1:{made.port}", settle=0.0) as client,
    ):
        (managed,) = await client.objects(remote.Broker)
        await managed.echo(1, "x")
        assert [str(one.lookup) for one in access.denied.latest()] == []


async def test_without_rules_answers_go_anywhere() -> None:
    async with Broker(port=0, users=USERS, management=3600.0) as made, session_of(made, "ann") as session:
        receiver, bus = await session.receiver("amq.topic/#"), await bus_of(made, "bob", "bob-1")
        await ask(bus, "amq.topic/x", LOCATE, "qmf.default.direct", "broker")
        assert (await receiver.fetch(30)).subject == "x"
        await bus.close()
