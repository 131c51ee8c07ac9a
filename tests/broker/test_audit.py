"""The audit log of a broker; and secrets, which are in nothing that a broker or its clients put out."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from pathlib import Path
from typing import Any

import attrs
import pytest
from broker.access.test_control import control
from broker.management.managed import Raised
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.audit import BrokerAudit
from qmf.bus import AmqpBus
from qmf.console.aio import Client
from qmf.errors import QmfError, RemoteError
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError, UnauthorizedAccess
from qmf.messaging.message import Message
from qmf.models.broker import console as remote

SECRET, WRONG, TOKEN = "hunter2-right", "hunter2-wrong", "eyJhbGciOi.hunter2.token"
RULES = "acl deny bob@QPID purge queue\nacl deny bob@QPID access queue name=theirs\nacl allow all all\n"
USERS = {"bob": SECRET, "eve": "e"}


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The records so far, without times."""
    found = [json.loads(record.message) for record in caplog.records if record.name == "qmf.broker.audit"]
    caplog.clear()
    for line in found:
        del line["time"]
        line["address"] = line["address"].partition(":")[0]
    return found


def line(action: str, result: str = "done", **details: object) -> dict[str, object]:
    by = "refused" if result == "refused" else "SCRAM-SHA-512"
    return {"action": action, "user": "bob", "address": "127.0.0.1", "by": by, "result": result, **details}


async def test_what_clients_do(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qmf.broker.audit")
    access = control(tmp_path, RULES)
    async with Broker(port=0, users=USERS, access=access, audit=BrokerAudit()) as broker:
        with pytest.raises(MessagingError):
            await aio.Connection(f"amqp://bob:{WRONG}@127.0.0.1:{broker.port}").open()
        (refused,) = lines(caplog)
        assert (refused["action"], refused["result"], refused["user"]) == ("login", "refused", "bob")
        connection = aio.Connection(f"amqp://bob:{SECRET}@127.0.0.1:{broker.port}", container_id="c")
        await connection.open()
        session = await connection.session()
        await session.sender("mine; {create: always}")
        for _ in range(3):
            with pytest.raises(UnauthorizedAccess):
                await session.receiver("theirs")
        await (await session.receiver("mine; {delete: always}")).close()
        await connection.close()
        assert lines(caplog)[:5] == [
            line("login", container="c"),
            line("create queue", object="mine"),
            line("access queue", "refused", object="theirs", reason="the ACL denies it"),
            line("the same again", "refused", count=2),
            line("delete queue", object="mine"),
        ]


async def test_calls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qmf.broker.audit")
    async with (
        Broker(
            port=0, users=USERS, access=control(tmp_path, RULES), audit=BrokerAudit(), queues=["q"], management=3600.0
        ) as broker,
        Client(f"amqp://bob:{SECRET}@127.0.0.1:{broker.port}", settle=0.0) as client,
    ):
        await client.locate(settle=0.0)
        (queue,) = [item for item in await client.objects(remote.Queue) if item.name == "q"]
        lines(caplog)
        with pytest.raises(RemoteError):
            await queue.purge(0, {})
        name = "org.apache.qpid.broker:queue:q"
        assert lines(caplog)[:2] == [
            line("call", method="purge", object=name),
            line("purge queue", "refused", object="q", reason="the ACL denies it"),
        ]


@attrs.define
class Outputs:
    """All that was put out, as text."""

    texts: list[str] = attrs.field(factory=list)

    def add(self, value: object) -> None:
        self.texts.append(f"{value} {value!r}")
        if isinstance(value, BaseException):
            self.texts.append("".join(traceback.format_exception(value)))


#: How a secret may look.
FORMS = [
    form
    for secret in (SECRET, WRONG, TOKEN)
    for form in (secret, base64.b64encode(secret.encode()).decode().rstrip("="), secret.encode().hex())
]


async def test_no_output_has_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    found = Outputs()
    access = control(tmp_path, RULES)
    async with (
        Broker(port=0, users=USERS, access=access, audit=BrokerAudit(), queues=["q"], management=0.05) as broker,
        Client(f"amqp://bob:{SECRET}@127.0.0.1:{broker.port}", settle=0.0) as client,
    ):
        events = Raised(client)
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            bus = AmqpBus(broker.url, username="bob", password=SECRET, mechanisms=[mechanism])
            await bus.open()
            found.add(bus)
            await bus.close()
            for url, options in (
                (f"amqp://bob:{WRONG}@127.0.0.1:{broker.port}", {}),
                (broker.url, {"username": "nobody", "password": WRONG}),
                (f"amqp://bob:{SECRET}@127.0.0.1:1", {}),
            ):
                wrong = aio.Connection(url, sasl_mechanisms=mechanism, **options)
                with pytest.raises(MessagingError) as caught:
                    await wrong.open()
                found.add(caught.value)
                found.add(wrong)
        with pytest.raises(QmfError) as refused:
            await AmqpBus(broker.url, token=TOKEN).open()
        found.add(refused.value)
        connection = aio.Connection(f"amqp://bob:{SECRET}@127.0.0.1:{broker.port}")
        await connection.open()
        found.add(connection)
        sender = await (await connection.session()).sender("q")
        await sender.send(Message("x"), sync=True)
        await client.locate(settle=0.0)
        for cls in (remote.Broker, remote.Connection, remote.Session, remote.Queue):
            for item in await client.objects(cls):
                found.add({name: getattr(item, name) for name in dir(item) if not name.startswith("_")})
        await connection.close()
        await until(lambda: events("clientConnectFail"), "events")
        found.texts += [repr(event) for event in events.all]
    found.texts += caplog.messages
    found.texts += [str(record.exc_text) for record in caplog.records]
    assert len(found.texts) > 50
    assert [text for text in found.texts if any(form in text for form in FORMS)] == []


async def test_links_to_other_brokers(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "qmf.broker.audit")
    async with (
        Broker(port=0, queues=["q"]) as other,
        Broker(port=0, audit=BrokerAudit(), queues=["q"], management=3600.0) as broker,
        Client(f"amqp://127.0.0.1:{broker.port}", settle=0.0) as client,
    ):
        await client.locate(settle=0.0)
        await until(lambda: client.agents, "the agent of the broker")
        (it,) = await client.objects(remote.Broker)
        await it.create("domain", "peer", {"url": f"amqp://ann:{SECRET}@127.0.0.1:{other.port}"}, True)
        await it.create("outgoing", "link", {"domain": "peer", "source": "q", "target": "q"}, True)
        found: list[dict[str, Any]] = []

        def noted(action: str) -> bool:
            found.extend(lines(caplog))
            return any(line["action"] == action and line.get("object") == "peer" for line in found)

        await until(lambda: noted("peer up"), "the link is up")
        await it.delete("outgoing", "link", {})
        await until(lambda: noted("peer down"), "the link is gone")
        assert SECRET not in json.dumps(found)
