"""Connections of STOMP: versions, logins, heart-beats, rules, their end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import websockets
from broker.protocols.stomp.stomp_wire import dial, stomp_broker

from qmf.broker.access.control import FileAccessControl
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.users.verifiers import hash_password


@pytest.mark.parametrize(
    ("offered", "version"), [("1.0,1.1,1.2", "1.2"), ("1.1, 1.0", "1.1"), ("1.0", "1.0"), ("2.0,1.2", "1.2")]
)
async def test_the_highest_version_that_both_know(offered: str, version: str) -> None:
    async with stomp_broker() as broker:
        client = await dial(broker, "1.0", accept_version=offered)
        assert client.connected.command == "CONNECTED"
        assert client.connected.headers["version"] == version
        assert ("heart-beat" in client.connected.headers) == (version != "1.0")


@pytest.mark.parametrize(
    ("headers", "reason"),
    [
        ({"accept_version": "2.0"}, "no version of 2.0, but 1.0, 1.1, 1.2"),
        ({"heart_beat": "1"}, "heart-beat is two numbers of milliseconds"),
        ({"heart_beat": "a,b"}, "heart-beat is two numbers of milliseconds"),
    ],
)
async def test_what_cannot_be_agreed_on(headers: dict[str, str], reason: str) -> None:
    async with stomp_broker() as broker:
        client = await dial(broker, "1.0", **headers)
        assert client.connected.headers["message"] == reason
        assert await client.at_end()


async def test_logins(caplog: pytest.LogCaptureFixture) -> None:
    users = {"ann": "secret", "bob": hash_password("other")}
    async with stomp_broker(users=users) as broker:
        for user, password in (("ann", "secret"), ("bob", "other")):
            assert (await dial(broker, login=user, passcode=password)).connected.command == "CONNECTED"
        for login in ({"login": "ann", "passcode": "x"}, {"login": "bob", "passcode": "x"}, {}, {"login": "eve"}):
            client = await dial(broker, **login)
            assert client.connected.headers["message"] == "the login is refused"
            assert b"secret" not in client.connected.body
        assert "login of user 'ann' refused: " in caplog.text


async def test_frames_may_follow_while_the_login_is_checked() -> None:
    async with stomp_broker(users={"bob": hash_password("other")}) as broker:
        client = await broker.open_client()
        client.write(b"CONNECT\naccept-version:1.2\nhost:mq\nlogin:bob\npasscode:other\n\n\0\n")
        client.write(b"SEND\ndestination:/queue/a\nreceipt:r\n\nx\0")
        assert (await client.frame()).command == "CONNECTED"
        assert (await client.frame()).headers == {"receipt-id": "r"}


async def test_rules(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text(
        "acl allow ann@QPID create connection host=all\n"
        "acl allow ann@QPID publish exchange name=amq.default routingkey=jobs\n"
        "acl allow ann@QPID access queue name=jobs\nacl deny all all\n"
    )
    access = FileAccessControl(rules)
    async with stomp_broker(users={"ann": "secret"}, access=access, queues=["jobs"]) as broker:
        client = await dial(broker, login="ann", passcode="secret")
        await client.ask("SEND", b"x", destination="/queue/jobs")
        client.send("SUBSCRIBE", destination="/queue/jobs", id="a")
        assert "may not consume queue 'jobs': the ACL denies it" in await client.error()
        client = await dial(broker, login="ann", passcode="secret")
        client.send("SEND", b"x", destination="/queue/another")
        assert "the ACL denies it" in await client.error()


async def test_heartbeats() -> None:
    async with stomp_broker(stomp=StompOptions(port=0, heartbeat=20)) as broker:
        client = await dial(broker, heart_beat="0,20")
        assert client.connected.headers["heart-beat"] == "20,20"
        assert (await client.raw()).strip(b"\n") == b""
        client = await dial(broker, heart_beat="20,0")
        assert "nothing was sent for 0.04 s" in await client.error()


async def test_a_client_that_keeps_its_word_stays() -> None:
    async with stomp_broker(stomp=StompOptions(port=0, heartbeat=50)) as broker:
        client = await dial(broker, heart_beat="50,0")
        for _ in range(6):
            await asyncio.sleep(0.03)
            client.write(b"\n")
        await client.ask("SEND", b"", destination="/queue/a")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"SEND\ndestination:/queue/a\n\nx\0", "the first frame is CONNECT, not SEND"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "no command, but 'GET / HTTP/1.1'"),
        (b"CONNECT\ncontent-length:65537\n\n", "a frame of more than 65536 bytes"),
    ],
)
async def test_what_is_no_client(data: bytes, reason: str) -> None:
    async with stomp_broker() as broker:
        client = await broker.open_client()
        client.write(data)
        assert reason in await client.error()


async def test_a_client_that_does_not_log_in_is_dropped() -> None:
    async with stomp_broker(open_timeout=0.01) as broker:
        assert await (await broker.open_client()).at_end()


async def test_the_end_of_the_broker() -> None:
    async with stomp_broker() as broker:
        client = await dial(broker)
    assert await client.error() == "the broker is shutting down"


async def test_over_websocket() -> None:
    async with stomp_broker(ws_port=0) as broker:
        assert broker.ws_url is not None
        subprotocols = [websockets.Subprotocol("v12.stomp")]
        async with websockets.connect(broker.ws_url, subprotocols=subprotocols, proxy=None) as client:
            await client.send("CONNECT\naccept-version:1.2\nhost:mq\n\n\0")
            answer = await client.recv(decode=False)
            assert answer.startswith(b"CONNECTED\n")
            await client.send(b"SUBSCRIBE\nid:1\ndestination:/topic/a\n\n\0")
            await client.send("SEND\ndestination:/topic/a\n\nbody\0")
            assert (await client.recv(decode=False)).endswith(b"\n\nbody\0")
