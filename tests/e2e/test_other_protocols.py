"""Clients of MQTT and STOMP, as operators see and end them: by tools, programs, the shell, the web server and rules."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from qmf_shell.main import main as shell
from qmf_shell.stat import main as qmf_stat
from support.waiting import WAIT_LIMIT
from support.web import called, web_options

from qmf.broker import EmbeddedBroker
from qmf.broker.access.control import FileAccessControl
from qmf.broker.protocols.mqtt.codec.packets import ConnAck, Connect, SubAck, Subscribe, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.client import BrokerAgent
from qmf.connecting import BrokerTarget
from qmf.errors import RemoteError
from qmf.tools.stat.cli import main as qpid_stat
from qmf.web import create_application

pytestmark = pytest.mark.slow

API = "/api/v1"


@attrs.frozen
class Client:
    """A connection of MQTT or STOMP.

    Attributes:
        sock: its socket.
    """

    sock: socket.socket

    def is_gone(self) -> bool:
        """Whether the broker has closed it."""
        self.sock.settimeout(WAIT_LIMIT)
        while self.sock.recv(4096):
            pass
        return True


def mqtt_client(
    broker: EmbeddedBroker, client_id: str, user: str | None = None, password: bytes | None = None
) -> Client:
    """A client that has subscribed to ``a``, and whose session is kept."""
    sock = socket.create_connection(("127.0.0.1", int(broker.mqtt_urls[0].rpartition(":")[2])))
    connect = Connect(Version.V5, client_id, False, 0, None, user, password, {PacketProperty.SESSION_EXPIRY: 600})
    reader = PacketReader(version=Version.V5)
    for packet, answer in ((connect, ConnAck), (Subscribe(1, [SubscriptionRequest("a", 1)], {}), SubAck)):
        sock.sendall(encode_packet(packet, Version.V5))
        while (found := reader.next_packet()) is None:
            reader.feed(sock.recv(4096))
        assert isinstance(found, answer)
    return Client(sock)


def stomp_client(broker: EmbeddedBroker) -> Client:
    assert broker.stomp_url is not None
    sock = socket.create_connection(("127.0.0.1", int(broker.stomp_url.rpartition(":")[2])))
    sock.sendall(b"CONNECT\naccept-version:1.2\nhost:mq\n\n\0")
    assert sock.recv(4096).startswith(b"CONNECTED")
    return Client(sock)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(mqtt=MqttOptions(port=0), stomp=StompOptions(port=0), management=3600.0) as made:
        yield made


def test_by_the_tools_and_programs(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, stomp = mqtt_client(broker, "one"), mqtt_client(broker, "two"), stomp_client(broker)
    with closing(one.sock), closing(two.sock), closing(stomp.sock):
        assert qpid_stat(["--mqtt", "-S", "client", "-I", "-b", broker.url]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "MQTT Sessions"
        assert lines[1].split() == [
            "client",
            "user",
            "version",
            "conn",
            "dur",
            "expiry",
            "subs",
            "queued",
            "inflight",
            "will",
        ]
        assert [line.split()[0] for line in lines[3:]] == ["one", "two"]
        assert qmf_stat(["connections", "--csv", "-b", broker.url]) == 0
        out = capsys.readouterr().out
        assert out.count("MQTT 5.0") == 2
        assert out.count("STOMP 1.2") == 1
        with BrokerAgent.connect(broker.url) as agent:
            found = agent.getMqttSession("one")
            assert found is not None
            assert (found.connected, found.queueRef, found.subscriptions) == (True, "mqtt/one", 1)
            assert agent.getMqttSession("nobody") is None
            found.disconnect()
            assert one.is_gone()
            found.update()
            assert (found.connected, found.connectionRef) == (False, None)
            found.end()
            assert [each.clientId for each in agent.getAllMqttSessions()] == ["two"]
            (connection,) = [each for each in agent.getAllConnections() if each.protocol == "STOMP 1.2"]
            connection.close()
            assert stomp.is_gone()


def test_by_the_shell(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    client = mqtt_client(broker, "one")
    with closing(client.sock):
        assert qmf_stat(["mqtt", "--csv", "-b", broker.url]) == 0
        heading, row = capsys.readouterr().out.splitlines()
        assert dict(zip(heading.split(","), row.split(","), strict=True))["client"] == "one"
        commands = ["list mqttsession", "call mqttsession:one disconnect", "call mqttsession:one end"]
        assert shell(["-b", broker.url, *(word for text in commands for word in ("-c", text))]) == 0
        assert "one" in capsys.readouterr().out
        assert client.is_gone()
        assert shell(["-b", broker.url, "-c", "list mqttsession"]) == 0
        assert "one" not in capsys.readouterr().out


def test_a_broker_without_mqtt_has_no_such_view(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker(management=3600.0) as broker:
        assert qmf_stat(["mqtt", "-b", broker.url]) == 1
        assert "no agent has the class qmf.mqtt:mqttsession" in capsys.readouterr().err
        assert qpid_stat(["--mqtt", "-b", broker.url]) == 0
        assert capsys.readouterr().out == "MQTT Sessions\n"


async def test_by_the_web_server(broker: EmbeddedBroker) -> None:
    client = mqtt_client(broker, "one")
    app = create_application(web_options(target=BrokerTarget.of(broker.url)), pages=False)
    with closing(client.sock):
        async with called(app) as http:
            found: list[Any] = []
            while not found:
                answer = await http.get(f"{API}/objects?class=mqttsession")
                assert answer.status_code == 200, answer.text
                found = answer.json()["objects"]
            (session,) = found
            assert session["properties"]["clientId"] == "one"
            answer = await http.post(f"{session['href']}/methods/end", json={})
            assert answer.status_code == 200, answer.text
        assert client.is_gone()


def test_rules_about_them(tmp_path: Path) -> None:
    file = tmp_path / "users.acl"
    file.write_text(
        "acl deny bob@QPID access method name=end schemapackage=qmf.mqtt schemaclass=mqttsession\n"
        "acl deny bob@QPID access method name=close schemaclass=connection\n"
        "acl deny eve@QPID access query schemaclass=mqttsession\n"
        "acl allow all all\n"
    )
    users = {"ann": "a", "bob": "b", "eve": "e"}
    with (
        EmbeddedBroker(
            users=users, access=FileAccessControl(file), mqtt=MqttOptions(port=0), management=3600.0
        ) as made,
        closing(mqtt_client(made, "one", "ann", b"a").sock),
    ):
        with BrokerAgent.connect(made.url.replace("://", "://bob:b@")) as agent:
            (session,) = agent.getAllMqttSessions()
            assert session.user == "ann"
            with pytest.raises(RemoteError, match="access method 'end': the ACL denies it"):
                session.end()
            (connection,) = [each for each in agent.getAllConnections() if each.protocol == "MQTT 5.0"]
            with pytest.raises(RemoteError, match="access method 'close': the ACL denies it"):
                connection.close()
            session.disconnect()  # nothing denies that
        with (
            BrokerAgent.connect(made.url.replace("://", "://eve:e@")) as agent,
            pytest.raises(RemoteError, match="access query 'mqttsession': the ACL denies it"),
        ):
            agent.getAllMqttSessions()
