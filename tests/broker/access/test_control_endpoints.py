"""What clients of AMQP 1.0 need to be allowed for a link or a message: the same here and at a real qpidd.

``QMF_TEST_QPIDD_SASL`` is the command of one with authentication (`tests/sasl/test_sasl_against_qpidd.py`); it gets
``--acl-file`` besides.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from broker.access.test_control import USERS, broker, control
from support.waiting import wait_until

from qmf.console.aio import Client
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError, NotFound, UnauthorizedAccess
from qmf.messaging.message import Message

COMMAND = os.environ.get("QMF_TEST_QPIDD_SASL", "")
FIRST, LAST = "acl allow ann@QPID all\n", "acl deny all all\n"

#: What bob asks for, the rules for him, and the one of them without which he is refused.
TOPIC = ("access exchange name=amq.topic", "access queue name=amq.topic")
SUBSCRIBE = ("create queue name=bob*", "bind exchange name=amq.topic", "consume queue name=bob*")
QUEUE = ("access exchange name=q", "access queue name=q")
CASES: dict[str, tuple[str, ...]] = {
    "sender amq.topic": TOPIC,
    "sender amq.topic; {node: {type: topic}}": TOPIC[:1],
    "sender q": (*QUEUE, "publish exchange routingkey=q"),
    "sender q; {node: {type: queue}}": (QUEUE[1], "publish exchange routingkey=q"),
    "receiver amq.topic": (*TOPIC, *SUBSCRIBE),
    "receiver amq.topic; {node: {type: topic}}": (TOPIC[0], *SUBSCRIBE),
    "receiver q": (*QUEUE, "consume queue name=q"),
    "receiver q; {node: {type: queue}}": (QUEUE[1], "consume queue name=q"),
}
#: Rules about messages, where they go, with which key, and whether that is allowed.
RELAY = (
    "access exchange name=ANONYMOUS-RELAY",
    *QUEUE,
    *TOPIC,
    "access exchange name=amq.direct",
    "access queue name=amq.direct",
    "publish exchange routingkey=q",
    "publish exchange name=amq.topic routingkey=abc",
)
RELAYED = (
    ("q", None, True),
    ("amq.topic", "abc", True),
    ("amq.topic", "def", False),
    ("amq.direct", "abc", False),  # it may be accessed, and not be published to
    ("amq.fanout", "abc", False),  # it may not be accessed
    ("elsewhere", None, False),
)

Apply = Callable[[str], Awaitable[None]]
Peer = Callable[[Path], AbstractAsyncContextManager[tuple[str, Apply]]]


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[tuple[str, Apply]]:
    access = control(folder, FIRST)

    async def apply(text: str) -> None:
        access.file.write_text(text)
        access.reload()

    async with broker(access) as made:
        yield f"127.0.0.1:{made.port}", apply


@asynccontextmanager
async def qpidd(folder: Path) -> AsyncIterator[tuple[str, Apply]]:
    if not COMMAND:
        pytest.skip("QMF_TEST_QPIDD_SASL names no qpidd")
    path = f"{os.environ['PATH']}:/usr/sbin"
    if shutil.which("saslpasswd2", path=path) is None:
        pytest.skip("saslpasswd2 is not installed")
    users, file = folder / "users", folder / "rules.acl"
    for user, password in USERS.items():
        command = ["saslpasswd2", "-p", "-c", "-f", str(users), "-u", "QPID", user]
        subprocess.run(command, input=password.encode(), check=True, env={**os.environ, "PATH": path})
    (folder / "qpidd.conf").write_text(
        f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {users}\nmech_list: PLAIN\n"
    )
    file.write_text(FIRST)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [*shlex.split(COMMAND.format(port=port, config=folder)), "--acl-file", str(file)]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    url = f"127.0.0.1:{port}"

    def listens() -> bool:
        with socket.socket() as probe:
            return process.poll() is not None or probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        wait_until(listens)
        async with Client(f"amqp://ann:a@{url}") as console, opened(url, "ann") as session:
            await session.sender("q; {create: always}")
            (rules,) = await console.objects("acl", package="org.apache.qpid.acl")

            async def apply(text: str) -> None:
                file.write_text(text)
                await rules.call("reloadACLFile")

            yield url, apply
    finally:
        process.terminate()
        process.wait()


@asynccontextmanager
async def opened(url: str, user: str) -> AsyncIterator[aio.Session]:
    connection = aio.Connection(f"amqp://{user}:{USERS[user]}@{url}", container_id=user, sasl_mechanisms="PLAIN")
    await connection.open()
    try:
        yield await connection.session()
    finally:
        await connection.close()


def rules(*lines: str) -> str:
    return FIRST + "".join(f"acl allow bob@QPID {line}\n" for line in lines) + LAST


async def attach(session: aio.Session, what: str) -> None:
    kind, _, address = what.partition(" ")
    link = await (session.sender(address) if kind == "sender" else session.receiver(address))
    await link.close()


@pytest.mark.slow
@pytest.mark.parametrize("peer", [embedded, qpidd], ids=["embedded", "qpidd"])
async def test_every_rule_of_a_link_is_needed(peer: Peer, tmp_path: Path) -> None:
    async with peer(tmp_path) as (url, apply):
        for what, needed in CASES.items():
            for left_out in (None, *needed):
                await apply(rules(*(line for line in needed if line != left_out)))
                async with opened(url, "bob") as session, opened(url, "ann") as other:
                    await attach(other, what)
                    if left_out is None:
                        await attach(session, what)
                        with pytest.raises(UnauthorizedAccess):
                            await attach(session, f"{what.split()[0]} amq.direct")
                    else:
                        with pytest.raises(UnauthorizedAccess):
                            await attach(session, what)
        await apply(rules())
        async with opened(url, "bob") as session, opened(url, "ann") as other:
            for kind in ("sender", "receiver"):
                with pytest.raises(UnauthorizedAccess):
                    await attach(session, f"{kind} unknown")
                with pytest.raises(NotFound):
                    await attach(other, f"{kind} unknown")


@pytest.mark.slow
@pytest.mark.parametrize("peer", [embedded, qpidd], ids=["embedded", "qpidd"])
async def test_messages(peer: Peer, tmp_path: Path) -> None:
    async with peer(tmp_path) as (url, apply):
        await apply(rules(*RELAY))
        async with opened(url, "bob") as session:
            sender = await session.sender("amq.topic")
            await sender.send(Message("x", subject="abc"), sync=True, timeout=30)
            with pytest.raises(MessagingError, match=r"amq\.topic"):
                await sender.send(Message("x", subject="def"), sync=True, timeout=30)
        for to, key, allowed in RELAYED:
            async with opened(url, "bob") as session:
                sender = await session.sender("<null>")
                message = Message("x", subject=key, properties={"x-amqp-to": to})
                if allowed:
                    await sender.send(message, sync=True, timeout=30)
                else:
                    with pytest.raises(MessagingError):
                        await sender.send(message, sync=True, timeout=30)
        async with opened(url, "ann") as session:
            sender = await session.sender("<null>")
            await sender.send(Message("x", properties={"x-amqp-to": "q"}), sync=True, timeout=30)
